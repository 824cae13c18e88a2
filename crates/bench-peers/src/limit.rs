//! The end of an engine that hangs.
//!
//! Engines run in this process, and nothing ends a thread that waits for ever in one of them: the
//! process ends with it.

use std::io::{Write, stderr};
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::Env;
use drumlin_lab::time_limit::TimeLimit;

/// Ends this process, and says that `what` did it, unless the answer is dropped within `limit`.
///
/// # Errors
/// `Io` when no thread can be started.
pub(crate) fn start(what: &str, limit: Duration, env: &Env) -> Result<TimeLimit> {
    let minutes = limit.as_secs() / 60;
    let message = format!(
        "peers: {what}: not done after {minutes} minutes (--time-limit), ended; its files are left\n"
    );
    TimeLimit::start(limit, env, move || {
        // Nothing is left to report a failure of the report to.
        let _unreported = stderr().write_all(message.as_bytes());
        // Not `exit`: what engines do at an exit waits for the threads that hang.
        std::process::abort();
    })
}
