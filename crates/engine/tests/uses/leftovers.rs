//! Goal: no file stays on the disk that no version names, whatever became of the job that made it, and equal
//! keys of different bytes keep their values. Method: directories are compared with the tables' contents; jobs
//! fail at the MANIFEST, and families are dropped while a filter holds their compaction up.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use drumlin::{
    CompactionFilter, Comparator, Db, Env, FamilyOptions, FilterDecision, KeyOrder, Options,
    ReadOptions, StringAppend, Tuning,
};
use drumlin_fs::{
    CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, OpKind,
    StrictMemFileSystem,
};

const DIR: &str = "/db";

fn options(files: Arc<dyn FileSystem>) -> Options {
    Options {
        background_threads: Some(0),
        tuning: Tuning {
            blob_from_bytes: Some(50),
            ..Tuning::default()
        },
        env: Env::system().with_files(files),
        ..Options::default()
    }
}

/// Files of each kind that a job makes: tables, blob files, MANIFESTs.
fn counts(files: &dyn FileSystem) -> [usize; 3] {
    let names = files.list(Path::new(DIR)).unwrap();
    let names: Vec<String> = names
        .iter()
        .map(|name| name.display().to_string())
        .collect();
    let count = |is: &dyn Fn(&str) -> bool| names.iter().filter(|name| is(name)).count();
    [
        count(&|name| name.ends_with(".sst")),
        count(&|name| name.ends_with(".blob")),
        count(&|name| name.starts_with("MANIFEST")),
    ]
}

fn fill(db: &Db, round: u32) {
    for key in 0..40 {
        db.put(format!("key{key}"), format!("{round:060}")).unwrap();
    }
}

#[test]
fn a_file_of_somebody_else_uses_no_numbers_up() {
    let files = Arc::new(StrictMemFileSystem::new());
    let write_a_round = |round| {
        let db = Db::open(DIR, options(Arc::clone(&files) as Arc<dyn FileSystem>)).unwrap();
        fill(&db, round);
        db.flush().unwrap();
        db.close().unwrap();
    };
    write_a_round(0);
    let stray = Path::new("/db/5000000000000000000.log");
    let created = files.create(stray, CreateOptions::new(FileKind::Other));
    created.unwrap().close().unwrap();
    write_a_round(1);
    write_a_round(2);
    assert!(files.exists(stray).unwrap());
}

#[test]
fn jobs_that_fail_again_and_again_leave_nothing() {
    for (kind, op) in [
        (FileKind::Manifest, OpKind::Append),
        (FileKind::Table, OpKind::Append),
        (FileKind::Blob, OpKind::Sync),
    ] {
        let memory = StrictMemFileSystem::new();
        let faults = FaultFileSystem::over_memory(&memory);
        let db = Db::open(DIR, options(Arc::new(faults.clone()))).unwrap();
        fill(&db, 0);
        db.flush().unwrap();
        fill(&db, 1);
        let full = FaultRule::always(Fault::NoSpace).on(op).of_kind(kind);
        faults.add_rule(full);
        for _ in 0..10 {
            db.flush().unwrap_err();
        }
        faults.clear_rules();
        db.flush().unwrap();
        db.wait_for_background().unwrap();
        assert_eq!(counts(&memory), [2, 2, 1], "{kind:?} {op:?}: flushes");

        faults.add_rule(FaultRule::always(Fault::NoSpace).on(op).of_kind(kind));
        for _ in 0..10 {
            drop(db.compact_range(db.default_family(), None, None));
        }
        faults.clear_rules();
        db.compact_range(db.default_family(), None, None).unwrap();
        db.wait_for_background().unwrap();
        let [tables, _, manifests] = counts(&memory);
        assert_eq!([tables, manifests], [1, 1], "{kind:?} {op:?}: compactions");
        let mut walk = db.iter(ReadOptions::default());
        walk.seek_to_first();
        let mut rows = 0;
        while walk.valid() {
            rows += 1;
            walk.next();
        }
        assert_eq!(rows, 40);
    }
}

/// Says that a compaction has begun, and holds it up until it may go on.
struct Gate {
    begun: SyncSender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn reads_blobs(&self) -> bool {
        true
    }

