//! Locks of ranges: who holds them, and who waits because of them. Pure: the table has the mutex and the waiting.
//!
//! A key is locked in its stripe; it comes here only while there are ranges. In the queue stand owners that wait for a
//! range, and owners that wait for a key because a range is held or waited for. Whoever waits for a key in a stripe came
//! before every range that waits here, and nobody moves from a stripe to here.
//!
//! Invariants:
//! - No two owners hold ranges that meet unless both are shared, and none a range with another's lock of a key in it,
//!   be it held or waited for in its stripe, unless both are shared.
//! - A newcomer waits behind every one in the queue that it is not compatible with, but for those that wait for the
//!   newcomer itself: behind those it would wait for ever.

use std::collections::VecDeque;

use crate::txn::lock::{Claim, Owner, is_compatible};
use crate::txn::lock_key::LockKey;
use crate::txn::wanted::{KeysBetween, Wanted};

/// The name of a range that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeId(u64);

#[derive(Debug)]
struct Held {
    id: RangeId,
    claim: Claim,
    span: KeysBetween,
}

/// One in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) claim: Claim,
    pub(crate) wanted: Wanted,
    /// Whom it waits for, as was found when that was looked at last.
    blockers: Vec<Owner>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RangeLocks {
    held: Vec<Held>,
    queue: VecDeque<Waiter>,
    next_id: u64,
}

impl RangeLocks {
    /// How many hold a range or stand in the queue.
    pub(crate) fn count(&self) -> usize {
        self.held.len() + self.queue.len()
    }

    /// Whether anyone waits.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How many wait for a range.
    pub(crate) fn wanted_ranges(&self) -> usize {
        let ranges = self.queue.iter();
        ranges
            .filter(|waiter| matches!(waiter.wanted, Wanted::Range(_)))
            .count()
    }

    /// Whether a range that somebody waits for has `key`.
    pub(crate) fn concerns(&self, key: &LockKey) -> bool {
        self.queue.iter().any(|waiter| match &waiter.wanted {
            Wanted::Range(span) => span.holds(key.family, &key.key),
            Wanted::Key(_) => false,
        })
    }

    /// Whether the owner holds a range with all that it wants, as strongly.
    pub(crate) fn covers(&self, claim: Claim, wanted: &Wanted) -> bool {
        self.held.iter().any(|held| {
            let all = match wanted {
                Wanted::Key(key) => held.span.holds(key.family, &key.key),
                Wanted::Range(span) => held.span.covers(span),
            };
            all && held.claim.owner == claim.owner && held.claim.mode >= claim.mode
        })
    }

    /// Those whom a newcomer would wait for here.
    pub(crate) fn blockers(&self, claim: Claim, wanted: &Wanted) -> Vec<Owner> {
        self.blockers_before(self.queue.len(), claim, wanted)
    }

    /// The holders, and those in front of `place` in the queue, whom `claim` waits for.
    fn blockers_before(&self, place: usize, claim: Claim, wanted: &Wanted) -> Vec<Owner> {
        let is_against = |other: Claim| other.owner != claim.owner && !is_compatible(other, claim);
        let holds = |held: &&Held| {
            let meets = match wanted {
                Wanted::Key(key) => held.span.holds(key.family, &key.key),
                Wanted::Range(span) => held.span.meets(span),
            };
            meets && is_against(held.claim)
        };
        let stands_in_front = |waiter: &&Waiter| {
            is_against(waiter.claim)
                && waiter.wanted.meets(wanted)
                && (!waiter.blockers.contains(&claim.owner)
                    || drumlin_base::bug!("queued-behind-one-that-waits-for-it"))
        };
        let holders = self.held.iter().filter(holds).map(|held| held.claim.owner);
        let queue = self.queue.iter().take(place);
        let waiters = queue.filter(stands_in_front);
        holders
            .chain(waiters.map(|waiter| waiter.claim.owner))
            .collect()
    }

    /// Puts a newcomer at the end of the queue, which waits for `blockers`.
    pub(crate) fn queue(&mut self, claim: Claim, wanted: Wanted, blockers: Vec<Owner>) {
        debug_assert!(!self.is_queued(claim.owner), "one waits for one thing");
        self.queue.push_back(Waiter {
            claim,
            wanted,
            blockers,
        });
    }

    /// Whether the owner waits here.
    pub(crate) fn is_queued(&self, owner: Owner) -> bool {
        self.queue.iter().any(|waiter| waiter.claim.owner == owner)
    }

    /// Takes the owner out of the queue; whether it was there.
    pub(crate) fn withdraw(&mut self, owner: Owner) -> bool {
        let before = self.queue.len();
        self.queue.retain(|waiter| waiter.claim.owner != owner);
        self.queue.len() < before
    }

    /// The one at `place` in the queue.
    pub(crate) fn waiter(&self, place: usize) -> Option<&Waiter> {
        self.queue.get(place)
    }

    /// Takes the one at `place` out of the queue where it waits for nobody any more; `keys` are those whom it waits for
    /// because of keys in stripes. Else notes and returns whom it waits for.
    pub(crate) fn settle(&mut self, place: usize, keys: Vec<Owner>) -> Settled {
        let Some(waiter) = self.queue.get(place) else {
            return Settled::Waits(Vec::new());
        };
        let mut blockers = self.blockers_before(place, waiter.claim, &waiter.wanted);
        blockers.extend(keys);
        match blockers.is_empty() {
            true => match self.queue.remove(place) {
                Some(waiter) => Settled::Leaves(waiter),
                None => Settled::Waits(Vec::new()),
            },
            false => {
                if let Some(waiter) = self.queue.get_mut(place) {
                    waiter.blockers.clone_from(&blockers);
                }
                Settled::Waits(blockers)
            }
        }
    }

    /// Makes the owner hold the range.
    pub(crate) fn hold(&mut self, claim: Claim, span: KeysBetween) {
        self.next_id += 1;
        let id = RangeId(self.next_id);
        self.held.push(Held { id, claim, span });
    }

    /// The range that the owner took last.
    pub(crate) fn newest_of(&self, owner: Owner) -> Option<RangeId> {
        let mut newest = self.held.iter().rev();
        newest
            .find(|held| held.claim.owner == owner)
            .map(|held| held.id)
    }

    /// Ends all that `owners` hold.
    pub(crate) fn release_all(&mut self, owners: &[Owner]) {
        self.held.retain(|held| !owners.contains(&held.claim.owner));
    }

    /// Ends a hold; whether there was one.
    pub(crate) fn release(&mut self, id: RangeId) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.id != id);
        self.held.len() < before
    }
}

/// What came of one in the queue.
#[derive(Debug)]
pub(crate) enum Settled {
    /// It waits on, for these.
    Waits(Vec<Owner>),
    /// It waits no more, and is out of the queue.
    Leaves(Waiter),
}
