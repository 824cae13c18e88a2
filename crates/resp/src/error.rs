//! How bytes are not RESP.

use std::fmt;

/// Why a request is none. A server says it to the client and closes the connection.
///
/// `Display` is the text that Redis sends behind `-ERR `. Where the byte in [`ProtocolError::ExpectedBulk`] is not
/// ASCII, [`ProtocolError::write_text`] has it as Redis sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// An inline command without an end.
    InlineTooLong,
    /// An inline command whose quotes do not close, or close within a word.
    UnbalancedQuotes,
    /// The line that counts the arguments has no end.
    CountLineTooLong,
    /// The count of arguments is no number, or too large.
    InvalidCount,
    /// More arguments than a client may send before it authenticates.
    UnauthenticatedCount,
    /// The line with the length of an argument has no end.
    LengthLineTooLong,
    /// An argument begins with this byte and not with `$`.
    ExpectedBulk(u8),
    /// The length of an argument is no number, or too large.
    InvalidLength,
    /// A longer argument than a client may send before it authenticates.
    UnauthenticatedLength,
}

impl ProtocolError {
    const fn text(self) -> &'static str {
        match self {
            Self::InlineTooLong => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::CountLineTooLong => "too big mbulk count string",
            Self::InvalidCount => "invalid multibulk length",
            Self::UnauthenticatedCount => "unauthenticated multibulk length",
            Self::LengthLineTooLong => "too big bulk count string",
            Self::ExpectedBulk(_) => "expected '$', got '",
            Self::InvalidLength => "invalid bulk length",
            Self::UnauthenticatedLength => "unauthenticated bulk length",
        }
    }

    /// Appends the text that Redis sends, byte for byte, without `-ERR ` and the line's end.
    pub fn write_text(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Protocol error: ");
        out.extend_from_slice(self.text().as_bytes());
        if let Self::ExpectedBulk(found) = self {
            out.extend_from_slice(&[printed(found), b'\'']);
        }
    }
}

/// A line's end within an error would be one of the protocol's.
const fn printed(found: u8) -> u8 {
    if matches!(found, b'\r' | b'\n') {
        b' '
    } else {
        found
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.text())?;
        match self {
            Self::ExpectedBulk(found) => write!(f, "{}'", char::from(printed(*found))),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Why the bytes of a server are no replies that this client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyError {
    /// The protocol is broken.
    Malformed {
        /// In which way.
        what: &'static str,
        /// Where the line begins, counted from the first byte pushed.
        offset: u64,
    },
    /// A reply within more others than [`crate::ReplyLimits::depth_max`].
    TooDeep,
    /// A reply of more bytes than [`crate::ReplyLimits::value_bytes_max`].
    TooLarge,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { what, offset } => write!(f, "{what} at byte {offset} of the replies"),
            Self::TooDeep => f.write_str("a reply is nested too deeply"),
            Self::TooLarge => f.write_str("a reply is too large"),
        }
    }
}

impl std::error::Error for ReplyError {}
