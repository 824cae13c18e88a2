//! Values as keys: their bytes sort as [`crate::compare`] orders the values. `docs/format/mongo.md` has the bytes.
//!
//! A key is a class byte and what tells values of the class apart, and no key begins another one, so that keys may follow
//! each other. A descending field has all bytes inverted. Class bytes are from 10 to 245, inverted or not: 0xFF is behind
//! all keys, and 0x00 before them.

use crate::compare::{class, pointer_parts, regex_parts, scope_parts, unsigned};
use crate::decimal::{Decimal, Digits};
use crate::number::Number;
use crate::raw::{Document, Kind, OwnedValue, Value};

/// Behind every key, and behind whatever follows one.
pub const BEHIND: u8 = 0xFF;

/// The class byte of a cell in an index of places, on disk (`docs/format/mongo.md`): behind it is the cell's number. No value has it.
pub const PLACE: u8 = 200;

/// Class bytes, which are on disk (`docs/format/mongo.md`).
mod classes {
    pub(super) const NAN: u8 = 29;
    pub(super) const NEGATIVE_LARGE: u8 = 30;
    pub(super) const ZERO: u8 = 39;
    pub(super) const POSITIVE_LARGE: u8 = 48;
    pub(super) const FALSE: u8 = 110;
    pub(super) const TRUE: u8 = 111;
}

/// The lowest and the highest class byte of a class of values.
fn class_bytes(class: u8) -> (u8, u8) {
    match class {
        1 => (10, 10),
        2 => (15, 15),
        3 => (20, 20),
        4 => (classes::NAN, classes::POSITIVE_LARGE),
        5 => (60, 60),
        6 => (70, 70),
        7 => (80, 80),
        8 => (90, 90),
        9 => (100, 100),
        10 => (classes::FALSE, classes::TRUE),
        11 => (120, 120),
        12 => (130, 130),
        13 => (140, 140),
        14 => (150, 150),
        15 => (160, 160),
        16 => (170, 170),
        _ => (240, 240),
    }
}

/// A byte that no key of the class of `kind` begins below, and one that all of them begin below.
pub fn class_bounds(kind: Kind) -> (u8, u8) {
    let (low, high) = class_bytes(class(kind));
    (low, high + 1)
}

/// Appends the key of `value`. Recurses as deep as it is nested.
pub fn append(out: &mut Vec<u8>, value: Value<'_>) {
    if value.kind.is_number() {
        return Number::of(value).map_or((), |number| append_number(out, number));
    }
    if value.kind == Kind::Bool {
        let is_true = value.as_bool() == Some(true);
        return out.push(if is_true {
            classes::TRUE
        } else {
            classes::FALSE
        });
    }
    out.push(class_bytes(class(value.kind)).0);
    match value.kind {
        Kind::String | Kind::Symbol | Kind::Code => {
            append_text(out, value.text().unwrap_or_default());
        }
        Kind::Document => append_document(out, Document(value.bytes)),
        Kind::Array => {
            Document(value.bytes)
                .iter()
                .for_each(|element| append(out, element.value));
            out.push(0);
        }
        Kind::Binary => {
            let data = value.bytes.get(4..).unwrap_or_default();
            let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(data);
        }
        Kind::ObjectId => out.extend_from_slice(value.bytes),
        Kind::Date => {
            let ms = value.fixed_i64().unwrap_or_default();
            out.extend_from_slice(&flipped(ms).to_be_bytes());
        }
        Kind::Timestamp => out.extend_from_slice(&unsigned(value).to_be_bytes()),
        Kind::Regex => {
            let (pattern, options) = regex_parts(value.bytes);
            append_text(out, pattern);
            append_text(out, options);
        }
        Kind::DbPointer => {
            let (name, id) = pointer_parts(value);
            append_text(out, name);
            out.extend_from_slice(id);
        }
        Kind::CodeWithScope => {
            let (text, scope) = scope_parts(value.bytes);
            append_text(out, text);
            append_document(out, scope);
        }
        _ => {}
    }
}

/// Appends the key of `value` in a field that is sorted downwards.
pub fn append_descending(out: &mut Vec<u8>, value: Value<'_>) {
    let from = out.len();
    append(out, value);
    out.iter_mut().skip(from).for_each(|byte| *byte = !*byte);
}

/// The key of `value`.
pub fn key_of(value: Value<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(value.bytes.len() + 2);
    append(&mut key, value);
    key
}

fn flipped(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

/// 00 becomes 01 01, 01 becomes 01 02, and 00 ends it: so no text begins another.
fn append_text(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            0 | 1 if !drumlin_base::bug!("doc-key-text-unescaped") => out.extend([1, byte + 1]),
            _ => out.push(*byte),
        }
    }
    out.push(0);
}

