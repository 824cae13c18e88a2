//! Locks of keys, in stripes by hash, each with its mutex; and locks of ranges, in one room for all.
//!
//! A lock is handed over by the one that lets go of it: whoever is granted one holds it before it wakes, so nobody is
//! overtaken. Lock order: stripes by their number, the room of ranges, the graph of those who wait.
//!
//! Whoever takes a key looks, with its stripe locked, whether there are ranges at all, which is one load; only then it
//! asks their room. Whoever wants a range locks all stripes: it sees every key that was taken before, and whoever takes
//! one later sees the range. So a range costs the number of locks held, and a key nothing while there are no ranges.
//!
//! Thread safety: every method from any thread, for one owner from one thread at a time. Time is the door's.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::perf::{self, Measure};
use drumlin_base::sync::atomic::{AtomicUsize, Ordering};
use drumlin_base::sync::{Condvar, Mutex, MutexGuard};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Clock;

use crate::txn::expiry::Deadlines;
use crate::txn::lock::{Claim, Claimed, Lock, Owner};
use crate::txn::lock_key::LockKey;
use crate::txn::range_locks::{RangeId, RangeLocks, Settled};
use crate::txn::stripes::{Locks, Stripe};
use crate::txn::waits_for::{DeadlockStep, WaitsFor};
use crate::txn::wanted::{KeysBetween, Wanted};

/// A power of two. Enough that threads rarely meet in one, and few enough that a stripe is still in the cache when the
/// next lock comes to it: each takes some cache lines, and the store's own use of the cache pushes them out.
const STRIPES: usize = 32;

/// The longest wait that is asked for at once.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How long one waits for a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// At most this.
    pub(crate) timeout: Duration,
    /// After this it looks whether it waits in a circle.
    pub(crate) deadlock_delay: Duration,
}

/// One wait, be it in two places one after the other.
#[derive(Debug)]
struct Wait {
    claim: Claim,
    patience: Patience,
    begin: Duration,
    /// When it waited longest, as was seen last.
    waited: Duration,
    searched: bool,
}

impl Wait {
    /// How long it may sleep now.
    fn left(&self) -> Duration {
        let until = match self.searched {
            true => self.patience.timeout,
            false => self.patience.timeout.min(self.patience.deadlock_delay),
        };
        until.saturating_sub(self.waited).min(WAIT_MAX)
    }
}

/// What the ranges say of a key.
enum Passed {
    /// They have nothing against it.
    Free,
    /// The owner holds a range with it.
    Covered,
    /// The owner stands in the queue; whether it held nothing of the key.
    Queued { held_none: bool },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct LockTable {
    stripes: Box<[Stripe]>,
    ranges: Mutex<RangeLocks>,
    /// Notified when some left the queue of `ranges`.
    left_queue: Condvar,
    /// Ranges held, and owners in the queue. Becomes more than 0 only with all stripes locked.
    range_count: AtomicUsize,
    /// Ranges waited for. As `range_count`.
    wanted_ranges: AtomicUsize,
    waits: WaitsFor,
    /// Of owners whose locks others may take some time.
    pub(crate) deadlines: Deadlines,
    clock: Arc<dyn Clock>,
}

impl LockTable {
    /// A table without locks.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let stripes = std::iter::repeat_with(Stripe::default).take(STRIPES);
        Self {
            stripes: stripes.collect(),
            ranges: Mutex::default(),
            left_queue: Condvar::new(),
            range_count: AtomicUsize::new(0),
            wanted_ranges: AtomicUsize::new(0),
            waits: WaitsFor::default(),
            deadlines: Deadlines::default(),
            clock,
        }
    }

