//! Goal: a memtable tells the newest range tombstone over a key as a list that is searched from end to end does,
//! at every snapshot. Method: seeded random tombstones, in order and out of it, beside a list, under four orders,
//! one of which calls different bytes equal; a writer beside readers; comparators that panic.
#![cfg(not(loom))]

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use drumlin_base::rng::Rng;
use drumlin_base::{Comparator, KeyOrder, MemoryBudget, MemoryUse, SEQNO_MAX, SeqNo, ValueKind};
use drumlin_memtable::Memtable;

/// Bytewise, but small letters are as good as capitals.
struct AnyCase;

impl Comparator for AnyCase {
    fn name(&self) -> &str {
        "test.AnyCase"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

/// Shorter keys first.
struct ShortFirst;

impl Comparator for ShortFirst {
    fn name(&self) -> &str {
        "test.ShortFirst"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

type Range = (Vec<u8>, Vec<u8>, SeqNo);

/// The naive twin.
fn naive(order: &KeyOrder, list: &[Range], key: &[u8], snapshot: SeqNo) -> SeqNo {
    let covering = list.iter().filter(|(begin, end, seqno)| {
        let within = order.compare(begin, key).is_le() && order.compare(key, end).is_lt();
        within && *seqno <= snapshot
    });
    covering.map(|(_, _, seqno)| *seqno).max().unwrap_or(0)
}

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let letter = |rng: &mut Rng| match rng.below(2) {
        0 => b'a' + rng.below(12) as u8,
        _ => b'A' + rng.below(12) as u8,
    };
    (0..1 + rng.below(2)).map(|_| letter(rng)).collect()
}

/// Asserts that the span told of `key` is true of every key of `probes` in it.
fn check_span(
    memtable: &Memtable,
    list: &[Range],
    (key, snapshot): (&[u8], SeqNo),
    probes: &[Vec<u8>],
) {
    let order = memtable.order();
    let span = memtable.covering(key, snapshot);
    let holds = |key: &[u8]| {
        span.begin
            .is_none_or(|begin| order.compare(begin, key).is_le())
            && span.end.is_none_or(|end| order.compare(key, end).is_lt())
    };
    assert!(holds(key), "{span:?} holds the key it is about");
    assert!(span.seqno == 0 || (span.begin.is_some() && span.end.is_some()));
    for probe in probes.iter().filter(|probe| holds(probe)) {
        assert_eq!(span.seqno, naive(order, list, probe, snapshot), "{span:?}");
    }
}

fn run(order: KeyOrder, seed: u64) {
    let mut rng = Rng::new(seed);
    let memtable = Memtable::new(order.clone());
    let mut list: Vec<Range> = Vec::new();
    let mut seqnos: Vec<SeqNo> = (1..=1 + rng.below(150)).collect();
    // Concurrent writers add a little out of order, or much.
    let reach = [1, 6, 150][rng.below(3) as usize];
    for at in 0..seqnos.len() {
        let other = (at + rng.below(reach) as usize).min(seqnos.len() - 1);
        seqnos.swap(at, other);
    }
    let probes: Vec<_> = (0..40).map(|_| random_key(&mut rng)).collect();
    for seqno in seqnos {
        // Every tenth or so is empty, or ends before it begins.
        let (begin, end) = (random_key(&mut rng), random_key(&mut rng));
        let is_turned = order.compare(&begin, &end).is_gt() && rng.below(5) > 0;
        let (begin, end) = if is_turned {
            (end, begin)
        } else {
            (begin, end)
        };
        memtable.add(seqno, ValueKind::RangeDeletion, &begin, &end);
        list.push((begin, end, seqno));
        for _ in 0..6 {
            let key = &probes[rng.below(40) as usize];
            let snapshot = match rng.below(3) {
                0 => SEQNO_MAX,
                _ => rng.below(160),
            };
            let want = naive(&order, &list, key, snapshot);
            assert_eq!(memtable.covering_seqno(key, snapshot), want, "seed {seed}");
            check_span(&memtable, &list, (key, snapshot), &probes);
        }
    }
    assert_eq!(memtable.range_tombstone_count(), list.len());
    let all = memtable.range_tombstones().into_iter();
    let all: Vec<Range> = all.map(|at| (at.begin, at.end, at.seqno)).collect();
    assert_eq!(all, list, "seed {seed}");
}

#[test]
fn a_memtable_covers_what_a_list_of_tombstones_covers() {
    let rounds = if cfg!(miri) { 4 } else { 400 };
    for seed in 0..rounds {
        run(
            match seed % 4 {
                0 => KeyOrder::Bytewise,
                1 => KeyOrder::ReverseBytewise,
                2 => KeyOrder::Custom(Arc::new(AnyCase)),
                _ => KeyOrder::Custom(Arc::new(ShortFirst)),
            },
            seed,
        );
    }
}

/// Asks a memtable in which number n deletes the keys n to n + 9, for what a reader at `at` sees.
fn check_window(memtable: &Memtable, number: u64, at: SeqNo) {
    // The newest whose window may hold the number.
    let newest = number.min(at);
    let want = if newest + 10 > number { newest } else { 0 };
    let key = number.to_be_bytes();
    assert_eq!(memtable.covering_seqno(&key, at), want);
    assert_eq!(memtable.covering(&key, at).seqno, want);
}

/// One deletes a window of keys that moves on, the others ask for what is published.
#[test]
fn readers_see_every_tombstone_that_was_published_and_at_snapshots_no_other() {
    let memtable = Memtable::new(KeyOrder::Bytewise);
    let published = AtomicU64::new(0);
    let last = if cfg!(miri) { 40 } else { 20_000 };
    let read = |seed| {
        let mut rng = Rng::new(seed);
        loop {
            let now = published.load(SeqCst);
            let snapshot = rng.below(now + 1);
            for at in [now, snapshot] {
                check_window(&memtable, (at + 5).saturating_sub(rng.below(20)), at);
            }
            if now == last {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seqno in 1..=last {
                let (begin, end) = (seqno.to_be_bytes(), (seqno + 10).to_be_bytes());
                memtable.add(seqno, ValueKind::RangeDeletion, &begin, &end);
                published.store(seqno, SeqCst);
            }
        });
        scope.spawn(|| read(1));
        scope.spawn(|| read(2));
    });
}

#[test]
fn many_writers_lose_no_tombstone() {
    let memtable = Memtable::new(KeyOrder::Bytewise);
    let each = if cfg!(miri) { 20 } else { 2_000 };
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let memtable = &memtable;
            scope.spawn(move || {
                for number in 0..each {
                    let seqno = 1 + number * 4 + writer;
                    let (begin, end) = (seqno.to_be_bytes(), (seqno + 1).to_be_bytes());
                    memtable.add(seqno, ValueKind::RangeDeletion, &begin, &end);
                    assert_eq!(memtable.covering_seqno(&begin, SEQNO_MAX), seqno);
                }
            });
        }
    });
    for seqno in 1..=4 * each {
        let key = seqno.to_be_bytes();
        assert_eq!(memtable.covering_seqno(&key, SEQNO_MAX), seqno);
        assert_eq!(memtable.covering_seqno(&key, seqno - 1), 0);
    }
}

