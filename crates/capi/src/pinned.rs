//! Values that are copied to where the program says, and values and keys that are lent without copies.

use std::ffi::{c_char, c_int, c_uchar};

use drumlin::{ColumnFamily, PinnedSlice, Result};
use drumlin_ffi::bytes::{slice, to_c_text};
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{guard, lend, set, text_of};
use crate::family::Family;
use crate::iterator::Walk;
use crate::reads::{Pinned, of_families};
use crate::small_options::Reads;
use crate::snapshot::ErrPtr;

/// `rocksdb_slice_t`: bytes that somebody else holds.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Slice {
    data: *const c_char,
    size: usize,
}

impl Slice {
    fn of(bytes: Option<&[u8]>) -> Self {
        Self {
            data: bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast()),
            size: bytes.map_or(0, <[u8]>::len),
        }
    }
}

/// `rocksdb_pinnable_handle_t`: a value, readable until it is destroyed.
#[derive(Debug)]
pub(crate) struct PinnableHandle(PinnedSlice);

/// `rocksdb_pinnable_multi_get_t`: the answers for a list of keys, readable until it is destroyed.
#[derive(Debug)]
pub(crate) struct PinnedList(Vec<std::result::Result<Option<PinnedSlice>, String>>);

/// The key of an iterator, until it moves.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_key_slice(walk: *const Handle<Walk>) -> Slice {
    const NAME: &str = "rocksdb_iter_key_slice";
    // SAFETY: the C program's promise.
    let walk = unsafe { handle::get(walk, NAME) };
    Slice::of(crate::iterator::calls::iter_key(walk))
}

