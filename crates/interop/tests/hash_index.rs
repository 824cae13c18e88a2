//! Goal: hash indexes in data blocks are the same thing to RocksDB and to us: tables of either are read
//! right by the other, by gets of keys that are there, that are not and that are merged, and by walks;
//! and a directory that has them goes on to get them from whoever writes it. Method: random operations
//! under several ratios of keys to buckets and lengths of restart intervals, with one reader after the
//! other; that a table has the index is seen in the last bytes of its only data block.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, in its helpers too, and looks at files the engine let go of"
)]

use std::path::{Path, PathBuf};

use drumlin::{Db, Options, ReadOptions, Tuning};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const BASE: &str = "create_if_missing=true;write_buffer_size=65536;target_file_size_base=65536;\
    max_bytes_for_level_base=131072;merge_operator=uint64add";
const ALL: Operators = Operators {
    merges: true,
    ranges: true,
    reverse: false,
};
/// Keys a bucket, entries between restart points, bytes of a block.
const SHAPES: [(f64, usize, usize); 5] = [
    (0.75, 16, 4096),
    (0.1, 1, 4096),
    (3.0, 4, 1024),
    (0.5, 2, 60_000), // More restart points than buckets can name, in some blocks.
    (1.0, 16, 1 << 18),
];

fn theirs((ratio, interval, bytes): (f64, usize, usize)) -> String {
    format!(
        "{BASE};block_based_table_factory={{data_block_index_type=kDataBlockBinaryAndHash;\
         data_block_hash_table_util_ratio={ratio};block_restart_interval={interval};\
         block_size={bytes};filter_policy=bloomfilter:2:false}}"
    )
}

fn ours((ratio, interval, bytes): (f64, usize, usize)) -> Options {
    let mut options = small();
    options.tuning = Tuning {
        hash_ratio: Some(ratio),
        restart_interval: interval,
        block_bytes: bytes,
        filter_bits: 2.0, // Blocks shall be asked for keys that are not there, too.
        ..options.tuning
    };
    options.family.merge_operator = Some(std::sync::Arc::new(drumlin::UInt64Add));
    options
}

/// Gets of every third key, and of one behind it that is not there.
fn check_rocks(rocks: &Rocks, want: &Rows, what: &str) {
    assert_rows(what, &rocks.rows("default"), want);
    for (key, value) in want.iter().step_by(3) {
        assert_eq!(rocks.get("default", key).as_ref(), Some(value), "{what}");
        let absent = [key, &b"\0"[..]].concat();
        let there = want.iter().any(|(key, _)| *key == absent);
        assert!(there || rocks.get("default", &absent).is_none(), "{what}");
    }
}

#[test]
fn what_rocksdb_hashed_is_read_and_goes_on_to_be_hashed() {
    for (seed, shape) in (0..).zip(SHAPES) {
        let (dir, options) = (temp_dir(), theirs(shape));
        let what = format!("{shape:?}");
        let rocks = Rocks::open_default(dir.path(), &options).unwrap();
        let mut rng = Rng::new(seed);
        for at in 0..4000 {
            apply_rocks(&rocks, "default", &random_op(&mut rng, 2000, ALL));
            if at == 1500 {
                rocks.compact("default");
            }
        }
        rocks.flush("default");
        let want = rocks.rows("default");
        drop(rocks);
        let db = check_ours_in(dir.path(), &want, &what);
        db.compact_range(db.default_family(), None, None).unwrap();
        check_ours(&db, db.default_family(), &want, &what);
        db.close().unwrap();
        // What we wrote with the OPTIONS file's word alone.
        let rocks = Rocks::open_default(dir.path(), &options).unwrap();
        check_rocks(&rocks, &want, &what);
    }
}

#[test]
fn what_we_hashed_is_read_by_rocksdb_and_its_tools() {
    for (seed, shape) in (0..).zip(SHAPES) {
        let (dir, what) = (temp_dir(), format!("{shape:?}"));
        let db = Db::open(dir.path(), ours(shape)).unwrap();
        let mut rng = Rng::new(100 + seed);
        for at in 0..4000 {
            apply_ours(&db, db.default_family(), &random_op(&mut rng, 2000, ALL));
            if at == 1500 {
                db.compact_range(db.default_family(), None, None).unwrap();
            }
        }
        db.flush().unwrap();
        let want = ours_rows(&db, db.default_family());
        check_ours(&db, db.default_family(), &want, &what);
        db.close().unwrap();
        assert_rows(&what, &ldb_scan(dir.path(), "default"), &want);
        let verified = sst_dump(dir.path(), &["--command=verify"]).ok();
        assert!(!verified.contains("Corruption"), "{what}: {verified}");
        let rocks = Rocks::open_default(dir.path(), &format!("paranoid_checks=true;{BASE}"));
        check_rocks(&rocks.unwrap(), &want, &what);
    }
}

/// The newest table of `dir`.
fn newest_table(dir: &Path) -> PathBuf {
    let entries = std::fs::read_dir(dir).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let tables = paths.filter(|path| path.extension().is_some_and(|kind| kind == "sst"));
    tables.max().expect("a table")
}

/// Whether the only data block of an uncompressed table has a hash index.
fn is_hashed(table: &Path) -> bool {
    let shown = sst_dump(table, &["--show_properties"]).ok();
    let number = |name: &str| -> usize {
        let line = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    assert_eq!(number("# data blocks:"), 1);
    const TRAILER_BYTES: usize = 5;
    let end = number("data block size:") - TRAILER_BYTES;
    std::fs::read(table).unwrap()[end - 1] & 0x80 != 0
}

#[test]
fn a_directory_keeps_its_hash_indexes_until_they_are_switched_off() {
    let dir = temp_dir();
    let uncompressed = |tuning: Tuning| Options {
        compression: drumlin::Compression::none(),
        tuning,
        ..Options::default()
    };
    let write = |tuning: Tuning| {
        let db = Db::open(dir.path(), uncompressed(tuning)).unwrap();
        for n in 0..20 {
            db.put(key(n), b"value").unwrap();
        }
        db.flush().unwrap();
        db.close().unwrap();
        newest_table(dir.path())
    };
    // A new directory has none.
    assert!(!is_hashed(&write(Tuning::default())));
    let options = "compression=kNoCompression;block_based_table_factory={\
        data_block_index_type=kDataBlockBinaryAndHash;data_block_hash_table_util_ratio=0.5}";
    let rocks = Rocks::open_default(dir.path(), options).unwrap();
    rocks.put("default", &key(1), b"value");
    rocks.flush("default");
    drop(rocks);
    assert!(is_hashed(&newest_table(dir.path())));
    // Twice: the first open writes an OPTIONS file of its own, the second finds that.
    for _ in 0..2 {
        assert!(is_hashed(&write(Tuning::default())));
        let text = ldb(
            dir.path(),
            &["get", "--try_load_options", "--value_hex", "x"],
        );
        assert!(!text.stderr.contains("Corruption"), "{}", text.stderr);
    }
    let off = Tuning {
        hash_ratio: Some(0.0),
        ..Tuning::default()
    };
    assert!(!is_hashed(&write(off)));
    assert!(!is_hashed(&write(Tuning::default())));
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let found = db.get_in(db.default_family(), key(3), &ReadOptions::default());
    assert_eq!(found.unwrap().as_deref(), Some(&b"value"[..]));
    db.close().unwrap();
}
