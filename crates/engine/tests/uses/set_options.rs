//! Goal: options that are set while the store runs hold from the next job or write on, all of a call or none, and the
//! OPTIONS file has them; a range's tables go whole, and nothing that they hid comes back; a paused background does
//! nothing, and while the removal of files is paused none goes. Method: small stores on a disk in memory; the errors are RocksDB's own, taken from its library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use drumlin::internals::options_file::{self, OptionsFile};
use drumlin::{
    CancelToken, Codec, CompactionFilter, CompactionStyle, Compression, Db, DeletedFiles, Env,
    ErrorKind, FifoOptions, FilterDecision, Options, Tuning, UniversalOptions, VerifyOptions,
};
use drumlin_base::Result;
use drumlin_fs::{FileSystem, JoinHandle, Spawner, StrictMemFileSystem};

const DIR: &str = "/db";

struct Place {
    files: Arc<StrictMemFileSystem>,
}

impl Place {
    fn new() -> Self {
        let files = Arc::new(StrictMemFileSystem::new());
        Self { files }
    }

    /// Nothing runs in the background but by the test's calls.
    fn options(&self) -> Options {
        Options {
            memory_budget: Some(8 << 20),
            compression: Compression::new(Codec::None),
            background_threads: Some(0),
            tuning: Tuning {
                write_buffer_bytes: Some(1 << 20),
                target_file_bytes: 8 << 10,
                blob_from_bytes: Some(usize::MAX),
                ..Tuning::default()
            },
            env: Env::system().with_files(Arc::clone(&self.files) as Arc<dyn FileSystem>),
            ..Options::default()
        }
    }

    fn stored(&self) -> OptionsFile {
        let files = &*self.files as &dyn FileSystem;
        options_file::read_newest(files, Path::new(DIR))
            .unwrap()
            .unwrap()
    }
}

fn key(at: u32) -> Vec<u8> {
    format!("key{at:05}").into_bytes()
}

/// Writes `keys` and makes a table of L0 of them.
fn table_of(db: &Db, keys: std::ops::Range<u32>, value: &[u8]) {
    for at in keys {
        db.put(key(at), value).unwrap();
    }
    db.flush().unwrap();
}

fn tables_at(db: &Db, level: usize) -> usize {
    let name = format!("rocksdb.num-files-at-level{level}");
    db.property(db.default_family(), &name)
        .unwrap()
        .parse()
        .unwrap()
}

fn set(db: &Db, options: &[(&str, &str)]) -> Result<()> {
    db.set_options(db.default_family(), options)
}

#[test]
fn mistakes_are_told_in_rocksdbs_words_and_change_nothing() {
    let place = Place::new();
    let db = Db::open(DIR, place.options()).unwrap();
    let before = place.stored();
    for (name, value, wanted) in [
        ("nonesuch", "1", "Could not find option: : nonesuch"),
        (
            "max_background_jobs",
            "3",
            "Could not find option: : max_background_jobs",
        ),
        ("num_levels", "3", "Option not changeable: num_levels"),
        (
            "table_factory",
            "PlainTable",
            "Option not changeable: table_factory",
        ),
        (
            "prefix_extractor",
            "fixed:3",
            "Option not changeable: prefix_extractor",
        ),
        (
            "write_buffer_size",
            "many",
            "Error parsing write_buffer_size:stoull",
        ),
        (
            "write_buffer_size",
            "12x",
            "Error parsing write_buffer_size:stoull",
        ),
        (
            "write_buffer_size",
            "-1",
            "Error parsing write_buffer_size:stoull",
        ),
        (
            "write_buffer_size",
            "99999999999999999999999",
            "Error parsing write_buffer_size:stoull",
        ),
        (
            "write_buffer_size",
            "0",
            "Error parsing write_buffer_size:tuning.write_buffer_bytes",
        ),
        (
            "max_write_buffer_number",
            "9876543210",
            "Error parsing max_write_buffer_number:stoi",
        ),
        (
            "level0_file_num_compaction_trigger",
            "-1",
            "Error parsing level0_file_num_compaction_trigger:",
        ),
        (
            "max_bytes_for_level_multiplier",
            "x",
            "Error parsing max_bytes_for_level_multiplier:stod",
        ),
        (
            "disable_auto_compactions",
            "yes",
            "Error parsing disable_auto_compactions:",
        ),
        ("compression", "zork", "Error parsing:: compression"),
        (
            "compaction_options_fifo",
            "{max_table_files_size=x}",
            "Error parsing max_table_files_size:stoull",
        ),
        (
            "compaction_options_universal",
            "zork",
            "Mismatched key value pair, '=' expected",
        ),
        (
            "compaction_options_universal",
            "{nope=3}",
            "Unrecognized option: compaction_options_universal.nope",
        ),
        (
            "block_based_table_factory",
            "{nope=3}",
            "Could not find option: : block_based_table_factory",
        ),
        (
            "block_based_table_factory.index_type",
            "kHashSearch",
            "Option not changeable: index_type",
        ),
        (
            "write_buffer_size.more",
            "3",
            "Could not find option: : write_buffer_size",
        ),
        (
            "last_level_temperature",
            "a\n[DBOptions]",
            "Error parsing last_level_temperature:",
        ),
    ] {
        let error = set(&db, &[("ttl", "7"), (name, value)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name}");
        assert!(
            error.to_string().starts_with(wanted),
            "{error}, not {wanted}"
        );
    }
    assert!(
        set(&db, &[])
            .unwrap_err()
            .to_string()
            .starts_with("empty input")
    );
    let error = db
        .set_db_options(&[("write_buffer_size", "1")])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "Unrecognized option: write_buffer_size");
    for (name, value, wanted) in [
        (
            "max_background_jobs",
            "2",
            "Option not changeable: max_background_jobs",
        ),
        (
            "max_background_jobs",
            "0",
            "Error parsing max_background_jobs:",
        ),
        ("memory_budget", "17", "Error parsing memory_budget:"),
        ("bytes_per_sync", "x", "Error parsing bytes_per_sync:stoull"),
    ] {
        let error = db
            .set_db_options(&[("stats_dump_period_sec", "7"), (name, value)])
            .unwrap_err();
        assert!(error.to_string().starts_with(wanted), "{error}");
    }
    assert_eq!(place.stored(), before);
}

