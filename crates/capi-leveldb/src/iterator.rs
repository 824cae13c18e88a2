//! `leveldb_iterator_t`.

use std::ffi::{c_char, c_uchar};

use drumlin::DbIterator;

use crate::error::guard;
use drumlin_ffi::bytes::slice;
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle, Tagged};

/// What the handle holds. It stays readable when the database is closed.
#[derive(Debug)]
pub(crate) struct Walk(pub(crate) DbIterator);

impl Tagged for Walk {
    const TAG: u64 = 0x6c64_6974_6572_6174;
    const NAME: &'static str = "leveldb_iterator_t";
}

/// Moves the iterator. One that is nowhere stays there.
unsafe fn go(iterator: *mut Handle<Walk>, function: &str, go: impl FnOnce(&mut DbIterator)) {
    // SAFETY: the C program says that it is one, and that no other thread uses it.
    let walk = unsafe { handle::get_mut(iterator, function) };
    guard_infallible(function, || go(&mut walk.0));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_destroy(iterator: *mut Handle<Walk>) {
    // SAFETY: the C program's promise, as for every function here.
    unsafe { handle::destroy(iterator, "leveldb_iter_destroy") };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_valid(iterator: *const Handle<Walk>) -> c_uchar {
    // SAFETY: as above.
    unsafe { handle::get(iterator, "leveldb_iter_valid") }
        .0
        .valid()
        .into()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_seek_to_first(iterator: *mut Handle<Walk>) {
    // SAFETY: as above.
    unsafe {
        go(
            iterator,
            "leveldb_iter_seek_to_first",
            DbIterator::seek_to_first,
        )
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_seek_to_last(iterator: *mut Handle<Walk>) {
    // SAFETY: as above.
    unsafe {
        go(
            iterator,
            "leveldb_iter_seek_to_last",
            DbIterator::seek_to_last,
        )
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_seek(
    iterator: *mut Handle<Walk>,
    key: *const c_char,
    key_len: usize,
) {
    const NAME: &str = "leveldb_iter_seek";
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    // SAFETY: as above.
    unsafe { go(iterator, NAME, |walk| walk.seek(key)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_next(iterator: *mut Handle<Walk>) {
    let next = |walk: &mut DbIterator| {
        if walk.valid() {
            walk.next();
        }
    };
    // SAFETY: as above.
    unsafe { go(iterator, "leveldb_iter_next", next) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_prev(iterator: *mut Handle<Walk>) {
    let prev = |walk: &mut DbIterator| {
        if walk.valid() {
            walk.prev();
        }
    };
    // SAFETY: as above.
    unsafe { go(iterator, "leveldb_iter_prev", prev) };
}

/// Null, and no bytes, where the iterator is nowhere.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_key(
    iterator: *const Handle<Walk>,
    key_len: *mut usize,
) -> *const c_char {
    const NAME: &str = "leveldb_iter_key";
    // SAFETY: as above.
    let walk = &unsafe { handle::get(iterator, NAME) }.0;
    let key = guard_infallible(NAME, || walk.valid().then(|| walk.key()));
    // SAFETY: as above.
    unsafe { lend(key, key_len) }
}

/// Null, and no bytes, where the iterator is nowhere.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_value(
    iterator: *const Handle<Walk>,
    value_len: *mut usize,
) -> *const c_char {
    const NAME: &str = "leveldb_iter_value";
    // SAFETY: as above.
    let walk = &unsafe { handle::get(iterator, NAME) }.0;
    let value = guard_infallible(NAME, || walk.valid().then(|| walk.value()));
    // SAFETY: as above.
    unsafe { lend(value, value_len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_get_error(
    iterator: *const Handle<Walk>,
    errptr: *mut *mut c_char,
) {
    const NAME: &str = "leveldb_iter_get_error";
    // SAFETY: as above.
    let walk = &unsafe { handle::get(iterator, NAME) }.0;
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, (), || walk.status()) };
}

/// The iterator's own bytes: they stay until it moves.
///
/// # Safety
/// `len` points to a number.
unsafe fn lend(bytes: Option<&[u8]>, len: *mut usize) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { *len = bytes.map_or(0, <[u8]>::len) };
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}
