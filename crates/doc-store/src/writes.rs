//! What every write of documents has to do with: its collection, counts and marks.

use std::sync::Arc;

use drumlin::WriteBatch;
use drumlin_base::sync::atomic::Ordering;

use crate::catalog::Collection;
use crate::failure::Outcome;
use crate::index::Index;
use crate::layout::{MULTIKEY, count_keys, mark_key};
use crate::store::Store;

impl Store {
    /// Whether the catalog still has this very collection. With a share of it held, it stays so.
    pub(crate) fn is_present(&self, collection: &Arc<Collection>) -> bool {
        let now = self.collection(&collection.name);
        now.is_some_and(|now| Arc::ptr_eq(&now, collection))
    }

    /// Has readers know of arrays in an index, before any of them sees an entry. It is written each time: the batch of whoever was the
    /// first may have failed.
    pub(crate) fn mark_multikey(&self, index: &Index, batch: &mut WriteBatch) -> Outcome<()> {
        if !drumlin_base::bug!("mongo-multikey-unmarked") {
            index.multikey.store(true, Ordering::Release);
        }
        if !drumlin_base::bug!("mongo-multikey-mark-unwritten") {
            batch.put(&mark_key(MULTIKEY, index.ident), &[])?;
        }
        Ok(())
    }

    /// Appends differences of the counts.
    pub(crate) fn count(
        &self,
        collection: &Collection,
        batch: &mut WriteBatch,
        documents: u64,
        bytes: u64,
    ) -> Outcome<()> {
        for (key, number) in count_keys(collection.ident).iter().zip([documents, bytes]) {
            if number != 0 {
                batch.merge(key, &number.to_le_bytes())?;
            }
        }
        Ok(())
    }
}
