//! One stripe of the lock table: the locks of the keys whose hash leads here.

use std::collections::BTreeMap;

use drumlin_base::sync::{Condvar, Mutex};

use crate::txn::lock::{Claim, Lock, LockKey, Owner, is_compatible};
use crate::txn::wanted::KeysBetween;

/// Locks by the hash of their key. None is there that nobody holds or waits for, between two uses.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    by_hash: BTreeMap<u64, Vec<Lock>>,
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
        let same = self.by_hash.get(&key.hash)?;
        same.iter().find(|lock| lock.key == *key)
    }

    /// The lock of `key`, which is made where it is missing.
    pub(crate) fn find_or_add(&mut self, key: &LockKey) -> &mut Lock {
        let same = self.by_hash.entry(key.hash).or_default();
        let index = same.iter().position(|lock| lock.key == *key);
        let index = index.unwrap_or_else(|| {
            same.push(Lock::new(key.clone()));
            same.len() - 1
        });
        &mut same[index]
    }

    /// Forgets the lock of `key`.
    pub(crate) fn forget(&mut self, key: &LockKey) {
        if let Some(same) = self.by_hash.get_mut(&key.hash) {
            same.retain(|lock| lock.key != *key);
            if same.is_empty() {
                self.by_hash.remove(&key.hash);
            }
        }
    }

    /// Adds those who hold or wait for a key of `span` in a mode that `claim` is not compatible with.
    pub(crate) fn add_blockers(&self, claim: Claim, span: &KeysBetween, blockers: &mut Vec<Owner>) {
        let locks = self.by_hash.values().flatten();
        let inside = locks.filter(|lock| span.holds(lock.key.family, &lock.key.key));
        let against = |other: &Claim| other.owner != claim.owner && !is_compatible(*other, claim);
        let claims = inside.flat_map(Lock::claims).filter(against);
        blockers.extend(claims.map(|other| other.owner));
    }

    #[cfg(test)]
    /// Whether nothing of any lock is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }
}
