//! Errors and panics, as RocksDB's texts, and results in C's memory.

use std::ffi::c_char;

use drumlin::{Error, ErrorKind, Result};
use drumlin_ffi::bytes::to_c;
use drumlin_ffi::error::{Words, put};

const WORDS: Words = Words {
    text_of,
    panic: "Operation aborted",
};

/// Runs `body`; of an error or a panic the text goes to `errptr`, and the result is `None`.
///
/// # Safety
/// `errptr` is null or points to null or to a text that `malloc` made.
pub(crate) unsafe fn guard<T>(
    function: &str,
    errptr: *mut *mut c_char,
    body: impl FnOnce() -> Result<T>,
) -> Option<T> {
    // SAFETY: the caller's promise.
    unsafe { drumlin_ffi::error::guard(&WORDS, function, errptr, body) }
}

/// `error` as RocksDB's `Status::ToString` writes one of its kind. Programs branch on what stands before the first colon.
pub(crate) fn text_of(error: &Error) -> String {
    let code = match error.kind() {
        ErrorKind::NotFound if error.file().is_some() => "IO error: No such file or directory: ",
        ErrorKind::NotFound => "NotFound: ",
        ErrorKind::Corruption => "Corruption: ",
        ErrorKind::NotSupported => "Not implemented: ",
        ErrorKind::ReadOnly => "Not implemented: Not supported operation in read only mode. ",
        ErrorKind::InvalidArgument | ErrorKind::TooLarge => "Invalid argument: ",
        ErrorKind::NoSpace => "IO error: No space left on device: ",
        ErrorKind::Busy => "Resource busy: ",
        ErrorKind::Expired => "Operation expired: ",
        ErrorKind::Deadlock => "Resource busy: Deadlock: ",
        ErrorKind::TimedOut => "Operation timed out: Timeout waiting to lock key: ",
        ErrorKind::Aborted => "Operation aborted: ",
        ErrorKind::Incomplete => "Result incomplete: ",
        ErrorKind::Shutdown => "Shutdown in progress: ",
        _ => "IO error: ",
    };
    format!("{code}{error}")
}

/// What a function that is not there says.
pub(crate) fn not_implemented(function: &str) -> Error {
    Error::not_supported(format!("{function} is not served by this library"))
}

/// # Safety
/// As [`guard`].
pub(crate) unsafe fn refuse(function: &str, errptr: *mut *mut c_char) {
    // SAFETY: the caller's promise.
    unsafe { put(errptr, &text_of(&not_implemented(function))) };
}

/// Puts `value` to place `at` of an array, if there is one.
///
/// # Safety
/// `array` is null or has more than `at` places.
pub(crate) unsafe fn set<T>(array: *mut T, at: usize, value: T) {
    if array.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let place = unsafe { array.add(at) };
    // SAFETY: as above.
    unsafe { place.write(value) };
}

/// A copy of `value` that C frees, and its length; null and 0 for none.
///
/// # Safety
/// `len` is null or points to a number.
pub(crate) unsafe fn give(value: Option<impl AsRef<[u8]>>, len: *mut usize) -> *mut c_char {
    let value = value.as_ref().map(AsRef::as_ref);
    // SAFETY: the caller's promise.
    unsafe { set(len, 0, value.map_or(0, <[u8]>::len)) };
    value.map_or(std::ptr::null_mut(), to_c)
}

/// `value` where it is, and its length; null and 0 for none.
///
/// # Safety
/// As [`give`].
pub(crate) unsafe fn lend(value: Option<&[u8]>, len: *mut usize) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { set(len, 0, value.map_or(0, <[u8]>::len)) };
    value.map_or(std::ptr::null(), |value| value.as_ptr().cast())
}
