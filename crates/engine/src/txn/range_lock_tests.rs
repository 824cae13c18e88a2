//! Goal: a range excludes each key in it and each range that meets it, both ways, whatever came first; nobody overtakes
//! one that waits; waits end by grant, timeout or as deadlocks, and leave nothing behind. Method: random claims that never
//! wait beside a naive list; waiting threads step by step; threads that mark the keys they hold.

use std::ops::Range;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::{ErrorKind, KeyOrder};
use drumlin_fs::Env;

use super::lock::{Claim, Mode, Owner};
use super::lock_key::LockKey;
use super::lock_table::{LockTable, Patience};
use super::range_locks::RangeId;
use super::wanted::KeysBetween;
use crate::read::KeyInterval;

/// Far longer than any wait here, and not for ever: a waiter that nobody wakes fails its test.
const PATIENT: Patience = Patience {
    timeout: Duration::from_secs(10),
    deadlock_delay: Duration::ZERO,
};
const IMPATIENT: Patience = Patience {
    timeout: Duration::ZERO,
    deadlock_delay: Duration::ZERO,
};

fn table() -> LockTable {
    LockTable::new(Env::system().clock)
}

fn claim(owner: Owner, mode: Mode) -> Claim {
    Claim { owner, mode }
}

fn exclusive(owner: Owner) -> Claim {
    claim(owner, Mode::Exclusive)
}

fn key(name: u8) -> LockKey {
    LockKey::new(0, &[name])
}

/// From `begin` up to `end`; 0 and 255 stand for no bound.
fn span_in(order: &KeyOrder, begin: u8, end: u8) -> KeysBetween {
    let (begin, end) = match order {
        KeyOrder::ReverseBytewise => (end, begin),
        _ => (begin, end),
    };
    let bytes = |name: u8| [name];
    let (begin, end) = (bytes(begin), bytes(end));
    let bound = |name: &'_ [u8; 1]| (![0, 255].contains(&name[0])).then_some(*name);
    let (begin, end) = (bound(&begin), bound(&end));
    let range = KeyInterval {
        begin: begin.as_ref().map(|name| &name[..]),
        end: end.as_ref().map(|name| &name[..]),
    };
    KeysBetween::new(0, order, range)
}

fn span(begin: u8, end: u8) -> KeysBetween {
    span_in(&KeyOrder::Bytewise, begin, end)
}

fn wait_for_waiting(table: &LockTable, count: usize) {
    while table.waiting_count() != count {
        thread::yield_now();
    }
}

/// One lock that the naive list has: numbers of keys, from the first to the last.
struct Naive {
    claim: Claim,
    first: u8,
    last: u8,
    range: Option<RangeId>,
}

#[test]
fn locks_are_given_as_a_naive_list_gives_them() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let reversed = seed % 2 == 1;
        let order = [KeyOrder::Bytewise, KeyOrder::ReverseBytewise][usize::from(reversed)].clone();
        let table = table();
        let mut held: Vec<Naive> = Vec::new();
        for step in 0..60 {
            let mode = [Mode::Shared, Mode::Exclusive][rng.below(2) as usize];
            let claim = claim(rng.below(4), mode);
            let place = format!("seed {seed}, step {step}");
            if rng.below(4) == 0 && !held.is_empty() {
                let gone = held.swap_remove(rng.below(held.len() as u64) as usize);
                match gone.range {
                    Some(id) => table.unlock_range(id),
                    None => table.unlock(gone.claim.owner, &key(gone.first)),
                }
                continue;
            }
            let is_range = rng.below(2) == 0;
            let first = 1 + rng.below(9) as u8;
            let last = match is_range {
                true => first + rng.below(4) as u8,
                false => first,
            };
            let meets = |lock: &&Naive| lock.first <= last && first <= lock.last;
            let own = |lock: &&Naive| lock.claim.owner == claim.owner;
            let stands_against = |lock: &Naive| {
                !own(&lock) && (claim.mode == Mode::Exclusive || lock.claim.mode == Mode::Exclusive)
            };
            let admits = !held.iter().filter(meets).any(stands_against);
            let covers = |lock: &Naive| {
                let range = lock.range.is_some() || !is_range;
                range && lock.first <= first && last <= lock.last && lock.claim.mode >= claim.mode
            };
            let covered = held.iter().filter(own).any(covers);
            let taken = match is_range {
                true => {
                    // Ends are open: the range ends before the key after the last, and begins after the one before.
                    let span = match reversed {
                        false => span(first, last + 1),
                        true => span_in(&order, first - 1, last),
                    };
                    let id = table.lock_range(claim, span, IMPATIENT);
                    id.map(|id| (id, id.is_some()))
                }
                false => {
                    let taken = table.lock(claim, &key(first), IMPATIENT);
                    taken.map(|taken| (None, taken))
                }
            };
            assert_eq!(
                taken.is_ok(),
                admits || covered,
                "{place}: {:?}",
                taken.err()
            );
            let Ok((range, is_new)) = taken else {
                continue;
            };
            if is_new {
                held.push(Naive {
                    claim,
                    first,
                    last,
                    range,
                });
            } else if !covered {
                // The key was held, and is now held more strongly.
                let mut same = held.iter_mut().filter(|lock| lock.range.is_none());
                let same = same.find(|lock| lock.first == first && lock.claim.owner == claim.owner);
                same.expect("it was held before").claim.mode = claim.mode;
            }
            assert_eq!(table.waiting_count(), 0, "{place}");
        }
        for lock in held {
            match lock.range {
                Some(id) => table.unlock_range(id),
                None => table.unlock(lock.claim.owner, &key(lock.first)),
            }
        }
        assert!(table.is_empty(), "seed {seed}");
    }
}

