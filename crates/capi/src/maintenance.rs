//! Flushes, compactions, properties, sizes, checkpoints, external tables taken in.

use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;

use drumlin::{ColumnFamily, Db, Error, Result};
use drumlin_ffi::bytes::{array, path, slice};
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{guard, set};
use crate::family::Family;
use crate::fields::{
    Compactoptions, Flushoptions, Ingestexternalfileoptions, SizeApproximationOptions,
};
use crate::reads::families;
use crate::snapshot::ErrPtr;
use crate::timestamps;
use crate::transaction::{OptimisticDatabase, TransactionDatabase};

/// `rocksdb_compactoptions_t`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompactOptions {
    pub(crate) fields: Compactoptions,
    /// Nobody will read below it.
    full_history_ts_low: Option<Vec<u8>>,
}

/// `rocksdb_checkpoint_t`: the database that is copied.
#[derive(Debug)]
pub(crate) struct Checkpoint(Db);

impl Checkpoint {
    pub(crate) fn db(&self) -> &Db {
        &self.0
    }
}

/// The timestamp is copied.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactoptions_set_full_history_ts_low(
    options: *mut Handle<CompactOptions>,
    low: *mut c_char,
    len: usize,
) {
    const NAME: &str = "rocksdb_compactoptions_set_full_history_ts_low";
    // SAFETY: the C program's promise.
    let options = unsafe { handle::get_mut(options, NAME) };
    // SAFETY: as above.
    let low = (!low.is_null()).then(|| unsafe { slice(low, len, NAME) });
    options.full_history_ts_low = low.map(<[u8]>::to_vec);
}

/// The number of a property; -1 where there is none or it is no number.
///
/// # Safety
/// As c.h has it.
unsafe fn property_int(
    db: &Database,
    family: &ColumnFamily,
    name: &CStr,
    value: *mut u64,
    function: &str,
) -> c_int {
    let told = guard_infallible(function, || {
        let name = name.to_str().ok()?;
        // A text to RocksDB, though it reads as a number.
        let is_text = name.starts_with("rocksdb.num-files-at-level");
        let value = (!is_text).then(|| db.db().property(family, name))??;
        value.parse().ok()
    });
    match told {
        Some(number) => {
            // SAFETY: the caller's promise.
            unsafe { set(value, 0, number) };
            0
        }
        None => -1,
    }
}

/// `rocksdb_property_int` of one kind of database.
macro_rules! property_ints {
    ($database:ty, $function:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(
            db: *mut Handle<$database>,
            name: *const c_char,
            value: *mut u64,
        ) -> c_int {
            const NAME: &str = stringify!($function);
            // SAFETY: the C program's promise.
            let db = unsafe { handle::get(db, NAME) };
            // SAFETY: as above.
            let name = unsafe { drumlin_ffi::bytes::text(name, NAME) };
            // SAFETY: as above.
            unsafe { property_int(db, db.family(None), name, value, NAME) }
        }
    };
}

property_ints!(Database, rocksdb_property_int);
property_ints!(TransactionDatabase, rocksdb_transactiondb_property_int);
property_ints!(
    OptimisticDatabase,
    rocksdb_optimistictransactiondb_property_int
);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_property_int_cf(
    db: *mut Handle<Database>,
    family: *mut Handle<Family>,
    name: *const c_char,
    value: *mut u64,
) -> c_int {
    const NAME: &str = "rocksdb_property_int_cf";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    let name = unsafe { drumlin_ffi::bytes::text(name, NAME) };
    // SAFETY: as above.
    unsafe { property_int(db, &family.0, name, value, NAME) }
}

/// Ranges and the places for their sizes, as C has them.
struct Ranges {
    count: c_int,
    begins: *const *const c_char,
    begin_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
    sizes: *mut u64,
}

