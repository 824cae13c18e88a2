//! A moment of two families beside a writer that gives one of them a new memtable. A memtable is
//! its number here.

use std::sync::Arc;

use drumlin_base::sync::atomic::{AtomicU64, Ordering};

use crate::moment::MomentCell;

/// A memtable that was not rotated has every entry, whatever its number.
const OPEN: u64 = u64::MAX;

struct Store {
    /// The number of the memtable that readers find in each family.
    families: [AtomicU64; 2],
    moments: MomentCell<[u64; 2]>,
    published: AtomicU64,
}

impl Store {
    fn collect(&self) -> [u64; 2] {
        [0, 1].map(|family| self.families[family].load(Ordering::Acquire))
    }

    /// A view: the generations of both memtables and the sequence number.
    fn view(&self) -> ([u64; 2], u64) {
        loop {
            let moment = self.moments.load(|| self.collect());
            let seqno = self.published.load(Ordering::Acquire);
            if self.moments.is_present(&moment) {
                return (moment.of, seqno);
            }
        }
    }

    /// Gives `family` its memtable number `generation`, and writes an entry to it.
    fn rotate_and_write(&self, family: usize, generation: u64, seqno: u64) {
        self.families[family].store(generation, Ordering::Release);
        self.moments.forget();
        self.published.store(seqno, Ordering::Release);
    }
}

/// The first sequence number that memtable `generation` of a family does not have, where `last` is its last one: family
/// 0 is rotated before entry 1, family 1 before entry 2.
fn end_of(family: usize, generation: u64, last: u64) -> u64 {
    if generation == last {
        return OPEN;
    }
    2 * generation + 1 + family as u64
}

fn model(readers: usize, rotations: &'static [(usize, u64)], preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let store = Arc::new(Store {
            families: [AtomicU64::new(0), AtomicU64::new(0)],
            moments: MomentCell::default(),
            published: AtomicU64::new(0),
        });
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                let store = Arc::clone(&store);
                loom::thread::spawn(move || {
                    let (views, seqno) = store.view();
                    for (family, generation) in views.into_iter().enumerate() {
                        let end = end_of(family, generation, 1);
                        assert!(seqno < end, "family {family} lacks an entry at {seqno}");
                    }
                })
            })
            .collect();
        for &(family, seqno) in rotations {
            store.rotate_and_write(family, 1, seqno);
        }
        readers
            .into_iter()
            .for_each(|reader| reader.join().expect("it came back"));
        let (_, seqno) = store.view();
        assert_eq!(seqno, rotations[rotations.len() - 1].1);
    });
}

#[test]
fn a_moment_has_every_entry_that_is_published() {
    model(1, &[(0, 1), (1, 2)], 2);
}

#[test]
fn readers_that_collect_at_one_time_have_every_entry() {
    model(2, &[(0, 1)], 1);
}
