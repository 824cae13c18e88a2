//! The record: the bytes that a key maps to.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 1 | bits 7 to 4: [`Kind`]; bits 3 and 2: 0 whole, 1 collection; bit 1: has an expiry; bit 0: has extras |
//! | 6 | expiry in ms since 1970, big-endian, if bit 1 |
//! | 1 | extras, if bit 0: facts that the type keeps about its encoding; of a hash, bit 1: some fields have an expiry |
//! | 12 | [`FieldTimes`], if some fields have an expiry: both times, big-endian |
//! | rest | the payload, as the type writes it. Of a whole string: its bytes |
//!
//! The payload of a collection begins with slot u16 and cid u48, both big-endian: the prefix of its entries in the `sub`
//! family. So a renamed collection stays where it is.

use drumlin_base::{Error, PinnedSlice, Result};

use crate::keys::{from_u48, u48};

/// The latest expiry that can be stored: 48 bits of milliseconds, the year 10,889.
pub const EXPIRE_MS_MAX: u64 = (1 << 48) - 1;

const KIND_SHIFT: u8 = 4;
const FORM_MASK: u8 = 0b1100;
const COLLECTION: u8 = 0b0100;
const HAS_EXPIRE: u8 = 0b0010;
const HAS_EXTRAS: u8 = 0b0001;
/// Extras of a hash.
const TIMES_FIELDS: u8 = 0b10;

/// When the fields of a hash expire, if any of them does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldTimes {
    /// No field expires before.
    pub first_ms: u64,
    /// When the last field expires; [`EXPIRE_MS_MAX`] where one has no expiry.
    pub last_ms: u64,
}

impl FieldTimes {
    fn to_bytes(self) -> [u8; 12] {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (u48(self.first_ms), u48(self.last_ms));
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    fn from_bytes([a, b, c, d, e, f, g, h, i, j, k, l]: [u8; 12]) -> Option<Self> {
        let (first_ms, last_ms) = (from_u48([a, b, c, d, e, f]), from_u48([g, h, i, j, k, l]));
        (first_ms <= last_ms && first_ms < EXPIRE_MS_MAX).then_some(Self { first_ms, last_ms })
    }

    /// When the hash has no field left.
    fn end_ms(self) -> Option<u64> {
        Some(self.last_ms).filter(|ms| *ms < EXPIRE_MS_MAX)
    }
}

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Bytes, also bitmaps and HyperLogLogs.
    String,
    /// Fields with values.
    Hash,
    /// Elements in an order of their own.
    List,
    /// Members.
    Set,
    /// Members in the order of their scores.
    SortedSet,
    /// Entries by id, with consumer groups.
    Stream,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::String,
        Self::Hash,
        Self::List,
        Self::Set,
        Self::SortedSet,
        Self::Stream,
    ];

    /// The name that `TYPE` answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Stream => "stream",
        }
    }

    /// Its number on disk.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::String => 1,
            Self::Hash => 2,
            Self::List => 3,
            Self::Set => 4,
            Self::SortedSet => 5,
            Self::Stream => 6,
        }
    }
}

/// The prefix of a collection's entries in the `sub` family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collection {
    /// The slot of the key that it was made for.
    pub slot: u16,
    /// Its number.
    pub cid: u64,
}

impl Collection {
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        let [s0, s1] = self.slot.to_be_bytes();
        let [a, b, c, d, e, f] = u48(self.cid);
        [s0, s1, a, b, c, d, e, f]
    }

    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Self {
        let [s0, s1, rest @ ..] = bytes;
        Self {
            slot: u16::from_be_bytes([s0, s1]),
            cid: from_u48(rest),
        }
    }
}

/// A key's record as it was read.
#[derive(Debug)]
pub struct Record {
    bytes: PinnedSlice,
    kind: Kind,
    payload_at: usize,
    expire_ms: Option<u64>,
    extras: u8,
    field_times: Option<FieldTimes>,
    collection: Option<Collection>,
}

