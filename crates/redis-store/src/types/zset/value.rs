//! A sorted set in either form, as commands read and change it.

use std::cmp::Ordering;
use std::ops::Range;

use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

use super::packed::{Packed, entry_bytes};
use super::score::{Scored, entry, order, score_bytes, score_of, separator, split_entry};
use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keyspace::{Keyspace, Old};
use crate::record::{Collection, Kind, NewRecord, Record};
use crate::tree::{Shape, Tree, TreeWalk};
use crate::walk::Direction;

/// Largest payload of a whole sorted set.
const WHOLE_BYTES_MAX: usize = 2 << 10;
/// Longest member of one.
const WHOLE_MEMBER_BYTES_MAX: usize = 512;
/// Redis has a `skiplist`, and not a `listpack`, beyond so many members or with a longer one.
const LISTPACK_ITEMS_MAX: usize = 128;
const LISTPACK_MEMBER_BYTES_MAX: usize = 64;
/// Extras: it has been a `skiplist`.
const SKIPLIST: u8 = 1;

const SHAPE: Shape = Shape::ordered(separator);

fn damaged(part: &str) -> Error {
    Error::corruption(format!("a sorted set: {part}"))
}

#[derive(Debug)]
enum Form {
    Whole(Packed),
    Tree(Tree),
}

/// See the module. What is changed has to be saved.
#[derive(Debug)]
pub(super) struct Zset {
    record: Option<Record>,
    of: Option<Collection>,
    form: Form,
    extras: u8,
}

/// Whether so many members, the longest of so many bytes, are a `skiplist` in Redis.
pub(super) fn needs_skiplist(items: usize, member_bytes: usize) -> bool {
    items > LISTPACK_ITEMS_MAX || member_bytes > LISTPACK_MEMBER_BYTES_MAX
}

/// Whether Redis would have a `skiplist`.
pub(super) fn is_skiplist(record: &Record) -> bool {
    record.extras() & SKIPLIST != 0
}

impl Zset {
    /// The sorted set at `key`.
    pub(super) fn open(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Self>> {
        let record = keyspace.lookup_as(key, Kind::SortedSet)?;
        Ok(record.map(Self::decode).transpose()?)
    }

    /// The sorted set in a record.
    pub(super) fn decode(record: Record) -> Result<Self> {
        let form = match record.collection() {
            None => Form::Whole(Packed::decode(record.payload())?),
            Some(of) => {
                let mut reader = Reader::new(record.payload());
                let tree = Tree::decode(of, SHAPE, &mut reader)?;
                if tree.is_empty() || !reader.is_empty() {
                    return Err(damaged("its record is not whole"));
                }
                Form::Tree(tree)
            }
        };
        Ok(Self {
            of: record.collection(),
            extras: record.extras(),
            record: Some(record),
            form,
        })
    }

    /// That at `key`, or an empty one.
    pub(super) fn open_or_new(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Self> {
        let found = Self::open(keyspace, key)?;
        Ok(found.unwrap_or_else(|| Self {
            record: None,
            of: None,
            form: Form::Whole(Packed::default()),
            extras: 0,
        }))
    }

    pub(super) fn len(&self) -> u64 {
        match &self.form {
            Form::Whole(packed) => packed.len() as u64,
            Form::Tree(tree) => tree.len(),
        }
    }

    /// The collection that has the members.
    pub(super) fn collection(&self) -> Option<Collection> {
        self.of
    }

    /// The score of a member.
    pub(super) fn score(&self, keyspace: &Keyspace<'_>, member: &[u8]) -> Outcome<Option<f64>> {
        let tree = match &self.form {
            Form::Whole(packed) => {
                let at = packed.find(member);
                return Ok(at.and_then(|at| packed.get(at)).map(|(score, _)| score));
            }
            Form::Tree(tree) => tree,
        };
        let value = keyspace.element(tree.of(), member)?;
        let Some(value) = value else {
            return Ok(None);
        };
        Ok(Some(score_in(&value)?))
    }

    /// Members before the place that `is_before` describes: it is true of those up to some place, and of none behind it.
    pub(super) fn rank_where(
        &self,
        keyspace: &Keyspace<'_>,
        mut is_before: impl FnMut(f64, &[u8]) -> bool,
    ) -> Outcome<u64> {
        let tree = match &self.form {
            Form::Whole(packed) => return Ok(packed.rank(&mut is_before) as u64),
            Form::Tree(tree) => tree,
        };
        let mut is_damaged = false;
        let rank = tree.rank(keyspace, |entry| match split_entry(entry) {
            Some((score, member)) => is_before(score, member),
            None => {
                is_damaged = true;
                false
            }
        })?;
        match is_damaged {
            true => Err(damaged("an entry of its tree is cut").into()),
            false => Ok(rank),
        }
    }

    /// The rank of a member with its score.
    pub(super) fn rank_of(
        &self,
        keyspace: &Keyspace<'_>,
        score: f64,
        member: &[u8],
    ) -> Outcome<u64> {
        self.rank_where(keyspace, |at, other| {
            order((at, other), (score, member)).is_lt()
        })
    }

    /// A walk from the member of `rank` on.
    pub(super) fn walk<'z>(
        &'z self,
        keyspace: &'z Keyspace<'z>,
        rank: u64,
        direction: Direction,
    ) -> Members<'z> {
        match &self.form {
            Form::Whole(packed) => Members::Whole {
                packed,
                next: usize::try_from(rank).ok(),
                direction,
            },
            Form::Tree(tree) => Members::Tree(Box::new(tree.walk(keyspace, rank, direction))),
        }
    }

