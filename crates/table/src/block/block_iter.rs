//! A cursor over the entries of one block.
//!
//! The cursor pins its block. The present key is rebuilt in a buffer that is reused: a step copies
//! only the bytes the key does not share with the key before it. Values stay in the block.

use std::cmp::Ordering;

use drumlin_base::key::{
    TAG_BYTES, compare_internal, internal_key_prefix, user_key, user_key_prefix,
};
use drumlin_base::{Error, KeyOrder, Result};

use super::layout::{Block, BlockView, entry_header, last_restart_before};
use super::point::begins_with;

/// Walks one block of internal keys.
///
/// Invariant: while valid, `key` is the whole internal key of the entry at `at`, at least
/// [`TAG_BYTES`] long, the value is `value_at..next_at`, and `next_at <= entries.len()`. `behind`
/// holds entries of this block only, each ending where the one kept after it begins. `front` is
/// always the first eight bytes of `key` as a number, high byte first, padded with zeros.
#[derive(Debug, Default)]
pub(crate) struct BlockIter {
    block: Option<Block>,
    key: Vec<u8>,
    front: u64,
    at: usize,
    value_at: usize,
    next_at: usize,
    valid: bool,
    damaged: bool,
    /// Entries before the present one, decoded by an earlier step back; the nearest is last.
    behind: Vec<Behind>,
    /// Their keys, one behind the other.
    behind_keys: Vec<u8>,
}

/// An entry that a step back has decoded on its way from the restart point.
#[derive(Clone, Copy, Debug)]
struct Behind {
    at: usize,
    value_at: usize,
    next_at: usize,
    key_start: usize,
    front: u64,
}

impl BlockIter {
    /// Moves to another block; the cursor is not valid until it is positioned.
    pub(crate) fn set_block(&mut self, block: Block) {
        self.block = Some(block);
        self.forget_behind();
        self.valid = false;
        self.damaged = false;
    }

