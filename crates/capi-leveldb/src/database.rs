//! `leveldb_t`: opening, reading, writing, looking after.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use drumlin::{Db, Error, ErrorKind};

use crate::batch::Batch;
use crate::error::guard;
use crate::iterator::Walk;
use crate::options::{OpenOptions, Reads, SnapshotOf, Writes};
use drumlin_ffi::bytes::{array, path, slice, to_c, to_c_text};
use drumlin_ffi::error::{end_process, guard_infallible};
use drumlin_ffi::handle::{self, Handle, Tagged};

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct Database(Db);

impl Tagged for Database {
    const TAG: u64 = 0x6c64_6462_2020_2020;
    const NAME: &'static str = "leveldb_t";
}

type ErrPtr = *mut *mut c_char;

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_open(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    errptr: ErrPtr,
) -> *mut Handle<Database> {
    const NAME: &str = "leveldb_open";
    // SAFETY: the C program's promise, as for every function here.
    let dir = unsafe { path(name, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let open = || match Db::open(&dir, options.to_engine(&dir)?) {
        Ok(db) => Ok(handle::create(Database(db))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::invalid_argument(format!(
            "{}: does not exist (create_if_missing is false)",
            dir.display()
        ))),
        Err(error) => Err(error),
    };
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, ptr::null_mut(), open) }
}

/// Iterators, snapshots and batches of the database may outlive it here.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_close(db: *mut Handle<Database>) {
    // SAFETY: as above.
    unsafe { handle::destroy(db, "leveldb_close") };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_put(
    db: *mut Handle<Database>,
    options: *const Handle<Writes>,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    errptr: ErrPtr,
) {
    const NAME: &str = "leveldb_put";
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    // SAFETY: as above.
    let value = unsafe { slice(value, value_len, NAME) };
    // SAFETY: as above.
    let (db, options) = unsafe { both(db, options, NAME) };
    let put = || db.0.put_cf(db.0.default_family(), key, value, &options.0);
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, (), put) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_delete(
    db: *mut Handle<Database>,
    options: *const Handle<Writes>,
    key: *const c_char,
    key_len: usize,
    errptr: ErrPtr,
) {
    const NAME: &str = "leveldb_delete";
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    // SAFETY: as above.
    let (db, options) = unsafe { both(db, options, NAME) };
    let delete = || db.0.delete_cf(db.0.default_family(), key, &options.0);
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, (), delete) };
}

/// The batch stays as it is, and may be written again.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_write(
    db: *mut Handle<Database>,
    options: *const Handle<Writes>,
    batch: *mut Handle<Batch>,
    errptr: ErrPtr,
) {
    const NAME: &str = "leveldb_write";
    // SAFETY: as above.
    let (db, options) = unsafe { both(db, options, NAME) };
    // SAFETY: as above.
    let batch = unsafe { handle::get(batch, NAME) };
    let write = || match &batch.refused {
        Some(refused) => Err(refused.duplicate()),
        None => db.0.write(batch.batch.clone(), &options.0),
    };
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, (), write) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_get(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    const NAME: &str = "leveldb_get";
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    // SAFETY: as above.
    let (db, options) = unsafe { both(db, options, NAME) };
    let get = || {
        let value = db.0.get_cf(db.0.default_family(), key, &options.0)?;
        Ok(value.map_or((ptr::null_mut(), 0), |value| (to_c(&value), value.len())))
    };
    // SAFETY: as above.
    let (value, len) = unsafe { guard(NAME, errptr, (ptr::null_mut(), 0), get) };
    // SAFETY: as above.
    unsafe { *value_len = len };
    value
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_create_iterator(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
) -> *mut Handle<Walk> {
    const NAME: &str = "leveldb_create_iterator";
    // SAFETY: as above.
    let (db, options) = unsafe { both(db, options, NAME) };
    guard_infallible(NAME, || handle::create(Walk(db.0.iter(options.0.clone()))))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_create_snapshot(
    db: *mut Handle<Database>,
) -> *const Handle<SnapshotOf> {
    const NAME: &str = "leveldb_create_snapshot";
    // SAFETY: as above.
    let db = unsafe { handle::get(db, NAME) };
    guard_infallible(NAME, || handle::create(SnapshotOf(db.0.snapshot())))
}

/// The snapshot of another database is released too.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_release_snapshot(
    db: *mut Handle<Database>,
    snapshot: *const Handle<SnapshotOf>,
) {
    const NAME: &str = "leveldb_release_snapshot";
    // SAFETY: as above.
    unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    unsafe { handle::destroy(snapshot.cast_mut(), NAME) };
}

/// LevelDB's four: `leveldb.num-files-at-level<N>`, `leveldb.stats`, `leveldb.sstables` and
/// `leveldb.approximate-memory-usage`. The texts of `stats` and `sstables` are this engine's.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_property_value(
    db: *mut Handle<Database>,
    name: *const c_char,
) -> *mut c_char {
    const NAME: &str = "leveldb_property_value";
    // SAFETY: as above.
    let db = unsafe { handle::get(db, NAME) };
    if name.is_null() {
        end_process(NAME, "the name is null");
    }
    // SAFETY: it is not null, and the C program says that it is a text.
    let name = unsafe { CStr::from_ptr(name) };
    let value = guard_infallible(NAME, || property(&db.0, name.to_str().ok()?));
    value.map_or(ptr::null_mut(), |value| to_c_text(&value))
}

