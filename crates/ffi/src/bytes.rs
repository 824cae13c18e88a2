//! Bytes that come from C and go to C.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::ptr;

use crate::error::end_process;

/// The `len` bytes at `start`; null is allowed where there are none.
///
/// # Safety
/// `start` points to `len` bytes that nobody changes while the slice lives.
pub unsafe fn slice<'a>(start: *const c_char, len: usize, function: &str) -> &'a [u8] {
    match (start.is_null(), len) {
        (_, 0) => &[],
        (true, _) => end_process(function, &format!("null instead of {len} bytes")),
        // SAFETY: the caller says so.
        (false, _) => unsafe { std::slice::from_raw_parts(start.cast(), len) },
    }
}

/// The `count` byte strings whose starts and lengths are in two arrays; null is allowed where there are none.
///
/// # Safety
/// Each array has `count` entries, and each string is as [`slice`] wants it.
pub unsafe fn array<'a>(
    starts: *const *const c_char,
    lens: *const usize,
    count: usize,
    function: &str,
) -> Vec<&'a [u8]> {
    if count == 0 {
        return Vec::new();
    }
    if starts.is_null() || lens.is_null() {
        end_process(function, &format!("null instead of {count} keys"));
    }
    // SAFETY: neither is null, and the caller says that there are `count`.
    let starts = unsafe { std::slice::from_raw_parts(starts, count) };
    // SAFETY: as above.
    let lens = unsafe { std::slice::from_raw_parts(lens, count) };
    let strings = starts.iter().zip(lens);
    strings
        // SAFETY: the caller's promise.
        .map(|(start, len)| unsafe { slice(*start, *len, function) })
        .collect()
}

/// The text at `text`. Ends the process where it is null.
///
/// # Safety
/// `text` is null or points to a text with a zero at its end, which nobody changes while the result lives.
pub unsafe fn text<'a>(text: *const c_char, function: &str) -> &'a CStr {
    if text.is_null() {
        end_process(function, "the name is null");
    }
    // SAFETY: it is not null, and the caller says that it ends with a zero.
    unsafe { CStr::from_ptr(text) }
}

/// The path that `name` is.
pub fn path_of(name: &CStr) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// The path in the text at `name`.
///
/// # Safety
/// As [`text`].
pub unsafe fn path(name: *const c_char, function: &str) -> PathBuf {
    // SAFETY: the caller's promise.
    path_of(unsafe { text(name, function) })
}

/// A copy of `bytes` that C frees with `free`. Never null, also for no bytes.
pub fn to_c(bytes: &[u8]) -> *mut c_char {
    // SAFETY: malloc has no conditions.
    let copy: *mut c_char = unsafe { libc::malloc(bytes.len().max(1)) }.cast();
    if copy.is_null() {
        end_process("malloc", "no memory is left for a result");
    }
    // SAFETY: `copy` has as many bytes, and is new.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), copy.cast(), bytes.len()) };
    copy
}

/// The same, as a text with a zero at its end.
pub fn to_c_text(text: &str) -> *mut c_char {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    to_c(&bytes)
}
