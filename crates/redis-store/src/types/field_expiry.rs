//! The expiry of fields of hashes, as Redis 7.4 has it.

use super::elements::{Element, Elements};
use super::hash::{open, put};
use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keyspace::Keyspace;
use crate::record::{EXPIRE_MS_MAX, Record};

/// The latest expiry of a field that commands take, in ms since 1970.
pub const FIELD_EXPIRE_MS_MAX: u64 = EXPIRE_MS_MAX >> 2;

/// A field as files have it: its name, its value, its expiry.
pub type Field<'f> = (&'f [u8], &'f [u8], Option<u64>);

/// When a field gets an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// At any rate.
    Always,
    /// If it has none.
    IfNone,
    /// If it has one.
    IfAny,
    /// If it has an earlier one.
    IfLater,
    /// If it has a later one or none.
    IfEarlier,
}

impl Condition {
    fn is_met(self, before: Option<u64>, ms: u64) -> bool {
        match self {
            Self::Always => true,
            Self::IfNone => before.is_none(),
            Self::IfAny => before.is_some(),
            Self::IfLater => before.is_some_and(|before| before < ms),
            Self::IfEarlier => before.is_none_or(|before| before > ms),
        }
    }
}

/// What became of a field that was to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// There is no such field.
    NoField,
    /// The condition is not met.
    Kept,
    /// It expires then.
    Set,
    /// The time is not to come any more: it is deleted.
    Deleted,
}

/// What became of a field that was to have no expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persisted {
    /// There is no such field.
    NoField,
    /// It had none.
    NoExpiry,
    /// It has none any more.
    Done,
}

/// Has fields expire at `ms`, which is up to [`FIELD_EXPIRE_MS_MAX`]. Tells `hexpire`, or `hdel` if it deletes any.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn expire<'f>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    fields: impl IntoIterator<Item = &'f [u8]>,
    ms: u64,
    condition: Condition,
) -> Outcome<Vec<Expired>> {
    let fields = fields.into_iter();
    let Some(mut elements) = open(keyspace, key)? else {
        return Ok(fields.map(|_| Expired::NoField).collect());
    };
    let mut done = Vec::new();
    for field in fields {
        let found = elements.get(keyspace, field)?;
        done.push(match found {
            None => Expired::NoField,
            Some(value) if !condition.is_met(value.expire_ms(), ms) => Expired::Kept,
            Some(_) if ms <= keyspace.expired_ms() => {
                elements.remove(keyspace, field)?;
                Expired::Deleted
            }
            Some(value) => {
                put(keyspace, key, &mut elements, (field, &value), Some(ms))?;
                Expired::Set
            }
        });
    }
    let event = match () {
        () if done.contains(&Expired::Deleted) => "hdel",
        () if done.contains(&Expired::Set) => "hexpire",
        () => return Ok(done),
    };
    keyspace.event(EventClass::Hash, event, key);
    elements.save(keyspace, key)?;
    Ok(done)
}

/// Takes the expiries of fields. Tells `hpersist`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn persist<'f>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    fields: impl IntoIterator<Item = &'f [u8]>,
) -> Outcome<Vec<Persisted>> {
    let fields = fields.into_iter();
    let Some(mut elements) = open(keyspace, key)? else {
        return Ok(fields.map(|_| Persisted::NoField).collect());
    };
    let mut done = Vec::new();
    for field in fields {
        let found = elements.get(keyspace, field)?;
        done.push(match found {
            None => Persisted::NoField,
            Some(value) if value.expire_ms().is_none() => Persisted::NoExpiry,
            Some(value) => {
                put(keyspace, key, &mut elements, (field, &value), None)?;
                Persisted::Done
            }
        });
    }
    if done.contains(&Persisted::Done) {
        keyspace.event(EventClass::Hash, "hpersist", key);
        elements.save(keyspace, key)?;
    }
    Ok(done)
}

/// Calls `take` with each field.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn each(keyspace: &Keyspace<'_>, key: &[u8], mut take: impl FnMut(Field<'_>)) -> Outcome<()> {
    match open(keyspace, key)? {
        Some(elements) => elements.each_element(keyspace, |element: Element<'_>| {
            take((element.name, element.value, element.expire_ms));
            Ok(true)
        }),
        None => Ok(()),
    }
}

/// Adds fields as files have them; how many were not there. Tells nothing.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn load<'f>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    fields: impl IntoIterator<Item = Field<'f>>,
) -> Outcome<u64> {
    let mut elements = super::hash::open_or_new(keyspace, key)?;
    let before = elements.len();
    for (name, value, expire_ms) in fields {
        let expire_ms = expire_ms.map(|ms| ms.min(EXPIRE_MS_MAX - 1));
        put(keyspace, key, &mut elements, (name, value), expire_ms)?;
    }
    let added = elements.len() - before;
    elements.save(keyspace, key)?;
    Ok(added)
}

/// Deletes up to `most` fields that have expired, for the worker of expiry, and the hash with the last one; how many, and
/// whether more are left. Tells `hexpired`.
pub(crate) fn delete_expired(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    record: Record,
    most: usize,
) -> Outcome<(usize, bool)> {
    let mut elements = Elements::decode(record, keyspace.expired_ms())?;
    let (deleted, more) = elements.remove_expired(keyspace, most)?;
    let count = deleted.len();
    match count {
        // Its first time was one that a field had no more.
        0 => elements.save_unseen(keyspace, key)?,
        _ => {
            keyspace.event(EventClass::Hash, "hexpired", key);
            elements.save(keyspace, key)?;
            keyspace.fields_expired(key, deleted);
        }
    }
    Ok((count, more))
}
