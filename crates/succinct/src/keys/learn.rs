//! Finding the template that sampled keys fit.
//!
//! Two shapes are tried. Keys of one length are studied column by column: bytes that never change
//! are constant, the others become decimal, hexadecimal or binary numbers of fixed width. Else keys
//! are texts with runs of digits in them: the texts between the runs must be the same in all.
//!
//! A sample of sorted keys shows few values of the leading bytes. So constant bytes beside a number
//! that could be its higher digits become part of it: that costs nothing (a block stores its least
//! number once), and later keys still fit.

use super::field::{DECIMAL_DIGITS_MAX, Field, ORDERED_DIGITS_MAX};
use super::run::KeyRun;
use super::template::{FIELDS_MAX, Frame, LITERAL_BYTES_MAX, Row, Template};

/// Longest keys that are taken column by column.
const COLUMNS_MAX: usize = 128;

/// Keys may have so many digits less in a long run than the shortest of the sample and still fit.
const LONG_DIGITS_SPARE: usize = 2;

/// The templates worth trying on keys like `sample`'s.
pub(super) fn candidates(sample: &KeyRun) -> Vec<Template> {
    let mut found: Vec<Template> = [by_columns(sample), by_digit_runs(sample)]
        .into_iter()
        .flatten()
        .filter(|template| {
            let literals: usize = template.literals.iter().map(Vec::len).sum();
            (1..=FIELDS_MAX).contains(&template.fields.len()) && literals <= LITERAL_BYTES_MAX
        })
        .collect();
    for template in &mut found {
        set_frames(template, sample);
    }
    found
}

/// Learns the usual range of each number.
fn set_frames(template: &mut Template, sample: &KeyRun) {
    let mut rows: Vec<Row> = Vec::with_capacity(sample.len());
    for key in sample.range(0, sample.len()) {
        let mut row = Row::default();
        if template.parse(key, &mut row) {
            rows.push(row);
        }
    }
    template.frames = (0..template.fields.len())
        .map(|field| Frame::around(rows.iter().filter_map(|row| row.get(field).copied())))
        .collect();
}

/// The bytes seen at one place of keys of one length.
#[derive(Clone, Copy)]
struct Seen {
    first: u8,
    constant: bool,
    classes: Classes,
}

/// The kinds of number that could have these bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Classes(u8);

impl Classes {
    const LOWER: Self = Self(2);
    const UPPER: Self = Self(4);
    /// Decimal digits: they are of every kind.
    const ALL: Self = Self(7);

    fn of(byte: u8) -> Self {
        Self(match byte {
            b'0'..=b'9' => 7,
            b'a'..=b'f' => 2,
            b'A'..=b'F' => 4,
            _ => 0,
        })
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn has(self, class: Self) -> bool {
        self.0 & class.0 != 0
    }
}

fn by_columns(sample: &KeyRun) -> Option<Template> {
    let model = sample.get(0);
    if model.is_empty() || model.len() > COLUMNS_MAX {
        return None;
    }
    let mut seen: Vec<Seen> = model
        .iter()
        .map(|&first| Seen {
            first,
            constant: true,
            classes: Classes::ALL,
        })
        .collect();
    for key in sample.range(0, sample.len()) {
        if key.len() != model.len() {
            return None;
        }
        for (seen, &byte) in seen.iter_mut().zip(key) {
            seen.constant &= byte == seen.first;
            seen.classes = seen.classes.and(Classes::of(byte));
        }
    }
    let mut template = Template {
        fields: Vec::new(),
        literals: Vec::new(),
        frames: Vec::new(),
    };
    let mut done = 0;
    while let Some(start) = (done..seen.len()).find(|&at| is_changing(&seen, at)) {
        let end = (start..seen.len())
            .find(|&at| !is_changing(&seen, at))
            .unwrap_or(seen.len());
        let run = Run::of(&seen, done, start, end);
        template.literals.push(constants(&seen, done, run.start));
        for (index, width) in run.widths().enumerate() {
            if index > 0 {
                template.literals.push(Vec::new());
            }
            template.fields.push(run.field(width));
        }
        done = end;
    }
    template.literals.push(constants(&seen, done, seen.len()));
    Some(template)
}

fn is_changing(seen: &[Seen], at: usize) -> bool {
    seen.get(at).is_some_and(|seen| !seen.constant)
}

fn constants(seen: &[Seen], from: usize, until: usize) -> Vec<u8> {
    let bytes = seen.get(from..until).unwrap_or(&[]);
    bytes.iter().map(|seen| seen.first).collect()
}

/// Neighbouring places of one kind of number.
struct Run {
    start: usize,
    end: usize,
    classes: Classes,
    /// Most places a number of the kind has.
    width_max: usize,
}

impl Run {
    /// The changing places `start..end`, with constant ones before them, from `floor` on, that could
    /// be their higher digits.
    fn of(seen: &[Seen], floor: usize, start: usize, end: usize) -> Self {
        let of_run = seen.get(start..end).unwrap_or(&[]);
        let classes = of_run
            .iter()
            .fold(Classes::ALL, |all, seen| all.and(seen.classes));
        let width_max = match classes {
            Classes::ALL => usize::from(DECIMAL_DIGITS_MAX),
            Classes(0) => 8,
            _ => 16,
        };
        let mut run = Self {
            start,
            end,
            classes,
            width_max,
        };
        let room = (run.end - run.start).next_multiple_of(width_max) - (run.end - run.start);
        while run.start > floor
            && start - run.start < room
            && seen
                .get(run.start - 1)
                .is_some_and(|seen| run.classes.0 == 0 || run.accepts(seen.first))
        {
            run.start -= 1;
        }
        run
    }