    // Changes.

    /// Gives a member that has none, or `old`, a score.
    pub(super) fn set(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        key: &[u8],
        item: (f64, &[u8]),
        old: Option<f64>,
    ) -> Outcome<()> {
        let (score, member) = item;
        let len = match old {
            Some(_) => 0,
            None => usize::try_from(self.len()).unwrap_or(usize::MAX),
        };
        if needs_skiplist(len.saturating_add(1), member.len()) {
            self.extras |= SKIPLIST;
        }
        let item = (kept_score(score, self.extras), member);
        let score = item.0;
        let is_too_long = member.len() > WHOLE_MEMBER_BYTES_MAX;
        if let Form::Whole(packed) = &mut self.form {
            if let Some(at) = old.and_then(|_| packed.find(member)) {
                packed.remove(at..at + 1);
            }
            // One that is emptied by this is not stored before the member is in again.
            let fits = packed.size() + entry_bytes(member) < WHOLE_BYTES_MAX;
            if fits && !is_too_long {
                let at = packed.rank(&mut |at, other| order((at, other), item).is_lt());
                packed.insert(at, score, member);
                return Ok(());
            }
        }
        if matches!(self.form, Form::Whole(_)) {
            self.grow(keyspace, key)?;
        } else if let Some(old) = old {
            if self.move_in_leaf(keyspace, old, item)? {
                return Ok(());
            }
            self.remove_entry(keyspace, old, member)?;
        }
        let Form::Tree(tree) = &mut self.form else {
            return Err(damaged("it did not grow").into());
        };
        let new = entry(score, member);
        tree.insert(keyspace, &new, |other| {
            split_entry(other).is_some_and(|other| order(other, item).is_lt())
        })?;
        put_element(keyspace, tree.of(), item);
        Ok(())
    }

    /// Gives a member another score if it stays in its leaf.
    fn move_in_leaf(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        old: f64,
        item: (f64, &[u8]),
    ) -> Outcome<bool> {
        let Form::Tree(tree) = &mut self.form else {
            return Ok(false);
        };
        let new = entry(item.0, item.1);
        let moved = tree.move_in_leaf(
            keyspace,
            |other| compare(other, (old, item.1)),
            &new,
            |other| compare(other, item).is_lt(),
        )?;
        if moved {
            put_element(keyspace, tree.of(), item);
        }
        Ok(moved)
    }