#[test]
fn a_failing_option_leaves_those_before_it_unset() {
    let place = Place::new();
    let db = Db::open(DIR, place.options()).unwrap();
    let error = set(
        &db,
        &[("disable_auto_compactions", "true"), ("num_levels", "3")],
    );
    assert!(error.is_err());
    for at in 0..6 {
        table_of(&db, at..at + 1, b"v");
    }
    db.wait_for_background().unwrap();
    assert!(
        tables_at(&db, 0) < 4,
        "compactions still begin by themselves"
    );
}

#[test]
fn what_is_set_holds_from_the_next_job_and_stands_in_the_options_file() {
    let place = Place::new();
    let db = Db::open(DIR, place.options()).unwrap();
    set(
        &db,
        &[
            ("disable_auto_compactions", "true"),
            ("write_buffer_size", "64K"),
        ],
    )
    .unwrap();
    for at in 0..6 {
        table_of(&db, at..at + 1, b"v");
    }
    db.wait_for_background().unwrap();
    assert_eq!(tables_at(&db, 0), 6);
    for at in 0..300 {
        db.put(key(at), [b'v'; 1000]).unwrap();
    }
    db.wait_for_background().unwrap();
    assert!(
        tables_at(&db, 0) > 7,
        "memtables of 64 KiB fill up with 300 KB"
    );
    let family = place.stored().family("default").unwrap().clone();
    assert_eq!(family.options.get("write_buffer_size"), Some("65536"));
    assert_eq!(family.options.flag("disable_auto_compactions"), Some(true));
    set(&db, &[("disable_auto_compactions", "false")]).unwrap();
    db.wait_for_background().unwrap();
    assert!(tables_at(&db, 0) < 4);
    set(
        &db,
        &[
            ("block_based_table_factory.block_size", "16K"),
            ("compression", "kZSTD"),
        ],
    )
    .unwrap();
    set(
        &db,
        &[
            ("max_bytes_for_level_multiplier", "4"),
            ("enable_blob_files", "true"),
        ],
    )
    .unwrap();
    let family = place.stored().family("default").unwrap().clone();
    assert_eq!(family.table.get("block_size"), Some("16384"));
    assert_eq!(family.options.get("compression"), Some("kZSTD"));
    assert_eq!(
        family.options.get("max_bytes_for_level_multiplier"),
        Some("4.000000")
    );
    assert_eq!(
        family.options.get("write_buffer_size"),
        Some("65536"),
        "what was set before stays"
    );
    db.put(b"large", vec![7; 20_000]).unwrap();
    db.flush().unwrap();
    let blobs = |db: &Db| db.metrics().unwrap().families[0].blob_files;
    assert_eq!(blobs(&db), 1);
    set(&db, &[("min_blob_size", "30000")]).unwrap();
    db.put(b"large", vec![8; 20_000]).unwrap();
    db.flush().unwrap();
    assert_eq!(blobs(&db), 1);
    db.close().unwrap();
    let db = Db::open(DIR, place.options()).unwrap();
    let family = place.stored().family("default").unwrap().clone();
    assert_eq!(family.options.get("write_buffer_size"), Some("65536"));
    assert_eq!(db.get(b"large").unwrap().unwrap().len(), 20_000);
}

