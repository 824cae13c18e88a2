//! Goal: what is read through a batch, or through a transaction, is what will be there once it is written: by get, and by
//! walks in both directions, with seeks, turns, bounds and prefixes, in both built-in orders; savepoints take it back.
//! Method: random writes to a store and then to a batch, beside a sorted list; each read is compared with the list, and
//! in the end the store itself, after the batch is written.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::{
    Change, ColumnFamily, Comparator, Db, Env, ErrorKind, FamilyOptions, FixedPrefix, IndexedBatch,
    KeyOrder, Locking, Options, OverlayIterator, ReadOptions, Result, StringAppend, TransactionDb,
    TransactionOptions, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

const DIR: &str = "/db";

fn family_options(order: KeyOrder) -> FamilyOptions {
    FamilyOptions {
        order,
        merge_operator: Some(Arc::new(StringAppend::new(","))),
        prefix_extractor: Some(Arc::new(FixedPrefix::new(1))),
        ..FamilyOptions::default()
    }
}

fn options(order: KeyOrder) -> Options {
    Options {
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        family: family_options(order),
        ..Options::default()
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rows in the order of a family, and writes as a batch makes them.
#[derive(Clone)]
struct Twin {
    rows: Rows,
    order: KeyOrder,
}

impl Twin {
    fn apply(&mut self, write: &Write) {
        match write {
            Write::Put(key, value) => drop(self.rows.insert(key.clone(), value.clone())),
            Write::Delete(key) => drop(self.rows.remove(key)),
            Write::Merge(key, operand) => {
                let merged = match self.rows.get(key) {
                    Some(old) => [&old[..], b",", operand].concat(),
                    None => operand.clone(),
                };
                self.rows.insert(key.clone(), merged);
            }
            Write::DeleteRange(begin, end) => self.rows.retain(|key, _| {
                self.order.compare(key, begin).is_lt() || self.order.compare(key, end).is_ge()
            }),
        }
    }

    fn sorted(&self, options: &ReadOptions, sought: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let compare = |a: &[u8], b: &[u8]| self.order.compare(a, b);
        let inside = |key: &[u8]| {
            let lower = options.lower_bound.as_deref();
            let upper = options.upper_bound.as_deref();
            let prefix = sought.and_then(|sought| sought.first());
            lower.is_none_or(|lower| compare(key, lower).is_ge())
                && upper.is_none_or(|upper| compare(key, upper).is_lt())
                && (!options.prefix_same_as_start || prefix.is_none() || key.first() == prefix)
        };
        let rows = self.rows.iter().filter(|(key, _)| inside(key));
        let mut rows: Vec<_> = rows.map(|(k, v)| (k.clone(), v.clone())).collect();
        rows.sort_by(|a, b| compare(&a.0, &b.0));
        rows
    }
}

#[derive(Debug)]
enum Write {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let len = 1 + rng.below(2) as usize;
    (0..len).map(|_| b'a' + rng.below(4) as u8).collect()
}

fn random_write(rng: &mut Rng, order: &KeyOrder) -> Write {
    let key = random_key(rng);
    let value = rng.below(100).to_string().into_bytes();
    match rng.below(8) {
        0..3 => Write::Put(key, value),
        3 | 4 => Write::Delete(key),
        5 | 6 => Write::Merge(key, value),
        _ => {
            let other = random_key(rng);
            match order.compare(&key, &other) {
                Ordering::Greater => Write::DeleteRange(other, key),
                _ => Write::DeleteRange(key, other),
            }
        }
    }
}

fn add(batch: &mut IndexedBatch, family: &ColumnFamily, write: &Write) -> Result<()> {
    match write {
        Write::Put(key, value) => batch.put(family, key, value),
        Write::Delete(key) => batch.delete(family, key),
        Write::Merge(key, operand) => batch.merge(family, key, operand),
        Write::DeleteRange(begin, end) => batch.delete_range(family, begin, end),
    }
}

fn random_options(rng: &mut Rng, order: &KeyOrder) -> ReadOptions {
    let mut bounds = [0; 2].map(|_| (rng.below(3) == 0).then(|| random_key(rng)));
    if let [Some(lower), Some(upper)] = &bounds
        && order.compare(lower, upper).is_gt()
    {
        bounds.swap(0, 1);
    }
    let [lower_bound, upper_bound] = bounds;
    ReadOptions {
        lower_bound,
        upper_bound,
        prefix_same_as_start: rng.below(4) == 0,
        ..ReadOptions::default()
    }
}

/// Moves `walk` at random, and checks each place.
fn walk_at_random(
    rng: &mut Rng,
    walk: &mut OverlayIterator<'_>,
    twin: &Twin,
    options: &ReadOptions,
) {
    for _ in 0..6 {
        let sought = random_key(rng);
        let compare = |row: &(Vec<u8>, Vec<u8>)| twin.order.compare(&row.0, &sought);
        let (mut rows, mut at);
        match rng.below(4) {
            0 => {
                walk.seek_to_first();
                rows = twin.sorted(options, None);
                let first = rows.first().map(|row| row.0.clone());
                rows = twin.sorted(options, first.as_deref());
                at = 0;
            }
            1 => {
                walk.seek_to_last();
                rows = twin.sorted(options, None);
                let last = rows.last().map(|row| row.0.clone());
                rows = twin.sorted(options, last.as_deref());
                at = rows.len() as i64 - 1;
            }
            2 => {
                walk.seek(&sought);
                rows = twin.sorted(options, Some(&sought));
                at = rows.iter().filter(|row| compare(row).is_lt()).count() as i64;
            }
            _ => {
                walk.seek_for_prev(&sought);
                rows = twin.sorted(options, Some(&sought));
                at = rows.iter().filter(|row| compare(row).is_le()).count() as i64 - 1;
            }
        }
        let forward = rng.below(2) == 0;
        for _ in 0..8 {
            let want = usize::try_from(at).ok().and_then(|at| rows.get(at));
            let got = walk
                .valid()
                .then(|| (walk.key().to_vec(), walk.value().to_vec()));
            assert_eq!(got.as_ref(), want);
            walk.status().unwrap();
            if got.is_none() {
                break;
            }
            match forward == (rng.below(4) > 0) {
                true => {
                    walk.next();
                    at += 1;
                }
                false => {
                    walk.prev();
                    at -= 1;
                }
            }
        }
    }
}

fn check(rng: &mut Rng, batch: &mut IndexedBatch, db: &Db, family: &ColumnFamily, twin: &Twin) {
    let key = random_key(rng);
    let read = batch.get_over(db, family, &key, &ReadOptions::default());
    let want = twin.rows.get(&key).map(|value| &value[..]);
    assert_eq!(read.unwrap().as_deref(), want);
    let options = random_options(rng, &twin.order);
    let mut walk = batch.iter_over(db, family, options.clone()).unwrap();
    walk_at_random(rng, &mut walk, twin, &options);
}

#[test]
fn what_is_read_through_a_batch_is_what_will_be_there() {
    for order in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise] {
        let db = Db::open(DIR, options(order.clone())).unwrap();
        let family = db.default_family();
        let mut committed = Twin {
            rows: Rows::new(),
            order: order.clone(),
        };
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut batch = IndexedBatch::new();
            let mut now = committed.clone();
            let mut saved = Vec::new();
            for _ in 0..rng.below(25) {
                match rng.below(12) {
                    0 => {
                        batch.set_savepoint();
                        saved.push(now.clone());
                    }
                    1 if !saved.is_empty() => {
                        batch.rollback_to_savepoint().unwrap();
                        now = saved.pop().unwrap();
                    }
                    2 | 3 => check(&mut rng, &mut batch, &db, family, &now),
                    _ => {
                        let write = random_write(&mut rng, &order);
                        add(&mut batch, family, &write).unwrap();
                        now.apply(&write);
                    }
                }
            }
            check(&mut rng, &mut batch, &db, family, &now);
            if rng.below(3) > 0 {
                db.write(batch.into_batch(), &WriteOptions::default())
                    .unwrap();
                committed = now;
            }
            check(&mut rng, &mut IndexedBatch::new(), &db, family, &committed);
            if rng.below(20) == 0 {
                db.flush().unwrap();
            }
        }
        db.close().unwrap();
    }
}

