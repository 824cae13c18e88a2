//! Reading sorted sets.

use std::collections::HashSet;
use std::ops::Range;

use drumlin_base::rng::Rng;

use super::score::{LexRange, ScoreRange, Scored};
use super::value::{Zset, element, is_skiplist};
use crate::failure::Outcome;
use crate::keys::ELEMENT;
use crate::keyspace::{Keyspace, sub_rest};
use crate::record::Record;
use crate::walk::Direction;

/// The members of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Select<'a> {
    /// By rank from `start` to `end`, both included; negative ones count from the end.
    Ranks {
        /// The first.
        start: i64,
        /// The last.
        end: i64,
    },
    /// By score.
    Scores(ScoreRange),
    /// By member.
    Members(LexRange<'a>),
}

/// `LIMIT`: a part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many are passed over. Nothing is left of a range if this is negative.
    pub offset: i64,
    /// How many are taken; all if this is negative.
    pub count: i64,
}

/// A range as it is walked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection<'a> {
    /// The members.
    pub select: Select<'a>,
    /// With `Backward`, ranks count from the highest score.
    pub direction: Direction,
    /// The part that is wanted.
    pub page: Option<Page>,
}

/// The ranks of a range, from the lowest score.
pub(super) fn ranks(
    keyspace: &Keyspace<'_>,
    zset: &Zset,
    select: &Select<'_>,
    reverse: bool,
) -> Outcome<Range<u64>> {
    let (start, end) = match select {
        Select::Ranks { start, end } => {
            let ranks = ranks_between(zset.len(), *start, *end);
            return Ok(match reverse {
                true => zset.len() - ranks.end..zset.len() - ranks.start,
                false => ranks,
            });
        }
        Select::Scores(range) => (
            zset.rank_where(keyspace, |score, _| range.is_below(score))?,
            zset.rank_where(keyspace, |score, _| range.is_up_to_end(score))?,
        ),
        Select::Members(range) => (
            zset.rank_where(keyspace, |_, member| range.is_below(member))?,
            zset.rank_where(keyspace, |_, member| range.is_up_to_end(member))?,
        ),
    };
    Ok(start..end.max(start))
}

fn ranks_between(len: u64, start: i64, end: i64) -> Range<u64> {
    let signed = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |at: i64| {
        if at < 0 {
            signed.saturating_add(at)
        } else {
            at
        }
    };
    let start = from_end(start).max(0);
    let end = from_end(end).min(signed - 1);
    match start <= end {
        true => start.unsigned_abs()..end.unsigned_abs() + 1,
        false => 0..0,
    }
}

/// Calls `take` with each member and its score, from the lowest on; it says whether to go on.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn each(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    mut take: impl FnMut(&[u8], f64) -> bool,
) -> Outcome<()> {
    let Some(zset) = Zset::open(keyspace, key)? else {
        return Ok(());
    };
    let mut walk = zset.walk(keyspace, 0, Direction::Forward);
    while let Some((score, member)) = walk.next()? {
        if !take(member, score) {
            break;
        }
    }
    Ok(())
}

/// The members of a range, in the order of the walk.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn range(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    selection: &Selection<'_>,
) -> Outcome<Vec<Scored>> {
    match Zset::open(keyspace, key)? {
        Some(zset) => members(keyspace, &zset, selection),
        None => Ok(Vec::new()),
    }
}

fn members(
    keyspace: &Keyspace<'_>,
    zset: &Zset,
    selection: &Selection<'_>,
) -> Outcome<Vec<Scored>> {
    let reverse = selection.direction == Direction::Backward;
    let ranks = ranks(keyspace, zset, &selection.select, reverse)?;
    let found = ranks.end - ranks.start;
    let (skipped, most) = match selection.page {
        None => (0, u64::MAX),
        Some(page) => (
            u64::try_from(page.offset).unwrap_or(found),
            u64::try_from(page.count).unwrap_or(u64::MAX),
        ),
    };
    let taken = found.saturating_sub(skipped).min(most);
    if taken == 0 {
        return Ok(Vec::new());
    }
    let first = match reverse {
        true => ranks.end - 1 - skipped,
        false => ranks.start + skipped,
    };
    let mut items = Vec::new();
    let mut walk = zset.walk(keyspace, first, selection.direction);
    for _ in 0..taken {
        items.extend(walk.next()?.map(Scored::of));
    }
    Ok(items)
}

