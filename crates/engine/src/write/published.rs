//! The newest sequence number readers see, and the order in which groups reach it.
//!
//! Groups are logged one after the other but applied side by side. Each covers the sequence numbers
//! from `before` (not included) to `last`, and begins where the one before it ends; so a group's
//! turn has come when what is published equals its `before`, and no other order has to be kept.
//!
//! Invariants:
//! - The published number only grows, from the end of one group to the end of the next.
//! - A group is published only after all before it are, by itself or by one of those.
//! - No group that was logged after a failed one is ever published.
//!
//! Thread safety: every method may be called from any thread; `set` only while no group is between
//! log and publication.

use std::time::Duration;

use drumlin_base::SeqNo;
use drumlin_base::sync::atomic::{AtomicU64, Ordering};
use drumlin_base::sync::{Condvar, Mutex};

/// A flag beside the sequence number: a thread sleeps until it changes. Sequence numbers have 56 bits.
const SLEEPERS: u64 = 1 << 63;

/// How often a group spins for its turn before it sleeps.
#[cfg(not(loom))]
const SPINS_MAX: u32 = 200;
#[cfg(loom)]
const SPINS_MAX: u32 = 1;

/// A group's sequence numbers: after `before`, up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) before: SeqNo,
    pub(crate) last: SeqNo,
}

/// See the module. On a cache line of its own: every read loads it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Published {
    /// The sequence number, and the bit [`SLEEPERS`]. One word, so that the store that publishes
    /// also shows whether somebody has to be woken.
    word: AtomicU64,
    /// Groups that begin here or later failed, or follow one that did.
    failed_from: AtomicU64,
    /// Groups whose work is done, waiting for those before them. None of them is empty, so no two
    /// begin at one place.
    finished: Mutex<Vec<Span>>,
    changed: Condvar,
}

impl Published {
    /// Everything up to `seqno` is published.
    pub(crate) fn new(seqno: SeqNo) -> Self {
        Self {
            word: AtomicU64::new(seqno),
            failed_from: AtomicU64::new(u64::MAX),
            finished: Mutex::new(Vec::new()),
            changed: Condvar::new(),
        }
    }

    /// The newest sequence number a reader may see; entries up to it are in memtables or tables.
    #[inline]
    pub(crate) fn load(&self) -> SeqNo {
        // Acquire pairs with the releases in `advance`, `wake` and `set`.
        self.word.load(Ordering::Acquire) & !SLEEPERS
    }

    /// Publishes `seqno` out of turn.
    ///
    /// Requires: the lead, and no group between log and publication.
    pub(crate) fn set(&self, seqno: SeqNo) {
        self.advance(seqno);
    }

    /// Publishes a group once all before it are; returns when readers see it. False when a group
    /// before it failed: then it is never seen.
    pub(crate) fn publish(&self, group: Span) -> bool {
        debug_assert!(group.before <= group.last, "a group's numbers ascend");
        if group.before == group.last {
            return self.wait_for(group.before); // It has no turn of its own.
        }
        for _ in 0..SPINS_MAX {
            if self.load() == group.before {
                self.advance(group.last);
                return true;
            }
            std::hint::spin_loop();
        }
        self.publish_slowly(group)
    }

    #[cold]
    fn publish_slowly(&self, group: Span) -> bool {
        let mut finished = self.finished.lock();
        finished.push(group);
        let own = |span: &Span| *span == group;
        loop {
            let now = self.word.fetch_or(SLEEPERS, Ordering::AcqRel) & !SLEEPERS;
            let listed = finished.iter().position(own);
            let Some(listed) = listed else {
                return true; // One before it has published it.
            };
            let turn = now == group.before || drumlin_base::bug!("group-published-out-of-turn");
            if turn || self.failed_from.load(Ordering::Acquire) <= group.before {
                finished.swap_remove(listed);
                drop(finished);
                if turn {
                    self.advance(group.last);
                }
                return turn;
            }
            finished = self.changed.wait(finished);
        }
    }

    /// Waits until everything up to `last` is published; false when a group before that failed, and
    /// all before the failed one are published.
    pub(crate) fn wait_for(&self, last: SeqNo) -> bool {
        if self.load() >= last {
            return true;
        }
        let mut finished = self.finished.lock();
        loop {
            let now = self.word.fetch_or(SLEEPERS, Ordering::AcqRel) & !SLEEPERS;
            if now >= last {
                return true;
            }
            if now >= self.failed_from.load(Ordering::Acquire) {
                return false;
            }
            finished = self.changed.wait(finished);
        }
    }

    /// Waits until more than `seen` is published, for `pause` at most.
    pub(crate) fn wait_past(&self, seen: SeqNo, pause: Duration) {
        let finished = self.finished.lock();
        let now = self.word.fetch_or(SLEEPERS, Ordering::AcqRel) & !SLEEPERS;
        if now <= seen {
            drop(self.changed.wait_for(finished, pause));
        }
    }

    /// Has those that wait look again.
    pub(crate) fn wake_all(&self) {
        drop(self.finished.lock());
        self.changed.notify_all();
    }

    /// Waits until no group up to `last` is between log and publication: each is published, or never will be.
    pub(crate) fn wait_settled(&self, last: SeqNo) {
        let _is_published = self.wait_for(last);
    }

    /// The group after `before` failed: it and all that follow are never published.
    pub(crate) fn fail_from(&self, before: SeqNo) {
        let finished = self.finished.lock();
        // Release pairs with the acquires in `publish_slowly` and `wait_for`.
        if !drumlin_base::bug!("failed-group-forgotten") {
            self.failed_from.fetch_min(before, Ordering::AcqRel);
        }
        drop(finished);
        self.changed.notify_all();
    }

    /// Requires: it is the caller's turn, so that nobody else changes the sequence number.
    #[inline]
    fn advance(&self, last: SeqNo) {
        // AcqRel: the entries of earlier groups are published with it.
        if self.word.swap(last, Ordering::AcqRel) & SLEEPERS != 0 {
            self.wake(last);
        }
    }

    /// Publishes those finished groups whose turn has come, and wakes all that wait.
    #[cold]
    fn wake(&self, mut now: SeqNo) {
        let mut finished = self.finished.lock();
        while let Some(next) = finished.iter().position(|span| span.before == now) {
            now = finished.swap_remove(next).last;
            // Its owner sleeps, so it is nobody else's turn. Those who wait are woken below, so
            // the bit need not stay.
            self.word.store(now, Ordering::Release);
        }
        drop(finished);
        self.changed.notify_all();
    }
}
