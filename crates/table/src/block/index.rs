//! A table's index in memory: separators and block handles, laid out for few cache misses.
//!
//! The index block is decoded once. For the built-in orders the bytes that all separators have in
//! common are cut off, and the next eight bytes of each, read as a big-endian number, stand in one
//! flat array: a search reads a handful of cache lines of it and compares whole separators only
//! where eight bytes do not tell them apart.
//!
//! A separator is at or after every key of its block and before every key of the next. It is a user
//! key (format version 3 and later, when no user key spans two blocks) or an internal key.

use std::cmp::Ordering;

use drumlin_base::coding::{Reader, unzigzag, varint32_at};
use drumlin_base::key::{TAG_BYTES, compare_internal, split_internal, tag_seqno};
use drumlin_base::{Error, KeyOrder, Result, SeqNo};

use super::builder::common_prefix;
use super::layout::{Block, BlockView};
use super::sorted_words::{SAMPLE_EVERY, lower_bound, prefetch_window};
use crate::format::{BLOCK_TRAILER_BYTES, BlockHandle};

/// How the entries of an index block are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexFormat {
    /// Separators are user keys.
    pub(crate) user_keys: bool,
    /// Values are handles or size deltas, without a length.
    pub(crate) delta_values: bool,
    /// Values end with the first key of the block.
    pub(crate) first_keys: bool,
}

/// Separators and handles of blocks that follow each other.
///
/// Invariant: `offsets.len() == handles.len() + 1`, and `prefixes` is as long as `handles` or empty.
#[derive(Debug)]
pub(crate) struct FlatIndex {
    order: KeyOrder,
    user_keys: bool,
    /// The bytes that every separator's user key begins with.
    common: Vec<u8>,
    /// Eight bytes of each user key after the common ones, complemented under reverse order, so that
    /// they ascend. Empty under a user's own order.
    prefixes: Vec<u64>,
    /// Every [`SAMPLE_EVERY`]th key prefix: small enough to stay in the processor's caches.
    samples: Vec<u64>,
    /// All separators, one behind the other.
    keys: Vec<u8>,
    offsets: Vec<u32>,
    handles: Vec<BlockHandle>,
}

impl FlatIndex {
    /// Decodes an index block.
    ///
    /// # Errors
    /// `Corruption` when an entry does not decode, a handle points past `limit`, or separators
    /// descend.
    pub(crate) fn decode(
        block: &Block,
        format: IndexFormat,
        order: &KeyOrder,
        limit: u64,
    ) -> Result<Self> {
        let mut index = Self {
            order: order.clone(),
            user_keys: format.user_keys,
            common: Vec::new(),
            prefixes: Vec::new(),
            samples: Vec::new(),
            keys: Vec::new(),
            offsets: vec![0],
            handles: Vec::new(),
        };
        let mut walk = EntryWalk {
            entries: block.entries(),
            at: 0,
            key: Vec::new(),
            handle: BlockHandle::default(),
        };
        while walk.at < walk.entries.len() {
            walk.next(format).ok_or_else(damaged)?;
            walk.handle.check_within(limit)?;
            index.push(&walk.key, walk.handle)?;
        }
        index.build_prefixes();
        assert_eq!(
            index.offsets.len(),
            index.handles.len() + 1,
            "a separator for each block"
        );
        assert!(
            index.prefixes.is_empty() || index.prefixes.len() == index.handles.len(),
            "a key prefix for each block, or none"
        );
        debug_assert!(index.prefixes.is_sorted(), "key prefixes ascend as keys do");
        Ok(index)
    }

    fn push(&mut self, separator: &[u8], handle: BlockHandle) -> Result<()> {
        if !self.user_keys && separator.len() < TAG_BYTES {
            return Err(damaged());
        }
        if let Some(last) = self.handles.len().checked_sub(1) {
            let ordering = if self.user_keys {
                self.order.compare(self.separator(last), separator)
            } else {
                compare_internal(&self.order, self.separator(last), separator)
            };
            if ordering == Ordering::Greater {
                return Err(Error::corruption("index separators descend"));
            }
        }
        self.keys.extend_from_slice(separator);
        let end = u32::try_from(self.keys.len())
            .map_err(|_| Error::not_supported("indexes of 4 GiB of separators"))?;
        self.offsets.push(end);
        self.handles.push(handle);
        Ok(())
    }

