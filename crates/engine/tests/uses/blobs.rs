//! Goal: values kept apart from the tables cost no more space than promised, are never lost and
//! never leak, whatever is overwritten, deleted, dropped, filtered, copied or repaired. Method: a
//! small database on a disk in memory whose background runs on request; after each step the
//! accounts are compared with a count over all tables (`verify`) and with the files on the disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ColumnFamily, CompactionFilter, Db, DirectoryFormat, Env, FamilyOptions, FilterDecision,
    Health, Options, ReadOptions, StringAppend, Tuning,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{
    Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, ManualClock, StrictMemFileSystem,
};

const DIR: &str = "/db";
const VALUE_BYTES: usize = 2000;
/// A blob file ends past this.
const FILE_BYTES: u64 = 4 * (32 << 10);

fn options(files: &(impl FileSystem + Clone + 'static)) -> Options {
    Options {
        memory_budget: Some(16 << 20),
        background_threads: Some(0),
        family: FamilyOptions {
            merge_operator: Some(Arc::new(StringAppend::new(","))),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 32 << 10,
            level_base_bytes: Some(8 << 10),
            level_multiplier: 4,
            blob_from_bytes: Some(1000),
            ..Tuning::default()
        },
        env: Env::system()
            .with_files(Arc::new(files.clone()))
            .with_seed(7),
        ..Options::default()
    }
}

fn open(files: &StrictMemFileSystem) -> Db {
    Db::open_all_families(DIR, options(files)).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn value(number: u64, generation: u64) -> Vec<u8> {
    let mut value = vec![0; VALUE_BYTES];
    Rng::new(number << 32 | generation).fill(&mut value);
    value
}

fn number(db: &Db, family: &ColumnFamily, property: &str) -> u64 {
    let text = db.property(family, property).unwrap();
    text.parse().unwrap()
}

fn blob_bytes(db: &Db) -> u64 {
    number(db, db.default_family(), "rocksdb.total-blob-file-size")
}

fn garbage_bytes(db: &Db) -> u64 {
    number(
        db,
        db.default_family(),
        "rocksdb.live-blob-file-garbage-size",
    )
}

fn files_on_disk(files: &StrictMemFileSystem, suffix: &str) -> usize {
    let names = files.list(Path::new(DIR)).unwrap();
    let matching = |name: &&std::path::PathBuf| name.to_string_lossy().ends_with(suffix);
    names.iter().filter(matching).count()
}

/// Accounts, references and files agree.
fn check(db: &Db, files: &StrictMemFileSystem) {
    let damaged = db.verify().unwrap().damaged;
    assert!(damaged.is_empty(), "{damaged:?}");
    let families = db.families();
    let known = families.iter();
    let known: u64 = known.map(|f| number(db, f, "rocksdb.num-blob-files")).sum();
    assert_eq!(files_on_disk(files, ".blob") as u64, known);
}

fn tickers(db: &Db, name: &str) -> u64 {
    let text = db.property(db.default_family(), "rocksdb.stats").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The promise of `version/blob_garbage.rs`, under uniform overwrites and under ones that leave half
/// of the values alone.
#[test]
fn space_stays_within_its_bound_under_overwrites() {
    const KEYS: u64 = 300;
    for hot in [KEYS, KEYS / 2, KEYS / 10] {
        let files = StrictMemFileSystem::new();
        let db = open(&files);
        let mut rng = Rng::new(hot);
        for at in 0..KEYS {
            db.put(key(at), value(at, 0)).unwrap();
        }
        let live = KEYS * (VALUE_BYTES as u64 + 41);
        // Garbage that upper levels hide: the values of the tables that are not yet compacted.
        let hidden = 5 * (64 << 10);
        let mut highest = 0;
        let mut last = vec![0; KEYS as usize];
        for generation in 1..=6 * KEYS {
            let at = rng.below(hot);
            db.put(key(at), value(at, generation)).unwrap();
            last[at as usize] = generation;
            if generation % 50 == 0 {
                db.wait_for_background().unwrap();
                let (all, garbage) = (blob_bytes(&db), garbage_bytes(&db));
                highest = highest.max(all);
                assert!(garbage * 3 <= all, "{garbage} of {all} is garbage");
                let bound = (live + hidden) * 3 / 2 + 2 * FILE_BYTES;
                assert!(all <= bound, "{hot} hot: {all} bytes, bound {bound}");
                check(&db, &files);
            }
        }
        assert!(highest > live);
        db.compact_range(db.default_family(), None, None).unwrap();
        db.wait_for_background().unwrap();
        assert!(blob_bytes(&db) <= live * 3 / 2 + FILE_BYTES);
        for (at, &generation) in (0..).zip(&last) {
            let got = db.get(key(at)).unwrap();
            assert!(got.as_deref() == Some(&value(at, generation)[..]), "{at}");
        }
        check(&db, &files);
    }
}

/// Blobs that live tables of the last level do not need any more are found by themselves.
#[test]
fn what_l0_hides_is_given_back_once_nobody_writes() {
    const KEYS: u64 = 300;
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_700_000_000));
    let mut options = options(&files);
    options.tuning.l0_trigger = 1000;
    options.tuning.level_base_bytes = Some(1 << 20);
    options.env.clock = Arc::clone(&clock) as _;
    let db = Db::open(DIR, options).unwrap();
    for at in 0..KEYS {
        db.put(key(at), value(at, 0)).unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    for at in 0..KEYS {
        db.put(key(at), value(at, 1)).unwrap();
    }
    db.flush().unwrap();
    let live = KEYS * (VALUE_BYTES as u64 + 41);
    db.wait_for_background().unwrap();
    assert_eq!(garbage_bytes(&db), 0, "nobody knows of it");
    assert!(blob_bytes(&db) >= 2 * KEYS * VALUE_BYTES as u64);
    clock.advance(Duration::from_secs(10));
    db.wait_for_background().unwrap();
    let all = blob_bytes(&db);
    assert!(all <= live * 3 / 2 + FILE_BYTES, "{all} for {live}");
    for at in 0..KEYS {
        let got = db.get(key(at)).unwrap();
        assert!(got.as_deref() == Some(&value(at, 1)[..]), "{at}");
    }
    check(&db, &files);
}

/// A large base of short values, and a little on top of it in L0.
fn base_and_l0(
    files: &(impl FileSystem + Clone + 'static),
    clock: &Arc<ManualClock>,
    overwritten: u64,
) -> Db {
    let mut options = options(files);
    options.tuning.l0_trigger = 1000;
    options.tuning.level_base_bytes = Some(4 << 20);
    options.env.clock = Arc::clone(clock) as _;
    let db = Db::open(DIR, options).unwrap();
    for at in 0..20_000u64 {
        db.put([b"short".as_slice(), &at.to_be_bytes()].concat(), [7; 60])
            .unwrap();
    }
    for at in 0..100 {
        db.put(key(at), value(at, 0)).unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    for at in 0..overwritten {
        db.put(key(at), value(at, 1)).unwrap();
    }
    db.put(b"short", b"").unwrap();
    db.put(b"shorter", b"").unwrap();
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    db
}

fn l0_tables(db: &Db) -> u64 {
    number(db, db.default_family(), "rocksdb.num-files-at-level0")
}

#[test]
fn little_that_l0_may_hide_is_no_reason_to_rewrite() {
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_700_000_000));
    let db = base_and_l0(&files, &clock, 1);
    clock.advance(Duration::from_secs(1000));
    db.wait_for_background().unwrap();
    assert_eq!(l0_tables(&db), 1);
}

#[test]
fn a_large_base_is_not_rewritten_for_few_blobs_while_there_may_be_more_writes() {
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_700_000_000));
    let db = base_and_l0(&files, &clock, 10);
    clock.advance(Duration::from_secs(20));
    db.wait_for_background().unwrap();
    assert_eq!(l0_tables(&db), 1);
    clock.advance(Duration::from_secs(60));
    db.wait_for_background().unwrap();
    assert_eq!(l0_tables(&db), 0);
    check(&db, &files);
}

