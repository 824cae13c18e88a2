//! Goal: a plain table has the entries added, in order and by lookup, and reports damage. Method:
//! the checks that block-based tables pass, over the same random entries, with and without prefixes,
//! under every kind of order; every bit flipped, every length cut; hints against lookups.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use drumlin_base::key::{internal_key, split_internal, user_key};
use drumlin_base::operators::{CappedPrefix, FixedPrefix};
use drumlin_base::rng::Rng;
use drumlin_base::{
    InternalIterator, KeyOrder, MemoryUse, PinnedSlice, PrefixExtractor, SEQNO_MAX, ValueKind,
};
use drumlin_fs::RandomAccessFile;
use drumlin_table::{
    FilterOptions, KeyHint, Newest, Table, TableFormat, TableReadOptions, TableWriterOptions,
};

use crate::common::{Bytes, Entries, open, random_entries, reader_options, write};
use crate::damage::{answers, small_entries};
use crate::round_trip::{ByLength, check, check_disorder_is_refused, check_tombstones_are_kept};

fn options(order: &KeyOrder, prefix: Option<Arc<dyn PrefixExtractor>>) -> TableWriterOptions {
    TableWriterOptions {
        order: order.clone(),
        format: TableFormat::Plain,
        filter: prefix.map(|prefix| FilterOptions {
            prefix: Some(prefix),
            ..FilterOptions::default()
        }),
        db_id: "db".to_owned(),
        ..TableWriterOptions::default()
    }
}

/// An extractor whose prefixes do not follow each other: the key but for its last byte, if that is
/// even.
struct Ragged;

impl PrefixExtractor for Ragged {
    fn name(&self) -> &str {
        "test.Ragged"
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let (last, prefix) = key.split_last()?;
        last.is_multiple_of(2).then_some(prefix)
    }
}

fn some_prefix(rng: &mut Rng) -> Option<Arc<dyn PrefixExtractor>> {
    Some(match rng.below(5) {
        0 => Arc::new(FixedPrefix::new(3)),
        1 => Arc::new(FixedPrefix::new(15)),
        2 => Arc::new(CappedPrefix::new(2)),
        3 => Arc::new(Ragged),
        _ => return None,
    })
}

fn open_with(
    order: &KeyOrder,
    prefix: Option<Arc<dyn PrefixExtractor>>,
    bytes: Vec<u8>,
) -> Arc<Table> {
    let mut options = reader_options(order, 64 << 20);
    options.prefix = prefix;
    let file = Bytes {
        bytes,
        ..Bytes::default()
    };
    Table::open(Arc::new(file), options).unwrap()
}

#[test]
fn plain_tables_of_many_shapes_hold_what_was_added() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let order = match rng.below(5) {
            0 => KeyOrder::ReverseBytewise,
            1 => KeyOrder::Custom(Arc::new(ByLength)),
            _ => KeyOrder::Bytewise,
        };
        let count = [0, 1, 50, 1000][rng.below(4) as usize];
        let entries = random_entries(&mut rng, &order, count);
        let prefix = some_prefix(&mut rng);
        let bytes = write(options(&order, prefix.clone()), &entries);
        let table = open_with(&order, prefix.clone(), bytes.clone());
        check(&table, &entries, &mut rng);
        for (key, _) in &entries {
            assert!(table.may_contain(user_key(key)).unwrap());
            assert!(table.may_contain_prefix(user_key(key)).unwrap());
        }
        // Another extractor, or none, gives the same answers.
        check(
            &open_with(&order, some_prefix(&mut rng), bytes),
            &entries,
            &mut rng,
        );
    }
}

#[test]
fn large_keys_and_values_are_kept_whole() {
    let entries: Entries = [
        (1usize, 0usize),
        (1, 1 << 20),
        (60_000, 0),
        (65_000, 300),
        (200, 127),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, (key_len, value_len))| {
        let mut key = vec![n as u8];
        key.resize(key_len, 7);
        (
            internal_key(&key, 9, ValueKind::Value),
            vec![n as u8; value_len],
        )
    })
    .collect();
    let order = KeyOrder::Bytewise;
    let table = open(&order, write(options(&order, None), &entries)).unwrap();
    check(&table, &entries, &mut Rng::new(2));
}

