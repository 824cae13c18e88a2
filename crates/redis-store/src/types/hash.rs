//! Hashes. [`super::elements`] has their forms.

use drumlin_base::rng::Rng;

pub use super::elements::{Draw, FieldValue, Pair};
use super::elements::{Element, Elements};
use super::string::integer;
use crate::events::EventClass;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Keyspace;
use crate::number::LongDouble;
use crate::record::{Kind, Record};

/// Redis has a `hashtable`, and not a `listpack`, beyond so many fields or with a longer field or value.
const LISTPACK_FIELDS_MAX: u64 = 512;
const LISTPACK_ELEMENT_BYTES_MAX: usize = 64;
/// Extras: it has been a `hashtable`.
const HASHTABLE: u8 = 1;

pub(super) fn open(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Elements>> {
    Elements::open(keyspace, key, Kind::Hash)
}

pub(super) fn open_or_new(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Elements> {
    Elements::open_or_new(keyspace, key, Kind::Hash)
}

/// The value of a field.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn get(keyspace: &Keyspace<'_>, key: &[u8], field: &[u8]) -> Outcome<Option<FieldValue>> {
    match open(keyspace, key)? {
        Some(elements) => elements.get(keyspace, field),
        None => Ok(None),
    }
}

/// The value of each field.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn get_many<'f>(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    fields: impl IntoIterator<Item = &'f [u8]>,
) -> Outcome<Vec<Option<FieldValue>>> {
    let elements = open(keyspace, key)?;
    let value = |field| match &elements {
        Some(elements) => elements.get(keyspace, field),
        None => Ok(None),
    };
    fields.into_iter().map(value).collect()
}

/// How many fields there are. Costs a step for each one of a large hash that has expired and is not deleted yet.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn len(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<u64> {
    match open(keyspace, key)? {
        Some(elements) => elements.live_len(keyspace),
        None => Ok(0),
    }
}

/// Calls `take` with each field and its value.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn each(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    mut take: impl FnMut(&[u8], &[u8]),
) -> Outcome<()> {
    match open(keyspace, key)? {
        Some(elements) => elements.each(keyspace, |field, value| {
            take(field, value);
            Ok(true)
        }),
        None => Ok(()),
    }
}

/// A step of a scan: about `count` fields from `cursor` on, and the next cursor, 0 at the end. A field that is there all the
/// time is told.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn scan(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    cursor: u64,
    count: u64,
) -> Outcome<(u64, Vec<Pair>)> {
    match open(keyspace, key)? {
        Some(elements) => elements.scan(keyspace, cursor, count),
        None => Ok((0, Vec::new())),
    }
}

/// Fields at random, one by one; `None` where there is no key.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn draw(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Draw>> {
    let elements = open(keyspace, key)?;
    elements
        .map(|elements| Draw::new(keyspace, elements))
        .transpose()
}

/// Up to `count` different fields at random.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn sample(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    count: u64,
    rng: &mut Rng,
) -> Outcome<Vec<Pair>> {
    match open(keyspace, key)? {
        Some(elements) => elements.sample(keyspace, count, rng),
        None => Ok(Vec::new()),
    }
}

/// What `OBJECT ENCODING` says.
pub fn encoding(record: &Record) -> &'static str {
    match record.extras() & HASHTABLE {
        0 if record.field_times().is_some() => "listpackex",
        0 => "listpack",
        _ => "hashtable",
    }
}

// Changes.

pub(super) fn put(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    elements: &mut Elements,
    (name, value): (&[u8], &[u8]),
    expire_ms: Option<u64>,
) -> Outcome<bool> {
    let element = Element {
        name,
        value,
        expire_ms,
    };
    let is_new = elements.put(keyspace, key, element)?;
    let longest = name.len().max(value.len());
    if longest > LISTPACK_ELEMENT_BYTES_MAX || elements.len() > LISTPACK_FIELDS_MAX {
        elements.extras |= HASHTABLE;
    }
    Ok(is_new)
}

