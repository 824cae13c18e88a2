//! Consumer groups: how far a group has read, its consumers, and the entries that were delivered and are not acknowledged yet,
//! the *pending* ones.
//!
//! Their entries stand under the stream's collection and not in its record: what a group does is no change of the stream.

use std::collections::BTreeMap;

use drumlin_base::coding::{Reader, put_slice, put_varint64};

use super::id::StreamId;
use super::value::{Stream, damaged};
use crate::failure::{Failure, Outcome};
use crate::keyspace::{Keyspace, sub_rest};
use crate::record::Collection;
use crate::walk::Direction;

/// The kinds of groups, consumers, and pending entries by id and by consumer.
const GROUP: u8 = b'g';
const CONSUMER: u8 = b'c';
const PENDING: u8 = b'p';
const OWNED: u8 = b'q';

/// Longest name of a group or a consumer: they stand in keys together.
const NAME_BYTES_MAX: usize = 1 << 20;

/// See the module. Changes have to be saved.
#[derive(Debug)]
pub struct Group {
    of: Collection,
    /// Its name.
    pub name: Vec<u8>,
    /// The newest entry that was delivered, or the id it was told to go on from.
    pub last: StreamId,
    /// Entries that were read; `None` where it cannot be known.
    pub entries_read: Option<u64>,
    /// No id above this one was ever pending.
    peak: StreamId,
    pending: u64,
    consumers: u64,
    /// By how much the pending entries of consumers changed.
    tallies: BTreeMap<Vec<u8>, i64>,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: Vec<u8>,
    /// When it last asked for entries, in ms since 1970.
    pub seen_ms: u64,
    /// How many entries are pending for it.
    pub pending: u64,
}

/// An entry that was delivered and is not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The consumer that has it.
    pub consumer: Vec<u8>,
    /// When it was delivered last, in ms since 1970.
    pub delivered_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

fn checked(name: &[u8]) -> Outcome<()> {
    match name.len() > NAME_BYTES_MAX {
        true => Err(Failure::refused(
            "ERR the name of a group or consumer is over 1 MiB",
        )),
        false => Ok(()),
    }
}

/// The key of `kind`, after which come the keys of the group `name` and of no other.
fn group_key(kind: u8, name: &[u8]) -> Vec<u8> {
    let mut key = vec![kind];
    put_slice(&mut key, name);
    key
}

/// The first key behind all that begin with `prefix`, whose first byte is a kind.
fn behind(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            break;
        }
    }
    prefix
}

impl Stream {
    /// Its group called `name`.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn group(&self, keyspace: &Keyspace<'_>, name: &[u8]) -> Outcome<Option<Group>> {
        if name.len() > NAME_BYTES_MAX {
            return Ok(None);
        }
        let value = keyspace.sub_get(self.of, &[&[GROUP], name].concat())?;
        let group = value.map(|value| Group::decode(self.of, name, &value));
        group.transpose()
    }

    /// Its groups, by name.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn groups(&self, keyspace: &Keyspace<'_>) -> Outcome<Vec<Group>> {
        let mut groups = Vec::new();
        let until = [GROUP + 1];
        let mut walk = keyspace.sub_walk(self.of, &[GROUP], &until, Direction::Forward);
        while let Some((key, value)) = walk.next()? {
            let name = sub_rest(key).get(1..).unwrap_or_default();
            groups.push(Group::decode(self.of, name, value)?);
        }
        Ok(groups)
    }

    /// Makes a group that goes on behind `last`.
    /// Requires: there is none of the name.
    ///
    /// # Errors
    /// `Refused` for a name that is too long.
    pub fn create_group(
        &self,
        keyspace: &mut Keyspace<'_>,
        name: &[u8],
        last: StreamId,
        entries_read: Option<u64>,
    ) -> Outcome<()> {
        checked(name)?;
        let group = Group {
            of: self.of,
            name: name.to_vec(),
            last,
            entries_read,
            peak: StreamId::MIN,
            pending: 0,
            consumers: 0,
            tallies: BTreeMap::new(),
        };
        group.save(keyspace)
    }

    /// Whether entries from `from` on were deleted one by one: then nobody knows how many there were.
    fn has_gaps_from(&self, from: StreamId) -> bool {
        let deleted = self.max_deleted;
        self.length > 0 && deleted != StreamId::MIN && self.first <= deleted && from <= deleted
    }

    /// How many entries were ever added up to `id`; `None` where it cannot be known.
    fn rank_ever(&self, id: StreamId) -> Option<u64> {
        let before = self.entries_added.wrapping_sub(self.length);
        let has_no_gaps = self.max_deleted == StreamId::MIN || self.max_deleted < self.first;
        match () {
            () if self.entries_added == 0 => Some(0),
            () if id == self.last || self.length == 0 && id < self.last => Some(self.entries_added),
            () if id > self.last || !has_no_gaps => None,
            () if id < self.first => Some(before),
            () if id == self.first => Some(before.wrapping_add(1)),
            () => None,
        }
    }
}

