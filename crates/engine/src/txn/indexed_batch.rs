//! A batch that can be read before it is written: RocksDB's `WriteBatchWithIndex`.

use drumlin_base::{Error, ErrorKind, PinnedSlice, Result};

use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::options::settings::ReadOptions;
use crate::txn::family_writes::{Change, FamilyWrites, apply};
use crate::txn::overlay::{Course, OverlayIterator};
use crate::txn::own_writes::{Mark, OwnWrites};
use crate::write::batch::WriteBatch;

/// Writes that are not made yet, and reads as if they were.
///
/// ```
/// # fn main() -> drumlin::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("drumlin-indexed-doc-{}", std::process::id()));
/// use drumlin::{Db, IndexedBatch, Options, ReadOptions, WriteOptions};
///
/// let db = Db::open(&dir, Options::default())?;
/// db.put(b"a", b"1")?;
/// let family = db.default_family();
///
/// let mut batch = IndexedBatch::new();
/// batch.put(family, b"b", b"2")?;
/// batch.delete_range(family, b"a", b"b")?;
/// let mut walk = batch.iter_over(&db, family, ReadOptions::default())?;
/// walk.seek_to_first();
/// assert_eq!((walk.key(), walk.value()), (&b"b"[..], &b"2"[..]));
/// drop(walk);
/// assert!(db.get(b"b")?.is_none()); // Nothing is written yet.
///
/// db.write(batch.into_batch(), &WriteOptions::default())?;
/// assert!(db.get(b"a")?.is_none());
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
///
/// It locks nothing and sees no conflict; for that there is [`crate::TransactionDb`]. The families that it is given
/// are of one database. A family whose key order is the user's own can be written to, and not be read.
#[derive(Debug, Default)]
pub struct IndexedBatch {
    writes: OwnWrites,
    savepoints: Vec<Mark>,
}

