//! The collections that are alive, as the compaction filter and blind writes ask for them.
//!
//! Invariant: every cid that has entries in the database and whose deletion would not survive a power cut is in here.
//! A cid comes in before anything is written under it. It goes out only once its death is durable: until then a
//! power cut could take the deletion back from the WAL, and elements that a compaction dropped would be missing.

use std::collections::{BTreeMap, HashSet};

use drumlin::SeqNo;
use parking_lot::RwLock;
use roaring::RoaringTreemap;

/// A change of the collections that are alive, in the order of the writes.
#[derive(Clone, Debug)]
pub(crate) enum LiveChange {
    /// A key with this hash has the collection now.
    Owned { db: u16, cid: u64, hash: u64 },
    /// A collection is deleted; the key with this hash has none now.
    Died { db: u16, cid: u64, hash: u64 },
    /// A collection went from one key to another.
    Moved {
        cid: u64,
        from: (u16, u64),
        to: (u16, u64),
    },
    /// All of a database are deleted.
    Cleared { db: u16 },
}

#[derive(Default)]
struct Sets {
    alive: BTreeMap<u16, RoaringTreemap>,
    /// Dead by writes that are not durable yet, oldest first.
    dying: Vec<(SeqNo, RoaringTreemap)>,
    /// Hashes of the keys that have collections. Two keys of one hash would count as one; the second's elements would
    /// then stay on disk for ever if it is overwritten blindly, at a chance of one in 2^64 a pair.
    owners: HashSet<(u16, u64)>,
}

/// See the module. Any number of threads may ask at once.
pub(crate) struct Live {
    sets: RwLock<Sets>,
    /// Deaths up to here were read from the database when it was opened.
    opened_at: SeqNo,
}

impl Live {
    /// The collections of a database that was opened at `opened_at`: (db, cid, hash of the owner).
    pub(crate) fn new(opened_at: SeqNo, alive: impl Iterator<Item = (u16, u64, u64)>) -> Self {
        let mut sets = Sets::default();
        for (db, cid, hash) in alive {
            sets.alive.entry(db).or_default().insert(cid);
            sets.owners.insert((db, hash));
        }
        Self {
            sets: RwLock::new(sets),
            opened_at,
        }
    }

    /// Notes that entries may be written under `cid` from now on.
    pub(crate) fn born(&self, db: u16, cid: u64) {
        self.sets.write().alive.entry(db).or_default().insert(cid);
    }

    /// Whether the key with this hash may have a collection.
    pub(crate) fn may_own(&self, db: u16, hash: u64) -> bool {
        self.sets.read().owners.contains(&(db, hash))
    }

    /// Applies what the batch whose last sequence number is `seqno` changed.
    pub(crate) fn apply(&self, changes: &[LiveChange], seqno: SeqNo) {
        if changes.is_empty() {
            return;
        }
        let sets = &mut *self.sets.write();
        let mut dead = RoaringTreemap::new();
        for change in changes {
            match *change {
                LiveChange::Owned { db, cid, hash } => {
                    sets.owners.insert((db, hash));
                    // It was born before the batch, which may have cleared the database before it.
                    sets.alive.entry(db).or_default().insert(cid);
                }
                LiveChange::Died { db, cid, hash } => {
                    sets.owners.remove(&(db, hash));
                    sets.alive.entry(db).or_default().remove(cid);
                    dead.insert(cid);
                }
                LiveChange::Moved { cid, from, to } => {
                    sets.owners.remove(&from);
                    sets.owners.insert(to);
                    sets.alive.entry(from.0).or_default().remove(cid);
                    sets.alive.entry(to.0).or_default().insert(cid);
                }
                LiveChange::Cleared { db } => {
                    dead |= sets.alive.remove(&db).unwrap_or_default();
                    sets.owners.retain(|(of, _)| *of != db);
                }
            }
        }
        if !dead.is_empty() {
            sets.dying.push((seqno, dead));
        }
    }

    /// Forgets the collections whose deletion is durable: `durable` is the newest sequence number that a power cut
    /// cannot take back. False where that is not even so for the deletions found when the database was opened.
    pub(crate) fn bury(&self, durable: SeqNo) -> bool {
        let durable = match drumlin_base::bug!("redis-deaths-count-before-a-sync") {
            true => SeqNo::MAX,
            false => durable,
        };
        if durable < self.opened_at {
            return false;
        }
        let any = |sets: &Sets| sets.dying.first().is_some_and(|(at, _)| *at <= durable);
        if any(&self.sets.read()) {
            self.sets.write().dying.retain(|(at, _)| *at > durable);
        }
        true
    }

    /// Whether the entries of `cid` must stay.
    pub(crate) fn holds(&self, cid: u64) -> bool {
        let sets = self.sets.read();
        sets.alive.values().any(|alive| alive.contains(cid))
            || sets.dying.iter().any(|(_, dead)| dead.contains(cid))
    }

    /// Collections that are alive.
    pub(crate) fn count(&self) -> u64 {
        self.sets
            .read()
            .alive
            .values()
            .map(RoaringTreemap::len)
            .sum()
    }
}
