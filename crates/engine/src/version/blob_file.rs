//! A blob file of a version, and the totals of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::BlobFileAddition;

/// A blob file, and how much of it nothing refers to any more.
///
/// All counts are of whole records (header, key, stored value), as the MANIFEST has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobFile {
    /// The file as it was added. Shared by every version that has it: while any of them lives the
    /// file is not deleted.
    pub addition: Arc<BlobFileAddition>,
    /// Blobs inside that are garbage.
    pub garbage_count: u64,
    /// Bytes of those.
    pub garbage_bytes: u64,
}

impl BlobFile {
    /// Bytes of the blobs that some table refers to.
    pub fn live_bytes(&self) -> u64 {
        self.addition.blob_bytes.saturating_sub(self.garbage_bytes)
    }

    /// How many those are.
    pub fn live_count(&self) -> u64 {
        self.addition.blob_count.saturating_sub(self.garbage_count)
    }
}

/// The blob files of a version, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobTotals {
    /// How many there are.
    pub files: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// Blobs inside, garbage too.
    pub blobs: u64,
    /// Bytes of all blobs inside.
    pub blob_bytes: u64,
    /// Blobs nothing refers to.
    pub garbage_blobs: u64,
    /// Bytes of those.
    pub garbage_bytes: u64,
}

impl BlobTotals {
    pub(super) fn of(blobs: &BTreeMap<u64, BlobFile>) -> Self {
        let mut totals = Self::default();
        // Saturating: a MANIFEST may claim any sizes.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        for blob in blobs.values() {
            add(&mut totals.files, 1);
            add(&mut totals.file_bytes, blob.addition.file_bytes());
            add(&mut totals.blobs, blob.addition.blob_count);
            add(&mut totals.blob_bytes, blob.addition.blob_bytes);
            add(&mut totals.garbage_blobs, blob.garbage_count);
            add(&mut totals.garbage_bytes, blob.garbage_bytes);
        }
        totals
    }
}