impl Record {
    /// The record in `bytes`.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(bytes: PinnedSlice) -> Result<Self> {
        let damaged = || Error::corruption("a record of the keyspace is not whole");
        let (head, mut rest) = bytes.split_first().ok_or_else(damaged)?;
        let number = head >> KIND_SHIFT;
        let kind = Kind::ALL.into_iter().find(|kind| kind.number() == number);
        let kind = kind.ok_or_else(|| Error::corruption(format!("a record of type {number}")))?;
        let mut expire_ms = None;
        if head & HAS_EXPIRE != 0 {
            let (ms, after) = rest.split_first_chunk::<6>().ok_or_else(damaged)?;
            expire_ms = Some(from_u48(*ms));
            rest = after;
        }
        let mut extras = 0;
        if head & HAS_EXTRAS != 0 {
            let (first, after) = rest.split_first().ok_or_else(damaged)?;
            extras = *first;
            rest = after;
        }
        let mut field_times = None;
        if kind == Kind::Hash && extras & TIMES_FIELDS != 0 {
            let (times, after) = rest.split_first_chunk::<12>().ok_or_else(damaged)?;
            field_times = Some(FieldTimes::from_bytes(*times).ok_or_else(damaged)?);
            extras &= !TIMES_FIELDS;
            rest = after;
        }
        let collection = match head & FORM_MASK {
            0 => None,
            COLLECTION => {
                let (prefix, _) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
                Some(Collection::from_bytes(*prefix))
            }
            form => return Err(Error::corruption(format!("a record of form {form}"))),
        };
        let payload_at = bytes.len() - rest.len();
        Ok(Self {
            bytes,
            kind,
            payload_at,
            expire_ms,
            extras,
            field_times,
            collection,
        })
    }

    /// The type of the value.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// When the key expires, in ms since 1970.
    pub fn expire_ms(&self) -> Option<u64> {
        self.expire_ms
    }

    /// When the fields of a hash expire; `None` if none of them does.
    pub fn field_times(&self) -> Option<FieldTimes> {
        self.field_times
    }

    /// After when there is nothing left to see: the key has expired, or all fields of a hash have.
    pub fn end_ms(&self) -> Option<u64> {
        let fields = self.field_times.and_then(FieldTimes::end_ms);
        self.expire_ms.into_iter().chain(fields).min()
    }

    /// Facts that the type keeps about its encoding; 0 if there are none.
    pub fn extras(&self) -> u8 {
        self.extras
    }

    /// The collection that holds the elements; `None` where the payload holds them.
    pub fn collection(&self) -> Option<Collection> {
        self.collection
    }

    /// The bytes of the value; of a collection, those after its prefix.
    pub fn payload(&self) -> &[u8] {
        let skipped = match self.collection {
            Some(_) => 8,
            None => 0,
        };
        self.bytes.get(self.payload_at + skipped..).unwrap_or(&[])
    }

    /// Bytes of the record on disk.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never: a record has a head.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The same record with another expiry.
    pub fn with_expire(&self, expire_ms: Option<u64>) -> NewRecord {
        self.with(self.collection, expire_ms)
    }

    /// The same record with another collection and another expiry.
    pub(crate) fn with(&self, collection: Option<Collection>, expire_ms: Option<u64>) -> NewRecord {
        let times = self.field_times;
        let mut new = NewRecord::timed(self.kind, collection, expire_ms, self.extras, times);
        new.payload().extend_from_slice(self.payload());
        new
    }
}

/// A record that is being written.
#[derive(Clone, Debug)]
pub struct NewRecord {
    bytes: Vec<u8>,
    kind: Kind,
    expire_ms: Option<u64>,
    field_times: Option<FieldTimes>,
    collection: Option<Collection>,
}

impl NewRecord {
    /// A record without a payload.
    ///
    /// # Panics
    /// If the expiry is over [`EXPIRE_MS_MAX`].
    pub fn new(
        kind: Kind,
        collection: Option<Collection>,
        expire_ms: Option<u64>,
        extras: u8,
    ) -> Self {
        Self::timed(kind, collection, expire_ms, extras, None)
    }

    /// As [`NewRecord::new`]; of a hash with the times of its fields.
    pub(crate) fn timed(
        kind: Kind,
        collection: Option<Collection>,
        expire_ms: Option<u64>,
        extras: u8,
        field_times: Option<FieldTimes>,
    ) -> Self {
        let mut head = kind.number() << KIND_SHIFT;
        let mut bytes = Vec::with_capacity(32);
        bytes.push(0);
        if let Some(ms) = expire_ms {
            assert!(ms <= EXPIRE_MS_MAX, "an expiry has 48 bits");
            head |= HAS_EXPIRE;
            bytes.extend_from_slice(&u48(ms));
        }
        let extras = match field_times {
            Some(_) => extras | TIMES_FIELDS,
            None => extras,
        };
        if extras != 0 {
            head |= HAS_EXTRAS;
            bytes.push(extras);
        }
        if let Some(times) = field_times {
            bytes.extend_from_slice(&times.to_bytes());
        }
        if let Some(collection) = collection {
            head |= COLLECTION;
            bytes.extend_from_slice(&collection.to_bytes());
        }
        if let Some(first) = bytes.first_mut() {
            *first = head;
        }
        Self {
            bytes,
            kind,
            expire_ms,
            field_times,
            collection,
        }
    }

    /// A whole string.
    pub fn string(value: &[u8], expire_ms: Option<u64>) -> Self {
        let mut new = Self::new(Kind::String, None, expire_ms, 0);
        new.bytes.reserve_exact(value.len());
        new.bytes.extend_from_slice(value);
        new
    }

    /// The payload is appended here.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its expiry.
    pub fn expire_ms(&self) -> Option<u64> {
        self.expire_ms
    }

    /// When its fields expire, of a hash.
    pub(crate) fn field_times(&self) -> Option<FieldTimes> {
        self.field_times
    }

