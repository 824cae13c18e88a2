//! Goal: a handle to a column family, or a snapshot, of another store or of this one before it was opened again is
//! refused everywhere and does nothing; and options beyond all reason are refused by name, or serve. Method:
//! every call that takes a handle, with two stores of the same families; every number among the options at
//! its ends.

use std::path::Path;
use std::sync::Arc;

use drumlin::{
    CancelToken, ColumnFamily, CompactionStyle, Db, Env, ErrorKind, FamilyOptions, FifoOptions,
    Locking, Options, RateLimit, ReadOptions, Result, Snapshot, SstFileWriter, TableWriterOptions,
    TransactionDb, Tuning, UniversalOptions, WriteOptions,
};
use drumlin_fs::StrictMemFileSystem;

fn in_memory() -> Options {
    Options {
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    }
}

fn open(options: &Options, value: &str) -> (Db, ColumnFamily) {
    let db = Db::open_all_families("/db", options.clone()).unwrap();
    let family = match db.column_family("other") {
        Some(family) => family,
        None => db.create_family("other", FamilyOptions::default()).unwrap(),
    };
    db.put_cf(&family, b"key", value, &WriteOptions::default())
        .unwrap();
    db.put(b"key", value).unwrap();
    (db, family)
}

fn refused<T>(outcome: Result<T>) {
    let error = outcome.err().expect("a foreign handle is refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("another store"), "{error}");
}

fn all_refused(db: &Db, foreign: &ColumnFamily) {
    let (read, write) = (ReadOptions::default(), WriteOptions::default());
    refused(db.get_cf(foreign, b"key", &read));
    db.multi_get_cf(foreign, &[b"key", b"yek"], &read)
        .into_iter()
        .for_each(refused);
    let mut iter = db.iter_cf(foreign, read);
    for _ in 0..2 {
        refused(iter.status());
        iter.seek_to_first();
        assert!(!iter.valid());
        iter.seek(b"key");
        assert!(!iter.valid());
        iter.seek_to_last();
        assert!(!iter.valid());
        assert!(iter.refresh().is_err());
    }
    refused(db.put_cf(foreign, b"key", b"wrong", &write));
    refused(db.delete_cf(foreign, b"key", &write));
    refused(db.single_delete_cf(foreign, b"key", &write));
    refused(db.delete_range_cf(foreign, b"a", b"z", &write));
    refused(db.merge_cf(foreign, b"key", b"wrong", &write));
    refused(db.flush_cf(foreign));
    refused(db.compact_range(foreign, None, None));
    refused(db.compact_range_until(foreign, None, None, &CancelToken::new()));
    refused(db.recode(foreign));
    refused(db.ingest(foreign, &["/none.sst".into()], true));
    refused(db.drop_family(foreign));
    assert_eq!(db.property(foreign, "rocksdb.estimate-num-keys"), None);
    assert!(db.stats_text(foreign).contains("another store"));
    assert!(db.explain(foreign, Some(b"key")).contains("another store"));
}

fn snapshot_refused(db: &Db, foreign: &Snapshot) {
    let read = || ReadOptions {
        snapshot: Some(foreign.clone()),
        ..ReadOptions::default()
    };
    let family = db.default_family();
    refused(db.get_cf(family, b"key", &read()));
    db.multi_get_cf(family, &[b"key"], &read())
        .into_iter()
        .for_each(refused);
    let mut iter = db.iter(read());
    iter.seek_to_first();
    assert!(!iter.valid());
    refused(iter.status());
}

fn unharmed(db: &Db, family: &ColumnFamily, value: &str) {
    for family in [family, db.default_family()] {
        let found = db.get_cf(family, b"key", &ReadOptions::default()).unwrap();
        assert_eq!(found.as_deref(), Some(value.as_bytes()));
    }
    assert_eq!(db.families().len(), 2);
}

#[test]
fn handles_and_snapshots_of_another_store_are_refused() {
    let ((one, family_of_one), (other, family_of_other)) =
        (open(&in_memory(), "one"), open(&in_memory(), "other"));
    all_refused(&one, &family_of_other);
    all_refused(&one, other.default_family());
    snapshot_refused(&one, &other.snapshot());
    unharmed(&one, &family_of_one, "one");
    unharmed(&other, &family_of_other, "other");
}

#[test]
fn handles_and_snapshots_from_before_a_reopening_are_refused() {
    let options = in_memory();
    let (db, old_family) = open(&options, "before");
    let (old_default, old_snapshot) = (db.default_family().clone(), db.snapshot());
    db.close().unwrap();
    let (db, family) = open(&options, "after");
    all_refused(&db, &old_family);
    all_refused(&db, &old_default);
    snapshot_refused(&db, &old_snapshot);
    unharmed(&db, &family, "after");
    // Clones of a handle and of the store are the same store's.
    unharmed(&db.clone(), &family.clone(), "after");
}

#[test]
fn transactions_refuse_families_of_another_store() {
    let ((one, family_of_one), (other, family_of_other)) =
        (open(&in_memory(), "one"), open(&in_memory(), "other"));
    let db = TransactionDb::over(one.clone(), Locking::default()).unwrap();
    for foreign in [&family_of_other, other.default_family()] {
        refused(db.put(foreign, b"key", b"wrong"));
        refused(db.delete(foreign, b"key"));
        refused(db.delete_range(foreign, b"a", b"z"));
        refused(db.get(foreign, b"key"));
        refused(db.drop_family(foreign));
        let mut tx = db.begin();
        refused(tx.put(foreign, b"key", b"wrong"));
        refused(tx.delete(foreign, b"key"));
        refused(tx.delete_range(foreign, b"a", b"z"));
        refused(tx.get_for_update(foreign, b"key"));
        refused(tx.lock_range(foreign, None, None));
        refused(tx.iter(foreign, ReadOptions::default()));
        tx.commit().unwrap();
    }
    unharmed(&one, &family_of_one, "one");
    unharmed(&other, &family_of_other, "other");
}

/// A store with such options works, or they are refused by a name in `named`.
fn works_or_is_refused(options: &Options, named: &str, case: &str) {
    let db = match Db::open("/db", options.clone()) {
        Ok(db) => db,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{case}: {error}");
            assert!(error.to_string().contains(named), "{case}: {error}");
            return;
        }
    };
    for at in 0..300 {
        let put = db.put(format!("key{at:03}"), vec![b'v'; 10 + at]);
        if let Err(error) = put {
            // A key may be too long, and a disk may have to stay free.
            let kinds = [ErrorKind::TooLarge, ErrorKind::NoSpace];
            assert!(kinds.contains(&error.kind()), "{case}: {error}");
            return;
        }
    }
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    for at in 0..300 {
        let found = db.get(format!("key{at:03}")).unwrap();
        assert_eq!(found.map(|value| value.len()), Some(10 + at), "{case}");
    }
    db.close().unwrap();
}

