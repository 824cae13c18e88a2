//! Errors and panics, as LevelDB's texts.

use std::ffi::c_char;

use drumlin::{Error, ErrorKind, Result};
use drumlin_ffi::error::Words;

const WORDS: Words = Words {
    text_of,
    panic: "IO error",
};

/// Runs `body` and gives its result; of an error or a panic the text goes to `errptr`, and the result is `otherwise`.
///
/// # Safety
/// `errptr` is null or points to null or to a text that `malloc` made.
pub(crate) unsafe fn guard<T>(
    function: &str,
    errptr: *mut *mut c_char,
    otherwise: T,
    body: impl FnOnce() -> Result<T>,
) -> T {
    // SAFETY: the caller's promise.
    unsafe { drumlin_ffi::error::guard(&WORDS, function, errptr, body) }.unwrap_or(otherwise)
}

/// `error` as LevelDB's `Status::ToString` would write one of its kind.
fn text_of(error: &Error) -> String {
    let code = match error.kind() {
        ErrorKind::NotFound => "NotFound",
        ErrorKind::Corruption => "Corruption",
        ErrorKind::NotSupported | ErrorKind::ReadOnly => "Not implemented",
        ErrorKind::InvalidArgument | ErrorKind::TooLarge => "Invalid argument",
        _ => "IO error",
    };
    format!("{code}: {error}")
}
