//! Who waits for whom, and the search for circles among them.
//!
//! Invariant: an owner has edges exactly while it waits for a lock. The lock table changes them under the mutex of the
//! lock's stripe, which is taken before the one here; so no circle is found that a release has already opened.
//!
//! Whoever finds a circle leaves it under the same mutex that it searched under: of several that search at once, one
//! gives way.

use std::collections::{BTreeMap, VecDeque};

use drumlin_base::sync::Mutex;

use crate::txn::lock::Owner;
use crate::txn::wanted::{LockTarget, Wanted};

/// Waiting owners between the one that searches and itself: a longer circle ends with a timeout.
const DEPTH_MAX: usize = 50;

/// Deadlocks kept to be looked at.
const KEPT_MAX: usize = 5;

/// One transaction of a deadlock: what it waited for, which the next one held. The last waited for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockStep {
    /// The number of the transaction.
    pub transaction: u64,
    /// The id of the family.
    pub family: u32,
    /// What it waited for.
    pub target: LockTarget,
}

#[derive(Debug, Default)]
struct Graph {
    waits: BTreeMap<Owner, Wait>,
    last: VecDeque<Vec<DeadlockStep>>,
}

#[derive(Debug)]
struct Wait {
    wanted: Wanted,
    blockers: Vec<Owner>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct WaitsFor {
    graph: Mutex<Graph>,
}

impl WaitsFor {
    /// Notes that the owners of `edges` wait for `wanted`, each for those it stands beside.
    pub(crate) fn set(&self, wanted: &Wanted, edges: Vec<(Owner, Vec<Owner>)>) {
        let mut graph = self.graph.lock();
        for (owner, blockers) in edges {
            let wanted = wanted.clone();
            graph.waits.insert(owner, Wait { wanted, blockers });
        }
    }

    /// Notes that `owners` wait no more.
    pub(crate) fn remove(&self, owners: &[Owner]) {
        let mut graph = self.graph.lock();
        for owner in owners {
            graph.waits.remove(owner);
        }
    }

    /// Those whom `owner` waits for, one by one.
    pub(crate) fn blockers_of(&self, owner: Owner) -> Vec<Owner> {
        let graph = self.graph.lock();
        let wait = graph.waits.get(&owner);
        wait.map(|wait| wait.blockers.clone()).unwrap_or_default()
    }

    /// The circle that `owner` waits in. If there is one it is noted, and `owner` waits no more.
    pub(crate) fn leave_circle(&self, owner: Owner) -> Option<Vec<DeadlockStep>> {
        let mut graph = self.graph.lock();
        let circle = graph.circle(owner)?;
        graph.waits.remove(&owner);
        if graph.last.len() == KEPT_MAX {
            graph.last.pop_front();
        }
        graph.last.push_back(circle.clone());
        Some(circle)
    }

    /// The last deadlocks, oldest first.
    pub(crate) fn last_deadlocks(&self) -> Vec<Vec<DeadlockStep>> {
        self.graph.lock().last.iter().cloned().collect()
    }

    #[cfg(test)]
    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.graph.lock().waits.len()
    }
}

impl Graph {
    /// The shortest circle through `start`, breadth first.
    fn circle(&self, start: Owner) -> Option<Vec<DeadlockStep>> {
        let mut came_from: BTreeMap<Owner, Owner> = BTreeMap::new();
        let mut front = vec![start];
        for _ in 0..DEPTH_MAX {
            let mut next = Vec::new();
            for owner in front {
                for &blocker in self
                    .waits
                    .get(&owner)
                    .map_or(&[][..], |wait| &wait.blockers)
                {
                    if blocker == start {
                        return Some(self.path(start, owner, &came_from));
                    }
                    if self.waits.contains_key(&blocker) && !came_from.contains_key(&blocker) {
                        came_from.insert(blocker, owner);
                        next.push(blocker);
                    }
                }
            }
            front = next;
        }
        None
    }

    /// The way from `start` to `last`, as `came_from` has it from its end.
    fn path(
        &self,
        start: Owner,
        last: Owner,
        came_from: &BTreeMap<Owner, Owner>,
    ) -> Vec<DeadlockStep> {
        let parents = std::iter::successors(Some(last), |owner| {
            came_from.get(owner).copied().filter(|_| *owner != start)
        });
        let mut owners: Vec<Owner> = parents.collect();
        owners.reverse();
        let step = |owner: Owner| {
            self.waits.get(&owner).map(|wait| DeadlockStep {
                transaction: owner,
                family: wait.wanted.family(),
                target: wait.wanted.told(),
            })
        };
        owners.into_iter().filter_map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::lock_key::LockKey;
    use drumlin_base::rng::Rng;

    fn wanted() -> Wanted {
        Wanted::Key(LockKey::new(0, b"k"))
    }

    /// Whether `start` is reached from itself, without a bound and without shortest ways.
    fn naive(edges: &[(Owner, Vec<Owner>)], start: Owner) -> bool {
        let mut reached = vec![start];
        let mut next = 0;
        while let Some(&owner) = reached.get(next) {
            next += 1;
            for (_, to) in edges.iter().filter(|(from, _)| *from == owner) {
                if to.contains(&start) {
                    return true;
                }
                for owner in to {
                    if !reached.contains(owner) {
                        reached.push(*owner);
                    }
                }
            }
        }
        false
    }

    #[test]
    fn circles_are_found_as_a_naive_search_finds_them() {
        let mut rng = Rng::new(7);
        let (mut found, mut none) = (0, 0);
        for _ in 0..5_000 {
            let owners = 2 + rng.below(10);
            let mut edges = Vec::new();
            for owner in (0..owners).filter(|_| rng.below(4) > 0).collect::<Vec<_>>() {
                let to = (0..1 + rng.below(2)).map(|_| rng.below(owners));
                let to: Vec<_> = to.filter(|to| *to != owner).collect();
                edges.push((owner, to));
            }
            let waits = WaitsFor::default();
            waits.set(&wanted(), edges.clone());
            for (start, _) in &edges {
                let circle = waits.leave_circle(*start);
                assert_eq!(circle.is_some(), naive(&edges, *start));
                if let Some(circle) = circle {
                    found += 1;
                    let next = circle.iter().cycle().skip(1);
                    for (step, next) in circle.iter().zip(next) {
                        let (_, to) = edges.iter().find(|(o, _)| *o == step.transaction).unwrap();
                        assert!(to.contains(&next.transaction), "an edge that is not there");
                    }
                    break; // It has left, so the edges are others now.
                }
                none += 1;
            }
        }
        assert!(found > 500 && none > 500, "{found} {none}");
    }

    #[test]
    fn the_last_five_deadlocks_are_kept() {
        let waits = WaitsFor::default();
        for round in 0..7 {
            let (a, b) = (2 * round, 2 * round + 1);
            waits.set(&wanted(), vec![(a, vec![b]), (b, vec![a])]);
            assert!(waits.leave_circle(a).is_some());
            assert!(waits.leave_circle(b).is_none(), "it is open already");
        }
        let last = waits.last_deadlocks();
        assert_eq!(last.len(), 5);
        assert_eq!(last[4][0].transaction, 12);
    }
}
