//! Templates of documents' texts, taken apart: what stands in the document in place of its text.
//!
//! A document can be had from its text ([`crate::documents::read`]), which takes longer than to decode the text. But what is literal in all
//! texts of a template is so in the documents, and a number needs no digits in between. So the text of a template, its columns left open,
//! is read once, and gives the [`Piece`]s of which every document of it is made. Where the grammar needs more than that (a column that is part
//! of a number, for example) there are none, and documents are read from texts.

use drumlin_base::Result;

use super::column::{Column, damaged};
use super::number::{SPELLING_BYTES_MAX, Style};
use crate::documents::{NAME_END, VALUE_END, bson_of, double, frame, integer, kind, millis};

/// Pieces of a document, and bytes of them, at most: more than any that was learned, and no more than a hostile model shall have.
const PIECES_MAX: usize = 1 << 10;
const PIECES_BYTES_MAX: usize = 1 << 20;
/// Documents, arrays and strings of unknown length in one another, at most.
pub(super) const OPEN_MAX: usize = 8;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The same in all documents.
    Bytes(Vec<u8>),
    /// The number of a column, in binary.
    Number { column: usize, written: Written },
    /// One of these, by the choice of a column.
    Choice { column: usize, values: Vec<Vec<u8>> },
    /// The field of a column as it is.
    Field { column: usize },
    /// A length in four bytes, of what follows up to its [`Piece::Close`].
    Open,
    /// A zero, and the end of what is counted: with the length itself, or without.
    Close { counts_itself: bool },
}

/// How a number stands in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Bool,
    Int32,
    Int64,
    /// A double of so many units behind its point.
    Double(u8),
    /// A date: it is the seconds, and these are the milliseconds.
    Seconds(i64),
    /// Not at all: the seconds of the date that comes next.
    Later,
    /// A date: it is the milliseconds, and the seconds are the number of this column.
    MillisOf(usize),
    /// The first four bytes of an ObjectId, and the last three.
    ObjectTime,
    ObjectCounter,
}

impl Written {
    /// Writes `number` at the front of `room`, and returns the number of bytes. `numbers` are those of the columns up to it.
    ///
    /// # Errors
    /// `Corruption` when there is no such value.
    #[inline]
    pub(super) fn write(
        self,
        number: i64,
        numbers: &[i64],
        room: &mut [u8; SPELLING_BYTES_MAX],
    ) -> Result<usize> {
        let mut put = |bytes: &[u8]| {
            let place = room.get_mut(..bytes.len()).expect("eight bytes at most");
            place.copy_from_slice(bytes);
            Ok(bytes.len())
        };
        let millis = |seconds, rest| millis(seconds, rest).ok_or_else(damaged);
        match self {
            Self::Bool if !(0..=1).contains(&number) => Err(damaged()),
            Self::Bool => put(&[number as u8]),
            Self::Int32 => put(&i32::try_from(number).map_err(|_| damaged())?.to_le_bytes()),
            Self::Int64 => put(&number.to_le_bytes()),
            Self::Double(digits) => {
                let double = match POWERS_OF_TEN.get(usize::from(digits)) {
                    // Both are exact, so the quotient is rounded once.
                    Some(power) if number.unsigned_abs() < 1 << 53 => number as f64 / power,
                    _ => spelled_double(number, digits)?,
                };
                put(&double.to_le_bytes())
            }
            Self::Seconds(rest) => put(&millis(number, rest)?.to_le_bytes()),
            Self::Later => put(&[]),
            Self::MillisOf(column) => {
                let seconds = numbers.get(column).copied().unwrap_or(0);
                put(&millis(seconds, number)?.to_le_bytes())
            }
            Self::ObjectTime => put(&u32::try_from(number).map_err(|_| damaged())?.to_be_bytes()),
            Self::ObjectCounter if number >> 24 != 0 => Err(damaged()),
            Self::ObjectCounter => {
                let [_, _, _, _, _, bytes @ ..] = number.to_be_bytes();
                put(&bytes)
            }
        }
    }
}

const POWERS_OF_TEN: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

#[cold]
fn spelled_double(number: i64, digits: u8) -> Result<f64> {
    let mut room = [0; SPELLING_BYTES_MAX];
    let len = Style::Decimal(digits).render(number, &mut room)?;
    room.get(..len).and_then(double).ok_or_else(damaged)
}

/// The pieces of the documents whose texts have this template; none when they cannot be told so.
pub(super) fn pieces(literals: &[Vec<u8>], columns: &[Column]) -> Option<Vec<Piece>> {
    let mut parser = Parser {
        literals,
        columns,
        next: 0,
        at: 0,
        pieces: Vec::new(),
        bytes: 0,
    };
    parser.record()?;
    let is_read = parser.next == columns.len() && parser.literal()?.is_empty();
    is_read.then_some(parser.pieces)
}

