//! Goal: RocksDB 7.8, as a library and through its tools, reads every row that we write under any of
//! our options, and we read again the rows that it then writes and compacts. Method: one shape of
//! database a test, made by random operations, through the whole round.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use drumlin::{
    ChecksumKind, Codec, Comparator, Compression, Db, FamilyOptions, FixedPrefix, KeyOrder,
    Options, ReadOptions, StringAppend, Tuning, UInt64Add, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

/// Writes random operations, with a flush now and then and one compaction in the middle.
fn fill(db: &Db, seed: u64, ops: usize, operators: Operators) {
    let mut rng = Rng::new(seed);
    for at in 0..ops {
        apply_ours(
            db,
            db.default_family(),
            &random_op(&mut rng, 2000, operators),
        );
        if at == ops / 2 {
            db.compact_range(db.default_family(), None, None).unwrap();
        } else if at % 900 == 899 && at < ops - 900 {
            db.flush().unwrap();
        }
    }
}

/// RocksDB's library and tools read `want` in `dir`, write and compact; then we read again.
#[track_caller]
fn round(dir: &Path, want: &Rows, family_options: &str, what: &str) {
    assert_rows(
        &format!("{what}, ldb scan"),
        &ldb_scan(dir, "default"),
        want,
    );
    ldb(dir, &["checkconsistency", "--try_load_options"]).ok();
    let has_tables = std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        path.extension().is_some_and(|kind| kind == "sst")
    });
    if has_tables {
        let verified = sst_dump(dir, &["--command=verify"]).ok();
        assert!(!verified.contains("Corruption"), "{what}: {verified}");
    }
    let options = format!("paranoid_checks=true;{family_options}");
    let rocks = Rocks::open_default(dir, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_rows(&format!("{what}, RocksDB"), &rocks.rows("default"), want);
    let mut backward = rocks.rows_backward("default");
    backward.reverse();
    assert_rows(&format!("{what}, RocksDB, backward"), &backward, want);
    for (key, value) in want.iter().step_by(3) {
        assert_eq!(rocks.get("default", key).as_ref(), Some(value), "{what}");
        let absent = [key, &b"\0"[..]].concat();
        let there = want.iter().any(|(key, _)| *key == absent);
        assert!(there || rocks.get("default", &absent).is_none(), "{what}");
    }
    for i in (0..2000).step_by(7) {
        rocks.put("default", &key(i), &value(i, 5));
        rocks.delete("default", &key(i + 3));
    }
    rocks.compact("default");
    rocks.put("default", &key(1), b"in the log");
    let want = rocks.rows("default");
    drop(rocks);
    let db = Db::open_all_families(dir, small()).unwrap_or_else(|e| panic!("{what}: {e}"));
    check_ours(
        &db,
        db.default_family(),
        &want,
        &format!("{what}, after RocksDB"),
    );
}

/// Makes a database under `options` and takes it through the round.
fn comes_through(what: &str, options: Options, operators: Operators, family_options: &str) {
    let dir = temp_dir();
    let db = Db::open(dir.path(), options).unwrap();
    fill(&db, what.len() as u64, 6000, operators);
    let want = ours_rows(&db, db.default_family());
    assert!(want.len() > 500, "{what}");
    db.close().unwrap();
    round(dir.path(), &want, family_options, what);
}

fn tuned(change: impl FnOnce(&mut Tuning)) -> Options {
    let mut options = small();
    change(&mut options.tuning);
    options
}

fn compressed(codec: Codec, dictionary_bytes: u32) -> Options {
    Options {
        compression: Compression {
            dictionary_bytes,
            ..Compression::new(codec)
        },
        ..small()
    }
}

const ALL: Operators = Operators {
    merges: false,
    ranges: true,
    reverse: false,
};

#[test]
fn every_codec_is_read() {
    for codec in [
        Codec::None,
        Codec::Snappy,
        Codec::Zlib,
        Codec::Bzip2,
        Codec::Lz4,
        Codec::Lz4Hc,
        Codec::Zstd,
    ] {
        comes_through(&format!("{codec:?}"), compressed(codec, 0), ALL, "");
    }
}

#[test]
fn dictionaries_are_read() {
    for codec in [Codec::Zlib, Codec::Lz4, Codec::Lz4Hc, Codec::Zstd] {
        comes_through(
            &format!("{codec:?} dictionary"),
            compressed(codec, 4096),
            ALL,
            "",
        );
    }
}

#[test]
fn checksums_are_read() {
    for checksum in [
        ChecksumKind::None,
        ChecksumKind::Crc32c,
        ChecksumKind::Xxh32,
        ChecksumKind::Xxh64,
        ChecksumKind::Xxh3,
    ] {
        let options = tuned(|tuning| tuning.checksum = checksum);
        comes_through(&format!("{checksum:?}"), options, ALL, "");
    }
}

#[test]
fn filters_are_honoured() {
    let filter = "block_based_table_factory={filter_policy=bloomfilter:10:false}";
    for bits in [0.0, 3.5, 10.0, 20.0, 50.0] {
        let options = tuned(|tuning| tuning.filter_bits = bits);
        comes_through(&format!("{bits} bits"), options, ALL, filter);
    }
}

