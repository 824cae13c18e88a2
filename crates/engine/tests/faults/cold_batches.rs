//! Goal: blocks that a batch of gets does not find in memory are read once and together, and a fault in one of
//! these reads gives no wrong data. Method: tables of both formats opened anew for each batch, reads
//! counted, a fault at every one of them.

use std::sync::Arc;

use drumlin::{Db, ErrorKind, PinnedSlice, ReadOptions, Result, TableFormat};
use drumlin_base::rng::Rng;
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, OpKind, StrictMemFileSystem};

use crate::support::{DIR, options};

const KEYS: u64 = 120;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Eight make a page or block.
fn value(number: u64) -> Vec<u8> {
    let mut value = vec![0; 480];
    Rng::new(number).fill(&mut value);
    value
}

fn open(files: &FaultFileSystem, format: TableFormat) -> Db {
    let mut options = options(Arc::new(files.clone()));
    options.family.table_format = Some(format);
    options.tuning.blob_from_bytes = None;
    options.tuning.target_file_bytes = 32 << 10;
    options.tuning.block_bytes = 4 << 10;
    Db::open(DIR, options).unwrap()
}

/// A disk with all keys in tables of `format`.
fn filled(format: TableFormat) -> FaultFileSystem {
    let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let db = open(&files, format);
    for number in 0..KEYS {
        db.put(key(number), value(number)).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    db.close().unwrap();
    files
}

/// The database with every table open and nothing of their data cached.
fn cold(files: &FaultFileSystem, format: TableFormat) -> Db {
    let db = open(files, format);
    // Absent keys between all others, so that every table is opened.
    let absent: Vec<Vec<u8>> = (0..KEYS).map(|n| [&key(n)[..], b"?"].concat()).collect();
    for answer in batch(&db, &absent) {
        assert!(answer.unwrap().is_none());
    }
    db
}

fn batch(db: &Db, keys: &[Vec<u8>]) -> Vec<Result<Option<PinnedSlice>>> {
    db.multi_get_cf(db.default_family(), keys, &ReadOptions::default())
}

fn reads(files: &FaultFileSystem) -> usize {
    let history = files.history();
    history.iter().filter(|(op, _)| *op == OpKind::Read).count()
}

#[test]
fn a_cold_batch_reads_each_page_once() {
    let files = filled(TableFormat::Searchable);
    let db = cold(&files, TableFormat::Searchable);
    let mut rng = Rng::new(3);
    let keys: Vec<Vec<u8>> = (0..100).map(|_| key(rng.below(KEYS))).collect();
    files.record_history();
    let answers = batch(&db, &keys);
    assert!(answers.into_iter().all(|answer| answer.unwrap().is_some()));
    let cold_reads = reads(&files);
    assert!(
        (10..=20).contains(&cold_reads),
        "{cold_reads} reads of 15 to 20 pages"
    );
    batch(&db, &keys);
    assert_eq!(reads(&files), cold_reads, "the pages are cached");
}

#[test]
fn a_fault_in_a_cold_batch_gives_no_wrong_data() {
    for format in [TableFormat::Block, TableFormat::Searchable] {
        let files = filled(format);
        let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
        for fault in [Fault::Io, Fault::FlippedBit, Fault::ShortRead] {
            for index in 0.. {
                let db = cold(&files, format);
                let before = files.injected();
                files.add_rule(FaultRule::once(index, fault).on(OpKind::Read));
                let answers = batch(&db, &keys);
                let struck = files.injected() > before;
                files.clear_rules();
                for (number, answer) in (0..).zip(answers) {
                    // A read that went wrong is done once more by the lookup that needs it.
                    let found = answer.unwrap();
                    assert_eq!(
                        found.as_deref(),
                        Some(&value(number)[..]),
                        "{format:?} {index}"
                    );
                }
                db.close().unwrap();
                if !struck {
                    assert!(index > 10, "{format:?}: only {index} reads");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_disk_that_fails_every_read_of_a_batch_is_told_by_each_key() {
    for format in [TableFormat::Block, TableFormat::Searchable] {
        let files = filled(format);
        let db = cold(&files, format);
        let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
        files.add_rule(FaultRule::always(Fault::Io).on(OpKind::Read));
        for answer in batch(&db, &keys) {
            assert_eq!(answer.expect_err("nothing is cached").kind(), ErrorKind::Io);
        }
        files.clear_rules();
        assert!(batch(&db, &keys).iter().all(Result::is_ok));
        db.close().unwrap();
    }
}
