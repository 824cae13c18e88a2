//! Damage is reported or harmless: never a panic, never another answer.

use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::key::{internal_key, user_key};
use drumlin_base::operators::FixedPrefix;
use drumlin_base::rng::Rng;
use drumlin_base::{InternalIterator, KeyOrder, PrefixExtractor, Result, SEQNO_MAX, ValueKind};
use drumlin_table::{
    Codec, Compression, FilterOptions, ReadTier, Table, TableReadOptions, TableStyle,
    TableWriterOptions,
};

use crate::common::{Bytes, Entries, counts, counts_in, open, reader_options, write};

pub(crate) fn small_entries() -> Entries {
    (0..24)
        .map(|n| {
            let key = internal_key(format!("key{n:03}").as_bytes(), n + 1, ValueKind::Value);
            (key, format!("value {n}").into_bytes())
        })
        .collect()
}

fn small_options(style: TableStyle, partitioned: bool, codec: Codec) -> TableWriterOptions {
    TableWriterOptions {
        style,
        block_bytes: 100,
        compression: Compression::new(codec),
        filter: Some(FilterOptions::default()),
        partition_index_above_bytes: 0,
        expected_bytes: u64::from(partitioned),
        partition_filters: partitioned,
        db_id: "db".to_owned(),
        ..TableWriterOptions::default()
    }
}

/// Everything a table answers: its entries in both directions, and each by lookup.
pub(crate) fn answers(table: &Arc<Table>, entries: &Entries) -> Result<Entries> {
    let mut found = Entries::new();
    let mut iter = table.iter(TableReadOptions::default());
    iter.seek_to_first();
    while iter.valid() {
        found.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status()?;
    iter.seek_to_last();
    while iter.valid() {
        found.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.prev();
    }
    iter.status()?;
    for (key, _) in entries {
        let mut value = Vec::new();
        let options = TableReadOptions::default();
        table.get(user_key(key), SEQNO_MAX, &options, |_, _, at| {
            value = at.bytes().to_vec();
            ControlFlow::Break(())
        })?;
        found.push((key.clone(), value));
    }
    Ok(found)
}

fn flip_every_bit(options: TableWriterOptions) {
    let entries = small_entries();
    let sound = write(options, &entries);
    let order = KeyOrder::Bytewise;
    let table = open(&order, sound.clone()).unwrap();
    let expected = answers(&table, &entries).unwrap();
    let told = counts_in(table.properties());
    assert_eq!(counts(sound.clone()).unwrap(), told);
    let mut harmless = 0;
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match counts(bytes.clone()) {
            Ok(found) => assert_eq!(found, told, "bit {bit} changes the counts"),
            Err(error) => assert!(error.to_string().contains("000007.sst"), "{error}"),
        }
        let result = open(&order, bytes).and_then(|table| answers(&table, &entries));
        if let Ok(found) = result {
            assert!(
                found == expected,
                "bit {bit} of {} changes answers",
                sound.len() * 8
            );
            harmless += 1;
        }
    }
    // The padding of the footer and nothing much else.
    assert!(harmless < 400, "{harmless} flips went unnoticed");
}

#[test]
fn every_flipped_bit_of_a_table_is_an_error_or_harmless() {
    flip_every_bit(small_options(TableStyle::RocksDb, false, Codec::None));
}

#[test]
fn every_flipped_bit_of_a_table_with_many_restart_points_is_an_error_or_harmless() {
    flip_every_bit(TableWriterOptions {
        restart_interval: 2,
        ..small_options(TableStyle::RocksDb, false, Codec::None)
    });
}

#[test]
fn every_flipped_bit_of_a_partitioned_table_is_an_error_or_harmless() {
    flip_every_bit(small_options(TableStyle::RocksDb, true, Codec::Lz4));
}

#[test]
fn every_flipped_bit_of_a_leveldb_table_is_an_error_or_harmless() {
    flip_every_bit(small_options(TableStyle::LevelDb, false, Codec::Snappy));
}

#[test]
fn without_checksums_damage_never_panics() {
    let entries = small_entries();
    let options = small_options(TableStyle::RocksDb, false, Codec::None);
    let sound = write(options, &entries);
    let mut rng = Rng::new(5);
    for _ in 0..3000 {
        let mut bytes = sound.clone();
        // Data blocks come first; the rest is always checked.
        for _ in 0..1 + rng.below(4) {
            bytes[rng.below(700) as usize] = rng.next_u64() as u8;
        }
        let Ok(table) = open(&KeyOrder::Bytewise, bytes) else {
            continue;
        };
        let options = TableReadOptions {
            verify_checksums: false,
            ..TableReadOptions::default()
        };
        let mut iter = table.iter(options);
        iter.seek_to_last();
        for _ in 0..100 {
            if iter.valid() {
                iter.prev();
            }
        }
        for (key, _) in &entries {
            iter.seek(key);
            let _ = table.get(user_key(key), SEQNO_MAX, &options, |_, _, _| {
                ControlFlow::Continue(())
            });
        }
    }
}