#[test]
fn work_that_can_wait_tells_of_a_full_disk_and_is_tried_again_after_a_change() {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::new(Arc::new(memory.clone()));
    let clock = Arc::new(ManualClock::new(1_700_000_000));
    let db = base_and_l0(&files, &clock, 100);
    let told = || number(&db, db.default_family(), "rocksdb.background-errors");
    let before = l0_tables(&db);
    let full = FaultRule::always(Fault::NoSpace).on_changes();
    files.add_rule(full.of_kind(FileKind::Table));
    clock.advance(Duration::from_secs(1000));
    for _ in 0..3 {
        db.wait_for_background().unwrap();
        assert_eq!((told(), l0_tables(&db)), (1, before));
        assert_eq!(db.health(), Health::Healthy);
    }
    files.clear_rules();
    db.wait_for_background().unwrap();
    assert_eq!(l0_tables(&db), before, "nothing changed");
    db.put(b"short", b"again").unwrap();
    db.flush().unwrap();
    clock.advance(Duration::from_secs(1000));
    db.wait_for_background().unwrap();
    assert_eq!((told(), l0_tables(&db)), (1, 0));
    check(&db, &memory);
}

#[test]
fn who_only_reads_does_not_wait_for_work_that_is_due() {
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_700_000_000));
    base_and_l0(&files, &clock, 100).close().unwrap();
    clock.advance(Duration::from_secs(1000));
    let mut options = options(&files);
    options.env.clock = clock as _;
    let db = Db::open_read_only(DIR, options).unwrap();
    db.wait_for_background().unwrap();
    assert!(l0_tables(&db) > 0, "nothing may be written");
}

