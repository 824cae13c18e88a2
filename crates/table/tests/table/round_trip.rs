//! Written entries are read back: by lookups, cursors both ways, seeks at and between all keys.
//!
//! Method: random entries of several shapes, written under many options, against a sorted vector.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::common::{Bytes, Entries, MemFile, open, random_entries, reader_options, write};
use drumlin_base::key::{compare_internal, internal_key, split_internal, tag_seqno, user_key};
use drumlin_base::operators::FixedPrefix;
use drumlin_base::rng::Rng;
use drumlin_base::{Comparator, InternalIterator, KeyOrder, MemoryUse, SEQNO_MAX, ValueKind};
use drumlin_table::{
    ChecksumKind, Codec, Compression, FORMAT_VERSION_OLD, FORMAT_VERSION_WRITTEN, FilterOptions,
    Table, TableReadOptions, TableStyle, TableWriter, TableWriterOptions,
};

/// Checks that `table` holds exactly `entries`.
pub(crate) fn check(table: &Arc<Table>, entries: &Entries, rng: &mut Rng) {
    let order = table.order().clone();
    let mut iter = table.iter(TableReadOptions::default());
    iter.seek_to_first();
    for (key, value) in entries {
        assert!(iter.valid(), "{:?}", iter.status());
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        assert_eq!(&*iter.pin_value(), &value[..]);
        iter.next();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
    iter.seek_to_last();
    for (key, value) in entries.iter().rev() {
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        iter.prev();
    }
    assert!(!iter.valid());
    for _ in 0..200 {
        let target = some_key(entries, rng);
        let at = entries.partition_point(|(key, _)| compare_internal(&order, key, &target).is_lt());
        iter.seek(&target);
        assert_eq!(iter.valid(), at < entries.len());
        if let Some((key, value)) = entries.get(at) {
            assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
            match rng.below(3) {
                0 => {
                    iter.next();
                    assert_eq!(iter.valid(), at + 1 < entries.len());
                    if iter.valid() {
                        assert_eq!(iter.key(), &entries[at + 1].0[..]);
                    }
                }
                1 => {
                    iter.prev();
                    assert_eq!(iter.valid(), at > 0);
                    if iter.valid() {
                        assert_eq!(iter.key(), &entries[at - 1].0[..]);
                    }
                }
                _ => {}
            }
        }
        let past =
            entries.partition_point(|(key, _)| compare_internal(&order, key, &target).is_le());
        iter.seek_for_prev(&target);
        assert_eq!(iter.valid(), past > 0);
        if iter.valid() {
            assert_eq!(iter.key(), &entries[past - 1].0[..]);
        }
        check_get(table, entries, user_key(&target), rng);
    }
    table.verify().unwrap();
}

/// A key of the table, or one near it.
fn some_key(entries: &Entries, rng: &mut Rng) -> Vec<u8> {
    let Some((key, _)) = entries.get(rng.below(entries.len() as u64 + 1) as usize) else {
        return internal_key(b"\xff\xff", 1, ValueKind::Value);
    };
    let (user, tag) = split_internal(key).unwrap();
    let mut user = user.to_vec();
    let mut seqno = tag_seqno(tag);
    match rng.below(6) {
        0 => user.push(rng.below(256) as u8),
        1 => drop(user.pop()),
        2 => seqno = rng.below(1 << 20),
        3 => seqno = SEQNO_MAX,
        _ => {}
    }
    internal_key(&user, seqno, ValueKind::Value)
}

fn check_get(table: &Arc<Table>, entries: &Entries, key: &[u8], rng: &mut Rng) {
    let seqno = if rng.one_in(2) {
        SEQNO_MAX
    } else {
        rng.below(1 << 20)
    };
    let expected: Vec<(u64, &[u8])> = entries
        .iter()
        .filter_map(|(stored, value)| {
            let (user, tag) = split_internal(stored).unwrap();
            (user == key && tag_seqno(tag) <= seqno).then_some((tag_seqno(tag), &value[..]))
        })
        .collect();
    let mut found = Vec::new();
    let limit = rng.below(4) as usize + 1;
    table
        .get(
            key,
            seqno,
            &TableReadOptions::default(),
            |seqno, _, value| {
                let bytes = value.bytes().to_vec();
                assert_eq!(&*value.pin(), bytes);
                found.push((seqno, bytes));
                match found.len() == limit {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )
        .unwrap();
    let found: Vec<(u64, &[u8])> = found.iter().map(|(s, v)| (*s, &v[..])).collect();
    assert_eq!(found, expected[..expected.len().min(limit)]);
}

fn random_options(rng: &mut Rng, order: &KeyOrder) -> TableWriterOptions {
    let codecs = [
        Codec::None,
        Codec::Snappy,
        Codec::Zlib,
        Codec::Lz4,
        Codec::Zstd,
    ];
    let mut compression = Compression::new(codecs[rng.below(5) as usize]);
    if rng.one_in(3) {
        compression.dictionary_bytes = 2048;
    }
    let filter = FilterOptions {
        bits_per_key: 10.0,
        whole_keys: !rng.one_in(4),
        prefix: rng.one_in(2).then(|| Arc::new(FixedPrefix::new(3)) as _),
    };
    TableWriterOptions {
        order: order.clone(),
        compression,
        block_bytes: [64, 512, 4096][rng.below(3) as usize],
        restart_interval: 1 + rng.below(20) as usize,
        filter: (!rng.one_in(4)).then_some(filter),
        format_version: [FORMAT_VERSION_OLD, FORMAT_VERSION_WRITTEN][rng.below(2) as usize],
        checksum: [
            ChecksumKind::Crc32c,
            ChecksumKind::Xxh3,
            ChecksumKind::Xxh64,
        ][rng.below(3) as usize],
        partition_index_above_bytes: 1000,
        expected_bytes: [0, 2000][rng.below(2) as usize],
        partition_filters: rng.one_in(2),
        ..TableWriterOptions::default()
    }
}

#[test]
fn tables_of_many_shapes_hold_what_was_added() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let order = match rng.below(4) {
            0 => KeyOrder::ReverseBytewise,
            _ => KeyOrder::Bytewise,
        };
        let count = [0, 1, 50, 1000][rng.below(4) as usize];
        let entries = random_entries(&mut rng, &order, count);
        let options = random_options(&mut rng, &order);
        let table = open(&order, write(options, &entries)).unwrap();
        check(&table, &entries, &mut rng);
    }
}

/// Orders by length first; a shorter separator would not be between its keys.
pub(crate) struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

#[test]
fn tables_in_an_order_of_the_users_own_hold_what_was_added() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let order = KeyOrder::Custom(Arc::new(ByLength));
        let entries = random_entries(&mut rng, &order, 400);
        let options = random_options(&mut rng, &order);
        let bytes = write(options, &entries);
        let table = open(&order, bytes.clone()).unwrap();
        check(&table, &entries, &mut rng);
        let refused = open(&KeyOrder::Bytewise, bytes);
        assert!(refused.is_err(), "a table is not read in another order");
    }
}