#[test]
fn random_bytes_and_cut_files_are_refused() {
    let sound = write(
        small_options(TableStyle::RocksDb, true, Codec::Zstd),
        &small_entries(),
    );
    let mut rng = Rng::new(6);
    for len in 0..sound.len() {
        assert!(open(&KeyOrder::Bytewise, sound[..len].to_vec()).is_err());
        let mut tail = vec![0; len];
        rng.fill(&mut tail);
        assert!(open(&KeyOrder::Bytewise, tail.clone()).is_err());
        // The footer of a sound table behind noise.
        tail.extend_from_slice(&sound[sound.len() - 53..]);
        assert!(open(&KeyOrder::Bytewise, tail).is_err());
    }
}

#[test]
fn a_corrupt_block_names_its_file_and_offset() {
    let entries = small_entries();
    let mut bytes = write(
        small_options(TableStyle::RocksDb, false, Codec::None),
        &entries,
    );
    bytes[3] ^= 1;
    let table = open(&KeyOrder::Bytewise, bytes).unwrap();
    let error = answers(&table, &entries).unwrap_err();
    assert!(error.is_corruption());
    assert_eq!(error.offset(), Some(0));
    assert!(error.to_string().contains("000007.sst"), "{error}");
    assert!(table.verify().is_err_and(|error| error.is_corruption()));
}

#[test]
fn a_cursor_asks_prefix_filters_as_its_options_say() {
    let entries = small_entries();
    let mut options = small_options(TableStyle::RocksDb, true, Codec::None);
    let prefix: Arc<dyn PrefixExtractor> = Arc::new(FixedPrefix::new(4));
    options.filter = Some(FilterOptions {
        prefix: Some(Arc::clone(&prefix)),
        ..FilterOptions::default()
    });
    let file = Arc::new(Bytes {
        bytes: write(options, &entries),
        ..Bytes::default()
    });
    let mut options = reader_options(&KeyOrder::Bytewise, 1 << 20);
    options.prefix = Some(prefix);
    let table = Table::open(Arc::clone(&file) as _, options).unwrap();
    let reads = || file.reads.load(std::sync::atomic::Ordering::Relaxed);
    let may_hold = |options: TableReadOptions| {
        let before = reads();
        let answer = table.iter(options).may_contain_prefix(b"keyz").unwrap();
        (answer, reads() - before)
    };
    let usual = TableReadOptions::default();
    let cache_only = TableReadOptions {
        tier: ReadTier::BlockCache,
        ..usual
    };
    let uncached = TableReadOptions {
        fill_cache: false,
        ..usual
    };
    assert_eq!(
        may_hold(cache_only),
        (true, 0),
        "it cannot tell without the file"
    );
    assert_eq!(may_hold(uncached), (false, 1));
    assert_eq!(may_hold(uncached), (false, 1), "nothing was kept");
    assert_eq!(may_hold(usual), (false, 1));
    assert_eq!(may_hold(cache_only), (false, 0));
}

#[test]
fn cache_only_reads_never_touch_the_file() {
    let entries = small_entries();
    let bytes = write(
        small_options(TableStyle::RocksDb, true, Codec::None),
        &entries,
    );
    let file = Arc::new(Bytes {
        bytes,
        ..Bytes::default()
    });
    let order = KeyOrder::Bytewise;
    let table = Table::open(Arc::clone(&file) as _, reader_options(&order, 1 << 20)).unwrap();
    let reads = || file.reads.load(std::sync::atomic::Ordering::Relaxed);
    let after_open = reads();
    let options = TableReadOptions {
        tier: ReadTier::BlockCache,
        ..TableReadOptions::default()
    };
    let visit = |_, _, _: drumlin_table::TableValue<'_>| ControlFlow::Break(());
    let error = table
        .get(b"key003", SEQNO_MAX, &options, visit)
        .unwrap_err();
    assert_eq!(error.kind(), drumlin_base::error::ErrorKind::Incomplete);
    assert_eq!(reads(), after_open);

    let from_page_cache = TableReadOptions {
        tier: ReadTier::PageCache,
        fill_cache: false,
        ..options
    };
    let error = table
        .get(b"key003", SEQNO_MAX, &from_page_cache, visit)
        .unwrap_err();
    assert_eq!(error.kind(), drumlin_base::error::ErrorKind::Incomplete);
    assert_eq!(reads(), after_open, "the system does not have it");
    file.is_in_memory
        .store(true, std::sync::atomic::Ordering::Relaxed);
    table
        .get(b"key003", SEQNO_MAX, &from_page_cache, visit)
        .unwrap();
    assert!(reads() > after_open, "the system has it");
    let error = table
        .get(b"key003", SEQNO_MAX, &options, visit)
        .unwrap_err();
    assert_eq!(error.kind(), drumlin_base::error::ErrorKind::Incomplete);

    answers(&table, &entries).unwrap();
    let warm = reads();
    table.get(b"key003", SEQNO_MAX, &options, visit).unwrap();
    assert_eq!(reads(), warm);
}
