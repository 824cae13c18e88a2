//! Goal: locks exclude each other, are granted in the order they were asked for, end with their timeout, and no wait
//! is for ever. Method: one lock under random calls, its rules checked after each; threads in the table, where the next
//! step is taken once the one before is seen to wait.

use std::sync::Mutex as StdMutex;
use std::thread;
use std::time::Duration;

use drumlin_base::ErrorKind;
use drumlin_base::rng::Rng;
use drumlin_fs::Env;

use super::lock::{Claim, Claimed, Lock, Mode, Owner};
use super::lock_key::LockKey;
use super::lock_table::{LockTable, Patience};

const PATIENT: Patience = Patience {
    timeout: Duration::MAX,
    deadlock_delay: Duration::ZERO,
};
/// Waits, and never looks for circles.
const TRUSTING: Patience = Patience {
    timeout: Duration::MAX,
    deadlock_delay: Duration::MAX,
};
const IMPATIENT: Patience = Patience {
    timeout: Duration::ZERO,
    deadlock_delay: Duration::ZERO,
};

fn table() -> LockTable {
    LockTable::new(Env::system().clock)
}

fn exclusive(owner: Owner) -> Claim {
    let mode = Mode::Exclusive;
    Claim { owner, mode }
}

fn shared(owner: Owner) -> Claim {
    let mode = Mode::Shared;
    Claim { owner, mode }
}

/// Returns once `count` owners wait in `table`.
fn wait_for_waiting(table: &LockTable, count: usize) {
    while table.waiting_count() != count {
        thread::yield_now();
    }
}

/// The owners' claims as a naive twin keeps them.
#[derive(Default)]
struct Twin {
    held: Vec<Claim>,
    queue: Vec<Claim>,
}

impl Twin {
    fn admits(&self, claim: Claim) -> bool {
        let others = self.held.iter().filter(|held| held.owner != claim.owner);
        let modes: Vec<Mode> = others.map(|held| held.mode).collect();
        modes.is_empty() || (claim.mode == Mode::Shared && !modes.contains(&Mode::Exclusive))
    }

    fn hold(&mut self, claim: Claim) {
        self.held.retain(|held| held.owner != claim.owner);
        self.held.push(claim);
    }

    /// Takes the claim where it may; whether it did.
    fn claim(&mut self, claim: Claim) -> bool {
        let held = self.held.iter().find(|held| held.owner == claim.owner);
        let upgrades = held.is_some();
        if held.is_some_and(|held| held.mode >= claim.mode) {
            return true;
        }
        if (upgrades || self.queue.is_empty()) && self.admits(claim) {
            self.hold(claim);
            return true;
        }
        let place = if upgrades { 0 } else { self.queue.len() };
        self.queue.insert(place, claim);
        false
    }

    fn grant(&mut self) -> Vec<Owner> {
        let mut granted = Vec::new();
        while !self.queue.is_empty() && self.admits(self.queue[0]) {
            let front = self.queue.remove(0);
            self.hold(front);
            granted.push(front.owner);
        }
        granted
    }
}

#[test]
fn a_lock_goes_to_those_its_naive_twin_gives_it_to() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let mut lock = Lock::default();
        let mut twin = Twin::default();
        for step in 0..60 {
            let owner = rng.below(6);
            let waits = twin.queue.iter().any(|waiter| waiter.owner == owner);
            if waits || rng.below(3) == 0 {
                if waits {
                    twin.queue.retain(|waiter| waiter.owner != owner);
                    lock.withdraw(owner);
                } else {
                    twin.held.retain(|held| held.owner != owner);
                    lock.release(owner);
                }
                assert_eq!(lock.grant(), twin.grant(), "seed {seed}, step {step}");
            } else {
                let mode = [Mode::Shared, Mode::Exclusive][rng.below(2) as usize];
                let claim = Claim { owner, mode };
                let got = lock.claim(claim) != Claimed::Queued;
                assert_eq!(got, twin.claim(claim), "seed {seed}, step {step}");
            }
            for held in &twin.held {
                assert!(lock.is_held(*held), "seed {seed}, step {step}");
            }
            let waiting: Vec<Owner> = lock.edges().iter().map(|(owner, _)| *owner).collect();
            let queue: Vec<Owner> = twin.queue.iter().map(|claim| claim.owner).collect();
            assert_eq!(waiting, queue, "seed {seed}, step {step}");
            assert!(
                lock.edges()
                    .iter()
                    .all(|(_, blockers)| !blockers.is_empty()),
                "one waits for nobody: seed {seed}, step {step}"
            );
        }
    }
}

