//! Goal: a comparator of the user's that panics costs the operation that met it, and nothing else.
//! Method: adds whose compares panic at any moment, each made once more; then everything is there. A
//! latch left taken would hang the test.

#![cfg(not(loom))]

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use drumlin_base::key::user_key;
use drumlin_base::rng::Rng;
use drumlin_base::{Comparator, InternalIterator, KeyOrder, SEQNO_MAX, ValueKind};
use drumlin_memtable::Memtable;

/// Bytewise, but the compare that brings the count to zero panics.
#[derive(Debug)]
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
            std::panic::resume_unwind(Box::new("the comparator's"));
        }
        a.cmp(b)
    }
}

#[test]
fn adds_that_meet_a_panicking_comparator_can_be_made_again() {
    let fragile = Arc::new(Fragile {
        left: AtomicU64::new(0),
    });
    let memtable = Arc::new(Memtable::new(KeyOrder::Custom(Arc::clone(&fragile) as _)));
    let mut rng = Rng::new(11);
    let mut keys: Vec<u32> = (0..4000).collect();
    for at in (1..keys.len()).rev() {
        // A third of them ascend, so that splits of the tail are met too.
        if at % 3 > 0 {
            keys.swap(at, rng.below(at as u64) as usize);
        }
    }
    let mut panics = 0;
    for (seqno, key) in (1..).zip(&keys) {
        let add = || memtable.add(seqno, ValueKind::Value, &key.to_be_bytes(), b"value");
        fragile.left.store(2 + rng.below(24), Relaxed);
        let met = catch_unwind(AssertUnwindSafe(add)).is_err();
        fragile.left.store(0, Relaxed);
        if met {
            panics += 1;
            add();
        }
    }
    assert!(panics > 1000, "{panics}");
    let mut walk = memtable.iter();
    walk.seek_to_first();
    for key in 0..4000u32 {
        assert_eq!(user_key(walk.key()), key.to_be_bytes());
        walk.next();
    }
    assert!(!walk.valid());
    for key in 0..4000u32 {
        let mut seen = false;
        memtable.get(&key.to_be_bytes(), SEQNO_MAX, |_, _, _| {
            seen = true;
            std::ops::ControlFlow::Break(())
        });
        assert!(seen, "{key}");
    }
}