#[test]
fn a_walk_of_a_transaction_shows_its_moment_and_its_own_writes() {
    let db = TransactionDb::open(DIR, options(KeyOrder::Bytewise), Locking::default()).unwrap();
    let family = db.default_family();
    for key in [b"a", b"c", b"e"] {
        db.put(family, key, b"old").unwrap();
    }
    let keys = |walk: &mut OverlayIterator<'_>| {
        let mut keys = Vec::new();
        walk.seek_to_last();
        while walk.valid() {
            keys.push(walk.key().to_vec());
            walk.prev();
        }
        walk.status().unwrap();
        String::from_utf8(keys.concat()).unwrap()
    };
    let mut tx = db.begin();
    let mut later = db.begin_with(TransactionOptions {
        snapshot: false,
        ..TransactionOptions::default()
    });
    tx.put(family, b"b", b"own").unwrap();
    tx.single_delete(family, b"c").unwrap();
    tx.merge(family, b"e", b"own").unwrap();
    db.put(family, b"d", b"of another").unwrap();
    let mut walk = tx.iter(family, ReadOptions::default()).unwrap();
    assert_eq!(keys(&mut walk), "eba");
    walk.seek(b"d");
    assert_eq!(
        (walk.key(), walk.try_value().unwrap()),
        (&b"e"[..], &b"old,own"[..])
    );
    let mut walk = later.iter(family, ReadOptions::default()).unwrap();
    assert_eq!(keys(&mut walk), "edca");

    let options = ReadOptions {
        snapshot: Some(db.snapshot()),
        ..ReadOptions::default()
    };
    let error = tx.iter(family, options.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(keys(&mut later.iter(family, options).unwrap()), "edca");
    tx.commit().unwrap();
    let mut walk = later.iter(family, ReadOptions::default()).unwrap();
    assert_eq!(keys(&mut walk), "edba");
}

