//! Where lines go.

use std::fmt::Debug;

/// Takes the lines of a server's log.
pub trait LogSink: Send + Sync + Debug {
    /// Takes a line, with its end. It is called on the loop: it should not wait. What it cannot write is lost.
    fn line(&self, line: &str);
}
