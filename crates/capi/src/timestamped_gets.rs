//! Gets that give the timestamps of what they find, too.

use std::ffi::c_char;

use drumlin::{ColumnFamily, Error, Result};
use drumlin_ffi::bytes::{array, slice, to_c, to_c_text};
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{guard, set, text_of};
use crate::family::Family;
use crate::reads::families;
use crate::small_options::Reads;
use crate::snapshot::ErrPtr;
use crate::timestamps::{self, Found};

fn find(
    db: &Database,
    options: &Reads,
    family: &ColumnFamily,
    key: &[u8],
) -> Result<Option<Found>> {
    match timestamps::of_read(db, family, options)? {
        Some(at) => timestamps::get(db, family, key, &at, options.to_engine()?),
        None => {
            let found = db.db().get_cf(family, key, &options.to_engine()?)?;
            Ok(found.map(|value| Found {
                value,
                timestamp: Vec::new(),
            }))
        }
    }
}

/// The places of one answer, as C has them.
struct Places {
    value_len: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_len: *mut usize,
}

impl Places {
    /// Puts the timestamp there; the value.
    ///
    /// # Safety
    /// They are places, or null.
    unsafe fn give(&self, found: Option<&Found>) -> *mut c_char {
        // SAFETY: the caller's promise.
        unsafe {
            set(
                self.value_len,
                0,
                found.map_or(0, |found| found.value.len()),
            )
        };
        // SAFETY: as above.
        unsafe {
            set(
                self.timestamp_len,
                0,
                found.map_or(0, |found| found.timestamp.len()),
            )
        };
        let Some(found) = found else {
            return std::ptr::null_mut();
        };
        // SAFETY: as above.
        unsafe { set(self.timestamp, 0, to_c(&found.timestamp)) };
        to_c(&found.value)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_with_ts(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_len: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    const NAME: &str = "rocksdb_get_with_ts";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    // SAFETY: as above.
    let found = unsafe { guard(NAME, errptr, || find(db, options, db.family(None), key)) };
    let places = Places {
        value_len,
        timestamp,
        timestamp_len,
    };
    // SAFETY: as above.
    unsafe { places.give(found.flatten().as_ref()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_cf_with_ts(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    family: *mut Handle<Family>,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
    timestamp: *mut *mut c_char,
    timestamp_len: *mut usize,
    errptr: ErrPtr,
) -> *mut c_char {
    const NAME: &str = "rocksdb_get_cf_with_ts";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    // SAFETY: as above.
    let found = unsafe { guard(NAME, errptr, || find(db, options, &family.0, key)) };
    let places = Places {
        value_len,
        timestamp,
        timestamp_len,
    };
    // SAFETY: as above.
    unsafe { places.give(found.flatten().as_ref()) }
}

/// The places of a list of answers, as C has them.
struct Lists {
    values: *mut *mut c_char,
    value_lens: *mut usize,
    timestamps: *mut *mut c_char,
    timestamp_lens: *mut usize,
    errs: *mut *mut c_char,
}

impl Lists {
    /// # Safety
    /// The arrays have a place for each answer.
    unsafe fn give(&self, answers: Vec<Result<Option<Found>, Error>>) {
        for (at, answer) in answers.into_iter().enumerate() {
            let (found, error) = match answer {
                Ok(found) => (found, std::ptr::null_mut()),
                Err(error) => (None, to_c_text(&text_of(&error))),
            };
            let timestamp = found.as_ref().map(|found| to_c(&found.timestamp));
            let value = found.as_ref().map(|found| to_c(&found.value));
            // SAFETY: the caller's promise.
            unsafe { set(self.errs, at, error) };
            // SAFETY: as above.
            unsafe { set(self.values, at, value.unwrap_or(std::ptr::null_mut())) };
            let len = found.as_ref().map_or(0, |found| found.value.len());
            // SAFETY: as above.
            unsafe { set(self.value_lens, at, len) };
            // SAFETY: as above.
            unsafe {
                set(
                    self.timestamps,
                    at,
                    timestamp.unwrap_or(std::ptr::null_mut()),
                )
            };
            let len = found.as_ref().map_or(0, |found| found.timestamp.len());
            // SAFETY: as above.
            unsafe { set(self.timestamp_lens, at, len) };
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_multi_get_with_ts(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    count: usize,
    keys: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    timestamps: *mut *mut c_char,
    timestamp_lens: *mut usize,
    errs: *mut *mut c_char,
) {
    const NAME: &str = "rocksdb_multi_get_with_ts";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let keys = unsafe { array(keys, lens, count, NAME) };
    let read = || {
        let keys = keys.iter();
        keys.map(|key| find(db, options, db.family(None), key))
            .collect()
    };
    let lists = Lists {
        values,
        value_lens,
        timestamps,
        timestamp_lens,
        errs,
    };
    let answers = guard_infallible(NAME, read);
    // SAFETY: as above.
    unsafe { lists.give(answers) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_multi_get_cf_with_ts(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    handles: *const *const Handle<Family>,
    count: usize,
    keys: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    timestamps: *mut *mut c_char,
    timestamp_lens: *mut usize,
    errs: *mut *mut c_char,
) {
    const NAME: &str = "rocksdb_multi_get_cf_with_ts";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let families = unsafe { families(handles, count, NAME) };
    // SAFETY: as above.
    let keys = unsafe { array(keys, lens, count, NAME) };
    let read = || {
        let both = families.iter().zip(&keys);
        both.map(|(family, key)| find(db, options, &family.0, key))
            .collect()
    };
    let lists = Lists {
        values,
        value_lens,
        timestamps,
        timestamp_lens,
        errs,
    };
    let answers = guard_infallible(NAME, read);
    // SAFETY: as above.
    unsafe { lists.give(answers) };
}
