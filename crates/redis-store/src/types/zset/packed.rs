//! A whole sorted set: all of it in one piece of memory.

use std::ops::Range;

use drumlin_base::coding::{Reader, put_slice, put_varint64, varint_len};
use drumlin_base::{Error, Result};

use super::score::{order, score_bytes, score_of};

/// Bytes of a score.
const SCORE_BYTES: usize = 8;

/// A place of a member.
#[derive(Clone, Debug)]
struct Item {
    score: f64,
    /// The entry in the bytes.
    entry: Range<usize>,
    /// Where the member begins.
    member_at: usize,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

/// Bytes of an entry.
pub(super) fn entry_bytes(member: &[u8]) -> usize {
    SCORE_BYTES + varint_len(member.len() as u64) + member.len()
}

impl Packed {
    /// The set in a record's payload.
    pub(super) fn decode(payload: &[u8]) -> Result<Self> {
        Self::read(payload).ok_or_else(|| Error::corruption("a sorted set is not whole"))
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(payload);
        let count = usize::try_from(reader.varint32()?).ok()?;
        let bytes = reader.rest().to_vec();
        let mut items: Vec<Item> = Vec::with_capacity(count.min(bytes.len() / SCORE_BYTES));
        let mut reader = Reader::new(&bytes);
        for _ in 0..count {
            let start = bytes.len() - reader.rest().len();
            let (score, _) = reader.bytes(SCORE_BYTES)?.split_first_chunk::<8>()?;
            let score = score_of(*score)?;
            let member = reader.slice()?;
            let end = bytes.len() - reader.rest().len();
            items.push(Item {
                score,
                entry: start..end,
                member_at: end - member.len(),
            });
        }
        let is_whole = reader.is_empty() && count > 0;
        let packed = is_whole.then_some(Self { bytes, items })?;
        let in_order = (1..packed.len()).all(|at| {
            let pair = packed.get(at - 1).zip(packed.get(at));
            pair.is_some_and(|(one, next)| order(one, next).is_lt())
        });
        in_order.then_some(packed)
    }

    /// The set of `items`, which are in order.
    pub(super) fn of<'m>(items: impl Iterator<Item = (f64, &'m [u8])>) -> Self {
        let mut packed = Self::default();
        for (at, (score, member)) in items.enumerate() {
            packed.insert(at, score, member);
        }
        packed
    }

    /// Appends the payload.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.items.len() as u64);
        out.extend_from_slice(&self.bytes);
    }

    /// Bytes of the payload.
    pub(super) fn size(&self) -> usize {
        varint_len(self.items.len() as u64) + self.bytes.len()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<(f64, &[u8])> {
        let item = self.items.get(at)?;
        Some((item.score, self.bytes.get(item.member_at..item.entry.end)?))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (f64, &[u8])> + Clone {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// The place of a member.
    pub(super) fn find(&self, member: &[u8]) -> Option<usize> {
        self.iter().position(|(_, other)| other == member)
    }

    /// Members before the place that `is_before` describes.
    pub(super) fn rank(&self, is_before: &mut dyn FnMut(f64, &[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle) {
                Some((score, member)) if is_before(score, member) => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// Inserts a member at its place.
    pub(super) fn insert(&mut self, at: usize, score: f64, member: &[u8]) {
        let start = match self.items.get(at) {
            Some(item) => item.entry.start,
            None => self.bytes.len(),
        };
        let mut entry = score_bytes(score).to_vec();
        put_slice(&mut entry, member);
        let len = entry.len();
        self.bytes.splice(start..start, entry);
        for item in self.items.iter_mut().skip(at) {
            item.entry = item.entry.start + len..item.entry.end + len;
            item.member_at += len;
        }
        let item = Item {
            score,
            entry: start..start + len,
            member_at: start + len - member.len(),
        };
        self.items.insert(at.min(self.items.len()), item);
    }

    /// Removes the members of these ranks, which exist.
    pub(super) fn remove(&mut self, ranks: Range<usize>) {
        let ends = self.items.get(ranks.clone());
        let ends = ends.and_then(|items| items.first().zip(items.last()));
        let Some((first, last)) = ends else {
            return;
        };
        let cut = first.entry.start..last.entry.end;
        self.bytes.drain(cut.clone());
        self.items.drain(ranks.clone());
        for item in self.items.iter_mut().skip(ranks.start) {
            item.entry = item.entry.start - cut.len()..item.entry.end - cut.len();
            item.member_at -= cut.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `docs/format/redis.md`, every cut of it, and members out of order.
    #[test]
    fn whole_sets_have_the_bytes_of_the_document() {
        let mut packed = Packed::default();
        packed.insert(0, 1.0, b"a");
        packed.insert(0, -0.0, b"b");
        let mut bytes = Vec::new();
        packed.encode(&mut bytes);
        let wanted = b"\x02\x80\0\0\0\0\0\0\0\x01b\x3f\xf0\0\0\0\0\0\0\x01a";
        assert_eq!(bytes, wanted);
        assert_eq!(bytes.len(), packed.size());
        let read = Packed::decode(&bytes).expect("whole");
        assert!(read.iter().eq(packed.iter()));
        for cut in 0..bytes.len() {
            assert!(Packed::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        bytes[1] = 0x40;
        assert!(Packed::decode(&bytes).is_err(), "2 before 1");
    }
}
