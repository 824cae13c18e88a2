//! The hand-over between writers: one leads, the others wait and are served, set to work, or
//! promoted.
//!
//! One thread at a time leads a queue. There are two: the leader of the writers appends to the WAL, the leader of the
//! syncs syncs it. So a group is appended while the one before it is being synced.
//!
//! Invariants:
//! - At most one thread leads a queue at a time.
//! - A waiting request is either taken by a leader (and completed by it) or its owner is promoted;
//!   never both, never neither.
//! - A taken request may be given back to its owner once, to do its part of the work; the leader
//!   completes it all the same.
//! - Requests are served in the order they joined, but for one that finds nobody leading.
//! - While a leader has announced a stall, no request waits that may not.
//!
//! Thread safety: every method may be called from any thread; `take_followers` only by the thread
//! that leads.

use std::collections::VecDeque;
use std::sync::Arc;

use drumlin_base::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use drumlin_base::sync::{Condvar, Mutex};
use drumlin_base::{Error, ErrorKind, Result};

/// The next step of a writer that joined.
#[derive(Debug)]
pub(crate) enum Turn<T> {
    /// It leads, with its own request in hand.
    Lead(T),
    /// It does its own part of a group, and then asks [`Share::finish`] for the outcome.
    Share(T, Share<T>),
    /// Another writer served its request with this outcome. The request comes back with it, unless the one that served
    /// it kept it.
    Served(Option<T>, Result<()>),
}

#[derive(Debug)]
enum Status<T> {
    Waiting(T),
    Taken,
    Shared(T, Arc<Shares>),
    Promoted(T),
    Done(Option<T>, Result<()>),
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
    /// Whether the owner may wait behind a leader that stalls.
    may_stall: bool,
}

/// How often a waiting writer spins before it sleeps, where a group takes about a microsecond: going
/// to sleep and waking up takes several. Where it waits for the disk, it does not spin.
#[cfg(not(loom))]
const SPINS_MAX: u32 = 200;
#[cfg(loom)]
const SPINS_MAX: u32 = 0;

/// How often a writer spins for a free lead before it queues, which costs an
/// allocation and a second hand-over: longer than a small append takes.
#[cfg(not(loom))]
const SPINS_BEFORE_QUEUING: u32 = 40;
#[cfg(loom)]
const SPINS_BEFORE_QUEUING: u32 = 0;

impl<T> Follower<T> {
    fn new(request: T, may_stall: bool) -> Self {
        Self {
            slot: Mutex::new(Slot {
                status: Status::Waiting(request),
                asleep: false,
            }),
            changed: Condvar::new(),
            ready: AtomicBool::new(false),
            may_stall,
        }
    }

    /// Ends the owner's wait with `outcome`, and gives its request back if there is one to give.
    pub(crate) fn complete(&self, request: Option<T>, outcome: Result<()>) {
        self.change(|_| Status::Done(request, outcome));
    }

    /// Ends the owner's wait with its request and `error`, unless it was taken.
    fn refuse(&self, error: Error) {
        self.change(|status| match status {
            Status::Waiting(request) => Status::Done(Some(request), Err(error)),
            other => other,
        });
    }

    /// Gives the owner its request back, to do its part; the leader waits for `shares`.
    pub(crate) fn share(&self, request: T, shares: &Arc<Shares>) {
        self.change(|_| Status::Shared(request, Arc::clone(shares)));
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
        if slot.asleep && !drumlin_base::bug!("wake-up-lost") {
            self.changed.notify_one();
        }
    }

    fn wait(self: &Arc<Self>, spins: u32) -> Turn<T> {
        for _ in 0..spins {
            if self.ready.load(Ordering::Relaxed) {
                break;
            }
            std::hint::spin_loop();
        }
        let mut slot = self.slot.lock();
        loop {
            match std::mem::replace(&mut slot.status, Status::Consumed) {
                Status::Promoted(request) => return Turn::Lead(request),
                Status::Done(request, outcome) => return Turn::Served(request, outcome),
                Status::Shared(request, shares) => {
                    slot.status = Status::Taken;
                    self.ready.store(false, Ordering::Relaxed);
                    let follower = Arc::clone(self);
                    return Turn::Share(request, Share { follower, shares });
                }
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

/// A follower's part of a group's work.
#[derive(Debug)]
pub(crate) struct Share<T> {
    follower: Arc<Follower<T>>,
    shares: Arc<Shares>,
}

impl<T> Share<T> {
    /// Says that the part is done (or failed) and waits for the outcome of the group.
    pub(crate) fn finish(self, part: Result<()>) -> Result<()> {
        let failed = part.is_err();
        self.shares.finish(failed);
        let outcome = match self.follower.wait(SPINS_MAX) {
            Turn::Served(_, outcome) => outcome,
            Turn::Lead(_) | Turn::Share(..) => unreachable!("a shared request is only completed"),
        };
        part.and(outcome)
    }
}

/// The parts of one group that its members do themselves.
#[derive(Debug)]
pub(crate) struct Shares {
    left: Mutex<Left>,
    done: Condvar,
}

#[derive(Debug)]
struct Left {
    count: usize,
    failed: bool,
}

impl Shares {
    /// `count` parts, none done.
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(Left {
                count,
                failed: false,
            }),
            done: Condvar::new(),
        })
    }

    fn finish(&self, failed: bool) {
        let mut left = self.left.lock();
        left.count -= 1;
        left.failed |= failed;
        if left.count == 0 {
            self.done.notify_one();
        }
    }

    /// Waits until every part is done; whether all went well.
    pub(crate) fn wait(&self) -> bool {
        let mut left = self.left.lock();
        while left.count > 0 {
            left = self.done.wait(left);
        }
        !left.failed
    }
}

/// No thread leads or waits.
const FREE: u8 = 0;
/// A thread leads, and none waits.
const LED: u8 = 1;
/// A thread leads, and others wait or it stalls. Entered and left only under the lock of the waiting ones.
const CROWDED: u8 = 2;

/// Those who wait for the leader.
#[derive(Debug)]
struct Waiting<T> {
    followers: VecDeque<Arc<Follower<T>>>,
    /// Why the leader stalls, while it does. Then the state is [`CROWDED`].
    stall: Option<&'static str>,
}

/// The queue of writers. On a cache line of its own: two writers in turn move it between their cores
/// with each write.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CommitQueue<T> {
    /// [`FREE`], [`LED`] or [`CROWDED`].
    state: AtomicU8,
    waiting: Mutex<Waiting<T>>,
    spins: u32,
    spins_before_queuing: u32,
}