impl IndexedBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The writes of `batch`, to be read and added to.
    pub fn of(batch: WriteBatch) -> Self {
        Self {
            writes: OwnWrites::of(batch),
            savepoints: Vec::new(),
        }
    }

    /// The batch, to be added to by the numbers of families.
    pub fn batch_mut(&mut self) -> &mut WriteBatch {
        self.writes.batch_mut()
    }

    /// The batch as it will be written.
    pub fn batch(&self) -> &WriteBatch {
        self.writes.batch()
    }

    /// The batch, for [`Db::write`].
    pub fn into_batch(self) -> WriteBatch {
        self.writes.into_batch()
    }

    /// Removes every write and every savepoint.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.savepoints.clear();
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put(&mut self, family: &ColumnFamily, key: &[u8], value: &[u8]) -> Result<()> {
        self.writes.batch_mut().put_cf(family.id(), key, value)
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.writes.batch_mut().delete_cf(family.id(), key)
    }

    /// Removes `key`, which was put exactly once since it was last removed.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.writes.batch_mut().single_delete_cf(family.id(), key)
    }

    /// Adds `operand` to `key` for the family's merge operator.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn merge(&mut self, family: &ColumnFamily, key: &[u8], operand: &[u8]) -> Result<()> {
        self.writes.batch_mut().merge_cf(family.id(), key, operand)
    }

    /// Removes every key from `begin` up to, not including, `end`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]; `InvalidArgument` where `end` comes before `begin`.
    pub fn delete_range(&mut self, family: &ColumnFamily, begin: &[u8], end: &[u8]) -> Result<()> {
        check_range(family, begin, end)?;
        let batch = self.writes.batch_mut();
        batch.delete_range_cf(family.id(), begin, end)
    }

    /// Notes where the batch stands.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(self.writes.mark());
    }

    /// Removes the writes since the last savepoint, and the savepoint.
    ///
    /// # Errors
    /// `NotFound` without one.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let mark = self.pop()?;
        self.writes.go_back(mark);
        Ok(())
    }

    /// Forgets the last savepoint.
    ///
    /// # Errors
    /// `NotFound` without one.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.pop().map(drop)
    }

    fn pop(&mut self) -> Result<Mark> {
        let none = || Error::new(ErrorKind::NotFound, "the batch has no savepoint");
        self.savepoints.pop().ok_or_else(none)
    }

    /// What the batch alone does to `key`.
    ///
    /// # Errors
    /// `NotSupported` for a family with a key order of the user's; the merge operator's.
    pub fn change(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<Change<'_>> {
        let merge = family.0.options.merge_operator.as_deref();
        self.of_family(family)?.change(key, merge)
    }

    /// Each key that the batch writes to, other than by deleting a range, in the order of the family, with what the
    /// batch does to it.
    ///
    /// # Errors
    /// As [`IndexedBatch::change`], at once or for a key.
    pub fn changes<'a>(
        &'a mut self,
        family: &'a ColumnFamily,
    ) -> Result<impl Iterator<Item = Result<(&'a [u8], Change<'a>)>>> {
        let merge = family.0.options.merge_operator.as_deref();
        let keys = self.of_family(family)?.keys().iter();
        Ok(keys.map(move |(key, own)| Ok((key, own.change(key, merge)?))))
    }

    /// The ranges that the batch deletes, in their order, those that touch as one: the first key that is deleted and the
    /// first that is not. What [`IndexedBatch::changes`] says of a key within is said of the time after.
    ///
    /// # Errors
    /// As [`IndexedBatch::change`].
    pub fn deleted_ranges(
        &mut self,
        family: &ColumnFamily,
    ) -> Result<impl Iterator<Item = (&[u8], &[u8])>> {
        Ok(self.of_family(family)?.holes())
    }

    /// The value of `key` as it would be with the batch written to `db`.
    ///
    /// # Errors
    /// As [`Db::get_cf`] and [`IndexedBatch::change`].
    pub fn get_over(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        let merge = family.0.options.merge_operator.as_deref();
        db.engine.store.check_own(&family.0)?;
        get_over(
            self.of_family(family)?.change(key, merge)?,
            family,
            key,
            || db.get_cf(family, key, options),
        )
    }

    /// A walk over `family` as it would be with the batch written to `db`.
    ///
    /// # Errors
    /// As [`IndexedBatch::change`]; `InvalidArgument` for a family of another store. The walk's own are its status.
    pub fn iter_over(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        mut options: ReadOptions,
    ) -> Result<OverlayIterator<'_>> {
        db.engine.store.check_own(&family.0)?;
        let course = Course::new(family, &mut options);
        let stored = db.iter_cf(family, options);
        Ok(OverlayIterator::new(
            stored,
            self.of_family(family)?,
            course,
        ))
    }

    fn of_family(&mut self, family: &ColumnFamily) -> Result<&FamilyWrites> {
        check_order(family)?;
        self.writes.of_family(family)
    }
}

/// The value of `key` after `change`, onto what `stored` gives.
///
/// # Errors
/// Those of `stored`; the merge operator's.
pub(crate) fn get_over(
    change: Change<'_>,
    family: &ColumnFamily,
    key: &[u8],
    stored: impl FnOnce() -> Result<Option<PinnedSlice>>,
) -> Result<Option<PinnedSlice>> {
    Ok(match change {
        Change::Untouched => stored()?,
        Change::Value(value) => Some(value),
        Change::Deleted => None,
        Change::Operands(operands) => {
            let merge = family.0.options.merge_operator.as_deref();
            let merged = apply(merge, key, stored()?.as_deref(), operands)?;
            Some(PinnedSlice::owned(merged))
        }
    })
}

/// Refuses a family whose equal keys may be different bytes.
///
/// # Errors
/// `NotSupported`, with the family's name.
pub(crate) fn check_order(family: &ColumnFamily) -> Result<()> {
    if family.order().equality_is_bytewise() {
        return Ok(());
    }
    let message = format!(
        "own writes and locks in column family {:?}: its key order is the user's own",
        family.name()
    );
    Err(Error::not_supported(message))
}

/// Refuses a range that ends before it begins.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn check_range(family: &ColumnFamily, begin: &[u8], end: &[u8]) -> Result<()> {
    if family.order().compare(begin, end).is_le() {
        return Ok(());
    }
    let message = format!(
        "a range of column family {:?} ends (\"{}\") before it begins (\"{}\")",
        family.name(),
        end.escape_ascii(),
        begin.escape_ascii()
    );
    Err(Error::invalid_argument(message))
}
