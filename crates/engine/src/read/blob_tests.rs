//! Goal: a value in a blob file is read when it is asked for and not before; where it cannot be
//! read, no read gives anything else. Method: a family of one table whose values are all in one blob
//! file, on a disk that counts and fails.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::key::internal_key;
use drumlin_base::{Comparator, ErrorKind, KeyOrder, MemoryBudget, ValueKind};
use drumlin_fs::{
    CreateOptions, Env, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, OpKind,
    StrictMemFileSystem, SystemClock, ThreadSpawner,
};
use drumlin_memtable::Memtable;
use drumlin_table::blob::BlobWriter;
use drumlin_table::{BlockCache, Codec, Compression, ReadTier, TableReadOptions};
use drumlin_table::{TableWriter, TableWriterOptions};

use super::test_family::{get, multi_get, without_pool};
use super::{DbIterator, FamilyReads, IteratorOptions, ReadContext};
use crate::caches::blob_cache::BlobCache;
use crate::caches::table_cache::{TableCache, TableCacheOptions};
use crate::family::super_version::SuperVersion;
use crate::files::names;
use crate::version::{BlobFile, BlobFileAddition, FileMeta, NewFile, Version};

const DIR: &str = "/db";
const BLOB: u64 = 6;
const ROWS: u64 = 300;

struct Fixture {
    files: FaultFileSystem,
    context: Arc<FamilyReads>,
    super_version: Arc<SuperVersion>,
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:04}").into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    vec![b'a' + (n % 26) as u8; 2000 + n as usize]
}

fn fixture(codec: Codec) -> Fixture {
    ordered(codec, KeyOrder::Bytewise)
}

/// Keys 0 to `ROWS`, their values in blob file `BLOB`.
fn ordered(codec: Codec, order: KeyOrder) -> Fixture {
    let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let made = files.create_dir_all(Path::new(DIR));
    made.expect("memory takes a directory");
    let create = |path: &Path, kind| {
        let file = files.create(path, CreateOptions::new(kind));
        file.expect("memory takes a file")
    };
    let blob = create(&names::blob(Path::new(DIR), BLOB), FileKind::Blob);
    let blobs = BlobWriter::new(blob, BLOB, 0, Compression::new(codec));
    let mut blobs = blobs.expect("memory takes writes");
    let table = create(&names::table(Path::new(DIR), 5), FileKind::Table);
    let options = TableWriterOptions {
        order: order.clone(),
        ..TableWriterOptions::default()
    };
    let mut table = TableWriter::new(table, options);
    let internal = |n| internal_key(&key(n), 1 + n, ValueKind::BlobIndex);
    for n in 0..ROWS {
        let index = blobs.add(&key(n), &value(n)).expect("memory takes writes");
        let mut reference = Vec::new();
        index.encode(&mut reference);
        table.add(&internal(n), &reference).expect("keys ascend");
    }
    let (info, finished) = (blobs.finish(), table.finish());
    let (info, finished) = (info.expect("written"), finished.expect("written"));
    let file = FileMeta::new(NewFile {
        number: 5,
        size: finished.size,
        smallest: internal(0),
        largest: internal(ROWS - 1),
        oldest_blob_file: BLOB,
        ..NewFile::default()
    });
    let addition = BlobFileAddition::from(info);
    let blob = BlobFile {
        addition: addition.into(),
        ..BlobFile::default()
    };
    let mut levels: [Vec<Arc<FileMeta>>; 7] = Default::default();
    levels[1].push(Arc::new(file));
    let version = Version::new(&order, levels).with_blobs([(BLOB, blob)].into());
    let memtable = Arc::new(Memtable::new(order.clone()));
    let budget = MemoryBudget::new(64 << 20);
    let env = Env {
        files: Arc::new(files.clone()),
        clock: Arc::new(SystemClock::new()),
        spawner: Arc::new(ThreadSpawner),
        seed: 1,
    };
    let context = ReadContext {
        ttl: None,
        merge_operator: None,
        in_memory: true,
        prefix: None,
        blobs: BlobCache::new(Arc::clone(&env.files), PathBuf::from(DIR), 100),
        tables: TableCache::new(TableCacheOptions {
            env,
            dir: PathBuf::from(DIR),
            blocks: BlockCache::new(Arc::clone(&budget)),
            budget,
            models: None,
            open_max: 100,
        })
        .for_family(order.clone(), None),
        order,
    };
    files.record_history();
    Fixture {
        files,
        context: without_pool(context),
        super_version: SuperVersion::new(memtable, Vec::new(), Arc::new(version), 1),
    }
}

