//! Strings.

use crate::events::EventClass;
use crate::failure::{Failure, Outcome};
use crate::keyspace::{Keyspace, Old};
use crate::number::LongDouble;
use crate::record::{Kind, NewRecord, Record};

/// The error of a string that would be too long.
pub const TOO_LONG: Failure =
    Failure::refused("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
const NOT_AN_INTEGER: Failure = Failure::refused("ERR value is not an integer or out of range");
const NOT_A_FLOAT: Failure = Failure::refused("ERR value is not a valid float");
const NO_SUM: Failure = Failure::refused("ERR increment would produce NaN or Infinity");
const OVERFLOW: Failure = Failure::refused("ERR increment or decrement would overflow");

/// The string at `key`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn get(keys: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Record>> {
    keys.lookup_as(key, Kind::String)
}

/// Makes `value` the value of `key`, whatever it had, and tells `set`.
///
/// # Errors
/// The keyspace's.
pub fn set(
    keys: &mut Keyspace<'_>,
    key: &[u8],
    value: &[u8],
    expire_ms: Option<u64>,
    old: Old<'_>,
) -> Outcome<()> {
    keys.put(key, old, NewRecord::string(value, expire_ms))?;
    keys.event(EventClass::String, "set", key);
    Ok(())
}

/// Adds `bytes` at the end; how long the string is then. Its expiry stays.
///
/// # Errors
/// `WrongType`; too long; the keyspace's.
pub fn append(
    keys: &mut Keyspace<'_>,
    key: &[u8],
    bytes: &[u8],
    bytes_max: usize,
) -> Outcome<usize> {
    let old = get(keys, key)?;
    let before = old.as_ref().map_or(&[][..], Record::payload);
    if before.len() + bytes.len() > bytes_max {
        return Err(TOO_LONG);
    }
    let len = before.len() + bytes.len();
    let value = [before, bytes].concat();
    let new = match &old {
        Some(old) => changed_in_place(Some(old), &value),
        None => NewRecord::string(&value, None),
    };
    keys.put(key, Old::Is(old.as_ref()), new)?;
    keys.event(EventClass::String, "append", key);
    Ok(len)
}

/// Writes `bytes` at `offset`, with zeros before it where the string is shorter; how long it is then.
///
/// # Errors
/// `WrongType`; too long; the keyspace's.
pub fn set_range(
    keys: &mut Keyspace<'_>,
    key: &[u8],
    offset: usize,
    bytes: &[u8],
    bytes_max: usize,
) -> Outcome<usize> {
    let old = get(keys, key)?;
    let before = old.as_ref().map_or(&[][..], Record::payload);
    if bytes.is_empty() {
        return Ok(before.len());
    }
    let end = offset.saturating_add(bytes.len());
    if end > bytes_max {
        return Err(TOO_LONG);
    }
    let mut value = before.to_vec();
    value.resize(before.len().max(end), 0);
    if let Some(range) = value.get_mut(offset..end) {
        range.copy_from_slice(bytes);
    }
    let len = value.len();
    let new = changed_in_place(old.as_ref(), &value);
    keys.put(key, Old::Is(old.as_ref()), new)?;
    keys.event(EventClass::String, "setrange", key);
    Ok(len)
}

/// Adds `by` to the integer at `key`, 0 if there is none; the sum. Its expiry stays.
///
/// # Errors
/// `WrongType`; no integer; an overflow; the keyspace's.
pub fn add(keys: &mut Keyspace<'_>, key: &[u8], by: i64) -> Outcome<i64> {
    let old = get(keys, key)?;
    let before = match &old {
        Some(record) => integer(record.payload()).ok_or(NOT_AN_INTEGER)?,
        None => 0,
    };
    let sum = before.checked_add(by).ok_or(OVERFLOW)?;
    let expire_ms = old.as_ref().and_then(Record::expire_ms);
    let new = NewRecord::string(sum.to_string().as_bytes(), expire_ms);
    keys.put(key, Old::Is(old.as_ref()), new)?;
    keys.event(EventClass::String, "incrby", key);
    Ok(sum)
}

/// Adds `by` to the number at `key`, 0 if there is none; the text of the sum. `by` is looked at after the value. Its expiry
/// stays. Tells `incrbyfloat`.
///
/// # Errors
/// `WrongType`; no number; a sum that is none; the keyspace's.
pub fn add_float(keys: &mut Keyspace<'_>, key: &[u8], by: &[u8]) -> Outcome<String> {
    let old = get(keys, key)?;
    let before = match &old {
        Some(record) => LongDouble::parse(record.payload()).ok_or(NOT_A_FLOAT)?,
        None => LongDouble::ZERO,
    };
    let by = LongDouble::parse(by).ok_or(NOT_A_FLOAT)?;
    let text = before.checked_add(by).ok_or(NO_SUM)?.text();
    let expire_ms = old.as_ref().and_then(Record::expire_ms);
    let is_integer = integer(text.as_bytes()).is_some();
    let extras = if is_integer { SUMMED } else { 0 };
    let mut new = NewRecord::new(Kind::String, None, expire_ms, extras);
    new.payload().extend_from_slice(text.as_bytes());
    keys.put(key, Old::Is(old.as_ref()), new)?;
    keys.event(EventClass::String, "incrbyfloat", key);
    Ok(text)
}

/// The integer that `text` is, as Redis writes them: no plus, no leading zero, no space.
pub fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

/// The part of `value` from `start` to `end`, both included and counted from the end if negative.
pub fn range(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = i64::try_from(value.len()).unwrap_or(i64::MAX);
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let from_end = |at: i64| if at < 0 { (len + at).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    if start > end || len == 0 {
        return &[];
    }
    value.get(start as usize..=end as usize).unwrap_or(&[])
}

/// The extra of a string that was changed in place: Redis keeps no such string in a short form.
const CHANGED: u8 = 1;
/// The extra of an integer that is a sum of numbers with fractions: Redis keeps it as a text.
const SUMMED: u8 = 2;

/// The string `value`, which `old` was changed to. Its expiry stays.
pub(super) fn changed_in_place(old: Option<&Record>, value: &[u8]) -> NewRecord {
    let expire_ms = old.and_then(Record::expire_ms);
    let mut new = NewRecord::new(Kind::String, None, expire_ms, CHANGED);
    new.payload().extend_from_slice(value);
    new
}

/// How `OBJECT ENCODING` calls the encoding of a string in Redis.
pub fn encoding(record: &Record) -> &'static str {
    let value = record.payload();
    match value.len() {
        _ if record.extras() & CHANGED != 0 => "raw",
        0..=20 if record.extras() & SUMMED == 0 && integer(value).is_some() => "int",
        0..=44 => "embstr",
        _ => "raw",
    }
}