/// Checks that only entries that ascend, and no tombstones among them, go into a table of `options`.
pub(crate) fn check_disorder_is_refused(options: TableWriterOptions) {
    let mut writer = TableWriter::new(Box::<MemFile>::default(), options);
    let key = |user: &[u8], seqno| internal_key(user, seqno, ValueKind::Value);
    writer.add(&key(b"b", 5), b"").unwrap();
    for bad in [key(b"a", 9), key(b"b", 5), key(b"b", 6), b"short".to_vec()] {
        assert!(writer.add(&bad, b"").is_err());
    }
    let tombstone = internal_key(b"c", 1, ValueKind::RangeDeletion);
    assert!(writer.add(&tombstone, b"d").is_err());
    writer.add(&key(b"b", 4), b"").unwrap();
}

/// Checks that range tombstones beside entries are kept, and refused where they are none or do not
/// ascend.
pub(crate) fn check_tombstones_are_kept(options: TableWriterOptions) {
    let file = MemFile::default();
    let mut writer = TableWriter::new(Box::new(file.clone()), options);
    writer.add_range_tombstone(b"a", b"c", 9).unwrap();
    let key = internal_key(b"b", 3, ValueKind::Value);
    writer.add(&key, b"value").unwrap();
    writer.add_range_tombstone(b"a", b"b", 7).unwrap();
    assert!(writer.add_range_tombstone(b"a", b"z", 8).is_err());
    assert!(writer.add_range_tombstone(b"k", b"k", 1).is_err());
    let finished = writer.finish().unwrap();
    assert_eq!(finished.properties.num_range_deletions, 2);
    let bytes = file.0.lock().unwrap().clone();
    let table = open(&KeyOrder::Bytewise, bytes).unwrap();
    let found: Vec<_> = table.range_tombstones().iter().map(|t| t.seqno).collect();
    assert_eq!(found, [9, 7]);
    check(&table, &vec![(key, b"value".to_vec())], &mut Rng::new(1));
}

