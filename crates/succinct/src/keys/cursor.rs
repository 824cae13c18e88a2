//! A walk over the keys of an index, both ways.

use super::BLOCK_KEYS;
use super::index::KeyIndex;
use super::run::KeyRun;

/// The keys of one block, decoded together, and a place among all keys. At the start of a walk only the
/// key there is decoded: many walks go no further.
///
/// Kept apart from the index it walks, so that an owner of both can hold them side by side: each step
/// is given the index, which must always be the same.
#[derive(Debug, Default)]
pub struct KeyWalk {
    run: KeyRun,
    /// The block in `run`.
    block: Option<usize>,
    /// Nothing of a block is in `run` but the key it stands on.
    lone: bool,
    rank: u64,
}

impl KeyWalk {
    /// Stands on the key of `rank`. False when there is none.
    pub fn go_to(&mut self, index: &KeyIndex, rank: u64) -> bool {
        let begins = !self.lone && self.block.is_none() || self.rank.abs_diff(rank) > 1;
        self.rank = rank;
        if rank >= index.len() {
            (self.lone, self.block) = (false, None);
            return false;
        }
        let block = (rank / BLOCK_KEYS as u64) as usize;
        if self.block == Some(block) {
            return true;
        }
        self.lone = begins && index.decode_key(rank, &mut self.run);
        if self.lone {
            self.block = None;
            return true;
        }
        self.block = index.decode_block(block, &mut self.run).then_some(block);
        self.block.is_some()
    }

    /// The rank it stands on, or where there is no key the rank last asked for.
    pub fn rank(&self) -> u64 {
        self.rank
    }

    /// The key it stands on; empty if it stands on none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.lone {
            true => self.run.get(0),
            false => self.run.get((self.rank % BLOCK_KEYS as u64) as usize),
        }
    }
}

/// A cursor over the keys of an index. Not shared between threads.
#[derive(Debug)]
pub struct KeyCursor<'a> {
    index: &'a KeyIndex,
    walk: KeyWalk,
    valid: bool,
}

impl<'a> KeyCursor<'a> {
    pub(super) fn new(index: &'a KeyIndex) -> Self {
        Self {
            index,
            walk: KeyWalk::default(),
            valid: false,
        }
    }

    /// Whether it stands on a key.
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Stands on the key of `rank`, if there is one.
    pub fn go_to(&mut self, rank: u64) {
        self.valid = self.walk.go_to(self.index, rank);
    }

    /// Stands on the first key that is not below `key`, if there is one.
    pub fn seek(&mut self, key: &[u8]) {
        self.go_to(self.index.seek(key));
    }

    /// Goes to the next key.
    pub fn next(&mut self) {
        self.go_to(self.walk.rank().saturating_add(1));
    }

    /// Goes to the key before.
    pub fn prev(&mut self) {
        match self.walk.rank().checked_sub(1) {
            Some(before) => self.go_to(before),
            None => self.valid = false,
        }
    }

    /// The key it stands on.
    ///
    /// Requires: the cursor is valid.
    pub fn key(&self) -> &[u8] {
        self.walk.key()
    }

    /// The rank of that key.
    pub fn rank(&self) -> u64 {
        self.walk.rank()
    }
}