    /// Makes a collection of a whole one.
    fn grow(&mut self, keyspace: &mut Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        if let Form::Whole(packed) = &self.form {
            let of = keyspace.new_collection(key)?;
            let tree = build(keyspace, of, packed.iter())?;
            (self.form, self.of) = (Form::Tree(tree), Some(of));
        }
        Ok(())
    }

    /// Takes the entry of a member out of the tree.
    fn remove_entry(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        score: f64,
        member: &[u8],
    ) -> Outcome<()> {
        let Form::Tree(tree) = &mut self.form else {
            return Ok(());
        };
        if tree.remove_found(keyspace, |other| compare(other, (score, member)))? {
            return Ok(());
        }
        let rank = self.rank_of(keyspace, score, member)?;
        let Form::Tree(tree) = &mut self.form else {
            return Ok(());
        };
        let found = tree.get(keyspace, rank)?;
        let found = found.as_deref().and_then(split_entry);
        if found.is_none_or(|(_, other)| other != member) {
            return Err(damaged("a member is not in its tree").into());
        }
        tree.remove_at(keyspace, rank)
    }

    /// Removes a member that has this score.
    pub(super) fn remove(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        score: f64,
        member: &[u8],
    ) -> Outcome<()> {
        match &mut self.form {
            Form::Whole(packed) => {
                if let Some(at) = packed.find(member) {
                    packed.remove(at..at + 1);
                }
            }
            Form::Tree(tree) => {
                let of = tree.of();
                self.remove_entry(keyspace, score, member)?;
                keyspace.set_element(of, member, None);
            }
        }
        Ok(())
    }

    /// Removes the members of these ranks, which exist. All of them cost no more than one: the collection dies.
    pub(super) fn remove_ranks(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        ranks: Range<u64>,
    ) -> Outcome<()> {
        if ranks == (0..self.len()) {
            self.form = Form::Whole(Packed::default());
            return Ok(());
        }
        match &mut self.form {
            Form::Whole(packed) => {
                let ends = (usize::try_from(ranks.start), usize::try_from(ranks.end));
                if let (Ok(start), Ok(end)) = ends {
                    packed.remove(start..end);
                }
            }
            Form::Tree(tree) => {
                let mut members = Vec::new();
                let mut walk = tree.walk(keyspace, ranks.start, Direction::Forward);
                for _ in ranks.clone() {
                    let found = walk.next()?.and_then(split_entry);
                    let (_, member) = found.ok_or_else(|| damaged("its tree ends early"))?;
                    members.push(member.to_vec());
                }
                for member in members {
                    keyspace.set_element(tree.of(), &member, None);
                }
                tree.remove(keyspace, ranks)?;
            }
        }
        Ok(())
    }

    /// Stores it, or deletes the key if it is empty now, and tells so.
    pub(super) fn save(self, keyspace: &mut Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        let old = self.record.as_ref();
        if self.len() == 0 {
            if let Some(record) = old {
                keyspace.remove(key, record);
                keyspace.event(EventClass::Generic, "del", key);
            }
            return Ok(());
        }
        let expire_ms = old.and_then(Record::expire_ms);
        let of = match &self.form {
            Form::Whole(_) => None,
            Form::Tree(tree) => Some(tree.of()),
        };
        let mut new = NewRecord::new(Kind::SortedSet, of, expire_ms, self.extras);
        match &self.form {
            Form::Whole(packed) => packed.encode(new.payload()),
            Form::Tree(tree) => tree.encode(new.payload()),
        }
        keyspace.put(key, Old::Is(old), new)
    }

