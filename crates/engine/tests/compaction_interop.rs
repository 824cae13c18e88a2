//! Goal: tables cut by compaction, with range tombstones cut at their borders, read the same in
//! RocksDB. Method: tombstones kept alive by a snapshot go through every level; then `ldb` scans the
//! directory, if it is installed.

use std::path::Path;
use std::process::Command;

use drumlin::{Db, Options, ReadOptions, Tuning, WriteOptions};
use drumlin_base::rng::Rng;

fn small() -> Options {
    Options {
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 16 << 10,
            level_base_bytes: Some(64 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn key(number: u64) -> String {
    format!("key{number:05}")
}

fn scan(db: &Db, options: ReadOptions) -> Vec<String> {
    let mut iter = db.iter(options);
    let mut rows = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        rows.push(format!("{} : {}", text(iter.key()), text(iter.value())));
        iter.next();
    }
    iter.status().expect("the walk reached its end");
    rows
}

fn scan_with_rocksdb(dir: &Path) -> Option<Vec<String>> {
    let output = Command::new("ldb")
        .arg(format!("--db={}", dir.display()))
        .arg("scan")
        .output()
        .ok()?;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn range_tombstones_over_many_tables_read_the_same_in_rocksdb() {
    let dir = std::env::temp_dir().join(format!("drumlin-interop-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = Db::open(&dir, small()).unwrap();
    let family = db.default_family().clone();
    let mut rng = Rng::new(0x5eed_0300);
    let mut snapshots = Vec::new();
    for round in 0..20_000u64 {
        let number = rng.below(5000);
        db.put(key(number), format!("value{round:030}")).unwrap();
        if round % 500 == 499 {
            let (begin, end) = (key(number), key(number + 1 + rng.below(900)));
            db.delete_range_cf(
                &family,
                begin.as_bytes(),
                end.as_bytes(),
                &WriteOptions::default(),
            )
            .unwrap();
        }
        if round % 6000 == 5999 {
            snapshots.push((db.snapshot(), scan(&db, ReadOptions::default())));
        }
    }
    db.flush().unwrap();
    db.compact_range(&family, None, None).unwrap();
    let rows = scan(&db, ReadOptions::default());
    for (snapshot, expected) in &snapshots {
        let options = ReadOptions {
            snapshot: Some(snapshot.clone()),
            ..ReadOptions::default()
        };
        assert_eq!(&scan(&db, options), expected);
    }
    drop(snapshots);
    db.verify().unwrap();
    db.close().unwrap();
    assert!(rows.len() > 1000);
    if let Some(theirs) = scan_with_rocksdb(&dir) {
        assert_eq!(rows, theirs);
    }
    let db = Db::open(&dir, small()).unwrap();
    db.compact_range(&db.default_family().clone(), None, None)
        .unwrap();
    assert_eq!(scan(&db, ReadOptions::default()), rows);
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
