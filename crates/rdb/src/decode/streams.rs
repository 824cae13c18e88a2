//! Streams: nodes of entries, then the stream's head, then its groups.
//!
//! ```text
//! stream:  count of nodes · nodes · entries · last id · [first id · largest deleted id · entries added] ·
//!          count of groups · groups                                        [..]: from type 19 on
//! node:    id of its master entry (16 bytes, big-endian, as a string) · listpack
//! listpack: live · deleted · n · n names · 0 · entries
//! entry:   flags · ms and seq after the master's · [n · names with] values · entries of the listpack in it
//! group:   name · last id · [entries read] · count · pending: id, time, deliveries ·
//!          count · consumers: name, seen, [active, from type 21 on], count, ids
//! ```
//!
//! This reader is stricter than Redis: numbers have to ascend, the length has to be the count of the entries, no
//! entry may be behind the last number, and a pending entry has one owner.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drumlin_base::{Error, Result};

use crate::cursor::{Cursor, Parsed, bad};
use crate::decode::strings::{count, length, string};
use crate::listpack::{self, Held};
use crate::value::{
    Bytes, Consumer, Entry, Group, Item, Pending, StreamHead, StreamId, estimated_read,
};

/// In the flags of an entry.
const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;

/// The fields that a type of stream stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// Type 15.
    First,
    /// Type 19: counts of entries added, deleted and read.
    Counted,
    /// Type 21: when consumers were active.
    Active,
}

/// Where the next bytes belong.
#[derive(Clone, Copy, Debug)]
enum Next {
    Nodes(u64),
    Head,
    Groups(u64),
    Pending(u64, u64),
    Consumers(u64, u64),
    Owned(u64, u64, u64),
    Done,
}

/// A pending entry whose owner has not come.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    delivered_ms: i64,
    deliveries: u64,
}

/// A stream that is being read.
#[derive(Debug)]
pub(crate) struct StreamBody {
    form: Form,
    next: Option<Next>,
    node: Option<Node>,
    last_node: Option<StreamId>,
    first: Option<StreamId>,
    last: Option<StreamId>,
    entries: u64,
    head: StreamHead,
    groups: HashSet<Bytes>,
    consumers: HashSet<Bytes>,
    /// Pending entries of the group that none of its consumers has yet: the owners come behind all of them.
    pending: HashMap<StreamId, Waiting>,
    /// Consumers of the group.
    owners: usize,
}