    /// Stores the sorted set of `items`, which are in order and not none, at `key`, whatever it had.
    pub(super) fn store(keyspace: &mut Keyspace<'_>, key: &[u8], items: &[Scored]) -> Outcome<()> {
        let longest = items.iter().map(|item| item.member.len()).max();
        let longest = longest.unwrap_or(0);
        let bytes: usize = items.iter().map(|item| entry_bytes(&item.member)).sum();
        let extras = match needs_skiplist(items.len(), longest) {
            true => SKIPLIST,
            false => 0,
        };
        let is_whole = longest <= WHOLE_MEMBER_BYTES_MAX && bytes < WHOLE_BYTES_MAX - 2;
        let items = items.iter().map(|item| {
            let score = kept_score(item.score, extras);
            (score, item.member.as_slice())
        });
        let new = match is_whole {
            true => {
                let mut new = NewRecord::new(Kind::SortedSet, None, None, extras);
                Packed::of(items).encode(new.payload());
                new
            }
            false => {
                let of = keyspace.new_collection(key)?;
                let tree = build(keyspace, of, items)?;
                let mut new = NewRecord::new(Kind::SortedSet, Some(of), None, extras);
                tree.encode(new.payload());
                new
            }
        };
        keyspace.put(key, Old::Unknown, new)
    }
}

/// Redis's `listpack` has no -0: it becomes 0 there. Its `skiplist` keeps the sign.
fn kept_score(score: f64, extras: u8) -> f64 {
    match score == 0.0 && extras & SKIPLIST == 0 {
        true => 0.0,
        false => score,
    }
}

fn score_in(value: &[u8]) -> Result<f64> {
    let bytes: Option<[u8; 8]> = value.try_into().ok();
    let score = bytes.and_then(score_of);
    score.ok_or_else(|| damaged("a member's score is none"))
}

/// The member and the score of an `e` entry.
pub(super) fn element<'e>(rest: &'e [u8], value: &[u8]) -> Result<(u64, &'e [u8], f64)> {
    let split = || {
        let (hash, member) = rest.get(1..)?.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*hash), member))
    };
    let (hash, member) = split().ok_or_else(|| damaged("the key of a member is cut"))?;
    Ok((hash, member, score_in(value)?))
}

fn put_element(keyspace: &mut Keyspace<'_>, of: Collection, (score, member): (f64, &[u8])) {
    keyspace.set_element(of, member, Some(score_bytes(score).to_vec()));
}

/// How an entry of the tree compares with a score and member; a damaged one is behind all.
fn compare(other: &[u8], with: (f64, &[u8])) -> Ordering {
    split_entry(other).map_or(Ordering::Greater, |other| order(other, with))
}

/// The tree and the elements of members that are in order.
fn build<'m>(
    keyspace: &mut Keyspace<'_>,
    of: Collection,
    items: impl Iterator<Item = (f64, &'m [u8])> + Clone,
) -> Outcome<Tree> {
    for item in items.clone() {
        put_element(keyspace, of, item);
    }
    let entries = items.map(|(score, member)| entry(score, member));
    Tree::new(of, SHAPE).build(keyspace, entries)
}

/// A walk over members.
#[derive(Debug)]
pub(super) enum Members<'z> {
    Whole {
        packed: &'z Packed,
        next: Option<usize>,
        direction: Direction,
    },
    Tree(Box<TreeWalk<'z>>),
}

impl Members<'_> {
    /// The next score and member.
    pub(super) fn next(&mut self) -> Outcome<Option<(f64, &[u8])>> {
        match self {
            Self::Whole {
                packed,
                next,
                direction,
            } => {
                let Some(at) = *next else {
                    return Ok(None);
                };
                *next = match direction {
                    Direction::Forward => Some(at + 1),
                    Direction::Backward => at.checked_sub(1),
                };
                Ok(packed.get(at))
            }
            Self::Tree(walk) => {
                let Some(entry) = walk.next()? else {
                    return Ok(None);
                };
                let split = split_entry(entry);
                split
                    .map(Some)
                    .ok_or_else(|| damaged("an entry of its tree is cut").into())
            }
        }
    }
}