#[test]
fn a_batch_tells_what_it_does_to_each_key() {
    let db = Db::open(DIR, options(KeyOrder::Bytewise)).unwrap();
    let family = db.default_family();
    let mut batch = IndexedBatch::new();
    batch.put(family, b"a", b"1").unwrap();
    batch.merge(family, b"a", b"2").unwrap();
    batch.merge(family, b"b", b"3").unwrap();
    batch.put(family, b"c", b"4").unwrap();
    batch.delete_range(family, b"c", b"e").unwrap();
    batch.delete_range(family, b"e", b"f").unwrap();
    batch.merge(family, b"d", b"5").unwrap();
    batch.delete(family, b"g").unwrap();
    let told: Vec<String> = batch
        .changes(family)
        .unwrap()
        .map(|change| {
            let (key, change) = change.unwrap();
            let key = key.escape_ascii();
            match change {
                Change::Value(value) => format!("{key}={}", value.escape_ascii()),
                Change::Deleted => format!("{key} deleted"),
                Change::Operands(operands) => format!("{key}+{}", operands[0].escape_ascii()),
                Change::Untouched => panic!("{key} is not touched"),
            }
        })
        .collect();
    assert_eq!(told, ["a=1,2", "b+3", "d=5", "g deleted"]);
    let ranges: Vec<_> = batch.deleted_ranges(family).unwrap().collect();
    assert_eq!(ranges, [(&b"c"[..], &b"f"[..])]);
    assert!(matches!(
        batch.change(family, b"c").unwrap(),
        Change::Deleted
    ));
    assert!(matches!(
        batch.change(family, b"f").unwrap(),
        Change::Untouched
    ));

    let mut plain = WriteBatch::new();
    plain.put(b"a", b"1").unwrap();
    assert_eq!(batch.batch().count(), 8);
    batch.clear();
    batch.put(family, b"a", b"1").unwrap();
    assert_eq!(batch.changes(family).unwrap().count(), 1);
    assert_eq!(batch.batch(), &plain);
}

struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &'static str {
        "by length"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

#[test]
fn what_cannot_be_read_back_is_refused_by_name() {
    let db = Db::open(DIR, options(KeyOrder::Bytewise)).unwrap();
    let family = db.default_family();
    let odd = KeyOrder::Custom(Arc::new(ByLength));
    let odd = db.create_family("odd", family_options(odd)).unwrap();
    let foreign = Db::open(DIR, options(KeyOrder::Bytewise)).unwrap();
    let foreign = foreign.default_family();
    let mut batch = IndexedBatch::new();
    batch.put(&odd, b"k", b"v").unwrap();
    let reads = ReadOptions::default;
    for error in [
        batch.iter_over(&db, &odd, reads()).unwrap_err(),
        batch.get_over(&db, &odd, b"k", &reads()).unwrap_err(),
        batch.change(&odd, b"k").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().contains("odd"), "{error}");
    }
    for error in [
        batch.iter_over(&db, foreign, reads()).unwrap_err(),
        batch.get_over(&db, foreign, b"k", &reads()).unwrap_err(),
        batch.delete_range(family, b"b", b"a").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(
        batch.pop_savepoint().unwrap_err().kind(),
        ErrorKind::NotFound
    );
    db.write(batch.into_batch(), &WriteOptions::default())
        .unwrap();
    assert!(db.get_cf(&odd, b"x", &reads()).unwrap().is_some());
}

#[test]
fn operands_that_cannot_be_applied_end_the_walk_with_their_error() {
    let mut options = options(KeyOrder::Bytewise);
    options.family.merge_operator = None;
    let db = Db::open(DIR, options).unwrap();
    let family = db.default_family();
    db.put(b"a", b"1").unwrap();
    let mut batch = IndexedBatch::new();
    batch.merge(family, b"b", b"2").unwrap();
    let mut walk = batch
        .iter_over(&db, family, ReadOptions::default())
        .unwrap();
    walk.seek_to_first();
    assert_eq!(walk.key(), b"a");
    walk.next();
    assert!(!walk.valid());
    assert_eq!(
        walk.status().unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    walk.seek(b"a");
    assert!(walk.valid() && walk.status().is_ok());
}
