//! Why something did not happen.

use std::fmt;

use drumlin::Error;
use drumlin_doc::Refusal;

/// Why something did not happen.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for is wrong.
    Refused(Refusal),
    /// The engine could not do it.
    Engine(Error),
}

/// A value, or why there is none.
pub type Outcome<T> = Result<T, Failure>;

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Engine(error) => error.fmt(f),
        }
    }
}