impl Fixture {
    fn iter(&self, table: TableReadOptions) -> DbIterator {
        let options = IteratorOptions {
            lower_bound: None,
            upper_bound: None,
            prefix_same_as_start: false,
            table,
        };
        let (context, super_version) = (Arc::clone(&self.context), Arc::clone(&self.super_version));
        DbIterator::new(context, super_version, ROWS + 1, options)
    }

    fn get(&self, n: u64) -> drumlin_base::Result<Option<drumlin_base::PinnedSlice>> {
        let options = TableReadOptions::default();
        get(
            &self.super_version,
            &self.context,
            &key(n),
            ROWS + 1,
            &options,
        )
    }

    /// Operations on the blob file so far.
    fn blob_operations(&self) -> usize {
        let path = names::blob(Path::new(DIR), BLOB);
        let history = self.files.history();
        history.iter().filter(|(_, on)| *on == path).count()
    }

    fn fail_blob_reads(&self, fault: Fault) {
        let rule = FaultRule::always(fault).on(OpKind::Read);
        self.files.add_rule(rule.of_path(".blob"));
    }
}

#[test]
fn a_walk_over_keys_touches_no_blob_file() {
    let fixture = fixture(Codec::None);
    let mut iter = fixture.iter(TableReadOptions::default());
    let mut seen = 0;
    iter.seek_to_first();
    while iter.valid() {
        assert_eq!(iter.key(), key(seen));
        seen += 1;
        iter.next();
    }
    iter.seek_to_last();
    while iter.valid() {
        seen -= 1;
        assert_eq!(iter.key(), key(seen));
        iter.prev();
    }
    iter.status().unwrap();
    assert_eq!(fixture.blob_operations(), 0);
}

#[test]
fn a_get_costs_one_read_of_the_blob_file() {
    for codec in [Codec::None, Codec::Lz4] {
        let fixture = fixture(codec);
        fixture.get(0).unwrap();
        let before = fixture.blob_operations();
        for n in [7, 250, 8] {
            assert_eq!(fixture.get(n).unwrap().unwrap(), value(n)[..]);
        }
        assert_eq!(fixture.blob_operations() - before, 3);
    }
}

#[test]
fn a_walk_over_values_reads_ahead_in_both_directions() {
    for codec in [Codec::None, Codec::Zstd] {
        let fixture = fixture(codec);
        let mut iter = fixture.iter(TableReadOptions::default());
        iter.seek_to_first();
        for n in 0..ROWS {
            assert_eq!(iter.value(), value(n));
            assert_eq!(iter.pin_value(), value(n)[..]);
            assert_eq!(iter.try_value().unwrap(), value(n));
            iter.next();
        }
        iter.seek_to_last();
        for n in (0..ROWS).rev() {
            assert_eq!(iter.value(), value(n));
            iter.prev();
        }
        iter.status().unwrap();
        let operations = fixture.blob_operations();
        assert!(operations < ROWS as usize / 5, "{operations} operations");
    }
}

#[test]
fn many_keys_at_once_read_neighbours_together() {
    let fixture = fixture(Codec::None);
    let keys: Vec<_> = (0..ROWS).rev().map(key).collect();
    let options = TableReadOptions::default();
    let many = multi_get(
        &fixture.super_version,
        &fixture.context,
        &keys,
        ROWS + 1,
        &options,
    );
    for (n, answer) in (0..ROWS).rev().zip(many) {
        assert_eq!(answer.unwrap().unwrap(), value(n)[..]);
    }
    let operations = fixture.blob_operations();
    assert!(operations < 20, "{operations} operations");
}

