//! `rocksdb_column_family_handle_t`, and opening databases with several.

use std::ffi::{c_char, c_int, c_uchar};

use drumlin::{ColumnFamily, Db, Result, WeakDb};
use drumlin_ffi::bytes::{self, path_of, to_c_text};
use drumlin_ffi::error::{end_process, guard_infallible};
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{guard, set};
use crate::opening::{Mode, Named, Opening, time_to_live};
use crate::options::OpenOptions;
use crate::set_options::texts;
use crate::snapshot::ErrPtr;

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct Family(
    pub(crate) ColumnFamily,
    #[expect(dead_code, reason = "it is dropped after the family, which is its use")] Removal,
);

impl Family {
    pub(crate) fn new(db: &Db, family: ColumnFamily) -> Self {
        Self(family, Removal(db.downgrade()))
    }
}

/// Removes the files that only the handle kept, of a family that was dropped: whoever destroys a handle expects them to be gone.
#[derive(Debug)]
struct Removal(WeakDb);

impl Drop for Removal {
    fn drop(&mut self) {
        if let Some(db) = self.0.upgrade() {
            // A database that is closed, failed or read only removes none, and there is no place for an error.
            let _ = db.finish_removal();
        }
    }
}

/// The families of an opening, as C has them: arrays of `count` names, options, and places for handles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FamilyArrays {
    pub(crate) count: c_int,
    pub(crate) names: *const *const c_char,
    pub(crate) options: *const *const Handle<OpenOptions>,
    pub(crate) handles: *mut *mut Handle<Family>,
    /// Seconds that each family's values live; null where they have no times.
    pub(crate) ttls: *const c_int,
}

impl FamilyArrays {
    /// # Safety
    /// The arrays have as many entries; names are texts and options are handles.
    unsafe fn named<'a>(&self, function: &str) -> Vec<Named<'a>> {
        let count = usize::try_from(self.count).unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        if self.names.is_null() || self.options.is_null() || self.handles.is_null() {
            end_process(function, "an array of families is null");
        }
        // SAFETY: it is not null, and the caller says that there are `count`.
        let names = unsafe { std::slice::from_raw_parts(self.names, count) };
        // SAFETY: as above.
        let options = unsafe { std::slice::from_raw_parts(self.options, count) };
        let ttls = match self.ttls.is_null() {
            true => &[],
            // SAFETY: as above.
            false => unsafe { std::slice::from_raw_parts(self.ttls, count) },
        };
        let both = names.iter().zip(options).enumerate();
        both.map(|(at, (name, options))| {
            // SAFETY: the caller's promise.
            let name = unsafe { bytes::text(*name, function) };
            Named {
                name: name.to_string_lossy().into_owned(),
                // SAFETY: as above.
                options: unsafe { handle::get(*options, function) },
                ttl: ttls.get(at).map(|seconds| time_to_live(*seconds)),
            }
        })
        .collect()
    }

    /// Puts a handle of each family to its place.
    ///
    /// # Safety
    /// There are as many places as families.
    unsafe fn give(&self, families: Vec<Family>) {
        for (at, family) in families.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { set(self.handles, at, handle::create(family)) };
        }
    }
}

/// Opens with families by `open`, which gives what the handle holds, and gives the handles of families.
///
/// # Safety
/// The arguments are as c.h has them.
pub(crate) unsafe fn open_with<D: handle::Tagged>(
    function: &str,
    opening: (*const Handle<OpenOptions>, *const c_char, Mode),
    families: FamilyArrays,
    errptr: ErrPtr,
    open: impl FnOnce(&Opening<'_>, &[Named<'_>]) -> Result<(D, Vec<Family>)>,
) -> *mut Handle<D> {
    let (options, name, mode) = opening;
    // SAFETY: the caller's promise.
    let options = unsafe { handle::get(options, function) };
    // SAFETY: as above.
    let name = unsafe { bytes::text(name, function) };
    // SAFETY: as above.
    let named = unsafe { families.named(function) };
    let open = || open(&Opening::new(options, name, mode), &named);
    // SAFETY: as above.
    let opened = unsafe { guard(function, errptr, open) };
    let Some((database, found)) = opened else {
        return std::ptr::null_mut();
    };
    // SAFETY: as above, and there is a family for each name.
    unsafe { families.give(found) };
    handle::create(database)
}

