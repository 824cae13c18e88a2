//! Goal: RocksDB 7.8 reads a directory that keeps its past, and the past is gone once it has opened it: nothing wrong is shown of what
//! it compacted. Method: a key overwritten between moments, compacted by RocksDB.

use std::time::Duration;

use drumlin::{Db, ErrorKind, KeepHistory};
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

#[test]
fn the_past_goes_when_rocksdb_opens_the_directory() {
    let dir = temp_dir();
    let mut options = small();
    options.keep_history = Some(KeepHistory {
        age: Duration::from_secs(3600),
        every: Duration::from_secs(60),
    });
    let db = Db::open(dir.path(), options).unwrap();
    db.put(key(1), "first").unwrap();
    db.mark_moment().unwrap();
    let time = db.past_moments().last().unwrap().unix_seconds;
    db.put(key(1), "second").unwrap();
    db.flush().unwrap();
    assert!(db.snapshot_at(time).is_ok());
    db.close().unwrap();
    let db = Db::open(dir.path(), small()).unwrap();
    assert!(db.snapshot_at(time).is_ok());
    db.close().unwrap();

    let rocks = Rocks::open_default(dir.path(), "paranoid_checks=true").unwrap();
    assert_eq!(
        rocks.get("default", &key(1)).as_deref(),
        Some(&b"second"[..])
    );
    rocks.compact("default");
    drop(rocks);
    let db = Db::open(dir.path(), small()).unwrap();
    assert!(db.past_moments().is_empty());
    assert_eq!(
        db.snapshot_at(time).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(db.get(key(1)).unwrap().as_deref(), Some(&b"second"[..]));
}
