//! Text to documents.

use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

use super::{NAME_END, NESTING_MAX, VALUE_END, bson, frame, kind};

/// Appends to `out` the record that is spelled `text`, at most `bytes_max` bytes. Costs some ten nanoseconds a value.
///
/// # Errors
/// `Corruption` when `text` spells no record, or a longer one; `out` may then be longer than it was.
pub fn read(text: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Result<()> {
    let from = out.len();
    out.reserve(text.len().min(bytes_max));
    let mut parser = Parser {
        text: Reader::new(text),
        end: from.saturating_add(bytes_max),
        out,
    };
    let read = parser.record().filter(|()| parser.text.is_empty());
    read.ok_or_else(|| Error::corruption("text that spells no document"))
}

struct Parser<'t, 'o> {
    text: Reader<'t>,
    out: &'o mut Vec<u8>,
    /// `out` may come to this length.
    end: usize,
}

impl<'t> Parser<'t, '_> {
    fn record(&mut self) -> Option<()> {
        match self.text.u8()? {
            frame::WHOLE => self.document(kind::DOCUMENT_END, 0),
            frame::BEHIND_BYTE => {
                self.byte()?;
                self.document(kind::DOCUMENT_END, 0)
            }
            frame::WITHOUT_LENGTH => {
                self.byte()?;
                self.elements(kind::DOCUMENT_END, 0)
            }
            _ => None,
        }
    }

    /// A byte from its two digits.
    fn byte(&mut self) -> Option<()> {
        let digits = std::str::from_utf8(self.text.bytes(2)?).ok()?;
        self.put(&[u8::from_str_radix(digits, 16).ok()?])
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let room = self.end.saturating_sub(self.out.len());
        (bytes.len() <= room || drumlin_base::bug!("document-longer-than-asked")).then_some(())?;
        self.out.extend_from_slice(bytes);
        Some(())
    }

    fn document(&mut self, end: u8, depth: usize) -> Option<()> {
        let from = self.out.len();
        self.put(&[0; 4])?;
        self.elements(end, depth)?;
        let len = u32::try_from(self.out.len() - from).ok()?;
        let room = self.out.get_mut(from..from + 4)?;
        room.copy_from_slice(&len.to_le_bytes());
        Some(())
    }

    /// Elements up to `end`, and a zero.
    fn elements(&mut self, end: u8, depth: usize) -> Option<()> {
        (depth < NESTING_MAX).then_some(())?;
        for place in 0_usize.. {
            let text = self.text.rest();
            let kind = *text.first()?;
            if kind == end {
                self.text.u8()?;
                break;
            }
            let bson = bson_of(kind)?;
            if end == kind::ARRAY_END {
                self.text.u8()?;
                self.place(bson, place)?;
            } else {
                // The letter, the name and its zero, which are as in the record but for the letter.
                let len = 1 + text.iter().position(|&byte| byte == NAME_END)?;
                let at = self.out.len();
                let head = self.text.bytes(len)?;
                self.put(head)?;
                *self.out.get_mut(at)? = bson;
            }
            self.value(kind, depth)?;
        }
        self.put(&[0])
    }

    /// The head of an array's element.
    fn place(&mut self, bson: u8, place: usize) -> Option<()> {
        if let Ok(digit @ 0..=9) = u8::try_from(place) {
            return self.put(&[bson, b'0' + digit, 0]);
        }
        self.put(&[bson])?;
        self.put(place.to_string().as_bytes())?;
        self.put(&[0])
    }

    /// The bytes of a value.
    #[inline]
    fn bytes(&mut self) -> Option<&'t [u8]> {
        let text = self.text.rest();
        let len = text.iter().position(|&byte| byte == VALUE_END)?;
        self.counted(len)
    }

    #[inline]
    fn number<N: TryFrom<i64>>(&mut self) -> Option<N> {
        let text = self.text.rest();
        let (number, len) = integer(text)?;
        self.counted(len)?;
        N::try_from(number).ok()
    }

    fn hexadecimal(&mut self) -> Option<u64> {
        let digits = std::str::from_utf8(self.bytes()?).ok()?;
        u64::from_str_radix(digits, 16).ok()
    }

    /// So many bytes, and the end of a value.
    fn counted(&mut self, len: usize) -> Option<&'t [u8]> {
        let bytes = self.text.bytes(len)?;
        (self.text.u8()? == VALUE_END).then_some(bytes)
    }

    /// A string of so many bytes, and the end of the value.
    fn string(&mut self, len: usize) -> Option<()> {
        let bytes = u32::try_from(len).ok()?.checked_add(1)?;
        let with_end = self.text.bytes(len.checked_add(1)?)?;
        self.put(&bytes.to_le_bytes())?;
        self.put(with_end)?;
        let last = self.out.last_mut()?;
        (std::mem::replace(last, 0) == VALUE_END).then_some(())
    }

    fn value(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            kind::DECIMAL => {
                let double = double(self.bytes()?)?;
                self.put(&double.to_le_bytes())
            }
            kind::BITS => {
                let bits = self.hexadecimal()?;
                self.put(&bits.to_le_bytes())
            }
            kind::STRING => {
                let len = self
                    .text
                    .rest()
                    .iter()
                    .position(|&byte| byte == VALUE_END)?;
                self.string(len)
            }
            kind::COUNTED => {
                let len = self.number()?;
                self.string(len)
            }
            kind::DOCUMENT => self.document(kind::DOCUMENT_END, depth + 1),
            kind::ARRAY => self.document(kind::ARRAY_END, depth + 1),
            kind::BINARY => {
                let (subtype, len): (u8, u32) = (self.number()?, self.number()?);
                let bytes = self.counted(len as usize)?;
                self.put(&len.to_le_bytes())?;
                self.put(&[subtype])?;
                self.put(bytes)
            }
            kind::OBJECT_ID => {
                let seconds: u32 = self.number()?;
                let [0, 0, 0, process @ ..] = self.hexadecimal()?.to_be_bytes() else {
                    return None;
                };
                let [0, counter @ ..] = self.number::<u32>()?.to_be_bytes() else {
                    return None;
                };
                self.put(&seconds.to_be_bytes())?;
                self.put(&process)?;
                self.put(&counter)
            }
            kind::BOOL => {
                let bool: u8 = self.number()?;
                (bool <= 1).then_some(())?;
                self.put(&[bool])
            }
            kind::DATE => {
                let (seconds, rest) = (self.number()?, self.number()?);
                self.put(&millis(seconds, rest)?.to_le_bytes())
            }
            kind::NULL => Some(()),
            kind::INT32 => {
                let number: i32 = self.number()?;
                self.put(&number.to_le_bytes())
            }
            kind::INT64 => {
                let number: i64 = self.number()?;
                self.put(&number.to_le_bytes())
            }
            kind::TIMESTAMP => {
                let (seconds, increment): (u32, u32) = (self.number()?, self.number()?);
                self.put(&increment.to_le_bytes())?;
                self.put(&seconds.to_le_bytes())
            }
            _ => None,
        }
    }
}

