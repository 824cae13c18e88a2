//! Errors and panics, as texts in C's memory, and the end of a process whose handles cannot be trusted.

use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use drumlin_base::{Error, Result};

use crate::bytes::to_c_text;

/// How a library words its errors.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// An error as the library's `Status::ToString` writes one of its kind.
    pub text_of: fn(&Error) -> String,
    /// What stands before the first colon where something panicked.
    pub panic: &'static str,
}

/// Runs `body` and gives its result; of an error or a panic the text goes to `errptr`, and the result is `None`.
///
/// # Safety
/// `errptr` is null or points to null or to a text that `malloc` made.
pub unsafe fn guard<T>(
    words: &Words,
    function: &str,
    errptr: *mut *mut c_char,
    body: impl FnOnce() -> Result<T>,
) -> Option<T> {
    let text = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => (words.text_of)(&error),
        Err(panic) => format!(
            "{}: internal error in {function}: {}",
            words.panic,
            message_of(&*panic)
        ),
    };
    // SAFETY: the caller's promise.
    unsafe { put(errptr, &text) };
    None
}

/// Runs `body` of a function that has no place for an error: a panic ends the process.
pub fn guard_infallible<T>(function: &str, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(panic) => end_process(
            function,
            &format!("internal error: {}", message_of(&*panic)),
        ),
    }
}

/// Puts `text` to `errptr`; the text that is there is given back. Nothing where it is null.
///
/// # Safety
/// As [`guard`].
pub unsafe fn put(errptr: *mut *mut c_char, text: &str) {
    if errptr.is_null() {
        return;
    }
    // SAFETY: it is not null, and the caller says that it points to a pointer.
    let place = unsafe { &mut *errptr };
    // SAFETY: null, or from malloc.
    unsafe { libc::free((*place).cast()) };
    *place = to_c_text(text);
}

/// Ends the process: what `function` was called with is not what its caller says, and cannot be trusted.
pub fn end_process(function: &str, sentence: &str) -> ! {
    let library = function.split('_').next().unwrap_or(function);
    let line = format!("{library} (drumlin): {function}: {sentence}\n");
    // The process ends in any case.
    // SAFETY: the pointer and the length are of `line`.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    std::process::abort();
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text")
}