    fn build_prefixes(&mut self) {
        let flip = match self.order {
            KeyOrder::Bytewise => 0,
            KeyOrder::ReverseBytewise => u64::MAX,
            KeyOrder::Custom(_) => return,
        };
        let Some(last) = self.handles.len().checked_sub(1) else {
            return;
        };
        // The keys are sorted, so all share the bytes that the first and the last share.
        let (first, last) = (self.user_separator(0), self.user_separator(last));
        let common_bytes = common_prefix(first, last);
        let common = first.get(..common_bytes);
        self.common = common.expect("a prefix of the first key").to_vec();
        self.prefixes = (0..self.handles.len())
            .map(|at| key_prefix_of(self.user_separator(at).get(common_bytes..)) ^ flip)
            .collect();
        self.samples = self
            .prefixes
            .iter()
            .step_by(SAMPLE_EVERY)
            .copied()
            .collect();
        self.keys.shrink_to_fit();
        self.offsets.shrink_to_fit();
        self.handles.shrink_to_fit();
    }

    /// Number of blocks.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Where block `at` is.
    #[inline]
    pub(crate) fn handle(&self, at: usize) -> Option<BlockHandle> {
        self.handles.get(at).copied()
    }

    /// The separator behind block `at`: a user key or an internal key.
    #[inline]
    pub(crate) fn separator(&self, at: usize) -> &[u8] {
        let (Some(&start), Some(&end)) = (self.offsets.get(at), self.offsets.get(at + 1)) else {
            return &[];
        };
        self.keys
            .get(start as usize..end as usize)
            .expect("offsets of separators ascend to their end")
    }

    /// The separator behind block `at`, as a user key.
    #[inline]
    pub(crate) fn user_separator(&self, at: usize) -> &[u8] {
        let separator = self.separator(at);
        if self.user_keys {
            separator
        } else {
            drumlin_base::key::user_key(separator)
        }
    }

    /// The first block that may hold (`user_key`, `seqno`) or anything after it: the first whose
    /// separator is not before it. [`FlatIndex::len`] when every block ends before it.
    #[inline]
    pub(crate) fn find(&self, user_key: &[u8], seqno: SeqNo) -> usize {
        let (low, high) = match self.order {
            KeyOrder::Bytewise => self.prefix_range(user_key, 0),
            KeyOrder::ReverseBytewise => self.prefix_range(user_key, u64::MAX),
            KeyOrder::Custom(_) => (0, self.len()),
        };
        partition_point(low, high, |at| self.is_before(at, user_key, seqno))
    }

    /// Prefetches the words that [`FlatIndex::find`] would read last. Gives about its answer, if the separators
    /// are evenly spread.
    #[inline]
    pub(crate) fn prefetch_for(&self, user_key: &[u8]) -> usize {
        let flip = match self.order {
            KeyOrder::Bytewise => 0,
            KeyOrder::ReverseBytewise => u64::MAX,
            KeyOrder::Custom(_) => return 0,
        };
        match self.behind_common(user_key) {
            Some(rest) => {
                let prefix = key_prefix_of(Some(rest)) ^ flip;
                prefetch_window(&self.prefixes, &self.samples, prefix)
            }
            None => 0,
        }
    }

    /// Like [`FlatIndex::find`], for an internal key.
    pub(crate) fn find_internal(&self, target: &[u8]) -> usize {
        match split_internal(target) {
            Some((user_key, tag)) => self.find(user_key, tag_seqno(tag)),
            None => 0,
        }
    }

