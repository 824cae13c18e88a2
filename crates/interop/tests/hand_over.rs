//! Goal: directories change hands in ways beyond open and close: locks keep the engines apart, a
//! checkpoint is a database, a lost MANIFEST can be rebuilt, a real file comes through all three.
//! Method: each engine in turn on the same directory.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{
    Codec, Compression, Db, DirectoryFormat, Env, ErrorKind, FamilyOptions, KeyOrder, Options,
    UInt64Add, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const NEW: &str = "create_if_missing=true";

#[test]
fn rocksdb_and_its_tools_are_kept_out_while_we_hold_the_lock() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small()).unwrap();
    db.put(b"a", b"1").unwrap();
    let refused = ldb(dir.path(), &["put", "b", "2"]).failed();
    assert!(refused.to_lowercase().contains("lock"), "{refused}");
    // A read-only command takes no lock.
    assert_eq!(ldb(dir.path(), &["get", "a"]).ok().trim(), "1");
    db.put(b"c", b"3").unwrap();
    db.close().unwrap();
    ldb(dir.path(), &["put", "b", "2"]).ok();
    let want = [("a", "1"), ("b", "2"), ("c", "3")];
    let want: Rows = want.map(|(k, v)| (k.into(), v.into())).to_vec();
    check_ours_in(dir.path(), &want, "after ldb");
}

#[test]
fn leveldb_is_kept_out_while_we_hold_the_lock() {
    // LevelDB checks for locks of its own process by name, ours it meets as another process would:
    // RocksDB's tool stands for that, since LevelDB has none.
    let dir = temp_dir();
    drop(LevelDb::open(dir.path(), LevelOptions::default()).unwrap());
    let db = Db::open(dir.path(), small()).unwrap();
    let refused = ldb(dir.path(), &["put", "b", "2"]).failed();
    assert!(refused.to_lowercase().contains("lock"), "{refused}");
    db.close().unwrap();
    drop(LevelDb::open(dir.path(), LevelOptions::default()).unwrap());
}

/// Runs as a process of its own when given a directory: opens it and prints the outcome.
const PROBE_DIR: &str = "DRUMLIN_INTEROP_PROBE";