type Set<T> = (&'static str, fn(&mut Options, T));

fn usizes() -> Vec<Set<usize>> {
    vec![
        ("memory_budget", |o, n| o.memory_budget = Some(n)),
        ("background_threads", |o, n| o.background_threads = Some(n)),
        ("max_open_files", |o, n| o.max_open_files = Some(n)),
        ("write_buffer_bytes", |o, n| {
            o.tuning.write_buffer_bytes = Some(n)
        }),
        ("memtables_max", |o, n| o.tuning.memtables_max = n),
        ("blob_from_bytes", |o, n| o.tuning.blob_from_bytes = Some(n)),
        ("l0_trigger", |o, n| o.tuning.l0_trigger = n),
        ("l0_slowdown", |o, n| o.tuning.l0_slowdown = n),
        ("block_bytes", |o, n| o.tuning.block_bytes = n),
        ("restart_interval", |o, n| o.tuning.restart_interval = n),
        ("key_bytes_max", |o, n| o.tuning.key_bytes_max = n),
    ]
}

fn u64s() -> Vec<Set<u64>> {
    vec![
        ("target_file_bytes", |o, n| o.tuning.target_file_bytes = n),
        ("level_base_bytes", |o, n| {
            o.tuning.level_base_bytes = Some(n)
        }),
        ("level_multiplier", |o, n| o.tuning.level_multiplier = n),
        ("age_max_seconds", |o, n| o.tuning.age_max_seconds = Some(n)),
        ("partition_above_bytes", |o, n| {
            o.tuning.partition_above_bytes = n
        }),
        ("wal_bytes_max", |o, n| o.tuning.wal_bytes_max = Some(n)),
        ("background_rate", |o, n| {
            o.tuning.background_rate = RateLimit::Fixed(n)
        }),
        ("background_rate", |o, n| {
            o.tuning.background_rate = RateLimit::Auto(n)
        }),
        ("disk_reserve_bytes", |o, n| {
            o.tuning.disk_reserve_bytes = Some(n)
        }),
        ("reuse_from_bytes", |o, n| o.tuning.reuse_from_bytes = n),
        ("shared_model_from_bytes", |o, n| {
            o.tuning.shared_model_from_bytes = n
        }),
    ]
}

fn small() -> Options {
    Options {
        tuning: Tuning {
            write_buffer_bytes: Some(16 << 10),
            ..Tuning::default()
        },
        ..in_memory()
    }
}

#[test]
fn extreme_numbers_serve_or_are_refused_by_name() {
    for (name, set) in usizes() {
        for value in [0, 1, usize::MAX / 2, usize::MAX - 1, usize::MAX] {
            let mut options = small();
            set(&mut options, value);
            works_or_is_refused(&options, name, &format!("{name} = {value}"));
        }
    }
    for (name, set) in u64s() {
        for value in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            // A wait meant to be this long is skipped.
            if name == "background_rate" && value == 1 {
                continue;
            }
            let mut options = small();
            set(&mut options, value);
            works_or_is_refused(&options, name, &format!("{name} = {value}"));
        }
    }
    for value in [
        0.0,
        -0.0,
        1e-300,
        1e300,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        let mut options = small();
        options.tuning.filter_bits = value;
        works_or_is_refused(&options, "filter_bits", &format!("filter_bits = {value}"));
    }
}

