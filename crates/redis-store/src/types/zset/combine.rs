//! Unions, intersections and differences, and storing them.

use std::collections::HashMap;

use super::range::{Select, Selection, range};
use super::score::Scored;
use super::value::{Zset, needs_skiplist};
use crate::events::EventClass;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Keyspace;
use crate::record::Kind;
use crate::types::elements::Elements;
use crate::walk::Direction;

/// A key that takes part, and the number that its scores are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operand<'a> {
    /// A sorted set, or a set, whose members have the score 1.
    pub key: &'a [u8],
    /// 1 if nothing else is said.
    pub weight: f64,
}

/// The score of a member that several have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// All added up.
    #[default]
    Sum,
    /// The lowest.
    Min,
    /// The highest.
    Max,
}

/// How members come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// Those of any.
    Union,
    /// Those of all.
    Intersection,
    /// Those of the first that no other has.
    Difference,
}

impl Aggregate {
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum => number(one + other),
            Self::Min if other < one => other,
            Self::Max if other > one => other,
            Self::Min | Self::Max => one,
        }
    }
}

/// Infinity less infinity, and infinity times 0, are 0 here.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The members at the key of an operand.
enum Source {
    None,
    Zset(Zset, f64),
    /// Members have the score 1.
    Set(Elements, f64),
}

impl Source {
    fn open(keyspace: &Keyspace<'_>, operand: &Operand<'_>) -> Outcome<Self> {
        let Some(record) = keyspace.lookup(operand.key)? else {
            return Ok(Self::None);
        };
        match record.kind() {
            Kind::SortedSet => Ok(Self::Zset(Zset::decode(record)?, operand.weight)),
            Kind::Set => Ok(Self::Set(
                Elements::decode(record, keyspace.expired_ms())?,
                operand.weight,
            )),
            _ => Err(Failure::WrongType),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Zset(zset, _) => zset.len(),
            Self::Set(elements, _) => elements.len(),
        }
    }

    /// The score of a member, times the weight: this may be NaN.
    fn weighed(&self, keyspace: &Keyspace<'_>, member: &[u8]) -> Outcome<Option<f64>> {
        Ok(match self {
            Self::None => None,
            Self::Zset(zset, weight) => {
                let score = zset.score(keyspace, member)?;
                score.map(|score| score * weight)
            }
            Self::Set(elements, weight) => {
                let is_member = elements.contains(keyspace, member)?;
                is_member.then_some(*weight)
            }
        })
    }

    /// Calls `take` with the members and their scores, times the weight, until it says no.
    fn each(
        &self,
        keyspace: &Keyspace<'_>,
        mut take: impl FnMut(f64, &[u8]) -> Outcome<bool>,
    ) -> Outcome<()> {
        match self {
            Self::None => {}
            Self::Zset(zset, weight) => {
                let mut walk = zset.walk(keyspace, 0, Direction::Forward);
                while let Some((score, member)) = walk.next()? {
                    if !take(number(score * weight), member)? {
                        break;
                    }
                }
            }
            Self::Set(elements, weight) => {
                elements.each(keyspace, |member, _| take(*weight, member))?;
            }
        }
        Ok(())
    }
}

fn sources(keyspace: &Keyspace<'_>, operands: &[Operand<'_>]) -> Outcome<Vec<Source>> {
    operands
        .iter()
        .map(|operand| Source::open(keyspace, operand))
        .collect()
}

/// The members that `combination` makes of the operands, in the order of their new scores.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn combine(
    keyspace: &Keyspace<'_>,
    combination: Combination,
    operands: &[Operand<'_>],
    aggregate: Aggregate,
) -> Outcome<Vec<Scored>> {
    let mut sources = sources(keyspace, operands)?;
    if combination != Combination::Difference {
        // The order decides how sums are rounded; it is Redis's.
        sources.sort_by_key(Source::len);
    }
    let mut items = match combination {
        Combination::Union => union(keyspace, &sources, aggregate)?,
        Combination::Intersection => {
            let mut items = Vec::new();
            intersect(keyspace, &sources, |member, scores| {
                let score = scores
                    .iter()
                    .copied()
                    .reduce(|one, other| aggregate.of(one, other));
                items.extend(score.map(|score| Scored::of((score, member))));
                true
            })?;
            items
        }
        Combination::Difference => difference(keyspace, &sources)?,
    };
    items.sort_by(Scored::order);
    Ok(items)
}

