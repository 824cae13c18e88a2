//! A stream as commands read and change it.

use drumlin_base::coding::{Reader, put_slice, put_varint64};
use drumlin_base::{Error, Result};

use super::id::StreamId;
use super::node::{Node, NodeLimits};
use crate::failure::Outcome;
use crate::keyspace::{Keyspace, Old, sub_rest};
use crate::record::{Collection, Kind, NewRecord, Record};
use crate::walk::{Direction, Walk};

/// The kinds of entries and of nodes.
pub(super) const ENTRY: u8 = b'e';
pub(super) const NODE: u8 = b'n';

pub(super) fn damaged(part: &str) -> Error {
    Error::corruption(format!("a stream: {part}"))
}

/// The key of `kind` for `id`.
pub(super) fn id_key(kind: u8, id: StreamId) -> Vec<u8> {
    [&[kind][..], &id.to_bytes()].concat()
}

/// The first key of `kind` behind `id`.
pub(super) fn key_behind(kind: u8, id: StreamId) -> Vec<u8> {
    match id.next() {
        Some(next) => id_key(kind, next),
        None => vec![kind + 1],
    }
}

/// See the module. Changes of the entries and of the counters here have to be saved.
#[derive(Debug)]
pub struct Stream {
    record: Option<Record>,
    pub(super) of: Collection,
    pub(super) length: u64,
    pub(super) first: StreamId,
    /// The newest id that was given out.
    pub last: StreamId,
    /// The highest id of an entry that was deleted, but not by a trim.
    pub max_deleted: StreamId,
    /// Entries that were ever added.
    pub entries_added: u64,
    /// Nodes besides the last.
    pub(super) closed: u64,
    /// The last node.
    pub(super) tail: Option<Node>,
}

impl Stream {
    /// The stream at `key`.
    ///
    /// # Errors
    /// `WrongType`; the keyspace's.
    pub fn open(keyspace: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Self>> {
        let record = keyspace.lookup_as(key, Kind::Stream)?;
        Ok(record.map(Self::decode).transpose()?)
    }

    /// That at `key`, or an empty one, which is there once it is saved.
    ///
    /// # Errors
    /// `WrongType`; the keyspace's.
    pub fn open_or_new(keyspace: &mut Keyspace<'_>, key: &[u8]) -> Outcome<Self> {
        if let Some(found) = Self::open(keyspace, key)? {
            return Ok(found);
        }
        Ok(Self {
            record: None,
            of: keyspace.new_collection(key)?,
            length: 0,
            first: StreamId::MIN,
            last: StreamId::MIN,
            max_deleted: StreamId::MIN,
            entries_added: 0,
            closed: 0,
            tail: None,
        })
    }

    fn decode(record: Record) -> Result<Self> {
        let not_whole = || damaged("its record is not whole");
        let of = record.collection().ok_or_else(not_whole)?;
        let mut reader = Reader::new(record.payload());
        let mut read = || {
            let stream = Self {
                record: None,
                of,
                length: reader.varint64()?,
                first: StreamId::decode(&mut reader)?,
                last: StreamId::decode(&mut reader)?,
                max_deleted: StreamId::decode(&mut reader)?,
                entries_added: reader.varint64()?,
                closed: reader.varint64()?,
                tail: None,
            };
            if reader.is_empty() {
                let has_nothing = stream.length == 0 && stream.closed == 0;
                return has_nothing.then_some(stream);
            }
            let first = StreamId::decode(&mut reader)?;
            let tail = Node::decode(first, &mut reader)?;
            let is_sound = tail.live <= stream.length && stream.closed <= stream.length;
            (reader.is_empty() && is_sound).then_some(Self {
                tail: Some(tail),
                ..stream
            })
        };
        let stream = read().ok_or_else(not_whole)?;
        Ok(Self {
            record: Some(record),
            ..stream
        })
    }

    /// Stores it, also if it is empty: a stream goes only with its key.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn save(self, keyspace: &mut Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        let old = self.record.as_ref();
        let expire_ms = old.and_then(Record::expire_ms);
        let mut new = NewRecord::new(Kind::Stream, Some(self.of), expire_ms, 0);
        let out = new.payload();
        put_varint64(out, self.length);
        self.first.encode(out);
        self.last.encode(out);
        self.max_deleted.encode(out);
        put_varint64(out, self.entries_added);
        put_varint64(out, self.closed);
        if let Some(tail) = &self.tail {
            tail.first.encode(out);
            tail.encode(out);
        }
        keyspace.put(key, Old::Is(old), new)
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The id of the first entry; [`StreamId::MIN`] where there is none.
    pub fn first(&self) -> StreamId {
        self.first
    }

    /// Nodes that Redis would have.
    pub fn nodes(&self) -> u64 {
        self.closed + u64::from(self.tail.is_some())
    }

    /// Adds an entry. `pairs` are its fields, each with its value.
    /// Requires: `id` is higher than [`Stream::last`].
    pub fn append(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        id: StreamId,
        pairs: &[&[u8]],
        limits: NodeLimits,
    ) {
        debug_assert!(id > self.last && pairs.len().is_multiple_of(2));
        let mut value = Vec::new();
        put_varint64(&mut value, pairs.len() as u64 / 2);
        for part in pairs {
            put_slice(&mut value, part);
        }
        keyspace.sub_put(self.of, &id_key(ENTRY, id), value);
        let mut node = match self.tail.take() {
            Some(tail) if tail.takes(pairs, limits) => tail,
            Some(full) if full.live > 0 => {
                self.put_node(keyspace, &full);
                self.closed += 1;
                Node::begin(id, pairs)
            }
            _ => Node::begin(id, pairs),
        };
        node.add(id, pairs);
        self.tail = Some(node);
        if self.length == 0 {
            self.first = id;
        }
        self.length += 1;
        self.entries_added = self.entries_added.saturating_add(1);
        self.last = id;
    }

    /// Deletes the entries of `ids`; how many there were.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn delete(&mut self, keyspace: &mut Keyspace<'_>, ids: &[StreamId]) -> Outcome<u64> {
        let mut deleted = 0;
        for id in ids {
            let key = id_key(ENTRY, *id);
            if keyspace.sub_get(self.of, &key)?.is_none() {
                continue;
            }
            keyspace.sub_delete(self.of, &key);
            let node = self.node_of(keyspace, *id)?;
            self.shrink_node(keyspace, node, 1)?;
            self.max_deleted = self.max_deleted.max(*id);
            deleted += 1;
        }
        if deleted > 0 {
            self.find_first(keyspace)?;
        }
        Ok(deleted)
    }

