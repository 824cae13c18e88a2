//! Bytes that a C library allocated: copied, then given back to the function that frees them.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

/// Frees memory that the library allocated.
pub(crate) type Free = unsafe extern "C" fn(*mut c_void);

/// The error message at `slot`, if the call before set one.
///
/// Requires: `slot` is null or a NUL-terminated string that the library allocated for the caller.
pub(crate) fn take_error(slot: *mut c_char, free: Free) -> Result<(), String> {
    if slot.is_null() {
        return Ok(());
    }
    // SAFETY: not null, so by the caller's promise a NUL-terminated string nobody else frees.
    let text = unsafe { CStr::from_ptr(slot) };
    let text = text.to_string_lossy().into_owned();
    // SAFETY: allocated by the library for the caller, and freed here only.
    unsafe { free(slot.cast()) };
    Err(text)
}

/// A copy of `len` bytes at `data`, which are freed; `None` for a null pointer.
///
/// Requires: `data` is null or the start of `len` bytes the library allocated for the caller.
pub(crate) fn take_bytes(data: *mut c_char, len: usize, free: Free) -> Option<Vec<u8>> {
    if data.is_null() {
        return None;
    }
    let bytes = copy_bytes(data, len);
    // SAFETY: allocated by the library for the caller, and freed here only.
    unsafe { free(data.cast()) };
    Some(bytes)
}

/// A copy of `len` bytes at `data`, which stay the library's.
///
/// Requires: `data` is readable for `len` bytes during this call (any pointer when `len` is 0).
pub(crate) fn copy_bytes(data: *const c_char, len: usize) -> Vec<u8> {
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: readable for `len` bytes by the caller's promise; copied before anything else runs.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
    bytes.to_vec()
}

/// `path` for C.
pub(crate) fn c_path(path: &Path) -> CString {
    c_text(path.to_str().expect("test paths are UTF-8"))
}

/// `text` for C.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text).expect("test texts hold no NUL")
}