#[test]
fn absent_keys_and_prefixes_are_mostly_denied() {
    let order = KeyOrder::Bytewise;
    let entries: Entries = (0..3000u64)
        .map(|n| {
            (
                internal_key(format!("{n:08}").as_bytes(), 1, ValueKind::Value),
                vec![1],
            )
        })
        .collect();
    let prefix: Arc<dyn PrefixExtractor> = Arc::new(FixedPrefix::new(6));
    let bytes = write(options(&order, Some(Arc::clone(&prefix))), &entries);
    let table = open_with(&order, Some(prefix), bytes);
    let strangers = (3000..13_000).map(|n| format!("{n:08}"));
    let admitted = strangers
        .clone()
        .filter(|key| table.may_contain(key.as_bytes()).unwrap());
    assert!(admitted.count() < 10);
    let admitted = strangers.filter(|key| table.may_contain_prefix(key.as_bytes()).unwrap());
    assert!(admitted.count() < 300, "a hundred keys share an answer");
}

#[test]
fn hinted_lookups_answer_as_lookups_do() {
    let mut rng = Rng::new(5);
    let order = KeyOrder::Bytewise;
    let entries = random_entries(&mut rng, &order, 1000);
    let table = open(&order, write(options(&order, None), &entries)).unwrap();
    let Table::Plain(plain) = &*table else {
        panic!("it was written as a plain table");
    };
    for (key, _) in &entries {
        for key in [user_key(key), &[user_key(key), b"?"].concat()] {
            let mut probe = plain.probe(KeyHint::of(key));
            probe.prefetch_index();
            let mut found = Vec::new();
            let mut hinted = Vec::new();
            let there = probe.find_record();
            probe.prefetch_record();
            probe
                .get(key, SEQNO_MAX, |seqno, kind, value| {
                    hinted.push((seqno, kind, value.bytes().to_vec()));
                    ControlFlow::Continue(())
                })
                .unwrap();
            plain
                .get(key, SEQNO_MAX, |seqno, kind, value| {
                    found.push((seqno, kind, value.bytes().to_vec()));
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(found, hinted);
            assert!(there || found.is_empty());
        }
    }
}

#[test]
fn the_short_way_finds_what_lookups_find_or_leaves_it_to_them() {
    let mut rng = Rng::new(6);
    let order = KeyOrder::Bytewise;
    let mut values = 0;
    for _ in 0..20 {
        let entries = random_entries(&mut rng, &order, 300);
        let table = open(&order, write(options(&order, None), &entries)).unwrap();
        let Table::Plain(plain) = &*table else {
            panic!("it was written as a plain table");
        };
        for (key, _) in &entries {
            for key in [user_key(key), &[user_key(key), b"?"].concat()] {
                let seqno = [SEQNO_MAX, rng.below(1 << 20)][usize::from(rng.one_in(2))];
                let mut newest = None;
                plain
                    .get(key, seqno, |_, kind, value| {
                        newest = Some((kind, value.bytes().to_vec()));
                        ControlFlow::Break(())
                    })
                    .unwrap();
                match plain.newest(key, KeyHint::of(key), seqno) {
                    Newest::Absent => assert_eq!(newest, None),
                    Newest::Value(value) => {
                        values += 1;
                        let mut pinned = PinnedSlice::default();
                        value.pin_to(&mut pinned);
                        assert_eq!(newest, Some((ValueKind::Value, pinned.to_vec())));
                    }
                    Newest::Unusual => {}
                }
            }
        }
    }
    assert!(values > 500, "{values} values on the short way");
}

#[test]
fn range_tombstones_are_kept() {
    check_tombstones_are_kept(options(&KeyOrder::Bytewise, None));
}

#[test]
fn plain_entries_out_of_order_are_refused() {
    check_disorder_is_refused(options(&KeyOrder::Bytewise, None));
}

#[test]
fn an_external_plain_table_takes_the_sequence_number_it_is_given() {
    let order = KeyOrder::Bytewise;
    let mut options = options(&order, None);
    let version = 2u32.to_le_bytes().to_vec();
    let properties = &mut options.user_properties;
    properties.insert("rocksdb.external_sst_file.version".to_owned(), version);
    let entries: Entries = (0..300)
        .map(|n| {
            (
                internal_key(format!("{n:04}").as_bytes(), 0, ValueKind::Value),
                vec![n as u8],
            )
        })
        .collect();
    let mut reader = reader_options(&order, 1 << 20);
    reader.largest_seqno = Some(77);
    let file = Bytes {
        bytes: write(options, &entries),
        ..Bytes::default()
    };
    let table = Table::open(Arc::new(file), reader).unwrap();
    let expected: Entries = entries
        .into_iter()
        .map(|(key, value)| (internal_key(user_key(&key), 77, ValueKind::Value), value))
        .collect();
    let mut iter = table.iter(TableReadOptions::default());
    for (key, _) in &expected {
        let (user, tag) = split_internal(key).unwrap();
        iter.seek(key);
        assert!(iter.valid() && iter.key() == key && iter.parts() == (user, tag));
        for (seqno, sees) in [(76, 0), (77, 1), (SEQNO_MAX, 1)] {
            let mut seen = 0;
            table
                .get(user, seqno, &TableReadOptions::default(), |at, _, _| {
                    assert_eq!(at, 77);
                    seen += 1;
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(seen, sees);
        }
    }
    assert_eq!(
        answers(&table, &expected).unwrap().len(),
        3 * expected.len()
    );
    table.verify().unwrap();
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_plain_table_is_refused() {
    let entries = small_entries();
    let order = KeyOrder::Bytewise;
    let sound = write(
        options(&order, Some(Arc::new(FixedPrefix::new(5)))),
        &entries,
    );
    open(&order, sound.clone()).unwrap();
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let refused = open(&order, bytes).unwrap_err();
        assert!(refused.to_string().contains("000007.sst"), "{refused}");
    }
    let mut rng = Rng::new(6);
    for len in 0..sound.len() {
        assert!(open(&order, sound[..len].to_vec()).is_err());
        let mut noise = vec![0; len];
        rng.fill(&mut noise);
        noise.extend_from_slice(&sound[sound.len() - 256..]);
        assert!(open(&order, noise).is_err());
    }
}

/// A file that the test changes under its reader.
#[derive(Debug)]
struct Changing(Mutex<Vec<u8>>);

impl RandomAccessFile for Changing {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> drumlin_base::Result<usize> {
        let bytes = self.0.lock().unwrap();
        buffer.copy_from_slice(&bytes[offset as usize..][..buffer.len()]);
        Ok(buffer.len())
    }
    fn size(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }
}

#[test]
fn damage_after_opening_is_found_by_verify() {
    let entries = small_entries();
    let order = KeyOrder::Bytewise;
    let file = Arc::new(Changing(Mutex::new(write(options(&order, None), &entries))));
    let table = Table::open(Arc::clone(&file) as _, reader_options(&order, 1 << 20)).unwrap();
    let before = answers(&table, &entries).unwrap();
    table.verify().unwrap();
    file.0.lock().unwrap()[100] ^= 1;
    let error = table.verify().unwrap_err();
    assert!(
        error.is_corruption() && error.offset() == Some(64),
        "{error}"
    );
    // The copy in memory is sound.
    assert_eq!(answers(&table, &entries).unwrap(), before);
}

#[test]
fn a_closed_plain_table_gives_back_its_memory_and_its_values_stay() {
    let order = KeyOrder::Bytewise;
    let entries = random_entries(&mut Rng::new(3), &order, 1000);
    let file: Arc<dyn RandomAccessFile> = Arc::new(Bytes {
        bytes: write(options(&order, None), &entries),
        ..Bytes::default()
    });
    assert!(TableFormat::of(&*file).unwrap().is_read_in_place());
    let options = reader_options(&order, 1 << 20);
    let budget = Arc::clone(&options.budget);
    let size = file.size() as usize;
    let table = Table::open(file, options).unwrap();
    assert_eq!(budget.used(MemoryUse::TableMeta), table.resident_bytes());
    assert!(table.resident_bytes() > size, "a copy is charged");
    let mut iter = table.iter(TableReadOptions::default());
    iter.seek_to_first();
    let pinned = iter.pin_value();
    drop((iter, table));
    assert_eq!(budget.used_total(), 0);
    assert_eq!(&*pinned, &entries[0].1[..]);
}

#[test]
fn a_block_based_table_is_not_read_in_place() {
    let bytes = write(TableWriterOptions::default(), &small_entries());
    let file = Bytes {
        bytes,
        ..Bytes::default()
    };
    assert_eq!(TableFormat::of(&file).unwrap(), TableFormat::Block);
    assert!(!TableFormat::Block.is_read_in_place());
    assert!(TableFormat::of(&Bytes::default()).is_err());
}