/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_value_slice(walk: *const Handle<Walk>) -> Slice {
    const NAME: &str = "rocksdb_iter_value_slice";
    // SAFETY: the C program's promise.
    let walk = unsafe { handle::get(walk, NAME) };
    Slice::of(crate::iterator::calls::iter_value(walk))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_timestamp_slice(walk: *const Handle<Walk>) -> Slice {
    const NAME: &str = "rocksdb_iter_timestamp_slice";
    // SAFETY: the C program's promise.
    let walk = unsafe { handle::get(walk, NAME) };
    Slice::of(crate::iterator::calls::iter_timestamp(walk))
}

/// The place for a value, and for what became of it, as C has them.
struct Buffer {
    bytes: *mut c_char,
    size: usize,
    len: *mut usize,
    found: *mut c_uchar,
}

impl Buffer {
    /// Copies a value that fits; 1 where it did.
    ///
    /// # Safety
    /// As c.h has it.
    unsafe fn answer(
        &self,
        errptr: ErrPtr,
        function: &str,
        read: impl FnOnce() -> Result<Option<PinnedSlice>>,
    ) -> c_uchar {
        // SAFETY: the caller's promise.
        let value = unsafe { guard(function, errptr, read) }.flatten();
        // SAFETY: as above.
        unsafe { set(self.found, 0, value.is_some().into()) };
        // SAFETY: as above.
        unsafe { set(self.len, 0, value.as_deref().map_or(0, <[u8]>::len)) };
        let Some(value) = value.filter(|value| value.len() <= self.size) else {
            return 0;
        };
        if !value.is_empty() && !self.bytes.is_null() {
            // SAFETY: there is room for `size` bytes, which are as many or more, and a value is in memory of its own.
            unsafe {
                self.bytes
                    .copy_from_nonoverlapping(value.as_ptr().cast(), value.len())
            };
        }
        1
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_into_buffer(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    key: *const c_char,
    key_len: usize,
    bytes: *mut c_char,
    size: usize,
    len: *mut usize,
    found: *mut c_uchar,
    errptr: ErrPtr,
) -> c_uchar {
    const NAME: &str = "rocksdb_get_into_buffer";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    let buffer = Buffer {
        bytes,
        size,
        len,
        found,
    };
    let read = || crate::reads::calls::get_cf(db, options, None, key);
    // SAFETY: as above.
    unsafe { buffer.answer(errptr, NAME, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_get_into_buffer_cf(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    family: *mut Handle<Family>,
    key: *const c_char,
    key_len: usize,
    bytes: *mut c_char,
    size: usize,
    len: *mut usize,
    found: *mut c_uchar,
    errptr: ErrPtr,
) -> c_uchar {
    const NAME: &str = "rocksdb_get_into_buffer_cf";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    let buffer = Buffer {
        bytes,
        size,
        len,
        found,
    };
    let read = || crate::reads::calls::get_cf(db, options, Some(family), key);
    // SAFETY: as above.
    unsafe { buffer.answer(errptr, NAME, read) }
}

/// The keys of an array of slices.
///
/// # Safety
/// `keys` has `count` slices, and each has its bytes.
unsafe fn keys_of<'a>(keys: *const Slice, count: usize, function: &str) -> Vec<&'a [u8]> {
    if count == 0 {
        return Vec::new();
    }
    if keys.is_null() {
        drumlin_ffi::error::end_process(function, "the array of keys is null");
    }
    // SAFETY: it is not null, and the caller says that there are `count`.
    let keys = unsafe { std::slice::from_raw_parts(keys, count) };
    keys.iter()
        // SAFETY: the caller's promise.
        .map(|key| unsafe { slice(key.data, key.size, function) })
        .collect()
}

fn of_family(
    db: &Database,
    options: &Reads,
    family: &ColumnFamily,
    keys: &[&[u8]],
) -> Vec<Result<Option<PinnedSlice>>> {
    of_families(db, options, &vec![family; keys.len()], keys)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_batched_multi_get_cf_slice(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    family: *mut Handle<Family>,
    count: usize,
    keys: *const Slice,
    values: *mut *mut Handle<Pinned>,
    errs: *mut *mut c_char,
    _sorted: bool,
) {
    const NAME: &str = "rocksdb_batched_multi_get_cf_slice";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    let keys = unsafe { keys_of(keys, count, NAME) };
    let answers = guard_infallible(NAME, || of_family(db, options, &family.0, &keys));
    for (at, answer) in answers.into_iter().enumerate() {
        let (value, error) = match answer {
            Ok(value) => (value, std::ptr::null_mut()),
            Err(error) => (None, to_c_text(&text_of(&error))),
        };
        // SAFETY: as above.
        unsafe { set(errs, at, error) };
        let value = value.map_or(std::ptr::null_mut(), |value| handle::create(Pinned(value)));
        // SAFETY: as above.
        unsafe { set(values, at, value) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_batched_multi_get_pinned_cf(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    family: *mut Handle<Family>,
    count: usize,
    keys: *const Slice,
    _sorted: c_uchar,
) -> *mut Handle<PinnedList> {
    const NAME: &str = "rocksdb_batched_multi_get_pinned_cf";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    let keys = unsafe { keys_of(keys, count, NAME) };
    let answers = guard_infallible(NAME, || of_family(db, options, &family.0, &keys));
    let texts = answers.into_iter();
    let list = texts.map(|answer| answer.map_err(|error| text_of(&error)));
    handle::create(PinnedList(list.collect()))
}

/// The numbers of `rocksdb_pinnable_multi_get_result`.
const NOT_FOUND: c_int = 0;
const FOUND: c_int = 1;
const FAILED: c_int = 2;
const OUT_OF_BOUNDS: c_int = 3;

/// What is lent lives as long as the list.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_pinnable_multi_get_result(
    list: *const Handle<PinnedList>,
    index: usize,
    value: *mut *const c_char,
    value_len: *mut usize,
    error: *mut *const c_char,
    error_len: *mut usize,
) -> c_int {
    const NAME: &str = "rocksdb_pinnable_multi_get_result";
    // SAFETY: the C program's promise.
    let list = unsafe { handle::get(list, NAME) };
    let (number, found, text) = match list.0.get(index) {
        None => (OUT_OF_BOUNDS, None, None),
        Some(Ok(None)) => (NOT_FOUND, None, None),
        Some(Ok(Some(value))) => (FOUND, Some(&value[..]), None),
        Some(Err(text)) => (FAILED, None, Some(text.as_bytes())),
    };
    // SAFETY: as above.
    let found = unsafe { lend(found, value_len) };
    // SAFETY: as above.
    unsafe { set(value, 0, found) };
    // SAFETY: as above.
    let text = unsafe { lend(text, error_len) };
    // SAFETY: as above.
    unsafe { set(error, 0, text) };
    number
}

pub(crate) mod calls {
    use super::{Database, Family, PinnableHandle, PinnedList, Reads, Result};

    pub(crate) fn get_pinned_cf_v2(
        db: &Database,
        options: &Reads,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<PinnableHandle>> {
        let found = crate::reads::calls::get_cf(db, options, family, key)?;
        Ok(found.map(PinnableHandle))
    }

    pub(crate) fn pinnable_handle_get_value(handle: Option<&PinnableHandle>) -> Option<&[u8]> {
        handle.map(|handle| &handle.0[..])
    }

    pub(crate) fn pinnable_multi_get_count(list: &PinnedList) -> usize {
        list.0.len()
    }
}
