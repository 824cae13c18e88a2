//! Goal: walks over deleted entries stay bounded. Method: a queue, entries put at the tail and
//! deleted at the head with a seek to the first before each deletion; the dead entries each seek
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

/// The dead entries the seek to the first walks over, which stands on `expected`.
fn seek_first(db: &Db, expected: u64) -> u64 {
    let mut iter = db.iter(ReadOptions::default());
    iter.seek_to_first();
    assert_eq!(iter.key(), expected.to_be_bytes());
    let counters = iter.counters();
    counters.tombstones + counters.range_deleted
}

/// Lets entries through the queue; the most dead entries a seek met in each quarter of the time.
fn pass_through(db: &Db, mut remove: impl FnMut(&Db, u64)) -> [u64; 4] {
    let mut worst = [0; 4];
    for tail in 0..LENGTH + PASSING {
        db.put(tail.to_be_bytes(), b"work")
            .expect("memory does not fail");
        let Some(head) = tail.checked_sub(LENGTH) else {
            continue;
        };
        let dead = seek_first(db, head);
        let quarter = &mut worst[(4 * head / PASSING) as usize];
        *quarter = dead.max(*quarter);
        remove(db, head);
        if tail % 50 == 0 {
            db.wait_for_background().expect("memory does not fail");
        }
    }
    worst
}

#[test]
fn seeking_the_head_of_a_queue_costs_the_same_after_any_time() {
    let universal = CompactionStyle::Universal(UniversalOptions::default());
    for style in [CompactionStyle::Leveled, universal] {
        let db = open(style);
        let worst = pass_through(&db, |db, head| db.delete(head.to_be_bytes()).unwrap());
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
    let worst = pass_through(&db, |db, head| {
        let (begin, end) = (head.to_be_bytes(), (head + 1).to_be_bytes());
        let options = WriteOptions::default();
        if head % 100 == 99 {
            let begin = (head - 99).to_be_bytes();
            db.delete_range_cf(&family, begin, end, &options).unwrap();
        } else {
            db.delete(begin).unwrap();
        }
    });
    assert!(worst.iter().all(|&dead| dead < 3000), "{worst:?}");
}