fn with_styles() -> Vec<(Options, String)> {
    let mut styles = Vec::new();
    for n in [0, 1, 2, usize::MAX - 1, usize::MAX] {
        let percent = u32::try_from(n).unwrap_or(u32::MAX);
        let usual = UniversalOptions::default();
        styles.extend([
            CompactionStyle::Universal(UniversalOptions {
                runs_trigger: n,
                ..usual
            }),
            CompactionStyle::Universal(UniversalOptions {
                merge_width_min: n,
                ..usual
            }),
            CompactionStyle::Universal(UniversalOptions {
                merge_width_max: n,
                ..usual
            }),
            CompactionStyle::Universal(UniversalOptions {
                levels_max: n,
                ..usual
            }),
            CompactionStyle::Universal(UniversalOptions {
                size_ratio_percent: percent,
                space_percent_max: percent,
                ..usual
            }),
            CompactionStyle::Fifo(FifoOptions {
                ttl_seconds: Some((n as u64).max(1 << 30)),
                merge_small: true,
                ..FifoOptions::default()
            }),
        ]);
    }
    for table_bytes_max in [0, u64::MAX] {
        styles.push(CompactionStyle::Fifo(FifoOptions {
            table_bytes_max,
            ..FifoOptions::default()
        }));
    }
    let with_style = |compaction_style| {
        let case = format!("{compaction_style:?}");
        let options = Options {
            compaction_style,
            ..small()
        };
        (options, case)
    };
    styles.into_iter().map(with_style).collect()
}