    fn filter(&self, _level: u32, key: &[u8], _value: &[u8]) -> FilterDecision {
        if key == b"key0" && self.begun.try_send(()).is_ok() {
            self.go_on.lock().unwrap().recv().unwrap();
        }
        FilterDecision::Keep
    }
}

#[test]
fn what_is_compacted_for_a_family_that_is_dropped_meanwhile_goes() {
    let memory = StrictMemFileSystem::new();
    let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
    let mut options = options(files);
    options.background_threads = Some(2);
    let db = Db::open(DIR, options).unwrap();
    let before = counts(&memory);
    for _ in 0..3 {
        let (begun, was_begun) = sync_channel(1);
        let (let_go, go_on) = sync_channel(1);
        let gate = Gate {
            begun,
            go_on: Mutex::new(go_on),
        };
        let family = FamilyOptions {
            compaction_filter: Some(Arc::new(gate)),
            ..FamilyOptions::default()
        };
        let family = db.create_family("short", family).unwrap();
        for round in 0..2 {
            for key in 0..40 {
                let (key, value) = (format!("key{key}"), format!("{round:060}"));
                db.put_cf(&family, key, value, &drumlin::WriteOptions::default())
                    .unwrap();
            }
            db.flush_cf(&family).unwrap();
        }
        std::thread::scope(|scope| {
            let compaction = scope.spawn(|| db.compact_range(&family, None, None));
            was_begun.recv().unwrap();
            db.drop_family(&family).unwrap();
            let_go.send(()).unwrap();
            drop(compaction.join().unwrap());
        });
        drop(family);
        db.wait_for_background().unwrap();
        assert_eq!(counts(&memory), before);
    }
}

/// Letters of either case are the same.
struct CaseBlind;

impl Comparator for CaseBlind {
    fn name(&self) -> &str {
        "case-blind"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn equal_keys_of_other_bytes_keep_their_values_apart_through_compactions() {
    let files: Arc<dyn FileSystem> = Arc::new(StrictMemFileSystem::new());
    let mut options = options(files);
    options.family.order = KeyOrder::Custom(Arc::new(CaseBlind));
    options.family.merge_operator = Some(Arc::new(StringAppend::new(",")));
    let db = Db::open(DIR, options).unwrap();
    let (old, new) = ("1".repeat(100), "2".repeat(100));
    db.put("KEY", &old).unwrap();
    db.put("SUM", &old).unwrap();
    db.flush().unwrap();
    let snapshot = ReadOptions {
        snapshot: Some(db.snapshot()),
        ..ReadOptions::default()
    };
    db.put("key", &new).unwrap();
    db.flush().unwrap();
    db.merge_cf(
        db.default_family(),
        "sum",
        "m",
        &drumlin::WriteOptions::default(),
    )
    .unwrap();
    db.flush().unwrap();
    let check = |options: &ReadOptions, key: &str, expected: &str| {
        let found = db.get_cf(db.default_family(), key, options).unwrap();
        assert_eq!(found.as_deref(), Some(expected.as_bytes()), "{key}");
    };
    let now = ReadOptions::default();
    for _ in 0..3 {
        for key in ["KEY", "key", "Key"] {
            check(&snapshot, key, &old);
            check(&now, key, &new);
            check(&snapshot, &key.replace(['K', 'k'], "k"), &old);
        }
        for key in ["SUM", "sum"] {
            check(&snapshot, key, &old);
            check(&now, key, &format!("{old},m"));
        }
        for options in [&snapshot, &now] {
            let mut walk = db.iter(options.clone());
            walk.seek_to_first();
            let mut rows = 0;
            while walk.valid() {
                assert!(walk.value().len() >= 100);
                rows += 1;
                walk.next();
            }
            walk.status().unwrap();
            assert_eq!(rows, 2);
        }
        db.compact_range(db.default_family(), None, None).unwrap();
    }
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    drop(snapshot);
    db.compact_range(db.default_family(), None, None).unwrap();
    let sum = db.get("Sum").unwrap();
    assert_eq!(sum.as_deref(), Some(format!("{old},m").as_bytes()));
}
