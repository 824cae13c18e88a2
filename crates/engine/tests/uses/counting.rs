//! Goal: the count of a range holds, and is exact where one sorted run has the range. Method: random histories in tables of
//! every format, with deletions, range deletions, merges, flushes and compactions, counted beside a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::{
    Db, Env, FamilyOptions, FixedPrefix, KeyOrder, Options, RangeCount, StringAppend, TableFormat,
    Tuning, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 2000;
const FORMATS: [Option<TableFormat>; 3] = [
    Some(TableFormat::Block),
    Some(TableFormat::Plain),
    Some(TableFormat::Searchable),
];

fn open(format: Option<TableFormat>, with_prefixes: bool) -> Db {
    let prefix = with_prefixes.then(|| Arc::new(FixedPrefix::new(5)) as Arc<_>);
    let options = Options {
        family: FamilyOptions {
            merge_operator: Some(Arc::new(StringAppend::new(","))),
            prefix_extractor: prefix,
            table_format: format,
            ..FamilyOptions::default()
        },
        background_threads: Some(0),
        tuning: Tuning {
            target_file_bytes: 16 << 10,
            level_base_bytes: Some(64 << 10),
            ..Tuning::default()
        },
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    };
    Db::open("/db", options).expect("memory does not fail")
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// One random write to both.
fn change(db: &Db, rows: &mut Rows, rng: &mut Rng) {
    let number = rng.below(KEYS);
    let key_of = key(number);
    match rng.below(60) {
        0..12 => {
            db.delete(&key_of).expect("memory does not fail");
            rows.remove(&key_of);
        }
        12..16 => {
            let family = db.default_family();
            let options = WriteOptions::default();
            db.merge_cf(family, &key_of, "more", &options)
                .expect("memory does not fail");
            let value = rows.entry(key_of).or_default();
            let comma = if value.is_empty() { "" } else { "," };
            value.extend_from_slice(comma.as_bytes());
            value.extend_from_slice(b"more");
        }
        16 => {
            let end = key(number + rng.below(100));
            let family = db.default_family();
            let options = WriteOptions::default();
            db.delete_range_cf(family, &key_of, &end, &options)
                .expect("memory does not fail");
            rows.retain(|key, _| *key < key_of || *key >= end);
        }
        _ => {
            let value = vec![b'v'; rng.below(40) as usize + 1];
            db.put(&key_of, &value).expect("memory does not fail");
            rows.insert(key_of, value);
        }
    }
}

fn range_of<'a>(
    rows: &'a Rows,
    bounds: (Option<&'a [u8]>, Option<&'a [u8]>),
) -> impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> {
    rows.iter().filter(move |(key, _)| {
        bounds.0.is_none_or(|begin| &key[..] >= begin) && bounds.1.is_none_or(|end| &key[..] < end)
    })
}

fn bound(rng: &mut Rng) -> Option<Vec<u8>> {
    (rng.below(5) > 0).then(|| key(rng.below(KEYS + 100)))
}

/// Counts random ranges. How many of them are exact.
fn check(db: &Db, rows: &Rows, rng: &mut Rng, what: &str) -> usize {
    let mut exact = 0;
    for _ in 0..40 {
        let (begin, end) = (bound(rng), bound(rng));
        let bounds = (begin.as_deref(), end.as_deref());
        let count = db
            .count_range(db.default_family(), bounds.0, bounds.1)
            .expect("memory does not fail");
        let keys = range_of(rows, bounds).count() as u64;
        assert!(
            count.keys.contains(&keys),
            "{what}: {keys} in {bounds:?}: {count:?}"
        );
        exact += usize::from(count.is_exact());
    }
    exact
}

#[test]
fn counts_hold_for_any_history_and_are_exact_in_one_run() {
    for (seed, format) in (0..6).zip(FORMATS.into_iter().cycle()) {
        let db = open(format, seed % 2 == 1);
        let (mut rows, mut rng) = (Rows::new(), Rng::new(seed));
        for round in 0..6 {
            let what = format!("seed {seed}, round {round}");
            for step in 0..1500 {
                change(&db, &mut rows, &mut rng);
                if step % 400 == 399 {
                    check(&db, &rows, &mut rng, &what);
                }
                if rng.one_in(500) {
                    db.flush().unwrap();
                }
            }
            check(&db, &rows, &mut rng, &what);
            db.flush().unwrap();
            db.wait_for_background().unwrap();
            check(&db, &rows, &mut rng, &what);
            if round % 2 == 1 {
                db.compact_range(db.default_family(), None, None).unwrap();
                let exact = check(&db, &rows, &mut rng, &what);
                assert_eq!(exact, 40, "one run: {what}");
                check_ranks(&db, &rows, &mut rng, &what);
            }
        }
    }
}