/// Gives fields values, and takes their expiries; how many fields are new. Tells `hset`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn set<'p>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    pairs: impl IntoIterator<Item = (&'p [u8], &'p [u8])>,
) -> Outcome<u64> {
    let mut elements = open_or_new(keyspace, key)?;
    let mut added = 0;
    for pair in pairs {
        added += u64::from(put(keyspace, key, &mut elements, pair, None)?);
    }
    elements.save(keyspace, key)?;
    keyspace.event(EventClass::Hash, "hset", key);
    Ok(added)
}

/// Gives a field a value if it has none; whether it does so. Tells `hset`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn set_new(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    field: &[u8],
    value: &[u8],
) -> Outcome<bool> {
    let mut elements = open_or_new(keyspace, key)?;
    if elements.contains(keyspace, field)? {
        return Ok(false);
    }
    put(keyspace, key, &mut elements, (field, value), None)?;
    elements.save(keyspace, key)?;
    keyspace.event(EventClass::Hash, "hset", key);
    Ok(true)
}

/// Removes fields; how many there were. Tells `hdel`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn remove<'f>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    fields: impl IntoIterator<Item = &'f [u8]>,
) -> Outcome<u64> {
    let Some(mut elements) = open(keyspace, key)? else {
        return Ok(0);
    };
    let mut removed = 0;
    for field in fields {
        if elements.len() == 0 {
            break;
        }
        removed += u64::from(elements.remove(keyspace, field)?);
    }
    if removed > 0 {
        keyspace.event(EventClass::Hash, "hdel", key);
        elements.save(keyspace, key)?;
    }
    Ok(removed)
}

/// Adds `by` to the integer in a field, 0 if there is none; the sum. The field keeps its expiry. Tells `hincrby`.
///
/// # Errors
/// `WrongType`; no integer; an overflow; the keyspace's.
pub fn add(keyspace: &mut Keyspace<'_>, key: &[u8], field: &[u8], by: i64) -> Outcome<i64> {
    const NOT_AN_INTEGER: Failure = Failure::refused("ERR hash value is not an integer");
    const OVERFLOW: Failure = Failure::refused("ERR increment or decrement would overflow");
    let mut elements = open_or_new(keyspace, key)?;
    let found = elements.get(keyspace, field)?;
    let before = match &found {
        Some(value) => integer(value).ok_or(NOT_AN_INTEGER)?,
        None => 0,
    };
    let expire_ms = found.and_then(|value| value.expire_ms());
    let sum = before.checked_add(by).ok_or(OVERFLOW)?;
    let text = sum.to_string();
    let pair = (field, text.as_bytes());
    put(keyspace, key, &mut elements, pair, expire_ms)?;
    elements.save(keyspace, key)?;
    keyspace.event(EventClass::Hash, "hincrby", key);
    Ok(sum)
}

/// Adds `by`, which is finite, to the number in a field, 0 if there is none; the text of the sum. The field keeps its
/// expiry. Tells `hincrbyfloat`.
///
/// # Errors
/// `WrongType`; no number; a sum that is none; the keyspace's.
pub fn add_float(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    field: &[u8],
    by: LongDouble,
) -> Outcome<String> {
    const NOT_A_NUMBER: Failure = Failure::refused("ERR hash value is not a float");
    const NO_SUM: Failure = Failure::refused("ERR increment would produce NaN or Infinity");
    let mut elements = open_or_new(keyspace, key)?;
    let found = elements.get(keyspace, field)?;
    let before = match &found {
        Some(value) => LongDouble::parse(value).ok_or(NOT_A_NUMBER)?,
        None => LongDouble::ZERO,
    };
    let expire_ms = found.and_then(|value| value.expire_ms());
    let text = before.checked_add(by).ok_or(NO_SUM)?.text();
    let pair = (field, text.as_bytes());
    put(keyspace, key, &mut elements, pair, expire_ms)?;
    elements.save(keyspace, key)?;
    keyspace.event(EventClass::Hash, "hincrbyfloat", key);
    Ok(text)
}
