//! Lengths, strings and doubles, the atoms of every body.

use drumlin_base::{Error, ErrorKind};

use crate::cursor::{Cursor, Parsed, Stop, bad};
use crate::value::Bytes;
use crate::{lzf, number};

/// A length, or the kind of a string that is stored in another way.
enum Length {
    Plain(u64),
    Special(u8),
}

fn length_or_special(input: &mut Cursor<'_>) -> Parsed<Length> {
    let first = input.byte()?;
    let low = first & 0x3f;
    Ok(match (first >> 6, first) {
        (0, _) => Length::Plain(u64::from(low)),
        (1, _) => Length::Plain(u64::from(low) << 8 | u64::from(input.byte()?)),
        (3, _) => Length::Special(low),
        (_, 0x80) => Length::Plain(u64::from(u32::from_be_bytes(input.array()?))),
        (_, 0x81) => Length::Plain(u64::from_be_bytes(input.array()?)),
        _ => return bad(format!("{first:#04x} begins no length")),
    })
}

/// A length.
pub(crate) fn length(input: &mut Cursor<'_>) -> Parsed<u64> {
    match length_or_special(input)? {
        Length::Plain(length) => Ok(length),
        Length::Special(kind) => bad(format!("a length is expected, not a string of kind {kind}")),
    }
}

/// A count of items that each take at least `bytes_each` bytes.
pub(crate) fn count(input: &mut Cursor<'_>, bytes_each: u64) -> Parsed<u64> {
    let count = length(input)?;
    input.expect_left(count.saturating_mul(bytes_each))?;
    Ok(count)
}

/// A string of at most `bytes_max` bytes, unpacked.
pub(crate) fn string(input: &mut Cursor<'_>, bytes_max: usize) -> Parsed<Bytes> {
    let integer = |number: i64| Ok(number.to_string().into_bytes());
    match length_or_special(input)? {
        Length::Plain(length) => {
            let length = bounded(length, bytes_max)?;
            Ok(input.take(length)?.to_vec())
        }
        Length::Special(0) => integer(i64::from(i8::from_le_bytes(input.array()?))),
        Length::Special(1) => integer(i64::from(i16::from_le_bytes(input.array()?))),
        Length::Special(2) => integer(i64::from(i32::from_le_bytes(input.array()?))),
        Length::Special(3) => {
            let packed = bounded(length(input)?, bytes_max)?;
            let whole = bounded(length(input)?, bytes_max)?;
            let packed = input.take(packed)?;
            Ok(lzf::decompress(packed, whole)?)
        }
        Length::Special(kind) => bad(format!("{kind} is no kind of string")),
    }
}

fn bounded(length: u64, bytes_max: usize) -> Parsed<usize> {
    match usize::try_from(length) {
        Ok(length) if length <= bytes_max => Ok(length),
        _ => Err(Stop::Bad(Error::new(
            ErrorKind::TooLarge,
            format!("a string of {length} bytes is longer than the {bytes_max} that are taken"),
        ))),
    }
}

/// A score as eight bytes.
pub(crate) fn binary_score(input: &mut Cursor<'_>) -> Parsed<f64> {
    real(f64::from_bits(input.u64_le()?))
}

/// A score as text, the way of files before version 8.
pub(crate) fn text_score(input: &mut Cursor<'_>) -> Parsed<f64> {
    match input.byte()? {
        255 => Ok(f64::NEG_INFINITY),
        254 => Ok(f64::INFINITY),
        253 => real(f64::NAN),
        len => {
            let text = input.take(usize::from(len))?;
            number::score(text).map_or_else(|| bad("a score is no number"), Ok)
        }
    }
}

fn real(score: f64) -> Parsed<f64> {
    if score.is_nan() {
        return bad("a score is not a number");
    }
    Ok(score)
}