#[test]
fn values_are_not_rewritten_on_their_way_down() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    for at in 0..1000 {
        db.put(key(at * 7919 % 1000), value(at, 0)).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    let user = 1000 * VALUE_BYTES as u64;
    let compacted = tickers(&db, "rocksdb.compact.write.bytes");
    assert!(tickers(&db, "drumlin.compactions") > 1);
    assert!(compacted * 5 < user, "{compacted} of {user}");
    assert_eq!(tickers(&db, "rocksdb.blobdb.gc.num.keys.relocated"), 0);
    let written = tickers(&db, "rocksdb.blobdb.blob.file.bytes.written");
    assert!(written > user && written < user * 11 / 10);
    check(&db, &files);
}

#[test]
fn nothing_is_left_of_deleted_values_and_dropped_families() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    let other = db.create_family("other", options(&files).family).unwrap();
    for at in 0..200 {
        db.put(key(at), value(at, 0)).unwrap();
        db.put_cf(&other, key(at), value(at, 1), &Default::default())
            .unwrap();
    }
    db.flush().unwrap();
    assert!(files_on_disk(&files, ".blob") > 2);
    db.delete_range_cf(db.default_family(), key(0), key(150), &Default::default())
        .unwrap();
    for at in 150..200 {
        db.delete(key(at)).unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    check(&db, &files);
    assert_eq!(blob_bytes(&db), 0);
    let reader = db.iter_cf(&other, ReadOptions::default());
    db.drop_family(&other).unwrap();
    assert!(files_on_disk(&files, ".blob") > 0, "a reader holds them");
    drop((reader, other));
    db.flush().unwrap();
    db.put(b"a", b"b").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    assert_eq!(files_on_disk(&files, ".blob"), 0);
}

#[test]
fn readers_keep_the_files_they_read() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    for at in 0..200 {
        db.put(key(at), value(at, 0)).unwrap();
    }
    db.flush().unwrap();
    let mut walk = db.iter(ReadOptions::default());
    let snapshot = db.snapshot();
    for generation in 1..4 {
        for at in 0..200 {
            db.put(key(at), value(at, generation)).unwrap();
        }
        db.compact_range(db.default_family(), None, None).unwrap();
        check(&db, &files);
    }
    let old = ReadOptions {
        snapshot: Some(snapshot),
        ..ReadOptions::default()
    };
    walk.seek_to_first();
    for at in 0..200 {
        assert!(walk.value() == value(at, 0), "{at}");
        walk.next();
        let got = db.get_cf(db.default_family(), key(at), &old).unwrap();
        assert!(got.as_deref() == Some(&value(at, 0)[..]));
    }
    walk.status().unwrap();
    drop((walk, old));
    db.put(key(0), value(0, 9)).unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
    check(&db, &files);
    assert!(blob_bytes(&db) < 200 * 2100 * 3 / 2 + FILE_BYTES);
}

struct Tamper;

impl CompactionFilter for Tamper {
    fn name(&self) -> &str {
        "test.Tamper"
    }

    fn reads_blobs(&self) -> bool {
        true
    }

