//! Process identity: a forked child has a copy of the memory, but neither the threads nor the right to the files.
//!
//! A forked child inherits its parent's descriptors, mappings, locks and io_uring. Its use of them affects the
//! parent, so each of these things remembers the process it was made in and refuses to work in others. The C
//! library reports a fork ([`Process::current`] registers for it), so a check costs two loads and no system
//! call. A bare `clone` system call goes unnoticed.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use drumlin_base::{Error, Result};

use crate::syscalls;

/// How often this process and those before it were forked. Relaxed everywhere: it changes only while a child
/// has a single thread.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: Once = Once::new();

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A process, distinguished from those that are forked from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The process that calls.
    pub fn current() -> Self {
        WATCHED.call_once(|| syscalls::call_in_forked_children(in_child));
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether the caller is still in this process.
    #[inline]
    pub fn is_present(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// # Errors
    /// `InvalidArgument` in a process that was forked from this one.
    #[inline]
    pub fn check(self) -> Result<()> {
        match self.is_present() {
            true => Ok(()),
            false => Err(forked()),
        }
    }
}

#[cold]
fn forked() -> Error {
    Error::invalid_argument(
        "this belongs to the process that forked this one, which may go on using it; a child opens its own",
    )
}

/// Runs `body` in a forked copy of this process, which ends with it, and returns the copy's exit code; a
/// signal is 128 and its number. For tests: a child has one thread only, and locks that others held stay
/// locked.
///
/// # Errors
/// The system's refusal.
pub fn in_forked_child(body: impl FnOnce() -> u8) -> std::io::Result<i32> {
    syscalls::in_forked_child(body)
}