/// In one run without merges, bytes are exact as well, and each key has its rank.
fn check_ranks(db: &Db, rows: &Rows, rng: &mut Rng, what: &str) {
    let family = db.default_family();
    let (begin, end) = (key(rng.below(KEYS / 2)), key(KEYS / 2 + rng.below(KEYS)));
    let count = db
        .count_range(family, Some(&begin), Some(&end))
        .expect("memory does not fail");
    let bytes = range_of(rows, (Some(&begin), Some(&end)));
    let bytes: usize = bytes.map(|(key, value)| key.len() + value.len()).sum();
    assert_eq!(count.bytes, bytes as u64..=bytes as u64, "{what}");
    for _ in 0..20 {
        let rank = rng.below(rows.len() as u64);
        let found = db
            .key_at_rank(family, rank)
            .expect("memory does not fail")
            .expect("there are more");
        let expected = rows
            .keys()
            .nth(rank as usize)
            .expect("memory does not fail");
        assert_eq!((&found.key, found.rank), (expected, rank..=rank), "{what}");
    }
    assert_eq!(
        db.key_at_rank(family, rows.len() as u64)
            .expect("memory does not fail"),
        None
    );
}

#[test]
fn keys_of_several_versions_that_begin_alike_are_counted_once() {
    for format in FORMATS {
        let db = open(format, false);
        let (mut rows, mut rng) = (Rows::new(), Rng::new(3));
        // All keys but the last share a front, and those of a group more than eight bytes behind it.
        let long =
            |group: u64, number: u64| format!("a{group:02}/the same/{number:04}").into_bytes();
        let keys = (0..8).flat_map(|group| (0..200).map(move |number| long(group, number)));
        let keys: Vec<_> = keys.chain([b"b".to_vec()]).collect();
        let mut kept = Vec::new();
        for version in 0..3 {
            for key in keys.iter().filter(|_| version == 0 || rng.one_in(2)) {
                let value = vec![b'v'; version * 10 + 1];
                db.put(key, &value).unwrap();
                rows.insert(key.clone(), value);
            }
            kept.push(db.snapshot());
        }
        db.flush().unwrap();
        for _ in 0..500 {
            let bound = |rng: &mut Rng| {
                let mut bound = long(rng.below(9), rng.below(210));
                match rng.below(5) {
                    0 => bound.truncate(rng.below(16) as usize),
                    1 => bound.push(b'0'),
                    2 => bound = b"ab".to_vec(), // Without the front, and before the last key.
                    _ => {}
                }
                bound
            };
            let (begin, end) = (bound(&mut rng), bound(&mut rng));
            let bounds = (Some(&begin[..]), Some(&end[..]));
            let keys = range_of(&rows, bounds).count() as u64;
            let bytes = range_of(&rows, bounds).map(|(key, value)| key.len() + value.len());
            let bytes = bytes.sum::<usize>() as u64;
            let expected = RangeCount {
                keys: keys..=keys,
                bytes: bytes..=bytes,
            };
            let count = db.count_range(db.default_family(), bounds.0, bounds.1);
            assert_eq!(count.unwrap(), expected, "{format:?}: {bounds:?}");
        }
        drop(kept);
    }
}

/// Counts from each key and from between any two, to a random bound behind it. All are exact in one run.
fn check_every_bound(db: &Db, rows: &Rows, keys: &[Vec<u8>], rng: &mut Rng, what: &str) {
    let family = db.default_family();
    for at in 0..keys.len() {
        let bound = |at: usize, rng: &mut Rng| match rng.below(3) {
            0 => [&keys[at][..], &[0]].concat(),
            _ => keys[at].clone(),
        };
        let begin = bound(at, rng);
        let end = bound(at + rng.below((keys.len() - at) as u64) as usize, rng);
        let is_reverse = matches!(family.order(), KeyOrder::ReverseBytewise);
        let (mut count, mut bytes) = (0, 0);
        for (key, value) in rows {
            let is_inside = match is_reverse {
                true => *key <= end && *key > begin,
                false => *key >= begin && *key < end,
            };
            count += u64::from(is_inside);
            bytes += u64::from(is_inside) * (key.len() + value.len()) as u64;
        }
        let bounds = match is_reverse {
            true => (Some(&end[..]), Some(&begin[..])),
            false => (Some(&begin[..]), Some(&end[..])),
        };
        let expected = RangeCount {
            keys: count..=count,
            bytes: bytes..=bytes,
        };
        let counted = db.count_range(family, bounds.0, bounds.1);
        assert_eq!(counted.unwrap(), expected, "{what}: {bounds:?}");
    }
}