    fn filter(&self, _: u32, key: &[u8], value: &[u8]) -> FilterDecision {
        assert!(
            value.len() == VALUE_BYTES || value == b"short",
            "seen as it is"
        );
        match key.last() {
            Some(b'0') => FilterDecision::Remove,
            Some(b'1') => FilterDecision::Change(b"short".to_vec()),
            Some(b'2') => FilterDecision::Change(vec![b'x'; VALUE_BYTES]),
            _ => FilterDecision::Keep,
        }
    }
}

#[test]
fn filters_and_merges_see_the_values_and_what_they_make_is_kept_apart_by_its_size() {
    let files = StrictMemFileSystem::new();
    let mut options = options(&files);
    options.family.compaction_filter = Some(Arc::new(Tamper));
    let db = Db::open(DIR, options.clone()).unwrap();
    for at in 0..100 {
        db.put(key(at), value(at, 0)).unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    for at in 0..100 {
        let got = db.get(key(at)).unwrap();
        let want = match at % 10 {
            0 => None,
            1 => Some(b"short".to_vec()),
            2 => Some(vec![b'x'; VALUE_BYTES]),
            _ => Some(value(at, 0)),
        };
        assert!(got.as_deref() == want.as_deref(), "{at}");
    }
    check(&db, &files);
    db.close().unwrap();
    options.family.compaction_filter = None;
    let db = Db::open(DIR, options).unwrap();
    let family = db.default_family().clone();
    let write = Default::default();
    db.merge_cf(&family, key(1), value(1, 7), &write).unwrap();
    db.merge_cf(&family, key(5), b"more", &write).unwrap();
    db.compact_range(&family, None, None).unwrap();
    let joined = |parts: [&[u8]; 2]| parts.join(&b","[..]);
    let got = [db.get(key(1)).unwrap(), db.get(key(5)).unwrap()];
    assert!(got[0].as_deref() == Some(&joined([b"short", &value(1, 7)])[..]));
    assert!(got[1].as_deref() == Some(&joined([&value(5, 0), b"more"])[..]));
    check(&db, &files);
}

#[test]
fn values_move_between_tables_and_blob_files_when_the_threshold_changes() {
    let files = StrictMemFileSystem::new();
    let with = |from: usize| {
        let mut options = options(&files);
        options.tuning.blob_from_bytes = Some(from);
        Db::open(DIR, options).unwrap()
    };
    let db = with(usize::MAX);
    for at in 0..100 {
        db.put(key(at), value(at, 0)).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(blob_bytes(&db), 0);
    db.close().unwrap();
    let db = with(1000);
    db.compact_range(db.default_family(), None, None).unwrap();
    assert!(blob_bytes(&db) > 100 * VALUE_BYTES as u64, "kept apart now");
    check(&db, &files);
    db.close().unwrap();
    let db = with(usize::MAX);
    for at in (0..100).step_by(2) {
        db.put(key(at), value(at, 1)).unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
    let left = blob_bytes(&db);
    assert!(left < 50 * 2041, "garbage brought values back: {left}");
    for at in 0..100 {
        let got = db.get(key(at)).unwrap();
        assert!(got.as_deref() == Some(&value(at, 1 - at % 2)[..]));
    }
    check(&db, &files);
}

#[test]
fn a_checkpoint_and_a_copy_in_leveldbs_format_hold_the_values() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    for at in 0..100 {
        db.put(key(at), value(at, 0)).unwrap();
    }
    db.flush().unwrap();
    db.put(key(5), value(5, 1)).unwrap();
    db.checkpoint(Path::new("/copy")).unwrap();
    for at in 0..100 {
        db.put(key(at), value(at, 2)).unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    let copy = Db::open("/copy", options(&files)).unwrap();
    for at in 0..100 {
        let got = copy.get(key(at)).unwrap();
        assert!(got.as_deref() == Some(&value(at, u64::from(at == 5))[..]));
    }
    assert!(copy.verify().unwrap().damaged.is_empty());
    let leveldb = Options {
        format: DirectoryFormat::LevelDb,
        ..options(&files)
    };
    let leveldb = Db::open("/leveldb", leveldb).unwrap();
    for at in 0..100 {
        leveldb.put(key(at), value(at, 0)).unwrap();
    }
    leveldb
        .compact_range(leveldb.default_family(), None, None)
        .unwrap();
    assert_eq!(blob_bytes(&leveldb), 0);
    assert!(leveldb.get(key(3)).unwrap().as_deref() == Some(&value(3, 0)[..]));
}

fn lose_the_manifest(files: &StrictMemFileSystem) {
    for name in files.list(Path::new(DIR)).unwrap() {
        if name.to_string_lossy().starts_with("MANIFEST") {
            files.remove(&Path::new(DIR).join(name)).unwrap();
        }
    }
}

#[test]
fn repair_makes_exact_accounts_and_keeps_every_value() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    let other = db.create_family("other", options(&files).family).unwrap();
    let mut rng = Rng::new(5);
    let mut last = vec![0; 150];
    for generation in 1..400 {
        let at = rng.below(150);
        db.put(key(at), value(at, generation)).unwrap();
        db.put_cf(&other, key(at), value(at, 0), &Default::default())
            .unwrap();
        last[at as usize] = generation;
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    db.flush_cf(&other).unwrap();
    let accounts = (blob_bytes(&db), garbage_bytes(&db));
    drop(other);
    db.close().unwrap();
    lose_the_manifest(&files);
    let report = Db::repair(DIR, &options(&files)).unwrap();
    assert!(report.lost.is_empty(), "{report:?}");
    assert!(report.blob_files > 2);
    let db = open(&files);
    assert_eq!((blob_bytes(&db), garbage_bytes(&db)), accounts);
    check(&db, &files);
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
    for (at, &generation) in (0..).zip(&last).filter(|(_, generation)| **generation > 0) {
        let got = db.get(key(at)).unwrap();
        assert!(got.as_deref() == Some(&value(at, generation)[..]));
    }
    check(&db, &files);
}

#[test]
fn a_scrub_reads_every_value() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    for at in 0..100 {
        db.put(key(at), value(at, 0)).unwrap();
    }
    db.flush().unwrap();
    check(&db, &files);
    let mut names = files.list(Path::new(DIR)).unwrap();
    names.retain(|name| name.to_string_lossy().ends_with(".blob"));
    for name in names {
        let path = Path::new(DIR).join(name);
        let middle = files.info(&path).unwrap().size / 2;
        files.flip(&path, middle, 3).unwrap();
        let damaged = db.verify().unwrap().damaged;
        assert_eq!(damaged.len(), 1, "{damaged:?}");
        assert_eq!(damaged[0].0, path);
        files.flip(&path, middle, 3).unwrap();
    }
}

#[test]
fn repair_tells_of_lost_blob_files_and_refuses_tables_that_share_blobs() {
    let files = StrictMemFileSystem::new();
    let db = open(&files);
    for at in 0..100 {
        db.put(key(at), value(at, 0)).unwrap();
        db.put(format!("small{at}"), b"value").unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let names = |suffix: &str| {
        let mut names = files.list(Path::new(DIR)).unwrap();
        names.retain(|name| name.to_string_lossy().ends_with(suffix));
        names.sort();
        names
    };
    let blob = Path::new(DIR).join(&names(".blob")[0]);
    files.truncate(&blob, 100).unwrap();
    lose_the_manifest(&files);
    let report = Db::repair(DIR, &options(&files)).unwrap();
    assert_eq!(report.lost.len(), 1);
    assert_eq!(report.lost[0].0, blob);
    let db = open(&files);
    let mut missing = 0;
    for at in 0..100 {
        assert!(db.get(format!("small{at}")).unwrap().is_some());
        match db.get(key(at)) {
            Ok(got) => assert!(got.as_deref() == Some(&value(at, 0)[..])),
            Err(error) => {
                assert!(error.is_corruption(), "{error:?}");
                missing += 1;
            }
        }
    }
    assert!(missing > 0 && !db.verify().unwrap().damaged.is_empty());
    for at in 0..100 {
        db.put(key(at), value(at, 1)).unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
    check(&db, &files);
    db.close().unwrap();

    // A table that a compaction replaced is back, beside the one that replaced it.
    let table = Path::new(DIR).join(&names(".sst")[0]);
    files
        .link(&table, &Path::new(DIR).join("999999.sst"))
        .unwrap();
    lose_the_manifest(&files);
    let error = Db::repair(DIR, &options(&files)).unwrap_err();
    assert!(error.to_string().contains("999999"), "{error}");
}
