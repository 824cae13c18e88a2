//! A table of key prefixes that a block gets when a lookup first comes to it.
//!
//! Walking the entries of a block to one of them touches a cache line per entry, each found only
//! through the one before. So the first lookup in a block notes of every entry the four bytes of its
//! user key behind the common prefix of all keys, and the offset of the entry:
//!
//! ```text
//! spots[i] = prefix(i) << 32 | offset(i)        ascending
//! ```
//!
//! Later lookups search these numbers and then touch only the entry sought. It costs eight bytes an
//! entry, and one walk over the block. Blocks that are only scanned never get one. Bytewise order
//! only.

use drumlin_base::bytes::prefetch;
use drumlin_base::key::TAG_BYTES;

use super::builder::common_prefix;
use super::layout::{Block, BlockView, entry_header};
use super::sorted_words::lower_bound;

/// Cache lines of a common entry.
const ENTRY_LINES: usize = 3;

/// Bytes of a user key that stand in a spot.
pub(crate) const KEY_PREFIX_BYTES: usize = 4;

/// The key prefixes of one block, in the words stored beside it; the first word is `common_bytes`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPrefixes<'a> {
    spots: &'a [u64],
    /// Bytes that the user keys of all entries begin with alike.
    common_bytes: usize,
}

impl<'a> KeyPrefixes<'a> {
    /// Notes the key prefixes of all entries in `room`; the words used. `None` when the block does not
    /// decode or they do not fit.
    pub(crate) fn build(block: &Block, room: &mut [u64]) -> Option<usize> {
        let (prefix, room) = room.split_first_mut()?;
        let entries = block.entries();
        let mut key = Vec::new();
        let mut first = Vec::new();
        let (mut count, mut at) = (0, 0);
        while at < entries.len() {
            *room.get_mut(count)? = u64::try_from(at).ok()?;
            count += 1;
            at = decode_key(entries, at, &mut key)?;
            if count == 1 {
                first.extend_from_slice(user_part(&key)?);
            }
        }
        // The keys ascend: the common prefix of the first and the last is that of all.
        let common_bytes = common_prefix(&first, user_part(&key)?);
        for spot in room.get_mut(..count)? {
            decode_key(entries, *spot as usize, &mut key)?;
            *spot |= u64::from(key_prefix_of(user_part(&key)?, common_bytes)) << 32;
        }
        *prefix = common_bytes as u64;
        Some(1 + count)
    }

    /// The spots in `words`; `None` when there are none.
    #[inline]
    pub(crate) fn of(words: &'a [u64]) -> Option<Self> {
        let (&common_bytes, spots) = words.split_first()?;
        (!spots.is_empty()).then_some(Self {
            spots,
            common_bytes: common_bytes as usize,
        })
    }

    /// Bytes that the user keys of all entries begin with alike.
    pub(crate) fn common_bytes(&self) -> usize {
        self.common_bytes
    }

    /// Offset of the first entry that agrees with `user_key` in the first `common_bytes + 4` bytes. `None` when no
    /// entry does.
    ///
    /// Right only if `user_key` begins as all keys of the block do, which the caller checks.
    #[inline]
    pub(crate) fn find(&self, user_key: &[u8]) -> Option<usize> {
        let prefix = u64::from(key_prefix_of(user_key, self.common_bytes)) << 32;
        let base = lower_bound(self.spots, &[], prefix);
        let spot = *self.spots.get(base)?;
        (spot >> 32 == prefix >> 32).then_some((spot & u64::from(u32::MAX)) as usize)
    }
}

/// Prefetches the lines of the entry that [`KeyPrefixes::find`] gives, the value's first ones included.
#[inline]
pub(crate) fn prefetch_entry(block: &Block, offset: usize) {
    if let Some(entry) = block.entries().get(offset) {
        prefetch(entry, ENTRY_LINES);
    }
}

/// Where a cursor that seeks begins to look.
#[derive(Debug)]
pub(crate) struct SeekStart {
    /// Offset of the entry.
    pub(crate) at: usize,
    /// The bytes that the entry's key shares with the key before it.
    pub(crate) key_prefix: [u8; KEY_PREFIX_BYTES],
    /// Bytes to take from the block's first key before those of `key_prefix`.
    pub(crate) from_first: usize,
    /// Bytes to take from `key_prefix`.
    pub(crate) from_key_prefix: usize,
}

impl KeyPrefixes<'_> {
    /// The first entry that may be at or after `user_key`, which begins as all keys of the block
    /// do, with the facts needed to rebuild its key. `None` when these are not known, or every
    /// entry is before it.
    pub(crate) fn seek_start(&self, entries: &[u8], user_key: &[u8]) -> Option<SeekStart> {
        let target = u64::from(key_prefix_of(user_key, self.common_bytes())) << 32;
        let spot = *self.spots.get(lower_bound(self.spots, &[], target))?;
        let at = (spot & u64::from(u32::MAX)) as usize;
        let header = entry_header(entries, at)?;
        if header.unshared < TAG_BYTES {
            return None; // It shares bytes of the tag of the key before it, which no key prefix holds.
        }
        let shared = header.shared;
        let from_first = shared.min(self.common_bytes());
        let from_key_prefix = shared - from_first;
        (from_key_prefix <= KEY_PREFIX_BYTES).then_some(SeekStart {
            at,
            key_prefix: ((spot >> 32) as u32).to_be_bytes(),
            from_first,
            from_key_prefix,
        })
    }
}

/// Rebuilds the key of the entry at `at` over the key before it, and returns the offset of the next
/// entry.
fn decode_key(entries: &[u8], at: usize, key: &mut Vec<u8>) -> Option<usize> {
    let header = entry_header(entries, at)?;
    if header.shared > key.len() {
        return None;
    }
    key.truncate(header.shared);
    key.extend_from_slice(entries.get(header.delta_at..header.value_at())?);
    Some(header.end())
}

fn user_part(key: &[u8]) -> Option<&[u8]> {
    key.get(..key.len().checked_sub(TAG_BYTES)?)
}

/// The bytes after the prefix as a number that orders as they do; missing bytes count as zero.
#[inline]
fn key_prefix_of(user_key: &[u8], common_bytes: usize) -> u32 {
    // A key that is sought may be shorter than what the block's keys share.
    let rest = user_key.get(common_bytes..).unwrap_or_default();
    match rest.first_chunk::<KEY_PREFIX_BYTES>() {
        Some(prefix) => u32::from_be_bytes(*prefix),
        None => rest
            .iter()
            .zip([24, 16, 8, 0])
            .fold(0, |prefix, (&byte, place)| {
                prefix | u32::from(byte) << place
            }),
    }
}