#[test]
fn options_of_a_style_reach_the_style() {
    let place = Place::new();
    let style = CompactionStyle::Fifo(FifoOptions {
        table_bytes_max: 1 << 30,
        ..FifoOptions::default()
    });
    let options = Options {
        compaction_style: style,
        ..place.options()
    };
    let db = Db::open(DIR, options).unwrap();
    for at in 0..6 {
        table_of(&db, at * 100..at * 100 + 100, &[b'v'; 500]);
    }
    db.wait_for_background().unwrap();
    assert_eq!(tables_at(&db, 0), 6);
    set(
        &db,
        &[("compaction_options_fifo", "{max_table_files_size=1K;}")],
    )
    .unwrap();
    db.wait_for_background().unwrap();
    assert!(tables_at(&db, 0) <= 1, "the oldest are dropped");
    db.close().unwrap();
    let place = Place::new();
    let style = CompactionStyle::Universal(UniversalOptions::default());
    let options = Options {
        compaction_style: style,
        ..place.options()
    };
    let db = Db::open(DIR, options).unwrap();
    set(&db, &[("compaction_options_universal.size_ratio", "9")]).unwrap();
    let stored = place.stored();
    let text = stored
        .family("default")
        .unwrap()
        .options
        .get("compaction_options_universal");
    assert!(
        text.unwrap().contains("size_ratio=9;min_merge_width=2"),
        "{text:?}"
    );
}

/// Counts the threads that are asked for.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn Spawner>,
    spawned: AtomicUsize,
}

impl Spawner for Counted {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        if name.starts_with("drumlin-") && name.ends_with(|last: char| last.is_ascii_digit()) {
            self.spawned.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.spawn(name, body)
    }
}

#[test]
fn threads_come_and_go_and_work_goes_on() {
    let place = Place::new();
    let mut options = Options {
        background_threads: Some(2),
        ..place.options()
    };
    let counted = Arc::new(Counted {
        inner: Arc::clone(&options.env.spawner),
        spawned: AtomicUsize::new(0),
    });
    options.env.spawner = Arc::clone(&counted) as Arc<dyn Spawner>;
    let db = Db::open(DIR, options).unwrap();
    let spawned = || counted.spawned.load(Ordering::Relaxed);
    assert_eq!(spawned(), 1, "beside the one for flushes");
    db.set_db_options(&[("max_background_jobs", "5"), ("max_total_wal_size", "1M")])
        .unwrap();
    assert_eq!(spawned(), 4);
    for round in 0..20 {
        let count = ["1", "3", "2"][round as usize % 3];
        db.set_db_options(&[("max_background_jobs", count)])
            .unwrap();
        table_of(&db, round * 10..round * 10 + 200, &[b'v'; 100]);
        db.wait_for_background().unwrap();
    }
    assert_eq!(
        place.stored().database.get("max_background_jobs"),
        Some("3")
    );
    assert_eq!(
        place.stored().database.get("max_total_wal_size"),
        Some("1048576")
    );
    for at in 0..390 {
        assert!(db.get(key(at)).unwrap().is_some());
    }
    let limit = db.budget().limit_bytes();
    db.set_db_options(&[("memory_budget", "32M"), ("max_open_files", "100")])
        .unwrap();
    assert_eq!((limit, db.budget().limit_bytes()), (8 << 20, 32 << 20));
    assert_eq!(
        place.stored().database.get("memory_budget"),
        None,
        "RocksDB refuses the file"
    );
    db.close().unwrap();
}

