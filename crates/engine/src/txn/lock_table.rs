//! Locks of keys: stripes by hash, each with its mutex, in which locks are held and waited for.
//!
//! A lock is handed over by the one that lets go of it: whoever is granted one holds it before it wakes, so nobody is
//! overtaken. Lock order: a stripe, then the graph of those who wait. Nobody takes two stripes at a time.
//!
//! Thread safety: every method from any thread, for one owner from one thread at a time. Time is the door's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::{Condvar, Mutex, MutexGuard};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Clock;

use crate::txn::lock::{Claim, Claimed, Lock, LockKey, Mode, Owner};
use crate::txn::waits_for::{DeadlockStep, WaitsFor};

/// A power of two; far more than threads, so that two rarely meet in one.
const STRIPES: usize = 256;

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

/// Locks by the hash of their key.
type Locks = BTreeMap<u64, Vec<Lock>>;

#[derive(Debug, Default)]
struct Stripe {
    locks: Mutex<Locks>,
    granted: Condvar,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct LockTable {
    stripes: Box<[Stripe]>,
    waits: WaitsFor,
    clock: Arc<dyn Clock>,
}

impl LockTable {
    /// A table without locks.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let stripes = std::iter::repeat_with(Stripe::default).take(STRIPES);
        Self {
            stripes: stripes.collect(),
            waits: WaitsFor::default(),
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
        let lock = find_or_add(&mut locks, key);
        match lock.claim(claim) {
            Claimed::Taken => return Ok(true),
            Claimed::Held => return Ok(false),
            Claimed::Queued => self.waits.set(key, lock.edges()),
        }
        let held_none = !lock.is_held(Claim {
            mode: Mode::Shared,
            ..claim
        });
        self.wait(stripe, locks, (claim, key), patience)?;
        Ok(held_none)
    }

    fn wait(
        &self,
        stripe: &Stripe,
        mut locks: MutexGuard<'_, Locks>,
        (claim, key): (Claim, &LockKey),
        patience: Patience,
    ) -> Result<()> {
        let begin = self.clock.monotonic();
        let mut searched = false;
        loop {
            if find_or_add(&mut locks, key).is_held(claim) {
                return Ok(());
            }
            let waited = self.clock.monotonic().saturating_sub(begin);
            if waited >= patience.timeout {
                self.withdraw(stripe, &mut locks, claim.owner, key);
                return Err(timed_out(key, waited));
            }
            if !searched && waited >= patience.deadlock_delay {
                searched = true;
                if let Some(circle) = self.waits.leave_circle(claim.owner) {
                    self.withdraw(stripe, &mut locks, claim.owner, key);
                    return Err(deadlock(&circle));
                }
            }
            let until = match searched {
                true => patience.timeout,
                false => patience.timeout.min(patience.deadlock_delay),
            };
            let left = until.saturating_sub(waited).min(WAIT_MAX);
            locks = stripe.granted.wait_for(locks, left);
        }
    }

    /// Lets go of the lock `key`, and hands it to those who are next.
    pub(crate) fn unlock(&self, owner: Owner, key: &LockKey) {
        let stripe = self.stripe(key);
        let mut locks = stripe.locks.lock();
        let released = find_or_add(&mut locks, key).release(owner);
        debug_assert!(released, "an owner lets go of what it holds");
        self.hand_over(stripe, &mut locks, key);
    }

    /// The last deadlocks, oldest first.
    pub(crate) fn last_deadlocks(&self) -> Vec<Vec<DeadlockStep>> {
        self.waits.last_deadlocks()
    }

    fn withdraw(&self, stripe: &Stripe, locks: &mut Locks, owner: Owner, key: &LockKey) {
        self.waits.remove(&[owner]);
        find_or_add(locks, key).withdraw(owner);
        self.hand_over(stripe, locks, key);
    }

    /// After somebody left the lock: grants it, and notes who waits for whom now.
    fn hand_over(&self, stripe: &Stripe, locks: &mut Locks, key: &LockKey) {
        let lock = find_or_add(locks, key);
        if lock.is_wanted() {
            let granted = lock.grant();
            self.waits.remove(&granted);
            self.waits.set(key, lock.edges());
            if !granted.is_empty() {
                stripe.granted.notify_all();
            }
        }
        if lock.is_free() {
            forget(locks, key);
        }
    }

    fn stripe(&self, key: &LockKey) -> &Stripe {
        // The map in the stripe is by the whole hash.
        &self.stripes[key.hash as usize % STRIPES]
    }

    #[cfg(test)]
    /// Whether no lock is held or waited for, and nothing of one is left.
    pub(crate) fn is_empty(&self) -> bool {
        let mut stripes = self.stripes.iter();
        stripes.all(|stripe| stripe.locks.lock().is_empty()) && self.waiting_count() == 0
    }

    #[cfg(test)]
    /// How many owners wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waits.count()
    }
}

fn find_or_add<'a>(locks: &'a mut Locks, key: &LockKey) -> &'a mut Lock {
    let same = locks.entry(key.hash).or_default();
    let index = same.iter().position(|lock| lock.key == *key);
    let index = index.unwrap_or_else(|| {
        same.push(Lock::new(key.clone()));
        same.len() - 1
    });
    &mut same[index]
}

fn forget(locks: &mut Locks, key: &LockKey) {
    if let Some(same) = locks.get_mut(&key.hash) {
        same.retain(|lock| lock.key != *key);
        if same.is_empty() {
            locks.remove(&key.hash);
        }
    }
}

#[cold]
fn timed_out(key: &LockKey, waited: Duration) -> Error {
    let message = format!(
        "another transaction holds the key \"{}\" of family {}; gave up after {} ms",
        key.key.escape_ascii(),
        key.family,
        waited.as_millis()
    );
    Error::new(ErrorKind::TimedOut, message)
}

#[cold]
fn deadlock(circle: &[DeadlockStep]) -> Error {
    let steps = circle.iter().map(|step| {
        let key = step.key.escape_ascii();
        format!("transaction {} waits for \"{key}\"", step.transaction)
    });
    let steps: Vec<_> = steps.collect();
    let message = format!("transactions wait for each other: {}", steps.join(", "));
    Error::new(ErrorKind::Deadlock, message)
}
