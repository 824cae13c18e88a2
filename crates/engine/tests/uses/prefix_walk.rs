//! Goal: a walk within a prefix asks the tables' prefix filters and still finds everything, and iterators
//! that take over one another's walks show their own moment. Method: real files; blocks are forbidden to be
//! read (`ReadTier::BlockCache`) where the filter alone must answer; threads whose rows must all be of one batch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::internals::batch::WriteBatch;
use drumlin::{
    CappedPrefix, Db, DbIterator, FamilyOptions, FixedPrefix, Options, ReadOptions, ReadTier,
    TableFormat, Tuning, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_testkit::temp_dir;

const PREFIXES: u32 = 400;

fn options() -> Options {
    Options {
        family: FamilyOptions {
            prefix_extractor: Some(Arc::new(FixedPrefix::new(8))),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            target_file_bytes: 32 << 10,
            filter_bits: 20.0,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// Even prefixes hold ten keys each, odd ones none.
fn fill(db: &Db) {
    for prefix in (0..PREFIXES).step_by(2) {
        for row in 0..10 {
            db.put(format!("{prefix:08}{row:02}"), format!("{prefix} {row}"))
                .expect("the write is sound");
        }
    }
    db.flush().expect("the flush is sound");
    db.compact_range(db.default_family(), None, None)
        .expect("the compaction is sound");
    // A second layer over part of it.
    for prefix in (0..PREFIXES).step_by(10) {
        db.put(format!("{prefix:08}03"), "newer")
            .expect("the put is sound");
        db.delete(format!("{prefix:08}04"))
            .expect("the delete is sound");
    }
    db.flush().expect("the flush is sound");
}

#[test]
fn a_prefix_walk_finds_its_rows_and_reads_nothing_for_absent_prefixes() {
    let dir = temp_dir();
    fill(&Db::open(dir.path(), options()).unwrap());
    let db = Db::open(dir.path(), options()).unwrap();
    // Opens the tables, and keeps no block of them.
    let mut all = db.iter(ReadOptions {
        fill_cache: false,
        ..ReadOptions::default()
    });
    all.seek_to_first();
    while all.valid() {
        all.next();
    }
    let within = ReadOptions {
        prefix_same_as_start: true,
        ..ReadOptions::default()
    };
    let mut absent = db.iter(ReadOptions {
        tier: ReadTier::BlockCache,
        ..within.clone()
    });
    let mut answered = 0;
    for prefix in (1..PREFIXES).step_by(2) {
        absent.seek(format!("{prefix:08}").as_bytes());
        assert!(!absent.valid(), "{prefix}");
        answered += u32::from(absent.status().is_ok());
    }
    assert!(
        answered > PREFIXES / 2 - 5,
        "the filters answered only {answered} seeks"
    );
    let mut walk = db.iter(within);
    for prefix in (0..PREFIXES).step_by(2) {
        walk.seek(format!("{prefix:08}").as_bytes());
        let mut rows = 0;
        while walk.valid() {
            assert!(walk.key().starts_with(format!("{prefix:08}").as_bytes()));
            rows += 1;
            walk.next();
        }
        walk.status().unwrap();
        assert_eq!(rows, if prefix % 10 == 0 { 9 } else { 10 }, "{prefix}");
    }
}

/// The value that all rows of `prefix` have, by a walk over them.
fn one_value(iter: &mut DbIterator, prefix: &str) -> u32 {
    iter.seek(prefix.as_bytes());
    let mut values = Vec::new();
    while iter.valid() {
        assert!(iter.key().starts_with(prefix.as_bytes()));
        values.push(String::from_utf8_lossy(iter.value()).into_owned());
        iter.next();
    }
    iter.status().expect("the walk is sound");
    assert_eq!(values.len(), 6, "{prefix}: {values:?}");
    assert!(
        values.windows(2).all(|pair| pair[0] == pair[1]),
        "{values:?}"
    );
    values[0].parse().expect("values are numbers")
}

/// Makes one iterator after the other until `ended`, and holds some of them.
fn read_on(db: &Db, seed: u64, ended: &AtomicBool) {
    let mut rng = Rng::new(seed);
    let (mut newest, mut held) = ([0; 20], None);
    while !ended.load(Ordering::Acquire) {
        let at = rng.below(20) as usize;
        let prefix = format!("{at:08}");
        let mut iter = db.iter(ReadOptions {
            prefix_same_as_start: true,
            upper_bound: rng.one_in(4).then(|| format!("{at:08}9").into_bytes()),
            ..ReadOptions::default()
        });
        let value = one_value(&mut iter, &prefix);
        assert!(newest[at] <= value, "{prefix} went back to {value}");
        newest[at] = value;
        if rng.one_in(50) {
            let before = held.replace((iter, prefix, value));
            if let Some((mut iter, prefix, value)) = before {
                assert_eq!(one_value(&mut iter, &prefix), value, "{prefix}, held");
            }
        }
    }
}

/// Ends the readers, also when their writer fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn iterators_in_memory_show_whole_batches_while_tables_come_and_go() {
    let dir = temp_dir();
    let mut options = options();
    options.family.table_format = Some(TableFormat::Plain);
    options.tuning.target_file_bytes = 2 << 10;
    let db = Db::open(dir.path(), options).unwrap();
    let write = |round: u32| {
        for prefix in 0..20 {
            let mut batch = WriteBatch::new();
            for row in 0..6 {
                let key = format!("{prefix:08}{row:02}");
                batch
                    .put(key.as_bytes(), round.to_string().as_bytes())
                    .unwrap();
            }
            db.write(batch, &WriteOptions::default()).unwrap();
        }
    };
    write(0);
    db.flush().unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (db, ended) = (&db, &ended);
            scope.spawn(move || read_on(db, seed, ended));
        }
        let _ends = Ends(&ended);
        for round in 1..60 {
            write(round);
            match round % 10 {
                0 => db.compact_range(db.default_family(), None, None).unwrap(),
                3 | 6 | 9 => db.flush().unwrap(),
                _ => {}
            }
        }
    });
    db.close().unwrap();
}

