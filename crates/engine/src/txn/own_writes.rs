//! The writes of one transaction or of one indexed batch: the batch, and an index of it for reading them back.
//!
//! The index of a family is filled by the first read of it after writes: who only writes never has one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use drumlin_base::Result;

use crate::family::column_family::ColumnFamily;
use crate::txn::family_writes::FamilyWrites;
use crate::write::batch::{BATCH_HEADER_BYTES, BatchIter, WriteBatch};

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    count: u32,
}

#[derive(Debug)]
struct Index {
    writes: FamilyWrites,
    /// Bytes of the batch that it has.
    bytes: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    batch: WriteBatch,
    families: BTreeMap<u32, Index>,
}

impl OwnWrites {
    /// The writes of `batch`.
    pub(crate) fn of(batch: WriteBatch) -> Self {
        Self {
            batch,
            families: BTreeMap::new(),
        }
    }

    /// The batch, to be added to.
    pub(crate) fn batch_mut(&mut self) -> &mut WriteBatch {
        &mut self.batch
    }

    /// The batch.
    pub(crate) fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// The batch, without its index.
    pub(crate) fn into_batch(self) -> WriteBatch {
        self.batch
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.families.clear();
    }

    /// The place that the batch has reached.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            bytes: self.batch.len(),
            count: self.batch.count(),
        }
    }

    /// Forgets what came after `mark`. An index that has some of it is made anew by the next read.
    pub(crate) fn go_back(&mut self, mark: Mark) {
        self.batch.truncate(mark.bytes, mark.count);
        self.families.retain(|_, index| {
            index.bytes <= mark.bytes || drumlin_base::bug!("rolled-back-writes-read")
        });
    }

    /// What came of the writes to `family`.
    ///
    /// Requires: equality under the family's order is that of bytes.
    ///
    /// # Errors
    /// As [`FamilyWrites::add`].
    pub(crate) fn of_family(&mut self, family: &ColumnFamily) -> Result<&FamilyWrites> {
        let index = match self.families.entry(family.id()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Index {
                writes: FamilyWrites::new(family.order()),
                bytes: BATCH_HEADER_BYTES,
            }),
        };
        let fresh = self.batch.bytes().get(index.bytes..).unwrap_or_default();
        for record in BatchIter::new(fresh) {
            let record = record?;
            if record.family == family.id() {
                index.writes.add(&record)?;
            }
        }
        index.bytes = self.batch.len();
        Ok(&index.writes)
    }
}
