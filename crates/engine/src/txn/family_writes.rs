//! What came of a batch's writes to one family: an index by key, and the ranges it deleted.
//!
//! It holds the outcome of all writes to a key, so a read needs no order among them.
//!
//! Invariant: no two of the deleted ranges touch. What the store has of a key in one of them counts no more; a key of
//! the index was written after the last range deletion over it.

use drumlin_base::{Error, KeyOrder, MergeOperator, PinnedSlice, Result, ValueKind};

use crate::iter::merge_operands::MergeOperands;
use crate::txn::ordered_map::OrderedMap;
use crate::write::batch::BatchRecord;

/// What the operands of a key apply to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Base {
    /// What the store has.
    Store,
    /// A value of the batch's own.
    Value(Vec<u8>),
    /// Nothing: the batch deleted the key.
    Nothing,
}

/// All that the batch did to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    base: Base,
    /// Oldest first.
    operands: Vec<Vec<u8>>,
}

/// What a batch does to a key.
#[derive(Debug)]
pub enum Change<'a> {
    /// Nothing: what the store has stays.
    Untouched,
    /// It has this value then, whatever the store has.
    Value(PinnedSlice),
    /// It is there no more.
    Deleted,
    /// Operands, oldest first, for the family's merge operator onto what the store has.
    Operands(&'a [Vec<u8>]),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct FamilyWrites {
    keys: OrderedMap<Own>,
    /// From the first key deleted to the first that is not.
    holes: OrderedMap<Vec<u8>>,
}

impl FamilyWrites {
    /// No writes to a family of this order.
    pub(crate) fn new(order: &KeyOrder) -> Self {
        Self {
            keys: OrderedMap::new(order.clone()),
            holes: OrderedMap::new(order.clone()),
        }
    }

    /// The keys that were written to, other than by range deletions.
    pub(crate) fn keys(&self) -> &OrderedMap<Own> {
        &self.keys
    }

    /// The deleted ranges: first key deleted, first key that is not.
    pub(crate) fn holes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.holes.iter().map(|(begin, end)| (begin, &end[..]))
    }

    /// The deleted range over `key`.
    pub(crate) fn hole_over(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        let (begin, end) = self.holes.seek_for_prev(key)?;
        let is_over = self.holes.order().compare(key, end).is_lt();
        is_over.then_some((begin, end))
    }

    /// Takes in one write, which came after all before.
    ///
    /// # Errors
    /// `NotSupported` for a kind that no batch of a program's has.
    pub(crate) fn add(&mut self, record: &BatchRecord<'_>) -> Result<()> {
        let BatchRecord { key, value, .. } = *record;
        match record.kind {
            ValueKind::Value => self.replace(key, Base::Value(value.to_vec())),
            ValueKind::Deletion | ValueKind::SingleDeletion => self.replace(key, Base::Nothing),
            ValueKind::Merge => {
                let deleted = self.hole_over(key).is_some();
                let own = self.keys.entry(key, || match deleted {
                    true if !drumlin_base::bug!("merged-onto-a-deleted-range") => {
                        Own::of(Base::Nothing)
                    }
                    _ => Own::of(Base::Store),
                });
                own.operands.push(value.to_vec());
            }
            ValueKind::RangeDeletion => self.delete_range(key, value),
            kind => {
                let message = format!("a record of kind {kind:?} in a batch that is read back");
                return Err(Error::not_supported(message));
            }
        }
        Ok(())
    }

    fn replace(&mut self, key: &[u8], base: Base) {
        let own = self.keys.entry(key, || Own::of(Base::Nothing));
        own.base = base;
        own.operands.clear();
    }

    fn delete_range(&mut self, begin: &[u8], end: &[u8]) {
        let order = self.keys.order().clone();
        if order.compare(begin, end).is_ge() {
            return;
        }
        while let Some((key, _)) = self.keys.seek(begin)
            && order.compare(key, end).is_lt()
        {
            let key = key.to_vec();
            self.keys.remove(&key);
        }
        let (mut begin, mut end) = (begin.to_vec(), end.to_vec());
        if let Some((before, until)) = self.holes.seek_for_prev(&begin)
            && order.compare(until, &begin).is_ge()
        {
            begin = before.to_vec();
        }
        while let Some((next, until)) = self.holes.seek(&begin)
            && order.compare(next, &end).is_le()
        {
            if order.compare(until, &end).is_gt() {
                end = until.clone();
            }
            let next = next.to_vec();
            self.holes.remove(&next);
        }
        self.holes.insert(begin, end);
    }

    /// What becomes of `key`; `merge` is the family's operator.
    ///
    /// # Errors
    /// The operator's, of operands onto an own value.
    pub(crate) fn change(
        &self,
        key: &[u8],
        merge: Option<&dyn MergeOperator>,
    ) -> Result<Change<'_>> {
        match self.keys.get(key) {
            Some(own) => own.change(key, merge),
            None if self.hole_over(key).is_some() => Ok(Change::Deleted),
            None => Ok(Change::Untouched),
        }
    }
}

impl Own {
    fn of(base: Base) -> Self {
        let operands = Vec::new();
        Self { base, operands }
    }

    /// See [`FamilyWrites::change`].
    pub(crate) fn change(
        &self,
        key: &[u8],
        merge: Option<&dyn MergeOperator>,
    ) -> Result<Change<'_>> {
        let base = match &self.base {
            Base::Store => return Ok(Change::Operands(&self.operands)),
            Base::Value(value) => Some(&value[..]),
            Base::Nothing => None,
        };
        if !self.operands.is_empty() {
            let merged = apply(merge, key, base, &self.operands)?;
            return Ok(Change::Value(PinnedSlice::owned(merged)));
        }
        Ok(match base {
            Some(value) => Change::Value(PinnedSlice::owned(value.to_vec())),
            None => Change::Deleted,
        })
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
