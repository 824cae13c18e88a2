//! Goal: values that RocksDB 7.8 keeps in blob files are read by us row for row, after any operations
//! of it, and survive our writes and compactions; it reads, dumps and collects ours. Method: RocksDB
//! through its C library, `ldb` and `db_bench` makes a directory, or we do; every way of reading is
//! compared with the other's walk; each writes and compacts the other's directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{Codec, Compression, Db, Env, ReadOptions, StringAppend, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const BASE: &str = "create_if_missing=true;create_missing_column_families=true;\
    write_buffer_size=262144;target_file_size_base=65536;max_bytes_for_level_base=131072;\
    enable_blob_files=true;min_blob_size=100;blob_file_size=200000";
const COLLECTED: &str = "enable_blob_garbage_collection=true;\
    blob_garbage_collection_age_cutoff=0.6;blob_garbage_collection_force_threshold=0.5";
const APPEND: &str = "merge_operator={id=StringAppendOperator;delimiter={;}}";
const KEYS: u64 = 500;

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
    stored_as_they_are: "",
    snappy: "blob_compression_type=kSnappyCompression",
    lz4: "blob_compression_type=kLZ4Compression",
    lz4hc: "blob_compression_type=kLZ4HCCompression",
    zlib: "blob_compression_type=kZlibCompression",
    bzip2: "blob_compression_type=kBZip2Compression",
    zstd: "blob_compression_type=kZSTD",
    every_value: "min_blob_size=0",
    from_the_second_level_on: "blob_file_starting_level=2",
    reverse_order: "comparator=rocksdb.ReverseBytewiseComparator",
    universal: "compaction_style=kCompactionStyleUniversal",
    checksummed_files: "file_checksum_gen_factory=FileChecksumGenCrc32cFactory",
}

fn blob_files(dir: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().path());
    names
        .filter(|path| path.extension().is_some_and(|end| end == "blob"))
        .collect()
}

fn random_value(rng: &mut Rng) -> Vec<u8> {
    let mut value = dull_value(rng);
    let noise = rng.below(value.len() as u64 + 1) as usize;
    rng.fill(&mut value[..noise]);
    value
}

/// A value that every codec makes shorter: RocksDB's bzip2 fails a flush with any other.
fn dull_value(rng: &mut Rng) -> Vec<u8> {
    let len = [20, 300, 4000, 20_000][rng.below(4) as usize];
    vec![b'v'; rng.below(len) as usize]
}

/// Puts, deletions, merges onto blobs, flushes and compactions.
fn fill(rocks: &Rocks, seed: u64, steps: usize, a_value: fn(&mut Rng) -> Vec<u8>) {
    let mut rng = Rng::new(seed);
    for step in 0..steps {
        let key = key(rng.below(KEYS) as usize);
        match rng.below(10) {
            0 => rocks.delete("default", &key),
            1 | 2 => rocks.merge("default", &key, b"operand"),
            _ => rocks.put("default", &key, &a_value(&mut rng)),
        }
        if step == steps / 3 {
            rocks.compact("default");
        } else if step % 150 == 0 {
            rocks.flush("default");
        }
    }
}

fn comes_through(what: &str, more: &str) {
    let a_value = match what {
        "bzip2" => dull_value,
        _ => random_value,
    };
    for collected in ["", COLLECTED] {
        let what = &format!("{what}, {collected}");
        let dir = temp_dir();
        let options = format!("{BASE};{collected};{APPEND};{more}");
        let rocks = Rocks::open_default(dir.path(), &options);
        let rocks = rocks.unwrap_or_else(|error| panic!("{what}: {error}"));
        fill(&rocks, what.len() as u64, 1500, a_value);
        let want = rocks.rows("default");
        drop(rocks);
        assert!(!blob_files(dir.path()).is_empty(), "{what}");
        there_and_back(dir.path(), &options, &want, a_value);
    }
}

