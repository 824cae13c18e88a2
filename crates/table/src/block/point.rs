//! Finding the versions of one user key in a block, without rebuilding any key.
//!
//! A lookup starts at the first entry whose key prefix agrees ([`super::lookup`]), or else walks at
//! most one restart interval, which a search among the restart points finds. Rebuilding each key there
//! costs a copy per entry; instead the walk carries the number of bytes that the last key shared with the
//! one sought:
//!
//! ```text
//! matched  bytes that the user key of the last entry and the target have in common
//! shared   bytes the next entry takes over from the last, cut to both user keys
//! shared > matched   the next key differs from the target where the last did: same verdict
//! otherwise          compare the entry's own bytes with target[shared..]
//! ```
//!
//! This needs no promise that the writer shared as many bytes as it could. It holds for bytewise
//! order, where the first differing byte decides; other orders take the slow walk
//! ([`super::block_iter`]).

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use drumlin_base::key::{TAG_BYTES, split_internal, tag_kind, tag_seqno};
use drumlin_base::{Error, Result, SeqNo};

use super::builder::common_prefix;
use super::layout::{Block, BlockView, EntryHeader, entry_header, last_restart_before};
use super::lookup::{KEY_PREFIX_BYTES, prefetch_entry};

/// The versions to find: those of `user_key` at or before `seqno`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointTarget<'a> {
    pub(crate) user_key: &'a [u8],
    pub(crate) seqno: SeqNo,
    /// Search the block's key prefixes, and make them if it has none.
    pub(crate) by_prefixes: bool,
}

/// How a lookup in one block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointEnd {
    /// All versions were seen, or the visitor broke off.
    Done,
    /// All versions in the block were seen, and no later key: more may follow in the next block.
    BlockEnded,
}

/// A walk over entries that remembers the one decoded last.
struct PointWalk<'a> {
    target: PointTarget<'a>,
    matched: usize,
    user_len: usize,
    tag: [u8; TAG_BYTES],
    /// The entry's user key against the target.
    verdict: Ordering,
}

/// Visits the versions of the target in `block`, newest first: tag, and where the value is.
///
/// # Errors
/// `Corruption` when an entry does not decode.
#[inline]
pub(crate) fn visit_versions(
    block: &Block,
    target: PointTarget<'_>,
    visit: impl FnMut(u64, Range<usize>) -> ControlFlow<()>,
) -> Result<PointEnd> {
    if !target.by_prefixes {
        return visit_from_restart(block, target, visit);
    }
    let Some(prefixes) = block.key_prefixes() else {
        return visit_from_restart(block, target, visit);
    };
    let entries = block.entries();
    let Some(start) = prefixes.find(target.user_key) else {
        return Ok(PointEnd::BlockEnded); // The index knows whether a later block may have it.
    };
    // The key is in the first of its lines, the value in the next: one wait for both.
    prefetch_entry(block, start);
    let header = entry_header(entries, start).ok_or_else(damaged)?;
    // The key of the entry before is unknown, so the bytes shared with it must be known to agree with the target.
    if header.shared > prefixes.common_bytes() + KEY_PREFIX_BYTES || header.unshared < TAG_BYTES {
        return visit_from_restart(block, target, visit);
    }
    if !begins_with(entries, target.user_key, prefixes.common_bytes()).ok_or_else(damaged)? {
        // Not as all keys of the block begin: before the first or after the last of them.
        return visit_from_restart(block, target, visit);
    }
    if header.shared > target.user_key.len() {
        return Ok(PointEnd::Done); // Zeros stood for the missing bytes, so the entry is after the target.
    }
    let walk = PointWalk {
        target,
        matched: header.shared,
        user_len: header.shared,
        tag: [0; TAG_BYTES],
        verdict: Ordering::Less,
    };
    walk.run(entries, start, visit)
}

/// Whether `user_key` begins with the first `common_bytes` bytes of the block's first key. `None`
/// when that key does not decode.
#[inline]
pub(crate) fn begins_with(entries: &[u8], user_key: &[u8], common_bytes: usize) -> Option<bool> {
    let header = entry_header(entries, 0)?;
    let prefix = entries.get(header.delta_at..header.delta_at + common_bytes)?;
    Some(user_key.starts_with(prefix))
}

/// [`visit_versions`] by way of the restart points.
#[inline(never)]
fn visit_from_restart(
    block: &Block,
    target: PointTarget<'_>,
    visit: impl FnMut(u64, Range<usize>) -> ControlFlow<()>,
) -> Result<PointEnd> {
    let entries = block.entries();
    if entries.is_empty() {
        return Ok(PointEnd::BlockEnded);
    }
    let start = last_restart_before(block, |key| is_before(key, target)).ok_or_else(damaged)?;
    if entry_header(entries, start).is_none_or(|header| header.shared != 0) {
        return Err(damaged());
    }
    let walk = PointWalk {
        target,
        matched: 0,
        user_len: 0,
        tag: [0; TAG_BYTES],
        verdict: Ordering::Less,
    };
    walk.run(entries, start, visit)
}