    /// Takes the lock `key`, waiting for it. True when the owner had not held it.
    ///
    /// # Errors
    /// `TimedOut`; `Deadlock` for the one that closes a circle. It holds then what it held before.
    pub(crate) fn lock(&self, claim: Claim, key: &LockKey, patience: Patience) -> Result<bool> {
        let stripe = self.stripe(key);
        let mut locks = stripe.locks.lock();
        // Relaxed: who made it more than 0 had this stripe locked.
        if self.range_count.load(Ordering::Relaxed) > 0 {
            match self.pass_ranges(&locks, claim, key) {
                Passed::Free => {}
                Passed::Covered => return Ok(false),
                Passed::Queued { held_none } => {
                    drop(locks);
                    let mut wait = self.begin_wait(claim, patience);
                    self.wait_in_queue(&mut wait, &Wanted::Key(key.clone()))?;
                    // It waits for others now, of whom some may wait for it.
                    wait.searched = false;
                    self.wait_in_stripe(stripe.locks.lock(), key, wait)?;
                    return Ok(held_none);
                }
            }
        }
        let lock = locks.find_or_add(key);
        match lock.claim(claim) {
            Claimed::Taken => return Ok(true),
            Claimed::Held => return Ok(false),
            Claimed::Queued => self.waits.set(&Wanted::Key(key.clone()), lock.edges()),
        }
        let held_none = lock.held_by(claim.owner).is_none();
        perf::count(Measure::LockWaits, 1);
        perf::timed(Measure::LockWaitNanos, || {
            self.wait_in_stripe(locks, key, self.begin_wait(claim, patience))
        })?;
        Ok(held_none)
    }

    /// Asks the ranges about a key in `locks`, and queues where one is in the way.
    fn pass_ranges(&self, locks: &Locks, claim: Claim, key: &LockKey) -> Passed {
        let held = locks.find(key).and_then(|lock| lock.held_by(claim.owner));
        if held.is_some_and(|held| held >= claim.mode) {
            return Passed::Free;
        }
        let mut ranges = self.ranges.lock();
        let wanted = Wanted::Key(key.clone());
        if ranges.covers(claim, &wanted) {
            return Passed::Covered;
        }
        let blockers = ranges.blockers(claim, &wanted);
        if blockers.is_empty() || drumlin_base::bug!("keys-taken-in-locked-ranges") {
            return Passed::Free;
        }
        self.waits
            .set(&wanted, vec![(claim.owner, blockers.clone())]);
        ranges.queue(claim, wanted, blockers);
        self.count(&ranges);
        Passed::Queued {
            held_none: held.is_none(),
        }
    }

    /// Takes a lock of all keys of `span`, waiting for it. `None` when the owner holds a range with all of them.
    ///
    /// # Errors
    /// As [`LockTable::lock`].
    pub(crate) fn lock_range(
        &self,
        claim: Claim,
        span: KeysBetween,
        patience: Patience,
    ) -> Result<Option<RangeId>> {
        let wanted = Wanted::Range(span);
        {
            let mut stripes = self.lock_stripes();
            let mut ranges = self.ranges.lock();
            if ranges.covers(claim, &wanted) {
                return Ok(None);
            }
            let blockers = ranges.blockers(claim, &wanted);
            ranges.queue(claim, wanted.clone(), blockers);
            self.settle_locked(&mut stripes, &mut ranges);
            if !ranges.is_queued(claim.owner) {
                return Ok(ranges.newest_of(claim.owner));
            }
        }
        let mut wait = self.begin_wait(claim, patience);
        self.wait_in_queue(&mut wait, &wanted)?;
        Ok(self.ranges.lock().newest_of(claim.owner))
    }

    fn begin_wait(&self, claim: Claim, patience: Patience) -> Wait {
        Wait {
            claim,
            patience,
            begin: self.clock.monotonic(),
            waited: Duration::ZERO,
            searched: false,
        }
    }

    /// The reason to wait no longer, if there is one now.
    fn why_to_give_up(&self, wait: &mut Wait, wanted: impl FnOnce() -> Wanted) -> Result<()> {
        wait.waited = self.clock.monotonic().saturating_sub(wait.begin);
        if wait.waited >= wait.patience.timeout {
            return Err(timed_out(&wanted(), wait.waited));
        }
        if !wait.searched && wait.waited >= wait.patience.deadlock_delay {
            wait.searched = true;
            if let Some(circle) = self.waits.leave_circle(wait.claim.owner) {
                return Err(deadlock(&circle));
            }
        }
        Ok(())
    }

