//! Transactions with a deadline, after which whoever waits for their locks may take them.
//!
//! One compare-and-swap decides: from `RUNNING` a transaction goes to `ENDING` when it commits or is prepared before its
//! deadline, or to `TAKEN` by the one who takes its locks after it. So one whose locks were taken never commits, and one
//! that commits keeps them to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::txn::lock::Owner;

const RUNNING: u8 = 0;
const ENDING: u8 = 1;
const TAKEN: u8 = 2;

/// When a transaction ends by itself.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Duration,
    state: AtomicU8,
}

impl Deadline {
    // AcqRel and Acquire: the changes of the state pair with each other, so that who takes locks comes after all that was
    // done while they were held.
    fn go(&self, to: u8) -> bool {
        let gone = self
            .state
            .compare_exchange(RUNNING, to, Ordering::AcqRel, Ordering::Acquire);
        gone.is_ok()
    }

    /// Whether the transaction may end as it wants to. Its locks stay its own then.
    pub(crate) fn end(&self, now: Duration) -> bool {
        now < self.at && self.go(ENDING) || drumlin_base::bug!("expired-transactions-commit")
    }

    /// Whether the locks may be taken, which the caller does then: true once.
    fn take(&self, now: Duration) -> bool {
        now >= self.at && self.go(TAKEN)
    }

    /// Whether the locks were taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.state.load(Ordering::Acquire) == TAKEN
    }
}

/// The transactions that have a deadline. Any thread; the lock is a leaf.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    by_owner: Mutex<BTreeMap<Owner, Arc<Deadline>>>,
    /// How many there are.
    count: AtomicUsize,
}

impl Deadlines {
    /// Notes that `owner` ends at `at`.
    pub(crate) fn add(&self, owner: Owner, at: Duration) -> Arc<Deadline> {
        let state = AtomicU8::new(RUNNING);
        let deadline = Arc::new(Deadline { at, state });
        let mut by_owner = self.by_owner.lock();
        by_owner.insert(owner, Arc::clone(&deadline));
        // Relaxed: who waits for a lock of the owner had the lock's stripe after it was taken.
        self.count.store(by_owner.len(), Ordering::Relaxed);
        deadline
    }

    /// Forgets `owner`, which holds no locks any more.
    pub(crate) fn remove(&self, owner: Owner) {
        let mut by_owner = self.by_owner.lock();
        by_owner.remove(&owner);
        self.count.store(by_owner.len(), Ordering::Relaxed); // Relaxed: see `add`.
    }

    /// Whether nobody has a deadline.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0 // Relaxed: see `add`.
    }

    /// Of `owners`, those whose locks the caller has to take now, and the time until the next one's.
    pub(crate) fn expired(
        &self,
        owners: &[Owner],
        now: Duration,
    ) -> (Vec<Owner>, Option<Duration>) {
        let by_owner = self.by_owner.lock();
        let (mut expired, mut next) = (Vec::new(), None::<Duration>);
        for owner in owners {
            let Some(deadline) = by_owner.get(owner) else {
                continue;
            };
            if deadline.take(now) {
                expired.push(*owner);
            } else if now < deadline.at {
                let left = deadline.at.saturating_sub(now);
                next = Some(next.map_or(left, |next| next.min(left)));
            }
        }
        (expired, next)
    }
}