#[test]
fn tombstones_and_their_index_are_charged() {
    let budget = MemoryBudget::new(1 << 30);
    let memtable = Memtable::charged(KeyOrder::Bytewise, None, Arc::clone(&budget));
    let empty = memtable.account();
    for seqno in 1..=1000u64 {
        let (begin, end) = (seqno.to_be_bytes(), (seqno + 1).to_be_bytes());
        memtable.add(seqno, ValueKind::RangeDeletion, &begin, &end);
    }
    // Two keys, a sequence number and a place in the order, each at least.
    assert!(memtable.account() - empty > 1000 * 32);
    assert_eq!(budget.used(MemoryUse::Memtables), memtable.bytes());
    drop(memtable);
    assert_eq!(budget.used(MemoryUse::Memtables), 0);
}

/// Bytewise, but the compare that brings the count to zero panics.
struct Fragile {
    left: AtomicU64,
}

impl Comparator for Fragile {
    fn name(&self) -> &str {
        "test.Fragile"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let left = self.left.load(Relaxed).saturating_sub(1);
        self.left.store(left, Relaxed);
        if left == 1 {
            // Not `panic!`, which would print a thousand times.
            resume_unwind(Box::new("the comparator's"));
        }
        a.cmp(b)
    }
}

#[test]
fn a_tombstone_whose_adding_panics_is_left_out_alone() {
    let fragile = Arc::new(Fragile {
        left: AtomicU64::new(0),
    });
    let order = KeyOrder::Custom(Arc::clone(&fragile) as _);
    let memtable = Memtable::new(order.clone());
    let mut rng = Rng::new(5);
    let (mut list, mut panics) = (Vec::new(), 0);
    for seqno in 1..=600 {
        let (begin, end) = (random_key(&mut rng), random_key(&mut rng));
        fragile.left.store(2 + rng.below(60), Relaxed);
        let add = || memtable.add(seqno, ValueKind::RangeDeletion, &begin, &end);
        let met = catch_unwind(AssertUnwindSafe(add)).is_err();
        fragile.left.store(0, Relaxed);
        match met {
            true => panics += 1,
            false => list.push((begin, end, seqno)),
        }
        let (key, at) = (random_key(&mut rng), rng.below(700));
        let want = naive(&order, &list, &key, at);
        assert_eq!(memtable.covering_seqno(&key, at), want, "seqno {seqno}");
    }
    assert!((20..580).contains(&panics), "{panics}");
    assert_eq!(memtable.range_tombstone_count(), list.len());
}