fn union(
    keyspace: &Keyspace<'_>,
    sources: &[Source],
    aggregate: Aggregate,
) -> Outcome<Vec<Scored>> {
    let mut scores: HashMap<Vec<u8>, f64> = HashMap::new();
    for source in sources {
        source.each(keyspace, |score, member| {
            match scores.get_mut(member) {
                Some(present) => *present = aggregate.of(*present, score),
                None => {
                    scores.insert(member.to_vec(), score);
                }
            }
            Ok(true)
        })?;
    }
    let item = |(member, score)| Scored { score, member };
    Ok(scores.into_iter().map(item).collect())
}

/// Calls `take` with each common member and its scores, until it says no.
fn intersect(
    keyspace: &Keyspace<'_>,
    sources: &[Source],
    mut take: impl FnMut(&[u8], &[f64]) -> bool,
) -> Outcome<()> {
    let Some((first, others)) = sources.split_first() else {
        return Ok(());
    };
    let mut scores = Vec::with_capacity(sources.len());
    first.each(keyspace, |score, member| {
        scores.clear();
        scores.push(score);
        for other in others {
            match other.weighed(keyspace, member)? {
                Some(score) => scores.push(score),
                None => return Ok(true),
            }
        }
        Ok(take(member, &scores))
    })
}

fn difference(keyspace: &Keyspace<'_>, sources: &[Source]) -> Outcome<Vec<Scored>> {
    let mut items = Vec::new();
    let Some((first, others)) = sources.split_first() else {
        return Ok(items);
    };
    first.each(keyspace, |score, member| {
        for other in others {
            if other.weighed(keyspace, member)?.is_some() {
                return Ok(true);
            }
        }
        items.push(Scored::of((score, member)));
        Ok(true)
    })?;
    Ok(items)
}

/// How many members all keys have; the count ends at `most`, if that is not 0.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn intersection_len(keyspace: &Keyspace<'_>, keys: &[&[u8]], most: u64) -> Outcome<u64> {
    let operands: Vec<_> = keys
        .iter()
        .map(|key| Operand { key, weight: 1.0 })
        .collect();
    let mut sources = sources(keyspace, &operands)?;
    sources.sort_by_key(Source::len);
    let mut found = 0;
    intersect(keyspace, &sources, |_, _| {
        found += 1;
        found != most
    })?;
    Ok(found)
}

/// Stores members, which are in order, at `key`, whatever it had, and tells `event`. Nothing is stored where there are
/// none: the key is deleted then. How many there are.
///
/// # Errors
/// The keyspace's.
pub fn store(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    items: &[Scored],
    event: &'static str,
) -> Outcome<u64> {
    if !items.is_empty() {
        Zset::store(keyspace, key, items)?;
        keyspace.event(EventClass::SortedSet, event, key);
    } else if let Some(record) = keyspace.lookup(key)? {
        keyspace.remove(key, &record);
        keyspace.event(EventClass::Generic, "del", key);
    }
    Ok(items.len() as u64)
}

/// As [`store`], of members in any order.
///
/// # Errors
/// The keyspace's.
pub fn store_unordered(
    keyspace: &mut Keyspace<'_>,
    key: &[u8],
    mut items: Vec<Scored>,
    event: &'static str,
) -> Outcome<u64> {
    items.sort_by(Scored::order);
    items.dedup_by(|one, other| one.member == other.member);
    store(keyspace, key, &items, event)
}

/// Redis adds members one by one, to a `listpack` as long as they fit: those lose the sign of -0. Only where it knows how
/// many there are it does not begin with one that will not do.
fn lose_signs_of_zero(items: &mut [Scored], knows_len: bool) {
    if knows_len && needs_skiplist(items.len(), 0) {
        return;
    }
    for (before, item) in items.iter_mut().enumerate() {
        if needs_skiplist(before + 1, item.member.len()) {
            break;
        }
        // -0 + 0 is 0.
        item.score += 0.0;
    }
}

/// Stores a range of the sorted set at `from` at the key `to`; how many members it has.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn store_range(
    keyspace: &mut Keyspace<'_>,
    to: &[u8],
    from: &[u8],
    selection: &Selection<'_>,
) -> Outcome<u64> {
    let mut items = range(keyspace, from, selection)?;
    let knows_len = matches!(selection.select, Select::Ranks { .. });
    lose_signs_of_zero(&mut items, knows_len);
    items.sort_by(Scored::order);
    store(keyspace, to, &items, "zrangestore")
}
