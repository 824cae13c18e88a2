//! The real clock, the real threads, and the environment made of them.

use std::hash::{BuildHasher, RandomState};

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use drumlin_base::{Error, ErrorKind, Result};

use crate::posix::PosixFileSystem;
use crate::process::Process;
use crate::{Clock, Env, FileSystem, JoinHandle, Spawner};

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic reading starts now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time(&self) -> Duration {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or(Duration::ZERO)
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}

/// Threads of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSpawner;

impl Spawner for ThreadSpawner {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        let handle = thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)
            .map_err(|source| {
                Error::new(
                    ErrorKind::Io,
                    format!("cannot start the thread {name}: {source}"),
                )
            })?;
        Ok(Box::new(Thread {
            handle,
            process: Process::current(),
        }))
    }

    fn give_way(&self) {
        thread::yield_now();
    }
}

#[derive(Debug)]
struct Thread {
    handle: thread::JoinHandle<()>,
    /// A forked child has no such thread.
    process: Process,
}

impl JoinHandle for Thread {
    fn join(self: Box<Self>) -> Result<()> {
        if let Err(error) = self.process.check() {
            // Even dropping the handle would touch a thread that does not exist here.
            let _kept = std::mem::ManuallyDrop::new(self.handle);
            return Err(error);
        }
        let name = self.handle.thread().name().unwrap_or_default().to_owned();
        self.handle.join().map_err(|payload| {
            let why = panic_message(payload.as_ref());
            Error::new(
                ErrorKind::Aborted,
                format!("the thread {name} panicked: {why}"),
            )
        })
    }
}

/// The message of a panic, if it is text.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

impl Env {
    /// The operating system's files, clocks and threads, and a seed nobody can guess.
    pub fn system() -> Self {
        Self {
            files: Arc::new(PosixFileSystem::new()),
            clock: Arc::new(SystemClock::new()),
            spawner: Arc::new(ThreadSpawner),
            // The standard library keys its hashers from the system's randomness.
            seed: RandomState::new().hash_one(0_u64),
        }
    }

    /// The same with other files.
    #[must_use]
    pub fn with_files(mut self, files: Arc<dyn FileSystem>) -> Self {
        self.files = files;
        self
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The same with other threads.
    #[must_use]
    pub fn with_spawner(mut self, spawner: Arc<dyn Spawner>) -> Self {
        self.spawner = spawner;
        self
    }

    /// The same with a given seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

impl Default for Env {
    fn default() -> Self {
        Self::system()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_thread_comes_back_as_an_error() {
        let good = ThreadSpawner.spawn("good", Box::new(|| {})).unwrap();
        good.join().unwrap();
        let body = || std::panic::resume_unwind(Box::new("tree fell"));
        let bad = ThreadSpawner.spawn("bad", Box::new(body)).unwrap();
        let error = bad.join().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Aborted);
        assert_eq!(error.to_string(), "the thread bad panicked: tree fell");
    }

    #[test]
    fn the_clock_does_not_go_back() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        clock.sleep(Duration::from_micros(1));
        assert!(clock.monotonic() > before);
        assert!(clock.unix_seconds() > 1_700_000_000);
        assert!(clock.unix_millis() / 1000 >= clock.unix_seconds() - 1);
    }

    #[test]
    fn two_environments_have_two_seeds() {
        assert_ne!(Env::system().seed, Env::default().seed);
    }
}
