//! Options of an open database that are set by their names.

use std::ffi::{CStr, c_char, c_int};

use drumlin::{ColumnFamily, Error, Result};
use drumlin_ffi::bytes::text;
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::guard;
use crate::family::Family;
use crate::snapshot::ErrPtr;

/// The `count` texts of an array.
///
/// # Safety
/// `texts` has `count` texts.
pub(crate) unsafe fn texts<'a>(
    texts: *const *const c_char,
    count: usize,
    function: &str,
) -> Vec<&'a CStr> {
    (0..count)
        .map(|at| {
            // SAFETY: the caller's promise.
            let place = unsafe { texts.add(at) };
            // SAFETY: as above.
            let found = unsafe { *place };
            // SAFETY: as above.
            unsafe { text(found, function) }
        })
        .collect()
}

/// A name and a value, as the engine takes them.
fn pair<'a>((name, value): (&'a CStr, &'a CStr)) -> Result<(&'a str, &'a str)> {
    let words = |text: &'a CStr| {
        let words = text.to_str();
        words.map_err(|_| Error::invalid_argument(format!("Could not find option: : {text:?}")))
    };
    Ok((words(name)?, words(value)?))
}

/// # Safety
/// As c.h has it.
unsafe fn set(
    (db, family): (&Database, &ColumnFamily),
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrPtr,
    function: &str,
) {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's promise.
    let names = unsafe { texts(names, count, function) };
    // SAFETY: as above.
    let values = unsafe { texts(values, count, function) };
    let set = || {
        let pairs: Result<Vec<_>> = names.into_iter().zip(values).map(pair).collect();
        db.db().set_options(family, &pairs?)
    };
    // SAFETY: as above.
    unsafe { guard(function, errptr, set) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_set_options(
    db: *mut Handle<Database>,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_set_options";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    unsafe { set((db, db.family(None)), count, names, values, errptr, NAME) };
}

/// Options of the database and of families are set by one list of names.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_set_db_options(
    db: *mut Handle<Database>,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_set_db_options";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    unsafe { set((db, db.family(None)), count, names, values, errptr, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_set_options_cf(
    db: *mut Handle<Database>,
    family: *mut Handle<Family>,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_set_options_cf";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    unsafe { set((db, &family.0), count, names, values, errptr, NAME) };
}
