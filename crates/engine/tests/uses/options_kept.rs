//! Goal: a program that opens by its latest OPTIONS file finds its own settings there. Method: a file as
//! RocksDB leaves it, with keys that nothing here stands for, put into a store; after two openings every
//! key and value is compared, but for those that have changed since.

use std::path::Path;
use std::sync::Arc;

use drumlin::internals::options_file::{self, OptionsFile, Section};
use drumlin::{Db, Env, ErrorKind, Options};
use drumlin_fs::{FileSystem, StrictMemFileSystem};

const DIR: &str = "/db";
const THEIRS: &str = "[Version]
  rocksdb_version=11.8.1
  options_file_version=1.1
[DBOptions]
  max_open_files=-1
  WAL_ttl_seconds=99999999999999999999999999
  stats_dump_period_sec=600
[CFOptions \"default\"]
  comparator=leveldb.BytewiseComparator
  compression=kZSTD
  compression_opts={max_dict_bytes=0;level=3;}
  ttl=18446744073709551614
  num_levels=-3
  write_buffer_size=-9223372036854775809
  enable_blob_files=false
  min_blob_size=10
  compaction_style=kCompactionStyleUniversal
  compaction_options_universal={incremental=false;allow_trivial_move=true;size_ratio=7;}
  merge_operator=nullptr
  table_factory=BlockBasedTable
[TableOptions/BlockBasedTable \"default\"]
  filter_policy=bloomfilter:10:false
  block_size=16384
  a_key_of_the_future={x=1;y={z=2;};}
";

fn newest(files: &dyn FileSystem) -> OptionsFile {
    options_file::read_newest(files, Path::new(DIR))
        .unwrap()
        .unwrap()
}

/// All keys of `before` are in `after` with the same value, but for those named.
fn compare(before: &Section, after: &Section, changed: &[&str]) {
    for (key, value) in before.entries() {
        if !changed.contains(&key) {
            assert_eq!(after.get(key), Some(value), "{key}");
        }
    }
}

#[test]
fn what_is_recorded_is_in_the_options_file_and_nothing_else_may_be() {
    let files = Arc::new(StrictMemFileSystem::new());
    let mut options = Options {
        env: Env::system().with_files(Arc::clone(&files) as Arc<dyn FileSystem>),
        ..Options::default()
    };
    let record = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    for (name, value) in [("compaction_pry", "kRoundRobin"), ("compaction_pri", "a;b")] {
        options.family.recorded = record(name, value);
        let error = Db::open(DIR, options.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    options.family.recorded = record("compaction_pri", "kRoundRobin");
    let told = |options: &Options| {
        drop(Db::open(DIR, options.clone()).unwrap());
        let file = newest(&*files);
        file.families[0]
            .options
            .get("compaction_pri")
            .map(str::to_owned)
    };
    assert_eq!(told(&options).as_deref(), Some("kRoundRobin"));
    options.family.recorded.clear();
    assert_eq!(told(&options).as_deref(), Some("kRoundRobin"));
}

#[test]
fn every_key_of_another_program_is_kept() {
    let files = Arc::new(StrictMemFileSystem::new());
    let options = Options {
        env: Env {
            files: Arc::clone(&files) as Arc<dyn FileSystem>,
            ..Env::system()
        },
        ..Options::default()
    };
    let db = Db::open(DIR, options.clone()).unwrap();
    db.close().unwrap();
    let theirs = OptionsFile::parse(THEIRS).unwrap();
    options_file::write(&*files, Path::new(DIR), 900, &theirs).unwrap();
    for _ in 0..3 {
        let db = Db::open(DIR, options.clone()).unwrap();
        db.put(b"large", vec![b'v'; 20_000]).unwrap();
        db.create_family("other", options.family.clone()).unwrap();
        db.flush().unwrap();
        let other = db.column_family("other").unwrap();
        db.drop_family(&other).unwrap();
        drop(other);
        db.close().unwrap();
        let ours = newest(&*files);
        assert_eq!(ours.rocksdb_version, "11.8.1");
        compare(&theirs.database, &ours.database, &[]);
        let (before, after) = (&theirs.families[0], &ours.families[0]);
        assert_eq!(ours.families.len(), 1);
        compare(&before.options, &after.options, &[]);
        compare(&before.table, &after.table, &[]);
        assert_eq!(before.table_factory, after.table_factory);
    }
    let names = files.list(Path::new(DIR)).unwrap();
    let is_blob = |name: &std::path::PathBuf| name.extension().is_some_and(|end| end == "blob");
    assert!(!names.iter().any(is_blob), "the family was to have none");
}

/// Goal: keys that depend on others are kept where these are not there, and other names of one thing.
#[test]
fn keys_without_those_beside_them_are_kept() {
    let files = Arc::new(StrictMemFileSystem::new());
    let options = Options {
        env: Env {
            files: Arc::clone(&files) as Arc<dyn FileSystem>,
            ..Env::system()
        },
        ..Options::default()
    };
    Db::open(DIR, options.clone()).unwrap().close().unwrap();
    let mut theirs = OptionsFile::parse(THEIRS).unwrap();
    let mut alone = Section::default();
    alone.set("level_compaction_dynamic_level_bytes", "false");
    alone.set("min_blob_size", "0");
    alone.set("merge_operator", "uint64add");
    theirs.families[0].options = alone.clone();
    options_file::write(&*files, Path::new(DIR), 900, &theirs).unwrap();
    let db = Db::open(DIR, options).unwrap();
    db.put(b"large", vec![b'v'; 20_000]).unwrap();
    db.close().unwrap();
    compare(&alone, &newest(&*files).families[0].options, &[]);
}

#[test]
fn what_the_caller_sets_is_written() {
    let files = Arc::new(StrictMemFileSystem::new());
    let mut options = Options {
        env: Env {
            files: Arc::clone(&files) as Arc<dyn FileSystem>,
            ..Env::system()
        },
        ..Options::default()
    };
    Db::open(DIR, options.clone()).unwrap().close().unwrap();
    let own = newest(&*files);
    assert_eq!(own.families[0].blobs(), Some(Some(4 << 10)));
    let theirs = OptionsFile::parse(THEIRS).unwrap();
    options_file::write(&*files, Path::new(DIR), 900, &theirs).unwrap();
    options.tuning.blob_from_bytes = Some(77);
    Db::open(DIR, options).unwrap().close().unwrap();
    let told = newest(&*files);
    assert_eq!(told.families[0].blobs(), Some(Some(77)));
    compare(
        &theirs.families[0].options,
        &told.families[0].options,
        &["enable_blob_files", "min_blob_size"],
    );
}

/// Writes `rounds` rounds of the same keys, with compactions between them, and one of all at the end.
fn overwrite(db: &Db, rounds: u32) {
    for round in 0..rounds {
        for key in 0..200u32 {
            db.put(key.to_be_bytes(), format!("{round}-{key}").repeat(20))
                .unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_background().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
}

/// The deepest level that has tables.
fn deepest(db: &Db) -> usize {
    let count = |level: usize| {
        let name = format!("rocksdb.num-files-at-level{level}");
        db.property(db.default_family(), &name).unwrap()
    };
    (0..7).rfind(|&level| count(level) != "0").unwrap()
}

/// Goal: RocksDB, which refuses tables below the levels that its options give, opens the directory again.
#[test]
fn a_leveled_family_keeps_to_its_number_of_levels() {
    for (told, kept, last) in [
        ("3", "3", 2),
        ("1", "2", 1),
        ("-4", "7", 6),
        ("12", "12", 6),
    ] {
        let files = Arc::new(StrictMemFileSystem::new());
        let mut options = Options {
            env: Env {
                files: Arc::clone(&files) as Arc<dyn FileSystem>,
                ..Env::system()
            },
            ..Options::default()
        };
        options.tuning.target_file_bytes = 8 << 10;
        options.tuning.level_base_bytes = Some(16 << 10);
        Db::open(DIR, options.clone()).unwrap().close().unwrap();
        let mut theirs = newest(&*files);
        theirs.families[0].options.set("num_levels", told);
        options_file::write(&*files, Path::new(DIR), 900, &theirs).unwrap();
        for _ in 0..2 {
            let db = Db::open(DIR, options.clone()).unwrap();
            overwrite(&db, 9);
            assert_eq!(deepest(&db), last, "{told}");
            db.close().unwrap();
            let ours = newest(&*files);
            assert_eq!(ours.families[0].options.get("num_levels"), Some(kept));
        }
        // Tables deeper than the file says stay in use, and it comes to say so.
        let mut fewer = newest(&*files);
        fewer.families[0].options.set("num_levels", "2");
        options_file::write(&*files, Path::new(DIR), 9_000, &fewer).unwrap();
        let db = Db::open(DIR, options).unwrap();
        overwrite(&db, 3);
        assert_eq!(deepest(&db), last, "{told}");
        db.close().unwrap();
        let levels = newest(&*files).families[0].options.number("num_levels");
        assert_eq!(levels, Some(last as i64 + 1), "{told}");
    }
}

/// Goal: the caller's choice is used and written to RocksDB's OPTIONS file.
#[test]
fn a_caller_chooses_the_number_of_levels() {
    let files = Arc::new(StrictMemFileSystem::new());
    let mut options = Options {
        env: Env {
            files: Arc::clone(&files) as Arc<dyn FileSystem>,
            ..Env::system()
        },
        ..Options::default()
    };
    options.family.levels_max = Some(4);
    let db = Db::open(DIR, options).unwrap();
    overwrite(&db, 5);
    assert_eq!(deepest(&db), 3);
    db.close().unwrap();
    let levels = newest(&*files).families[0].options.number("num_levels");
    assert_eq!(levels, Some(4));
}