/// Calls `take` with the members of each of `ranges` and their scores, one range after the other, until it says no.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn visit(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    ranges: impl IntoIterator<Item = ScoreRange>,
    mut take: impl FnMut(f64, &[u8]) -> bool,
) -> Outcome<()> {
    let Some(zset) = Zset::open(keyspace, key)? else {
        return Ok(());
    };
    for range in ranges {
        let first = zset.rank_where(keyspace, |score, _| range.is_below(score))?;
        if first >= zset.len() {
            continue;
        }
        let mut walk = zset.walk(keyspace, first, Direction::Forward);
        while let Some((score, member)) = walk.next()? {
            if !range.is_up_to_end(score) {
                break;
            }
            if !take(score, member) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// How many members a range has.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn count(keyspace: &Keyspace<'_>, key: &[u8], select: &Select<'_>) -> Outcome<u64> {
    let Some(zset) = Zset::open(keyspace, key)? else {
        return Ok(0);
    };
    let ranks = ranks(keyspace, &zset, select, false)?;
    Ok(ranks.end - ranks.start)
}

/// How many members there are.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn len(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<u64> {
    Ok(Zset::open(keyspace, key)?.map_or(0, |zset| zset.len()))
}

/// The score of a member.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn score(keyspace: &Keyspace<'_>, key: &[u8], member: &[u8]) -> Outcome<Option<f64>> {
    match Zset::open(keyspace, key)? {
        Some(zset) => zset.score(keyspace, member),
        None => Ok(None),
    }
}

/// The score of each member.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn scores<'m>(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    members: impl IntoIterator<Item = &'m [u8]>,
) -> Outcome<Vec<Option<f64>>> {
    let zset = Zset::open(keyspace, key)?;
    let score = |member| match &zset {
        Some(zset) => zset.score(keyspace, member),
        None => Ok(None),
    };
    members.into_iter().map(score).collect()
}

/// The rank of a member, from the highest score with `Backward`.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn rank(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    member: &[u8],
    direction: Direction,
) -> Outcome<Option<u64>> {
    let Some(zset) = Zset::open(keyspace, key)? else {
        return Ok(None);
    };
    let Some(score) = zset.score(keyspace, member)? else {
        return Ok(None);
    };
    let rank = zset.rank_of(keyspace, score, member)?;
    Ok(Some(match direction {
        Direction::Forward => rank,
        Direction::Backward => zset.len().saturating_sub(rank + 1),
    }))
}

/// Members at random: up to `count` different ones; if `count` is negative as many as it says, which may repeat.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn random(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    count: i64,
    random: &mut Rng,
) -> Outcome<Vec<Scored>> {
    let Some(zset) = Zset::open(keyspace, key)? else {
        return Ok(Vec::new());
    };
    let mut picked = Vec::new();
    let mut take = |rank: u64| -> Outcome<()> {
        let mut walk = zset.walk(keyspace, rank, Direction::Forward);
        picked.extend(walk.next()?.map(Scored::of));
        Ok(())
    };
    let wanted = count.unsigned_abs();
    if count < 0 {
        for _ in 0..wanted {
            take(random.next_u64() % zset.len())?;
        }
    } else if wanted >= zset.len() {
        let mut walk = zset.walk(keyspace, 0, Direction::Forward);
        while let Some(item) = walk.next()? {
            picked.push(Scored::of(item));
        }
    } else {
        // Floyd's sample: each step adds one rank, every set of ranks with the same chance.
        let mut ranks = HashSet::new();
        for last in zset.len() - wanted..zset.len() {
            let drawn = random.next_u64() % (last + 1);
            let rank = if ranks.contains(&drawn) { last } else { drawn };
            ranks.insert(rank);
            take(rank)?;
        }
    }
    Ok(picked)
}

/// A step of a scan: about `count` members from `cursor` on, and the next cursor, 0 at the end. A member that is there all
/// the time is told. Those of a whole set come at once; a collection's come by their hash, which is the cursor.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn scan(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    cursor: u64,
    count: u64,
) -> Outcome<(u64, Vec<Scored>)> {
    let mut items = Vec::new();
    let Some(zset) = Zset::open(keyspace, key)? else {
        return Ok((0, items));
    };
    let Some(of) = zset.collection() else {
        let mut walk = zset.walk(keyspace, 0, Direction::Forward);
        while let Some(item) = walk.next()? {
            items.push(Scored::of(item));
        }
        return Ok((0, items));
    };
    let from = [&[ELEMENT][..], &cursor.to_be_bytes()].concat();
    let mut walk = keyspace.sub_walk(of, &from, &[ELEMENT + 1], Direction::Forward);
    let mut last = cursor;
    while let Some((stored, value)) = walk.next()? {
        let (hash, member, score) = element(sub_rest(stored), value)?;
        // Members of one hash come together.
        if items.len() as u64 >= count.max(1) && hash != last {
            return Ok((hash, items));
        }
        last = hash;
        items.push(Scored::of((score, member)));
    }
    Ok((0, items))
}

/// What `OBJECT ENCODING` says.
pub fn encoding(record: &Record) -> &'static str {
    match is_skiplist(record) {
        true => "skiplist",
        false => "listpack",
    }
}