#[test]
fn keys_are_told_apart_by_all_their_bytes() {
    let table = table();
    let mut keys = Vec::new();
    for family in 0..2 {
        for len in 0..50 {
            for last in [0, 1] {
                let mut key = vec![0; len];
                key.extend([0, last]);
                // With one hash, nothing but the key itself tells them apart.
                let hash = 7;
                let name = LockKey::new(family, &key);
                assert_eq!(*name.key, key);
                keys.push(LockKey { hash, ..name });
            }
        }
    }
    for (owner, key) in keys.iter().enumerate() {
        let claim = exclusive(owner as Owner);
        assert!(table.lock(claim, key, IMPATIENT).unwrap(), "{key:?}");
        let error = table.lock(exclusive(Owner::MAX), key, IMPATIENT);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    for (owner, key) in keys.iter().enumerate() {
        table.unlock(owner as Owner, key);
    }
    assert!(table.is_empty());
}

#[test]
fn waiters_get_the_lock_in_the_order_they_came() {
    let (table, key) = (table(), LockKey::new(0, b"k"));
    assert!(table.lock(exclusive(1), &key, PATIENT).unwrap());
    let order = StdMutex::new(Vec::new());
    thread::scope(|scope| {
        for owner in 2..6 {
            let (table, key, order) = (&table, &key, &order);
            scope.spawn(move || {
                table.lock(exclusive(owner), key, PATIENT).unwrap();
                order.lock().unwrap().push(owner);
                table.unlock(owner, key);
            });
            wait_for_waiting(table, owner as usize - 1);
        }
        table.unlock(1, &key);
    });
    assert_eq!(order.into_inner().unwrap(), [2, 3, 4, 5]);
    assert!(table.is_empty());
}

#[test]
fn a_wait_that_times_out_leaves_nothing_behind() {
    let (table, key) = (table(), LockKey::new(3, b"k"));
    table.lock(shared(1), &key, PATIENT).unwrap();
    assert!(table.lock(shared(2), &key, IMPATIENT).unwrap());
    let error = table.lock(exclusive(3), &key, IMPATIENT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("\"k\" of family 3"), "{error}");
    // An upgrade that fails keeps what was held.
    let error = table.lock(exclusive(1), &key, IMPATIENT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(!table.lock(shared(1), &key, IMPATIENT).unwrap());
    table.unlock(2, &key);
    assert!(!table.lock(exclusive(1), &key, IMPATIENT).unwrap());
    assert!(table.lock(shared(4), &key, IMPATIENT).is_err());
    table.unlock(1, &key);
    assert!(table.is_empty());
}

#[test]
fn who_closes_a_circle_gives_way_and_the_other_goes_on() {
    let table = table();
    let (a, b) = (LockKey::new(0, b"a"), LockKey::new(0, b"b"));
    table.lock(exclusive(1), &a, PATIENT).unwrap();
    table.lock(exclusive(2), &b, PATIENT).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| table.lock(exclusive(2), &a, TRUSTING));
        wait_for_waiting(&table, 1);
        let error = table.lock(exclusive(1), &b, PATIENT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Deadlock);
        table.unlock(1, &a);
        assert!(waiter.join().unwrap().unwrap());
        table.unlock(2, &a);
        table.unlock(2, &b);
    });
    let last = table.last_deadlocks();
    let numbers: Vec<u64> = last[0].iter().map(|step| step.transaction).collect();
    assert_eq!((last.len(), numbers), (1, vec![1, 2]));
    let target = |step: usize| last[0][step].target.to_string();
    assert_eq!(
        (&*target(0), &*target(1)),
        ("the key \"b\"", "the key \"a\"")
    );
    assert!(table.is_empty());
}

#[test]
fn two_that_share_and_both_want_it_alone_do_not_wait_for_ever() {
    let (table, key) = (table(), LockKey::new(0, b"k"));
    table.lock(shared(1), &key, PATIENT).unwrap();
    table.lock(shared(2), &key, PATIENT).unwrap();
    thread::scope(|scope| {
        let both = [1, 2].map(|owner| {
            let (table, key) = (&table, &key);
            scope.spawn(move || {
                let outcome = table.lock(exclusive(owner), key, PATIENT);
                table.unlock(owner, key);
                outcome.map_err(|error| error.kind())
            })
        });
        let both = both.map(|thread| thread.join().unwrap());
        let failed = both.iter().filter(|it| **it == Err(ErrorKind::Deadlock));
        assert!(failed.count() <= 1, "{both:?}");
        assert!(both.contains(&Ok(false)), "{both:?}");
    });
    assert!(table.is_empty());
}