    fn accepts(&self, byte: u8) -> bool {
        match self.classes {
            Classes::ALL => byte.is_ascii_digit(),
            classes => Classes::of(byte).and(classes).0 != 0,
        }
    }

    /// The widths of the numbers the run is cut into; only the first is narrower than the most.
    fn widths(&self) -> impl Iterator<Item = usize> {
        let (len, most) = (self.end - self.start, self.width_max);
        let first = match len % most {
            0 => most,
            rest => rest,
        };
        std::iter::once(first).chain(std::iter::repeat_n(most, (len - first) / most))
    }

    fn field(&self, width: usize) -> Field {
        let width = width as u8;
        match self.classes {
            Classes::ALL => Field::FixedDecimal(width),
            classes if classes.has(Classes::LOWER) => Field::HexLower(width),
            classes if classes.has(Classes::UPPER) => Field::HexUpper(width),
            _ => Field::Binary(width),
        }
    }
}

/// The properties seen in one run of digits.
#[derive(Clone, Copy)]
struct Digits {
    width_min: usize,
    width_max: usize,
    zero_first: bool,
}

fn by_digit_runs(sample: &KeyRun) -> Option<Template> {
    let model = sample.get(sample.len() / 2);
    let (literals, runs) = split_at_digits(model);
    if runs.is_empty() || runs.len() > FIELDS_MAX {
        return None;
    }
    let mut seen = vec![
        Digits {
            width_min: usize::MAX,
            width_max: 0,
            zero_first: false,
        };
        runs.len()
    ];
    let mut fitting = 0;
    for key in sample.range(0, sample.len()) {
        let (texts, digits) = split_at_digits(key);
        if texts != literals {
            continue;
        }
        fitting += 1;
        for (seen, digits) in seen.iter_mut().zip(digits) {
            seen.width_min = seen.width_min.min(digits.len());
            seen.width_max = seen.width_max.max(digits.len());
            seen.zero_first |= digits.len() > 1 && digits.first() == Some(&b'0');
        }
    }
    if fitting * 2 < sample.len() {
        return None;
    }
    let mut template = Template {
        fields: Vec::new(),
        literals: vec![literals.first()?.to_vec()],
        frames: Vec::new(),
    };
    for (at, seen) in seen.into_iter().enumerate() {
        let after = literals.get(at + 1)?;
        if let Some((front, rest)) = long_digits(seen, after) {
            template.fields.extend([front, rest]);
            template.literals.push(Vec::new());
        } else {
            template.fields.push(digit_field(seen, at == 0, after)?);
        }
        template.literals.push(after.to_vec());
    }
    Some(template)
}

/// Two numbers for a run that is too long for one and not always of one length: its front, which all
/// keys have whole, and the rest.
fn long_digits(seen: Digits, after: &[u8]) -> Option<(Field, Field)> {
    let most = usize::from(ORDERED_DIGITS_MAX);
    if seen.width_max <= most || seen.width_min == seen.width_max {
        return None;
    }
    let front = seen.width_min.checked_sub(LONG_DIGITS_SPARE)?.min(most);
    let rest = seen.width_max - front;
    if front == 0 || rest > most {
        return None;
    }
    let ordered = |digits: usize, end_high| Field::Ordered {
        digits: digits as u8,
        end_high,
    };
    let end_high = after.first().is_some_and(|&byte| byte > b'9');
    Some((ordered(front, false), ordered(rest, end_high)))
}

/// The kind of number for a run of digits; `None` when it is too long.
fn digit_field(seen: Digits, is_first: bool, after: &[u8]) -> Option<Field> {
    let width = u8::try_from(seen.width_max).ok()?;
    if seen.width_min == seen.width_max && seen.zero_first {
        return (width <= DECIMAL_DIGITS_MAX).then_some(Field::FixedDecimal(width));
    }
    if (is_first || seen.zero_first) && width <= ORDERED_DIGITS_MAX {
        return Some(Field::Ordered {
            digits: width,
            end_high: after.first().is_some_and(|&byte| byte > b'9'),
        });
    }
    let short = width <= DECIMAL_DIGITS_MAX && !seen.zero_first;
    short.then_some(Field::Decimal)
}

/// The texts between runs of digits, one more than there are runs; and the runs.
fn split_at_digits(key: &[u8]) -> (Vec<&[u8]>, Vec<&[u8]>) {
    let (mut texts, mut runs) = (Vec::new(), Vec::new());
    let mut rest = key;
    loop {
        let text = rest
            .iter()
            .position(u8::is_ascii_digit)
            .unwrap_or(rest.len());
        let (before, from_digits) = rest.split_at(text);
        texts.push(before);
        if from_digits.is_empty() {
            return (texts, runs);
        }
        let digits = from_digits
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(from_digits.len());
        let (run, after) = from_digits.split_at(digits);
        runs.push(run);
        rest = after;
    }
}