#[test]
fn whoever_waits_for_a_range_is_not_overtaken_by_a_key_in_it() {
    let table = table();
    table.lock(exclusive(1), &key(b'k'), PATIENT).unwrap();
    let order = StdMutex::new(Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let id = table.lock_range(exclusive(2), span(b'a', b'z'), PATIENT);
            order.lock().unwrap().push(2);
            table.unlock_range(id.unwrap().unwrap());
        });
        wait_for_waiting(&table, 1);
        scope.spawn(|| {
            // Nobody holds it, but it is in the range.
            table.lock(exclusive(3), &key(b'm'), PATIENT).unwrap();
            order.lock().unwrap().push(3);
            table.unlock(3, &key(b'm'));
        });
        wait_for_waiting(&table, 2);
        // Neither waits outside.
        table.lock(exclusive(4), &key(b'z'), IMPATIENT).unwrap();
        table.unlock(4, &key(b'z'));
        // And whom the range waits for goes on in it.
        assert!(table.lock(exclusive(1), &key(b'n'), IMPATIENT).unwrap());
        let id = table.lock_range(exclusive(1), span(b'p', b'r'), IMPATIENT);
        table.unlock(1, &key(b'k'));
        table.unlock(1, &key(b'n'));
        assert_eq!(table.waiting_count(), 2, "the range is not free yet");
        table.unlock_range(id.unwrap().unwrap());
    });
    assert_eq!(order.into_inner().unwrap(), [2, 3]);
    assert!(table.is_empty());
}

#[test]
fn a_key_that_waited_for_a_range_waits_on_for_its_holder() {
    let table = table();
    let range = table.lock_range(exclusive(1), span(b'a', b'z'), PATIENT);
    let range = range.unwrap().unwrap();
    assert!(!table.lock(exclusive(1), &key(b'k'), PATIENT).unwrap());
    let order = StdMutex::new(Vec::new());
    thread::scope(|scope| {
        for owner in 2..5 {
            let (table, order) = (&table, &order);
            scope.spawn(move || {
                table.lock(exclusive(owner), &key(b'k'), PATIENT).unwrap();
                order.lock().unwrap().push(owner);
                table.unlock(owner, &key(b'k'));
            });
            wait_for_waiting(table, owner as usize - 1);
        }
        table.unlock_range(range);
    });
    assert_eq!(order.into_inner().unwrap(), [2, 3, 4]);
    assert!(table.is_empty());
}

#[test]
fn a_wait_for_a_range_that_times_out_lets_those_behind_go_on() {
    let table = table();
    table.lock(exclusive(1), &key(b'k'), PATIENT).unwrap();
    let brief = Patience {
        timeout: Duration::from_millis(50),
        deadlock_delay: Duration::MAX,
    };
    thread::scope(|scope| {
        let range = scope.spawn(|| table.lock_range(exclusive(2), span(b'a', b'z'), brief));
        wait_for_waiting(&table, 1);
        let behind = scope.spawn(|| table.lock(exclusive(3), &key(b'm'), PATIENT));
        assert!(behind.join().unwrap().unwrap());
        let error = range.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let text = error.to_string();
        assert!(text.contains("a part of the range \"a\"..\"z\""), "{text}");
    });
    table.unlock(1, &key(b'k'));
    table.unlock(3, &key(b'm'));
    assert!(table.is_empty());
}