fn append_document(out: &mut Vec<u8>, document: Document<'_>) {
    for element in document {
        // The class alone goes before the name, so that numbers of any size sort by name first.
        out.push(class_bytes(class(element.value.kind)).0);
        append_text(out, element.name);
        append(out, element.value);
    }
    out.push(0);
}

/// The magnitude of a number: its whole part below 2^63 and its fraction, or else the largest double that is not above it;
/// and all digits where a double does not say all.
enum Magnitude {
    Whole(u64),
    Mixed(u64, f64, Option<Digits>),
    Large(f64, Option<Digits>),
}

fn append_number(out: &mut Vec<u8>, number: Number<'_>) {
    let Some((is_negative, magnitude)) = split(number) else {
        return out.push(classes::NAN);
    };
    let from = out.len();
    let whole = |out: &mut Vec<u8>, whole: u64, has_fraction: bool| {
        let shifted = (whole << 1) | u64::from(has_fraction);
        let skipped = (shifted.leading_zeros() / 8).min(7);
        out.push(classes::ZERO + 8 - u8::try_from(skipped).unwrap_or(7));
        let bytes = shifted.to_be_bytes();
        out.extend_from_slice(bytes.get(skipped as usize..).unwrap_or_default());
    };
    match magnitude {
        Magnitude::Whole(0) => return out.push(classes::ZERO),
        Magnitude::Whole(number) => whole(out, number, false),
        Magnitude::Mixed(number, fraction, rest) => {
            whole(out, number, true);
            append_double(out, fraction, rest);
        }
        Magnitude::Large(double, rest) => {
            out.push(classes::POSITIVE_LARGE);
            append_double(out, double, rest);
        }
    }
    if is_negative {
        out.iter_mut().skip(from).for_each(|byte| *byte = !*byte);
        if let Some(class) = out.get_mut(from) {
            *class = 2 * classes::ZERO - !*class;
        }
    }
}

/// A double that is not negative, then 0, or 1 and all digits.
fn append_double(out: &mut Vec<u8>, double: f64, rest: Option<Digits>) {
    out.extend_from_slice(&double.to_bits().to_be_bytes());
    let Some(digits) = rest else {
        return out.push(0);
    };
    out.push(1);
    let exponent = u16::try_from(digits.exponent + 0x8000).unwrap_or(0);
    out.extend_from_slice(&exponent.to_be_bytes());
    for pair in digits.digits.chunks(2) {
        let [first, second] = [0, 1].map(|at| pair.get(at).copied().unwrap_or(0));
        out.push(first * 10 + second + 1);
    }
    out.push(0);
}

fn split(number: Number<'_>) -> Option<(bool, Magnitude)> {
    match number {
        Number::Int(int) => Some((int < 0, whole_magnitude(int.unsigned_abs()))),
        Number::Double(double) if double.is_nan() => None,
        Number::Double(double) => {
            let magnitude = double.abs();
            let split = match magnitude >= 9_223_372_036_854_775_808.0 {
                true => Magnitude::Large(magnitude, None),
                false => {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "it is between 0 and 2^63"
                    )]
                    let whole = magnitude.trunc() as u64;
                    match magnitude - magnitude.trunc() {
                        0.0 => Magnitude::Whole(whole),
                        fraction => Magnitude::Mixed(whole, fraction, None),
                    }
                }
            };
            Some((double < 0.0, split))
        }
        Number::Decimal(_) => match number.decimal() {
            Decimal::NaN => None,
            Decimal::Infinite { is_negative } => {
                Some((is_negative, Magnitude::Large(f64::INFINITY, None)))
            }
            Decimal::Finite(digits) => {
                let is_negative = digits.is_negative;
                let digits = Digits {
                    is_negative: false,
                    ..digits
                };
                Some((is_negative, decimal_magnitude(digits)))
            }
        },
    }
}

fn whole_magnitude(number: u64) -> Magnitude {
    match number >> 63 {
        0 => Magnitude::Whole(number),
        // 2^63, the only one there is.
        _ => Magnitude::Large(9_223_372_036_854_775_808.0, None),
    }
}

fn decimal_magnitude(digits: Digits) -> Magnitude {
    let beyond = |double: f64, digits: Digits| {
        let is_all = Digits::of_f64(double) == digits;
        (!is_all).then_some(digits)
    };
    match digits.whole() {
        None => {
            let double = digits.floor_f64();
            Magnitude::Large(double, beyond(double, digits))
        }
        Some((whole, false)) => Magnitude::Whole(whole),
        Some((whole, true)) => {
            let fraction = digits.fraction();
            let double = fraction.floor_f64();
            Magnitude::Mixed(whole, double, beyond(double, fraction))
        }
    }
}

