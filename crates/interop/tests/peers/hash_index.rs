//! Goal: tables whose data blocks have RocksDB's hash index are read right: by gets of keys that are there, that are
//! not and that are merged, and by walks; the OPTIONS file keeps asking RocksDB for the index, though tables written
//! here have none. Method: random operations by RocksDB under several ratios of keys to buckets and lengths of restart
//! intervals, read by us, compacted by us, and read by RocksDB again.

use std::path::{Path, PathBuf};

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
fn what_rocksdb_hashed_is_read_by_us_and_after_us() {
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
        let text = newest_options(dir.path());
        assert!(
            text.contains("data_block_index_type=kDataBlockBinaryAndHash"),
            "{what}"
        );
        let rocks = Rocks::open_default(dir.path(), &options).unwrap();
        check_rocks(&rocks, &want, &what);
    }
}

/// The newest OPTIONS file of `dir`.
fn newest_options(dir: &Path) -> String {
    let entries = std::fs::read_dir(dir).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.to_string_lossy().contains("OPTIONS-");
    let newest = paths.filter(named).max().expect("an OPTIONS file");
    std::fs::read_to_string(newest).unwrap()
}
