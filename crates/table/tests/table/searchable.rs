//! Goal: a searchable table has the entries added, in order and by lookup, reads one page at most for
//! each, and reports damage. Method: the checks that block-based tables pass, over the same random
//! entries and over such as compactions leave (values with sequence number zero); every bit flipped,
//! every length cut; reads of the file counted.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::key::{internal_key, user_key};
use drumlin_base::operators::FixedPrefix;
use drumlin_base::rng::Rng;
use drumlin_base::{InternalIterator, KeyOrder, MemoryUse, SEQNO_MAX, ValueCode, ValueKind};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};
use drumlin_table::{
    Effort, Encoder, FilterOptions, Model, ModelSource, Table, TableFormat, TableIter,
    TableReadOptions, TableWriter, TableWriterOptions,
};

use crate::common::{
    Bytes, Entries, counts, counts_in, open, random_entries, reader_options, write,
};
use crate::damage::{answers, small_entries};
use crate::round_trip::{check, check_disorder_is_refused, check_tombstones_are_kept};

const ORDER: KeyOrder = KeyOrder::Bytewise;

fn options() -> TableWriterOptions {
    TableWriterOptions {
        format: TableFormat::Searchable,
        filter: Some(FilterOptions {
            prefix: Some(Arc::new(FixedPrefix::new(4))),
            ..FilterOptions::default()
        }),
        db_id: "db".to_owned(),
        ..TableWriterOptions::default()
    }
}

/// Rows of an orders table as a compaction to the last level leaves them; each `every`th is of
/// another kind.
fn settled(rng: &mut Rng, count: u64, every: u64) -> Entries {
    (0..count)
        .map(|n| {
            let key = format!("{:08}|{}", n * 7, n % 4);
            let kinds = [ValueKind::Deletion, ValueKind::Merge, ValueKind::BlobIndex];
            let (seqno, kind) = match every > 0 && n % every == 1 {
                true => (n + 1, kinds[rng.below(3) as usize]),
                false => (0, ValueKind::Value),
            };
            let words = ["carefully", "final", "deposits", "sleep", "furiously"];
            let text = words[rng.below(5) as usize];
            let value = match kind {
                ValueKind::Deletion => String::new(),
                _ => format!(
                    "{}|{}|{text} {n}|1996-0{}",
                    rng.below(50),
                    rng.next_u64(),
                    n % 9
                ),
            };
            (
                internal_key(key.as_bytes(), seqno, kind),
                value.into_bytes(),
            )
        })
        .collect()
}

#[test]
fn searchable_tables_of_many_shapes_hold_what_was_added() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let count = [0, 1, 50, 1000][rng.below(4) as usize];
        let entries = match rng.below(3) {
            0 => settled(&mut rng, count, [0, 1, 10, 400][seed as usize % 4]),
            _ => random_entries(&mut rng, &ORDER, count),
        };
        let bytes = write(options(), &entries);
        let mut reader = reader_options(&ORDER, 64 << 20);
        reader.prefix = Some(Arc::new(FixedPrefix::new(4)));
        let file = Bytes {
            bytes,
            ..Bytes::default()
        };
        let table = Table::open(Arc::new(file), reader).unwrap();
        assert!(matches!(&*table, Table::Searchable(_)));
        check(&table, &entries, &mut rng);
        for (key, _) in &entries {
            assert!(table.may_contain(user_key(key)).unwrap());
            assert!(table.may_contain_prefix(user_key(key)).unwrap());
        }
    }
}

#[test]
fn a_table_larger_than_its_samples_holds_what_was_added() {
    let mut rng = Rng::new(77);
    let entries = settled(&mut rng, 45_000, 1000);
    let bytes = write(options(), &entries);
    let raw: usize = entries.iter().map(|(k, v)| k.len() + v.len()).sum();
    assert!(bytes.len() < raw, "{} of {raw} bytes", bytes.len());
    let table = open(&ORDER, bytes).unwrap();
    let mut iter = table.iter(TableReadOptions::default());
    iter.seek_to_first();
    for (key, value) in &entries {
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        iter.next();
    }
    iter.status().unwrap();
    table.verify().unwrap();
}

#[test]
fn a_table_tells_what_was_chosen_and_what_it_costs() {
    let entries = settled(&mut Rng::new(5), 20_000, 0);
    let table = open(&ORDER, write(options(), &entries)).unwrap();
    let text = table.describe().join("\n");
    for told in [
        "different keys: 20000\n",
        " a key\n",
        "bytes in memory",
        "rows: ",
        "resident: ",
        "rows looked at",
    ] {
        assert!(text.contains(told), "{told} is missing:\n{text}");
    }
}

