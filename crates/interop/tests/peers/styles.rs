//! Goal: a directory keeps its compaction style when it changes hands. Method: we write it under
//! each style and RocksDB's tools open it with our OPTIONS file; RocksDB writes it and we open it
//! without naming a style; then the counts of tables and levels show the style in force.

use std::path::Path;

use drumlin::internals::compaction::style_text;
use drumlin::{CompactionStyle, Db, Env, FifoOptions, Options, UniversalOptions};
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

fn with_style(style: CompactionStyle) -> Options {
    let mut options = small();
    options.compaction_style = style;
    options
}

/// The style in the newest OPTIONS file.
fn told(dir: &Path) -> CompactionStyle {
    let env = Env::system();
    let file = drumlin::internals::options_file::read_newest(&*env.files, dir);
    let file = file.unwrap().unwrap();
    style_text::read(&file.family("default").unwrap().options).unwrap()
}

fn universal() -> CompactionStyle {
    CompactionStyle::Universal(UniversalOptions {
        runs_trigger: 3,
        size_ratio_percent: 7,
        merge_width_min: 2,
        merge_width_max: 11,
        space_percent_max: 120,
        levels_max: 7,
    })
}

fn fifo() -> CompactionStyle {
    CompactionStyle::Fifo(FifoOptions {
        table_bytes_max: 64 << 20,
        ttl_seconds: Some(86_400),
        merge_small: true,
    })
}

#[test]
fn rocksdb_opens_what_we_wrote_with_the_same_style() {
    for style in [CompactionStyle::Leveled, universal(), fifo()] {
        let what = format!("{style:?}");
        let dir = temp_dir();
        let db = Db::open(dir.path(), with_style(style)).unwrap();
        for generation in 0..12 {
            for (key, value) in numbered(700, generation) {
                db.put(key, value).unwrap();
            }
            db.flush().unwrap();
        }
        db.wait_for_background().unwrap();
        let want = ours_rows(&db, db.default_family());
        db.close().unwrap();
        assert_eq!(told(dir.path()), style, "{what}");
        assert_rows(&what, &ldb_scan(dir.path(), "default"), &want);
        // RocksDB writes an OPTIONS file of its own from ours.
        ldb(dir.path(), &["put", "--try_load_options", "theirs", "1"]).ok();
        assert_eq!(told(dir.path()), style, "{what}, by RocksDB");
        let db = Db::open(dir.path(), small()).unwrap();
        assert_eq!(db.get(b"theirs").unwrap().as_deref(), Some(&b"1"[..]));
        db.close().unwrap();
        assert_eq!(told(dir.path()), style, "{what}, opened without a style");
    }
}