/// The integer at the front of `text`, and the number of its bytes.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<(i64, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut len = usize::from(negative);
    let mut magnitude = 0_u64;
    while let Some(&digit @ b'0'..=b'9') = text.get(len) {
        magnitude = magnitude
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        len += 1;
    }
    let number = match negative {
        true => 0_i64.checked_sub_unsigned(magnitude)?,
        false => i64::try_from(magnitude).ok()?,
    };
    (len > usize::from(negative)).then_some((number, len))
}

/// A date in milliseconds, from its seconds and what is left of one.
pub(crate) fn millis(seconds: i64, rest: i64) -> Option<i64> {
    (0..1000).contains(&rest).then_some(())?;
    seconds.checked_mul(1000)?.checked_add(rest)
}

/// A double from its decimal digits.
pub(crate) fn double(digits: &[u8]) -> Option<f64> {
    let is_decimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-');
    let parsed = || std::str::from_utf8(digits).ok()?.parse().ok();
    short_double(digits).or_else(|| digits.iter().all(is_decimal).then(parsed)?)
}

/// A double of few digits with a point: a quotient of two numbers that doubles have exactly is rounded once, as it must be (W. D.
/// Clinger, *How to Read Floating Point Numbers Accurately*, 1990).
#[inline]
fn short_double(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, text),
    };
    (2..=EXACT_DIGITS + 1)
        .contains(&digits.len())
        .then_some(())?;
    let (mut number, mut behind) = (0_u64, None);
    for (at, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if behind.is_none() => behind = Some(digits.len() - at - 1),
            _ => return None,
        }
    }
    let quotient = number as f64 / POWERS_OF_TEN.get(behind?)?;
    Some(if negative { -quotient } else { quotient })
}

/// Digits of a number that is below 2^53.
const EXACT_DIGITS: usize = 15;
const POWERS_OF_TEN: [f64; EXACT_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// BSON's type of what is spelled so.
pub(crate) fn bson_of(kind: u8) -> Option<u8> {
    Some(match kind {
        kind::DECIMAL | kind::BITS => bson::DOUBLE,
        kind::STRING | kind::COUNTED => bson::STRING,
        kind::DOCUMENT => bson::DOCUMENT,
        kind::ARRAY => bson::ARRAY,
        kind::BINARY => bson::BINARY,
        kind::OBJECT_ID => bson::OBJECT_ID,
        kind::BOOL => bson::BOOL,
        kind::DATE => bson::DATE,
        kind::NULL => bson::NULL,
        kind::INT32 => bson::INT32,
        kind::INT64 => bson::INT64,
        kind::TIMESTAMP => bson::TIMESTAMP,
        _ => return None,
    })
}
