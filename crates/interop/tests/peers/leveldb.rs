//! Goal: LevelDB 1.23 and we read and write the same directory in turn, and it stays LevelDB's.
//! Method: both engines in one process, LevelDB with paranoid checks, rows compared after each turn.

use std::path::Path;

use drumlin::{Codec, Compression, Db, DirectoryFormat, ErrorKind, FamilyOptions, Options};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

fn shapes() -> Vec<LevelOptions> {
    let base = LevelOptions::default();
    vec![
        base,
        LevelOptions {
            snappy: false,
            ..base
        },
        LevelOptions {
            filter_bits: 0,
            ..base
        },
        LevelOptions {
            filter_bits: 3,
            block_bytes: 512,
            ..base
        },
        LevelOptions {
            snappy: false,
            filter_bits: 0,
            block_bytes: 65536,
            ..base
        },
    ]
}

fn change_theirs(db: &LevelDb, seed: u64, ops: usize) {
    let mut rng = Rng::new(seed);
    for _ in 0..ops {
        match random_op(&mut rng, 3000, Operators::default()) {
            Op::Put(key, value) => db.put(&key, &value),
            Op::Delete(key) => db.delete(&key),
            other => panic!("{other:?} was not asked for"),
        }
    }
}

fn change_ours(db: &Db, seed: u64, ops: usize) {
    let mut rng = Rng::new(seed);
    for _ in 0..ops {
        apply_ours(
            db,
            db.default_family(),
            &random_op(&mut rng, 3000, Operators::default()),
        );
    }
}

/// Names that LevelDB never makes.
fn assert_leveldb_only(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = ["LOCK", "LOG", "LOG.old", "CURRENT"].contains(&name.as_str())
            || name.starts_with("MANIFEST-")
            || name.ends_with(".ldb")
            || name.ends_with(".log");
        assert!(known, "{name} in a LevelDB directory");
    }
}

#[test]
fn a_leveldb_directory_goes_to_and_fro_and_stays_one() {
    for (index, shape) in shapes().into_iter().enumerate() {
        let what = format!("{shape:?}");
        let dir = temp_dir();
        let mut ours = small();
        ours.compression = Compression::new(if shape.snappy {
            Codec::Snappy
        } else {
            Codec::None
        });
        ours.tuning.filter_bits = f64::from(shape.filter_bits);
        ours.tuning.block_bytes = shape.block_bytes;
        let theirs = LevelDb::open(dir.path(), shape).unwrap();
        change_theirs(&theirs, index as u64, 10_000);
        let mut want = theirs.rows();
        drop(theirs);
        for turn in 0..3 {
            let db = Db::open(dir.path(), ours.clone()).unwrap();
            assert!(db.recovery_report().leveldb, "{what}");
            check_ours(
                &db,
                db.default_family(),
                &want,
                &format!("{what}, turn {turn}"),
            );
            change_ours(&db, 100 + turn, 4000);
            match turn {
                0 => {} // our writes stay in the WAL
                1 => db.flush().unwrap(),
                _ => db.compact_range(db.default_family(), None, None).unwrap(),
            }
            change_ours(&db, 200 + turn, 50);
            want = ours_rows(&db, db.default_family());
            db.close().unwrap();
            assert_leveldb_only(dir.path());
            let theirs = LevelDb::open(dir.path(), shape).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_rows(&format!("{what}, turn {turn}"), &theirs.rows(), &want);
            for (key, value) in want.iter().step_by(5) {
                assert_eq!(theirs.get(key).as_ref(), Some(value), "{what}, turn {turn}");
            }
            assert_eq!(theirs.get(b"key0000"), None);
            change_theirs(&theirs, 300 + turn, 2000);
            if turn == 1 {
                theirs.compact();
            }
            want = theirs.rows();
        }
        check_ours_in(dir.path(), &want, &what);
    }
}

#[test]
fn a_directory_we_made_for_leveldb_is_leveldbs() {
    let dir = temp_dir();
    let options = Options {
        format: DirectoryFormat::LevelDb,
        compression: Compression::new(Codec::Snappy),
        ..small()
    };
    let db = Db::open(dir.path(), options.clone()).unwrap();
    change_ours(&db, 1, 8000);
    db.put(b"", b"").unwrap();
    db.put(b"large", vec![1; 1 << 20]).unwrap();
    let want = ours_rows(&db, db.default_family());
    db.close().unwrap();
    assert_leveldb_only(dir.path());
    let theirs = LevelDb::open(dir.path(), LevelOptions::default()).unwrap();
    assert_rows("LevelDB", &theirs.rows(), &want);
    theirs.compact();
    assert_rows("LevelDB, compacted", &theirs.rows(), &want);
    drop(theirs);
    check_ours_in(dir.path(), &want, "ours again");
    // RocksDB 7.8 still reads LevelDB's directories. (Opened for writing it fails an assertion of
    // its own, on a field that LevelDB's MANIFEST lacks.)
    let scanned = ldb(dir.path(), &["scan", "--hex"]).ok();
    assert_eq!(
        scanned
            .lines()
            .filter(|line| line.starts_with("0x"))
            .count(),
        want.len()
    );
}

#[test]
fn what_leveldb_does_not_know_is_refused_in_its_directory() {
    let dir = temp_dir();
    drop(LevelDb::open(dir.path(), LevelOptions::default()).unwrap());
    let db = Db::open(dir.path(), small()).unwrap();
    let write = drumlin::WriteOptions::default();
    let family = db.default_family();
    for refused in [
        db.create_family("more", FamilyOptions::default())
            .map(|_| ()),
        db.delete_range_cf(family, b"a", b"b", &write),
        db.single_delete_cf(family, b"a", &write),
        db.merge_cf(family, b"a", b"b", &write),
        db.ingest(family, &[dir.path().join("none.sst")], false),
    ] {
        let kind = refused.unwrap_err().kind();
        assert!(
            matches!(kind, ErrorKind::NotSupported | ErrorKind::InvalidArgument),
            "{kind:?}"
        );
    }
    db.put(b"a", b"1").unwrap();
    db.close().unwrap();
    let theirs = LevelDb::open(dir.path(), LevelOptions::default()).unwrap();
    assert_rows(
        "LevelDB",
        &theirs.rows(),
        &vec![(b"a".to_vec(), b"1".to_vec())],
    );
}

#[test]
fn a_codec_leveldb_does_not_know_is_not_written_into_its_directory() {
    let dir = temp_dir();
    let theirs = LevelDb::open(dir.path(), LevelOptions::default()).unwrap();
    change_theirs(&theirs, 5, 5000);
    let mut want = theirs.rows();
    drop(theirs);
    for codec in [Codec::Zstd, Codec::Lz4] {
        let options = Options {
            compression: Compression::new(codec),
            ..small()
        };
        let db = Db::open(dir.path(), options).unwrap();
        check_ours(&db, db.default_family(), &want, "before");
        change_ours(&db, 6, 1000);
        db.compact_range(db.default_family(), None, None).unwrap();
        want = ours_rows(&db, db.default_family());
        db.close().unwrap();
        let theirs = LevelDb::open(dir.path(), LevelOptions::default()).unwrap();
        assert_rows("LevelDB", &theirs.rows(), &want);
    }
}