impl Group {
    fn decode(of: Collection, name: &[u8], value: &[u8]) -> Outcome<Self> {
        let mut reader = Reader::new(value);
        let mut read = || {
            let group = Self {
                of,
                name: name.to_vec(),
                last: StreamId::decode(&mut reader)?,
                entries_read: reader.varint64()?.checked_sub(1),
                peak: StreamId::decode(&mut reader)?,
                pending: reader.varint64()?,
                consumers: reader.varint64()?,
                tallies: BTreeMap::new(),
            };
            reader.is_empty().then_some(group)
        };
        Ok(read().ok_or_else(|| damaged("a group is not whole"))?)
    }

    /// Stores it, and the counts of its consumers.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn save(mut self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        for (name, change) in std::mem::take(&mut self.tallies) {
            let lost = || damaged("a consumer is missing");
            let mut consumer = self.consumer(keyspace, &name)?.ok_or_else(lost)?;
            let pending = consumer.pending.checked_add_signed(change);
            consumer.pending = pending.ok_or_else(|| damaged("a consumer's count is too low"))?;
            self.put_consumer(keyspace, &consumer);
        }
        let mut value = Vec::new();
        self.last.encode(&mut value);
        let read = self.entries_read.map_or(0, |read| read.saturating_add(1));
        put_varint64(&mut value, read);
        self.peak.encode(&mut value);
        put_varint64(&mut value, self.pending);
        put_varint64(&mut value, self.consumers);
        keyspace.sub_put(self.of, &[&[GROUP], &self.name[..]].concat(), value);
        Ok(())
    }

    /// Deletes it with all that it has. Costs a step for each pending entry.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn destroy(self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        for kind in [CONSUMER, PENDING, OWNED] {
            let prefix = group_key(kind, &self.name);
            let mut keys = Vec::new();
            let until = behind(prefix.clone());
            let mut walk = keyspace.sub_walk(self.of, &prefix, &until, Direction::Forward);
            while let Some((key, _)) = walk.next()? {
                keys.push(sub_rest(key).to_vec());
            }
            drop(walk);
            for key in keys {
                keyspace.sub_delete(self.of, &key);
            }
        }
        keyspace.sub_delete(self.of, &[&[GROUP], &self.name[..]].concat());
        Ok(())
    }

    /// How many entries are pending.
    pub fn pending_len(&self) -> u64 {
        self.pending
    }

    /// How many consumers it has.
    pub fn consumers_len(&self) -> u64 {
        self.consumers
    }

    /// How many entries of `stream` it has not read; `None` where it cannot be known.
    pub fn lag(&self, stream: &Stream) -> Option<i64> {
        if stream.entries_added == 0 {
            return Some(0);
        }
        let exact = self
            .entries_read
            .filter(|_| !stream.has_gaps_from(self.last));
        let read = exact.or_else(|| stream.rank_ever(self.last))?;
        Some((stream.entries_added as i64).wrapping_sub(read as i64))
    }

    /// Goes on to `id`, which is an entry of `stream` that it reads.
    pub fn read(&mut self, stream: &Stream, id: StreamId) {
        if id <= self.last {
            return;
        }
        match self.entries_read {
            Some(read) if !stream.has_gaps_from(id) => {
                self.entries_read = Some(read.saturating_add(1));
            }
            _ if stream.entries_added > 0 => self.entries_read = stream.rank_ever(id),
            _ => {}
        }
        self.last = id;
    }

    // Consumers.

    fn consumer_key(&self, name: &[u8]) -> Vec<u8> {
        let mut key = group_key(CONSUMER, &self.name);
        key.extend_from_slice(name);
        key
    }

    fn put_consumer(&self, keyspace: &mut Keyspace<'_>, consumer: &Consumer) {
        let mut value = Vec::new();
        put_varint64(&mut value, consumer.seen_ms);
        put_varint64(&mut value, consumer.pending);
        keyspace.sub_put(self.of, &self.consumer_key(&consumer.name), value);
    }

    /// The consumer called `name`.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn consumer(&self, keyspace: &Keyspace<'_>, name: &[u8]) -> Outcome<Option<Consumer>> {
        if name.len() > NAME_BYTES_MAX {
            return Ok(None);
        }
        let value = keyspace.sub_get(self.of, &self.consumer_key(name))?;
        let found = value.map(|value| Consumer::decode(name, &value));
        found.transpose()
    }

    /// Its consumers, by name.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn consumers(&self, keyspace: &Keyspace<'_>) -> Outcome<Vec<Consumer>> {
        let prefix = group_key(CONSUMER, &self.name);
        let (skipped, until) = (prefix.len(), behind(prefix.clone()));
        let mut consumers = Vec::new();
        let mut walk = keyspace.sub_walk(self.of, &prefix, &until, Direction::Forward);
        while let Some((key, value)) = walk.next()? {
            let name = sub_rest(key).get(skipped..).unwrap_or_default();
            consumers.push(Consumer::decode(name, value)?);
        }
        Ok(consumers)
    }

    /// Notes that the consumer `name` asked for something now; whether it is new.
    ///
    /// # Errors
    /// `Refused` for a name that is too long; the keyspace's.
    pub fn see(&mut self, keyspace: &mut Keyspace<'_>, name: &[u8]) -> Outcome<bool> {
        checked(name)?;
        let found = self.consumer(keyspace, name)?;
        let is_new = found.is_none();
        self.consumers += u64::from(is_new);
        let consumer = Consumer {
            name: name.to_vec(),
            seen_ms: keyspace.now_ms(),
            pending: found.map_or(0, |found| found.pending),
        };
        self.put_consumer(keyspace, &consumer);
        Ok(is_new)
    }

    /// Adds the consumer `name`, which was seen last at `seen_ms`.
    /// Requires: it is not there.
    ///
    /// # Errors
    /// `Refused` for a name that is too long.
    pub fn add_consumer(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        name: &[u8],
        seen_ms: u64,
    ) -> Outcome<()> {
        checked(name)?;
        self.consumers += 1;
        let consumer = Consumer {
            name: name.to_vec(),
            seen_ms,
            pending: 0,
        };
        self.put_consumer(keyspace, &consumer);
        Ok(())
    }

    /// Deletes a consumer, and what is pending for it: the number of that. Costs a step for each.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn delete_consumer(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        name: &[u8],
    ) -> Outcome<Option<u64>> {
        let Some(consumer) = self.consumer(keyspace, name)? else {
            return Ok(None);
        };
        let mut ids = Vec::new();
        let all = (StreamId::MIN, StreamId::MAX);
        self.each_owned(keyspace, name, all, |id| {
            ids.push(id);
            Ok(true)
        })?;
        for id in ids {
            keyspace.sub_delete(self.of, &self.pending_key(id));
            keyspace.sub_delete(self.of, &self.owned_key(name, id));
        }
        let left = self.pending.checked_sub(consumer.pending);
        self.pending = left.ok_or_else(|| damaged("a group's count is too low"))?;
        self.consumers = self.consumers.saturating_sub(1);
        keyspace.sub_delete(self.of, &self.consumer_key(name));
        Ok(Some(consumer.pending))
    }

    // Pending entries.

    fn pending_key(&self, id: StreamId) -> Vec<u8> {
        let mut key = group_key(PENDING, &self.name);
        key.extend_from_slice(&id.to_bytes());
        key
    }

    fn owned_key(&self, consumer: &[u8], id: StreamId) -> Vec<u8> {
        let mut key = group_key(OWNED, &self.name);
        put_slice(&mut key, consumer);
        key.extend_from_slice(&id.to_bytes());
        key
    }

    /// The pending entry `id`.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn pending(&self, keyspace: &Keyspace<'_>, id: StreamId) -> Outcome<Option<Pending>> {
        if id > self.peak {
            return Ok(None);
        }
        let value = keyspace.sub_get(self.of, &self.pending_key(id))?;
        value.map(|value| Pending::decode(&value)).transpose()
    }

    /// Puts the pending entry `id`, in place of `old` if there was one.
    /// Requires: its consumer was seen.
    pub fn put_pending(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        id: StreamId,
        old: Option<&Pending>,
        new: &Pending,
    ) {
        if old.is_none_or(|old| old.consumer != new.consumer) {
            if let Some(old) = old {
                self.disown(keyspace, id, &old.consumer);
            }
            let key = self.owned_key(&new.consumer, id);
            keyspace.sub_put(self.of, &key, Vec::new());
            *self.tallies.entry(new.consumer.clone()).or_default() += 1;
        }
        self.pending += u64::from(old.is_none());
        self.peak = self.peak.max(id);
        let mut value = Vec::new();
        put_varint64(&mut value, new.delivered_ms);
        put_varint64(&mut value, new.deliveries);
        value.extend_from_slice(&new.consumer);
        keyspace.sub_put(self.of, &self.pending_key(id), value);
    }

    fn disown(&mut self, keyspace: &mut Keyspace<'_>, id: StreamId, consumer: &[u8]) {
        keyspace.sub_delete(self.of, &self.owned_key(consumer, id));
        *self.tallies.entry(consumer.to_vec()).or_default() -= 1;
    }

    /// Deletes the pending entry `id`, which was read.
    pub fn settle(&mut self, keyspace: &mut Keyspace<'_>, id: StreamId, old: &Pending) {
        self.disown(keyspace, id, &old.consumer);
        self.pending = self.pending.saturating_sub(1);
        keyspace.sub_delete(self.of, &self.pending_key(id));
    }

    /// Calls `take` with each pending entry from the first id to the second, both included, until it says no.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn each_pending(
        &self,
        keyspace: &Keyspace<'_>,
        (from, to): (StreamId, StreamId),
        direction: Direction,
        mut take: impl FnMut(StreamId, Pending) -> Outcome<bool>,
    ) -> Outcome<()> {
        let until = match to.next() {
            Some(next) => self.pending_key(next),
            None => behind(group_key(PENDING, &self.name)),
        };
        let mut walk = keyspace.sub_walk(self.of, &self.pending_key(from), &until, direction);
        while let Some((key, value)) = walk.next()? {
            let (_, id) = StreamId::split_last(key).ok_or_else(|| damaged("a key is cut"))?;
            if !take(id, Pending::decode(value)?)? {
                break;
            }
        }
        Ok(())
    }

    /// As [`Group::each_pending`], for the ids of one consumer.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn each_owned(
        &self,
        keyspace: &Keyspace<'_>,
        consumer: &[u8],
        (from, to): (StreamId, StreamId),
        mut take: impl FnMut(StreamId) -> Outcome<bool>,
    ) -> Outcome<()> {
        let from = self.owned_key(consumer, from);
        let until = behind(self.owned_key(consumer, to));
        let mut walk = keyspace.sub_walk(self.of, &from, &until, Direction::Forward);
        while let Some((key, _)) = walk.next()? {
            let (_, id) = StreamId::split_last(key).ok_or_else(|| damaged("a key is cut"))?;
            if !take(id)? {
                break;
            }
        }
        Ok(())
    }
}

impl Consumer {
    fn decode(name: &[u8], value: &[u8]) -> Outcome<Self> {
        let mut reader = Reader::new(value);
        let numbers = reader.varint64().zip(reader.varint64());
        let numbers = numbers.filter(|_| reader.is_empty());
        let (seen_ms, pending) = numbers.ok_or_else(|| damaged("a consumer is not whole"))?;
        Ok(Self {
            name: name.to_vec(),
            seen_ms,
            pending,
        })
    }
}

impl Pending {
    fn decode(value: &[u8]) -> Outcome<Self> {
        let mut reader = Reader::new(value);
        let numbers = reader.varint64().zip(reader.varint64());
        let not_whole = || damaged("a pending entry is not whole");
        let (delivered_ms, deliveries) = numbers.ok_or_else(not_whole)?;
        Ok(Self {
            consumer: reader.rest().to_vec(),
            delivered_ms,
            deliveries,
        })
    }
}
