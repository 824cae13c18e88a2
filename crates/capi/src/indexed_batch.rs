//! `rocksdb_writebatch_wi_t`, and walks over writes that are not made yet.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use drumlin::{
    ColumnFamily, Db, Error, IndexedBatch, OverlayIterator, ReadOptions, Result, WriteBatch,
};
use drumlin_ffi::handle::{self, Handle};

use crate::batch::{Deleted, Put, iterate};
use crate::family::Family;
use crate::iterator::Walk;
use crate::small_options::Reads;

/// A batch, and the first thing that did not fit, which the write reports.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    batch: IndexedBatch,
    refused: Option<Error>,
}

impl Writes {
    pub(crate) fn of(batch: WriteBatch) -> Self {
        Self {
            batch: IndexedBatch::of(batch),
            refused: None,
        }
    }

    pub(crate) fn batch(&self) -> &WriteBatch {
        self.batch.batch()
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.refused
            .as_ref()
            .map_or(Ok(()), |refused| Err(refused.duplicate()))
    }

    fn change(&mut self, change: impl FnOnce(&mut WriteBatch) -> Result<()>) {
        if let Err(error) = change(self.batch.batch_mut()) {
            self.refused.get_or_insert(error);
        }
    }
}

/// What the handle holds: writes of its own, or those that a transaction lends. A lent handle is given back with
/// `rocksdb_free`, which drops nothing, so it holds a bare pointer.
#[derive(Debug)]
pub(crate) struct Indexed {
    writes: *mut Writes,
    is_owner: bool,
}

impl Default for Indexed {
    fn default() -> Self {
        Self::own(Writes::default())
    }
}

impl Indexed {
    fn own(writes: Writes) -> Self {
        Self {
            writes: Box::into_raw(Box::new(writes)),
            is_owner: true,
        }
    }

    /// A handle of what `writes` has, which stays where it is.
    pub(crate) fn lent(writes: &mut Writes) -> Self {
        Self {
            writes,
            is_owner: false,
        }
    }

    pub(crate) fn get(&self) -> &Writes {
        // SAFETY: it came from a box that is this handle's, or of a transaction that c.h says outlives this.
        unsafe { &*self.writes }
    }

    fn get_mut(&mut self) -> &mut Writes {
        // SAFETY: as above, and one thread at a time uses a batch and its transaction.
        unsafe { &mut *self.writes }
    }
}

impl Drop for Indexed {
    fn drop(&mut self) {
        if self.is_owner {
            // SAFETY: it came from a box, and this runs once.
            drop(unsafe { Box::from_raw(self.writes) });
        }
    }
}

/// A walk over a copy of the writes, so that they may go on.
pub(crate) struct Overlaid {
    walk: ManuallyDrop<OverlayIterator<'static>>,
    copy: *mut IndexedBatch,
}

impl Overlaid {
    /// A walk over `family` of `db` as `options` say, with `writes` on top.
    pub(crate) fn new(
        writes: &WriteBatch,
        db: &Db,
        family: &ColumnFamily,
        options: ReadOptions,
    ) -> Result<Box<Self>> {
        let copy = Box::into_raw(Box::new(IndexedBatch::of(writes.clone())));
        // SAFETY: it is from a box, which lives as long as the walk, and nobody else uses it.
        let lent: &'static mut IndexedBatch = unsafe { &mut *copy };
        match lent.iter_over(db, family, options) {
            Ok(walk) => Ok(Box::new(Self {
                walk: ManuallyDrop::new(walk),
                copy,
            })),
            Err(error) => {
                // SAFETY: the walk was not made, so nobody uses it.
                drop(unsafe { Box::from_raw(copy) });
                Err(error)
            }
        }
    }
}

impl Drop for Overlaid {
    fn drop(&mut self) {
        // SAFETY: this runs once, and nobody uses the walk after it.
        unsafe { ManuallyDrop::drop(&mut self.walk) };
        // SAFETY: it came from a box, and what borrowed from it is gone.
        drop(unsafe { Box::from_raw(self.copy) });
    }
}

impl Deref for Overlaid {
    type Target = OverlayIterator<'static>;

    fn deref(&self) -> &Self::Target {
        &self.walk
    }
}