#[test]
fn prefix_filters_are_honoured() {
    for whole_keys in [true, false] {
        let mut options = tuned(|tuning| tuning.whole_key_filter = whole_keys);
        options.family.prefix_extractor = Some(Arc::new(FixedPrefix::new(8)));
        let theirs = format!(
            "prefix_extractor=rocksdb.FixedPrefix.8;block_based_table_factory={{\
             filter_policy=bloomfilter:10:false;whole_key_filtering={whole_keys}}}"
        );
        comes_through(&format!("prefix, {whole_keys}"), options, ALL, &theirs);
    }
}

#[test]
fn partitioned_indexes_and_filters_are_read() {
    let theirs = "block_based_table_factory={filter_policy=bloomfilter:10:false;\
        index_type=kTwoLevelIndexSearch;partition_filters=true}";
    for block_bytes in [256, 4096] {
        let options = tuned(|tuning| {
            tuning.partition_above_bytes = 0;
            tuning.block_bytes = block_bytes;
            tuning.target_file_bytes = 1 << 20;
        });
        comes_through(&format!("partitions, {block_bytes}"), options, ALL, theirs);
    }
}

#[test]
fn block_shapes_are_read() {
    for (block_bytes, restart_interval) in [(64, 1), (300, 3), (1 << 16, 16), (4096, 128)] {
        let options = tuned(|tuning| {
            tuning.block_bytes = block_bytes;
            tuning.restart_interval = restart_interval;
        });
        comes_through(
            &format!("{block_bytes}, {restart_interval}"),
            options,
            ALL,
            "",
        );
    }
}

#[test]
fn the_reverse_order_is_read() {
    let mut options = small();
    options.family.order = KeyOrder::ReverseBytewise;
    let operators = Operators {
        reverse: true,
        ..ALL
    };
    comes_through(
        "reverse",
        options,
        operators,
        "comparator=rocksdb.ReverseBytewiseComparator",
    );
}

#[test]
fn merges_of_known_operators_are_read() {
    let operators = Operators {
        merges: true,
        ..ALL
    };
    let mut options = small();
    options.family.merge_operator = Some(Arc::new(UInt64Add));
    comes_through("sums", options, operators, "merge_operator=uint64add");
    let mut options = small();
    options.family.merge_operator = Some(Arc::new(StringAppend::new(";")));
    let theirs = "merge_operator={id=StringAppendOperator;delimiter={;}}";
    comes_through("texts", options, operators, theirs);
}

#[test]
fn a_wal_that_was_never_flushed_is_replayed() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let mut rng = Rng::new(9);
    for at in 0..5000 {
        apply_ours(&db, db.default_family(), &random_op(&mut rng, 2000, ALL));
        if at % 1000 == 0 {
            db.sync_wal().unwrap(); // Leaves a mark that RocksDB must pass over.
        }
    }
    // Records that span blocks, and one that is large.
    db.put(b"large", vec![7; 1 << 20]).unwrap();
    db.put(b"", b"").unwrap();
    let want = ours_rows(&db, db.default_family());
    // As a crash leaves it: copied while open, so nothing was closed or flushed.
    let copy = temp_dir();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name();
        std::fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
    }
    round(copy.path(), &want, "", "copied while open");
    db.close().unwrap();
    round(dir.path(), &want, "", "closed");
}

#[test]
fn recycled_wal_files_are_replayed_without_what_was_in_them_before() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small()).unwrap();
    let mut names: BTreeMap<u64, BTreeSet<OsString>> = BTreeMap::new();
    for generation in 0..12 {
        for i in 0..400 {
            db.put(key(i), value(i, generation)).unwrap();
        }
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let entry = entry.unwrap();
            if entry.path().extension().is_some_and(|kind| kind == "log")
                && let Ok(metadata) = entry.metadata()
            {
                names
                    .entry(metadata.ino())
                    .or_default()
                    .insert(entry.file_name());
            }
        }
        db.flush().unwrap();
    }
    let renamed = names.values().any(|names| names.len() > 1);
    assert!(renamed, "no file was recycled: {names:?}");
    db.put(b"last", b"in the log").unwrap();
    db.wait_for_background().unwrap(); // Nothing may go while it is copied.
    let want = ours_rows(&db, db.default_family());
    let copy = temp_dir();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name();
        std::fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
    }
    drop(db);
    round(copy.path(), &want, "", "recycled");
}