#[test]
fn circles_through_ranges_and_keys_are_found() {
    let table = table();
    let range = table.lock_range(exclusive(1), span(b'a', b'f'), PATIENT);
    table.lock(exclusive(2), &key(b'k'), PATIENT).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let id = table.lock_range(exclusive(1), span(b'g', b'z'), PATIENT);
            let failed = id.as_ref().is_err_and(|e| e.kind() == ErrorKind::Deadlock);
            table.unlock_range(range.unwrap().unwrap());
            if let Ok(Some(id)) = id {
                table.unlock_range(id);
            }
            failed
        });
        wait_for_waiting(&table, 1);
        let taken = table.lock(exclusive(2), &key(b'c'), PATIENT);
        let failed = taken
            .as_ref()
            .is_err_and(|e| e.kind() == ErrorKind::Deadlock);
        table.unlock(2, &key(b'k'));
        if taken.is_ok() {
            table.unlock(2, &key(b'c'));
        }
        assert!(waiter.join().unwrap() != failed, "one of both gives way");
    });
    let last = table.last_deadlocks();
    let mut targets: Vec<String> = last[0].iter().map(|step| step.target.to_string()).collect();
    targets.sort();
    assert_eq!(targets, ["the key \"c\"", "the range \"g\"..\"z\""]);
    assert!(table.is_empty());
}

/// Notes that locks begin or end, and checks that they may be there: -1 while one is held alone, else how many share it.
fn mark_all(marks: &[AtomicI64], mode: Mode, begin: bool) {
    for mark in marks {
        let (step, allowed): (i64, fn(i64) -> bool) = match (mode, begin) {
            (Mode::Shared, true) => (1, |before| before >= 0),
            (Mode::Shared, false) => (-1, |before| before >= 1),
            (Mode::Exclusive, true) => (-1, |before| before == 0),
            (Mode::Exclusive, false) => (1, |before| before == -1),
        };
        let before = mark.fetch_add(step, Ordering::SeqCst);
        assert!(allowed(before), "{before} as {mode:?} begins: {begin}");
    }
}

#[test]
fn no_two_threads_hold_a_key_by_whatever_lock() {
    const KEYS: usize = 12;
    let table = table();
    let marks: [AtomicI64; KEYS] = std::array::from_fn(|_| AtomicI64::new(0));
    let taken = AtomicI64::new(0);
    let patience = Patience {
        timeout: Duration::from_millis(20),
        deadlock_delay: Duration::from_micros(50),
    };
    thread::scope(|scope| {
        for owner in 0..4 {
            let (table, marks, taken) = (&table, &marks, &taken);
            scope.spawn(move || {
                let mut rng = Rng::new(owner);
                for _ in 0..600 {
                    let mode = [Mode::Shared, Mode::Exclusive][rng.below(2) as usize];
                    let claim = claim(owner, mode);
                    let first = rng.below(KEYS as u64 - 3) as u8;
                    let mark = |range: Range<u8>, begin: bool| {
                        let range = usize::from(range.start)..usize::from(range.end);
                        mark_all(&marks[range], mode, begin);
                    };
                    // A key first and a range second: circles come about.
                    let apart = KEYS as u8 - 1;
                    let Ok(is_new) = table.lock(claim, &key(b'a' + apart), patience) else {
                        continue;
                    };
                    mark(apart..apart + 1, true);
                    let last = first + 1 + rng.below(3) as u8;
                    let range = span(b'a' + first, b'a' + last);
                    if let Ok(Some(id)) = table.lock_range(claim, range, patience) {
                        taken.fetch_add(1, Ordering::Relaxed);
                        mark(first..last.min(apart), true);
                        thread::yield_now();
                        mark(first..last.min(apart), false);
                        table.unlock_range(id);
                    }
                    let single = rng.below(KEYS as u64 - 1) as u8;
                    if table.lock(claim, &key(b'a' + single), patience).is_ok() {
                        mark(single..single + 1, true);
                        mark(single..single + 1, false);
                        table.unlock(owner, &key(b'a' + single));
                    }
                    mark(apart..apart + 1, false);
                    assert!(is_new);
                    table.unlock(owner, &key(b'a' + apart));
                }
            });
        }
    });
    assert!(taken.into_inner() > 300);
    assert!(table.is_empty());
}