#[test]
fn large_keys_and_values_and_many_versions_are_kept_whole() {
    let mut entries: Entries = [
        (1usize, 0usize),
        (1, 1 << 20),
        (60_000, 0),
        (200, 4080),
        (200, 4088),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, (key_len, value_len))| {
        let mut key = vec![n as u8];
        key.resize(key_len, 7);
        let seqno = n as u64 % 2 * 9;
        (
            internal_key(&key, seqno, ValueKind::Value),
            vec![n as u8; value_len],
        )
    })
    .collect();
    entries.extend((0..3000u64).rev().map(|n| {
        let key = internal_key(b"hot", n, ValueKind::Value);
        (key, n.to_le_bytes().to_vec())
    }));
    entries.push((internal_key(b"i", 0, ValueKind::Value), b"last".to_vec()));
    let table = open(&ORDER, write(options(), &entries)).unwrap();
    check(&table, &entries, &mut Rng::new(2));
}

#[test]
fn a_cold_get_reads_one_page_and_that_of_an_absent_key_none() {
    let mut rng = Rng::new(8);
    let entries = settled(&mut rng, 20_000, 0);
    let file = Arc::new(Bytes {
        bytes: write(options(), &entries),
        ..Bytes::default()
    });
    let table = Table::open(Arc::clone(&file) as _, reader_options(&ORDER, 64 << 20)).unwrap();
    let get = |key: &[u8]| {
        let before = file.reads.load(Ordering::Relaxed);
        let mut found = 0;
        let visit = |_, _, _: drumlin_table::TableValue<'_>| {
            found += 1;
            ControlFlow::Continue(())
        };
        let read = TableReadOptions::default();
        table.get(key, SEQNO_MAX, &read, visit).unwrap();
        (found, file.reads.load(Ordering::Relaxed) - before)
    };
    for (key, _) in entries.iter().step_by(2503) {
        assert_eq!(get(user_key(key)), (1, 1));
        assert_eq!(get(user_key(key)), (1, 0), "the page is cached");
        let absent = [user_key(key), b"?"].concat();
        assert_eq!(get(&absent), (0, 0));
    }
}

#[test]
fn keys_in_another_order_get_a_block_based_table() {
    let mut options = options();
    options.order = KeyOrder::ReverseBytewise;
    let entries: Entries = vec![
        (internal_key(b"b", 1, ValueKind::Value), b"1".to_vec()),
        (internal_key(b"a", 1, ValueKind::Value), b"2".to_vec()),
    ];
    let table = open(&KeyOrder::ReverseBytewise, write(options, &entries)).unwrap();
    assert!(matches!(&*table, Table::Block(_)));
    check(&table, &entries, &mut Rng::new(1));
}

#[test]
fn range_tombstones_of_a_searchable_table_are_kept() {
    check_tombstones_are_kept(options());
}

#[test]
fn searchable_entries_out_of_order_are_refused() {
    check_disorder_is_refused(options());
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_searchable_table_is_seen() {
    let mut entries = small_entries();
    entries.push((internal_key(b"large", 0, ValueKind::Value), vec![3; 5000]));
    let sound = write(options(), &entries);
    let table = open(&ORDER, sound.clone()).unwrap();
    let all = answers(&table, &entries).unwrap();
    let told = counts_in(table.properties());
    assert_eq!(counts(sound.clone()).unwrap(), told);
    let mut rng = Rng::new(6);
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << rng.below(8);
        match counts(bytes.clone()) {
            Ok(found) => assert_eq!(found, told, "byte {at}"),
            Err(error) => assert!(error.to_string().contains("000007.sst"), "{error}"),
        }
        let seen = open(&ORDER, bytes).and_then(|table| {
            // A lookup may not read the damaged bytes, but then it answers right.
            if let Ok(answers) = answers(&table, &entries) {
                assert_eq!(answers, all, "byte {at}");
            }
            table.verify()
        });
        let error = seen.err().unwrap_or_else(|| panic!("byte {at} passed"));
        assert!(error.to_string().contains("000007.sst"), "{error}");
    }
    for len in (0..sound.len()).step_by(7) {
        assert!(open(&ORDER, sound[..len].to_vec()).is_err());
        assert!(counts(sound[..len].to_vec()).is_err());
        let mut noise = vec![0; len];
        rng.fill(&mut noise);
        noise.extend_from_slice(&sound[sound.len() - 256..]);
        assert!(open(&ORDER, noise).is_err());
    }
}