    /// The block under the cursor.
    pub(crate) fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }

    /// Lets go of the block.
    pub(crate) fn clear(&mut self) {
        self.block = None;
        self.valid = false;
        self.damaged = false;
    }

    /// Whether the cursor stands on an entry.
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    /// The internal key under the cursor.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The key under the cursor's [`drumlin_base::InternalIterator::key_prefix`].
    #[inline]
    pub(crate) fn key_prefix(&self) -> u64 {
        if self.key.len() >= 8 + TAG_BYTES {
            self.front
        } else {
            internal_key_prefix(&self.key)
        }
    }

    /// The value under the cursor.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        debug_assert!(self.valid, "a value under no entry");
        match &self.block {
            Some(block) => block
                .bytes()
                .get(self.value_at..self.next_at)
                .expect("an entry that was decoded is in its block"),
            None => &[],
        }
    }

    /// The block, and where the value under the cursor is in it.
    pub(crate) fn value_range(&self) -> Option<(&Block, std::ops::Range<usize>)> {
        Some((self.block.as_ref()?, self.value_at..self.next_at))
    }

    /// Where the entry under the cursor begins; `None` if it has not all of its tag itself, or there is none.
    pub(crate) fn at_with_own_tag(&self) -> Option<usize> {
        let block = self.block.as_ref().filter(|_| self.valid)?;
        let header = entry_header(block.entries(), self.at)?;
        (header.unshared >= TAG_BYTES).then_some(self.at)
    }

    /// Whether the block turned out not to decode; the cursor is then not valid.
    ///
    /// # Errors
    /// `Corruption`.
    pub(crate) fn status(&self) -> Result<()> {
        if self.damaged {
            return Err(Error::corruption("block entry does not decode"));
        }
        Ok(())
    }

    /// Stands on the first entry.
    pub(crate) fn seek_to_first(&mut self) {
        self.stand_before(0);
        self.next();
    }

    /// Stands on the last entry.
    pub(crate) fn seek_to_last(&mut self) {
        let Some(block) = &self.block else { return };
        let (last, end) = (block.restart_count() - 1, block.entries().len());
        if end == 0 {
            self.valid = false;
            return;
        }
        match block.restart(last) {
            Some(at) => self.walk_to_entry_before(at as usize, end),
            None => self.fail(),
        }
    }

    /// Stands on the first entry at or after `target`. With `by_prefixes` the block's key prefixes are
    /// searched, and made if it has none.
    pub(crate) fn seek(&mut self, order: &KeyOrder, target: &[u8], by_prefixes: bool) {
        let by_prefixes = by_prefixes && matches!(order, KeyOrder::Bytewise);
        if !(by_prefixes && self.stand_by_prefixes(user_key(target))) {
            self.stand_by_restarts(order, target);
        }
        while self.valid && compare_internal(order, &self.key, target) == Ordering::Less {
            self.next();
        }
    }

    /// Stands on the first entry whose key prefix is not before the target's. False when the key prefixes do not
    /// tell enough.
    fn stand_by_prefixes(&mut self, user_key: &[u8]) -> bool {
        let Some(block) = &self.block else {
            return false;
        };
        let (entries, Some(prefixes)) = (block.entries(), block.key_prefixes()) else {
            return false;
        };
        if begins_with(entries, user_key, prefixes.common_bytes()) != Some(true) {
            return false;
        }
        let Some(start) = prefixes.seek_start(entries, user_key) else {
            return false;
        };
        let first_at = entry_header(entries, 0).map_or(0, |header| header.delta_at);
        let (Some(from_first), Some(from_key_prefix)) = (
            entries.get(first_at..first_at + start.from_first),
            start.key_prefix.get(..start.from_key_prefix),
        ) else {
            return false;
        };
        self.key.clear();
        self.key.extend_from_slice(from_first);
        self.key.extend_from_slice(from_key_prefix);
        self.forget_behind();
        self.front = user_key_prefix(&self.key);
        self.next_at = start.at;
        self.next();
        self.valid
    }

    fn stand_by_restarts(&mut self, order: &KeyOrder, target: &[u8]) {
        let Some(block) = &self.block else { return };
        let Some(start) =
            last_restart_before(block, |key| compare_internal(order, key, target).is_lt())
        else {
            return self.fail();
        };
        self.stand_before(start);
        self.next();
    }

    /// Moves to the entry after this one; not valid at the block's end.
    #[inline]
    pub(crate) fn next(&mut self) {
        let Some(block) = &self.block else { return };
        let entries = block.entries();
        let at = self.next_at;
        if at >= entries.len() {
            self.valid = false;
            return;
        }
        let Some(header) = entry_header(entries, at) else {
            return self.fail();
        };
        let delta = entries.get(header.delta_at..header.value_at());
        let (Some(delta), true) = (delta, header.shared <= self.key.len()) else {
            return self.fail();
        };
        self.key.truncate(header.shared);
        self.key.extend_from_slice(delta);
        if self.key.len() < TAG_BYTES {
            return self.fail();
        }
        if header.shared < 8 {
            // From the block, not from the key: see `InternalIterator::key_prefix`.
            let new = block.bytes().get(header.delta_at..);
            let new = new.expect("an entry that was decoded is in its block");
            let kept = !(u64::MAX >> (8 * header.shared));
            self.front = self.front & kept | user_key_prefix(new) >> (8 * header.shared);
        }
        self.at = at;
        self.value_at = header.value_at();
        self.next_at = header.end();
        debug_assert!(self.next_at <= entries.len() && self.next_at > at);
        debug_assert!(self.key.len() >= TAG_BYTES);
        self.valid = true;
    }

    /// Moves to the entry before this one; not valid at the block's front.
    ///
    /// Entries can be decoded only forwards from a restart point, so the first step back decodes and
    /// keeps all that are between; the steps after it take them from there.
    pub(crate) fn prev(&mut self) {
        if self
            .behind
            .last()
            .is_some_and(|last| last.next_at == self.at)
        {
            return self.take_behind();
        }
        self.forget_behind();
        let Some(block) = &self.block else { return };
        let end = self.at;
        if end == 0 {
            self.valid = false;
            return;
        }
        match restart_before(block, end) {
            Some(at) => self.walk_to_entry_before(at, end),
            None => self.fail(),
        }
    }

    /// Stands on the nearest of the entries kept.
    fn take_behind(&mut self) {
        let Some(entry) = self.behind.pop() else {
            return;
        };
        self.key.clear();
        let kept = self.behind_keys.get(entry.key_start..);
        self.key
            .extend_from_slice(kept.expect("keys are kept one behind the other"));
        self.behind_keys.truncate(entry.key_start);
        self.front = entry.front;
        self.at = entry.at;
        self.value_at = entry.value_at;
        self.next_at = entry.next_at;
    }

    #[inline]
    fn forget_behind(&mut self) {
        self.behind.clear();
        self.behind_keys.clear();
    }

    /// Keeps the present entry for a step back.
    fn push_behind(&mut self) {
        self.behind.push(Behind {
            at: self.at,
            value_at: self.value_at,
            next_at: self.next_at,
            key_start: self.behind_keys.len(),
            front: self.front,
        });
        self.behind_keys.extend_from_slice(&self.key);
    }

    /// Stands on the entry that ends at `end`, starting from the restart point `start`.
    fn walk_to_entry_before(&mut self, start: usize, end: usize) {
        self.stand_before(start);
        self.next();
        while self.valid && self.next_at < end {
            self.push_behind();
            self.next();
        }
        if self.valid && self.next_at != end {
            self.fail();
        }
    }

    /// Makes `next` decode the entry at restart point `at`.
    fn stand_before(&mut self, at: usize) {
        self.forget_behind();
        self.key.clear();
        self.front = 0;
        self.next_at = at;
        self.valid = false;
        self.damaged = false;
    }

    #[cold]
    fn fail(&mut self) {
        self.valid = false;
        self.damaged = true;
    }
}

