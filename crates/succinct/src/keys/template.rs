//! The common pattern of an index's keys: constant texts with numbers between them.
//!
//! A key that fits its template is a row of integers, and no two keys are the same row, so equality
//! of keys is equality of integers. [`super::learn`] finds templates.

use drumlin_base::coding::{Reader, put_slice, put_varint64};

use super::field::Field;
use super::packed::without;

/// Numbers a key may have.
pub(super) const FIELDS_MAX: usize = 16;
/// Bytes all constant texts of a template may have together.
pub(super) const LITERAL_BYTES_MAX: usize = 256;

/// The integers of one key.
pub(super) type Row = [u64; FIELDS_MAX];

/// The range of a column's integers in a sample. A block whose column is within it needs no range
/// of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// The smallest integer.
    pub(super) min: u64,
    /// Bits of the largest integer less the smallest.
    pub(super) bits: u32,
}

impl Frame {
    /// The frame of `values`.
    pub(super) fn around(values: impl Iterator<Item = u64>) -> Self {
        let (min, max) = values.fold((u64::MAX, 0), |(min, max), value| {
            (value.min(min), value.max(max))
        });
        Self::spanning(min, max)
    }

    /// The frame of values from `min` to `max`; none are when that is less.
    #[inline]
    pub(super) fn spanning(min: u64, max: u64) -> Self {
        match min <= max {
            true => Self {
                min,
                bits: super::packed::width_of(max - min),
            },
            false => Self::default(),
        }
    }

    /// Whether `value` is in the frame.
    #[inline]
    pub(super) fn holds(self, value: u64) -> bool {
        value
            .checked_sub(self.min)
            .is_some_and(|above| above & !super::packed::mask(self.bits) == 0)
    }
}

/// Constant texts with numbers between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    /// The numbers, from the front of the key.
    pub(super) fields: Vec<Field>,
    /// The texts before each number, and after the last.
    pub(super) literals: Vec<Vec<u8>>,
    /// The usual range of each number.
    pub(super) frames: Vec<Frame>,
}

impl Template {
    /// Takes `key` apart into `row`. False when it does not fit.
    #[inline]
    pub(super) fn parse(&self, key: &[u8], row: &mut Row) -> bool {
        self.parse_each(key, |field, value| {
            if let Some(place) = row.get_mut(field) {
                *place = value;
            }
        })
    }

    /// As [`Template::parse`], giving each number to `take`.
    #[inline]
    pub(super) fn parse_each(&self, key: &[u8], mut take: impl FnMut(usize, u64)) -> bool {
        let mut rest = key;
        for (index, (literal, field)) in self.literals.iter().zip(&self.fields).enumerate() {
            let Some(text) = without(rest, literal) else {
                return false;
            };
            let Some((value, len)) = field.parse(text) else {
                return false;
            };
            take(index, value);
            rest = text.get(len..).unwrap_or(&[]);
        }
        // Mostly there is none, and to compare nothing with nothing is a call.
        self.literals
            .last()
            .is_some_and(|last| rest.len() == last.len() && (last.is_empty() || rest == last))
    }

    /// The first number of `key`, which need not fit behind the text that follows that number; `None`
    /// when the number does not decide the place of `key` among keys that fit.
    pub(super) fn parse_first(&self, key: &[u8]) -> Option<u64> {
        let (&field, literal) = (self.fields.first()?, self.literals.first()?);
        if !field.ascends() {
            return None;
        }
        let text = key.strip_prefix(literal.as_slice())?;
        let (value, len) = field.parse(text)?;
        let rest = text.get(len..)?;
        let follows = match field {
            // All its digits are present: the bytes behind it decide only among keys with equal
            // ones.
            Field::Ordered { digits, .. } if len == usize::from(digits) => true,
            Field::Ordered { .. } => self.literals.get(1)?.first() == rest.first(),
            _ => true,
        };
        follows.then_some(value)
    }

    /// Appends the key of `row`.
    #[inline]
    pub(super) fn print(&self, row: &Row, out: &mut Vec<u8>) {
        for ((literal, field), &value) in self.literals.iter().zip(&self.fields).zip(row) {
            out.extend_from_slice(literal);
            field.print(value, out);
        }
        out.extend_from_slice(self.literals.last().map_or(&[], Vec::as_slice));
    }

    /// Whether the first integer ascends with the keys.
    pub(super) fn first_ascends(&self) -> bool {
        self.fields.first().is_some_and(|field| field.ascends())
    }

    /// Bytes in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        self.literals
            .iter()
            .map(|text| text.len() + 24)
            .sum::<usize>()
            + self.fields.len() * (size_of::<Field>() + size_of::<Frame>())
            + size_of::<Self>()
    }

    /// Appends the template as it is stored.
    pub(super) fn store(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.fields.len() as u64);
        for (field, frame) in self.fields.iter().zip(&self.frames) {
            field.store(out);
            put_varint64(out, frame.min);
            out.push(frame.bits as u8);
        }
        for literal in &self.literals {
            put_slice(out, literal);
        }
    }

    /// Reads a template from the bytes of [`Template::store`]. `None` when the bytes are no
    /// template.
    pub(super) fn load(from: &mut Reader<'_>) -> Option<Self> {
        let count = usize::try_from(from.varint64()?).ok()?;
        if count == 0 || count > FIELDS_MAX {
            return None;
        }
        let mut template = Self {
            fields: Vec::with_capacity(count),
            literals: Vec::with_capacity(count + 1),
            frames: Vec::with_capacity(count),
        };
        for _ in 0..count {
            template.fields.push(Field::load(from)?);
            let min = from.varint64()?;
            let bits = u32::from(from.u8()?);
            if bits > 64 {
                return None;
            }
            template.frames.push(Frame { min, bits });
        }
        let mut literal_bytes = 0;
        for _ in 0..=count {
            let literal = from.slice()?;
            literal_bytes += literal.len();
            if literal_bytes > LITERAL_BYTES_MAX {
                return None;
            }
            template.literals.push(literal.to_vec());
        }
        Some(template)
    }
}

impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (literal, field) in self.literals.iter().zip(&self.fields) {
            write!(f, "{}{field}", literal.escape_ascii())?;
        }
        let last = self.literals.last().map_or(&[][..], Vec::as_slice);
        write!(f, "{}", last.escape_ascii())
    }
}
