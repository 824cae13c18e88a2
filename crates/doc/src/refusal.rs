//! What a client is told when something is wrong with what it asked for.

use std::fmt;

use crate::code::Code;

/// Longest message: a command may have a hundred thousand refusals, and each may name a value of megabytes.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// An error for a client: code, sentence, and, of a duplicate key, what it is a duplicate of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The number and name.
    pub code: Code,
    /// A sentence that names what is wrong, cut off where what it names is long.
    pub message: String,
    /// More fields of the reply: a document.
    pub details: Option<Vec<u8>>,
}

/// A value, or why there is none.
pub type Outcome<T> = Result<T, Refusal>;

impl Refusal {
    /// A refusal without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
            message.push_str("...");
            message.shrink_to_fit();
        }
        Self {
            code,
            message,
            details: None,
        }
    }

    /// `BadValue`: what was given is not what there may be.
    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new(Code::BadValue, message)
    }

    /// `TypeMismatch`.
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new(Code::TypeMismatch, message)
    }

    /// `FailedToParse`.
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(Code::FailedToParse, message)
    }

    /// `CommandNotSupported`: `what` is known and not served.
    pub fn not_supported(what: impl fmt::Display) -> Self {
        Self::new(
            Code::CommandNotSupported,
            format!("{what} is not supported by this server"),
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code.name())
    }
}

impl std::error::Error for Refusal {}