/// A part of a value.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Column(usize),
}

struct Parser<'t> {
    literals: &'t [Vec<u8>],
    columns: &'t [Column],
    /// The literal that is being read, and the next byte of it.
    next: usize,
    at: usize,
    pieces: Vec<Piece>,
    /// Bytes in all pieces.
    bytes: usize,
}

impl Parser<'_> {
    /// The rest of the literal.
    fn literal(&self) -> Option<&[u8]> {
        self.literals.get(self.next)?.get(self.at..)
    }

    /// The next byte, which has to be literal.
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.literal()?.first()?;
        self.at += 1;
        Some(byte)
    }

    /// The parts of a value, whose end is passed.
    fn value(&mut self) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        loop {
            let literal = self.literal()?;
            let end = literal.iter().position(|&byte| byte == VALUE_END);
            let bytes = literal.get(..end.unwrap_or(literal.len()))?.to_vec();
            self.at += bytes.len();
            if !bytes.is_empty() {
                parts.push(Part::Bytes(bytes));
            }
            if end.is_some() {
                self.at += 1;
                return Some(parts);
            }
            (self.next < self.columns.len()).then_some(())?;
            parts.push(Part::Column(self.next));
            (self.next, self.at) = (self.next + 1, 0);
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes += bytes.len();
        (self.bytes <= PIECES_BYTES_MAX).then_some(())?;
        if let Some(Piece::Bytes(before)) = self.pieces.last_mut() {
            before.extend_from_slice(bytes);
            return Some(());
        }
        self.push(Piece::Bytes(bytes.to_vec()))
    }

    fn push(&mut self, piece: Piece) -> Option<()> {
        self.pieces.push(piece);
        (self.pieces.len() <= PIECES_MAX).then_some(())
    }

    fn record(&mut self) -> Option<()> {
        let frame = self.byte()?;
        if frame != frame::WHOLE {
            let digits = [self.byte()?, self.byte()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            self.put(&[u8::from_str_radix(digits, 16).ok()?])?;
        }
        match frame {
            frame::WHOLE | frame::BEHIND_BYTE => self.document(kind::DOCUMENT_END, 0),
            frame::WITHOUT_LENGTH => {
                self.elements(kind::DOCUMENT_END, 0)?;
                self.put(&[0])
            }
            _ => None,
        }
    }

    fn document(&mut self, end: u8, depth: usize) -> Option<()> {
        // One more is a string's.
        (depth + 1 < OPEN_MAX).then_some(())?;
        self.push(Piece::Open)?;
        self.elements(end, depth + 1)?;
        self.push(Piece::Close {
            counts_itself: true,
        })?;
        Some(())
    }

    fn elements(&mut self, end: u8, depth: usize) -> Option<()> {
        for place in 0_usize.. {
            let kind = self.byte()?;
            if kind == end {
                break;
            }
            self.put(&[bson_of(kind)?])?;
            if end == kind::ARRAY_END {
                self.put(place.to_string().as_bytes())?;
                self.put(&[0])?;
            } else {
                loop {
                    let byte = self.byte()?;
                    self.put(&[byte])?;
                    if byte == NAME_END {
                        break;
                    }
                }
            }
            self.element(kind, depth)?;
        }
        Some(())
    }

    fn element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            kind::DOCUMENT => self.document(kind::DOCUMENT_END, depth),
            kind::ARRAY => self.document(kind::ARRAY_END, depth),
            kind::NULL => Some(()),
            kind::BOOL => self.number(Written::Bool),
            kind::INT32 => self.number(Written::Int32),
            kind::INT64 => self.number(Written::Int64),
            kind::STRING => self.string(),
            kind::DATE => self.date(),
            kind::DECIMAL => self.double(),
            kind::OBJECT_ID => {
                self.number(Written::ObjectTime)?;
                let process = |digits: &[u8]| {
                    let process =
                        u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                    let [0, 0, 0, bytes @ ..] = process.to_be_bytes() else {
                        return None;
                    };
                    Some(bytes.to_vec())
                };
                let parts = self.value()?;
                self.chosen(&parts, process)?;
                self.number(Written::ObjectCounter)
            }
            _ => None,
        }
    }

    /// A value that is the same in all documents, or one of a few, each in the bytes that `to_bytes` gives.
    fn chosen(
        &mut self,
        parts: &[Part],
        to_bytes: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Option<()> {
        match parts {
            [Part::Bytes(value)] => {
                let bytes = to_bytes(value)?;
                self.put(&bytes)?;
            }
            &[Part::Column(column)] => {
                let Column::Choice { values } = self.columns.get(column)? else {
                    return None;
                };
                let values: Option<Vec<Vec<u8>>> =
                    values.iter().map(|value| to_bytes(value)).collect();
                let values = values?;
                self.bytes += values.iter().map(Vec::len).sum::<usize>();
                self.push(Piece::Choice { column, values })?;
            }
            _ => return None,
        }
        Some(())
    }

    /// The style of the numbers of a value that is one column.
    fn style(&self, parts: &[Part]) -> Option<(usize, Style)> {
        let &[Part::Column(column)] = parts else {
            return None;
        };
        match self.columns.get(column)? {
            Column::Number { style, .. } => Some((column, *style)),
            _ => None,
        }
    }

    fn number(&mut self, written: Written) -> Option<()> {
        let parts = self.value()?;
        if let Some((column, style)) = self.style(&parts) {
            self.push(Piece::Number { column, written })?;
            return (style == Style::Integer).then_some(());
        }
        self.chosen(&parts, |digits| in_bytes(digits, written))
    }

    fn double(&mut self) -> Option<()> {
        let parts = self.value()?;
        if let Some((column, style)) = self.style(&parts) {
            let Style::Decimal(digits) = style else {
                return None;
            };
            let written = Written::Double(digits);
            self.push(Piece::Number { column, written })?;
            return Some(());
        }
        self.chosen(&parts, |digits| {
            Some(double(digits)?.to_le_bytes().to_vec())
        })
    }

    fn date(&mut self) -> Option<()> {
        let (seconds, millis) = (self.value()?, self.value()?);
        if let [Part::Bytes(millis)] = millis.as_slice() {
            let (rest, _) = whole_integer(millis)?;
            (0..1000).contains(&rest).then_some(())?;
            let written = Written::Seconds(rest);
            return match self.style(&seconds) {
                Some((column, Style::Integer)) => {
                    self.push(Piece::Number { column, written })?;
                    Some(())
                }
                Some(_) => None,
                None => self.chosen(&seconds, |digits| in_bytes(digits, written)),
            };
        }
        let (first, Style::Integer) = self.style(&seconds)? else {
            return None;
        };
        let (column, Style::Integer) = self.style(&millis)? else {
            return None;
        };
        self.push(Piece::Number {
            column: first,
            written: Written::Later,
        })?;
        self.push(Piece::Number {
            column,
            written: Written::MillisOf(first),
        })?;
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let parts = self.value()?;
        let counted = |string: &[u8]| {
            let len = u32::try_from(string.len()).ok()?.checked_add(1)?;
            let is_one = !string.contains(&VALUE_END);
            is_one.then(|| [&len.to_le_bytes(), string, &[0]].concat())
        };
        if parts.is_empty() {
            self.put(&counted(b"")?)?;
            return Some(());
        }
        let is_text = |part: &Part| match part {
            Part::Bytes(_) => false,
            Part::Column(column) => {
                !matches!(self.columns.get(*column), Some(Column::Choice { .. }))
            }
        };
        if parts.len() == 1 && !parts.iter().any(is_text) {
            return self.chosen(&parts, counted);
        }
        self.push(Piece::Open)?;
        for part in parts {
            match part {
                Part::Bytes(bytes) => self.put(&bytes)?,
                Part::Column(column) => self.push(Piece::Field { column })?,
            }
        }
        self.push(Piece::Close {
            counts_itself: false,
        })?;
        Some(())
    }
}

/// The integer that `digits` are, and no more.
fn whole_integer(digits: &[u8]) -> Option<(i64, usize)> {
    integer(digits).filter(|(_, len)| *len == digits.len())
}

/// The integer that `digits` are as it is written.
fn in_bytes(digits: &[u8], written: Written) -> Option<Vec<u8>> {
    let mut room = [0; SPELLING_BYTES_MAX];
    let (number, _) = whole_integer(digits)?;
    let len = written.write(number, &[], &mut room).ok()?;
    room.get(..len).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_makes_few_pieces_or_none() {
        let text = |arrays: usize| [b"a[x\0".as_slice(), &b"[]".repeat(arrays), b"]}"].concat();
        let few = pieces(&[text(10)], &[]).expect("a document of empty arrays");
        assert!(few.len() < 60);
        assert_eq!(pieces(&[text(1 << 20)], &[]), None);
        let nulls = [b"a[x\0".as_slice(), &b"n".repeat(1 << 20), b"]}"].concat();
        assert_eq!(pieces(&[nulls], &[]), None);
        let name = [b"an".as_slice(), &b"x".repeat(2 << 20), b"\0}"].concat();
        assert_eq!(pieces(&[name], &[]), None);
    }
}