impl DerefMut for Overlaid {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.walk
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_wi_iterate(
    batch: *mut Handle<Indexed>,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
) {
    const NAME: &str = "rocksdb_writebatch_wi_iterate";
    // SAFETY: the C program's promise.
    let batch = unsafe { handle::get(batch, NAME) };
    // SAFETY: as above.
    unsafe { iterate(batch.get().batch(), state, (put, deleted), NAME) };
}

/// Takes the base over, and walks its family anew, as it is now, with the batch on top.
///
/// # Safety
/// All are handles.
unsafe fn with_base(
    batch: *mut Handle<Indexed>,
    base: *mut Handle<Walk>,
    family: Option<&Family>,
    function: &str,
) -> *mut Handle<Walk> {
    // SAFETY: the caller's promise.
    let batch = unsafe { handle::get(batch, function) };
    // SAFETY: as above.
    let base = unsafe { handle::take(base, function) };
    drumlin_ffi::error::guard_infallible(function, || {
        handle::create(base.overlaid(batch.get().batch(), family))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base(
    batch: *mut Handle<Indexed>,
    base: *mut Handle<Walk>,
) -> *mut Handle<Walk> {
    const NAME: &str = "rocksdb_writebatch_wi_create_iterator_with_base";
    // SAFETY: the C program's promise.
    unsafe { with_base(batch, base, None, NAME) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_cf(
    batch: *mut Handle<Indexed>,
    base: *mut Handle<Walk>,
    family: *mut Handle<Family>,
) -> *mut Handle<Walk> {
    const NAME: &str = "rocksdb_writebatch_wi_create_iterator_with_base_cf";
    // SAFETY: the C program's promise.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    unsafe { with_base(batch, base, Some(family), NAME) }
}

/// The options are those of the base.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_readopts(
    batch: *mut Handle<Indexed>,
    base: *mut Handle<Walk>,
    options: *const Handle<Reads>,
) -> *mut Handle<Walk> {
    const NAME: &str = "rocksdb_writebatch_wi_create_iterator_with_base_readopts";
    // SAFETY: the C program's promise.
    unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    unsafe { with_base(batch, base, None, NAME) }
}

/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
    batch: *mut Handle<Indexed>,
    base: *mut Handle<Walk>,
    family: *mut Handle<Family>,
    options: *const Handle<Reads>,
) -> *mut Handle<Walk> {
    const NAME: &str = "rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts";
    // SAFETY: the C program's promise.
    unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    unsafe { with_base(batch, base, Some(family), NAME) }
}

pub(crate) mod calls {
    use drumlin::{Error, ErrorKind, PinnedSlice, Result, WriteBatch};
    use drumlin_base::ValueKind;

    use super::{Indexed, Reads, Writes};
    use crate::batch::{as_of_a_write, id_of, joined};
    use crate::comparator::Ordered;
    use crate::database::Database;
    use crate::family::Family;
    use crate::fields::Writeoptions;
    use crate::options::OpenOptions;
    use crate::reads::Pinned;

    /// A batch of both kinds, of keys that are overwritten and that are not, reads the same.
    pub(crate) fn writebatch_wi_create(_reserved: usize, _overwrite: bool) -> Indexed {
        Indexed::default()
    }

    /// It has no bound, and its order is that of each family.
    pub(crate) fn writebatch_wi_create_with_params(
        _order: Option<&Ordered>,
        _reserved: usize,
        _overwrite: bool,
        _bytes_max: usize,
        _protection_bytes: usize,
    ) -> Indexed {
        Indexed::default()
    }

    pub(crate) fn writebatch_wi_get_pinned_from_batch_and_db_cf(
        batch: &mut Indexed,
        db: &Database,
        options: &Reads,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<Pinned>> {
        let found = writebatch_wi_get_from_batch_and_db_cf(batch, db, options, family, key)?;
        Ok(found.map(Pinned))
    }

    /// A batch that does not parse is refused by the write.
    pub(crate) fn writebatch_wi_create_from(bytes: &[u8]) -> Indexed {
        Indexed::own(match WriteBatch::from_bytes(bytes.to_vec()) {
            Ok(batch) => Writes::of(batch),
            Err(error) => Writes {
                refused: Some(error),
                ..Writes::default()
            },
        })
    }

    pub(crate) fn writebatch_wi_clear(batch: &mut Indexed) {
        *batch.get_mut() = Writes::default();
    }

    pub(crate) fn writebatch_wi_count(batch: &mut Indexed) -> i32 {
        i32::try_from(batch.get().batch().count()).unwrap_or(i32::MAX)
    }

    pub(crate) fn writebatch_wi_put_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        key: &[u8],
        value: &[u8],
    ) {
        batch
            .get_mut()
            .change(|batch| batch.put_cf(id_of(family), key, value));
    }

    pub(crate) fn writebatch_wi_putv_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        key: &[&[u8]],
        value: &[&[u8]],
    ) {
        writebatch_wi_put_cf(batch, family, &joined(key), &joined(value));
    }

    pub(crate) fn writebatch_wi_merge_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        key: &[u8],
        operand: &[u8],
    ) {
        batch
            .get_mut()
            .change(|batch| batch.merge_cf(id_of(family), key, operand));
    }

    pub(crate) fn writebatch_wi_mergev_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        key: &[&[u8]],
        operand: &[&[u8]],
    ) {
        writebatch_wi_merge_cf(batch, family, &joined(key), &joined(operand));
    }

    pub(crate) fn writebatch_wi_delete_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        key: &[u8],
    ) {
        batch
            .get_mut()
            .change(|batch| batch.delete_cf(id_of(family), key));
    }

