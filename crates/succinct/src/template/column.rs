//! The types of a field, and their bits.

use drumlin_base::coding::put_varint64;
use drumlin_base::coding::{Reader, put_slice, put_varint32, unzigzag, zigzag};
use drumlin_base::{Error, Result};

use super::number::Style;

/// Columns of a template.
pub const COLUMNS_MAX: usize = 64;

/// Values a [`Column::Choice`] may have.
pub(super) const CHOICES_MAX: usize = 4096;

/// The type of a field. Fields of known width stand first in a record's bits, texts after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// One of a few values, by number.
    Choice {
        /// The values, the most frequent first.
        values: Vec<Vec<u8>>,
    },
    /// A number, stored as its excess over `base`, in `bits` bits.
    Number {
        /// How it is written.
        style: Style,
        /// The number stored as zero.
        base: i64,
        /// 0 to 64.
        bits: u32,
        /// The origin that the number is counted from.
        relation: Relation,
    },
    /// A text in the model's code.
    Text,
    /// One piece of the dictionary: its place, then its length less `shortest` in `bits` bits.
    Piece {
        /// The shortest piece.
        shortest: u32,
        /// 0 to 20.
        bits: u32,
    },
}

/// The origin that a number is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// From zero.
    Alone,
    /// It is the sum of an earlier column's number and the stored one.
    Sum(usize),
    /// It is the product of an earlier column's number and the stored one.
    Product(usize),
}

impl Relation {
    /// The number, from the stored one and the earlier numbers.
    #[inline]
    pub(super) fn apply(self, stored: i64, earlier: &[i64]) -> i64 {
        let other = |column: usize| earlier.get(column).copied().unwrap_or(0);
        match self {
            Self::Alone => stored,
            Self::Sum(column) => other(column).wrapping_add(stored),
            Self::Product(column) => other(column).wrapping_mul(stored),
        }
    }

    /// The number to store for `number`; none when no stored number gives it.
    pub(super) fn solve(self, number: i64, earlier: &[i64]) -> Option<i64> {
        match self {
            Self::Alone => Some(number),
            Self::Sum(column) => number.checked_sub(*earlier.get(column)?),
            Self::Product(column) => {
                let factor = *earlier.get(column)?;
                (number.checked_rem(factor)? == 0).then(|| number.checked_div(factor))?
            }
        }
    }
}

/// On disk: the first byte of a column.
const CHOICE: u8 = 0;
const NUMBER: u8 = 1;
const TEXT: u8 = 2;
const PIECE: u8 = 3;

impl Column {
    /// Bits it takes of those that stand first. `place_bits` are the dictionary's.
    pub(super) fn width(&self, place_bits: u32) -> u32 {
        match self {
            Self::Choice { values } => choice_bits(values.len()),
            Self::Number { bits, .. } => *bits,
            Self::Text => 0,
            Self::Piece { bits, .. } => place_bits + bits,
        }
    }

    /// Appends the column as it is stored.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Choice { values } => {
                out.push(CHOICE);
                put_varint32(out, values.len() as u32);
                values.iter().for_each(|value| put_slice(out, value));
            }
            Self::Number {
                style,
                base,
                bits,
                relation,
            } => {
                out.push(NUMBER);
                out.extend_from_slice(&style.bytes());
                put_varint64(out, zigzag(*base));
                let (kind, other) = match relation {
                    Relation::Alone => (0, 0),
                    Relation::Sum(other) => (1, *other),
                    Relation::Product(other) => (2, *other),
                };
                out.extend_from_slice(&[*bits as u8, kind, other as u8]);
            }
            Self::Text => out.push(TEXT),
            Self::Piece { shortest, bits } => {
                out.push(PIECE);
                put_varint32(out, *shortest);
                out.push(*bits as u8);
            }
        }
    }

    /// Reads a column from the bytes of [`Column::write`], as the one after `index` others.
    ///
    /// # Errors
    /// `Corruption` when the bytes are cut off or are no column.
    pub(super) fn read(reader: &mut Reader<'_>, index: usize) -> Result<Self> {
        Self::parse(reader, index).ok_or_else(|| Error::corruption("a damaged column"))
    }

    fn parse(reader: &mut Reader<'_>, index: usize) -> Option<Self> {
        match reader.u8()? {
            CHOICE => {
                let count = reader.varint32()? as usize;
                (1..=CHOICES_MAX).contains(&count).then_some(())?;
                let mut values = Vec::with_capacity(count);
                for _ in 0..count {
                    values.push(reader.slice()?.to_vec());
                }
                Some(Self::Choice { values })
            }
            NUMBER => {
                let style = Style::from_bytes([reader.u8()?, reader.u8()?])?;
                let base = unzigzag(reader.varint64()?);
                let bits = u32::from(reader.u8()?);
                let (kind, other) = (reader.u8()?, usize::from(reader.u8()?));
                let relation = match kind {
                    0 => Relation::Alone,
                    1 => Relation::Sum(other),
                    2 => Relation::Product(other),
                    _ => return None,
                };
                let sound = bits <= 64 && (kind == 0 || other < index);
                sound.then_some(Self::Number {
                    style,
                    base,
                    bits,
                    relation,
                })
            }
            TEXT => Some(Self::Text),
            PIECE => {
                let (shortest, bits) = (reader.varint32()?, u32::from(reader.u8()?));
                (shortest <= 1 << 20 && bits <= 20).then_some(Self::Piece { shortest, bits })
            }
            _ => None,
        }
    }
}

/// Bits of a number below `count`.
pub(super) fn choice_bits(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

#[cold]
pub(super) fn damaged() -> Error {
    Error::corruption("a record's bits do not fit its template")
}