/// Whether [`decode`] gives `value` back from its key, byte by byte.
pub fn is_reversible(value: Value<'_>) -> bool {
    match value.kind {
        Kind::Int32
        | Kind::Int64
        | Kind::String
        | Kind::ObjectId
        | Kind::Date
        | Kind::Binary
        | Kind::Bool => true,
        Kind::Double => value
            .double()
            .is_some_and(|double| !(double.is_nan() || double == 0.0 && double.is_sign_negative())),
        _ => false,
    }
}

/// The value of type `kind` whose key is all of `key`; `None` for bytes that are no such key.
pub fn decode(kind: Kind, key: &[u8]) -> Option<OwnedValue> {
    let (class, rest) = key.split_first()?;
    let bytes = match kind {
        Kind::Int32 => {
            let number = decode_int(*class, rest)?;
            i32::try_from(number).ok()?.to_le_bytes().to_vec()
        }
        Kind::Int64 => decode_int(*class, rest)?.to_le_bytes().to_vec(),
        Kind::Double => decode_double(*class, rest)?.to_le_bytes().to_vec(),
        Kind::Bool => vec![u8::from(*class == classes::TRUE)],
        Kind::ObjectId => rest.first_chunk::<12>()?.to_vec(),
        Kind::Date => {
            let ms = u64::from_be_bytes(*rest.first_chunk::<8>()?) ^ (1 << 63);
            ms.to_le_bytes().to_vec()
        }
        Kind::Binary => {
            let (len, data) = rest.split_first_chunk::<4>()?;
            let len = u32::from_be_bytes(*len).checked_sub(1)?;
            [len.to_le_bytes().as_slice(), data].concat()
        }
        Kind::String => decode_text(rest)?,
        _ => return None,
    };
    let value = OwnedValue { kind, bytes };
    (key_of(value.get()) == key).then_some(value)
}

/// A string with length and terminator.
fn decode_text(rest: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4];
    let mut rest = rest.iter();
    loop {
        match rest.next()? {
            0 => break,
            1 => bytes.push(rest.next()?.checked_sub(1)?),
            other => bytes.push(*other),
        }
    }
    bytes.push(0);
    let len = u32::try_from(bytes.len() - 4).ok()?;
    bytes.get_mut(..4)?.copy_from_slice(&len.to_le_bytes());
    std::str::from_utf8(bytes.get(4..)?).ok()?;
    Some(bytes)
}

/// The sign, and the class and bytes of the magnitude.
fn unsigned_parts(class: u8, rest: &[u8]) -> (bool, u8, Vec<u8>) {
    match class < classes::ZERO {
        true => (
            true,
            2 * classes::ZERO - class,
            rest.iter().map(|byte| !*byte).collect(),
        ),
        false => (false, class, rest.to_vec()),
    }
}

/// The whole part, whether a fraction follows, and what follows.
fn whole_part(class: u8, bytes: &[u8]) -> Option<(u64, bool, &[u8])> {
    let len = usize::from(class.checked_sub(classes::ZERO)?);
    let (whole, rest) = bytes.split_at_checked(len)?;
    let shifted = whole
        .iter()
        .fold(0u64, |sum, byte| (sum << 8) | u64::from(*byte));
    Some((shifted >> 1, shifted & 1 == 1, rest))
}

fn decode_int(class: u8, rest: &[u8]) -> Option<i64> {
    if class == classes::NEGATIVE_LARGE {
        return Some(i64::MIN);
    }
    let (is_negative, class, bytes) = unsigned_parts(class, rest);
    let (whole, _, _) = whole_part(class, &bytes)?;
    let whole = i64::try_from(whole).ok()?;
    Some(if is_negative { -whole } else { whole })
}

fn decode_double(class: u8, rest: &[u8]) -> Option<f64> {
    let (is_negative, class, bytes) = unsigned_parts(class, rest);
    let double = |bytes: &[u8]| {
        Some(f64::from_bits(u64::from_be_bytes(
            *bytes.first_chunk::<8>()?,
        )))
    };
    let magnitude = match class {
        classes::POSITIVE_LARGE => double(&bytes)?,
        _ => {
            let (whole, has_fraction, rest) = whole_part(class, &bytes)?;
            #[expect(
                clippy::cast_precision_loss,
                reason = "doubles have 53 bits, as has the key of one"
            )]
            let whole = whole as f64;
            whole + if has_fraction { double(rest)? } else { 0.0 }
        }
    };
    Some(if is_negative { -magnitude } else { magnitude })
}
