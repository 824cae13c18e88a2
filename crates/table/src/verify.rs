//! Checking a whole table against itself: the part that the formats share.

use drumlin_base::key::{ParsedKey, ValueKind, compare_internal, user_key};
use drumlin_base::{Error, InternalIterator, KeyOrder, Result};

use crate::format::TableProperties;

/// The counts that verification takes on its way.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) entries: u64,
    deletions: u64,
    merges: u64,
    pub(crate) blobs: u64,
    pub(crate) user_keys: u64,
}

impl Counted {
    /// Walks all entries of `iter`. They must parse and ascend, and `is_found` must hold for each user key:
    /// a lookup comes to it.
    pub(crate) fn walk<I: InternalIterator>(
        iter: &mut I,
        order: &KeyOrder,
        is_found: impl Fn(&I, &[u8]) -> Result<bool>,
    ) -> Result<Self> {
        let mut counted = Self::default();
        let mut last: Vec<u8> = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            let key = iter.key();
            let parsed = ParsedKey::parse(key)?;
            if !last.is_empty() && compare_internal(order, &last, key).is_ge() {
                return Err(Error::corruption("entries do not ascend"));
            }
            if last.is_empty() || user_key(&last) != parsed.user_key {
                counted.user_keys += 1;
            }
            if !is_found(iter, parsed.user_key)? {
                return Err(Error::corruption("the table denies a key that it holds"));
            }
            counted.entries += 1;
            match parsed.kind {
                ValueKind::Deletion
                | ValueKind::DeletionWithTimestamp
                | ValueKind::SingleDeletion => counted.deletions += 1,
                ValueKind::Merge => counted.merges += 1,
                ValueKind::BlobIndex => counted.blobs += 1,
                _ => {}
            }
            last.clear();
            last.extend_from_slice(key);
            iter.next();
        }
        iter.status()?;
        Ok(counted)
    }

    /// Compares the counts with those in the properties.
    pub(crate) fn check(&self, stored: &TableProperties, tombstones: u64) -> Result<()> {
        // A count may lack this many: tombstones where the writer left them out.
        let left_out = if stored.counts_tombstones() {
            0
        } else {
            tombstones
        };
        let expectations = [
            (
                "entries",
                stored.num_entries,
                self.entries + tombstones,
                left_out,
            ),
            (
                "range tombstones",
                stored.num_range_deletions,
                tombstones,
                left_out,
            ),
            (
                "deletions",
                stored.num_deletions,
                self.deletions + tombstones,
                left_out,
            ),
            ("merge operands", stored.num_merge_operands, self.merges, 0),
        ];
        for (what, stored, counted, left_out) in expectations {
            if stored != counted && stored != counted - left_out {
                return Err(Error::corruption(format!(
                    "the properties tell of {stored} {what}, the table holds {counted}"
                )));
            }
        }
        Ok(())
    }
}