    /// Returns once the owner is granted the lock of `key`, in the stripe of `locks`.
    fn wait_in_stripe<'a>(
        &'a self,
        mut locks: MutexGuard<'a, Locks>,
        key: &LockKey,
        mut wait: Wait,
    ) -> Result<()> {
        let stripe = self.stripe(key);
        loop {
            let lock = locks.find(key);
            if lock.is_some_and(|lock| lock.is_held(wait.claim)) {
                return Ok(());
            }
            let (expired, next) = self.expired_before(wait.claim.owner);
            if !expired.is_empty() {
                drop(locks);
                self.take_locks_of(&expired);
                locks = stripe.locks.lock();
                continue;
            }
            if let Err(error) = self.why_to_give_up(&mut wait, || Wanted::Key(key.clone())) {
                self.waits.remove(&[wait.claim.owner]);
                locks.change(key, |lock| {
                    lock.withdraw(wait.claim.owner);
                    self.hand_over(stripe, key, lock);
                });
                drop(locks);
                self.settle_ranges_with(key);
                return Err(error);
            }
            locks = stripe.granted.wait_for(locks, wait.left().min(next));
        }
    }

    /// Returns once the owner is out of the queue of the ranges: it holds the range, or what it waits for further is in
    /// the stripe of its key.
    fn wait_in_queue(&self, wait: &mut Wait, wanted: &Wanted) -> Result<()> {
        let owner = wait.claim.owner;
        let mut ranges = self.ranges.lock();
        loop {
            if !ranges.is_queued(owner) {
                return Ok(());
            }
            let (expired, next) = self.expired_before(owner);
            if !expired.is_empty() {
                drop(ranges);
                self.take_locks_of(&expired);
                ranges = self.ranges.lock();
                continue;
            }
            if let Err(error) = self.why_to_give_up(wait, || wanted.clone()) {
                self.waits.remove(&[owner]);
                ranges.withdraw(owner);
                self.count(&ranges);
                drop(ranges);
                self.settle();
                return Err(error);
            }
            ranges = self.left_queue.wait_for(ranges, wait.left().min(next));
        }
    }

    /// Those whom `owner` waits for and whose locks it has to take, and the longest time to sleep until it looks again.
    fn expired_before(&self, owner: Owner) -> (Vec<Owner>, Duration) {
        if self.deadlines.is_empty() {
            return (Vec::new(), WAIT_MAX);
        }
        let blockers = self.waits.blockers_of(owner);
        let (expired, next) = self.deadlines.expired(&blockers, self.clock.monotonic());
        (expired, next.unwrap_or(WAIT_MAX))
    }

    /// Ends all that `owners` hold, and hands it to those who are next. Looks at every lock there is.
    fn take_locks_of(&self, owners: &[Owner]) {
        let mut stripes = self.lock_stripes();
        let mut ranges = self.ranges.lock();
        for (stripe, locks) in self.stripes.iter().zip(&mut stripes) {
            for key in locks.held_by(owners) {
                locks.change(&key, |lock| {
                    for owner in owners {
                        lock.release(*owner);
                    }
                    if !drumlin_base::bug!("expired-locks-go-to-nobody") {
                        self.hand_over(stripe, &key, lock);
                    }
                });
            }
        }
        ranges.release_all(owners);
        self.settle_locked(&mut stripes, &mut ranges);
    }

    /// Lets go of the lock `key`, and hands it to those who are next.
    pub(crate) fn unlock(&self, owner: Owner, key: &LockKey) {
        let stripe = self.stripe(key);
        let mut locks = stripe.locks.lock();
        let released = locks.change(key, |lock| {
            let released = lock.release(owner);
            self.hand_over(stripe, key, lock);
            released
        });
        debug_assert!(
            released == Some(true) || !self.deadlines.is_empty(),
            "an owner lets go of what it holds"
        );
        drop(locks);
        self.settle_ranges_with(key);
    }

    /// Lets go of a range, and lets those in who waited for that.
    pub(crate) fn unlock_range(&self, id: RangeId) {
        let mut ranges = self.ranges.lock();
        let released = ranges.release(id);
        debug_assert!(
            released || !self.deadlines.is_empty(),
            "an owner lets go of what it holds"
        );
        self.count(&ranges);
        if ranges.is_wanted() && !drumlin_base::bug!("range-kept-by-nobody") {
            drop(ranges);
            self.settle();
        }
    }

    /// The last deadlocks, oldest first.
    pub(crate) fn last_deadlocks(&self) -> Vec<Vec<DeadlockStep>> {
        self.waits.last_deadlocks()
    }

    /// After somebody left the lock of `key`: grants it, and notes who waits for whom now.
    fn hand_over(&self, stripe: &Stripe, key: &LockKey, lock: &mut Lock) {
        if !lock.is_wanted() {
            return;
        }
        let granted = lock.grant();
        self.waits.remove(&granted);
        self.waits.set(&Wanted::Key(key.clone()), lock.edges());
        if !granted.is_empty() {
            stripe.granted.notify_all();
        }
    }

    /// After somebody left the lock of `key`: looks whether a range was waiting for that.
    fn settle_ranges_with(&self, key: &LockKey) {
        // Relaxed: who wants a range had the stripe locked, before it was left or after.
        if self.wanted_ranges.load(Ordering::Relaxed) > 0 && self.ranges.lock().concerns(key) {
            self.settle();
        }
    }

    /// Lets out of the queue whoever waits for nobody any more.
    fn settle(&self) {
        let mut stripes = self.lock_stripes();
        let mut ranges = self.ranges.lock();
        self.settle_locked(&mut stripes, &mut ranges);
    }

    /// As [`LockTable::settle`]; the caller has every lock there is but the graph's.
    fn settle_locked(&self, stripes: &mut [MutexGuard<'_, Locks>], ranges: &mut RangeLocks) {
        let (mut place, mut left) = (0, false);
        while let Some(waiter) = ranges.waiter(place) {
            let (claim, wanted) = (waiter.claim, waiter.wanted.clone());
            let mut keys = Vec::new();
            if let Wanted::Range(span) = &wanted {
                for locks in stripes.iter() {
                    locks.add_blockers(claim, span, &mut keys);
                }
            }
            match ranges.settle(place, keys) {
                Settled::Waits(blockers) => {
                    self.waits.set(&wanted, vec![(claim.owner, blockers)]);
                    place += 1;
                }
                Settled::Leaves(waiter) => {
                    left = true;
                    self.waits.remove(&[claim.owner]);
                    match waiter.wanted {
                        Wanted::Range(span) => ranges.hold(claim, span),
                        Wanted::Key(key) => self.claim_locked(stripes, claim, &key),
                    }
                }
            }
        }
        self.count(ranges);
        if left {
            self.left_queue.notify_all();
        }
    }

    /// Claims a key for one that comes from the queue of the ranges.
    fn claim_locked(&self, stripes: &mut [MutexGuard<'_, Locks>], claim: Claim, key: &LockKey) {
        let Some(locks) = stripes.get_mut(stripe_of(key)) else {
            return; // There is a guard for each stripe.
        };
        let lock = locks.find_or_add(key);
        if lock.claim(claim) == Claimed::Queued {
            self.waits.set(&Wanted::Key(key.clone()), lock.edges());
        }
    }

    fn lock_stripes(&self) -> Vec<MutexGuard<'_, Locks>> {
        let stripes = self.stripes.iter();
        stripes.map(|stripe| stripe.locks.lock()).collect()
    }

    /// Tells those who lock keys about the ranges.
    fn count(&self, ranges: &RangeLocks) {
        // Relaxed: see the loads.
        self.range_count.store(ranges.count(), Ordering::Relaxed);
        let wanted = ranges.wanted_ranges();
        self.wanted_ranges.store(wanted, Ordering::Relaxed);
    }

    fn stripe(&self, key: &LockKey) -> &Stripe {
        &self.stripes[stripe_of(key)]
    }

    #[cfg(test)]
    /// Whether no lock is held or waited for, and nothing of one is left.
    pub(crate) fn is_empty(&self) -> bool {
        let mut stripes = self.stripes.iter();
        stripes.all(|stripe| stripe.locks.lock().is_empty())
            && self.ranges.lock().count() == 0
            && self.range_count.load(Ordering::Relaxed) == 0
            && self.waiting_count() == 0
    }

    #[cfg(test)]
    /// How many owners wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waits.count()
    }
}

/// The number of the stripe of `key`.
fn stripe_of(key: &LockKey) -> usize {
    // Bits of the middle: the map in the stripe goes by the lowest and the highest.
    (key.hash >> 32) as usize % STRIPES
}

#[cold]
fn timed_out(wanted: &Wanted, waited: Duration) -> Error {
    let part = match wanted {
        Wanted::Key(_) => "",
        Wanted::Range(_) => "a part of ",
    };
    let message = format!(
        "another transaction holds {part}{} of family {}; gave up after {} ms",
        wanted.told(),
        wanted.family(),
        waited.as_millis()
    );
    Error::new(ErrorKind::TimedOut, message)
}

#[cold]
fn deadlock(circle: &[DeadlockStep]) -> Error {
    let steps = circle.iter().map(|step| {
        let DeadlockStep {
            transaction,
            target,
            ..
        } = step;
        format!("transaction {transaction} waits for {target}")
    });
    let steps: Vec<_> = steps.collect();
    let message = format!("transactions wait for each other: {}", steps.join(", "));
    Error::new(ErrorKind::Deadlock, message)
}
