//! One lock: who holds it, and who waits for it in which order. Pure: the table has the mutex and the waiting.
//!
//! Invariants:
//! - Holders are one owner with [`Mode::Exclusive`], or any number with [`Mode::Shared`].
//! - A newcomer never overtakes one that waits. One that holds it shared and wants more waits in front of those
//!   who hold nothing: they wait for it anyhow.

use std::collections::VecDeque;

/// Whoever holds locks: a transaction.
pub(crate) type Owner = u64;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Beside others that hold it so.
    Shared,
    /// Alone.
    Exclusive,
}

/// One owner's wish or hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The owner holds it for the first time.
    Taken,
    /// The owner held it already, in this mode now or in a stronger one.
    Held,
    /// The owner waits for it.
    Queued,
}

/// See the module. The default is a lock that nobody holds.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    /// One of the holders: nearly always there is one at most, for whom nothing is allocated.
    holder: Option<Claim>,
    /// None until there is one.
    others: Option<Box<Others>>,
}

/// Who wants a lock beside the first that holds it.
#[derive(Debug, Default)]
struct Others {
    /// Those who hold it as well. Empty where `holder` is.
    sharers: Vec<Claim>,
    waiting: VecDeque<Claim>,
}

impl Lock {
    /// Whether nobody holds it or waits for it.
    pub(crate) fn is_free(&self) -> bool {
        self.holder.is_none() && !self.is_wanted()
    }

    fn holders(&self) -> impl Iterator<Item = &Claim> {
        let sharers = self.others.iter().flat_map(|others| &others.sharers);
        self.holder.iter().chain(sharers)
    }

    fn waiting(&self) -> impl Iterator<Item = &Claim> {
        self.others.iter().flat_map(|others| &others.waiting)
    }

    /// Those who hold it and those who wait for it.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> {
        self.holders().chain(self.waiting()).copied()
    }

    fn first_waiting(&self) -> Option<Claim> {
        self.waiting().next().copied()
    }

    /// Whether somebody waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.first_waiting().is_some()
    }

    /// Whether the claim is met.
    pub(crate) fn is_held(&self, claim: Claim) -> bool {
        let own = self.held_by(claim.owner);
        own.is_some_and(|held| held >= claim.mode)
    }

    /// How the owner holds it.
    pub(crate) fn held_by(&self, owner: Owner) -> Option<Mode> {
        let own = self.holders().find(|holder| holder.owner == owner);
        own.map(|holder| holder.mode)
    }

    /// Takes the lock, or queues.
    pub(crate) fn claim(&mut self, claim: Claim) -> Claimed {
        let held = self.held_by(claim.owner);
        if held.is_some_and(|held| held >= claim.mode) {
            return Claimed::Held;
        }
        let may_take =
            held.is_some() || !self.is_wanted() || drumlin_base::bug!("newcomer-overtakes-waiters");
        if may_take && self.admits(claim) {
            self.hold(claim);
            return match held {
                Some(_) => Claimed::Held,
                None => Claimed::Taken,
            };
        }
        let waiting = &mut self.others.get_or_insert_default().waiting;
        match held {
            Some(_) => waiting.push_front(claim),
            None => waiting.push_back(claim),
        }
        Claimed::Queued
    }

    /// Whether the holders leave room for `claim`.
    fn admits(&self, claim: Claim) -> bool {
        let mut holders = self.holders();
        holders.all(|holder| holder.owner == claim.owner || is_compatible(*holder, claim))
    }

    fn hold(&mut self, claim: Claim) {
        let Some(first) = &mut self.holder else {
            self.holder = Some(claim);
            return;
        };
        let sharers = self.others.iter_mut().flat_map(|it| &mut it.sharers);
        let mut holders = std::iter::once(first).chain(sharers);
        match holders.find(|holder| holder.owner == claim.owner) {
            Some(own) => own.mode = own.mode.max(claim.mode),
            None => self.others.get_or_insert_default().sharers.push(claim),
        }
    }

    /// Ends the owner's hold; whether it had one.
    pub(crate) fn release(&mut self, owner: Owner) -> bool {
        if self.holder.is_some_and(|holder| holder.owner == owner) {
            let others = self.others.as_mut();
            self.holder = others.and_then(|others| others.sharers.pop());
            return true;
        }
        let Some(Others { sharers, .. }) = self.others.as_deref_mut() else {
            return false;
        };
        let place = sharers.iter().position(|it| it.owner == owner);
        place.map(|place| sharers.swap_remove(place)).is_some()
    }

    /// Takes the owner out of those who wait.
    pub(crate) fn withdraw(&mut self, owner: Owner) {
        if let Some(others) = &mut self.others {
            others.waiting.retain(|waiter| waiter.owner != owner);
        }
    }

    /// Gives the lock to those in front for whom there is room; returns who got it.
    pub(crate) fn grant(&mut self) -> Vec<Owner> {
        let mut granted = Vec::new();
        while let Some(front) = self.first_waiting()
            && (self.admits(front) || drumlin_base::bug!("lock-granted-while-held"))
        {
            if let Some(others) = &mut self.others {
                others.waiting.pop_front();
            }
            self.hold(front);
            granted.push(front.owner);
        }
        granted
    }

    /// Each that waits, with those it waits for: holders, and those in front of it, that are not compatible with it.
    pub(crate) fn edges(&self) -> Vec<(Owner, Vec<Owner>)> {
        let edges = self.waiting().enumerate().map(|(place, &waiter)| {
            let before = self.holders().chain(self.waiting().take(place));
            let blocks =
                |other: &&Claim| other.owner != waiter.owner && !is_compatible(**other, waiter);
            let blockers = before.filter(blocks).map(|other| other.owner);
            (waiter.owner, blockers.collect())
        });
        edges.collect()
    }
}

/// Whether two owners may have these beside each other.
pub(crate) fn is_compatible(a: Claim, b: Claim) -> bool {
    a.mode == Mode::Shared && b.mode == Mode::Shared
}
