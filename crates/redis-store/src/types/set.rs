//! Sets. [`super::elements`] has their forms.

use std::collections::HashSet;

use drumlin_base::rng::Rng;

pub use super::elements::Draw;
use super::elements::{Element, Elements};
use super::string::integer;
use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keyspace::Keyspace;
use crate::record::{Kind, Record};

/// Redis has a `hashtable`, and not an `intset`, beyond so many members or with one that is no integer.
const INTSET_MEMBERS_MAX: u64 = 512;
/// Extras: it has been a `hashtable`.
const HASHTABLE: u8 = 1;

/// How sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// Members of any.
    Union,
    /// Members of all.
    Intersection,
    /// Members of the first that no other has.
    Difference,
}

fn open(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Elements>> {
    Elements::open(keyspace, key, Kind::Set)
}

/// Calls `take` with each member until it says no: the integers of an `intset` in their order.
fn each_member(
    keyspace: &Keyspace<'_>,
    elements: &Elements,
    mut take: impl FnMut(&[u8]) -> Outcome<bool>,
) -> Outcome<()> {
    if elements.extras & HASHTABLE != 0 {
        return elements.each(keyspace, |member, _| take(member));
    }
    let mut members = Vec::new();
    elements.each(keyspace, |member, _| {
        members.push(member.to_vec());
        Ok(true)
    })?;
    members.sort_by_cached_key(|member| integer(member));
    for member in members {
        if !take(&member)? {
            break;
        }
    }
    Ok(())
}

/// How many members there are.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn len(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<u64> {
    Ok(open(keyspace, key)?.map_or(0, |elements| elements.len()))
}

/// Whether each of `members` is one.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn contains_each<'m>(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    members: impl IntoIterator<Item = &'m [u8]>,
) -> Outcome<Vec<bool>> {
    let elements = open(keyspace, key)?;
    let is_member = |member| match &elements {
        Some(elements) => elements.contains(keyspace, member),
        None => Ok(false),
    };
    members.into_iter().map(is_member).collect()
}

/// Whether `member` is one.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn contains(keyspace: &Keyspace<'_>, key: &[u8], member: &[u8]) -> Outcome<bool> {
    match open(keyspace, key)? {
        Some(elements) => elements.contains(keyspace, member),
        None => Ok(false),
    }
}

/// Calls `take` with each member, in Redis's order; it says whether to go on.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn each(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    mut take: impl FnMut(&[u8]) -> bool,
) -> Outcome<()> {
    match open(keyspace, key)? {
        Some(elements) => each_member(keyspace, &elements, |member| Ok(take(member))),
        None => Ok(()),
    }
}

/// A step of a scan: about `count` members from `cursor` on, and the next cursor, 0 at the end. A member that is there all
/// the time is told.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn scan(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    cursor: u64,
    count: u64,
) -> Outcome<(u64, Vec<Vec<u8>>)> {
    let Some(elements) = open(keyspace, key)? else {
        return Ok((0, Vec::new()));
    };
    let (next, pairs) = elements.scan(keyspace, cursor, count)?;
    let mut members: Vec<_> = pairs.into_iter().map(|(member, _)| member).collect();
    if cursor == 0 && next == 0 && elements.extras & HASHTABLE == 0 {
        members.sort_by_cached_key(|member| integer(member));
    }
    Ok((next, members))
}

/// Members at random, one by one; `None` where there is no key.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn draw(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Draw>> {
    let elements = open(keyspace, key)?;
    elements
        .map(|elements| Draw::new(keyspace, elements))
        .transpose()
}

/// Up to `count` different members at random.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn sample(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    count: u64,
    rng: &mut Rng,
) -> Outcome<Vec<Vec<u8>>> {
    let Some(elements) = open(keyspace, key)? else {
        return Ok(Vec::new());
    };
    let pairs = elements.sample(keyspace, count, rng)?;
    Ok(pairs.into_iter().map(|(member, _)| member).collect())
}

/// What `OBJECT ENCODING` says.
pub fn encoding(record: &Record) -> &'static str {
    match record.extras() & HASHTABLE {
        0 => "intset",
        _ => "hashtable",
    }
}

// Changes.

/// Adds a member that is not there.
fn put_new(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    elements: &mut Elements,
    member: &[u8],
) -> Outcome<()> {
    let element = Element {
        name: member,
        value: &[],
        expire_ms: None,
    };
    elements.put_known(keyspace, key, element, true)?;
    if integer(member).is_none() || elements.len() > INTSET_MEMBERS_MAX {
        elements.extras |= HASHTABLE;
    }
    Ok(())
}

/// Adds members; how many are new. Tells `sadd`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn add<'m>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    members: impl IntoIterator<Item = &'m [u8]>,
) -> Outcome<u64> {
    let mut elements = Elements::open_or_new(keyspace, key, Kind::Set)?;
    let mut added = 0;
    for member in members {
        if !elements.contains(keyspace, member)? {
            put_new(keyspace, key, &mut elements, member)?;
            added += 1;
        }
    }
    if added > 0 {
        elements.save(keyspace, key)?;
        keyspace.event(EventClass::Set, "sadd", key);
    }
    Ok(added)
}

