//! Errors and panics, as LevelDB's texts.

use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use drumlin::{Error, ErrorKind, Result};

use crate::bytes::to_c_text;

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
    let text = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => text_of(&error),
        Err(panic) => format!(
            "IO error: internal error in {function}: {}",
            message_of(&*panic)
        ),
    };
    // SAFETY: the caller's promise.
    unsafe { put(errptr, &text) };
    otherwise
}

/// Runs `body` of a function that has no place for an error: a panic ends the process.
pub(crate) fn guard_infallible<T>(function: &str, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(panic) => end_process(&format!(
            "internal error in {function}: {}",
            message_of(&*panic)
        )),
    }
}

/// Puts `text` to `errptr`; the text that is there is given back. Nothing where it is null.
///
/// # Safety
/// As [`guard`].
unsafe fn put(errptr: *mut *mut c_char, text: &str) {
    if errptr.is_null() {
        return;
    }
    // SAFETY: it is not null, and the caller says that it points to a pointer.
    let place = unsafe { &mut *errptr };
    // SAFETY: null, or from malloc.
    unsafe { libc::free((*place).cast()) };
    *place = to_c_text(text);
}

/// `error` as LevelDB's `Status::ToString` would write one of its kind.
pub(crate) fn text_of(error: &Error) -> String {
    let code = match error.kind() {
        ErrorKind::NotFound => "NotFound",
        ErrorKind::Corruption => "Corruption",
        ErrorKind::NotSupported | ErrorKind::ReadOnly => "Not implemented",
        ErrorKind::InvalidArgument | ErrorKind::TooLarge => "Invalid argument",
        _ => "IO error",
    };
    format!("{code}: {error}")
}

/// Ends the process: a handle is not what its caller says, and nothing it points to can be trusted.
pub(crate) fn end_process(sentence: &str) -> ! {
    let line = format!("leveldb (drumlin): {sentence}\n");
    // SAFETY: the pointer and the length are of `line`.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    std::process::abort();
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text")
}
