//! Goal: we read RocksDB's directories with more than puts (families, merges, ingested tables,
//! unlogged writes, its benchmark's databases), and refuse by name features that we cannot read
//! faithfully. Method: RocksDB through its C library and `db_bench` makes a directory, we read it (or
//! must not).

use std::path::Path;

use drumlin::{Db, Env, ErrorKind, Options, SstFileWriter, TableWriterOptions};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const NEW: &str = "create_if_missing=true;create_missing_column_families=true";

/// Opening `dir` must fail with `NotSupported` and say `word`, and change nothing.
#[track_caller]
fn refused(dir: &Path, word: &str) {
    let listing = || {
        let entries = std::fs::read_dir(dir).expect("the directory can be listed");
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = listing();
    for read_only in [true, false] {
        let opened = match read_only {
            true => Db::open_read_only(dir, small()),
            false => Db::open_all_families(dir, small()),
        };
        let error = opened.map(|db| format!("{} rows", ours_rows(&db, db.default_family()).len()));
        let error = error.expect_err("what cannot be read faithfully is refused");
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(listing(), before, "a refused directory is left as it was");
}

#[test]
fn families_each_with_their_own_options_are_read() {
    let dir = temp_dir();
    let families: Families<'_> = &[
        ("default", ""),
        ("zstd", "compression=kZSTD"),
        ("backwards", "comparator=rocksdb.ReverseBytewiseComparator"),
        ("sums", "merge_operator=uint64add"),
        (
            "texts",
            "merge_operator={id=StringAppendOperator;delimiter={;}}",
        ),
        ("odd # name: \\ é", ""),
        ("empty", ""),
    ];
    let rocks = Rocks::open(dir.path(), NEW, families).unwrap();
    let mut rng = Rng::new(3);
    for step in 0..3000 {
        for (name, _) in &families[..6] {
            let merges = matches!(*name, "sums" | "texts");
            let op = random_op(
                &mut rng,
                300,
                Operators {
                    merges,
                    ..Operators::default()
                },
            );
            apply_rocks(&rocks, name, &op);
        }
        if step % 800 == 799 {
            rocks.flush("sums");
            rocks.flush("backwards");
        }
        if step == 2000 {
            rocks.compact("texts");
        }
    }
    let want: Vec<_> = families.iter().map(|(name, _)| rocks.rows(name)).collect();
    drop(rocks);
    let names = Db::list_families(dir.path(), &Env::system()).unwrap();
    assert_eq!(
        names,
        families.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
    for _ in 0..2 {
        let db = Db::open_all_families(dir.path(), small()).unwrap();
        for ((name, _), want) in families.iter().zip(&want) {
            check_ours(&db, &db.column_family(name).unwrap(), want, name);
        }
        db.flush().unwrap();
        for ((name, _), want) in families.iter().zip(&want) {
            let family = db.column_family(name).unwrap();
            db.compact_range(&family, None, None).unwrap();
            check_ours(&db, &family, want, name);
        }
        db.close().unwrap();
    }
    // RocksDB's own tools must get the same rows with our OPTIONS file.
    for ((name, _), want) in families.iter().zip(&want) {
        assert_rows(&format!("ldb, {name}"), &ldb_scan(dir.path(), name), want);
    }
    let rocks = Rocks::open(dir.path(), "", families).unwrap();
    for ((name, _), want) in families.iter().zip(&want) {
        assert_rows(&format!("RocksDB, {name}"), &rocks.rows(name), want);
    }
}

#[test]
fn merges_that_rocksdb_left_in_tables_and_wal_are_combined_alike() {
    for operator in ["uint64add", "stringappend", "stringappendtest"] {
        let dir = temp_dir();
        let options = format!("{NEW};merge_operator={operator};disable_auto_compactions=true");
        let rocks = Rocks::open_default(dir.path(), &options).unwrap();
        let mut rng = Rng::new(17);
        for step in 0..4000 {
            let operators = Operators {
                merges: true,
                ranges: true,
                ..Operators::default()
            };
            apply_rocks(&rocks, "default", &random_op(&mut rng, 200, operators));
            if step % 900 == 0 {
                rocks.flush("default");
            }
        }
        // Operands and values that are no numbers.
        rocks.put("default", b"odd", b"seven b");
        rocks.merge("default", b"odd", b"more");
        rocks.merge("default", b"alone", b"");
        let want = rocks.rows("default");
        drop(rocks);
        let db = Db::open(dir.path(), small()).unwrap();
        check_ours(&db, db.default_family(), &want, operator);
        db.flush().unwrap();
        db.compact_range(db.default_family(), None, None).unwrap();
        check_ours(&db, db.default_family(), &want, operator);
    }
}

#[test]
fn writes_that_skipped_the_wal_are_there_once_flushed() {
    let dir = temp_dir();
    let mut rocks = Rocks::open_default(dir.path(), NEW).unwrap();
    rocks.skip_wal(true);
    for (key, value) in numbered(2000, 1) {
        rocks.put("default", &key, &value);
    }
    rocks.flush("default");
    rocks.skip_wal(false);
    rocks.put("default", b"logged", b"1");
    let want = rocks.rows("default");
    drop(rocks);
    check_ours_in(dir.path(), &want, "unlogged");
}

#[test]
fn tables_that_rocksdb_ingested_hold_their_place_in_time() {
    for write_seqno in ["", ";allow_ingest_behind=true"] {
        let dir = temp_dir();
        let files = temp_dir();
        let rocks = Rocks::open_default(dir.path(), &format!("{NEW}{write_seqno}")).unwrap();
        for (key, value) in numbered(500, 1) {
            rocks.put("default", &key, &value);
        }
        rocks.flush("default");
        for (part, step) in [(0, 2), (1, 3)] {
            let path = files.path().join(format!("{part}.sst"));
            let mut writer =
                RocksSstWriter::create(&path, "compression=kSnappyCompression").unwrap();
            for i in (0..700).step_by(step) {
                match i % 5 {
                    0 => writer.delete(&key(i)),
                    _ => writer.put(&key(i), &value(i, 2 + part)),
                }
            }
            if part == 1 {
                writer.delete_range(&key(100), &key(150));
            }
            writer.finish();
            rocks.ingest("default", &[&path]).unwrap();
            rocks.put("default", &key(part), b"after");
        }
        let want = rocks.rows("default");
        assert!(want.len() > 300);
        drop(rocks);
        let db = check_ours_in(dir.path(), &want, "ingested");
        db.compact_range(db.default_family(), None, None).unwrap();
        check_ours(&db, db.default_family(), &want, "ingested, compacted");
    }
}

#[test]
fn a_checkpoint_of_rocksdb_is_read() {
    let (dir, copies) = (temp_dir(), temp_dir());
    let rocks = Rocks::open_default(dir.path(), NEW).unwrap();
    for (key, value) in numbered(3000, 1) {
        rocks.put("default", &key, &value);
    }
    rocks.flush("default");
    rocks.put("default", b"in the log", b"1");
    let copy = copies.path().join("copy");
    rocks.checkpoint(&copy);
    rocks.put("default", b"later", b"1");
    let mut want = rocks.rows("default");
    want.retain(|(key, _)| key != b"later");
    check_ours_in(&copy, &want, "checkpoint");
}

#[test]
fn external_tables_of_either_side_are_taken_in_by_the_other() {
    const BEFORE: [usize; 10] = [1099, 1100, 1149, 1299, 1300, 1509, 1510, 2000, 3009, 3010];
    let (dir, files) = (temp_dir(), temp_dir());
    let theirs = files.path().join("theirs.sst");
    let mut writer = RocksSstWriter::create(&theirs, "compression=kZSTD").unwrap();
    for (key, value) in numbered(1000, 1) {
        writer.put(&key, &value);
    }
    // In no order, one in another, and two of one begin.
    for (begin, end) in [(3000, 3010), (1100, 1300), (1200, 1250), (1100, 1150)] {
        writer.delete_range(&key(begin), &key(end));
    }
    writer.finish();
    let ours = files.path().join("ours.sst");
    let env = Env::system();
    let mut writer = SstFileWriter::create(&env, &ours, TableWriterOptions::default()).unwrap();
    for i in (0..1000).step_by(2) {
        match i % 4 {
            0 => writer.delete(&key(i)).unwrap(),
            _ => writer.put(&key(i), &value(i, 2)).unwrap(),
        }
    }
    for (begin, end) in [(1500, 1510), (700, 720), (710, 740), (2000, 2001)] {
        writer.delete_range(&key(begin), &key(end)).unwrap();
    }
    writer.finish().unwrap();
    sst_dump(&ours, &["--command=verify"]).ok();

    let ours_dir = dir.path().join("ours");
    let db = Db::open(&ours_dir, Options::default()).unwrap();
    db.put(key(5), "before").unwrap();
    for number in BEFORE {
        db.put(key(number), "covered, or not").unwrap();
    }
    db.ingest(db.default_family(), &[theirs.clone(), ours.clone()], false)
        .unwrap();
    db.put(key(7), "after").unwrap();
    let got = ours_rows(&db, db.default_family());
    db.close().unwrap();

    let rocks_dir = dir.path().join("theirs");
    let rocks = Rocks::open_default(&rocks_dir, NEW).unwrap();
    rocks.put("default", &key(5), b"before");
    for number in BEFORE {
        rocks.put("default", &key(number), b"covered, or not");
    }
    rocks.ingest("default", &[&theirs]).unwrap();
    rocks.ingest("default", &[&ours]).unwrap();
    rocks.put("default", &key(7), b"after");
    let want = rocks.rows("default");
    assert_eq!(want.len(), 750 - 20 + 4);
    drop(rocks);
    assert_rows("ours", &got, &want);
    let rocks = Rocks::open_default(&ours_dir, "").unwrap();
    assert_rows("ours, by RocksDB", &rocks.rows("default"), &want);
    rocks.compact("default");
    assert_rows("ours, compacted by RocksDB", &rocks.rows("default"), &want);
    check_ours_in(&rocks_dir, &want, "theirs, by us");
}

#[test]
fn plain_and_cuckoo_tables_are_refused_by_name() {
    for (factory, more) in [
        ("PlainTable", "prefix_extractor=rocksdb.FixedPrefix.4"),
        ("CuckooTable", ""),
    ] {
        let dir = temp_dir();
        let options = format!("{NEW};allow_mmap_reads=true;table_factory={factory};{more}");
        let Ok(rocks) = Rocks::open_default(dir.path(), &options) else {
            panic!("RocksDB opens with {factory}");
        };
        rocks.put("default", b"some key", b"1");
        rocks.flush("default");
        drop(rocks);
        refused(dir.path(), &factory.to_lowercase().replace("table", ""));
    }
}

#[test]
fn compressed_wals_are_refused_by_name() {
    let dir = temp_dir();
    let rocks = Rocks::open_default(dir.path(), &format!("{NEW};wal_compression=kZSTD")).unwrap();
    for (key, value) in numbered(1000, 1) {
        rocks.put("default", &key, &value);
    }
    drop(rocks);
    refused(dir.path(), "compress");
}

#[test]
fn databases_of_db_bench_are_read() {
    for (benchmarks, more) in [
        ("fillseq", &["--compression_type=zstd"][..]),
        (
            "fillrandom,overwrite,deleterandom",
            &["--bloom_bits=10", "--compression_type=snappy"],
        ),
        (
            "fillrandom,compact,overwrite",
            &["--format_version=4", "--compression_type=lz4"],
        ),
        (
            "filluniquerandom",
            &["--partition_index_and_filters=true", "--bloom_bits=10"],
        ),
        (
            "fillbatch,deleteseq,fillrandom",
            &["--compaction_style=1", "--compression_type=none"],
        ),
        (
            "fillrandom,updaterandom",
            &["--num_column_families=4", "--compression_type=zlib"],
        ),
        (
            "mergerandom,readrandommergerandom",
            &["--merge_operator=uint64add", "--value_size=8"],
        ),
        (
            "fillrandom,appendrandom,mergerandom",
            &["--merge_operator=stringappend"],
        ),
        (
            "fillrandom,overwrite",
            &[
                "--range_tombstone_width=20",
                "--writes_per_range_tombstone=50",
            ],
        ),
    ] {
        let dir = temp_dir();
        let list = format!("--benchmarks={benchmarks}");
        let common = [
            "--num=6000",
            "--write_buffer_size=131072",
            "--target_file_size_base=131072",
            "--max_bytes_for_level_base=262144",
            "--sync=false",
            "--seed=5",
            &list,
        ];
        db_bench(dir.path(), &[&common[..], more].concat()).ok();
        let names = Db::list_families(dir.path(), &Env::system()).unwrap();
        let merge = match more
            .iter()
            .find_map(|text| text.strip_prefix("--merge_operator="))
        {
            Some(operator) => format!("merge_operator={operator}"),
            None => String::new(),
        };
        let families: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), merge.as_str()))
            .collect();
        let rocks = Rocks::open(dir.path(), "", &families).unwrap();
        let want: Vec<_> = names.iter().map(|name| rocks.rows(name)).collect();
        drop(rocks);
        let db = Db::open_all_families(dir.path(), small()).unwrap();
        for (name, want) in names.iter().zip(&want) {
            check_ours(&db, &db.column_family(name).unwrap(), want, benchmarks);
        }
        assert!(want.iter().all(|rows| !rows.is_empty()), "{benchmarks}");
        db.close().unwrap();
        let common = [
            "--use_existing_db=1",
            "--benchmarks=readrandom,readseq",
            "--num=1000",
        ];
        let families = format!("--num_column_families={}", names.len());
        db_bench(dir.path(), &[&common[..], &[&families], more].concat()).ok();
    }
}