#[test]
fn range_tombstones_beside_entries_are_kept() {
    check_tombstones_are_kept(TableWriterOptions::default());
}

#[test]
fn tombstones_alone_make_a_table() {
    for expected_bytes in [0, 2000] {
        let file = MemFile::default();
        let options = TableWriterOptions {
            partition_index_above_bytes: 1000,
            expected_bytes,
            ..TableWriterOptions::default()
        };
        let mut writer = TableWriter::new(Box::new(file.clone()), options);
        writer.add_range_tombstone(b"a", b"c", 9).unwrap();
        writer.add_range_tombstone(b"a", b"b", 7).unwrap();
        assert!(writer.add_range_tombstone(b"a", b"z", 8).is_err());
        assert!(writer.add_range_tombstone(b"k", b"k", 1).is_err());
        writer.finish().unwrap();
        let bytes = file.0.lock().unwrap().clone();
        let table = open(&KeyOrder::Bytewise, bytes).unwrap();
        let found: Vec<_> = table.range_tombstones().iter().map(|t| t.seqno).collect();
        assert_eq!(found, [9, 7]);
        check(&table, &Entries::new(), &mut Rng::new(1));
    }
}

#[test]
fn entries_out_of_order_are_refused() {
    check_disorder_is_refused(TableWriterOptions::default());
}

#[test]
fn a_closed_table_gives_back_all_memory() {
    let entries = random_entries(&mut Rng::new(3), &KeyOrder::Bytewise, 1000);
    let options = random_options(&mut Rng::new(3), &KeyOrder::Bytewise);
    let file = Bytes {
        bytes: write(options, &entries),
        ..Bytes::default()
    };
    let options = reader_options(&KeyOrder::Bytewise, 1 << 20);
    let budget = Arc::clone(&options.budget);
    let table = Table::open(Arc::new(file), options).unwrap();
    let charged = budget.used(MemoryUse::TableMeta);
    assert_eq!(charged, table.resident_bytes());
    check(&table, &entries, &mut Rng::new(4));
    assert!(budget.used(MemoryUse::Blocks) > 0);
    drop(table);
    assert_eq!(budget.used_total(), 0);
}