#[test]
fn whole_tables_of_a_range_go_and_nothing_else() {
    let place = Place::new();
    let db = Db::open(DIR, place.options()).unwrap();
    table_of(&db, 0..1000, &[b'v'; 100]);
    db.compact_range(db.default_family(), None, None).unwrap();
    let bounds: Vec<_> = db.live_tables(db.default_family()).unwrap();
    assert!(bounds.len() > 8, "{}", bounds.len());
    let family = db.default_family();
    // From within the second table to within the last but one.
    let (from, to) = (
        bounds[1].largest.clone(),
        bounds[bounds.len() - 2].smallest.clone(),
    );
    let deleted = db
        .delete_files_in_range(family, Some(&from), Some(&to))
        .unwrap();
    assert_eq!(deleted.tables as usize, bounds.len() - 4);
    let inner = &bounds[2..bounds.len() - 2];
    assert_eq!(
        deleted.bytes,
        inner.iter().map(|table| table.bytes).sum::<u64>()
    );
    for at in 0..1000 {
        let key = key(at);
        let gone = inner
            .iter()
            .any(|table| key >= table.smallest && key <= table.largest);
        assert_eq!(db.get(&key).unwrap().is_none(), gone, "{at}");
    }
    let again = db
        .delete_files_in_range(family, Some(&from), Some(&to))
        .unwrap();
    assert_eq!(again, DeletedFiles::default());
    db.close().unwrap();
    let db = Db::open(DIR, place.options()).unwrap();
    assert!(db.get(key(500)).unwrap().is_none());
    let all = db
        .delete_files_in_range(db.default_family(), None, None)
        .unwrap();
    assert_eq!(all.tables, 4);
    assert!(db.verify().unwrap().damaged.is_empty());
}

#[test]
fn what_a_dropped_table_hides_does_not_come_back() {
    let place = Place::new();
    let options = Options {
        tuning: Tuning {
            target_file_bytes: 1 << 20,
            level_base_bytes: Some(8 << 10),
            level_multiplier: 4,
            ..place.options().tuning
        },
        ..place.options()
    };
    let db = Db::open(DIR, options).unwrap();
    let family = db.default_family().clone();
    // In the last level one table of all keys, above it one of newer values within the range.
    table_of(&db, 0..5000, &[b'o'; 100]);
    db.compact_range(&family, None, None).unwrap();
    set(&db, &[("level0_file_num_compaction_trigger", "1")]).unwrap();
    table_of(&db, 40..60, b"new");
    db.wait_for_background().unwrap();
    let levels: Vec<usize> = (0..7).map(|level| tables_at(&db, level)).collect();
    assert!(
        levels[1..6].iter().sum::<usize>() == 1 && levels[6] == 1,
        "{levels:?}"
    );
    let within = (Some(&key(30)[..]), Some(&key(70)[..]));
    let deleted = db
        .delete_files_in_range(&family, within.0, within.1)
        .unwrap();
    assert_eq!(deleted.tables, 0);
    for at in 0..100 {
        let is_new = db.get(key(at)).unwrap().as_deref() == Some(b"new");
        assert_eq!(is_new, (40..60).contains(&at), "{at}");
    }
    // The table below goes with it, and then nothing is hidden.
    assert_eq!(
        db.delete_files_in_range(&family, None, None)
            .unwrap()
            .tables,
        2
    );
    assert!(db.get(key(50)).unwrap().is_none());
}

#[test]
fn garbage_of_dropped_tables_is_counted() {
    let place = Place::new();
    let options = Options {
        tuning: Tuning {
            blob_from_bytes: Some(100),
            target_file_bytes: 2 << 10,
            ..place.options().tuning
        },
        ..place.options()
    };
    let db = Db::open(DIR, options).unwrap();
    table_of(&db, 0..500, &[b'v'; 200]);
    db.compact_range(db.default_family(), None, None).unwrap();
    let tables = db.live_tables(db.default_family()).unwrap().len();
    let deleted = db
        .delete_files_in_range(db.default_family(), Some(&key(100)), None)
        .unwrap();
    assert!(
        deleted.tables > 2 && (deleted.tables as usize) < tables,
        "{deleted:?} of {tables}"
    );
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    assert!(db.metrics().unwrap().families[0].blob_garbage_bytes > 0 || report.blob_files == 0);
}

#[test]
fn a_paused_background_begins_nothing_and_closing_ends_the_pause() {
    let place = Place::new();
    let options = Options {
        background_threads: Some(2),
        ..place.options()
    };
    let db = Db::open(DIR, options).unwrap();
    db.pause_background().unwrap();
    db.pause_background().unwrap();
    for at in 0..10 {
        db.put(key(at), b"v").unwrap();
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(db.flush()).unwrap());
        // The flush has its memtable in line; nobody writes it.
        let waits = || db.metrics().unwrap().families[0].immutable_memtables == 1;
        while !waits() {
            std::thread::yield_now();
        }
        db.continue_background().unwrap();
        assert!(receiver.try_recv().is_err() && waits(), "one pause is left");
        db.continue_background().unwrap();
        receiver.recv().unwrap().unwrap();
    });
    assert_eq!(tables_at(&db, 0), 1);
    let error = db.continue_background().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    db.pause_background().unwrap();
    let options = drumlin::WriteOptions {
        no_wal: true,
        ..drumlin::WriteOptions::default()
    };
    db.put_cf(db.default_family(), b"unlogged", b"v", &options)
        .unwrap();
    db.close().unwrap();
    let db = Db::open(DIR, place.options()).unwrap();
    assert!(db.get(b"unlogged").unwrap().is_some());
}

