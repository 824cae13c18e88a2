//! Goal: a wait for the background does not wait for a look at the clock. Method: a store with a
//! thread and a clock of the test's, in which data becomes too old again and again without anybody
//! writing; the threads look once a second by themselves, so that the rounds together tell whether
//! they were woken.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    CompactionFilter, CompactionStyle, Db, Env, FamilyOptions, FilterDecision, Options, Tuning,
};
use drumlin_fs::{ManualClock, StrictMemFileSystem};

const AGE_MAX: u64 = 3600;
const ROUNDS: u32 = 8;

/// A filter that wants to see everything again after a while, and keeps it.
struct Keep;

impl CompactionFilter for Keep {
    fn name(&self) -> &str {
        "test.Keep"
    }

    fn reads_blobs(&self) -> bool {
        true
    }

    fn filter(&self, _: u32, _: &[u8], _: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }
}

#[test]
fn what_time_made_due_is_begun_as_soon_as_somebody_waits_for_it() {
    let clock = Arc::new(ManualClock::new(1_700_000_000));
    let mut env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
    let real = Arc::clone(&env.clock);
    env.clock = Arc::clone(&clock) as _;
    let options = Options {
        background_threads: Some(1),
        memory_budget: Some(64 << 20),
        compaction_style: CompactionStyle::Leveled,
        family: FamilyOptions {
            compaction_filter: Some(Arc::new(Keep)),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            age_max_seconds: Some(AGE_MAX),
            ..Tuning::default()
        },
        env,
        ..Options::default()
    };
    let db = Db::open(Path::new("/db"), options).unwrap();
    db.put(b"key", b"value").unwrap();
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let before = db.statistics().compactions.get();
    let start = real.monotonic();
    for _ in 0..ROUNDS {
        clock.advance(Duration::from_secs(2 * AGE_MAX));
        db.wait_for_background().unwrap();
    }
    let took = real.monotonic() - start;
    assert_eq!(
        db.statistics().compactions.get() - before,
        u64::from(ROUNDS)
    );
    assert!(
        took < Duration::from_secs(u64::from(ROUNDS) / 2),
        "{took:?}"
    );
    db.close().unwrap();
}
