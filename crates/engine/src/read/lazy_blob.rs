//! The value of a walk that stands on a reference to a blob: read by the first call that needs it.
//!
//! A walk that looks at keys only never touches a blob file. The value is read once, behind a shared
//! reference, and stays until the walk moves. A failure is shown by the walk's status and ends the
//! walk at its next move.
//!
//! Thread safety: one thread moves a walk, but several may read the entry it stands on. The first
//! reads the file, the rest wait.

use std::sync::OnceLock;

use drumlin_base::{Error, PinnedSlice, Result};
use drumlin_table::TableReadOptions;
use drumlin_table::blob::{BlobAhead, BlobIndex};
use parking_lot::Mutex;

use crate::caches::blob_cache::BlobCache;
use crate::version::Version;

/// At most one value, and bytes read ahead for the next ones.
pub(super) struct LazyBlob {
    value: OnceLock<Result<PinnedSlice>>,
    ahead: Mutex<BlobAhead>,
}

impl LazyBlob {
    pub(super) fn new(readahead_bytes: usize) -> Self {
        Self {
            value: OnceLock::new(),
            ahead: Mutex::new(BlobAhead::new(readahead_bytes)),
        }
    }

    /// As a new one.
    pub(super) fn restart(&mut self, readahead_bytes: usize) {
        drop(self.forget());
        self.ahead.get_mut().restart(readahead_bytes);
    }

    /// The value of `user_key` behind `reference`, an entry's value of kind `BlobIndex`.
    pub(super) fn get(
        &self,
        blobs: &BlobCache,
        version: &Version,
        options: &TableReadOptions,
        user_key: &[u8],
        reference: &[u8],
    ) -> Result<&PinnedSlice, &Error> {
        let read = || {
            let index = BlobIndex::decode(reference)?;
            let mut ahead = self.ahead.lock();
            blobs.with_open(version, index.file, options, |reader| {
                ahead.get(reader, user_key, &index, options.verify_checksums)
            })
        };
        self.value.get_or_init(read).as_ref()
    }

    /// The error of reading the value, if there was one.
    pub(super) fn error(&self) -> Option<&Error> {
        self.value.get()?.as_ref().err()
    }

    /// Drops this value for the next one; returns its error, if it had one.
    pub(super) fn forget(&mut self) -> Option<Error> {
        self.value.take()?.err()
    }
}