impl StreamBody {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            next: None,
            node: None,
            last_node: None,
            first: None,
            last: None,
            entries: 0,
            head: StreamHead::default(),
            groups: HashSet::new(),
            consumers: HashSet::new(),
            pending: HashMap::new(),
            owners: 0,
        }
    }

    /// The next item; none at the end of the stream. After [`crate::cursor::Stop::Short`] only the position of
    /// `input` has changed, which the caller sets back.
    pub(crate) fn step(
        &mut self,
        input: &mut Cursor<'_>,
        bytes_max: usize,
    ) -> Parsed<Option<Item>> {
        loop {
            if let Some(node) = &mut self.node {
                if let Some(entry) = node.entry()? {
                    self.follow(entry.id)?;
                    return Ok(Some(Item::Entry(entry)));
                }
                self.node = None;
            }
            let Some(next) = self.next else {
                // A node is two strings, neither of them short even when it is compressed.
                self.next = Some(Next::Nodes(count(input, 12)?));
                return Ok(None);
            };
            let item = match next {
                Next::Nodes(0) => {
                    self.next = Some(Next::Head);
                    continue;
                }
                Next::Nodes(left) => {
                    self.open_node(input, bytes_max)?;
                    self.next = Some(Next::Nodes(left - 1));
                    return Ok(None);
                }
                Next::Head => self.read_head(input)?,
                Next::Groups(0) => {
                    self.next = Some(Next::Done);
                    continue;
                }
                Next::Groups(left) => self.read_group(input, left - 1, bytes_max)?,
                Next::Pending(0, groups) => {
                    self.next = Some(Next::Consumers(count(input, 10)?, groups));
                    return Ok(None);
                }
                Next::Pending(left, groups) => {
                    self.read_pending(input)?;
                    self.next = Some(Next::Pending(left - 1, groups));
                    return Ok(None);
                }
                Next::Consumers(0, groups) => {
                    if !self.pending.is_empty() {
                        return bad("a pending entry belongs to no consumer");
                    }
                    self.next = Some(Next::Groups(groups));
                    continue;
                }
                Next::Consumers(left, groups) => {
                    self.read_consumer(input, (left - 1, groups), bytes_max)?
                }
                Next::Owned(0, consumers, groups) => {
                    self.next = Some(Next::Consumers(consumers, groups));
                    continue;
                }
                Next::Owned(left, consumers, groups) => {
                    let item = self.read_owned(input)?;
                    self.next = Some(Next::Owned(left - 1, consumers, groups));
                    item
                }
                Next::Done => return Ok(None),
            };
            return Ok(Some(item));
        }
    }

    /// Whether everything was read.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.next, Some(Next::Done)) && self.node.is_none()
    }

    fn follow(&mut self, id: StreamId) -> Result<()> {
        if self.last.is_some_and(|last| last >= id) {
            return Err(Error::corruption("the entries of a stream do not ascend"));
        }
        self.first.get_or_insert(id);
        self.last = Some(id);
        self.entries += 1;
        Ok(())
    }

    fn open_node(&mut self, input: &mut Cursor<'_>, bytes_max: usize) -> Parsed<()> {
        let master = string(input, bytes_max)?;
        let packed = string(input, bytes_max)?;
        let Ok(master) = <[u8; 16]>::try_from(master) else {
            return bad("the key of a node is no number of an entry");
        };
        let master = StreamId::from_be(master);
        if self.last_node.is_some_and(|last| last >= master) {
            return bad("the nodes of a stream do not ascend");
        }
        self.node = Some(Node::open(packed, master)?);
        self.last_node = Some(master);
        Ok(())
    }

    fn read_head(&mut self, input: &mut Cursor<'_>) -> Parsed<Item> {
        let len = length(input)?;
        let mut head = StreamHead {
            last_id: id(input)?,
            max_deleted_id: StreamId::default(),
            entries_added: len,
        };
        if self.form >= Form::Counted {
            // The first number follows from the entries.
            id(input)?;
            head.max_deleted_id = id(input)?;
            head.entries_added = length(input)?;
        }
        let groups = count(input, 5)?;
        if len != self.entries {
            return bad(format!(
                "a stream says {len} entries and has {}",
                self.entries
            ));
        }
        if self.last.is_some_and(|last| last > head.last_id) {
            return bad("an entry of a stream lies behind its last number");
        }
        self.head = head;
        self.next = Some(Next::Groups(groups));
        Ok(Item::Head(head, len))
    }

    fn read_group(&mut self, input: &mut Cursor<'_>, left: u64, bytes_max: usize) -> Parsed<Item> {
        let name = string(input, bytes_max)?;
        let last_id = id(input)?;
        let entries_read = if self.form >= Form::Counted {
            // -1 if it is not known.
            i64::try_from(length(input)?).ok().map(i64::unsigned_abs)
        } else {
            let first = self.first.unwrap_or_default();
            estimated_read(&self.head, self.entries, first, last_id)
        };
        let pending = count(input, 25)?;
        if !self.groups.insert(name.clone()) {
            return bad("a stream has two groups of one name");
        }
        // New ones: clearing takes as long as the largest group was, and there may be many small ones behind it.
        self.pending = HashMap::new();
        self.consumers = HashSet::new();
        self.owners = 0;
        self.next = Some(Next::Pending(pending, left));
        Ok(Item::Group(Group {
            name,
            last_id,
            entries_read,
            ..Group::default()
        }))
    }

    fn read_pending(&mut self, input: &mut Cursor<'_>) -> Parsed<()> {
        let id = StreamId::from_be(input.array()?);
        let waiting = Waiting {
            delivered_ms: i64::from_le_bytes(input.array()?),
            deliveries: length(input)?,
        };
        match self.pending.insert(id, waiting) {
            None => Ok(()),
            Some(_) => bad("an entry is pending twice in a group"),
        }
    }

    fn read_consumer(
        &mut self,
        input: &mut Cursor<'_>,
        (left, groups): (u64, u64),
        bytes_max: usize,
    ) -> Parsed<Item> {
        let name = string(input, bytes_max)?;
        let seen_ms = i64::from_le_bytes(input.array()?);
        let active_ms = if self.form >= Form::Active {
            i64::from_le_bytes(input.array()?)
        } else {
            seen_ms
        };
        let owned = count(input, 16)?;
        if !self.consumers.insert(name.clone()) {
            return bad("a group has two consumers of one name");
        }
        self.owners += 1;
        self.next = Some(Next::Owned(owned, left, groups));
        Ok(Item::Consumer(Consumer {
            name,
            seen_ms,
            active_ms,
        }))
    }

    fn read_owned(&mut self, input: &mut Cursor<'_>) -> Parsed<Item> {
        let id = StreamId::from_be(input.array()?);
        let Some(waiting) = self.pending.remove(&id) else {
            return bad("a consumer has an entry that is not pending, or not its own");
        };
        Ok(Item::Pending(Pending {
            id,
            delivered_ms: waiting.delivered_ms,
            deliveries: waiting.deliveries,
            consumer: self.owners.saturating_sub(1),
        }))
    }
}

