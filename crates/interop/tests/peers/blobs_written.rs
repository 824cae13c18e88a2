//! Goal: RocksDB 7.8 takes over directories in which we keep large values apart: it reads, writes,
//! compacts and collects garbage, with blob files of its own or without, and we go on after it with
//! exact accounts. Method: random operations in turns, a map beside them; after each turn both
//! engines' rows, RocksDB's accounts against ours, and ours against a count over all tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use drumlin::{Codec, Compression, Db, FamilyOptions, Options, StringAppend, Tuning};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const BASE: &str = "write_buffer_size=131072;target_file_size_base=32768;\
    max_bytes_for_level_base=65536;force_consistency_checks=true;\
    merge_operator={id=StringAppendOperator;delimiter={,}}";
const KEYS: usize = 400;

fn options(codec: Codec) -> Options {
    Options {
        memory_budget: Some(64 << 20),
        compression: Compression::new(codec),
        family: FamilyOptions {
            merge_operator: Some(Arc::new(StringAppend::new(","))),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 16 << 10,
            level_base_bytes: Some(16 << 10),
            level_multiplier: 4,
            blob_from_bytes: Some(200),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// A change, half of the values large.
fn random_change(rng: &mut Rng) -> Op {
    let operators = Operators {
        ranges: true,
        ..Operators::default()
    };
    match random_op(rng, KEYS, operators) {
        Op::Put(key, _) if rng.one_in(2) => {
            let mut value = vec![b'v'; 200 + rng.below(2000) as usize];
            let noise = rng.below(value.len() as u64) as usize;
            rng.fill(&mut value[..noise]);
            Op::Put(key, value)
        }
        // Onto large values as well as small ones.
        Op::Put(key, _) if rng.one_in(4) => Op::Merge(key, b"operand".to_vec()),
        op => op,
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn apply(model: &mut Model, op: &Op) {
    match op {
        Op::Put(key, value) => drop(model.insert(key.clone(), value.clone())),
        Op::Delete(key) => drop(model.remove(key)),
        Op::Merge(key, operand) => match model.get_mut(key) {
            Some(value) => {
                value.push(b',');
                value.extend_from_slice(operand);
            }
            None => drop(model.insert(key.clone(), operand.clone())),
        },
        Op::DeleteRange(begin, end) => model.retain(|key, _| key < begin || key >= end),
    }
}

fn rows(model: &Model) -> Rows {
    model.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

const ACCOUNTS: [&str; 3] = [
    "rocksdb.num-blob-files",
    "rocksdb.total-blob-file-size",
    "rocksdb.live-blob-file-garbage-size",
];

fn our_turn(dir: &Path, codec: Codec, rng: &mut Rng, model: &mut Model, what: &str) -> Vec<String> {
    let db = Db::open(dir, options(codec)).unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let family = db.default_family().clone();
    check_ours(&db, &family, &rows(model), what);
    for _ in 0..600 {
        let op = random_change(rng);
        apply_ours(&db, &family, &op);
        apply(model, &op);
    }
    db.flush().unwrap();
    if rng.one_in(2) {
        db.compact_range(&family, None, None).unwrap();
    }
    db.wait_for_background().unwrap();
    check_ours(&db, &family, &rows(model), what);
    let damaged = db.verify().unwrap().damaged;
    assert!(damaged.is_empty(), "{what}: {damaged:?}");
    let accounts = ACCOUNTS.map(|name| db.property(&family, name).unwrap());
    db.close().unwrap();
    accounts.to_vec()
}

fn their_turn(dir: &Path, more: &str, rng: &mut Rng, model: &mut Model, ours: &[String]) {
    let before = ldb(dir, &["checkconsistency"]).ok();
    assert!(before.contains("OK"), "{more}: {before}");
    let rocks = Rocks::open_default(dir, &format!("{BASE};disable_auto_compactions=true;{more}"));
    let rocks = rocks.unwrap_or_else(|error| panic!("{more}: {error}"));
    let accounts = ACCOUNTS.map(|name| rocks.property(name).unwrap());
    assert_eq!(accounts, ours, "{more}: what RocksDB makes of our accounts");
    assert_rows(more, &rocks.rows("default"), &rows(model));
    drop(rocks);
    let rocks = Rocks::open_default(dir, &format!("{BASE};{more}")).unwrap();
    for _ in 0..300 {
        let op = random_change(rng);
        apply_rocks(&rocks, "default", &op);
        apply(model, &op);
    }
    if rng.one_in(2) {
        rocks.flush("default");
    }
    if rng.one_in(2) {
        rocks.compact("default");
    }
    assert_rows(more, &rocks.rows("default"), &rows(model));
}

/// Takes turns `rounds` times.
fn in_turns(name: &str, more: &str, codec: Codec) {
    for seed in 0..3 {
        let what = format!("{name}, seed {seed}");
        let dir = temp_dir();
        let mut rng = Rng::new(0xB10B + seed);
        let mut model = Model::new();
        for round in 0..4 {
            let what = format!("{what}, round {round}");
            let accounts = our_turn(dir.path(), codec, &mut rng, &mut model, &what);
            assert_ne!(accounts[0], "0", "{what}: there are blob files");
            their_turn(dir.path(), more, &mut rng, &mut model, &accounts);
        }
        our_turn(dir.path(), codec, &mut rng, &mut model, &what);
    }
}

#[test]
fn rocksdb_without_blob_files_of_its_own_takes_turns_with_us() {
    in_turns("no blobs", "", Codec::None);
}

#[test]
fn rocksdb_with_blob_files_takes_turns_with_us() {
    let more = "enable_blob_files=true;min_blob_size=100;blob_file_size=50000";
    in_turns("blobs", more, Codec::Lz4);
}

#[test]
fn rocksdb_collecting_garbage_takes_turns_with_us() {
    let more = "enable_blob_files=true;min_blob_size=100;blob_file_size=50000;\
        enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=0.7;\
        blob_garbage_collection_force_threshold=0.3;blob_compression_type=kZSTD";
    in_turns("collected", more, Codec::Lz4);
}

#[test]
fn rocksdb_returning_values_to_tables_takes_turns_with_us() {
    let more = "enable_blob_files=false;enable_blob_garbage_collection=true;\
        blob_garbage_collection_age_cutoff=1.0";
    in_turns("inlined", more, Codec::Zstd);
}

#[test]
fn the_tools_read_what_we_keep_apart() {
    let dir = temp_dir();
    let mut rng = Rng::new(3);
    let mut model = Model::new();
    our_turn(dir.path(), Codec::None, &mut rng, &mut model, "tools");
    // A value that no operand was added to: ldb is given no merge operator.
    let plain = |value: &Vec<u8>| value.len() > 300 && value.ends_with(b"v");
    let (key, value) = model.iter().find(|(_, value)| plain(value)).unwrap();
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02X}")).collect() };
    let got = ldb(dir.path(), &["get", "--hex", &format!("0x{}", hex(key))]).ok();
    assert_eq!(got.trim(), format!("0x{}", hex(value)));
}