/// Visits the entries before `user_key`, from the one at `at` on, which is of the user key `first`: the byte of their
/// kind, and the bytes of user key and value.
///
/// Requires: `first` is before `user_key`.
///
/// # Errors
/// `Corruption` when an entry does not decode, or the first one is not `first` or has not all of its tag itself.
#[inline]
pub(crate) fn visit_before(
    entries: &[u8],
    (at, first): (usize, &[u8]),
    user_key: &[u8],
    mut visit: impl FnMut(u8, u64),
) -> Result<()> {
    debug_assert!(first < user_key, "the first entry is visited");
    let header = entry_header(entries, at).ok_or_else(damaged)?;
    let delta = entries.get(header.delta_at..header.value_at());
    let parts = delta.and_then(|delta| delta.split_last_chunk::<TAG_BYTES>());
    let (own, tag) = parts.ok_or_else(damaged)?;
    if first.get(header.shared..) != Some(own)
        && !drumlin_base::bug!("first-of-a-visit-not-compared")
    {
        return Err(damaged());
    }
    let mut walk = PointWalk {
        target: PointTarget {
            user_key,
            seqno: 0,
            by_prefixes: false,
        },
        matched: common_prefix(first, user_key),
        user_len: first.len(),
        tag: *tag,
        verdict: Ordering::Less,
    };
    let mut entry = header;
    loop {
        let kind = tag_kind(u64::from_le_bytes(walk.tag));
        visit(kind, (walk.user_len + entry.value_len) as u64);
        if entry.end() >= entries.len() {
            return Ok(());
        }
        entry = entry_header(entries, entry.end()).ok_or_else(damaged)?;
        walk.step(entries, &entry).ok_or_else(damaged)?;
        if walk.verdict.is_ge() {
            return Ok(());
        }
    }
}

/// Whether a whole internal key comes before every version sought.
#[inline]
fn is_before(key: &[u8], target: PointTarget<'_>) -> bool {
    let Some((user_key, tag)) = split_internal(key) else {
        return false;
    };
    let ordering = user_key.cmp(target.user_key);
    ordering.is_lt() || (ordering.is_eq() && tag_seqno(tag) > target.seqno)
}

impl PointWalk<'_> {
    /// Walks from the entry at `at` until a key after the target.
    #[inline]
    fn run(
        mut self,
        entries: &[u8],
        mut at: usize,
        mut visit: impl FnMut(u64, Range<usize>) -> ControlFlow<()>,
    ) -> Result<PointEnd> {
        while at < entries.len() {
            let header = entry_header(entries, at).ok_or_else(damaged)?;
            self.step(entries, &header).ok_or_else(damaged)?;
            match self.verdict {
                Ordering::Less => {}
                Ordering::Greater => return Ok(PointEnd::Done),
                Ordering::Equal => {
                    let tag = u64::from_le_bytes(self.tag);
                    if tag_seqno(tag) <= self.target.seqno
                        && visit(tag, header.value_at()..header.end()).is_break()
                    {
                        return Ok(PointEnd::Done);
                    }
                }
            }
            at = header.end();
        }
        Ok(PointEnd::BlockEnded)
    }

    /// Takes one entry in. `None` when its lengths make no sense.
    #[inline]
    fn step(&mut self, entries: &[u8], header: &EntryHeader) -> Option<()> {
        let raw_len = header.shared + header.unshared;
        let user_len = raw_len.checked_sub(TAG_BYTES)?;
        let delta = entries.get(header.delta_at..header.value_at())?;
        if header.shared <= self.user_len && header.unshared >= TAG_BYTES {
            let (user_delta, tag) = delta.split_last_chunk::<TAG_BYTES>()?;
            self.tag = *tag;
            if header.shared <= self.matched {
                let rest = self.target.user_key.get(header.shared..)?;
                self.compare(header.shared, user_delta, rest);
            }
            self.user_len = user_len;
            return Some(());
        }
        self.step_into_tag(header, user_len, delta)
    }

    /// The entry shares bytes with the last entry's tag, as versions of one key do. Bytewise order
    /// leaves the user key at least as long as the last one then.
    #[inline(never)]
    fn step_into_tag(&mut self, header: &EntryHeader, user_len: usize, delta: &[u8]) -> Option<()> {
        let grown = user_len.checked_sub(self.user_len)?;
        let from_tag_len = header.shared.checked_sub(self.user_len)?;
        let last_tag = self.tag;
        let from_tag = last_tag.get(..from_tag_len)?;
        if self.user_len <= self.matched {
            // The user key goes on with bytes of the old tag, then with bytes of the delta.
            let taken = from_tag.get(..grown.min(from_tag_len))?;
            let own = delta.get(..user_len.saturating_sub(header.shared))?;
            let rest = self.target.user_key.get(self.user_len..)?;
            let common = common_prefix(taken, rest);
            if common < taken.len() {
                self.compare(self.user_len, taken, rest);
            } else {
                self.compare(self.user_len + common, own, rest.get(common..)?);
            }
        }
        // The new tag is the last eight bytes of the shared bytes and the delta.
        let own = delta.len().min(TAG_BYTES);
        let missing = TAG_BYTES - own;
        self.tag
            .get_mut(..missing)?
            .copy_from_slice(from_tag.get(from_tag_len.checked_sub(missing)?..)?);
        self.tag
            .get_mut(missing..)?
            .copy_from_slice(delta.get(delta.len() - own..)?);
        self.user_len = user_len;
        Some(())
    }

    #[inline]
    fn compare(&mut self, from: usize, user_delta: &[u8], rest: &[u8]) {
        let common = common_prefix(user_delta, rest);
        self.matched = from + common;
        self.verdict = user_delta.get(common).cmp(&rest.get(common));
    }
}