    pub(crate) fn writebatch_wi_singledelete_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        key: &[u8],
    ) {
        batch
            .get_mut()
            .change(|batch| batch.single_delete_cf(id_of(family), key));
    }

    pub(crate) fn writebatch_wi_deletev_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        key: &[&[u8]],
    ) {
        writebatch_wi_delete_cf(batch, family, &joined(key));
    }

    pub(crate) fn writebatch_wi_delete_range_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        begin: &[u8],
        end: &[u8],
    ) {
        batch
            .get_mut()
            .change(|batch| batch.delete_range_cf(id_of(family), begin, end));
    }

    pub(crate) fn writebatch_wi_delete_rangev_cf(
        batch: &mut Indexed,
        family: Option<&Family>,
        begin: &[&[u8]],
        end: &[&[u8]],
    ) {
        writebatch_wi_delete_range_cf(batch, family, &joined(begin), &joined(end));
    }

    pub(crate) fn writebatch_wi_put_log_data(batch: &mut Indexed, data: &[u8]) {
        batch.get_mut().change(|batch| batch.put_log_data(data));
    }

    pub(crate) fn writebatch_wi_data(batch: &mut Indexed) -> Option<&[u8]> {
        Some(batch.get().batch().bytes())
    }

    pub(crate) fn writebatch_wi_set_save_point(batch: &mut Indexed) {
        batch.get_mut().batch.set_savepoint();
    }

    pub(crate) fn writebatch_wi_rollback_to_save_point(batch: &mut Indexed) -> Result<()> {
        let none = |_| Error::new(ErrorKind::NotFound, "");
        batch.get_mut().batch.rollback_to_savepoint().map_err(none)
    }

    /// What the batch alone says of the key: nothing where its operands need what is stored.
    pub(crate) fn writebatch_wi_get_from_batch_cf(
        batch: &mut Indexed,
        _options: Option<&OpenOptions>,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let mut value = Ok(None);
        for record in batch.get().batch().iter() {
            let record = record?;
            if record.family != id_of(family) {
                continue;
            }
            match record.kind {
                ValueKind::RangeDeletion if record.key <= key && key < record.value => {
                    value = Ok(None)
                }
                ValueKind::RangeDeletion => {}
                _ if record.key != key => {}
                ValueKind::Deletion | ValueKind::SingleDeletion => value = Ok(None),
                ValueKind::Merge => value = Err(()),
                _ => value = Ok(Some(record.value.to_vec())),
            }
        }
        value.map_err(|()| {
            let message = "Merge in progress: read the key from the batch and the database";
            Error::new(ErrorKind::Incomplete, message)
        })
    }

    pub(crate) fn writebatch_wi_get_from_batch_and_db_cf(
        batch: &mut Indexed,
        db: &Database,
        options: &Reads,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<PinnedSlice>> {
        let options = options.to_engine()?;
        let batch = &mut batch.get_mut().batch;
        batch.get_over(db.db(), db.family(family), key, &options)
    }

    pub(crate) fn write_writebatch_wi(
        db: &Database,
        options: &Writeoptions,
        batch: &mut Indexed,
    ) -> Result<()> {
        batch.get().check()?;
        let write = db.write(batch.get().batch().clone(), &options.to_engine()?);
        write.map_err(as_of_a_write)
    }
}
