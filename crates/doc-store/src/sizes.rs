//! What a collection takes on disk.

use drumlin::Result;

use crate::catalog::Collection;
use crate::layout::range_of;
use crate::reads::Reads;
use crate::store::Store;

/// Bytes in tables, compressed as they are. What only memtables hold, and documents of more than 16 KiB, which lie in files of
/// their own, are not in it; what was deleted and is not compacted yet is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredBytes {
    /// Of the documents, under their `_id`.
    pub documents: u64,
    /// Of each secondary index, in the collection's order.
    pub indexes: Vec<u64>,
}

impl Store {
    /// Rewrites a collection and its indexes without what was deleted or overwritten. Blocks; reads and writes go on.
    ///
    /// # Errors
    /// Of the engine.
    pub fn compact(&self, collection: &Collection) -> Result<()> {
        let (begin, end) = range_of(collection.ident);
        self.db
            .compact_range(&self.families.docs, Some(&begin), Some(&end))?;
        for index in &collection.indexes {
            let (begin, end) = range_of(index.ident);
            self.db
                .compact_range(&self.families.index, Some(&begin), Some(&end))?;
        }
        Ok(())
    }
}

impl Reads<'_> {
    /// About what a collection takes on disk now. Cost: the bounds of every table, and the index of those at the ends of a range.
    ///
    /// # Errors
    /// Of the engine.
    pub fn stored_bytes(&self, collection: &Collection) -> Result<StoredBytes> {
        let (begin, end) = range_of(collection.ident);
        let documents = self
            .db
            .approximate_sizes(&self.families.docs, &[(&begin, &end)])?;
        let ranges: Vec<_> = collection
            .indexes
            .iter()
            .map(|index| range_of(index.ident))
            .collect();
        let ranges: Vec<_> = ranges
            .iter()
            .map(|(begin, end)| (begin.as_slice(), end.as_slice()))
            .collect();
        Ok(StoredBytes {
            documents: documents.iter().sum(),
            indexes: self.db.approximate_sizes(&self.families.index, &ranges)?,
        })
    }
}