    /// Finds the first entry again, after some at the front were deleted.
    pub(super) fn find_first(&mut self, keyspace: &Keyspace<'_>) -> Outcome<()> {
        let from = self.first;
        self.first = StreamId::MIN;
        if self.length > 0 {
            let mut entries = self.entries(keyspace, (from, StreamId::MAX), Direction::Forward);
            let found = entries.next()?.map(|entry| entry.id);
            drop(entries);
            self.first = found.ok_or_else(|| damaged("an entry is missing"))?;
        }
        Ok(())
    }

    // Nodes.

    fn put_node(&self, keyspace: &mut Keyspace<'_>, node: &Node) {
        let mut value = Vec::new();
        node.encode(&mut value);
        keyspace.sub_put(self.of, &id_key(NODE, node.first), value);
    }

    /// The last closed node that begins at or before `id`.
    fn closed_at(&self, keyspace: &Keyspace<'_>, id: StreamId) -> Outcome<Node> {
        let until = key_behind(NODE, id);
        let mut walk = keyspace.sub_walk(self.of, &[NODE], &until, Direction::Backward);
        let no_node = || damaged("a node is missing");
        let (key, value) = walk.next()?.ok_or_else(no_node)?;
        let first = StreamId::split_last(sub_rest(key)).map(|(_, first)| first);
        let mut reader = Reader::new(value);
        let node = first.and_then(|first| Node::decode(first, &mut reader));
        let node = node.filter(|node| reader.is_empty() && node.live > 0);
        Ok(node.ok_or_else(|| damaged("a node is not whole"))?)
    }

    /// The node of the entry `id`.
    pub(super) fn node_of(&self, keyspace: &Keyspace<'_>, id: StreamId) -> Outcome<Node> {
        match self.tail {
            Some(tail) if tail.first <= id || self.closed == 0 => Ok(tail),
            _ => self.closed_at(keyspace, id),
        }
    }