#[test]
fn extreme_styles_serve_or_are_refused_by_name() {
    for (options, case) in with_styles() {
        works_or_is_refused(&options, "compaction", &case);
    }
}

#[test]
fn what_a_family_has_of_its_own_is_checked_too() {
    let of = |tuning| FamilyOptions {
        tuning: Some(tuning),
        ..FamilyOptions::default()
    };
    let largest = Tuning {
        write_buffer_bytes: Some(usize::MAX),
        ..Tuning::default()
    };
    let rough = Tuning {
        filter_bits: 1e300,
        ..Tuning::default()
    };
    let never = FamilyOptions {
        compaction_style: Some(CompactionStyle::Universal(UniversalOptions {
            runs_trigger: 0,
            ..UniversalOptions::default()
        })),
        ..FamilyOptions::default()
    };
    let cases = [
        (of(largest), "write_buffer_bytes"),
        (of(rough), "filter_bits"),
        (never, "runs_trigger"),
    ];
    let options = in_memory();
    open(&options, "value").0.close().unwrap();
    for (family, named) in cases {
        let outcomes = [
            Db::open_families("/db", options.clone(), &[("other", family.clone())]).map(drop),
            Db::open_all_families_as("/db", options.clone(), |name, its| {
                if name == "other" {
                    *its = family.clone();
                }
            })
            .map(drop),
            Db::open_all_families("/db", options.clone())
                .and_then(|db| db.create_family("third", family.clone()).map(drop)),
        ];
        for outcome in outcomes {
            let error = outcome.expect_err(named);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains(named), "{error}");
        }
    }
    let (db, family) = open(&options, "value");
    unharmed(&db, &family, "value");
}

#[test]
fn scans_read_ahead_as_far_as_there_is_something() {
    let mut options = small();
    options.tuning.blob_from_bytes = Some(200);
    let (db, _) = open(&options, "value");
    for at in 0..300 {
        db.put(format!("key{at:03}"), vec![b'v'; 10 + at]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    db.close().unwrap();
    for readahead_bytes in [0, 1, usize::MAX / 2, usize::MAX - 1, usize::MAX] {
        let (db, _) = open(&options, "value");
        let mut iter = db.iter(ReadOptions {
            readahead_bytes,
            ..ReadOptions::default()
        });
        iter.seek(b"key000");
        for at in 0..300 {
            assert_eq!(iter.try_value().unwrap().len(), 10 + at);
            iter.next();
        }
        iter.seek_to_last();
        for at in (0..300).rev() {
            assert_eq!(iter.try_value().unwrap().len(), 10 + at);
            iter.prev();
        }
        iter.status().unwrap();
        drop(iter);
        db.close().unwrap();
    }
}

#[test]
fn external_tables_of_extreme_options_serve() {
    let options = in_memory();
    let (db, family) = open(&options, "value");
    let usual = TableWriterOptions::default;
    let mut cases = Vec::new();
    for n in [0, 1, usize::MAX] {
        cases.push(TableWriterOptions {
            block_bytes: n,
            ..usual()
        });
        cases.push(TableWriterOptions {
            restart_interval: n,
            ..usual()
        });
    }
    for (case, table) in cases.into_iter().enumerate() {
        let path = Path::new("/external.sst");
        let mut writer = SstFileWriter::create(&options.env, path, table).unwrap();
        let value = format!("value{case}");
        for at in 0..300 {
            writer
                .put(format!("key{at:03}").as_bytes(), value.as_bytes())
                .unwrap();
        }
        writer.finish().unwrap();
        db.ingest(&family, &[path.to_owned()], true).unwrap();
        for at in 0..300 {
            let key = format!("key{at:03}");
            let found = db.get_cf(&family, key, &ReadOptions::default()).unwrap();
            assert_eq!(found.as_deref(), Some(value.as_bytes()), "case {case}");
        }
    }
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
}