#[cold]
fn damaged() -> Error {
    Error::corruption("block entry does not decode")
}

#[cfg(test)]
mod tests {
    use drumlin_base::KeyOrder;
    use drumlin_base::key::{compare_internal, pack_tag, split_internal};
    use drumlin_base::rng::Rng;

    use super::super::layout::parse_block;
    use super::super::probe::build_block;
    use super::*;

    /// Keys from a tiny alphabet that also occurs in tags, so that keys share bytes with tags.
    fn random_keys(rng: &mut Rng) -> Vec<Vec<u8>> {
        let count = rng.below(40);
        let mut keys: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let len = rng.below(14) as usize;
                let mut key: Vec<u8> = (0..len).map(|_| rng.below(2) as u8).collect();
                let tag = pack_tag(rng.below(3) << (8 * rng.below(6)), rng.below(2) as u8);
                key.extend_from_slice(&tag.to_le_bytes());
                key
            })
            .collect();
        keys.sort_by(|a, b| compare_internal(&KeyOrder::Bytewise, a, b));
        keys.dedup();
        keys
    }

    #[test]
    fn agrees_with_a_plain_filter_over_all_entries() {
        for seed in 0..3000 {
            let mut rng = Rng::new(seed);
            let keys = random_keys(&mut rng);
            let values = (0u8..).map(|index| vec![index]);
            let entries: Vec<_> = keys.iter().cloned().zip(values).collect();
            // The content of a hash index plays no part.
            let buckets = vec![rng.next_u64() as u8; rng.below(2) as usize * 7];
            let bytes = build_block(&entries, 1 + rng.below(20) as usize, &buckets);
            let block = parse_block(&bytes).unwrap();
            for _ in 0..20 {
                let user_key: Vec<u8> = (0..rng.below(14)).map(|_| rng.below(2) as u8).collect();
                let seqno = rng.next_u64() >> (8 + rng.below(56));
                let expected: Vec<u8> = (0u8..)
                    .zip(&keys)
                    .filter(|(_, key)| {
                        let (user, tag) = split_internal(key).unwrap();
                        user == user_key && tag_seqno(tag) <= seqno
                    })
                    .map(|(index, _)| index)
                    .collect();
                let target = PointTarget {
                    user_key: &user_key,
                    seqno,
                    by_prefixes: rng.one_in(2),
                };
                let mut found = Vec::new();
                visit_versions(&block, target, |tag, range| {
                    let index = block.bytes()[range][0];
                    assert_eq!(split_internal(&keys[usize::from(index)]).unwrap().1, tag);
                    found.push(index);
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(found, expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn entries_before_a_key_are_visited_from_any_that_has_its_own_tag() {
        for seed in 0..3000 {
            let mut rng = Rng::new(seed);
            let keys = random_keys(&mut rng);
            let values = (0..).map(|index: usize| vec![7; index]);
            let entries: Vec<_> = keys.iter().cloned().zip(values).collect();
            let bytes = build_block(&entries, 1 + rng.below(20) as usize, &[]);
            let block = parse_block(&bytes).unwrap();
            let mut at = 0;
            for (from, key) in keys.iter().enumerate() {
                let header = entry_header(block.entries(), at).unwrap();
                let first = split_internal(key).unwrap().0;
                let bound: Vec<u8> = (0..rng.below(14)).map(|_| rng.below(2) as u8).collect();
                if header.unshared >= TAG_BYTES && first < &bound[..] {
                    let expected: Vec<_> = (from..)
                        .zip(&keys[from..])
                        .map(|(index, key)| (index, split_internal(key).unwrap()))
                        .filter(|(_, (user_key, _))| *user_key < &bound[..])
                        .map(|(index, (user_key, tag))| {
                            (tag as u8, (user_key.len() + index) as u64)
                        })
                        .collect();
                    let mut visited = Vec::new();
                    let visit = |kind, bytes| visited.push((kind, bytes));
                    visit_before(block.entries(), (at, first), &bound, visit).unwrap();
                    assert_eq!(visited, expected, "seed {seed}, from {from}");
                    let lie = [first, b"x"].concat();
                    let refused = visit_before(block.entries(), (at, &lie), b"y", |_, _| ());
                    assert!(refused.is_err_and(|error| error.is_corruption()));
                }
                at = header.end();
            }
        }
    }
}
