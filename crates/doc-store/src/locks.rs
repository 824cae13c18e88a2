//! Locks of keys and of collections.
//!
//! A writer has a share of its collection and the keys it changes; it takes all at once, so that nobody waits while they hold
//! some. Keys are known by a hash: two that meet wait for each other without need. Who holds keys may ask for more and is
//! refused where they are held; then all are let go and taken anew. What changes the catalog has a collection alone. Who builds an
//! index has neither while it goes through the documents, but a mark by which those who would change the collection wait.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use drumlin_base::sync::{Condvar, Mutex};

use crate::layout::Ident;
use crate::pace::Pace;

/// The lock of the catalog, a key that no collection has.
const CATALOG: u64 = u64::MAX;

/// The hash of a key of an ident.
pub(crate) fn lock_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() >> 1
}

#[derive(Debug, Default)]
struct State {
    keys: HashSet<u64>,
    /// How many share a collection.
    shares: HashMap<Ident, usize>,
    /// Those that somebody has alone, or waits for: nobody else begins there.
    alone: HashSet<Ident>,
    /// Those of which an index is being built.
    built: HashSet<Ident>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    state: Mutex<State>,
    freed: Condvar,
}

/// Keys that are held, with a share of the collection.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    locks: &'a Locks,
    ident: Ident,
    /// In their order.
    keys: Vec<u64>,
}

/// A collection that is held alone.
#[derive(Debug)]
pub(crate) struct Alone<'a> {
    locks: &'a Locks,
    ident: Ident,
}

/// A collection of which an index is being built.
#[derive(Debug)]
pub(crate) struct Built<'a> {
    locks: &'a Locks,
    ident: Ident,
}

/// The catalog, held.
#[derive(Debug)]
pub(crate) struct CatalogLock<'a>(&'a Locks);

impl Locks {
    /// Takes all `keys`, and a share of the collection. `None` where it would wait and must not.
    pub(crate) fn keys(&self, ident: Ident, mut keys: Vec<u64>, pace: Pace) -> Option<Held<'_>> {
        keys.sort_unstable();
        keys.dedup();
        let mut state = self.state.lock();
        while state.alone.contains(&ident) || keys.iter().any(|key| state.keys.contains(key)) {
            if pace == Pace::AtOnce && drumlin_base::bug!("mongo-at-once-unlocked") {
                break;
            }
            if pace == Pace::AtOnce {
                return None;
            }
            state = self.freed.wait(state);
        }
        if !drumlin_base::bug!("mongo-documents-unlocked") {
            state.keys.extend(&keys);
        }
        *state.shares.entry(ident).or_default() += 1;
        Some(Held {
            locks: self,
            ident,
            keys,
        })
    }

    /// Takes a collection alone: waits for those that share it. Requires: the catalog is held.
    pub(crate) fn alone(&self, ident: Ident) -> Alone<'_> {
        let mut state = self.state.lock();
        state.alone.insert(ident);
        while state.shares.contains_key(&ident) {
            state = self.freed.wait(state);
        }
        Alone { locks: self, ident }
    }

    /// Marks a collection of which an index is being built. Requires: the catalog is held, and nobody else builds one.
    pub(crate) fn built(&self, ident: Ident) -> Built<'_> {
        self.state.lock().built.insert(ident);
        Built { locks: self, ident }
    }

    /// Waits until no index of the collection is being built. Requires: the catalog is not held.
    pub(crate) fn wait_for_build(&self, ident: Ident) {
        let mut state = self.state.lock();
        while state.built.contains(&ident) {
            state = self.freed.wait(state);
        }
    }

    /// Takes the right to change the catalog.
    pub(crate) fn catalog(&self) -> CatalogLock<'_> {
        let mut state = self.state.lock();
        while !state.keys.insert(CATALOG) {
            state = self.freed.wait(state);
        }
        CatalogLock(self)
    }
}

impl Held<'_> {
    /// Takes more keys, if nobody has any of them; whether it did.
    pub(crate) fn try_more(&mut self, more: &[u64]) -> bool {
        let mut new: Vec<u64> = more
            .iter()
            .copied()
            .filter(|key| self.keys.binary_search(key).is_err())
            .collect();
        new.sort_unstable();
        new.dedup();
        let mut state = self.locks.state.lock();
        if new.iter().any(|key| state.keys.contains(key)) {
            return false;
        }
        state.keys.extend(&new);
        self.keys.extend(new);
        self.keys.sort_unstable();
        true
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.locks.state.lock();
        for key in &self.keys {
            state.keys.remove(key);
        }
        if let Some(shares) = state.shares.get_mut(&self.ident) {
            *shares -= 1;
            if *shares == 0 {
                state.shares.remove(&self.ident);
            }
        }
        drop(state);
        self.locks.freed.notify_all();
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.locks.state.lock().alone.remove(&self.ident);
        self.locks.freed.notify_all();
    }
}

impl Drop for Built<'_> {
    fn drop(&mut self) {
        self.locks.state.lock().built.remove(&self.ident);
        self.locks.freed.notify_all();
    }
}

impl Drop for CatalogLock<'_> {
    fn drop(&mut self) {
        self.0.state.lock().keys.remove(&CATALOG);
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_keys_are_refused_to_others_until_they_are_free() {
        let locks = Locks::default();
        let keys = |keys: &[u64]| locks.keys(1, keys.to_vec(), Pace::AtOnce);
        let mut first = keys(&[10, 11]).expect("free");
        let mut second = keys(&[12]).expect("free");
        assert!(keys(&[13, 11]).is_none());
        assert!(!second.try_more(&[11, 13]));
        assert!(second.try_more(&[13, 12]));
        assert!(!first.try_more(&[13]));
        drop(second);
        assert!(first.try_more(&[13, 12]));
        drop(first);
        let alone = locks.alone(1);
        assert!(keys(&[10]).is_none());
        drop(alone);
        assert!(keys(&[10]).expect("free").try_more(&[12]));
    }
}
