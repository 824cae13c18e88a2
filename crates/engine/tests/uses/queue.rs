//! Goal: walks over deleted entries stay bounded. Method: a queue, entries put at the tail and
//! deleted at the head with a seek to it before each deletion; the dead entries each seek
//! walks over are counted, not timed.

use std::path::Path;
use std::sync::Arc;

use drumlin::{CompactionStyle, Db, Env, Options, ReadOptions, UniversalOptions, WriteOptions};
use drumlin_fs::StrictMemFileSystem;

/// Entries waiting in the queue.
const LENGTH: u64 = 200;
/// Entries that pass through it.
const PASSING: u64 = 5_000;

fn open(style: CompactionStyle) -> Db {
    let options = Options {
        memory_budget: Some(256 << 20),
        background_threads: Some(0),
        compaction_style: style,
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    };
    Db::open(Path::new("/db"), options).expect("memory does not fail")
}

/// The end at which entries leave the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Head {
    First,
    Last,
}

impl Head {
    fn key(self, number: u64) -> [u8; 8] {
        match self {
            Self::First => number.to_be_bytes(),
            Self::Last => (!number).to_be_bytes(),
        }
    }
}

/// The dead entries that the seek to the head walks over, which stands on `expected`.
fn seek_head(db: &Db, head: Head, expected: u64) -> u64 {
    let mut iter = db.iter(ReadOptions::default());
    match head {
        Head::First => iter.seek_to_first(),
        Head::Last => iter.seek_to_last(),
    }
    assert_eq!(iter.key(), head.key(expected));
    let counters = iter.counters();
    counters.tombstones + counters.range_deleted
}

/// The dead entries that seeks met: the most in each quarter of the time, and the mean.
#[derive(Debug)]
struct Met {
    worst: [u64; 4],
    mean: u64,
}

/// Lets entries through the queue.
fn pass_through(db: &Db, end: Head, mut remove: impl FnMut(&Db, u64)) -> Met {
    let (mut worst, mut sum) = ([0; 4], 0);
    for tail in 0..LENGTH + PASSING {
        db.put(end.key(tail), b"work")
            .expect("memory does not fail");
        let Some(head) = tail.checked_sub(LENGTH) else {
            continue;
        };
        let dead = seek_head(db, end, head);
        let quarter = &mut worst[(4 * head / PASSING) as usize];
        *quarter = dead.max(*quarter);
        sum += dead;
        remove(db, head);
        if tail % 50 == 0 {
            db.wait_for_background().expect("memory does not fail");
        }
    }
    Met {
        worst,
        mean: sum / PASSING,
    }
}

#[test]
fn seeking_the_head_of_a_queue_costs_the_same_after_any_time() {
    let universal = CompactionStyle::Universal(UniversalOptions::default());
    for style in [CompactionStyle::Leveled, universal] {
        let pass = |db: &Db, head: Head| {
            pass_through(db, head, |db, number| db.delete(head.key(number)).unwrap())
        };
        // Walks forward go past what those before them found dead, until the memtables are others.
        let met = pass(&open(style), Head::First);
        assert!(met.mean < 250, "{style:?} {met:?}");
        // Walks backward go over it, until the memtable is flushed for them.
        let db = open(style);
        let worst = pass(&db, Head::Last).worst;
        assert!(worst.iter().all(|&dead| dead < 3000), "{style:?} {worst:?}");
        assert!(worst[3] <= worst[1] * 3 / 2, "{style:?} {worst:?}");
        assert!(
            db.statistics().flushes.get() > 3,
            "the memtable is not full"
        );
    }
}

#[test]
fn range_deletions_are_jumped_over() {
    let db = open(CompactionStyle::Leveled);
    let family = db.default_family().clone();
    let met = pass_through(&db, Head::First, |db, head| {
        let (begin, end) = (head.to_be_bytes(), (head + 1).to_be_bytes());
        let options = WriteOptions::default();
        if head % 100 == 99 {
            let begin = (head - 99).to_be_bytes();
            db.delete_range_cf(&family, begin, end, &options).unwrap();
        } else {
            db.delete(begin).unwrap();
        }
    });
    assert!(met.mean < 250, "{met:?}");
}
