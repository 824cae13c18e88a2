//! Where Redis would begin its nodes: lists of entries packed into one piece of memory, a *listpack* each.
//!
//! A node takes entries until it has so many, deleted ones counted, or would have so many bytes. How many it would have is
//! reckoned from Redis's encoding: the first entry's fields stand once for all entries that have the same.

use drumlin_base::coding::{Reader, put_varint64};
use xxhash_rust::xxh3::xxh3_64;

use super::id::StreamId;
use crate::types::string::integer;

/// Head and end of a listpack.
const LISTPACK_BYTES: u64 = 7;
/// Bytes of a node where the configuration names no bound.
const NODE_BYTES_MAX: u64 = 1 << 30;

/// The bounds of nodes, from the configuration; 0 for none.
#[derive(Clone, Copy, Debug)]
pub struct NodeLimits {
    /// `stream-node-max-entries`.
    pub entries_max: u64,
    /// `stream-node-max-bytes`.
    pub bytes_max: u64,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self {
            entries_max: 100,
            bytes_max: 4_096,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The id of the entry that it began with, and of its latest; both may be deleted.
    pub(super) first: StreamId,
    pub(super) last: StreamId,
    /// Entries that are there, and such as were deleted.
    pub(super) live: u64,
    pub(super) deleted: u64,
    /// In Redis, but for the two counts.
    bytes: u64,
    /// A hash of the first entry's fields, which tells whether another has the same.
    fields: u64,
}

/// The fields of an entry, without the values.
fn fields_hash(pairs: &[&[u8]]) -> u64 {
    let mut bytes = Vec::new();
    for field in pairs.iter().step_by(2) {
        put_varint64(&mut bytes, field.len() as u64);
        bytes.extend_from_slice(field);
    }
    xxh3_64(&bytes)
}

impl Node {
    /// A node that begins with the entry `id`, which is to be added.
    pub(super) fn begin(id: StreamId, pairs: &[&[u8]]) -> Self {
        let fields = pairs.iter().step_by(2);
        let fields_bytes: u64 = fields.map(|field| element_bytes(field)).sum();
        let count = integer_bytes(pairs.len() as i64 / 2);
        Self {
            first: id,
            last: id,
            live: 0,
            deleted: 0,
            bytes: LISTPACK_BYTES + count + fields_bytes + integer_bytes(0),
            fields: fields_hash(pairs),
        }
    }

    /// Whether an entry with these fields and values goes into this node.
    pub(super) fn takes(&self, pairs: &[&[u8]], limits: NodeLimits) -> bool {
        let bytes: usize = pairs.iter().map(|part| part.len()).sum();
        let counts = integer_bytes(self.live as i64) + integer_bytes(self.deleted as i64);
        let most = match limits.bytes_max {
            1..=NODE_BYTES_MAX => limits.bytes_max,
            _ => NODE_BYTES_MAX,
        };
        let entries = self.live + self.deleted;
        let has_room = limits.entries_max == 0 || entries < limits.entries_max;
        has_room && self.bytes + counts + (bytes as u64) < most
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, id: StreamId, pairs: &[&[u8]]) {
        let same = fields_hash(pairs) == self.fields;
        let values = pairs.iter().skip(usize::from(same));
        let written = values.step_by(1 + usize::from(same));
        let written: u64 = written.map(|part| element_bytes(part)).sum();
        let count = pairs.len() as i64 / 2;
        let ms = id.ms.wrapping_sub(self.first.ms) as i64;
        let seq = id.seq.wrapping_sub(self.first.seq) as i64;
        let (fields, parts) = match same {
            true => (0, count + 3),
            false => (integer_bytes(count), count * 2 + 4),
        };
        let flags = integer_bytes(0);
        let head = flags + integer_bytes(ms) + integer_bytes(seq) + fields;
        self.bytes += head + written + integer_bytes(parts);
        self.live += 1;
        self.last = id;
    }

    /// Everything but the first id, which is in the key or before it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.last.encode(out);
        put_varint64(out, self.live);
        put_varint64(out, self.deleted);
        put_varint64(out, self.bytes);
        out.extend_from_slice(&self.fields.to_be_bytes());
    }

    /// The rest of the node that begins with `first`.
    pub(super) fn decode(first: StreamId, reader: &mut Reader<'_>) -> Option<Self> {
        let last = StreamId::decode(reader)?;
        let live = reader.varint64()?;
        let deleted = reader.varint64()?;
        let bytes = reader.varint64()?;
        let fields = u64::from_be_bytes(reader.bytes(8)?.try_into().ok()?);
        // Sums of these must not overflow.
        let is_sound = first <= last && [live, deleted, bytes].iter().all(|it| *it < 1 << 48);
        is_sound.then_some(Self {
            first,
            last,
            live,
            deleted,
            bytes,
            fields,
        })
    }
}

/// Bytes of an element of a listpack, with the length behind it.
fn element_bytes(text: &[u8]) -> u64 {
    if let Some(number) = integer(text) {
        return integer_bytes(number);
    }
    let len = text.len() as u64;
    with_length(match len {
        0..64 => 1 + len,
        64..4_096 => 2 + len,
        _ => 5 + len,
    })
}

fn integer_bytes(number: i64) -> u64 {
    with_length(match number {
        0..=127 => 1,
        -4_096..=4_095 => 2,
        -32_768..=32_767 => 3,
        -8_388_608..=8_388_607 => 4,
        -2_147_483_648..=2_147_483_647 => 5,
        _ => 9,
    })
}

fn with_length(bytes: u64) -> u64 {
    bytes
        + match bytes {
            0..=127 => 1,
            128..16_383 => 2,
            16_383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64) -> StreamId {
        StreamId { ms, seq: 0 }
    }

    #[test]
    fn nodes_come_back() {
        let mut node = Node::begin(id(5), &[b"field", b"value"]);
        node.add(id(5), &[b"field", b"value"]);
        node.add(id(7), &[b"other", b"1"]);
        let mut bytes = Vec::new();
        node.encode(&mut bytes);
        let read = |bytes: &[u8]| Node::decode(id(5), &mut Reader::new(bytes));
        assert_eq!(read(&bytes), Some(node));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None);
        }
        assert_eq!(Node::decode(id(8), &mut Reader::new(&bytes)), None);
    }

    /// Goal: a node ends where Redis's does. Method: the entries 1-1, 1-2 and so on until `XINFO STREAM` of Redis 7.0.15
    /// tells of a second node.
    #[test]
    fn nodes_end_by_count_and_by_bytes() {
        let fill = |pairs: &[&[u8]], limits| {
            let entry = |seq| StreamId { ms: 1, seq };
            let mut node = Node::begin(entry(1), pairs);
            while node.takes(pairs, limits) {
                node.add(entry(node.live + 1), pairs);
            }
            node.live
        };
        let limits = NodeLimits::default();
        assert_eq!(fill(&[b"f", b"v"], limits), 100);
        let long = [b'x'; 100];
        assert_eq!(fill(&[b"f", &long], limits), 36);
        let none = NodeLimits {
            entries_max: 0,
            ..limits
        };
        assert_eq!(fill(&[b"f", b"12345"], none), 323);
    }
}