/// The lead of a queue; dropping it hands it over to the first that waits.
#[derive(Debug)]
pub(crate) struct Lead<'a, T> {
    queue: &'a CommitQueue<T>,
}

impl<T> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        self.queue.hand_over();
    }
}

impl<T> CommitQueue<T> {
    /// A queue whose leaders are done within microseconds.
    pub(crate) fn quick() -> Self {
        Self::new(SPINS_MAX, SPINS_BEFORE_QUEUING)
    }

    /// A queue whose leaders wait for the disk.
    pub(crate) fn slow() -> Self {
        Self::new(0, 0)
    }

    fn new(spins: u32, spins_before_queuing: u32) -> Self {
        Self {
            state: AtomicU8::new(FREE),
            waiting: Mutex::new(Waiting {
                followers: VecDeque::new(),
                stall: None,
            }),
            spins,
            spins_before_queuing,
        }
    }

    /// Joins the queue; returns when the caller leads, has work to do, or was served. Costs one atomic
    /// exchange when nobody else writes. The one that leads calls [`CommitQueue::lead_guard`] next.
    ///
    /// Without `may_stall` the outcome is `Busy` as soon as the leader announces a stall. The caller then still
    /// waits for the lead, and for the leader's work that needs no stall.
    pub(crate) fn join(&self, request: T, may_stall: bool) -> Turn<T> {
        for _ in 0..self.spins_before_queuing {
            if self.state.load(Ordering::Relaxed) != LED {
                break;
            }
            std::hint::spin_loop();
        }
        // Acquire, here and below, pairs with the releases in `hand_over`.
        let taken = self
            .state
            .compare_exchange(FREE, LED, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            return Turn::Lead(request);
        }
        let follower = {
            let mut waiting = self.waiting.lock();
            if let (Some(why), false) = (waiting.stall, may_stall)
                && !drumlin_base::bug!("no-stall-kept-by-leaders-only")
            {
                let busy = Error::new(ErrorKind::Busy, why);
                return Turn::Served(Some(request), Err(busy));
            }
            let join = |state| Some(if state == FREE { LED } else { CROWDED });
            let before = self
                .state
                .fetch_update(Ordering::Acquire, Ordering::Relaxed, join);
            if before == Ok(FREE) {
                return Turn::Lead(request);
            }
            let follower = Arc::new(Follower::new(request, may_stall));
            waiting.followers.push_back(Arc::clone(&follower));
            follower
        };
        follower.wait(self.spins)
    }

    /// A guard that ends the caller's lead.
    ///
    /// Requires: the caller leads.
    pub(crate) fn lead_guard(&self) -> Lead<'_, T> {
        Lead { queue: self }
    }

    /// Announces that the leader is about to wait because of `why`, for longer than one write takes: requests that may
    /// not wait for that are served with `Busy`, those that wait and those that come. The stall ends when the leader
    /// takes followers, or hands over.
    ///
    /// Requires: the caller leads.
    #[cold]
    pub(crate) fn begin_stall(&self, why: &'static str) {
        let mut waiting = self.waiting.lock();
        waiting.stall = Some(why);
        self.state.store(CROWDED, Ordering::Relaxed);
        waiting.followers.retain(|follower| {
            if !follower.may_stall {
                follower.refuse(Error::new(ErrorKind::Busy, why));
                return false;
            }
            true
        });
    }

    /// Takes waiting requests from the front for as long as `fits` says so.
    pub(crate) fn take_followers(
        &self,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Vec<(T, Arc<Follower<T>>)> {
        let mut taken = Vec::new();
        if self.state.load(Ordering::Relaxed) != CROWDED {
            return taken;
        }
        let mut waiting = self.waiting.lock();
        waiting.stall = None;
        let waiting = &mut waiting.followers;
        while let Some(front) = waiting.front() {
            if front.peek(&mut fits) != Some(true) {
                break;
            }
            let Some(front) = waiting.pop_front() else {
                break;
            };
            if let Some(request) = front.take() {
                taken.push((request, front));
            }
        }
        if waiting.is_empty() {
            self.state.store(LED, Ordering::Relaxed);
        }
        taken
    }

    fn hand_over(&self) {
        let alone = self
            .state
            .compare_exchange(LED, FREE, Ordering::Release, Ordering::Relaxed);
        if alone.is_ok() {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.stall = None;
        let next = waiting.followers.pop_front();
        let state = match (&next, waiting.followers.is_empty()) {
            (None, _) => FREE,
            (Some(_), true) => LED,
            (Some(_), false) if drumlin_base::bug!("line-behind-the-next-forgotten") => LED,
            (Some(_), false) => CROWDED,
        };
        self.state.store(state, Ordering::Release);
        if let Some(next) = next {
            next.promote();
        }
    }
}