#[test]
fn a_directory_of_rocksdb_goes_on_in_its_style() {
    let base = "create_if_missing=true;write_buffer_size=65536;num_levels=7";
    let universal = "compaction_style=kCompactionStyleUniversal;\
                     compaction_options_universal={size_ratio=20;max_size_amplification_percent=90;}";
    let dir = temp_dir();
    let rocks = Rocks::open_default(dir.path(), &format!("{base};{universal}")).unwrap();
    for (key, value) in numbered(3000, 1) {
        rocks.put("default", &key, &value);
    }
    drop(rocks);
    let db = Db::open(dir.path(), small()).unwrap();
    for generation in 2..9 {
        for (key, value) in numbered(3000, generation) {
            db.put(key, value).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_background().unwrap();
    let want = ours_rows(&db, db.default_family());
    db.close().unwrap();
    let CompactionStyle::Universal(limits) = told(dir.path()) else {
        panic!("the style was lost");
    };
    assert_eq!(limits.size_ratio_percent, 20);
    assert_eq!(limits.space_percent_max, 90);
    let rocks = Rocks::open_default(dir.path(), &format!("{base};{universal}")).unwrap();
    assert_rows("universal", &rocks.rows("default"), &want);
}

/// Everything in one family overwritten a few times and compacted by RocksDB, then by us, twice.
fn hand_over(name: &str, style: &str, levels: usize) {
    let options = format!(
        "create_if_missing=true;write_buffer_size=65536;target_file_size_base=65536;\
         {style}"
    );
    let dir = temp_dir();
    let mut want = Rows::new();
    for round in 0..2 {
        let rocks = Rocks::open_default(dir.path(), &options).unwrap();
        if round > 0 {
            assert_rows(name, &rocks.rows("default"), &want);
        }
        for generation in 0..3 {
            for (key, value) in numbered(2000, 10 * round + generation) {
                rocks.put("default", &key, &value);
            }
            rocks.flush_all();
        }
        rocks.compact("default");
        rocks.put("default", b"of RocksDB", b"1");
        let theirs = rocks.rows("default");
        drop(rocks);
        let db = Db::open(dir.path(), small()).unwrap();
        assert_rows(name, &ours_rows(&db, db.default_family()), &theirs);
        for generation in 3..12 {
            for (key, value) in numbered(2000, 10 * round + generation) {
                db.put(key, value).unwrap();
            }
            db.delete(b"of RocksDB").unwrap();
            db.flush().unwrap();
        }
        db.wait_for_background().unwrap();
        db.compact_range(db.default_family(), None, None).unwrap();
        for level in levels..7 {
            let name = format!("rocksdb.num-files-at-level{level}");
            let files = db.property(db.default_family(), &name);
            assert_eq!(files.as_deref(), Some("0"), "level {level}");
        }
        want = ours_rows(&db, db.default_family());
        assert!(want.iter().all(|(key, _)| key != b"of RocksDB"));
        db.close().unwrap();
        match told(dir.path()) {
            CompactionStyle::Universal(limits) => assert_eq!(limits.levels_max, levels),
            kept => assert_eq!(kept, CompactionStyle::Leveled),
        }
        // By the latest options, as many programs open.
        let scanned = ldb_scan(dir.path(), "default");
        assert_rows(name, &scanned, &want);
    }
    let rocks = Rocks::open_default(dir.path(), &options).unwrap();
    assert_rows(name, &rocks.rows("default"), &want);
}

#[test]
fn universal_directories_with_few_levels_keep_to_them() {
    let universal = "compaction_style=kCompactionStyleUniversal";
    hand_over("one level", &format!("{universal};num_levels=1"), 1);
    hand_over("three levels", &format!("{universal};num_levels=3"), 3);
}

#[test]
fn leveled_directories_with_few_levels_keep_to_them() {
    for levels in [2, 3, 4] {
        let options = format!("max_bytes_for_level_base=131072;num_levels={levels}");
        hand_over(&format!("{levels} levels"), &options, levels);
    }
}

#[test]
fn universal_directories_with_trivial_moves_and_incremental_merges_go_on() {
    hand_over(
        "trivial moves",
        "compaction_style=kCompactionStyleUniversal;num_levels=7;\
         compaction_options_universal={allow_trivial_move=true;}",
        7,
    );
    hand_over(
        "incremental",
        "compaction_style=kCompactionStyleUniversal;num_levels=7;\
         compaction_options_universal={incremental=true;max_size_amplification_percent=60;}",
        7,
    );
}

#[test]
fn a_fifo_directory_of_rocksdb_stays_within_its_size() {
    let options = "create_if_missing=true;write_buffer_size=65536;compression=kNoCompression;\
                   compaction_style=kCompactionStyleFIFO;\
                   compaction_options_fifo={max_table_files_size=300000;}";
    let dir = temp_dir();
    let rocks = Rocks::open_default(dir.path(), options).unwrap();
    for (key, value) in numbered(6000, 1) {
        rocks.put("default", &key, &value);
    }
    rocks.flush_all();
    drop(rocks);
    let db = Db::open(dir.path(), small()).unwrap();
    for (key, value) in numbered(20_000, 2) {
        db.put(key, value).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    db.wait_for_background().unwrap();
    assert!(db.statistics().dropped_tables.get() > 0);
    let want = ours_rows(&db, db.default_family());
    assert!(want.len() < 20_000, "the oldest entries are gone");
    db.close().unwrap();
    let rocks = Rocks::open_default(dir.path(), options).unwrap();
    assert_rows("FIFO", &rocks.rows("default"), &want);
    let bytes: u64 = rocks
        .property("rocksdb.total-sst-files-size")
        .unwrap()
        .parse()
        .unwrap();
    assert!(bytes <= 300_000, "{bytes}");
}
