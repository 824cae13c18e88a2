//! The files of a job, removed unless they are installed.

use crate::store::store::Store;
use crate::version::{BlobFileAddition, NewFile};

/// The files that a job made, which are given up when this is dropped unless they were installed: nobody
/// else knows of them.
pub(crate) struct MadeFiles<'a> {
    store: &'a Store,
    tables: Vec<u64>,
    blobs: Vec<u64>,
}

impl<'a> MadeFiles<'a> {
    /// Guards `tables` and `blobs`.
    pub(crate) fn new<'f>(
        store: &'a Store,
        tables: impl Iterator<Item = &'f NewFile>,
        blobs: &[BlobFileAddition],
    ) -> Self {
        Self {
            store,
            tables: tables.map(|table| table.number).collect(),
            blobs: match drumlin_base::bug!("made-blobs-forgotten") {
                true => Vec::new(),
                false => blobs.iter().map(|blob| blob.number).collect(),
            },
        }
    }

    /// They were installed.
    pub(crate) fn keep(&mut self) {
        self.tables.clear();
        self.blobs.clear();
    }
}

impl Drop for MadeFiles<'_> {
    fn drop(&mut self) {
        if self.tables.is_empty() && self.blobs.is_empty() {
            return;
        }
        if drumlin_base::bug!("made-tables-forgotten") {
            self.tables.clear();
        }
        let mut state = self.store.lock_state();
        state.versions.disown(&self.tables, &self.blobs);
        self.store.remove_obsolete(&mut state);
    }
}