#[test]
fn a_blob_that_cannot_be_read_fails_the_read_and_ends_the_walk() {
    for fault in [Fault::Io, Fault::FlippedBit, Fault::ShortRead] {
        let fixture = fixture(Codec::None);
        fixture.get(0).unwrap(); // It is open from here on.
        fixture.fail_blob_reads(fault);
        let kind = match fault {
            Fault::Io => ErrorKind::Io,
            _ => ErrorKind::Corruption,
        };
        assert_eq!(fixture.get(3).unwrap_err().kind(), kind);
        let options = TableReadOptions::default();
        let keys = [key(3), b"nothing".to_vec(), key(200)]; // Not neighbours.
        let many = multi_get(
            &fixture.super_version,
            &fixture.context,
            &keys,
            ROWS + 1,
            &options,
        );
        assert!(many[1].as_ref().unwrap().is_none());
        for n in [0, 2] {
            assert_eq!(many[n].as_ref().unwrap_err().kind(), kind);
        }
        for backward in [false, true] {
            let mut iter = fixture.iter(TableReadOptions::default());
            if backward {
                iter.seek_to_last()
            } else {
                iter.seek_to_first()
            }
            iter.status().unwrap();
            assert_eq!(iter.try_value().unwrap_err().kind(), kind);
            assert!(iter.valid() && iter.value().is_empty());
            assert_eq!(iter.status().unwrap_err().kind(), kind);
            if backward {
                iter.prev()
            } else {
                iter.next()
            }
            assert!(!iter.valid());
            assert_eq!(iter.status().unwrap_err().kind(), kind);
            // A new position is a new walk.
            fixture.files.clear_rules();
            iter.seek(&key(3));
            assert_eq!(iter.try_value().unwrap(), value(3));
            fixture.fail_blob_reads(fault);
        }
    }
}

/// Letters of either case are the same.
struct CaseBlind;

impl Comparator for CaseBlind {
    fn name(&self) -> &str {
        "case-blind"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

#[test]
fn a_blob_is_found_under_another_spelling_of_its_key() {
    let fixture = ordered(Codec::None, KeyOrder::Custom(Arc::new(CaseBlind)));
    let shouted = |n| key(n).to_ascii_uppercase();
    let options = TableReadOptions::default();
    let (super_version, context) = (&fixture.super_version, &fixture.context);
    let found = get(super_version, context, &shouted(7), ROWS + 1, &options);
    assert_eq!(found.unwrap().unwrap(), value(7)[..]);
    let keys = [shouted(8), key(9), shouted(10)];
    let many = multi_get(super_version, context, &keys, ROWS + 1, &options);
    for (n, found) in (8..).zip(many) {
        assert_eq!(found.unwrap().unwrap(), value(n)[..]);
    }
    let mut iter = fixture.iter(options);
    iter.seek(&shouted(11));
    assert_eq!(iter.try_value().unwrap(), value(11));
    iter.prev();
    assert_eq!(iter.try_value().unwrap(), value(10));
    fixture.fail_blob_reads(Fault::FlippedBit);
    let damaged = get(super_version, context, &shouted(7), ROWS + 1, &options);
    assert!(damaged.unwrap_err().is_corruption());
}

#[test]
fn one_damaged_blob_among_many_fails_alone() {
    let fixture = fixture(Codec::None);
    let path = names::blob(Path::new(DIR), BLOB);
    let mut bytes = fixture.files.read_file(&path, 1 << 30).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let mut file = fixture
        .files
        .create(&path, CreateOptions::new(FileKind::Other))
        .unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();
    let keys: Vec<_> = (0..ROWS).map(key).collect();
    let options = TableReadOptions::default();
    let many = multi_get(
        &fixture.super_version,
        &fixture.context,
        &keys,
        ROWS + 1,
        &options,
    );
    let failed: Vec<_> = many.iter().filter(|answer| answer.is_err()).collect();
    assert_eq!(failed.len(), 1);
    for (n, answer) in (0..ROWS).zip(&many) {
        let alone = fixture.get(n);
        assert_eq!(alone.is_err(), answer.is_err());
        if let Ok(found) = answer {
            assert_eq!(found.as_deref(), Some(&value(n)[..]));
        }
    }
}

#[test]
fn reads_from_the_cache_only_are_incomplete() {
    let fixture = fixture(Codec::None);
    let options = TableReadOptions {
        tier: ReadTier::BlockCache,
        ..TableReadOptions::default()
    };
    fixture.get(1).unwrap(); // Table, block and blob file are open and cached.
    let error = get(
        &fixture.super_version,
        &fixture.context,
        &key(1),
        ROWS + 1,
        &options,
    );
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Incomplete);
    let mut iter = fixture.iter(options);
    iter.seek(&key(1));
    assert_eq!(iter.key(), key(1));
    let error = iter.try_value().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
}
