//! Goal: bytes written by flushes and compactions stay within the limit that was set, and nothing else
//! waits for it. Method: a clock that only sleeping moves, and the engine's own count of bytes.

use std::sync::Arc;
use std::time::Duration;

use drumlin::{Codec, Compression, Db, Env, Options, RateLimit, Tuning};
use drumlin_base::rng::Rng;
use drumlin_fs::{Clock, ManualClock, StrictMemFileSystem};

const MIB: u64 = 1 << 20;
const KEYS: u64 = 2000;

fn open(limit: RateLimit) -> (ManualClock, Db) {
    let clock = ManualClock::new(1);
    let mut env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
    env.clock = Arc::new(clock.clone());
    let options = Options {
        // The calling thread does the work, so that only it moves the clock.
        background_threads: Some(0),
        compression: Compression::new(Codec::None),
        tuning: Tuning {
            background_rate: limit,
            write_buffer_bytes: Some(8 << 20),
            l0_trigger: 100,
            l0_slowdown: 200,
            ..Tuning::default()
        },
        env,
        ..Options::default()
    };
    let db = Db::open("/db", options).expect("memory does not fail");
    (clock, db)
}

fn ticker(db: &Db, name: &str) -> u64 {
    let tickers = db.statistics().tickers();
    let found = tickers.into_iter().find(|&(found, _)| found == name);
    found.expect("it is counted").1
}

fn background_bytes(db: &Db) -> u64 {
    ticker(db, "rocksdb.flush.write.bytes") + ticker(db, "rocksdb.compact.write.bytes")
}

/// Writes every key, flushes, does so again, and compacts all: two flushes and a compaction.
fn work(db: &Db) {
    let mut rng = Rng::new(3);
    for _ in 0..2 {
        for key in 0..KEYS {
            let mut value = [0; 1000];
            rng.fill(&mut value);
            db.put(key.to_be_bytes(), value)
                .expect("memory does not fail");
        }
        db.flush().expect("memory does not fail");
    }
    db.compact_range(db.default_family(), None, None)
        .expect("memory does not fail");
}

#[test]
fn flushes_and_compactions_write_no_faster_than_the_limit() {
    let (clock, db) = open(RateLimit::Fixed(MIB));
    work(&db);
    let bytes = background_bytes(&db);
    assert!(bytes > 3 * KEYS * 1000, "{bytes}");
    let wanted = Duration::from_secs_f64(bytes as f64 / MIB as f64);
    let took = clock.monotonic();
    // After a pause a tenth of a second is free, and there are two kinds of work.
    assert!(took + Duration::from_millis(250) > wanted, "{took:?}");
    assert!(took < wanted.mul_f64(1.05), "{took:?} of {wanted:?}");
}

#[test]
fn writers_and_readers_do_not_wait_for_the_limit() {
    let (clock, db) = open(RateLimit::Fixed(1000));
    for key in 0..KEYS {
        db.put(key.to_be_bytes(), [7; 1000]).unwrap();
        assert!(db.get(key.to_be_bytes()).unwrap().is_some());
    }
    assert_eq!(clock.monotonic(), Duration::ZERO);
}

#[test]
fn without_a_limit_no_work_waits() {
    let (clock, db) = open(RateLimit::Unlimited);
    work(&db);
    assert!(background_bytes(&db) > 3 * KEYS * 1000);
    assert_eq!(clock.monotonic(), Duration::ZERO);
}

#[test]
fn a_limit_that_tunes_itself_never_passes_its_most() {
    let (clock, db) = open(RateLimit::Auto(MIB));
    work(&db);
    let least = Duration::from_secs_f64(background_bytes(&db) as f64 / MIB as f64);
    let took = clock.monotonic();
    assert!(took + Duration::from_millis(250) > least, "{took:?}");
    // All of it is demand: the limit stays near its most.
    assert!(took < 2 * least, "{took:?} of {least:?}");
}