/// How the open of `dir` goes in another process.
fn open_elsewhere(dir: &Path) -> String {
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new(test)
        .args(["the_probe_says_how_an_open_goes", "--exact", "--nocapture"])
        .env(PROBE_DIR, dir)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_probe_says_how_an_open_goes() {
    let Some(dir) = std::env::var_os(PROBE_DIR) else {
        let dir = temp_dir();
        assert!(open_elsewhere(dir.path()).contains("opened"));
        return;
    };
    let create = Options {
        create_if_missing: true,
        ..small()
    };
    match Db::open_all_families(PathBuf::from(dir), create) {
        Ok(_) => println!("opened"),
        Err(error) => println!("{:?}: {error}", error.kind()),
    }
}

#[test]
fn we_are_kept_out_while_rocksdb_or_leveldb_holds_the_lock() {
    let dir = temp_dir();
    let rocks = Rocks::open_default(dir.path(), NEW).unwrap();
    let said = open_elsewhere(dir.path());
    assert!(said.contains("Locked"), "{said}");
    drop(rocks);
    assert!(open_elsewhere(dir.path()).contains("opened"));

    let dir = temp_dir();
    let level = LevelDb::open(dir.path(), LevelOptions::default()).unwrap();
    let said = open_elsewhere(dir.path());
    assert!(said.contains("Locked"), "{said}");
    drop(level);
    assert!(open_elsewhere(dir.path()).contains("opened"));

    let dir = temp_dir();
    let db = Db::open(dir.path(), small()).unwrap();
    let said = open_elsewhere(dir.path());
    assert!(said.contains("Locked"), "{said}");
    db.close().unwrap();
}

#[test]
fn our_checkpoint_is_a_database_of_rocksdbs() {
    let (dir, copies) = (temp_dir(), temp_dir());
    let db = Db::open(dir.path(), small()).unwrap();
    db.create_family("second", FamilyOptions::default())
        .unwrap();
    let second = db.column_family("second").unwrap();
    let mut rng = Rng::new(8);
    let ranges = Operators {
        ranges: true,
        ..Operators::default()
    };
    for _ in 0..6000 {
        apply_ours(&db, db.default_family(), &random_op(&mut rng, 1000, ranges));
        apply_ours(&db, &second, &random_op(&mut rng, 1000, ranges));
    }
    let wants = [ours_rows(&db, db.default_family()), ours_rows(&db, &second)];
    let copy = copies.path().join("copy");
    db.checkpoint(&copy).unwrap();
    db.put(b"later", b"1").unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    for (name, want) in ["default", "second"].iter().zip(&wants) {
        assert_rows(&format!("ldb, {name}"), &ldb_scan(&copy, name), want);
    }
    let rocks = Rocks::open(&copy, "", &[("default", ""), ("second", "")]).unwrap();
    assert_rows("RocksDB", &rocks.rows("default"), &wants[0]);
    rocks.compact("second");
    assert_rows("RocksDB, second", &rocks.rows("second"), &wants[1]);
    drop(rocks);
    // The original was not touched through the links.
    assert!(db.verify().unwrap().damaged.is_empty());
    assert_eq!(db.get(b"later").unwrap().as_deref(), Some(&b"1"[..]));
}

fn remove_manifests(dir: &Path) {
    let files = Env::system().files;
    for name in files.list(dir).unwrap() {
        if name.to_string_lossy().starts_with("MANIFEST") {
            files.remove(&dir.join(name)).unwrap();
        }
    }
}

#[test]
fn a_database_of_ours_without_manifest_is_repaired_for_both() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small()).unwrap();
    let reverse = FamilyOptions {
        order: KeyOrder::ReverseBytewise,
        ..FamilyOptions::default()
    };
    let backwards = db.create_family("backwards", reverse).unwrap();
    for (key, value) in numbered(3000, 1) {
        db.put(&key, &value).unwrap();
        db.put_cf(&backwards, &key, &value, &WriteOptions::default())
            .unwrap();
    }
    db.flush().unwrap();
    for i in (0..3000).step_by(2) {
        db.put(key(i), value(i, 2)).unwrap();
    }
    db.flush().unwrap();
    db.put(b"in the log", b"1").unwrap();
    let wants = [
        ours_rows(&db, db.default_family()),
        ours_rows(&db, &backwards),
    ];
    db.close().unwrap();
    remove_manifests(dir.path());
    assert!(Db::open(dir.path(), small()).is_err());
    let report = Db::repair(dir.path(), &small()).unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    let db = check_ours_in(dir.path(), &wants[0], "repaired");
    check_ours(
        &db,
        &db.column_family("backwards").unwrap(),
        &wants[1],
        "repaired, backwards",
    );
    db.close().unwrap();
    let theirs = [
        ("default", ""),
        ("backwards", "comparator=rocksdb.ReverseBytewiseComparator"),
    ];
    let rocks = Rocks::open(dir.path(), "", &theirs).unwrap();
    assert_rows("RocksDB", &rocks.rows("default"), &wants[0]);
    assert_rows("RocksDB, backwards", &rocks.rows("backwards"), &wants[1]);
}

#[test]
fn a_database_of_rocksdbs_without_manifest_is_repaired_for_both() {
    let dir = temp_dir();
    let options = format!("{NEW};merge_operator=uint64add;write_buffer_size=65536");
    let rocks = Rocks::open_default(dir.path(), &options).unwrap();
    let mut rng = Rng::new(31);
    let operators = Operators {
        merges: true,
        ranges: true,
        ..Operators::default()
    };
    for _ in 0..8000 {
        apply_rocks(&rocks, "default", &random_op(&mut rng, 800, operators));
    }
    let want = rocks.rows("default");
    drop(rocks);
    remove_manifests(dir.path());
    let report = Db::repair(dir.path(), &small()).unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    let mut with_operator = small();
    with_operator.family.merge_operator = Some(Arc::new(UInt64Add));
    let db = Db::open(dir.path(), with_operator).unwrap();
    check_ours(&db, db.default_family(), &want, "repaired");
    db.close().unwrap();
    let rocks = Rocks::open_default(dir.path(), "merge_operator=uint64add").unwrap();
    assert_rows("RocksDB", &rocks.rows("default"), &want);
}

