//! Threads that a simulator runs one at a time, and the reports of their locks to it.
//!
//! A simulator calls [`enter`] on each thread it owns. From then on the thread's locks and condition variables
//! never block in the operating system: they call [`Tasks`] to let others run until they can proceed. A place
//! is an address, compared and never dereferenced.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The simulator's side. Called by the running thread.
pub trait Tasks: Send + Sync {
    /// Another task may run now; returns when it is the caller's turn again.
    fn step(&self);
    /// Lets others run until the place is woken, or `timeout` has passed; may return earlier.
    fn park(&self, place: usize, timeout: Option<Duration>);
    /// Tasks parked at the place, one or all, may run again. Does not switch.
    fn wake(&self, place: usize, all: bool);
}

thread_local! {
    static OWN: RefCell<Option<Arc<dyn Tasks>>> = const { RefCell::new(None) };
}

/// Makes the calling thread a task of `tasks`, until [`leave`].
pub fn enter(tasks: Arc<dyn Tasks>) {
    OWN.set(Some(tasks));
}

/// Makes the calling thread, which is about to end, one like any other.
pub fn leave() {
    OWN.set(None);
}

/// The simulator of the calling thread; `None` also while the thread ends.
pub(super) fn current() -> Option<Arc<dyn Tasks>> {
    let own = OWN.try_with(|own| own.borrow().as_ref().map(Arc::clone));
    own.ok().flatten()
}

pub(super) fn step() {
    if let Some(tasks) = current() {
        tasks.step();
    }
}