impl Ranges {
    /// As `answer`, of some parts of the database.
    ///
    /// # Safety
    /// As above.
    unsafe fn answer_of(
        &self,
        parts: Parts,
        (db, family): (&Database, &ColumnFamily),
        errptr: ErrPtr,
        function: &str,
    ) {
        // SAFETY: the caller's promise.
        if unsafe { guard(function, errptr, || parts.check()) }.is_some() {
            // SAFETY: as above.
            unsafe { self.answer(db, family, errptr, function) };
        }
    }

    /// # Safety
    /// The arrays have `count` entries.
    unsafe fn answer(&self, db: &Database, family: &ColumnFamily, errptr: ErrPtr, function: &str) {
        let count = usize::try_from(self.count).unwrap_or(0);
        // SAFETY: the caller's promise.
        let begins = unsafe { array(self.begins, self.begin_lens, count, function) };
        // SAFETY: as above.
        let ends = unsafe { array(self.ends, self.end_lens, count, function) };
        let place = |key: &[u8]| timestamps::first(family, key);
        let ranges: Vec<_> = begins.into_iter().zip(ends).collect();
        let ranges: Vec<_> = ranges
            .iter()
            .map(|(begin, end)| (place(begin), place(end)))
            .collect();
        let ranges: Vec<(&[u8], &[u8])> = ranges.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        let tell = || db.db().approximate_sizes(family, &ranges);
        // SAFETY: as above.
        let told = unsafe { guard(function, errptr, tell) };
        for (at, size) in told.into_iter().flatten().enumerate() {
            // SAFETY: as above.
            unsafe { set(self.sizes, at, size) };
        }
    }
}

/// What sizes are to be the sum of.
#[derive(Clone, Copy, Debug)]
struct Parts {
    memtables: bool,
    files: bool,
    blobs: bool,
}

impl Parts {
    /// The flags of `rocksdb_approximate_sizes_cf_with_flags`.
    fn of_flags(flags: u8) -> Self {
        Self {
            memtables: flags & 1 != 0,
            files: flags & 2 != 0,
            blobs: flags & 4 != 0,
        }
    }

    /// Those of `options`, or the defaults where it is null.
    ///
    /// # Safety
    /// It is null or a handle.
    unsafe fn of_options(options: *const Handle<SizeApproximationOptions>, function: &str) -> Self {
        let defaults = SizeApproximationOptions::default();
        let options = match options.is_null() {
            true => &defaults,
            // SAFETY: the caller's promise.
            false => unsafe { handle::get(options, function) },
        };
        Self {
            memtables: options.include_memtables(),
            files: options.include_files(),
            blobs: options.include_blob_files(),
        }
    }