#[test]
fn families_are_read() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small()).unwrap();
    let reverse = FamilyOptions {
        order: KeyOrder::ReverseBytewise,
        ..FamilyOptions::default()
    };
    let sums = FamilyOptions {
        merge_operator: Some(Arc::new(UInt64Add)),
        ..FamilyOptions::default()
    };
    let zstd = FamilyOptions {
        compression: Some(Compression::new(Codec::Zstd)),
        ..FamilyOptions::default()
    };
    db.create_family("dropped", FamilyOptions::default())
        .unwrap();
    db.create_family("backwards", reverse).unwrap();
    db.create_family("sums", sums).unwrap();
    db.create_family("odd # name: \\ é", zstd).unwrap();
    db.create_family("empty", FamilyOptions::default()).unwrap();
    let mut rng = Rng::new(4);
    for at in 0..4000 {
        for family in db.families() {
            if family.name() == "empty" {
                continue;
            }
            let merges = family.name() == "sums";
            let op = random_op(
                &mut rng,
                500,
                Operators {
                    merges,
                    ..Operators::default()
                },
            );
            apply_ours(&db, &family, &op);
        }
        if at == 1500 {
            db.flush().unwrap();
            db.drop_family(&db.column_family("dropped").unwrap())
                .unwrap();
        }
    }
    let wants: Vec<(String, Rows)> = db
        .families()
        .iter()
        .map(|family| (family.name().to_owned(), ours_rows(&db, family)))
        .collect();
    db.close().unwrap();
    let mut theirs = Vec::new();
    for (name, want) in &wants {
        assert_rows(&format!("ldb, {name}"), &ldb_scan(dir.path(), name), want);
        theirs.push((
            name.as_str(),
            match name.as_str() {
                "backwards" => "comparator=rocksdb.ReverseBytewiseComparator",
                "sums" => "merge_operator=uint64add",
                _ => "",
            },
        ));
    }
    let rocks = Rocks::open(dir.path(), "", &theirs).unwrap();
    for (name, want) in &wants {
        assert_rows(&format!("RocksDB, {name}"), &rocks.rows(name), want);
        rocks.compact(name);
    }
    drop(rocks);
    let db = Db::open_all_families(dir.path(), small()).unwrap();
    for (name, want) in &wants {
        check_ours(&db, &db.column_family(name).unwrap(), want, name);
    }
}

#[test]
fn odd_keys_and_values_are_read() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small()).unwrap();
    let mut rng = Rng::new(12);
    db.put(b"", b"the empty key").unwrap();
    db.put(b"\0", b"").unwrap();
    db.put(b"\xff\xff\xff\xff", b"\xff").unwrap();
    for i in 0..300 {
        let mut value = vec![0; rng.below(3) as usize * 30_000 + i];
        rng.fill(&mut value);
        let mut key = vec![0; rng.below(300) as usize];
        rng.fill(&mut key);
        db.put(&key, &value).unwrap();
        db.put(vec![b'k'; i], b"").unwrap();
    }
    db.put(b"large", vec![5; 1 << 20]).unwrap();
    let once = WriteOptions::default();
    for i in 0..100 {
        db.put(key(i), b"once").unwrap();
        if i % 10 == 0 {
            db.flush().unwrap();
        }
        if i % 2 == 0 {
            db.single_delete_cf(db.default_family(), key(i), &once)
                .unwrap();
        }
    }
    let want = ours_rows(&db, db.default_family());
    db.close().unwrap();
    round(dir.path(), &want, "", "odd");
}

#[test]
fn db_bench_runs_on_what_we_wrote() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small()).unwrap();
    // db_bench's keys: 16 bytes, the number big-endian first, filled with '0'.
    for i in 0..5000u64 {
        let key = [&i.to_be_bytes()[..], b"00000000"].concat();
        db.put(key, value(i as usize, 1)).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let run = ["--use_existing_db=1", "--num=5000", "--seed=1"];
    let reads = "--benchmarks=readrandom,readseq,multireadrandom,seekrandom";
    let said = db_bench(dir.path(), &[&run[..], &[reads]].concat()).ok();
    assert!(said.contains("(5000 of 5000 found)"), "{said}");
    db_bench(
        dir.path(),
        &[&run[..], &["--benchmarks=overwrite,compact,verifychecksum"]].concat(),
    )
    .ok();
    let rocks = Rocks::open_default(dir.path(), "").unwrap();
    let want = rocks.rows("default");
    drop(rocks);
    check_ours_in(dir.path(), &want, "after db_bench");
}

/// Shortest first, then bytewise: an order RocksDB's tools do not know.
struct ShortFirst;

impl Comparator for ShortFirst {
    fn name(&self) -> &str {
        "interop.ShortFirst"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

#[test]
fn another_order_is_refused_by_either_side() {
    let dir = temp_dir();
    let mut options = small();
    options.family.order = KeyOrder::Custom(Arc::new(ShortFirst));
    let db = Db::open(dir.path(), options.clone()).unwrap();
    for (key, value) in numbered(500, 1) {
        db.put(key, value).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let error = Rocks::open_default(dir.path(), "").unwrap_err();
    assert!(error.contains("interop.ShortFirst"), "{error}");
    let error = Db::open_all_families(dir.path(), small())
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("interop.ShortFirst"), "{error}");
    let db = Db::open_all_families(dir.path(), options).unwrap();
    let mut iterator = db.iter(ReadOptions::default());
    iterator.seek_to_first();
    assert!(iterator.valid());
}