    /// The bytes behind those that all separators have in common; mostly there are none in common.
    #[inline]
    fn behind_common<'a>(&self, user_key: &'a [u8]) -> Option<&'a [u8]> {
        if self.common.is_empty() {
            Some(user_key)
        } else {
            user_key.strip_prefix(self.common.as_slice())
        }
    }

    /// The blocks that eight bytes cannot tell from the one sought. All blocks before them end before it.
    #[inline]
    fn prefix_range(&self, user_key: &[u8], flip: u64) -> (usize, usize) {
        let Some(rest) = self.behind_common(user_key) else {
            let before = (user_key < self.common.as_slice()) != (flip != 0);
            let at = if before { 0 } else { self.len() };
            return (at, at);
        };
        let prefix = key_prefix_of(Some(rest)) ^ flip;
        let low = lower_bound(&self.prefixes, &self.samples, prefix);
        let mut high = low;
        // Ties are rare; gallop over them so that many stay cheap.
        let mut step = 1;
        while self.prefixes.get(high) == Some(&prefix) {
            high += step;
            step *= 2;
        }
        let high = high.min(self.prefixes.len());
        if high - low <= 1 {
            return (low, high);
        }
        let ties = partition_point(low, high, |at| self.prefixes.get(at) == Some(&prefix));
        (low, ties)
    }

    #[inline]
    fn is_before(&self, at: usize, user_key: &[u8], seqno: SeqNo) -> bool {
        let separator = self.separator(at);
        if self.user_keys {
            return self.order.compare(separator, user_key).is_lt();
        }
        let Some((separator, tag)) = split_internal(separator) else {
            return false;
        };
        match self.order.compare(separator, user_key) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => tag_seqno(tag) > seqno,
        }
    }

    /// Whether versions of `user_key`, sought in block `at`, may go on in the next block.
    #[inline]
    pub(crate) fn versions_may_go_on(&self, at: usize, user_key: &[u8]) -> bool {
        !self.user_keys
            && self
                .order
                .compare(self.user_separator(at), user_key)
                .is_le()
    }

    /// Memory it takes.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.common.capacity()
            + (self.prefixes.capacity() + self.samples.capacity()) * size_of::<u64>()
            + self.keys.capacity()
            + self.offsets.capacity() * size_of::<u32>()
            + self.handles.capacity() * size_of::<BlockHandle>()
            + size_of::<Self>()
    }
}

/// Decodes index entries one after the other.
struct EntryWalk<'a> {
    entries: &'a [u8],
    at: usize,
    key: Vec<u8>,
    handle: BlockHandle,
}

impl EntryWalk<'_> {
    fn next(&mut self, format: IndexFormat) -> Option<()> {
        let (shared, next) = varint32_at(self.entries, self.at)?;
        let (unshared, mut next) = varint32_at(self.entries, next)?;
        let mut value_len = None;
        if !format.delta_values {
            let (len, past) = varint32_at(self.entries, next)?;
            value_len = Some(len as usize);
            next = past;
        }
        let value_at = next.checked_add(unshared as usize)?;
        let delta = self.entries.get(next..value_at)?;
        if shared as usize > self.key.len() {
            return None;
        }
        self.key.truncate(shared as usize);
        self.key.extend_from_slice(delta);
        let rest = self.entries.get(value_at..)?;
        let mut value = Reader::new(rest.get(..value_len.unwrap_or(rest.len()))?);
        self.handle = if format.delta_values && shared > 0 {
            let size = (self.handle.size as i64).checked_add(unzigzag(value.varint64()?))?;
            BlockHandle {
                offset: self
                    .handle
                    .offset
                    .checked_add(self.handle.size)?
                    .checked_add(BLOCK_TRAILER_BYTES as u64)?,
                size: u64::try_from(size).ok()?,
            }
        } else {
            BlockHandle::read(&mut value)?
        };
        if format.first_keys {
            value.slice()?;
        }
        let used = rest.len() - value.rest().len();
        self.at = value_at + value_len.unwrap_or(used);
        Some(())
    }
}

/// The first eight bytes as a number that orders as they do; missing bytes count as zero.
#[inline]
fn key_prefix_of(bytes: Option<&[u8]>) -> u64 {
    let bytes = bytes.unwrap_or_default();
    match bytes.first_chunk::<8>() {
        Some(prefix) => u64::from_be_bytes(*prefix),
        None => bytes
            .iter()
            .zip((0..8).rev())
            .fold(0, |prefix, (&byte, place)| {
                prefix | u64::from(byte) << (8 * place)
            }),
    }
}

/// The first position in `low..high` for which `before` is false.
#[inline]
fn partition_point(mut low: usize, mut high: usize, before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cold]
fn damaged() -> Error {
    Error::corruption("index entry does not decode")
}
