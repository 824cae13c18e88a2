//! Why a command does not do its work.

use std::borrow::Cow;
use std::fmt;

use drumlin_base::{Error, ErrorKind};

/// A result of the data types.
pub type Outcome<T> = Result<T, Failure>;

/// Why a command has no result. It has changed nothing then.
#[derive(Debug)]
pub enum Failure {
    /// The key holds a value of another type.
    WrongType,
    /// The reply's error line without its `-`, as Redis words it.
    Refused(Cow<'static, str>),
    /// A block that the command needs is not in memory, and it may not wait for the disk.
    Cold,
    /// The engine failed.
    Engine(Error),
}

impl Failure {
    /// An error line, begun by `ERR`.
    pub const fn refused(line: &'static str) -> Self {
        Self::Refused(Cow::Borrowed(line))
    }

    /// An error line that was made for the occasion.
    pub fn because(line: impl Into<String>) -> Self {
        Self::Refused(Cow::Owned(line.into()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Incomplete => Self::Cold,
            _ => Self::Engine(error),
        }
    }
}

/// The line of the reply, without its `-`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongType => {
                f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Self::Refused(line) => f.write_str(line),
            Self::Cold => f.write_str("ERR a block is not in memory"),
            Self::Engine(error) => match error.kind() {
                ErrorKind::NoSpace => write!(f, "MISCONF the disk is full: {error}"),
                ErrorKind::Poisoned | ErrorKind::ReadOnly => {
                    write!(f, "MISCONF the store takes no writes: {error}")
                }
                ErrorKind::TooLarge => write!(f, "ERR too large: {error}"),
                _ => write!(f, "ERR {error}"),
            },
        }
    }
}
