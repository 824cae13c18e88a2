//! Values that a job takes out of blob files: to show them to a merge operator or a compaction
//! filter, or to move them.
//!
//! A job keeps readers of its own beside those of the read path: it walks files from front to back
//! that are about to go, and shall close nobody else's. One owner.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, PinnedSlice, Result};
use drumlin_fs::FileSystem;
use drumlin_table::blob::{BlobIndex, BlobReader};

use crate::files::names;

/// Readers kept open. When there are more files to be read, all are closed and opened anew: a job
/// that moves blobs reads few files, and one whose filter looks at everything reads each in order.
const OPEN_MAX: usize = 128;

/// Readers of the blob files of one directory.
#[derive(Debug)]
pub(crate) struct BlobInputs {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    open: HashMap<u64, BlobReader>,
}

impl BlobInputs {
    /// Readers of files in `dir`; opens none yet.
    pub(crate) fn new(files: &Arc<dyn FileSystem>, dir: &Path) -> Self {
        Self {
            files: Arc::clone(files),
            dir: dir.to_path_buf(),
            open: HashMap::new(),
        }
    }

    /// The value of `user_key` that `index` refers to. Always checked.
    ///
    /// # Errors
    /// `Io`; `Corruption` naming file and offset, also when the file is missing.
    pub(crate) fn value(&mut self, user_key: &[u8], index: &BlobIndex) -> Result<PinnedSlice> {
        self.reader(index.file)?.get(user_key, index, true)
    }

    /// The same as it is stored, compressed by `index.codec`.
    ///
    /// # Errors
    /// As [`BlobInputs::value`].
    pub(crate) fn stored(&mut self, user_key: &[u8], index: &BlobIndex) -> Result<PinnedSlice> {
        self.reader(index.file)?.stored(user_key, index, true)
    }

    fn reader(&mut self, number: u64) -> Result<&BlobReader> {
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&number) {
            self.open.clear();
        }
        match self.open.entry(number) {
            Entry::Occupied(open) => Ok(open.into_mut()),
            Entry::Vacant(place) => {
                let path = names::blob(&self.dir, number);
                let reader = BlobReader::open(&*self.files, &path, number);
                Ok(place.insert(reader.map_err(|error| missing_is_damage(error, &path))?))
            }
        }
    }
}

fn missing_is_damage(error: Error, path: &Path) -> Error {
    if !error.is_not_found() {
        return error;
    }
    error
        .with_kind(ErrorKind::Corruption)
        .context("a blob file that a table refers to is missing")
        .with_file(path)
}
