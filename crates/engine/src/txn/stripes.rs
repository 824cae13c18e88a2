//! One stripe of the lock table: the locks of the keys whose hash leads here.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use drumlin_base::sync::{Condvar, Mutex};

use crate::txn::lock::{Claim, Lock, Owner, is_compatible};
use crate::txn::lock_key::LockKey;
use crate::txn::wanted::KeysBetween;

/// Locks for which a stripe keeps its memory when none of them is left.
const KEPT_LOCKS: usize = 64;

/// The hash that a key brings along.
#[derive(Debug, Default)]
pub(crate) struct OwnHash(u64);

impl Hasher for OwnHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        debug_assert!(false, "a key hashes as one number");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Locks by their key. None is there that nobody holds or waits for, between two uses.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    by_key: HashMap<LockKey, Lock, BuildHasherDefault<OwnHash>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Stripe {
    pub(crate) locks: Mutex<Locks>,
    /// Notified when a lock was granted to some that waited.
    pub(crate) granted: Condvar,
}

impl Locks {
    /// The lock of `key`.
    pub(crate) fn find(&self, key: &LockKey) -> Option<&Lock> {
        self.by_key.get(key)
    }

    /// The lock of `key`, which is made where it is missing.
    pub(crate) fn find_or_add(&mut self, key: &LockKey) -> &mut Lock {
        self.by_key.entry(key.clone()).or_default()
    }

    /// The keys that one of `owners` holds.
    pub(crate) fn held_by(&self, owners: &[Owner]) -> Vec<LockKey> {
        let is_held = |lock: &Lock| owners.iter().any(|owner| lock.held_by(*owner).is_some());
        let held = self.by_key.iter().filter(|(_, lock)| is_held(lock));
        held.map(|(key, _)| key.clone()).collect()
    }

    /// Changes the lock of `key`, if there is one, and forgets it where nobody holds it or waits for it then.
    pub(crate) fn change<R>(
        &mut self,
        key: &LockKey,
        change: impl FnOnce(&mut Lock) -> R,
    ) -> Option<R> {
        let Entry::Occupied(mut entry) = self.by_key.entry(key.clone()) else {
            return None;
        };
        let outcome = change(entry.get_mut());
        if entry.get().is_free() {
            entry.remove();
            if self.by_key.is_empty() && self.by_key.capacity() > KEPT_LOCKS {
                self.by_key.shrink_to(KEPT_LOCKS);
            }
        }
        Some(outcome)
    }

    /// Adds those who hold or wait for a key of `span` in a mode that `claim` is not compatible with.
    pub(crate) fn add_blockers(&self, claim: Claim, span: &KeysBetween, blockers: &mut Vec<Owner>) {
        let locks = self.by_key.iter();
        let inside = locks.filter(|(key, _)| span.holds(key.family, &key.key));
        let against = |other: &Claim| other.owner != claim.owner && !is_compatible(*other, claim);
        let claims = inside.flat_map(|(_, lock)| lock.claims()).filter(against);
        blockers.extend(claims.map(|other| other.owner));
    }

    #[cfg(test)]
    /// Whether nothing of any lock is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