fn property(db: &Db, name: &str) -> Option<String> {
    let family = db.default_family();
    match name.strip_prefix("leveldb.")? {
        "approximate-memory-usage" => {
            let bytes = |name| db.property(family, name)?.parse::<u64>().ok();
            let memtables = bytes("rocksdb.cur-size-all-mem-tables")?;
            Some((memtables + bytes("rocksdb.block-cache-usage")?).to_string())
        }
        name if matches!(name, "stats" | "sstables") || name.starts_with("num-files-at-level") => {
            db.property(family, &format!("rocksdb.{name}"))
        }
        _ => None,
    }
}

/// Zero for each range where the sizes cannot be told, as in LevelDB.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_approximate_sizes(
    db: *mut Handle<Database>,
    ranges: c_int,
    begins: *const *const c_char,
    begin_lens: *const usize,
    ends: *const *const c_char,
    end_lens: *const usize,
    sizes: *mut u64,
) {
    const NAME: &str = "leveldb_approximate_sizes";
    // SAFETY: as above.
    let db = unsafe { handle::get(db, NAME) };
    let count = usize::try_from(ranges).unwrap_or(0);
    if count == 0 {
        return;
    }
    // SAFETY: the five arrays have `ranges` entries each.
    let begins = unsafe { array(begins, begin_lens, count, NAME) };
    // SAFETY: as above.
    let ends = unsafe { array(ends, end_lens, count, NAME) };
    let ranges: Vec<_> = begins.into_iter().zip(ends).collect();
    let told = guard_infallible(NAME, || {
        db.0.approximate_sizes(db.0.default_family(), &ranges)
    });
    let told = told.unwrap_or_else(|_| vec![0; count]);
    // SAFETY: as above; the sizes are the caller's to be written.
    unsafe { ptr::copy_nonoverlapping(told.as_ptr(), sizes, count) };
}

/// A null bound is before the first key, or behind the last. An error shows in the next write.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_compact_range(
    db: *mut Handle<Database>,
    begin: *const c_char,
    begin_len: usize,
    end: *const c_char,
    end_len: usize,
) {
    const NAME: &str = "leveldb_compact_range";
    // SAFETY: as above.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let bound =
        |key: *const c_char, len| (!key.is_null()).then(|| unsafe { slice(key, len, NAME) });
    let (begin, end) = (bound(begin, begin_len), bound(end, end_len));
    let _ = guard_infallible(NAME, || {
        db.0.compact_range(db.0.default_family(), begin, end)
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_destroy_db(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    errptr: ErrPtr,
) {
    const NAME: &str = "leveldb_destroy_db";
    // SAFETY: as above.
    let dir = unsafe { path(name, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let destroy = || Db::destroy(&dir, &options.to_engine(&dir)?);
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, (), destroy) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_repair_db(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    errptr: ErrPtr,
) {
    const NAME: &str = "leveldb_repair_db";
    // SAFETY: as above.
    let dir = unsafe { path(name, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let repair = || Db::repair(&dir, &options.to_engine(&dir)?).map(|_| ());
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, (), repair) };
}

/// The database and the options of a call.
///
/// # Safety
/// Both are handles, or null.
unsafe fn both<'a, O: Tagged>(
    db: *mut Handle<Database>,
    options: *const Handle<O>,
    function: &str,
) -> (&'a Database, &'a O) {
    // SAFETY: the caller's promise.
    let db = unsafe { handle::get(db, function) };
    // SAFETY: the caller's promise.
    (db, unsafe { handle::get(options, function) })
}