#[test]
fn a_closed_searchable_table_gives_back_its_memory_and_its_values_stay() {
    let entries = random_entries(&mut Rng::new(3), &ORDER, 1000);
    let reader = reader_options(&ORDER, 64 << 20);
    let budget = Arc::clone(&reader.budget);
    let file = Bytes {
        bytes: write(options(), &entries),
        ..Bytes::default()
    };
    let table = Table::open(Arc::new(file), reader).unwrap();
    assert_eq!(budget.used(MemoryUse::TableMeta), table.resident_bytes());
    let mut iter = table.iter(TableReadOptions::default());
    iter.seek_to_first();
    let kept = iter.pin_value();
    let value = entries.first().map(|(_, value)| value.clone()).unwrap();
    drop(iter);
    drop(table);
    assert_eq!(budget.used(MemoryUse::TableMeta), 0);
    assert_eq!(&*kept, &value[..]);
}

/// The one model there is.
#[derive(Debug)]
struct One(Arc<Model>);

impl ModelSource for One {
    fn model(&self, _: u64) -> drumlin_base::Result<Arc<Model>> {
        Ok(Arc::clone(&self.0))
    }
}

#[test]
fn rows_copied_many_times_keep_their_values_and_what_is_told_of_their_size() {
    let mut rng = Rng::new(31);
    let entries: Entries = (0..3000u64)
        .map(|n| {
            let key = internal_key(format!("{n:08}").as_bytes(), 0, ValueKind::Value);
            (key, format!("till|{}", rng.below(90)).into_bytes())
        })
        .collect();
    let sample: Vec<&[u8]> = entries.iter().map(|(_, value)| &value[..]).collect();
    let raw: usize = sample.iter().map(|value| value.len()).sum();
    let model = Arc::new(Model::train(&sample, Effort::Small));
    let files = StrictMemFileSystem::new();
    let options = TableWriterOptions {
        model: Some(Arc::clone(&model)),
        ..options()
    };
    let path = |round: u64| PathBuf::from(format!("/{round}"));
    for round in 0..12 {
        let file = files
            .create(&path(round), CreateOptions::new(FileKind::Table))
            .unwrap();
        let mut writer = TableWriter::new(file, options.clone());
        if round == 0 {
            for (key, value) in &entries {
                writer.add(key, value).unwrap();
            }
        } else {
            let mut reader = reader_options(&ORDER, 64 << 20);
            reader.models = Some(Arc::new(One(Arc::clone(&model))));
            let table = Table::open(files.open(&path(round - 1)).unwrap(), reader).unwrap();
            let mut cursor = table.iter(TableReadOptions {
                codes_of: Some(model.id()),
                ..TableReadOptions::default()
            });
            cursor.seek_to_first();
            for (key, value) in &entries {
                assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
                let code = cursor.code().unwrap();
                writer.add_code(key, &code).unwrap();
                cursor.next();
            }
            assert!(!cursor.valid());
        }
        let told = writer.finish().unwrap().properties.raw_value_size as f64;
        assert!(
            (told / raw as f64 - 1.0).abs() < 0.02,
            "{told} of {raw} bytes after {round} copies"
        );
    }
}

/// A cursor that gives codes decodes a value only when it is asked to; a failure ends its walk at the next step.
#[test]
fn a_value_that_does_not_decode_ends_a_walk_over_codes_both_ways() {
    let values: Vec<String> = (0..3000).map(|n| format!("till|{}", n % 90)).collect();
    let sample: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let model = Arc::new(Model::train(&sample, Effort::Small));
    let files = StrictMemFileSystem::new();
    let path = PathBuf::from("/t");
    let file = files.create(&path, CreateOptions::new(FileKind::Table));
    let options = TableWriterOptions {
        model: Some(Arc::clone(&model)),
        ..options()
    };
    let mut writer = TableWriter::new(file.unwrap(), options);
    let mut encoder = Encoder::new(Arc::clone(&model));
    for key in [b"a", b"b", b"c"] {
        let mut code = Vec::new();
        encoder.encode(sample[0], &mut code);
        let code = ValueCode {
            model: model.id(),
            bytes: &code,
            value_bytes: sample[0].len() as f64,
            // Less than the code decodes to, so that the row is damaged.
            value_bytes_max: 1,
        };
        let key = internal_key(key, 0, ValueKind::Value);
        writer.add_code(&key, &code).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = reader_options(&ORDER, 1 << 20);
    reader.models = Some(Arc::new(One(Arc::clone(&model))));
    let table = Table::open(files.open(&path).unwrap(), reader).unwrap();
    let steps: [fn(&mut TableIter); 2] = [TableIter::next, TableIter::prev];
    for step in steps {
        let mut cursor = table.iter(TableReadOptions {
            codes_of: Some(model.id()),
            ..TableReadOptions::default()
        });
        cursor.seek(&internal_key(b"b", 0, ValueKind::Value));
        assert!(cursor.valid() && cursor.value().is_empty());
        step(&mut cursor);
        assert!(!cursor.valid());
        assert!(cursor.status().unwrap_err().is_corruption());
    }
}
