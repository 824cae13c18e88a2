//! An end for work that may hang: something is done about it when nothing was heard of it for too long.
//!
//! A thread waits for signs of life. It ends with its [`TimeLimit`], which waits for it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::{Env, JoinHandle};

/// Watches over a piece of work until it is dropped.
pub struct TimeLimit {
    signs: Option<Sender<()>>,
    thread: Option<Box<dyn JoinHandle>>,
}

impl TimeLimit {
    /// Calls `on_late`, once and on another thread, when there was no sign of life for `limit`.
    ///
    /// # Errors
    /// `Io` when no thread can be started.
    pub fn start(
        limit: Duration,
        env: &Env,
        on_late: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        let (signs, heard) = mpsc::channel();
        let body = Box::new(move || {
            loop {
                match heard.recv_timeout(limit) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => return on_late(),
                }
            }
        });
        Ok(Self {
            signs: Some(signs),
            thread: Some(env.spawner.spawn("time-limit", body)?),
        })
    }

    /// A sign of life: the time begins anew.
    pub fn goes_on(&self) {
        if let Some(signs) = &self.signs {
            // Nobody listens any more where it was too late.
            let _ = signs.send(());
        }
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        self.signs = None;
        if let Some(thread) = self.thread.take() {
            // It fails if `on_late` panicked, and the panic itself was reported.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for TimeLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimeLimit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_is_told_once_and_what_is_not_never() {
        let env = Env::system();
        let (late, lates) = mpsc::channel();
        let tell = late.clone();
        let limit = TimeLimit::start(Duration::from_millis(1), &env, move || {
            tell.send("hangs").expect("the test listens");
        });
        let limit = limit.expect("a thread");
        assert_eq!(lates.recv(), Ok("hangs"));
        limit.goes_on();
        drop(limit);
        let limit = TimeLimit::start(Duration::from_secs(3600), &env, move || {
            late.send("goes on").expect("the test listens");
        });
        let limit = limit.expect("a thread");
        limit.goes_on();
        drop(limit);
        assert!(lates.recv().is_err(), "both are gone, without a word");
    }
}