/// Offset of the last restart point before `end`. `None` when there is none.
fn restart_before(block: &Block, end: usize) -> Option<usize> {
    let (mut low, mut high) = (0, block.restart_count());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match block.restart(middle) {
            Some(at) if (at as usize) < end => low = middle,
            _ => high = middle,
        }
    }
    let at = block.restart(low)? as usize;
    (at < end).then_some(at)
}

#[cfg(test)]
mod tests {
    use drumlin_base::key::{ValueKind, internal_key};

    use super::super::builder::BlockBuilder;
    use super::super::layout::parse_block;
    use super::*;

    /// A block over `keys`, and the keys.
    fn block_of(interval: usize, keys: &[Vec<u8>]) -> Block {
        let mut builder = BlockBuilder::new(interval);
        for (index, key) in keys.iter().enumerate() {
            builder.add(key, format!("value{index}").as_bytes());
        }
        parse_block(&builder.into_block()).unwrap()
    }

    fn keys(count: u64) -> Vec<Vec<u8>> {
        (0..count)
            .map(|n| internal_key(format!("key{:05}", n * 2).as_bytes(), 9, ValueKind::Value))
            .collect()
    }

    #[test]
    fn a_cursor_walks_seeks_and_turns_at_every_entry() {
        for interval in [1, 2, 3, 16] {
            for count in [1, 2, 15, 16, 17, 100] {
                let keys = keys(count);
                let mut iter = BlockIter::default();
                iter.set_block(block_of(interval, &keys));
                iter.seek_to_first();
                for (index, key) in keys.iter().enumerate() {
                    assert!(iter.valid());
                    assert_eq!(iter.key(), key);
                    assert_eq!(iter.key_prefix(), internal_key_prefix(key));
                    assert_eq!(iter.value(), format!("value{index}").as_bytes());
                    iter.next();
                }
                assert!(!iter.valid() && iter.status().is_ok());
                iter.seek_to_last();
                for key in keys.iter().rev() {
                    assert_eq!(iter.key(), key);
                    iter.prev();
                }
                assert!(!iter.valid() && iter.status().is_ok());
                for index in 0..count as usize {
                    iter.seek(&KeyOrder::Bytewise, &keys[index], index % 2 == 0);
                    assert_eq!(iter.key(), &keys[index]);
                    let between = format!("key{:05}", index * 2 + 1);
                    let between = internal_key(between.as_bytes(), 1, ValueKind::Value);
                    iter.seek(&KeyOrder::Bytewise, &between, index % 2 == 0);
                    assert_eq!(iter.valid(), index + 1 < count as usize);
                    if iter.valid() {
                        assert_eq!(iter.key(), &keys[index + 1]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_cursor_may_turn_anywhere() {
        let keys = keys(90);
        let mut iter = BlockIter::default();
        iter.set_block(block_of(16, &keys));
        let mut rng = drumlin_base::rng::Rng::new(8);
        let mut at = 45;
        iter.seek(&KeyOrder::Bytewise, &keys[at], false);
        for _ in 0..5000 {
            let steps = rng.below(6);
            let forward = rng.one_in(2);
            for _ in 0..steps {
                if forward && at + 1 < keys.len() {
                    iter.next();
                    at += 1;
                } else if !forward && at > 0 {
                    iter.prev();
                    at -= 1;
                }
                assert_eq!(iter.key(), &keys[at]);
                assert_eq!(iter.key_prefix(), internal_key_prefix(&keys[at]));
                assert_eq!(iter.value(), format!("value{at}").as_bytes());
            }
        }
    }

    #[test]
    fn prefixes_of_short_keys_hold_no_byte_of_what_follows_them() {
        let order = KeyOrder::Bytewise;
        let mut rng = drumlin_base::rng::Rng::new(3);
        for interval in [1, 4, 16] {
            let letters = || {
                (0..rng.below(12))
                    .map(|_| b"ab"[rng.below(2) as usize])
                    .collect()
            };
            let mut users: Vec<Vec<u8>> = std::iter::repeat_with(letters).take(200).collect();
            users.sort_unstable();
            users.dedup();
            let internal = |user: &Vec<u8>| internal_key(user, 9, ValueKind::Value);
            let keys: Vec<_> = users.iter().map(internal).collect();
            let mut iter = BlockIter::default();
            iter.set_block(block_of(interval, &keys));
            for (index, key) in keys.iter().enumerate() {
                iter.seek(&order, key, index % 2 == 0);
                assert_eq!(
                    (iter.key(), iter.key_prefix()),
                    (&key[..], internal_key_prefix(key))
                );
            }
            iter.seek_to_last();
            for key in keys.iter().rev() {
                assert_eq!(
                    (iter.key(), iter.key_prefix()),
                    (&key[..], internal_key_prefix(key))
                );
                iter.prev();
            }
        }
    }

    #[test]
    fn an_empty_block_has_no_entry() {
        let mut iter = BlockIter::default();
        iter.set_block(block_of(16, &[]));
        iter.seek_to_first();
        assert!(!iter.valid() && iter.status().is_ok());
        iter.seek_to_last();
        assert!(!iter.valid() && iter.status().is_ok());
        iter.seek(&KeyOrder::Bytewise, &keys(1)[0], true);
        assert!(!iter.valid() && iter.status().is_ok());
    }

    #[test]
    fn damaged_entries_end_the_walk_with_an_error() {
        let mut builder = BlockBuilder::new(16);
        builder.add(b"shortkey", b"");
        let mut bytes = builder.into_block();
        bytes[1] = 0x7F; // The key now reaches past the entries.
        let mut iter = BlockIter::default();
        iter.set_block(parse_block(&bytes).unwrap());
        iter.seek_to_first();
        assert!(!iter.valid());
        assert!(iter.status().is_err_and(|e| e.is_corruption()));
    }
}
