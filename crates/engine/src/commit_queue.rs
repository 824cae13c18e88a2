//! The hand-over between writers: one leads, the others wait and are either served or promoted.
//!
//! Invariants:
//! - At most one thread leads at a time; it alone touches the WAL and assigns sequence numbers.
//! - A waiting request is either taken by a leader (and completed by it) or its owner is promoted;
//!   never both, never neither.
//! - Requests are served in the order they joined.
//!
//! Thread safety: every method may be called from any thread; `take_followers` and `hand_over`
//! only by the thread that leads.

use std::collections::VecDeque;
use std::sync::Arc;

use drumlin_base::Result;
use drumlin_base::sync::{Condvar, Mutex};

/// What a writer that joined has to do next.
#[derive(Debug)]
pub(crate) enum Turn<T> {
    /// It leads, with its own request in hand.
    Lead(T),
    /// Another writer served its request with this outcome.
    Served(Result<()>),
}

#[derive(Debug)]
enum Status<T> {
    Waiting(T),
    Taken,
    Promoted(T),
    Done(Result<()>),
    Consumed,
}

/// A request whose owner waits for a leader.
#[derive(Debug)]
pub(crate) struct Follower<T> {
    status: Mutex<Status<T>>,
    changed: Condvar,
}

impl<T> Follower<T> {
    fn new(request: T) -> Self {
        Self {
            status: Mutex::new(Status::Waiting(request)),
            changed: Condvar::new(),
        }
    }

    /// Ends the owner's wait with `outcome`.
    pub(crate) fn complete(&self, outcome: Result<()>) {
        *self.status.lock() = Status::Done(outcome);
        self.changed.notify_one();
    }

    fn wait(&self) -> Turn<T> {
        let mut status = self.status.lock();
        loop {
            match std::mem::replace(&mut *status, Status::Consumed) {
                Status::Promoted(request) => return Turn::Lead(request),
                Status::Done(outcome) => return Turn::Served(outcome),
                unfinished => *status = unfinished,
            }
            status = self.changed.wait(status);
        }
    }

    fn take(&self) -> Option<T> {
        let mut status = self.status.lock();
        match std::mem::replace(&mut *status, Status::Taken) {
            Status::Waiting(request) => Some(request),
            other => {
                *status = other;
                None
            }
        }
    }

    fn promote(&self) {
        let mut status = self.status.lock();
        if let Status::Waiting(request) = std::mem::replace(&mut *status, Status::Taken) {
            *status = Status::Promoted(request);
        }
        self.changed.notify_one();
    }

    fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        match &*self.status.lock() {
            Status::Waiting(request) => Some(look(request)),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Line<T> {
    led: bool,
    waiting: VecDeque<Arc<Follower<T>>>,
}

/// The line of writers.
#[derive(Debug)]
pub(crate) struct CommitQueue<T> {
    line: Mutex<Line<T>>,
}

impl<T> CommitQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            line: Mutex::new(Line {
                led: false,
                waiting: VecDeque::new(),
            }),
        }
    }

    /// Joins the line; returns when the caller leads or was served. Costs one uncontended lock
    /// when nobody else writes.
    pub(crate) fn join(&self, request: T) -> Turn<T> {
        let follower = {
            let mut line = self.line.lock();
            if !line.led {
                line.led = true;
                return Turn::Lead(request);
            }
            let follower = Arc::new(Follower::new(request));
            line.waiting.push_back(Arc::clone(&follower));
            follower
        };
        follower.wait()
    }

    /// Takes waiting requests from the front for as long as `fits` says so.
    pub(crate) fn take_followers(
        &self,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Vec<(T, Arc<Follower<T>>)> {
        let mut taken = Vec::new();
        let mut line = self.line.lock();
        while let Some(front) = line.waiting.front() {
            if front.peek(&mut fits) != Some(true) {
                break;
            }
            let Some(front) = line.waiting.pop_front() else {
                break;
            };
            if let Some(request) = front.take() {
                taken.push((request, front));
            }
        }
        taken
    }

    /// Ends the caller's lead: the first waiting writer leads next, if one waits.
    pub(crate) fn hand_over(&self) {
        let mut line = self.line.lock();
        match line.waiting.pop_front() {
            Some(next) => next.promote(),
            None => line.led = false,
        }
    }
}