#[test]
fn bounds_anywhere_in_blocks_of_any_layout_are_exact() {
    for seed in 0..24 {
        let mut rng = Rng::new(seed);
        let is_reverse = seed % 8 == 4;
        let options = Options {
            family: FamilyOptions {
                order: [KeyOrder::Bytewise, KeyOrder::ReverseBytewise][usize::from(is_reverse)]
                    .clone(),
                table_format: Some(TableFormat::Block),
                ..FamilyOptions::default()
            },
            background_threads: Some(0),
            tuning: Tuning {
                block_bytes: 1 << (6 + rng.below(7)),
                restart_interval: 1 + rng.below(20) as usize,
                partition_above_bytes: [0, u64::MAX][rng.below(2) as usize],
                ..Tuning::default()
            },
            env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
            ..Options::default()
        };
        let db = Db::open("/db", options).unwrap();
        // Some are few bytes that tags have, too, so that keys share bytes with the tags before them.
        let mut keys: Vec<_> = (0..600)
            .map(|number| match seed % 3 {
                0 => (0..1 + rng.below(10)).map(|_| rng.below(2) as u8).collect(),
                _ => key(number),
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let value_max = [1, 60, 3000][rng.below(3) as usize];
        let mut rows = Rows::new();
        for key in &keys {
            if rng.one_in(5) {
                db.delete(key).unwrap();
            } else {
                let value = vec![b'v'; rng.below(value_max) as usize];
                db.put(key, &value).unwrap();
                rows.insert(key.clone(), value);
            }
        }
        let snapshot = db.snapshot();
        if seed % 4 == 3 {
            let (begin, end) = (&keys[keys.len() / 3], &keys[keys.len() / 2]);
            let options = WriteOptions::default();
            db.delete_range_cf(db.default_family(), begin, end, &options)
                .unwrap();
            rows.retain(|key, _| key < begin || key >= end);
        }
        db.flush().unwrap();
        check_every_bound(&db, &rows, &keys, &mut rng, &format!("seed {seed}"));
        drop(snapshot);
    }
}

#[test]
fn ranks_over_several_runs_are_told_with_their_bounds() {
    let db = open(Some(TableFormat::Block), false);
    let (mut rows, mut rng) = (Rows::new(), Rng::new(9));
    for _ in 0..4 {
        (0..1500).for_each(|_| change(&db, &mut rows, &mut rng));
        db.flush().unwrap();
    }
    for _ in 0..50 {
        let rank = rng.below(rows.len() as u64);
        let Some(found) = db.key_at_rank(db.default_family(), rank).unwrap() else {
            panic!("there are {} keys", rows.len());
        };
        let before = rows.range(..found.key.clone()).count() as u64;
        assert!(found.rank.contains(&before), "{before}: {found:?}");
    }
}

#[test]
fn an_empty_range_and_a_small_one_in_memory_are_counted() {
    let db = open(Some(TableFormat::Block), false);
    let family = db.default_family().clone();
    let count = |begin: &str, end: &str| {
        let bounds = (Some(begin.as_bytes()), Some(end.as_bytes()));
        db.count_range(&family, bounds.0, bounds.1).unwrap()
    };
    let nothing = RangeCount {
        keys: 0..=0,
        bytes: 0..=0,
    };
    assert_eq!(count("a", "z"), nothing);
    assert_eq!(db.key_at_rank(&family, 0).unwrap(), None);
    for number in 0..1000 {
        db.put(key(number), "12345").unwrap();
    }
    assert_eq!(count("z", "a"), nothing);
    assert_eq!(count("key00010", "key00010"), nothing);
    assert_eq!(
        count("key00010", "key00040"),
        RangeCount {
            keys: 30..=30,
            bytes: 390..=390
        }
    );
    let many = count("a", "z");
    assert!(
        many.keys.contains(&1000) && *many.keys.end() == 1000,
        "{many:?}"
    );
    db.flush().unwrap();
    assert_eq!(count("a", "z").keys, 1000..=1000);
    assert_eq!(count("key00010", "key00500").keys, 490..=490);
}

#[test]
fn what_is_learned_is_charged_and_given_back() {
    let db = open(Some(TableFormat::Block), false);
    for number in 0..5000 {
        db.put(key(number), "12345").unwrap();
    }
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    let used = || {
        let names = db.budget().used_by_name();
        names.iter().map(|(_, bytes)| bytes).sum::<usize>()
    };
    db.get(key(7)).unwrap(); // Opens the table.
    let before = used();
    let count = db
        .count_range(db.default_family(), Some(&key(7)), Some(&key(4000)))
        .unwrap();
    assert_eq!(count.keys, 3993..=3993);
    assert!(used() > before, "ranks are charged");
}
