//! Goal: the space that each compaction style wastes stays within its stated bound, and deleted or
//! overwritten data is dropped at last: when a snapshot is released, when data gets old. Method: a
//! small database overwritten many times, its bytes counted when the background is idle.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drumlin::{
    Codec, CompactionStyle, Compression, Db, DirectoryFormat, Env, ErrorKind, FifoOptions, Options,
    Result, Tuning, UniversalOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{JoinHandle, ManualClock, Spawner, StrictMemFileSystem, ThreadSpawner};

const MEMTABLE_BYTES: usize = 64 << 10;
const KEYS: u64 = 5000;
const VALUE_BYTES: usize = 100;

fn options(style: CompactionStyle) -> Options {
    Options {
        memory_budget: Some(64 << 20),
        background_threads: Some(0),
        compression: Compression::new(Codec::None),
        compaction_style: style,
        tuning: Tuning {
            write_buffer_bytes: Some(MEMTABLE_BYTES),
            target_file_bytes: 32 << 10,
            level_base_bytes: Some(64 << 10),
            l0_trigger: 2,
            ..Tuning::default()
        },
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    }
}

fn open(options: &Options) -> Db {
    Db::open(Path::new("/db"), options.clone()).expect("memory does not fail")
}

fn settle(db: &Db) {
    db.flush().expect("memory does not fail");
    db.wait_for_background().expect("memory does not fail");
}

fn table_bytes(db: &Db) -> u64 {
    let bytes = db.property(db.default_family(), "rocksdb.total-sst-files-size");
    bytes.expect("a known property").parse().expect("a number")
}

fn put(db: &Db, key: u64, rng: &mut Rng) {
    let value: Vec<u8> = (0..VALUE_BYTES).map(|_| rng.below(256) as u8).collect();
    db.put(key.to_be_bytes(), value)
        .expect("memory does not fail");
}

fn delete(db: &Db, key: u64) {
    db.delete(key.to_be_bytes()).expect("memory does not fail");
}

fn compact(db: &Db) {
    db.compact_range(db.default_family(), None, None)
        .expect("memory does not fail");
}

/// Overwrites the database ten times; the most table bytes at rest for each byte of live tables.
fn space_under_overwrites(style: CompactionStyle) -> f64 {
    let db = open(&options(style));
    let mut rng = Rng::new(3);
    (0..KEYS).for_each(|key| put(&db, key, &mut rng));
    compact(&db);
    let live = table_bytes(&db) as f64;
    let mut worst = 0f64;
    for _ in 0..100 {
        for _ in 0..KEYS / 10 {
            put(&db, rng.below(KEYS), &mut rng);
        }
        settle(&db);
        worst = worst.max(table_bytes(&db) as f64 / live);
    }
    worst
}

#[test]
fn leveled_wastes_an_eighth_and_its_l0() {
    let l0 = 2.0 * MEMTABLE_BYTES as f64 / (KEYS * VALUE_BYTES as u64) as f64;
    let worst = space_under_overwrites(CompactionStyle::Leveled);
    assert!(worst <= 1.25 + l0, "{worst} with {l0} in L0");
}

#[test]
fn universal_wastes_what_its_limit_says_and_its_youngest_runs() {
    for percent in [100, 30] {
        let limits = UniversalOptions {
            runs_trigger: 3,
            space_percent_max: percent,
            ..UniversalOptions::default()
        };
        let young = 3.0 * MEMTABLE_BYTES as f64 / (KEYS * VALUE_BYTES as u64) as f64;
        let worst = space_under_overwrites(CompactionStyle::Universal(limits));
        let bound = 1.0 + f64::from(percent) / 100.0 + young;
        assert!(worst <= bound, "{worst} > {bound}");
    }
}

#[test]
fn what_only_a_snapshot_kept_goes_when_it_is_let_go() {
    for style in [
        CompactionStyle::Leveled,
        CompactionStyle::Universal(UniversalOptions::default()),
    ] {
        let db = open(&options(style));
        let mut rng = Rng::new(4);
        (0..1000).for_each(|key| put(&db, key, &mut rng));
        let snapshot = db.snapshot();
        (0..900).for_each(|key| delete(&db, key));
        (900..1000).for_each(|key| put(&db, key, &mut rng));
        compact(&db);
        settle(&db);
        let kept = table_bytes(&db);
        drop(snapshot);
        settle(&db);
        let left = table_bytes(&db);
        assert!(left < kept / 4, "{style:?}: {left} of {kept}");
    }
}