#[test]
fn a_leveldb_database_without_manifest_is_repaired_as_one() {
    let dir = temp_dir();
    let level = LevelDb::open(dir.path(), LevelOptions::default()).unwrap();
    for (key, value) in numbered(5000, 1) {
        level.put(&key, &value);
    }
    let want = level.rows();
    drop(level);
    for opened_by_us in [true, false] {
        remove_manifests(dir.path());
        let report = Db::repair(dir.path(), &small()).unwrap();
        assert!(report.lost.is_empty(), "{:?}", report.lost);
        if opened_by_us {
            let db = check_ours_in(dir.path(), &want, "repaired");
            assert!(db.recovery_report().leveldb);
            db.close().unwrap();
        }
        let level = LevelDb::open(dir.path(), LevelOptions::default()).unwrap();
        assert_rows("LevelDB", &level.rows(), &want);
    }
}

/// Debian's list of packages: one stanza a row, named by package and place.
fn packages() -> Rows {
    let lists = std::fs::read_dir("/var/lib/apt/lists");
    let lists = lists
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<PathBuf> = lists
        .filter(|path| path.to_string_lossy().ends_with("_Packages"))
        .collect();
    files.push(PathBuf::from("/var/lib/dpkg/status"));
    let text = files
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok());
    let text = text.expect("a Debian system has /var/lib/dpkg/status");
    let stanzas = text
        .split("\n\n")
        .filter(|stanza| !stanza.trim().is_empty());
    let rows = stanzas.take(20_000).zip(0..).map(|(stanza, at)| {
        let first = stanza.trim_start().lines().next().unwrap_or_default();
        (
            format!("{first} {at:06}").into_bytes(),
            stanza.as_bytes().to_vec(),
        )
    });
    let mut rows: Rows = rows.collect();
    rows.sort();
    rows
}

#[test]
fn debians_packages_come_through_all_three_engines() {
    let want = packages();
    assert!(want.len() > 50, "{} packages", want.len());
    let dirs = temp_dir();
    let ours = dirs.path().join("ours");
    let db = Db::open(&ours, small()).unwrap();
    for (key, value) in want.iter().rev() {
        db.put(key, value).unwrap();
    }
    db.close().unwrap();
    let db = check_ours_in(&ours, &want, "packages");
    assert_rows("ldb", &ldb_scan(&ours, "default"), &want);
    // Into LevelDB's format, through LevelDB, and back into RocksDB's.
    let level_dir = dirs.path().join("level");
    let copy = Db::open(
        &level_dir,
        Options {
            format: DirectoryFormat::LevelDb,
            compression: Compression::new(Codec::Snappy),
            ..small()
        },
    )
    .unwrap();
    for (key, value) in ours_rows(&db, db.default_family()) {
        copy.put(key, value).unwrap();
    }
    copy.close().unwrap();
    let level = LevelDb::open(&level_dir, LevelOptions::default()).unwrap();
    level.compact();
    assert_rows("LevelDB", &level.rows(), &want);
    drop(level);
    let level = check_ours_in(&level_dir, &want, "LevelDB's packages");
    let back_dir = dirs.path().join("back");
    let back = Db::open(&back_dir, small()).unwrap();
    for (key, value) in ours_rows(&level, level.default_family()) {
        back.put(key, value).unwrap();
    }
    back.close().unwrap();
    let rocks = Rocks::open_default(&back_dir, "").unwrap();
    assert_rows("RocksDB", &rocks.rows("default"), &want);
}

#[test]
fn what_is_no_database_is_no_database() {
    let dir = temp_dir();
    let options = Options {
        create_if_missing: false,
        ..small()
    };
    let error = Db::open(dir.path(), options).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}