/// Removes members; how many there were. Tells `srem`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn remove<'m>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    members: impl IntoIterator<Item = &'m [u8]>,
) -> Outcome<u64> {
    let Some(mut elements) = open(keyspace, key)? else {
        return Ok(0);
    };
    let mut removed = 0;
    for member in members {
        if elements.len() == 0 {
            break;
        }
        removed += u64::from(elements.remove(keyspace, member)?);
    }
    if removed > 0 {
        keyspace.event(EventClass::Set, "srem", key);
        elements.save(keyspace, key)?;
    }
    Ok(removed)
}

/// Takes up to `count` members at random. Tells `spop`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn pop(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    count: u64,
    rng: &mut Rng,
) -> Outcome<Vec<Vec<u8>>> {
    let Some(mut elements) = open(keyspace, key)? else {
        return Ok(Vec::new());
    };
    let mut members = Vec::new();
    if count == 0 {
        return Ok(members);
    }
    if count >= elements.len() {
        each_member(keyspace, &elements, |member| {
            members.push(member.to_vec());
            Ok(true)
        })?;
        elements.clear();
    } else if count == 1
        && let Some(member) = elements.take_one(keyspace, rng)?
    {
        members.push(member);
    } else {
        for (member, _) in elements.sample(keyspace, count, rng)? {
            elements.remove(keyspace, &member)?;
            members.push(member);
        }
    }
    keyspace.event(EventClass::Set, "spop", key);
    elements.save(keyspace, key)?;
    Ok(members)
}

/// Moves a member from a set to another; whether it was there. Tells `srem` and `sadd`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn move_member(
    keyspace: &mut Keyspace<'_>,
    from: &[u8],
    to: &[u8],
    member: &[u8],
) -> Outcome<bool> {
    let Some(source) = open(keyspace, from)? else {
        return Ok(false);
    };
    open(keyspace, to)?;
    if !source.contains(keyspace, member)? {
        return Ok(false);
    }
    if from != to {
        remove(keyspace, from, [member])?;
        add(keyspace, to, [member])?;
    }
    Ok(true)
}

// Combinations.

/// Calls `take` with each common member until it says no.
fn intersect(
    keyspace: &Keyspace<'_>,
    keys: &[&[u8]],
    mut take: impl FnMut(&[u8]) -> bool,
) -> Outcome<()> {
    let sets: Outcome<Vec<_>> = keys.iter().map(|key| open(keyspace, key)).collect();
    // The types of all are looked at before one that is missing ends it.
    let sets: Option<Vec<_>> = sets?.into_iter().collect();
    let mut sets = sets.unwrap_or_default();
    sets.sort_by_key(Elements::len);
    let Some((first, others)) = sets.split_first() else {
        return Ok(());
    };
    each_member(keyspace, first, |member| {
        for other in others {
            if !other.contains(keyspace, member)? {
                return Ok(true);
            }
        }
        Ok(take(member))
    })
}

/// How many members all keys have; the count ends at `most`, if that is not 0.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn intersection_len(keyspace: &Keyspace<'_>, keys: &[&[u8]], most: u64) -> Outcome<u64> {
    let mut found = 0;
    intersect(keyspace, keys, |_| {
        found += 1;
        found != most
    })?;
    Ok(found)
}

/// The members that `combination` makes of the sets at `keys`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn combine(
    keyspace: &Keyspace<'_>,
    combination: Combination,
    keys: &[&[u8]],
) -> Outcome<Vec<Vec<u8>>> {
    let mut members = Vec::new();
    match combination {
        Combination::Intersection => {
            intersect(keyspace, keys, |member| {
                members.push(member.to_vec());
                true
            })?;
            return Ok(members);
        }
        Combination::Union => {
            let sets: Outcome<Vec<_>> = keys.iter().map(|key| open(keyspace, key)).collect();
            let mut seen = HashSet::new();
            for set in sets?.iter().flatten() {
                set.each(keyspace, |member, _| {
                    if !seen.contains(member) {
                        seen.insert(member.to_vec());
                        members.push(member.to_vec());
                    }
                    Ok(true)
                })?;
            }
        }
        Combination::Difference => {
            let sets: Outcome<Vec<_>> = keys.iter().map(|key| open(keyspace, key)).collect();
            let sets = sets?;
            let Some((Some(first), others)) = sets.split_first() else {
                return Ok(members);
            };
            first.each(keyspace, |member, _| {
                for other in others.iter().flatten() {
                    if other.contains(keyspace, member)? {
                        return Ok(true);
                    }
                }
                members.push(member.to_vec());
                Ok(true)
            })?;
        }
    }
    // Redis makes a set of these before it tells them.
    let is_intset = members.len() as u64 <= INTSET_MEMBERS_MAX
        && members.iter().all(|member| integer(member).is_some());
    if is_intset {
        members.sort_by_cached_key(|member| integer(member));
    }
    Ok(members)
}

/// Stores different members at `key`, whatever it had, and tells `event`. Where there are none the key is deleted. How many
/// there are.
///
/// # Errors
/// The keyspace's.
pub fn store(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    members: &[Vec<u8>],
    event: &'static str,
) -> Outcome<u64> {
    if members.is_empty() {
        if let Some(record) = keyspace.lookup(key)? {
            keyspace.remove(key, &record);
            keyspace.event(EventClass::Generic, "del", key);
        }
        return Ok(0);
    }
    let mut elements = Elements::new(Kind::Set);
    for member in members {
        put_new(keyspace, key, &mut elements, member)?;
    }
    elements.save(keyspace, key)?;
    keyspace.event(EventClass::Set, event, key);
    Ok(members.len() as u64)
}
