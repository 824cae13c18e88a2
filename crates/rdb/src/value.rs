//! The content of the files: values, and the items that they come in.

use std::sync::Arc;

/// A string of Redis: any bytes.
pub type Bytes = Vec<u8>;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A string.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    ZSet,
    /// A hash.
    Hash,
    /// A stream.
    Stream,
}

/// A whole value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    String(Bytes),
    /// Elements from head to tail.
    List(Vec<Bytes>),
    /// Members in the order of the file.
    Set(Vec<Bytes>),
    /// Members and scores in the order of the file; no score is a NaN.
    ZSet(Vec<(Bytes, f64)>),
    /// Fields in the order of the file.
    Hash(Vec<Field>),
    /// A stream.
    Stream(Box<Stream>),
}

impl Value {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::String(_) => Kind::String,
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::ZSet(_) => Kind::ZSet,
            Self::Hash(_) => Kind::Hash,
            Self::Stream(_) => Kind::Stream,
        }
    }
}

/// A field of a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: Bytes,
    /// Its value.
    pub value: Bytes,
    /// When it expires, in milliseconds of Unix time.
    pub expire_ms: Option<u64>,
}

/// The number of an entry of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds.
    pub ms: u64,
    /// Sequence within the millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The number `ms-seq`.
    pub const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    pub(crate) fn from_be(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self::new((both >> 64) as u64, both as u64)
    }

    pub(crate) fn to_be(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: StreamId,
    /// Names and values. Entries of one node share their names.
    pub fields: Vec<(Arc<[u8]>, Bytes)>,
}

/// The fields of a stream beside its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamHead {
    /// The last number given out.
    pub last_id: StreamId,
    /// The largest number of an entry that was deleted.
    pub max_deleted_id: StreamId,
    /// Entries that were ever added.
    pub entries_added: u64,
}

/// A group of consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Bytes,
    /// The last entry that it delivered.
    pub last_id: StreamId,
    /// How many entries it has read, if that is known.
    pub entries_read: Option<u64>,
    /// Entries that were delivered and not acknowledged, by number.
    pub pending: Vec<Pending>,
    /// Its consumers.
    pub consumers: Vec<Consumer>,
}

/// An entry that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The entry.
    pub id: StreamId,
    /// When it was delivered last, in milliseconds of Unix time.
    pub delivered_ms: i64,
    /// How often it was delivered.
    pub deliveries: u64,
    /// Its owner: an index in [`Group::consumers`].
    pub consumer: usize,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: Bytes,
    /// When it was last there, in milliseconds of Unix time.
    pub seen_ms: i64,
    /// When it last got something; -1 for never.
    pub active_ms: i64,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Its entries, by number.
    pub entries: Vec<Entry>,
    /// The fields beside them.
    pub head: StreamHead,
    /// Its groups.
    pub groups: Vec<Group>,
}

/// A part of a value, as it comes out of a file. A stream comes as its entries, its head, and for each group
/// the group, and for each consumer the consumer and the pending entries that it owns.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A whole string.
    String(Bytes),
    /// The next element of a list.
    Element(Bytes),
    /// A member of a set.
    Member(Bytes),
    /// A member of a sorted set, and its score.
    Scored(Bytes, f64),
    /// A field of a hash.
    Field(Field),
    /// The next entry of a stream.
    Entry(Entry),
    /// The fields of a stream beside its entries, and the number of these.
    Head(StreamHead, u64),
    /// A group, with nothing pending and no consumers yet.
    Group(Group),
    /// A consumer of the last group.
    Consumer(Consumer),
    /// A pending entry of the last group, whose consumer has come: in files it is the last one.
    Pending(Pending),
}

/// Redis's count of the entries that a group has read, up to `id`, when the file has none: computed from the
/// head of the stream, the number of its entries and its first one. None when it cannot be known.
pub(crate) fn estimated_read(
    head: &StreamHead,
    len: u64,
    first: StreamId,
    id: StreamId,
) -> Option<u64> {
    let zero = StreamId::default();
    if head.entries_added == 0 {
        return Some(0);
    }
    if len == 0 && id <= head.last_id {
        return Some(head.entries_added);
    }
    if id != zero && id < head.max_deleted_id {
        return None;
    }
    if id == head.last_id {
        return Some(head.entries_added);
    }
    if id > head.last_id || (head.max_deleted_id != zero && head.max_deleted_id >= first) {
        return None;
    }
    let before = head.entries_added.wrapping_sub(len);
    match id.cmp(&first) {
        std::cmp::Ordering::Less => Some(before),
        std::cmp::Ordering::Equal => Some(before.wrapping_add(1)),
        std::cmp::Ordering::Greater => None,
    }
}