    /// Refuses what cannot be told.
    fn check(self) -> Result<()> {
        match self {
            Self {
                memtables: true, ..
            } => Err(Error::not_supported(
                "include_memtables=true: sizes are those of tables; flush first",
            )),
            Self { blobs: true, .. } => Err(Error::not_supported(
                "include_blob_files=true: values in blob files are not told by range",
            )),
            Self { files: false, .. } => Err(Error::invalid_argument(
                "neither memtables nor files are asked for",
            )),
            Self { .. } => Ok(()),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes_cf_with_flags(
    db: *mut Handle<Database>,
    family: *mut Handle<Family>,
    count: c_int,
    begins: *const *const c_char,
    begin_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
    flags: u8,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_approximate_sizes_cf_with_flags";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    let ranges = Ranges {
        count,
        begins,
        begin_lens,
        ends,
        end_lens,
        sizes,
    };
    // SAFETY: as above.
    unsafe { ranges.answer_of(Parts::of_flags(flags), (db, &family.0), errptr, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes_with_options(
    db: *mut Handle<Database>,
    options: *const Handle<SizeApproximationOptions>,
    count: c_int,
    begins: *const *const c_char,
    begin_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_approximate_sizes_with_options";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    let ranges = Ranges {
        count,
        begins,
        begin_lens,
        ends,
        end_lens,
        sizes,
    };
    // SAFETY: as above.
    let parts = unsafe { Parts::of_options(options, NAME) };
    // SAFETY: as above.
    unsafe { ranges.answer_of(parts, (db, db.family(None)), errptr, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes_cf_with_options(
    db: *mut Handle<Database>,
    family: *mut Handle<Family>,
    options: *const Handle<SizeApproximationOptions>,
    count: c_int,
    begins: *const *const c_char,
    begin_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_approximate_sizes_cf_with_options";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    let ranges = Ranges {
        count,
        begins,
        begin_lens,
        ends,
        end_lens,
        sizes,
    };
    // SAFETY: as above.
    let parts = unsafe { Parts::of_options(options, NAME) };
    // SAFETY: as above.
    unsafe { ranges.answer_of(parts, (db, &family.0), errptr, NAME) };
}

/// Flushes families one after another.
///
/// # Safety
/// `handles` has `count` handles.
unsafe fn flush_each(
    db: &Database,
    handles: *const *mut Handle<Family>,
    count: c_int,
    errptr: ErrPtr,
    function: &str,
) {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's promise.
    let families = unsafe { families(handles.cast(), count, function) };
    let flush = || {
        families
            .iter()
            .try_for_each(|family| db.db().flush_cf(&family.0))
    };
    // SAFETY: as above.
    unsafe { guard(function, errptr, flush) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_flush_cfs(
    db: *mut Handle<Database>,
    options: *const Handle<Flushoptions>,
    handles: *const *mut Handle<Family>,
    count: c_int,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_flush_cfs";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    unsafe { flush_each(db, handles, count, errptr, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_flush_cfs(
    db: *mut Handle<TransactionDatabase>,
    options: *const Handle<Flushoptions>,
    handles: *const *mut Handle<Family>,
    count: c_int,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_transactiondb_flush_cfs";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    unsafe { flush_each(db, handles, count, errptr, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes(
    db: *mut Handle<Database>,
    count: c_int,
    begins: *const *const c_char,
    begin_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_approximate_sizes";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    let ranges = Ranges {
        count,
        begins,
        begin_lens,
        ends,
        end_lens,
        sizes,
    };
    // SAFETY: as above.
    unsafe { ranges.answer(db, db.family(None), errptr, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_approximate_sizes_cf(
    db: *mut Handle<Database>,
    family: *mut Handle<Family>,
    count: c_int,
    begins: *const *const c_char,
    begin_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
    sizes: *mut u64,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_approximate_sizes_cf";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    let ranges = Ranges {
        count,
        begins,
        begin_lens,
        ends,
        end_lens,
        sizes,
    };
    // SAFETY: as above.
    unsafe { ranges.answer(db, &family.0, errptr, NAME) };
}

/// Takes in the tables of a list.
///
/// # Safety
/// `files` has `count` texts.
unsafe fn ingest(
    (db, family): (&Database, &ColumnFamily),
    (files, count): (*const *const c_char, usize),
    options: &Ingestexternalfileoptions,
    errptr: ErrPtr,
    function: &str,
) {
    let files: Vec<PathBuf> = (0..count)
        .map(|at| {
            // SAFETY: the caller's promise.
            let place = unsafe { files.add(at) };
            // SAFETY: as above.
            let file = unsafe { *place };
            // SAFETY: as above.
            unsafe { path(file, function) }
        })
        .collect();
    let take = || match options.ingest_behind() {
        true => Err(Error::not_supported(
            "ingest_behind=true: no level is kept empty; ingest on top",
        )),
        false if options.fail_if_not_bottommost_level() => Err(Error::not_supported(
            "fail_if_not_bottommost_level=true: tables are taken in on top",
        )),
        false => db.db().ingest(family, &files, options.move_files()),
    };
    // SAFETY: as above.
    unsafe { guard(function, errptr, take) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_ingest_external_file(
    db: *mut Handle<Database>,
    files: *const *const c_char,
    count: usize,
    options: *const Handle<Ingestexternalfileoptions>,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_ingest_external_file";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    unsafe { ingest((db, db.family(None)), (files, count), options, errptr, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_ingest_external_file_cf(
    db: *mut Handle<Database>,
    family: *mut Handle<Family>,
    files: *const *const c_char,
    count: usize,
    options: *const Handle<Ingestexternalfileoptions>,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_ingest_external_file_cf";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    unsafe { ingest((db, &family.0), (files, count), options, errptr, NAME) };
}

pub(crate) mod calls {
    use std::ffi::CStr;

    use drumlin::{Error, ErrorKind, Result};
    use drumlin_ffi::bytes::path_of;

    use super::{Checkpoint, CompactOptions, Database, Family, Flushoptions, TransactionDatabase};
    use crate::fields::{Flushwaloptions, WaitForCompactOptions};
    use crate::small_options::Reads;

    pub(crate) fn flush_cf(
        db: &Database,
        _options: &Flushoptions,
        family: Option<&Family>,
    ) -> Result<()> {
        db.db().flush_cf(db.family(family))
    }

    /// What was written is in the operating system's hands as soon as a write returns.
    pub(crate) fn flush_wal(db: &Database, sync: bool) -> Result<()> {
        match sync {
            true => db.db().sync_wal().map(drop),
            false => Ok(()),
        }
    }

    pub(crate) fn flush_wal_with_options(
        db: &Database,
        options: Option<&Flushwaloptions>,
    ) -> Result<()> {
        flush_wal(db, options.is_some_and(Flushwaloptions::sync))
    }

    pub(crate) fn transactiondb_flush_wal_with_options(
        db: &TransactionDatabase,
        options: Option<&Flushwaloptions>,
    ) -> Result<()> {
        flush_wal_with_options(db, options)
    }

    /// Waits for flushes and compactions as long as they take.
    pub(crate) fn wait_for_compact(
        db: &Database,
        options: &mut WaitForCompactOptions,
    ) -> Result<()> {
        if options.flush() {
            db.db().flush()?;
        }
        db.db().wait_for_background()?;
        match options.close_db() {
            true => db.db().clone().close(),
            false => Ok(()),
        }
    }

    /// The first damage found; every byte that is stored is read.
    pub(crate) fn verify_checksum(db: &Database) -> Result<()> {
        let damaged = db.db().verify()?.damaged;
        match damaged.into_iter().next() {
            Some((file, error)) => Err(error.with_kind(ErrorKind::Corruption).with_file(&file)),
            None => Ok(()),
        }
    }

    pub(crate) fn verify_checksum_with_options(
        db: &Database,
        _options: Option<&Reads>,
    ) -> Result<()> {
        verify_checksum(db)
    }

    /// Checksums of whole files are not kept.
    pub(crate) fn verify_file_checksums(_db: &Database) -> Result<()> {
        let message = "Cannot verify file checksum if options.file_checksum_gen_factory is null";
        Err(Error::invalid_argument(message))
    }

    pub(crate) fn verify_file_checksums_with_options(
        db: &Database,
        _options: Option<&Reads>,
    ) -> Result<()> {
        verify_file_checksums(db)
    }

    /// None where there is no place for an error.
    pub(crate) fn get_db_identity(db: &Database) -> Option<String> {
        db.db().identity().ok().flatten()
    }

    pub(crate) fn property_value_cf(
        db: &Database,
        family: Option<&Family>,
        name: &CStr,
    ) -> Option<String> {
        db.db().property(db.family(family), name.to_str().ok()?)
    }

    /// An error shows in the next write, for there is no place for one.
    pub(crate) fn compact_range_cf(
        db: &Database,
        family: Option<&Family>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) {
        let _ = db.compact(db.family(family), begin, end);
    }

    pub(crate) fn compact_range_cf_opt(
        db: &Database,
        family: Option<&Family>,
        options: Option<&mut CompactOptions>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) {
        if let Some(low) = options.and_then(|options| options.full_history_ts_low.clone()) {
            let raised = db
                .db()
                .increase_full_history_ts_low(db.family(family), &low);
            if raised.is_err() {
                return;
            }
        }
        compact_range_cf(db, family, begin, end);
    }

    /// Errors have no place: what cannot be taken out stays, as with RocksDB. So do tables of families with timestamps, and WAL files.
    pub(crate) fn delete_file(db: &Database, name: &CStr) {
        let name = path_of(name);
        let named = name.file_name();
        for family in db.db().families() {
            let tables = db.db().live_tables(&family).unwrap_or_default();
            let mut tables = tables.iter();
            let found = tables.find(|table| named.is_some() && table.path.file_name() == named);
            if let Some(table) = found
                && crate::timestamps::refuse(&family).is_ok()
            {
                // See above.
                let _ = db.db().delete_table(&family, table.number);
                db.finish_removal();
            }
        }
    }

    /// Both ends included, as RocksDB's.
    pub(crate) fn delete_file_in_range_cf(
        db: &Database,
        family: Option<&Family>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        crate::timestamps::refuse(db.family(family))?;
        db.db()
            .delete_files_in_range(db.family(family), begin, end)?;
        db.finish_removal();
        Ok(())
    }

    /// The background finds by itself what to compact.
    pub(crate) fn suggest_compact_range_cf(
        _db: &Database,
        _family: Option<&Family>,
        _begin: Option<&[u8]>,
        _end: Option<&[u8]>,
    ) -> Result<()> {
        Ok(())
    }

    /// Until it is enabled as often; a pause of the engine's.
    pub(crate) fn disable_file_deletions(db: &Database) -> Result<()> {
        db.db().pause_removal()
    }

    #[cfg(abi_since = "9.11")]
    pub(crate) fn enable_file_deletions(db: &Database) -> Result<()> {
        continue_removal(db).map(drop)
    }

    /// With `force`, however often it was disabled.
    #[cfg(not(abi_since = "9.11"))]
    pub(crate) fn enable_file_deletions(db: &Database, force: bool) -> Result<()> {
        while continue_removal(db)? && force {}
        Ok(())
    }

    /// Whether it was disabled; enabling what is enabled is no error.
    fn continue_removal(db: &Database) -> Result<bool> {
        match db.db().continue_removal() {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => Ok(false),
            done => done.map(|()| true),
        }
    }

    pub(crate) fn pause_background_work(db: &Database) -> Result<()> {
        db.db().pause_background()
    }

    pub(crate) fn continue_background_work(db: &Database) -> Result<()> {
        db.db().continue_background()
    }

    pub(crate) fn get_latest_sequence_number(db: &Database) -> u64 {
        db.db().latest_seqno()
    }

    pub(crate) fn checkpoint_object_create(db: &Database) -> Result<Checkpoint> {
        Ok(Checkpoint(db.db().clone()))
    }

    /// WAL files are copied, so that nothing has to be flushed. It is where no byte of a WAL is allowed, of a database that
    /// can be written to, as in RocksDB.
    pub(crate) fn checkpoint_create(
        checkpoint: &Checkpoint,
        dir: &CStr,
        wal_bytes_for_flush: u64,
    ) -> Result<()> {
        if wal_bytes_for_flush == 0
            && let Err(error) = checkpoint.0.flush()
            && error.kind() != ErrorKind::ReadOnly
        {
            return Err(error);
        }
        let made = checkpoint.0.checkpoint(path_of(dir));
        made.map_err(|error| match error.to_string().contains("must not exist") {
            true => error.context("Directory exists"),
            false => error,
        })
    }

    /// Closing stops the background; until then it goes on.
    pub(crate) fn cancel_all_background_work(db: &Database, wait: bool) {
        if wait {
            // There is no place for an error; the next write has it.
            let _ = db.db().wait_for_background();
        }
    }

    pub(crate) fn disable_manual_compaction(db: &Database) {
        db.let_compact(false);
    }

    pub(crate) fn enable_manual_compaction(db: &Database) {
        db.let_compact(true);
    }
}