    /// Its collection.
    pub fn collection(&self) -> Option<Collection> {
        self.collection
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The expiry in a stored record, and whether it is a collection: all that the compaction filter looks at.
pub(crate) fn expiry_of(stored: &[u8]) -> Option<(u64, bool)> {
    let (head, rest) = stored.split_first()?;
    if head & HAS_EXPIRE == 0 {
        return None;
    }
    let (ms, _) = rest.split_first_chunk::<6>()?;
    Some((from_u48(*ms), head & FORM_MASK == COLLECTION))
}

/// After when there is nothing left to see of a stored record, as [`Record::end_ms`].
pub(crate) fn end_of(stored: &[u8]) -> Option<u64> {
    let key = expiry_of(stored).map(|(ms, _)| ms);
    let fields = times_of(stored).and_then(FieldTimes::end_ms);
    key.into_iter().chain(fields).min()
}

/// When the fields of a stored record expire, as [`Record::field_times`].
pub(crate) fn times_of(stored: &[u8]) -> Option<FieldTimes> {
    let head = *stored.first()?;
    let at = if head & HAS_EXPIRE == 0 { 1 } else { 7 };
    let is_hash = head >> KIND_SHIFT == Kind::Hash.number();
    if !is_hash || head & HAS_EXTRAS == 0 || stored.get(at)? & TIMES_FIELDS == 0 {
        return None;
    }
    let times = stored.get(at + 1..)?.first_chunk::<12>()?;
    FieldTimes::from_bytes(*times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_string_costs_one_byte() {
        let bytes = NewRecord::string(b"abc", None).into_bytes();
        assert_eq!(bytes, b"\x10abc");
        let bytes = NewRecord::string(b"abc", Some(0x0102_0304_0506)).into_bytes();
        assert_eq!(bytes, b"\x12\x01\x02\x03\x04\x05\x06abc");
    }

    /// Goal: every record comes back. Method: all kinds, with and without each part.
    #[test]
    fn records_come_back() {
        let places = [
            None,
            Some(Collection {
                slot: 9,
                cid: 1 << 40,
            }),
        ];
        for kind in Kind::ALL {
            for (expire, extras, place) in [None, Some(5), Some(EXPIRE_MS_MAX)]
                .into_iter()
                .flat_map(|expire| [0, 5].map(|extras| (expire, extras)))
                .flat_map(|(expire, extras)| places.map(|place| (expire, extras, place)))
            {
                let mut new = NewRecord::new(kind, place, expire, extras);
                new.payload().extend_from_slice(b"payload");
                let bytes = new.into_bytes();
                let expiry = expire.map(|ms| (ms, place.is_some()));
                assert_eq!(expiry_of(&bytes), expiry);
                let read = Record::decode(PinnedSlice::owned(bytes)).expect("a record");
                assert_eq!(read.kind(), kind);
                assert_eq!(read.expire_ms(), expire);
                assert_eq!(read.extras(), extras);
                assert_eq!(read.collection(), place);
                assert_eq!(read.payload(), b"payload");
                let moved = read.with_expire(None).into_bytes();
                let moved = Record::decode(PinnedSlice::owned(moved)).expect("a record");
                assert_eq!(
                    (moved.expire_ms(), moved.payload()),
                    (None, &b"payload"[..])
                );
            }
        }
    }

    /// Goal: a hash with fields that expire comes back, and ends with the last of them. Method: all forms of its head.
    #[test]
    fn times_of_fields_come_back() {
        let place = Some(Collection { slot: 9, cid: 7 });
        for (expire, extras, place, last_ms, end_ms) in [
            (None, 0, None, 9, Some(9)),
            (Some(8), 0, place, 9, Some(8)),
            (Some(10), 1, None, 9, Some(9)),
            (None, 1, place, EXPIRE_MS_MAX, None),
            (Some(10), 0, place, EXPIRE_MS_MAX, Some(10)),
        ] {
            let times = Some(FieldTimes {
                first_ms: 5,
                last_ms,
            });
            let mut new = NewRecord::timed(Kind::Hash, place, expire, extras, times);
            new.payload().push(42);
            let bytes = new.into_bytes();
            assert_eq!((end_of(&bytes), times_of(&bytes)), (end_ms, times));
            let read = Record::decode(PinnedSlice::owned(bytes)).expect("a record");
            assert_eq!((read.field_times(), read.extras()), (times, extras));
            assert_eq!((read.expire_ms(), read.end_ms()), (expire, end_ms));
            assert_eq!((read.collection(), read.payload()), (place, &[42][..]));
            let moved = read.with_expire(Some(3)).into_bytes();
            let moved = Record::decode(PinnedSlice::owned(moved)).expect("a record");
            assert_eq!((moved.field_times(), moved.end_ms()), (times, Some(3)));
        }
    }

    #[test]
    fn damaged_records_are_refused() {
        for bytes in [
            &b"\x21\x02\0\0\0\0\0\x01\0\0\0\0\0"[..],
            b"\x21\x02\0\0\0\0\0\x02\0\0\0\0\0\x01",
            b"\x21\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"",
            b"\x00",
            b"\x70",
            b"\x12\x01",
            b"\x11",
            b"\x14\x01",
            b"\x18",
            b"\x1c",
        ] {
            assert!(
                Record::decode(PinnedSlice::owned(bytes.to_vec())).is_err(),
                "{bytes:?}"
            );
        }
    }
}
