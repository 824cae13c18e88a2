//! Where a thread leaves what a task waits for.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use drumlin::{Error, ErrorKind, Result};
use drumlin_base::sync::Mutex;

#[derive(Debug)]
enum State<T> {
    /// Nothing yet, and who waits for it.
    Empty(Option<Waker>),
    Full(T),
    /// The thread went without leaving anything.
    Lost,
    /// It was taken, or nobody wants it any more.
    Over,
}

type Slot<T> = Arc<Mutex<State<T>>>;

/// A way for one value from a thread to a task.
pub(crate) fn slot<T>() -> (Filling<T>, Waiting<T>) {
    let slot = Arc::new(Mutex::new(State::Empty(None)));
    (Filling(Arc::clone(&slot)), Waiting(slot))
}

/// The thread's end. The task is told when it is dropped unused, as by a panic.
#[derive(Debug)]
pub(crate) struct Filling<T>(Slot<T>);

impl<T> Filling<T> {
    /// Leaves `value`, and wakes the task.
    pub(crate) fn fill(self, value: T) {
        self.settle(State::Full(value));
    }

    fn settle(&self, settled: State<T>) {
        let mut state = self.0.lock();
        if let State::Empty(waker) = &mut *state {
            let waker = waker.take();
            *state = settled;
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(*self.0.lock(), State::Over)
    }
}

impl<T> Drop for Filling<T> {
    fn drop(&mut self) {
        self.settle(State::Lost);
    }
}

/// The task's end: what is dropped is not waited for.
#[derive(Debug)]
pub(crate) struct Waiting<T>(Slot<T>);

impl<T> Waiting<T> {
    /// Takes the value, or leaves word who wants it.
    ///
    /// # Errors
    /// `Aborted`: the thread went without leaving one.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Result<T>> {
        let mut state = self.0.lock();
        if let State::Empty(waker) = &mut *state {
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        match std::mem::replace(&mut *state, State::Over) {
            State::Full(value) => Poll::Ready(Ok(value)),
            _ => Poll::Ready(Err(lost())),
        }
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        *self.0.lock() = State::Over;
    }
}

#[cold]
fn lost() -> Error {
    let text = "the call panicked, or its future was polled after its end";
    Error::new(ErrorKind::Aborted, text)
}
