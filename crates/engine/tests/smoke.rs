//! Goal: the shortest path through every room. Method: real files in a temporary directory.

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
