//! Intervals of keys that hold all values for which a test may be true.

use drumlin_doc::{Kind, OwnedValue, Pattern, Predicate, Test, keystring};

/// The class byte of texts.
const TEXT: u8 = 60;

/// Keys from the first on, up to the second, which does not count. Ascending, whatever way the index goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Vec<u8>,
    /// Whether it is one value.
    pub(crate) is_point: bool,
}

/// The most points of one field that are looked at one by one.
const POINTS_MAX: usize = 1000;

impl Interval {
    fn point(value: &OwnedValue) -> Option<Self> {
        let low = key(value)?;
        Some(Self {
            high: behind(&low),
            low,
            is_point: true,
        })
    }

    fn range(low: Vec<u8>, high: Vec<u8>) -> Self {
        Self {
            low,
            high,
            is_point: false,
        }
    }

    /// Those of keys whose bytes are inverted.
    pub(crate) fn inverted(&self) -> Self {
        // The end is a key and a byte behind it, a class byte, or what is behind all texts that begin so; the beginning is a key,
        // a class byte, or the beginning of a text, which has no terminator.
        let flip = |bytes: &[u8]| bytes.iter().map(|byte| !*byte).collect::<Vec<u8>>();
        let low = match self.high.split_last() {
            Some((&keystring::BEHIND, key)) => flip(key),
            _ if self.high.len() > 1 => vec![!TEXT],
            _ => self.high.iter().map(|byte| !(byte - 1)).collect(),
        };
        // A class byte alone stands for whatever follows it; so does the beginning of a text, of which all texts are taken.
        let high = match self.low.as_slice() {
            [class] => vec![!class + 1],
            [class, .., end] if *class == TEXT && *end != 0 => vec![!class + 1],
            key => behind(&flip(key)),
        };
        Self {
            low,
            high,
            is_point: self.is_point,
        }
    }

    /// What both have.
    fn both(&self, other: &Self) -> Option<Self> {
        let low = self.low.clone().max(other.low.clone());
        let high = self.high.clone().min(other.high.clone());
        (low < high).then_some(Self {
            low,
            high,
            is_point: self.is_point || other.is_point,
        })
    }
}

/// The key of an operand that keys of an index may be compared with.
fn key(value: &OwnedValue) -> Option<Vec<u8>> {
    let is_plain = !matches!(
        value.kind,
        Kind::Array | Kind::MinKey | Kind::MaxKey | Kind::Undefined | Kind::Regex
    );
    is_plain.then(|| keystring::key_of(value.get()))
}

fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[keystring::BEHIND]].concat()
}

/// The sorted intervals of `test`; `None` where it says nothing about keys. `one_value` where all of it is about one and the same
/// value, so that several conditions may be combined.
pub(crate) fn intervals(test: &Test, one_value: bool) -> Option<Vec<Interval>> {
    match test {
        Test::Any(predicate) => of_predicate(predicate),
        Test::All(tests) => {
            let mut found = tests.iter().filter_map(|test| intervals(test, one_value));
            let first = found.next()?;
            match one_value || drumlin_base::bug!("mongo-bounds-of-arrays-combined") {
                true => Some(found.fold(first, |a, b| combined(&a, &b))),
                // Any one of them holds all documents: points are the fewest.
                false => {
                    let is_points = |it: &Vec<Interval>| it.iter().all(|it| it.is_point);
                    match is_points(&first) {
                        true => Some(first),
                        false => Some(found.find(is_points).unwrap_or(first)),
                    }
                }
            }
        }
        // One element has to pass all of it.
        Test::Element(inner) => intervals(inner, true),
        _ => None,
    }
}

fn of_predicate(predicate: &Predicate) -> Option<Vec<Interval>> {
    let class = |value: &OwnedValue| keystring::class_bounds(value.kind);
    let interval = match predicate {
        Predicate::Equal(value) => Interval::point(value)?,
        Predicate::In(values) if values.len() <= POINTS_MAX => {
            let mut points: Vec<_> = values.iter().map(Interval::point).collect::<Option<_>>()?;
            points.sort();
            return Some(points);
        }
        Predicate::Regex(pattern) => return of_patterns(&[], std::slice::from_ref(pattern)),
        Predicate::OneOf(values, patterns) if values.len() <= POINTS_MAX => {
            return of_patterns(values, patterns);
        }
        Predicate::Less(value) | Predicate::LessOrEqual(value) => {
            Interval::range(vec![class(value).0], behind(&key(value)?))
        }
        Predicate::Greater(value) | Predicate::GreaterOrEqual(value) => {
            Interval::range(key(value)?, vec![class(value).1])
        }
        _ => return None,
    };
    Some(vec![interval])
}

/// Values, and texts in which one of the patterns is found: those that begin as it says, or all. A pattern is found in itself too.
fn of_patterns(values: &[OwnedValue], patterns: &[Pattern]) -> Option<Vec<Interval>> {
    let mut all: Vec<_> = values.iter().map(Interval::point).collect::<Option<_>>()?;
    let (class, behind_class) = keystring::class_bounds(Kind::String);
    for pattern in patterns {
        let own = keystring::key_of(pattern.as_value().get());
        all.push(Interval::range(own.clone(), behind(&own)));
        all.push(match pattern.prefix() {
            Some(prefix) => {
                let mut low = keystring::key_of(OwnedValue::string(prefix).get());
                low.pop();
                let mut high = low.clone();
                // A byte of a text is not 255.
                if let Some(last) = high.last_mut() {
                    *last += 1;
                }
                Interval::range(low, high)
            }
            None => Interval::range(vec![class], vec![behind_class]),
        });
    }
    all.sort();
    // No key is to be met twice.
    let mut merged: Vec<Interval> = Vec::new();
    for next in all {
        match merged.last_mut() {
            Some(last) if next.low < last.high => {
                if next.high > last.high {
                    last.high = next.high;
                }
                last.is_point = false;
            }
            _ => merged.push(next),
        }
    }
    Some(merged)
}

fn combined(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut both: Vec<_> = a
        .iter()
        .flat_map(|a| b.iter().filter_map(|b| a.both(b)))
        .collect();
    both.sort();
    both
}

/// Whether a missing field may pass the test, so that a sparse index does not have all that it finds.
pub(crate) fn holds_null(intervals: &[Interval]) -> bool {
    let null = keystring::key_of(drumlin_doc::Value::NULL);
    intervals.iter().any(|it| it.low <= null && null < it.high)
}