/// The number of an entry as two lengths.
fn id(input: &mut Cursor<'_>) -> Parsed<StreamId> {
    Ok(StreamId::new(length(input)?, length(input)?))
}

/// A node whose entries are being given out.
#[derive(Debug)]
struct Node {
    listpack: Vec<u8>,
    at: usize,
    master: StreamId,
    names: Vec<Arc<[u8]>>,
    /// Entries that are left, the deleted ones too.
    left: u64,
}

impl Node {
    fn open(listpack: Vec<u8>, master: StreamId) -> Result<Self> {
        let entries = listpack::walk(&listpack, |_, _| Ok(()))?;
        let at = listpack::FIRST;
        let (names, left) = (Vec::new(), 0);
        let mut node = Self {
            listpack,
            at,
            master,
            names,
            left,
        };
        let (live, deleted) = (node.size(entries)?, node.size(entries)?);
        node.left = live + deleted;
        let names = node.size(entries)?;
        for _ in 0..names {
            let name = node.more()?.to_bytes();
            node.names.push(name.into());
        }
        if node.integer()? != 0 {
            return Err(Error::corruption(
                "the master entry of a stream's node does not end",
            ));
        }
        Ok(node)
    }

    /// The next entry that was not deleted.
    fn entry(&mut self) -> Result<Option<Entry>> {
        while self.left > 0 {
            self.left -= 1;
            let (flags, entry) = self.any_entry()?;
            if flags & DELETED == 0 {
                return Ok(Some(entry));
            }
        }
        match listpack::entry(&self.listpack, self.at)? {
            None => Ok(None),
            Some(_) => Err(Error::corruption(
                "a stream's node has more entries than it says",
            )),
        }
    }

    fn any_entry(&mut self) -> Result<(i64, Entry)> {
        let flags = self.integer()?;
        // A sequence may be smaller than the master's in a later millisecond.
        let id = StreamId {
            ms: self.master.ms.wrapping_add_signed(self.integer()?),
            seq: self.master.seq.wrapping_add_signed(self.integer()?),
        };
        let mut fields = Vec::new();
        let pieces = if flags & SAME_FIELDS == 0 {
            let count = self.size(self.listpack.len() as u64)?;
            for _ in 0..count {
                let name = self.more()?.to_bytes();
                fields.push((name.into(), self.more()?.to_bytes()));
            }
            4 + 2 * count
        } else {
            for place in 0..self.names.len() {
                let value = self.more()?.to_bytes();
                let name = self.names.get(place).cloned();
                fields.extend(name.map(|name| (name, value)));
            }
            3 + self.names.len() as u64
        };
        if u64::try_from(self.integer()?) != Ok(pieces) {
            return Err(Error::corruption(
                "an entry of a stream says another length than it has",
            ));
        }
        Ok((flags, Entry { id, fields }))
    }

    /// A count that is not above `most`.
    fn size(&mut self, most: u64) -> Result<u64> {
        let size = u64::try_from(self.integer()?).ok();
        let size = size.filter(|size| *size <= most);
        size.ok_or_else(|| Error::corruption("a stream's node counts more than it holds"))
    }

    fn integer(&mut self) -> Result<i64> {
        let integer = self.more()?.integer();
        integer.ok_or_else(|| Error::corruption("a number in a stream's node is none"))
    }

    fn more(&mut self) -> Result<Held<'_>> {
        match listpack::entry(&self.listpack, self.at)? {
            Some((held, next)) => {
                self.at = next;
                Ok(held)
            }
            None => Err(Error::corruption("a stream's node ends within an entry")),
        }
    }
}