#[test]
fn no_file_goes_while_removal_is_paused() {
    for threads in [0, 2] {
        let place = Place::new();
        let options = Options {
            background_threads: Some(threads),
            ..place.options()
        };
        let db = Db::open(DIR, options).unwrap();
        let error = db.continue_removal().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let names = || {
            let names = place.files.list(Path::new(DIR)).unwrap().into_iter();
            names.collect::<BTreeSet<_>>()
        };
        table_of(&db, 0..10, b"v");
        db.pause_removal().unwrap();
        db.pause_removal().unwrap();
        let mut seen = names();
        seen.remove(Path::new("000002.log")); // Nothing needs it: the next WAL may be written over it.
        for round in 0..3 {
            table_of(&db, 0..10, &[round]);
            db.compact_range(db.default_family(), None, None).unwrap();
            db.wait_for_background().unwrap();
            let now = names();
            assert!(seen.is_subset(&now), "{seen:?} {now:?}");
            seen = now;
        }
        let tables = |names: &BTreeSet<PathBuf>| {
            let is_table = |name: &&PathBuf| name.extension().is_some_and(|it| it == "sst");
            names.iter().filter(is_table).count()
        };
        db.continue_removal().unwrap();
        assert_eq!(names(), seen, "one pause is left");
        assert!(tables(&seen) >= 7);
        db.continue_removal().unwrap();
        assert_eq!(tables(&names()), 1);
        db.pause_removal().unwrap();
        table_of(&db, 0..10, b"last");
        db.compact_range(db.default_family(), None, None).unwrap();
        db.close().unwrap();
        assert_eq!(tables(&names()), 1, "closing ends a pause");
    }
}

/// Holds its compaction at the first entry until it may go on.
#[derive(Debug)]
struct Held {
    began: Mutex<Sender<()>>,
    may_go_on: Mutex<Receiver<()>>,
}

impl CompactionFilter for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn reads_blobs(&self) -> bool {
        false
    }

    fn filter(&self, _level: u32, key: &[u8], _value: &[u8]) -> FilterDecision {
        if key == b"key00000" {
            self.began.lock().unwrap().send(()).unwrap();
            self.may_go_on.lock().unwrap().recv().unwrap();
        }
        FilterDecision::Keep
    }
}

#[test]
fn a_pause_waits_for_what_runs() {
    let place = Place::new();
    let (began, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let held = Held {
        began: Mutex::new(began),
        may_go_on: Mutex::new(may_go_on),
    };
    let mut options = Options {
        background_threads: Some(2),
        ..place.options()
    };
    options.family.compaction_filter = Some(Arc::new(held));
    let db = Db::open(DIR, options).unwrap();
    table_of(&db, 0..10, b"v");
    let (sender, paused) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| db.compact_range(db.default_family(), None, None).unwrap());
        has_begun.recv().unwrap();
        scope.spawn(|| {
            sender
                .send(db.pause_background().map(|()| db.metrics()))
                .unwrap()
        });
        let early = paused.recv_timeout(Duration::from_millis(50));
        go_on.send(()).unwrap();
        assert!(early.is_err(), "a compaction runs: {early:?}");
        let metrics = paused.recv().unwrap().unwrap().unwrap();
        assert!(metrics.jobs.is_empty(), "{:?}", metrics.jobs);
        db.continue_background().unwrap();
    });
}

#[test]
fn a_scrub_that_is_cancelled_tells_what_it_found() {
    let place = Place::new();
    let db = Db::open(DIR, place.options()).unwrap();
    table_of(&db, 0..1000, &[b'v'; 100]);
    db.compact_range(db.default_family(), None, None).unwrap();
    let tables = db.verify().unwrap().tables;
    let cancel = CancelToken::new();
    let seen = Arc::new(AtomicUsize::new(0));
    let (counted, ends) = (Arc::clone(&seen), cancel.clone());
    let progress = move |so_far: drumlin::TransferProgress| {
        assert!(so_far.bytes <= so_far.bytes_total);
        if counted.fetch_add(1, Ordering::Relaxed) == 2 {
            ends.cancel();
        }
    };
    let options = VerifyOptions {
        cancel: Some(cancel),
        progress: Some(Arc::new(progress)),
    };
    let report = db.verify_with(&options).unwrap();
    assert!(report.is_cancelled && report.damaged.is_empty());
    assert_eq!((report.tables, seen.load(Ordering::Relaxed)), (3, 3));
    assert!(tables > 3);
}