    /// Notes that so many entries of a node are deleted. A node without any is gone.
    pub(super) fn shrink_node(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        mut node: Node,
        entries: u64,
    ) -> Outcome<()> {
        let too_few = || damaged("it has fewer entries than were deleted");
        node.live = node.live.checked_sub(entries).ok_or_else(too_few)?;
        node.deleted += entries;
        self.length = self.length.checked_sub(entries).ok_or_else(too_few)?;
        let is_tail = self.tail.is_some_and(|tail| tail.first == node.first);
        match (is_tail, node.live) {
            (true, 0) => self.drop_tail(keyspace)?,
            (true, _) => self.tail = Some(node),
            (false, 0) => {
                keyspace.sub_delete(self.of, &id_key(NODE, node.first));
                self.closed = self.closed.checked_sub(1).ok_or_else(too_few)?;
            }
            (false, _) => self.put_node(keyspace, &node),
        }
        Ok(())
    }

    /// The node before the last is the last then: Redis may add entries to it again.
    fn drop_tail(&mut self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        self.tail = None;
        if self.closed > 0 {
            let node = self.closed_at(keyspace, StreamId::MAX)?;
            keyspace.sub_delete(self.of, &id_key(NODE, node.first));
            self.closed -= 1;
            self.tail = Some(node);
        }
        Ok(())
    }

    // Reads.

    /// Whether there is an entry `id`.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn contains(&self, keyspace: &Keyspace<'_>, id: StreamId) -> Outcome<bool> {
        Ok(keyspace.sub_get(self.of, &id_key(ENTRY, id))?.is_some())
    }

    /// The id of the last entry, if there is any.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn top(&self, keyspace: &Keyspace<'_>) -> Outcome<Option<StreamId>> {
        let all = (StreamId::MIN, StreamId::MAX);
        let mut entries = self.entries(keyspace, all, Direction::Backward);
        Ok(entries.next()?.map(|entry| entry.id))
    }

    /// The entries from the first id to the second, both included.
    pub fn entries<'w>(
        &self,
        keyspace: &'w Keyspace<'_>,
        (from, to): (StreamId, StreamId),
        direction: Direction,
    ) -> Entries<'w> {
        // Nothing is before the first entry but what was deleted, which would have to be stepped over.
        let from = id_key(ENTRY, from.max(self.first));
        let until = key_behind(ENTRY, to);
        let walk = (self.length > 0 && from < until)
            .then(|| keyspace.sub_walk(self.of, &from, &until, direction));
        Entries { walk }
    }
}

/// A walk over entries.
#[derive(Debug)]
pub struct Entries<'w> {
    walk: Option<Walk<'w>>,
}

impl Entries<'_> {
    /// The next entry.
    ///
    /// # Errors
    /// The keyspace's.
    #[expect(
        clippy::should_implement_trait,
        reason = "the entry is lent until the next call"
    )]
    pub fn next(&mut self) -> Outcome<Option<Entry<'_>>> {
        let Some(walk) = &mut self.walk else {
            return Ok(None);
        };
        let Some((key, value)) = walk.next()? else {
            return Ok(None);
        };
        let id = StreamId::split_last(sub_rest(key)).map(|(_, id)| id);
        let entry = id.and_then(|id| Entry::decode(id, value));
        Ok(Some(entry.ok_or_else(|| damaged("an entry is not whole"))?))
    }
}

/// An entry as it is stored.
#[derive(Debug)]
pub struct Entry<'e> {
    /// Its id.
    pub id: StreamId,
    fields: u64,
    parts: &'e [u8],
}

impl<'e> Entry<'e> {
    fn decode(id: StreamId, value: &'e [u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let fields = reader.varint64()?;
        let parts = reader.rest();
        // Each part has a byte at least, so a count that is damaged costs no more than the value is long.
        for _ in 0..fields.checked_mul(2)? {
            reader.slice()?;
        }
        reader.is_empty().then_some(Self { id, fields, parts })
    }

    /// How many fields it has.
    pub fn fields(&self) -> u64 {
        self.fields
    }

    /// Its fields, each with its value behind it.
    pub fn parts(&self) -> impl Iterator<Item = &'e [u8]> + use<'e> {
        let mut reader = Reader::new(self.parts);
        std::iter::from_fn(move || reader.slice())
    }
}
