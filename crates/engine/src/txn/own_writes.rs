//! The writes of one transaction: the batch it will commit, and an index of it for reading them back.
//!
//! The index is filled by the first read after writes: a transaction that only writes never has one. It holds what
//! came of all writes to a key, so a read needs no order among them.

use std::collections::BTreeMap;

use drumlin_base::{Error, MergeOperator, PinnedSlice, Result, ValueKind};

use crate::iter::merge_operands::MergeOperands;
use crate::write::batch::{BATCH_HEADER_BYTES, BatchIter, WriteBatch};

/// What the operands of a key apply to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Base {
    /// What the store has.
    #[default]
    Store,
    /// A value of the transaction's own.
    Value(Vec<u8>),
    /// Nothing: the transaction deleted the key.
    Nothing,
}

/// All that the transaction did to one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Own {
    base: Base,
    /// Oldest first.
    operands: Vec<Vec<u8>>,
}

/// The answer of a transaction's own writes about a key.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// They say nothing: what the store has counts.
    Store,
    /// The value, or that there is none.
    Known(Option<PinnedSlice>),
    /// Operands onto what the store has.
    Onto(&'a [Vec<u8>]),
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    count: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct OwnWrites {
    batch: WriteBatch,
    index: BTreeMap<u32, BTreeMap<Vec<u8>, Own>>,
    /// Bytes of the batch that the index has.
    indexed_bytes: usize,
}

impl Default for OwnWrites {
    fn default() -> Self {
        Self::of(WriteBatch::new())
    }
}

impl OwnWrites {
    /// The writes of `batch`.
    pub(crate) fn of(batch: WriteBatch) -> Self {
        Self {
            batch,
            index: BTreeMap::new(),
            indexed_bytes: BATCH_HEADER_BYTES,
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
        if self.indexed_bytes > mark.bytes && !drumlin_base::bug!("rolled-back-writes-read") {
            self.index.clear();
            self.indexed_bytes = BATCH_HEADER_BYTES;
        }
    }

    /// What the own writes say of `key`; `merge` is its family's operator.
    ///
    /// # Errors
    /// The operator's, of operands onto an own value.
    pub(crate) fn get(
        &mut self,
        family: u32,
        key: &[u8],
        merge: Option<&dyn MergeOperator>,
    ) -> Result<Answer<'_>> {
        self.fill()?;
        let own = self.index.get(&family).and_then(|keys| keys.get(key));
        let Some(own) = own else {
            return Ok(Answer::Store);
        };
        let base = match &own.base {
            Base::Store => return Ok(Answer::Onto(&own.operands)),
            Base::Value(value) => Some(&value[..]),
            Base::Nothing => None,
        };
        let value = match own.operands.is_empty() {
            true => base.map(<[u8]>::to_vec),
            false => Some(apply(merge, key, base, &own.operands)?),
        };
        Ok(Answer::Known(value.map(PinnedSlice::owned)))
    }

    /// Takes what was written since the last read into the index.
    fn fill(&mut self) -> Result<()> {
        let fresh = &self.batch.bytes()[self.indexed_bytes..];
        for record in BatchIter::new(fresh) {
            let record = record?;
            let keys = self.index.entry(record.family).or_default();
            let own = keys.entry(record.key.to_vec()).or_default();
            match record.kind {
                ValueKind::Value => own.replace(Base::Value(record.value.to_vec())),
                ValueKind::Deletion => own.replace(Base::Nothing),
                ValueKind::Merge => own.operands.push(record.value.to_vec()),
                kind => {
                    let message = format!("a record of kind {kind:?} in a transaction");
                    return Err(Error::not_supported(message));
                }
            }
        }
        self.indexed_bytes = self.batch.len();
        Ok(())
    }
}

impl Own {
    fn replace(&mut self, base: Base) {
        self.base = base;
        self.operands.clear();
    }
}

/// `operands` (oldest first) onto `base`.
///
/// # Errors
/// As [`MergeOperands::apply`].
pub(crate) fn apply(
    merge: Option<&dyn MergeOperator>,
    key: &[u8],
    base: Option<&[u8]>,
    operands: &[Vec<u8>],
) -> Result<Vec<u8>> {
    let mut all = MergeOperands::default();
    for operand in operands {
        all.push_newer(PinnedSlice::owned(operand.clone()));
    }
    all.apply(merge, key, base)
}