#[test]
fn a_scan_reads_ahead_instead_of_block_by_block() {
    let order = KeyOrder::Bytewise;
    let entries: Entries = (0..20_000u64)
        .map(|n| {
            (
                internal_key(format!("{n:08}").as_bytes(), 1, ValueKind::Value),
                vec![0; 100],
            )
        })
        .collect();
    let options = TableWriterOptions {
        compression: Compression::none(),
        ..TableWriterOptions::default()
    };
    let bytes = write(options, &entries);
    for readahead_bytes in [0, 1 << 20] {
        let file = Arc::new(Bytes {
            bytes: bytes.clone(),
            ..Bytes::default()
        });
        let table = Table::open(Arc::clone(&file) as _, reader_options(&order, 16 << 20)).unwrap();
        let mut iter = table.iter(TableReadOptions {
            fill_cache: false,
            readahead_bytes,
            ..TableReadOptions::default()
        });
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status().unwrap();
        let reads = file.reads.load(std::sync::atomic::Ordering::Relaxed);
        assert!(reads < 30, "{reads} reads for {} bytes", bytes.len());
    }
}

#[test]
fn leveldb_tables_hold_what_was_added() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let order = KeyOrder::Bytewise;
        let entries = random_entries(&mut rng, &order, 500);
        let options = TableWriterOptions {
            style: TableStyle::LevelDb,
            compression: Compression::new([Codec::None, Codec::Snappy][seed as usize % 2]),
            block_bytes: 300,
            filter: Some(FilterOptions::default()),
            ..TableWriterOptions::default()
        };
        let table = open(&order, write(options, &entries)).unwrap();
        check(&table, &entries, &mut rng);
    }
}

/// Of every block the reason why it is stored as it is, and how the others were made.
#[test]
fn a_table_tells_how_its_blocks_were_compressed_and_which_were_not() {
    let order = KeyOrder::Bytewise;
    let mut rng = Rng::new(5);
    let row = |n: u64, value: Vec<u8>| {
        let key = format!("key{n:06}").into_bytes();
        (internal_key(&key, n + 1, ValueKind::Value), value)
    };
    let alike: Entries = (0..200).map(|n| row(n, vec![7; 500])).collect();
    let random = (200..400).map(|n| {
        let mut value = vec![0; 500];
        rng.fill(&mut value);
        row(n, value)
    });
    let both: Entries = alike.iter().cloned().chain(random).collect();
    let told = |compression: Compression, entries: &Entries| {
        let options = TableWriterOptions {
            compression,
            host_id: "a machine".to_owned(),
            newest_key_time: 77,
            ..TableWriterOptions::default()
        };
        let table = open(&order, write(options, entries)).unwrap();
        table.properties().clone()
    };
    let none = told(Compression::none(), &both);
    assert!(none.num_data_blocks > 20);
    assert_eq!(none.num_blocks_bypassed, none.num_data_blocks);
    assert_eq!(none.num_blocks_rejected, 0);
    let snappy = told(Compression::new(Codec::Snappy), &both);
    assert_eq!(snappy.num_blocks_bypassed, 0);
    let rejected = snappy.num_blocks_rejected;
    assert!(
        (10..=snappy.num_data_blocks - 10).contains(&rejected),
        "{rejected} of {}",
        snappy.num_data_blocks
    );
    let all = told(Compression::new(Codec::Snappy), &alike);
    assert_eq!((all.num_blocks_bypassed, all.num_blocks_rejected), (0, 0));
    assert_eq!(
        (all.db_host_id.as_str(), all.newest_key_time),
        ("a machine", 77)
    );
    let level = Compression {
        level: Some(4),
        dictionary_bytes: 2048,
        ..Compression::new(Codec::Zstd)
    };
    let zstd = told(level, &alike).compression_options;
    for part in [
        "level=4; ",
        "max_dict_bytes=2048; ",
        "zstd_max_train_bytes=204800; ",
    ] {
        assert!(zstd.contains(part), "{zstd}");
    }
    let snappy = all.compression_options;
    assert!(
        snappy.starts_with("window_bits=-15; level=32767; strategy=0; max_dict_bytes=0; "),
        "{snappy}"
    );
    assert!(snappy.ends_with("checksum=0; "), "{snappy}");
}
