//! Changes of sorted sets.

use std::collections::HashMap;

use super::range::{Select, ranks};
use super::score::Scored;
use super::value::Zset;
use crate::events::EventClass;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Keyspace;
use crate::walk::Direction;

/// So many members at once are worth a tree that is built, and not one that grows.
const BULK_MIN: usize = 32;
/// The error of a sum of infinities.
const NOT_A_NUMBER: Failure = Failure::refused("ERR resulting score is not a number (NaN)");

/// The conditions and the manner of an addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// `NX`: members that are there keep their scores.
    pub only_new: bool,
    /// `XX`: no members are added.
    pub only_present: bool,
    /// `GT`: scores are only raised.
    pub only_greater: bool,
    /// `LT`: scores are only lowered.
    pub only_less: bool,
    /// Scores are added to those that are there.
    pub increments: bool,
}

/// The effects of an addition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Added {
    /// Members that were not there.
    pub added: u64,
    /// Members with another score now.
    pub updated: u64,
    /// The score of the last member that the conditions let pass.
    pub score: Option<f64>,
}

impl Added {
    /// Counts an addition; the score that has to be set, if there is one.
    fn of(&mut self, old: Option<f64>, given: f64, options: AddOptions) -> Outcome<Option<f64>> {
        let Some(score) = new_score(old, given, options)? else {
            return Ok(None);
        };
        self.score = Some(score);
        match old {
            None => self.added += 1,
            // -0 is 0 here, and the bits stay.
            Some(old) if old == score => return Ok(None),
            Some(_) => self.updated += 1,
        }
        Ok(Some(score))
    }
}

/// The score that a member has after an addition; `None` where the conditions forbid it.
fn new_score(old: Option<f64>, given: f64, options: AddOptions) -> Outcome<Option<f64>> {
    let Some(old) = old else {
        return Ok((!options.only_present).then_some(given));
    };
    if options.only_new {
        return Ok(None);
    }
    let score = match options.increments {
        true => old + given,
        false => given,
    };
    if score.is_nan() {
        return Err(NOT_A_NUMBER);
    }
    let forbidden = (options.only_greater && score <= old) || (options.only_less && score >= old);
    Ok((!forbidden).then_some(score))
}

/// Adds members with scores, of which none is NaN, or changes their scores. Tells `zadd` or, of increments, `zincr`.
///
/// # Errors
/// `WrongType`; a sum that is not a number; the keyspace's.
pub fn add(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    items: &[(f64, &[u8])],
    options: AddOptions,
) -> Outcome<Added> {
    let mut zset = Zset::open_or_new(keyspace, key)?;
    let is_minus_zero = |score: f64| score == 0.0 && score.is_sign_negative();
    // The loss of the sign of -0 depends on the order of the additions.
    let in_bulk = zset.len() == 0 && items.len() >= BULK_MIN;
    if in_bulk && !items.iter().any(|(score, _)| is_minus_zero(*score)) {
        return add_to_nothing(keyspace, key, items, options);
    }
    let mut effects = Added::default();
    for (given, member) in items.iter().copied() {
        let old = match zset.len() {
            0 => None,
            _ => zset.score(keyspace, member)?,
        };
        if let Some(score) = effects.of(old, given, options)? {
            zset.set(keyspace, key, (score, member), old)?;
        }
    }
    if effects.added + effects.updated > 0 {
        zset.save(keyspace, key)?;
        let name = if options.increments { "zincr" } else { "zadd" };
        keyspace.event(EventClass::SortedSet, name, key);
    }
    Ok(effects)
}

/// As [`add`], where there is no key: the tree is built at once.
fn add_to_nothing(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    items: &[(f64, &[u8])],
    options: AddOptions,
) -> Outcome<Added> {
    let mut effects = Added::default();
    let mut scores: HashMap<&[u8], f64> = HashMap::with_capacity(items.len());
    for (given, member) in items.iter().copied() {
        let old = scores.get(member).copied();
        if let Some(score) = effects.of(old, given, options)? {
            scores.insert(member, score);
        }
    }
    let item = |(member, score): (&[u8], f64)| Scored::of((score, member));
    let mut items: Vec<_> = scores.into_iter().map(item).collect();
    if !items.is_empty() {
        items.sort_by(Scored::order);
        Zset::store(keyspace, key, &items)?;
        keyspace.event(EventClass::SortedSet, "zadd", key);
    }
    Ok(effects)
}

/// Removes members; how many there were. Tells `zrem`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn remove<'m>(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    members: impl IntoIterator<Item = &'m [u8]>,
) -> Outcome<u64> {
    let Some(mut zset) = Zset::open(keyspace, key)? else {
        return Ok(0);
    };
    let mut removed = 0;
    for member in members {
        if zset.len() == 0 {
            break;
        }
        if let Some(score) = zset.score(keyspace, member)? {
            zset.remove(keyspace, score, member)?;
            removed += 1;
        }
    }
    if removed > 0 {
        keyspace.event(EventClass::SortedSet, "zrem", key);
        zset.save(keyspace, key)?;
    }
    Ok(removed)
}

/// Removes a range; how many members it had. Tells `zremrangebyrank`, `zremrangebyscore` or `zremrangebylex`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn remove_range(keyspace: &mut Keyspace<'_>, key: &[u8], select: &Select<'_>) -> Outcome<u64> {
    let Some(mut zset) = Zset::open(keyspace, key)? else {
        return Ok(0);
    };
    let ranks = ranks(keyspace, &zset, select, false)?;
    let removed = ranks.end - ranks.start;
    if removed > 0 {
        zset.remove_ranks(keyspace, ranks)?;
        let name = match select {
            Select::Ranks { .. } => "zremrangebyrank",
            Select::Scores(_) => "zremrangebyscore",
            Select::Members(_) => "zremrangebylex",
        };
        keyspace.event(EventClass::SortedSet, name, key);
        zset.save(keyspace, key)?;
    }
    Ok(removed)
}

/// Takes up to `count` members from an end: the lowest first, or with `Backward` the highest. `None` where there is no key.
/// Tells `zpopmin` or `zpopmax`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn pop(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    count: u64,
    direction: Direction,
) -> Outcome<Option<Vec<Scored>>> {
    let Some(mut zset) = Zset::open(keyspace, key)? else {
        return Ok(None);
    };
    let (len, count) = (zset.len(), count.min(zset.len()));
    if count == 0 {
        return Ok(Some(Vec::new()));
    }
    let (first, ranks, name) = match direction {
        Direction::Forward => (0, 0..count, "zpopmin"),
        Direction::Backward => (len - 1, len - count..len, "zpopmax"),
    };
    let mut taken = Vec::new();
    let mut walk = zset.walk(keyspace, first, direction);
    for _ in 0..count {
        taken.extend(walk.next()?.map(Scored::of));
    }
    zset.remove_ranks(keyspace, ranks)?;
    keyspace.event(EventClass::SortedSet, name, key);
    zset.save(keyspace, key)?;
    Ok(Some(taken))
}
