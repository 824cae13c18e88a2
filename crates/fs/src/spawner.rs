//! Threads, as a trait, so that a test can run them in an order of its own.

use std::fmt::Debug;

use drumlin_base::Result;

/// Starts threads.
pub trait Spawner: Send + Sync + Debug {
    /// Runs `body` on a thread called `name`.
    ///
    /// # Errors
    /// `Io` when the system has no more threads.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>>;

    /// Called by a thread whose work can wait: others that wait for its core, if there are any, run first. Nothing
    /// where threads have no cores to wait for.
    fn give_way(&self) {}
}

/// A started thread.
pub trait JoinHandle: Send + Debug {
    /// Waits for the thread to end. A panic in it is reported as `Aborted`.
    ///
    /// # Errors
    /// `Aborted`.
    fn join(self: Box<Self>) -> Result<()>;
}
