//! The engine's errors as JavaScript's, with the codes that users of `abstract-level` branch on.

use drumlin::{Error, ErrorKind};
use napi::{Env, JsError};

/// `error` as what is thrown, or what a promise is rejected with: an `Error` with a `code`.
pub(crate) fn thrown(env: Env, error: &Error) -> napi::Error {
    let coded = napi::Error::new(code(error.kind()), error.to_string());
    napi::Error::from(JsError::from(coded).into_unknown(env))
}

fn code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "LEVEL_NOT_FOUND",
        ErrorKind::Corruption => "LEVEL_CORRUPTION",
        ErrorKind::NotSupported => "LEVEL_NOT_SUPPORTED",
        ErrorKind::InvalidArgument | ErrorKind::TooLarge => "LEVEL_INVALID",
        ErrorKind::Io => "LEVEL_IO_ERROR",
        ErrorKind::NoSpace => "LEVEL_NO_SPACE",
        ErrorKind::Poisoned => "LEVEL_POISONED",
        ErrorKind::Locked => "LEVEL_LOCKED",
        ErrorKind::ReadOnly => "LEVEL_READ_ONLY",
        ErrorKind::Shutdown => "LEVEL_DATABASE_NOT_OPEN",
        _ => "LEVEL_UNKNOWN",
    }
}