/// We read the rows of `dir`, write and compact, and RocksDB reads the result.
fn there_and_back(dir: &Path, options: &str, want: &Rows, a_value: fn(&mut Rng) -> Vec<u8>) {
    let what = options;
    let db = check_ours_in(dir, want, what);
    let (family, write) = (db.default_family().clone(), WriteOptions::default());
    let mut rng = Rng::new(5);
    for _ in 0..300 {
        let key = key(rng.below(KEYS) as usize);
        match rng.below(4) {
            0 => db.delete(key).unwrap(),
            1 => db.merge_cf(&family, key, b"ours", &write).unwrap(),
            _ => db.put(key, a_value(&mut rng)).unwrap(),
        }
    }
    let want = ours_rows(&db, &family);
    db.close().unwrap();
    let rocks = Rocks::open_default(dir, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let rows = rocks.rows("default");
    assert_rows(&format!("{what}, handed back"), &rows, &want);
    fill(&rocks, 6, 300, a_value);
    let want = rocks.rows("default");
    drop(rocks);
    let db = check_ours_in(dir, &want, &format!("{what}, again"));
    db.compact_range(&family_of(&db), None, None).unwrap();
    let compacted = format!("{what}, compacted by us");
    check_ours(&db, &family_of(&db), &want, &compacted);
    assert!(db.verify().unwrap().damaged.is_empty(), "{what}");
    db.close().unwrap();
    let rocks = Rocks::open_default(dir, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let rows = rocks.rows("default");
    assert_rows(&format!("{what}, compacted, handed back"), &rows, &want);
    rocks.compact("default");
    let rows = rocks.rows("default");
    assert_rows(&format!("{what}, compacted by both"), &rows, &want);
}

/// Puts, deletions, merges onto blobs, flushes and compactions, by us.
fn fill_ours(db: &Db, seed: u64, steps: usize) {
    let mut rng = Rng::new(seed);
    let (family, write) = (family_of(db), WriteOptions::default());
    for step in 0..steps {
        let key = key(rng.below(KEYS) as usize);
        match rng.below(10) {
            0 => db.delete(key).unwrap(),
            1 | 2 => db.merge_cf(&family, key, b"operand", &write).unwrap(),
            _ => db.put(key, random_value(&mut rng)).unwrap(),
        }
        if step == steps / 3 {
            db.compact_range(&family, None, None).unwrap();
        } else if step % 150 == 0 {
            db.flush().unwrap();
        }
    }
}

#[test]
fn rocksdb_reads_dumps_and_collects_the_blobs_we_write() {
    for codec in Codec::ALL {
        let what = &format!("{codec}");
        let dir = temp_dir();
        let mut options = small();
        options.compression = Compression::new(codec);
        options.tuning.blob_from_bytes = Some(100);
        options.family.merge_operator = Some(Arc::new(StringAppend::new(";")));
        let db = Db::open(dir.path(), options.clone()).unwrap();
        fill_ours(&db, 3, 2000);
        let want = ours_rows(&db, db.default_family());
        check_ours(&db, db.default_family(), &want, what);
        db.close().unwrap();
        assert!(blob_files(dir.path()).len() > 1, "{what}");
        assert_rows(what, &ldb_scan(dir.path(), "default"), &want);
        ldb(dir.path(), &["checkconsistency", "--try_load_options"]).ok();
        for path in blob_files(dir.path()) {
            let path = format!("--path={}", path.display());
            let dump = run("ldb", &["dump", &path, "--count_only"]);
            assert!(
                !dump.stderr.contains("Corruption"),
                "{what}: {}",
                dump.stderr
            );
        }
        let collected = format!("{BASE};{COLLECTED};{APPEND};paranoid_checks=true");
        let rocks = Rocks::open_default(dir.path(), &collected);
        let rocks = rocks.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_rows(what, &rocks.rows("default"), &want);
        fill(&rocks, 4, 600, dull_value);
        let want = rocks.rows("default");
        drop(rocks);
        let db = Db::open(dir.path(), options).unwrap();
        check_ours(&db, db.default_family(), &want, what);
        fill_ours(&db, 5, 500);
        db.compact_range(db.default_family(), None, None).unwrap();
        let verified = db.verify().unwrap();
        assert!(verified.damaged.is_empty(), "{what}: {verified:?}");
        let want = ours_rows(&db, db.default_family());
        db.close().unwrap();
        let rocks = Rocks::open_default(dir.path(), &collected).unwrap();
        assert_rows(what, &rocks.rows("default"), &want);
    }
}

fn family_of(db: &Db) -> drumlin::ColumnFamily {
    db.default_family().clone()
}

#[test]
fn snapshots_and_read_only_handles_see_blobs_that_were_overwritten_since() {
    let dir = temp_dir();
    let rocks = Rocks::open_default(dir.path(), &format!("{BASE};{APPEND}")).unwrap();
    for (key, value) in numbered(200, 1) {
        rocks.put("default", &key, &value.repeat(20));
    }
    rocks.flush("default");
    let want = rocks.rows("default");
    drop(rocks);
    assert!(!blob_files(dir.path()).is_empty());
    let read_only = Db::open_read_only(dir.path(), small()).unwrap();
    check_ours(&read_only, &family_of(&read_only), &want, "read-only");
    read_only.close().unwrap();
    let db = Db::open(dir.path(), small()).unwrap();
    let snapshot = db.snapshot();
    for (key, _) in &want {
        db.put(key, b"new").unwrap();
    }
    db.compact_range(&family_of(&db), None, None).unwrap();
    let options = ReadOptions {
        snapshot: Some(snapshot.clone()),
        ..ReadOptions::default()
    };
    for (key, value) in &want {
        let got = db.get_cf(&family_of(&db), key, &options).unwrap();
        assert_eq!(got.as_deref(), Some(&value[..]));
    }
    drop((options, snapshot));
    db.close().unwrap();
}

#[test]
fn families_find_their_own_blob_files() {
    let dir = temp_dir();
    let families: Families<'_> = &[
        ("default", "enable_blob_files=false"),
        ("lz4", "blob_compression_type=kLZ4Compression"),
        ("zstd", "blob_compression_type=kZSTD"),
    ];
    let rocks = Rocks::open(dir.path(), BASE, families).unwrap();
    let mut rng = Rng::new(9);
    for _ in 0..300 {
        for (name, _) in families {
            let key = key(rng.below(KEYS) as usize);
            rocks.put(name, &key, &random_value(&mut rng));
        }
    }
    rocks.flush_all();
    let want: Vec<_> = families.iter().map(|(name, _)| rocks.rows(name)).collect();
    drop(rocks);
    let db = Db::open_all_families(dir.path(), small()).unwrap();
    for ((name, _), want) in families.iter().zip(&want) {
        check_ours(&db, &db.column_family(name).unwrap(), want, name);
    }
    db.close().unwrap();
}

#[test]
fn databases_of_db_bench_with_blob_files_are_read() {
    for (benchmarks, more) in [
        ("fillseq", "--blob_compression_type=zstd"),
        (
            "fillrandom,overwrite",
            "--enable_blob_garbage_collection=true",
        ),
        (
            "fillrandom,deleterandom,overwrite,compact",
            "--blob_compression_type=lz4",
        ),
    ] {
        let dir = temp_dir();
        let list = format!("--benchmarks={benchmarks}");
        let common = [
            "--num=2000",
            "--value_size=1000",
            "--write_buffer_size=262144",
            "--enable_blob_files=1",
            "--min_blob_size=500",
            "--blob_file_size=500000",
            "--seed=5",
            &list,
        ];
        db_bench(dir.path(), &[&common[..], &[more]].concat()).ok();
        assert!(!blob_files(dir.path()).is_empty(), "{benchmarks}");
        let names = Db::list_families(dir.path(), &Env::system()).unwrap();
        assert_eq!(names, ["default"]);
        let rocks = Rocks::open_default(dir.path(), "").unwrap();
        let want = rocks.rows("default");
        drop(rocks);
        let db = check_ours_in(dir.path(), &want, benchmarks);
        db.close().unwrap();
    }
}
