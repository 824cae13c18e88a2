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
use drumlin_base::sync::atomic::{AtomicBool, Ordering};
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

#[derive(Debug)]
struct Slot<T> {
    status: Status<T>,
    /// Whether the owner sleeps and must be woken, which costs a system call.
    asleep: bool,
}

/// A request whose owner waits for a leader.
#[derive(Debug)]
pub(crate) struct Follower<T> {
    slot: Mutex<Slot<T>>,
    changed: Condvar,
    /// Set once the owner has something to do, so that it can watch for it before it sleeps. A
    /// hint: the slot decides.
    ready: AtomicBool,
}

/// How often a waiting writer looks before it sleeps. A group takes about a microsecond when it is
/// not synced; going to sleep and waking up takes several.
#[cfg(not(loom))]
const LOOKS: u32 = 200;
#[cfg(loom)]
const LOOKS: u32 = 0;

impl<T> Follower<T> {
    fn new(request: T) -> Self {
        Self {
            slot: Mutex::new(Slot {
                status: Status::Waiting(request),
                asleep: false,
            }),
            changed: Condvar::new(),
            ready: AtomicBool::new(false),
        }
    }

    /// Ends the owner's wait with `outcome`.
    pub(crate) fn complete(&self, outcome: Result<()>) {
        self.change(|_| Status::Done(outcome));
    }

    fn promote(&self) {
        self.change(|status| match status {
            Status::Waiting(request) => Status::Promoted(request),
            other => other,
        });
    }

    fn change(&self, to: impl FnOnce(Status<T>) -> Status<T>) {
        let mut slot = self.slot.lock();
        slot.status = to(std::mem::replace(&mut slot.status, Status::Taken));
        self.ready.store(true, Ordering::Relaxed);
        if slot.asleep {
            self.changed.notify_one();
        }
    }

    fn wait(&self) -> Turn<T> {
        for _ in 0..LOOKS {
            if self.ready.load(Ordering::Relaxed) {
                break;
            }
            std::hint::spin_loop();
        }
        let mut slot = self.slot.lock();
        loop {
            match std::mem::replace(&mut slot.status, Status::Consumed) {
                Status::Promoted(request) => return Turn::Lead(request),
                Status::Done(outcome) => return Turn::Served(outcome),
                unfinished => slot.status = unfinished,
            }
            slot.asleep = true;
            slot = self.changed.wait(slot);
            slot.asleep = false;
        }
    }

    fn take(&self) -> Option<T> {
        let mut slot = self.slot.lock();
        match std::mem::replace(&mut slot.status, Status::Taken) {
            Status::Waiting(request) => Some(request),
            other => {
                slot.status = other;
                None
            }
        }
    }

    fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        match &self.slot.lock().status {
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
