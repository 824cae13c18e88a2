//! The log: what an operator should know of, a line each, as text or as JSON.
//!
//! Nothing that clients send is in it but names of users and addresses; what scripts log is theirs.

mod civil;
mod journal;
mod level;
mod line;
mod seen;
mod sink;
pub(crate) mod watch;

pub(crate) use journal::Journal;
pub(crate) use level::Level;
pub(crate) use seen::Watch;
pub use sink::LogSink;