#[test]
fn what_was_deleted_long_ago_goes_by_itself() {
    let clock = ManualClock::new(1_000_000);
    let mut options = options(CompactionStyle::Leveled);
    options.env.clock = Arc::new(clock.clone());
    options.tuning.age_max_seconds = Some(100);
    let db = open(&options);
    let mut rng = Rng::new(5);
    (0..500).for_each(|key| put(&db, key, &mut rng));
    compact(&db);
    (0..500).for_each(|key| delete(&db, key));
    settle(&db);
    let before = table_bytes(&db);
    clock.advance(Duration::from_secs(99));
    settle(&db);
    assert_eq!(table_bytes(&db), before);
    clock.advance(Duration::from_secs(2));
    settle(&db);
    assert_eq!(table_bytes(&db), 0);
}

#[test]
fn a_directory_goes_on_under_any_other_style() {
    let mut options = options(CompactionStyle::Leveled);
    let mut rng = Rng::new(6);
    let styles = [
        CompactionStyle::Universal(UniversalOptions::default()),
        CompactionStyle::Leveled,
        CompactionStyle::Manual,
        CompactionStyle::Auto,
    ];
    for (round, style) in (0..).zip(styles) {
        options.compaction_style = style;
        let db = open(&options);
        for key in 0..3000 {
            let value = format!("{round} {key} {}", rng.next_u64());
            let key: u64 = key;
            db.put(key.to_be_bytes(), value)
                .expect("memory does not fail");
        }
        settle(&db);
        for key in (0..3000u64).step_by(7) {
            let value = db.get(key.to_be_bytes()).expect("a sound database");
            let value = value.expect("nothing is lost");
            assert!(value.starts_with(format!("{round} {key} ").as_bytes()));
        }
        db.close().expect("memory does not fail");
    }
    options.compaction_style = CompactionStyle::Fifo(FifoOptions {
        table_bytes_max: 100_000,
        ..FifoOptions::default()
    });
    let db = open(&options);
    settle(&db);
    assert!(table_bytes(&db) <= 100_000);
}

#[test]
fn styles_that_leveldb_would_misread_are_refused_in_its_directories() {
    let mut options = options(CompactionStyle::Universal(UniversalOptions::default()));
    options.format = DirectoryFormat::LevelDb;
    let refused = Db::open(Path::new("/db"), options);
    assert!(refused.is_err_and(|error| error.kind() == ErrorKind::NotSupported));
}

/// Counts how often work that can wait gives way.
#[derive(Debug, Default)]
struct Polite(AtomicUsize);

impl Spawner for Polite {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        ThreadSpawner.spawn(name, body)
    }

    fn give_way(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        ThreadSpawner.give_way();
    }
}

#[test]
fn flushes_and_compactions_give_way_to_the_foreground_every_256_kib() {
    let polite = Arc::new(Polite::default());
    let times = || polite.0.swap(0, Ordering::Relaxed);
    let mut options = options(CompactionStyle::Leveled);
    options.tuning.write_buffer_bytes = Some(16 << 20);
    options.tuning.l0_trigger = 8;
    options.env.spawner = Arc::clone(&polite) as Arc<dyn Spawner>;
    let db = open(&options);
    for round in 0..2_u64 {
        for key in 0..4 << 10 {
            let value = [round as u8; 1 << 10];
            db.put((2 * key + round).to_be_bytes(), value)
                .expect("memory does not fail");
        }
        db.flush().expect("memory does not fail");
        let flushed = times();
        assert!((16..20).contains(&flushed), "{flushed} times in 4 MiB");
    }
    db.compact_range(db.default_family(), None, None)
        .expect("memory does not fail");
    let compacted = times();
    assert!(compacted >= 32, "{compacted} times in 8 MiB");
}