fn open_database(opening: &Opening<'_>, named: &[Named<'_>]) -> Result<(Database, Vec<Family>)> {
    let (db, found) = opening.open(named)?;
    Ok((Database::new(db), found))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_column_families(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const Handle<OpenOptions>,
    handles: *mut *mut Handle<Family>,
    errptr: ErrPtr,
) -> *mut Handle<Database> {
    const NAME: &str = "rocksdb_open_column_families";
    let families = FamilyArrays {
        count,
        names,
        options: family_options,
        handles,
        ttls: std::ptr::null(),
    };
    let opening = (options, name, Mode::ReadWrite);
    // SAFETY: the C program's promise.
    unsafe { open_with(NAME, opening, families, errptr, open_database) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_column_families_with_ttl(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const Handle<OpenOptions>,
    handles: *mut *mut Handle<Family>,
    ttls: *const c_int,
    errptr: ErrPtr,
) -> *mut Handle<Database> {
    const NAME: &str = "rocksdb_open_column_families_with_ttl";
    if ttls.is_null() && count > 0 {
        end_process(NAME, "the array of times is null");
    }
    let families = FamilyArrays {
        count,
        names,
        options: family_options,
        handles,
        ttls,
    };
    let opening = (options, name, Mode::ReadWrite);
    // SAFETY: the C program's promise.
    unsafe { open_with(NAME, opening, families, errptr, open_database) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_for_read_only_column_families(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const Handle<OpenOptions>,
    handles: *mut *mut Handle<Family>,
    error_if_wal_file_exists: c_uchar,
    errptr: ErrPtr,
) -> *mut Handle<Database> {
    const NAME: &str = "rocksdb_open_for_read_only_column_families";
    let families = FamilyArrays {
        count,
        names,
        options: family_options,
        handles,
        ttls: std::ptr::null(),
    };
    let mode = Mode::ReadOnly {
        error_if_wal_file_exists: error_if_wal_file_exists != 0,
    };
    let opening = (options, name, mode);
    // SAFETY: the C program's promise.
    unsafe { open_with(NAME, opening, families, errptr, open_database) }
}

/// An array of names and its length; both go back by `rocksdb_list_column_families_destroy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_list_column_families(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    len: *mut usize,
    errptr: ErrPtr,
) -> *mut *mut c_char {
    const NAME: &str = "rocksdb_list_column_families";
    // SAFETY: the C program's promise.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let name = unsafe { bytes::text(name, NAME) };
    let list = || Db::list_families(path_of(name), &options.environment());
    let list = || {
        list().map_err(|error| match error.is_not_found() {
            true => error.with_kind(drumlin::ErrorKind::Io),
            false => error,
        })
    };
    // SAFETY: as above.
    let listed = unsafe { guard(NAME, errptr, list) };
    // SAFETY: as above.
    unsafe { set(len, 0, listed.as_ref().map_or(0, Vec::len)) };
    let Some(names) = listed else {
        return std::ptr::null_mut();
    };
    guard_infallible(NAME, || array_of(&names, NAME))
}

/// An array of texts in C's memory.
pub(crate) fn array_of(texts: &[String], function: &str) -> *mut *mut c_char {
    let size = texts.len().max(1) * size_of::<*mut c_char>();
    // SAFETY: malloc has no conditions.
    let array: *mut *mut c_char = unsafe { libc::malloc(size) }.cast();
    if array.is_null() {
        end_process(function, "no memory is left for a result");
    }
    for (at, text) in texts.iter().enumerate() {
        // SAFETY: the array has a place for each text.
        unsafe { set(array, at, to_c_text(text)) };
    }
    array
}

/// Gives back what [`array_of`] made.
///
/// # Safety
/// `list` is null, or is of [`array_of`], with `len` texts.
pub(crate) unsafe fn free_array(list: *mut *mut c_char, len: usize) {
    if list.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let texts = unsafe { std::slice::from_raw_parts(list, len) };
    for text in texts {
        // SAFETY: as above.
        unsafe { libc::free((*text).cast()) };
    }
    // SAFETY: as above.
    unsafe { libc::free(list.cast()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, len: usize) {
    // SAFETY: the C program says that the function above made it.
    unsafe { free_array(list, len) };
}

/// An array of handles and its length; those that were made before one could not be are in it. It goes back by
/// `rocksdb_create_column_families_destroy`, each of them by `rocksdb_column_family_handle_destroy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_column_families(
    db: *mut Handle<Database>,
    options: *const Handle<OpenOptions>,
    count: c_int,
    names: *const *const c_char,
    len: *mut usize,
    errptr: ErrPtr,
) -> *mut *mut Handle<Family> {
    const NAME: &str = "rocksdb_create_column_families";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: as above.
    let names = unsafe { texts(names, count, NAME) };
    let mut made = Vec::new();
    let create = || {
        for name in names {
            made.push(calls::create_column_family(db, options, name)?);
        }
        Ok(())
    };
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, create) };
    // SAFETY: as above.
    unsafe { set(len, 0, made.len()) };
    let size = made.len().max(1) * size_of::<*mut Handle<Family>>();
    // SAFETY: malloc has no conditions.
    let array: *mut *mut Handle<Family> = unsafe { libc::malloc(size) }.cast();
    if array.is_null() {
        end_process(NAME, "no memory is left for a result");
    }
    for (at, family) in made.into_iter().enumerate() {
        // SAFETY: the array has a place for each.
        unsafe { set(array, at, handle::create(family)) };
    }
    array
}

/// The array alone.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_column_families_destroy(list: *mut *mut Handle<Family>) {
    // SAFETY: the C program says that the function above made it, or it is null.
    unsafe { libc::free(list.cast()) };
}

pub(crate) mod calls {
    use std::ffi::{CStr, c_int};
    use std::time::Duration;

    use drumlin::{Error, ErrorKind, Result};

    use super::Family;
    use crate::database::Database;
    use crate::opening::time_to_live;
    use crate::options::OpenOptions;

    /// As in RocksDB: where the default family has times behind its values, a new one has, which live for ever.
    pub(crate) fn create_column_family(
        db: &Database,
        options: &OpenOptions,
        name: &CStr,
    ) -> Result<Family> {
        let has_times = db.db().default_family().ttl().is_some();
        create(db, options, name, has_times.then_some(Duration::ZERO))
    }

    pub(crate) fn create_column_family_with_ttl(
        db: &Database,
        options: &OpenOptions,
        name: &CStr,
        ttl: c_int,
    ) -> Result<Family> {
        create(db, options, name, Some(time_to_live(ttl)))
    }

    fn create(
        db: &Database,
        options: &OpenOptions,
        name: &CStr,
        ttl: Option<Duration>,
    ) -> Result<Family> {
        let name = name.to_string_lossy();
        if db.db().column_family(&name).is_some() {
            let message = "Column family already exists";
            return Err(Error::invalid_argument(message));
        }
        options.check_family_paths(db.db().path())?;
        let mut options = options.to_family()?;
        options.ttl = ttl;
        if options.order.timestamp_bytes() > 0 && (ttl.is_some() || db.locks().is_some()) {
            let what = "transactions and times to live of keys with timestamps";
            return Err(Error::not_supported(what));
        }
        let family = db.db().create_family(&name, options)?;
        db.note(&family);
        Ok(Family::new(db.db(), family))
    }

    pub(crate) fn get_default_column_family_handle(db: &Database) -> Family {
        Family::new(db.db(), db.db().default_family().clone())
    }

    pub(crate) fn drop_column_family(db: &Database, family: Option<&Family>) -> Result<()> {
        let family = db.family(family);
        if family.id() == 0 {
            let message = "Can't drop default column family";
            return Err(Error::invalid_argument(message));
        }
        db.db()
            .drop_family(family)
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => error.with_kind(ErrorKind::InvalidArgument),
                _ => error,
            })?;
        db.finish_removal();
        Ok(())
    }

    pub(crate) fn column_family_handle_get_id(family: Option<&Family>) -> u32 {
        family.map_or(0, |family| family.0.id())
    }

    pub(crate) fn column_family_handle_get_name(family: Option<&Family>) -> Option<Vec<u8>> {
        family.map(|family| family.0.name().as_bytes().to_vec())
    }
}