/// A key of up to nine bytes of three letters: many are prefixes of others, and many shorter than the cap.
fn short_key(rng: &mut Rng) -> Vec<u8> {
    let len = rng.below(10);
    (0..len).map(|_| b'a' + rng.below(3) as u8).collect()
}

fn capped(key: &[u8], cap: usize) -> &[u8] {
    key.get(..cap).unwrap_or(key)
}

/// Walks from many keys within their prefixes, and compares with `rows`.
fn check_walks(db: &Db, rows: &BTreeMap<Vec<u8>, Vec<u8>>, cap: usize, rng: &mut Rng) {
    let mut iter = db.iter(ReadOptions {
        prefix_same_as_start: true,
        ..ReadOptions::default()
    });
    for seek in 0..300 {
        let from = short_key(rng);
        if seek % 50 == 0 {
            iter.refresh().expect("it has a source");
        }
        iter.seek(&from);
        let mut found = Vec::new();
        while iter.valid() {
            found.push((iter.key().to_vec(), iter.value().to_vec()));
            iter.next();
        }
        iter.status().expect("the walk is sound");
        let prefix = capped(&from, cap);
        let expected: Vec<_> = rows
            .range(from.clone()..)
            .take_while(|(key, _)| capped(key, cap) == prefix)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        assert_eq!(found, expected, "from {from:?}, cap {cap}");
    }
}

#[test]
fn walks_within_capped_prefixes_show_all_keys_of_the_prefix_and_no_other() {
    let mut rng = Rng::new(17);
    for format in [
        TableFormat::Block,
        TableFormat::Plain,
        TableFormat::Searchable,
    ] {
        for cap in [1, 4, 8] {
            let dir = temp_dir();
            let mut options = options();
            options.family.prefix_extractor = Some(Arc::new(CappedPrefix::new(cap)));
            options.family.table_format = Some(format);
            let db = Db::open(dir.path(), options).unwrap();
            let mut rows = BTreeMap::new();
            for layer in 0..4_u32 {
                for _ in 0..400 {
                    let key = short_key(&mut rng);
                    if rng.one_in(5) {
                        db.delete(&key).unwrap();
                        rows.remove(&key);
                    } else {
                        let value = format!("{layer}").into_bytes();
                        db.put(&key, &value).unwrap();
                        rows.insert(key, value);
                    }
                }
                match layer {
                    0 => db.compact_range(db.default_family(), None, None).unwrap(),
                    3 => {} // The last is in the memtable.
                    _ => db.flush().unwrap(),
                }
                check_walks(&db, &rows, cap, &mut rng);
            }
            db.close().unwrap();
        }
    }
}
