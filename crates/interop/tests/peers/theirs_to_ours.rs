//! Goal: we read row for row a directory that RocksDB 7.8 wrote under any of its options, write on,
//! and hand it back. Method: make a database through the C library with one option set a case,
//! compare every way of reading with RocksDB's own walk, write more through us, and let RocksDB read
//! the result.

use std::path::Path;

use drumlin::{CompactionStyle, Db};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const BASE: &str = "create_if_missing=true;create_missing_column_families=true;\
    write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=131072";

/// Each option set is a test: it must come through the whole way.
macro_rules! option_sets {
    ($($name:ident: $options:expr,)*) => {
        $(#[test]
        fn $name() {
            comes_through(stringify!($name), $options);
        })*
    };
}

option_sets! {
    defaults: "",
    no_compression: "compression=kNoCompression",
    snappy: "compression=kSnappyCompression",
    zlib: "compression=kZlibCompression",
    bzip2: "compression=kBZip2Compression",
    lz4: "compression=kLZ4Compression",
    lz4hc: "compression=kLZ4HCCompression",
    zstd: "compression=kZSTD",
    zstd_with_a_dictionary:
        "compression=kZSTD;compression_opts={max_dict_bytes=4096;zstd_max_train_bytes=65536};bottommost_compression_opts={max_dict_bytes=4096;zstd_max_train_bytes=65536;enabled=true}",
    lz4_with_a_raw_dictionary: "compression=kLZ4Compression;compression_opts={max_dict_bytes=4096}",
    zlib_with_a_raw_dictionary: "compression=kZlibCompression;compression_opts={max_dict_bytes=4096}",
    format_2: "block_based_table_factory={format_version=2}",
    format_3: "block_based_table_factory={format_version=3}",
    format_4: "block_based_table_factory={format_version=4}",
    small_blocks_long_intervals:
        "block_based_table_factory={block_size=256;block_restart_interval=7;index_block_restart_interval=5}",
    large_blocks: "block_based_table_factory={block_size=131072}",
    two_level_index:
        "block_based_table_factory={index_type=kTwoLevelIndexSearch;metadata_block_size=256}",
    partitioned_filters:
        "block_based_table_factory={index_type=kTwoLevelIndexSearch;metadata_block_size=256;partition_filters=true;filter_policy=bloomfilter:10:false}",
    partitioned_ribbons:
        "block_based_table_factory={index_type=kTwoLevelIndexSearch;metadata_block_size=256;partition_filters=true;filter_policy=ribbonfilter:10}",
    index_with_first_keys: "block_based_table_factory={index_type=kBinarySearchWithFirstKey}",
    hash_index_of_prefixes:
        "prefix_extractor=rocksdb.FixedPrefix.6;block_based_table_factory={index_type=kHashSearch}",
    hash_index_in_data_blocks:
        "block_based_table_factory={data_block_index_type=kDataBlockBinaryAndHash;data_block_hash_table_util_ratio=0.75}",
    bloom: "block_based_table_factory={filter_policy=bloomfilter:10:false}",
    old_bloom:
        "block_based_table_factory={format_version=4;filter_policy=bloomfilter:10:false}",
    ribbon: "block_based_table_factory={filter_policy=ribbonfilter:10:-1}",
    fixed_prefix_filter:
        "prefix_extractor=rocksdb.FixedPrefix.9;block_based_table_factory={filter_policy=bloomfilter:10:false;whole_key_filtering=false}",
    capped_prefix_filter:
        "prefix_extractor=rocksdb.CappedPrefix.20;block_based_table_factory={filter_policy=bloomfilter:10:false}",
    no_checksum: "block_based_table_factory={checksum=kNoChecksum}",
    crc32c: "block_based_table_factory={checksum=kCRC32c}",
    xxhash: "block_based_table_factory={checksum=kxxHash}",
    xxhash64: "block_based_table_factory={checksum=kxxHash64}",
    xxh3: "block_based_table_factory={checksum=kXXH3}",
    uncompressed_index: "block_based_table_factory={enable_index_compression=false}",
    universal: "compaction_style=kCompactionStyleUniversal",
    no_compaction: "disable_auto_compactions=true",
    dynamic_levels: "level_compaction_dynamic_level_bytes=true",
    recycled_logs: "recycle_log_file_num=3",
    tracked_wals: "track_and_verify_wals_in_manifest=true",
    id_in_the_manifest: "write_dbid_to_manifest=true",
    reverse_order: "comparator=rocksdb.ReverseBytewiseComparator",
    checksummed_files: "file_checksum_gen_factory=FileChecksumGenCrc32cFactory",
}

