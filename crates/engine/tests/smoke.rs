//! Goal: the shortest path through every module. Method: real files in a temporary directory.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use drumlin::{CompactionStyle, Db, Options, ReadOptions, Tuning};

fn small() -> Options {
    Options {
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 64 << 10,
            level_base_bytes: Some(256 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

#[test]
fn what_is_put_is_got_after_flush_compaction_and_reopen() {
    let dir = std::env::temp_dir().join(format!("drumlin-smoke-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = Db::open(&dir, small()).unwrap();
    for i in 0..20_000u32 {
        db.put(format!("key{:08}", i * 7919 % 20_000), format!("value{i}"))
            .unwrap();
    }
    for i in (0..20_000u32).step_by(3) {
        db.delete(format!("key{:08}", i * 7919 % 20_000)).unwrap();
    }
    let check = |db: &Db| {
        for i in 0..20_000u32 {
            let got = db.get(format!("key{:08}", i * 7919 % 20_000)).unwrap();
            let want = (i % 3 != 0).then(|| format!("value{i}").into_bytes());
            assert_eq!(got.as_deref(), want.as_deref(), "{i}");
        }
        let mut iter = db.iter(ReadOptions::default());
        iter.seek_to_first();
        let mut count = 0;
        let mut last = Vec::new();
        while iter.valid() {
            assert!(iter.key() > last.as_slice());
            last = iter.key().to_vec();
            count += 1;
            iter.next();
        }
        iter.status().unwrap();
        assert_eq!(count, 13_333);
    };
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.compact_range(db.default_family(), None, None).unwrap();
    check(&db);
    println!("{}", db.stats_text(db.default_family()));
    db.close().unwrap();
    let db = Db::open(&dir, small()).unwrap();
    check(&db);
    assert!(db.verify().unwrap().damaged.is_empty());
    drop(db);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn keys_are_estimated_whether_tables_are_open_or_not() {
    let dir = drumlin_testkit::temp_dir();
    let options = || Options {
        compaction_style: CompactionStyle::Manual,
        ..small()
    };
    let estimate = |db: &Db| {
        let text = db.property(db.default_family(), "rocksdb.estimate-num-keys");
        text.unwrap().parse::<u64>().unwrap()
    };
    let db = Db::open(dir.path(), options()).unwrap();
    for first in [0, 5000] {
        (first..first + 5000u32).for_each(|i| db.put(format!("key{i:08}"), "value").unwrap());
        db.flush().unwrap();
    }
    (0..10u32).for_each(|i| db.delete(format!("key{i:08}")).unwrap());
    assert_eq!(estimate(&db), 9990, "deletions in the memtable");
    db.flush().unwrap();
    (10..20u32).for_each(|i| db.delete(format!("key{i:08}")).unwrap());
    assert_eq!(estimate(&db), 9980);
    db.close().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(estimate(&db), 9980, "nothing is open");
    db.close().unwrap();

    // One of two equal tables cannot be read: as many keys are taken to be in it.
    let db = Db::open(dir.path(), options()).unwrap();
    let mut tables: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "sst"))
        .collect();
    tables.sort();
    drumlin::Env::system().files.remove(&tables[0]).unwrap();
    assert!(
        (9000..=10_000).contains(&estimate(&db)),
        "{}",
        estimate(&db)
    );
}

/// A store of three tables that hold one key: the oldest in L1, the others in L0.
fn three_of_one_key(dir: &std::path::Path) -> Db {
    let options = Options {
        compaction_style: CompactionStyle::Manual,
        ..small()
    };
    let db = Db::open(dir, options).unwrap();
    db.put("key", "oldest").unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    for value in ["older", "newest"] {
        db.put("key", value).unwrap();
        db.flush().unwrap();
    }
    db
}

#[test]
fn properties_and_explanations_tell_the_levels() {
    let dir = drumlin_testkit::temp_dir();
    let db = three_of_one_key(dir.path());
    let files = |level: usize| {
        let name = format!("rocksdb.num-files-at-level{level}");
        let text = db.property(db.default_family(), &name);
        text.map(|text| text.parse::<u64>().unwrap())
    };
    let found: Vec<_> = (0..8).map(files).collect();
    let below: u64 = found.iter().skip(1).flatten().sum();
    assert_eq!((found[0], below, found[7]), (Some(2), 1, None), "{found:?}");
    let asked = |key: &str| db.explain(db.default_family(), Some(key.as_bytes()));
    assert_eq!(asked("key").matches("(its filter first)").count(), 3);
    assert_eq!(asked("kex").matches("(its filter first)").count(), 0);
}

#[test]
fn the_newest_value_is_found_after_a_repair() {
    let dir = drumlin_testkit::temp_dir();
    let db = three_of_one_key(dir.path());
    db.put("late", "in the WAL alone").unwrap();
    db.close().unwrap();
    let files = drumlin::Env::system().files;
    for name in files.list(dir.path()).unwrap() {
        if name.to_string_lossy().starts_with("MANIFEST") {
            files.remove(&dir.path().join(name)).unwrap();
        }
    }
    let report = Db::repair(dir.path(), &small()).unwrap();
    assert_eq!((report.tables, report.lost.len()), (3, 0));
    let db = Db::open(dir.path(), small()).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"newest"[..]));
    assert!(db.get("late").unwrap().is_some());
}
