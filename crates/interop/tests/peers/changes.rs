//! Goal: RocksDB reads the changes that we keep, and we those that it keeps. Method: random histories with flushes; the
//! records that its `GetUpdatesSince` and our `Db::changes` give are compared one by one, in both directions, and with
//! what was written.

use std::path::Path;
use std::time::Duration;

use drumlin::internals::batch::BatchView;
use drumlin::{Db, FamilyOptions, KeepChanges, Options, WriteBatch, WriteOptions};
use drumlin_base::ValueKind;
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

/// Sequence number, family, kind, key, value.
type Record = (u64, u32, ValueKind, Vec<u8>, Vec<u8>);

const KEPT: &str = "WAL_ttl_seconds=1000000";
const TRIES: usize = 100;
const DAYS: Duration = Duration::from_secs(1_000_000);

fn options() -> Options {
    Options {
        keep_changes: Some(KeepChanges {
            age: Some(DAYS),
            bytes: None,
        }),
        ..small()
    }
}

fn records_of(seqno: u64, bytes: &[u8], into: &mut Vec<Record>) {
    let view = BatchView::new(bytes).unwrap();
    assert_eq!(view.seqno(), seqno);
    for (record, seqno) in view.iter().zip(seqno..) {
        let record = record.unwrap();
        let (key, value) = (record.key.to_vec(), record.value.to_vec());
        into.push((seqno, record.family, record.kind, key, value));
    }
}

fn ours(db: &Db, from: u64) -> Vec<Record> {
    let mut found = Vec::new();
    for batch in db.changes(from).unwrap() {
        let batch = batch.unwrap();
        if !batch.writes().is_empty() {
            records_of(batch.seqno(), batch.writes().bytes(), &mut found);
        }
    }
    found
}

/// What RocksDB reads, and the error at which it ended. Its listing of WAL files may miss one that it moves into the archive
/// meanwhile, of which it tells by an error: it is asked again.
fn theirs(db: &Rocks, from: u64) -> (Vec<Record>, Option<String>) {
    for _ in 1..TRIES {
        let (found, ended) = once_by_them(db, from);
        if ended.is_none() {
            return (found, ended);
        }
    }
    once_by_them(db, from)
}

fn once_by_them(db: &Rocks, from: u64) -> (Vec<Record>, Option<String>) {
    let mut found = Vec::new();
    let (batches, ended) = db.updates_since(from).unwrap();
    for (seqno, bytes) in batches {
        records_of(seqno, &bytes, &mut found);
    }
    (found, ended)
}

/// Writes with ours; what was written.
fn write_ours(db: &Db, rng: &mut Rng, rounds: u64) -> Vec<Record> {
    let mut written = Vec::new();
    for round in 0..rounds {
        let mut batch = WriteBatch::new();
        let seqno = db.latest_seqno() + 1;
        for at in 0..1 + rng.below(5) {
            let key = key(rng.below(100) as usize);
            let value = value(round as usize, at as usize);
            match rng.below(4) {
                0 => batch.delete(&key).unwrap(),
                1 => batch.put_log_data(b"a note").unwrap(),
                _ => batch.put(&key, &value).unwrap(),
            }
        }
        db.write(batch.clone(), &WriteOptions::default()).unwrap();
        batch.set_seqno(seqno);
        records_of(seqno, batch.bytes(), &mut written);
        if rng.one_in(10) {
            db.flush().unwrap();
        }
    }
    written
}

fn archived(dir: &Path) -> usize {
    let listing = std::fs::read_dir(dir.join("archive")).unwrap();
    listing.count()
}

#[test]
fn rocksdb_reads_the_changes_that_we_keep() {
    for seed in 0..6 {
        let dir = temp_dir();
        let mut rng = Rng::new(seed);
        let mut written = Vec::new();
        for _ in 0..2 {
            let db = Db::open(dir.path(), options()).unwrap();
            written.extend(write_ours(&db, &mut rng, 60));
            assert_eq!(ours(&db, 1), written, "seed {seed}");
            db.close().unwrap();
        }
        assert!(archived(dir.path()) > 4, "seed {seed}");
        let rocks = Rocks::open_default(dir.path(), KEPT).unwrap();
        for from in [0, 1, 30, written.len() as u64 / 2] {
            let (found, ended) = theirs(&rocks, from);
            // It begins with the batch that holds the number, too.
            let first = found[0].0;
            assert!(first <= from.max(1) && first + 6 > from, "seed {seed}");
            assert_eq!(ended, None, "seed {seed}");
            assert_eq!(found, written[first as usize - 1..], "seed {seed}");
        }
        // It writes on, and we read what both wrote.
        rocks.put("default", b"theirs", b"1");
        rocks.flush("default");
        rocks.put("default", b"theirs", b"2");
        let (found, _) = theirs(&rocks, written.len() as u64 + 1);
        written.extend(found);
        drop(rocks);
        let db = Db::open(
            dir.path(),
            Options {
                keep_changes: None,
                ..options()
            },
        )
        .unwrap();
        assert_eq!(ours(&db, 1), written, "seed {seed}");
        db.put("ours", "again").unwrap();
        assert_eq!(ours(&db, 1).len(), written.len() + 1);
    }
}

#[test]
fn we_read_the_changes_that_rocksdb_keeps() {
    let dir = temp_dir();
    let rocks = Rocks::open_default(dir.path(), &format!("create_if_missing=true;{KEPT}")).unwrap();
    for round in 0..200 {
        let key = key(round % 30);
        match round % 3 {
            0 => rocks.delete("default", &key),
            _ => rocks.put("default", &key, &value(round, 1)),
        }
        if round % 40 == 39 {
            rocks.flush("default");
        }
    }
    let (written, _) = theirs(&rocks, 1);
    assert_eq!(written.len(), 200);
    drop(rocks);
    // Its OPTIONS file says that changes are kept.
    let db = Db::open(dir.path(), small()).unwrap();
    assert_eq!(ours(&db, 1), written);
    assert_eq!(ours(&db, 77), written[76..]);
}

#[test]
fn what_is_no_write_is_a_gap_for_rocksdb_and_nothing_more() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    db.put("a", "1").unwrap();
    let more = db.create_family("more", FamilyOptions::default()).unwrap();
    db.put_cf(&more, "b", "2", &WriteOptions::default())
        .unwrap();
    db.flush().unwrap();
    db.drop_family(&more).unwrap();
    db.put("c", "3").unwrap();
    let expected = ours(&db, 1);
    let seqnos: Vec<u64> = expected.iter().map(|record| record.0).collect();
    assert_eq!(seqnos, [1, 3, 5]);
    db.close().unwrap();
    let rocks = Rocks::open_default(dir.path(), KEPT).unwrap();
    assert_eq!(rocks.get("default", b"c").as_deref(), Some(&b"3"[..]));
    let mut found = Vec::new();
    for from in [1, 2, 4] {
        let (part, ended) = theirs(&rocks, from);
        found.extend(part);
        let has_gap = ended.is_some_and(|error| error.contains("Gap in sequence number"));
        assert_eq!(has_gap, from < 4, "from {from}");
    }
    assert_eq!(found, expected);
}