fn fill(db: &Rocks, seed: u64, ops: usize, operators: Operators) {
    let mut rng = Rng::new(seed);
    for at in 0..ops {
        let op = random_op(&mut rng, 2000, operators);
        apply_rocks(db, "default", &op);
        if at == ops / 3 {
            db.compact("default");
        } else if at % 700 == 0 {
            db.flush("default");
        }
    }
}

/// We read the rows of `dir`, write, and RocksDB reads the result: twice, the second time
/// compacted.
fn there_and_back(dir: &Path, options: &str, what: &str) {
    let rocks = Rocks::open_default(dir, options).unwrap();
    let want = rocks.rows("default");
    drop(rocks);
    let db = check_ours_in(dir, &want, what);
    for i in (0..2000).step_by(5) {
        db.put(key(i), value(i, 77)).unwrap();
        db.delete(key(i + 2)).unwrap();
    }
    let want = ours_rows(&db, db.default_family());
    db.close().unwrap();
    let rocks = Rocks::open_default(dir, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_rows(
        &format!("{what}, handed back"),
        &rocks.rows("default"),
        &want,
    );
    for i in (0..2000).step_by(3) {
        rocks.put("default", &key(i), &value(i, 78));
    }
    let want = rocks.rows("default");
    drop(rocks);
    let db = check_ours_in(dir, &want, &format!("{what}, again"));
    db.compact_range(db.default_family(), None, None).unwrap();
    check_ours(
        &db,
        db.default_family(),
        &want,
        &format!("{what}, compacted by us"),
    );
    assert!(db.verify().unwrap().damaged.is_empty(), "{what}");
    db.close().unwrap();
    let rocks = Rocks::open_default(dir, options).unwrap();
    assert_rows(
        &format!("{what}, compacted, handed back"),
        &rocks.rows("default"),
        &want,
    );
    rocks.compact("default");
    assert_rows(
        &format!("{what}, compacted by both"),
        &rocks.rows("default"),
        &want,
    );
}

fn comes_through(what: &str, more: &str) {
    let dir = temp_dir();
    let options = format!("{BASE};{more}");
    let rocks =
        Rocks::open_default(dir.path(), &options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let operators = Operators {
        ranges: true,
        reverse: what.contains("reverse"),
        ..Operators::default()
    };
    fill(&rocks, what.len() as u64, 6000, operators);
    drop(rocks);
    there_and_back(dir.path(), &options, what);
}

/// Styles that keep everything in L0: we read and write on, but once we compacted, RocksDB would
/// need the number of levels.
#[test]
fn styles_without_levels_are_read_and_written_on() {
    for more in [
        "compaction_style=kCompactionStyleUniversal;num_levels=1",
        "compaction_style=kCompactionStyleFIFO",
    ] {
        let dir = temp_dir();
        let options = format!("{BASE};{more}");
        let rocks = Rocks::open_default(dir.path(), &options).unwrap();
        fill(&rocks, 7, 3000, Operators::default());
        let want = rocks.rows("default");
        drop(rocks);
        let mut ours = small();
        ours.compaction_style = CompactionStyle::Manual;
        let db = Db::open(dir.path(), ours).unwrap();
        check_ours(&db, db.default_family(), &want, more);
        db.put(b"ours", b"1").unwrap();
        db.close().unwrap();
        let rocks = Rocks::open_default(dir.path(), &options).unwrap();
        assert_eq!(
            rocks.get("default", b"ours").as_deref(),
            Some(&b"1"[..]),
            "{more}"
        );
        drop(rocks);
        let db = Db::open(dir.path(), small()).unwrap();
        db.compact_range(db.default_family(), None, None).unwrap();
        assert_eq!(
            ours_rows(&db, db.default_family()).len(),
            want.len() + 1,
            "{more}"
        );
    }
}
