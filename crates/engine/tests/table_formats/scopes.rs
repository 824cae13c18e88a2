//! Goal: keys that begin alike have tables and a model of their own where there are enough of them, and whatever lies
//! across the borders is read as it was written. Method: collections under prefixes in one family beside a map; tables
//! and the models they name looked at after compactions, reopenings and the end of a collection.

use std::collections::{BTreeMap, BTreeSet};

use drumlin::internals::batch::WriteBatch;
use drumlin::{Db, Env, Options, ReadOptions, TableFormat, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_table::Table;
use drumlin_testkit::memory_dir;

use crate::common::{self, Rows};

/// Bytes of a prefix here.
const SCOPE_BYTES: usize = 2;

fn options() -> Options {
    let mut options = common::options(Some(TableFormat::Searchable));
    options.family.prefix_extractor = None;
    options.family.scope_bytes = Some(SCOPE_BYTES);
    options.tuning.shared_model_from_bytes = 4 << 10;
    options
}

/// Makes a record of a kind.
type Kind = fn(&mut Rng) -> Vec<u8>;

fn order(rng: &mut Rng) -> Vec<u8> {
    let states = ["new", "paid", "shipped", "returned"];
    let state = states[rng.below(4) as usize];
    format!(
        "{{\"customer\":{},\"state\":\"{state}\",\"cents\":{}}}",
        rng.below(9000),
        rng.below(90_000)
    )
    .into_bytes()
}

fn prose(rng: &mut Rng) -> Vec<u8> {
    let words = [
        "carefully",
        "final",
        "deposits",
        "sleep",
        "quickly",
        "among",
        "silent",
        "moraines",
    ];
    let picked: Vec<&str> = (0..8 + rng.below(12))
        .map(|_| words[rng.below(8) as usize])
        .collect();
    picked.join(" ").into_bytes()
}

fn path(rng: &mut Rng) -> Vec<u8> {
    format!(
        "/usr/share/doc/lib{:04x}/changelog.{}.gz",
        rng.below(60_000),
        rng.below(9)
    )
    .into_bytes()
}

fn key(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

fn put(db: &Db, rows: &mut Rows, key: Vec<u8>, value: Vec<u8>) {
    db.put(&key, &value).unwrap();
    rows.insert(key, value);
}

/// Three collections, the middle one beside others of a few records.
fn fill(db: &Db, rows: &mut Rows, seed: u64) {
    let mut rng = Rng::new(seed);
    let kinds: [(&[u8], Kind); 3] = [(b"\0\x02", order), (b"\0\xFF", prose), (b"\xFF\xFF", path)];
    for (prefix, value) in kinds {
        for number in 0..1500 {
            put(db, rows, key(prefix, number), value(&mut rng));
        }
    }
    for small in [&b"\0\x01"[..], b"\0\x03", b"\0\xFE", b"\x01\0", b"a", b""] {
        for number in 0..3 {
            let key = [small, &vec![number; number as usize]].concat();
            put(db, rows, key, prose(&mut rng));
        }
    }
    db.flush().unwrap();
}

fn compact(db: &Db) {
    db.compact_range(db.default_family(), None, None).unwrap();
}

fn check(db: &Db, rows: &Rows) {
    let mut walk = db.iter(ReadOptions::default());
    walk.seek_to_first();
    for (key, value) in rows {
        assert!(walk.valid(), "{key:?} is missing");
        assert_eq!((walk.key(), walk.value()), (&key[..], &value[..]));
        walk.next();
    }
    assert!(!walk.valid());
    walk.status().unwrap();
    for (key, value) in rows.iter().step_by(5) {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    assert!(db.verify().unwrap().damaged.is_empty());
}

/// By the prefix of their first key: the models that tables name, and whether keys of another prefix are in any.
type Models = BTreeMap<Vec<u8>, (BTreeSet<Option<u64>>, bool)>;

fn models(db: &Db) -> Models {
    let files = Env::system().files;
    let mut found = Models::new();
    for table in db.live_tables(db.default_family()).unwrap() {
        let prefix = table
            .smallest
            .get(..SCOPE_BYTES)
            .unwrap_or(&table.smallest)
            .to_vec();
        let is_mixed = !table.largest.starts_with(&prefix);
        let model = Table::shared_model_of(&*files.open(&table.path).unwrap()).unwrap();
        let entry = found.entry(prefix).or_default();
        entry.0.insert(model);
        entry.1 |= is_mixed;
    }
    found
}

/// The models of the three collections: one each, and nothing else in their tables.
fn own(db: &Db) -> [u64; 3] {
    let models = models(db);
    [&b"\0\x02"[..], b"\0\xFF", b"\xFF\xFF"].map(|prefix| {
        let (ids, is_mixed) = &models[prefix];
        assert!(!is_mixed, "{models:?}");
        assert_eq!(ids.len(), 1, "{models:?}");
        ids.iter()
            .next()
            .unwrap()
            .expect("a model that tables share")
    })
}

#[test]
fn a_large_scope_has_tables_and_a_model_of_its_own() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options()).unwrap();
    fill(&db, &mut rows, 1);
    let snapshot = db.snapshot();
    fill(&db, &mut rows, 2);
    compact(&db);
    check(&db, &rows);
    let first = own(&db);
    assert_eq!(BTreeSet::from(first).len(), 3, "three kinds, three models");
    drop(snapshot);
    compact(&db);
    check(&db, &rows);
    assert_eq!(own(&db), first, "what serves is kept");
    db.close().unwrap();

    // Whoever says nothing of scopes takes them from the OPTIONS file.
    let unsaid = Options {
        family: drumlin::FamilyOptions {
            scope_bytes: None,
            ..options().family
        },
        ..options()
    };
    let db = Db::open(dir.path(), unsaid).unwrap();
    fill(&db, &mut rows, 3);
    compact(&db);
    check(&db, &rows);
    assert_eq!(own(&db), first);
    db.close().unwrap();

    // And a family whose scopes ended has one model again, in time.
    let mut without = options();
    without.family.scope_bytes = Some(0);
    let db = Db::open(dir.path(), without).unwrap();
    fill(&db, &mut rows, 4);
    compact(&db);
    check(&db, &rows);
    assert!(models(&db).values().any(|(_, is_mixed)| *is_mixed));
    db.close().unwrap();
}

#[test]
fn a_collection_that_ends_takes_its_model_along() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options()).unwrap();
    fill(&db, &mut rows, 1);
    compact(&db);
    let [_, prose, _] = own(&db);
    let mut batch = WriteBatch::new();
    batch.delete_range(b"\0\xFF", b"\x01").unwrap();
    db.write(batch, &WriteOptions::default()).unwrap();
    rows.retain(|key, _| !key.starts_with(b"\0\xFF"));
    compact(&db);
    check(&db, &rows);
    let left = models(&db);
    let all: BTreeSet<_> = left.values().flat_map(|(ids, _)| ids).collect();
    assert!(!all.contains(&Some(prose)), "{left:?}");
    db.close().unwrap();
}

#[test]
fn a_family_of_one_scope_keeps_its_model_whatever_is_added() {
    let dir = memory_dir();
    let mut rows = Rows::new();
    let db = Db::open(dir.path(), options()).unwrap();
    let mut rng = Rng::new(7);
    let mut seen = BTreeSet::new();
    for round in 0..8 {
        // After the first, rounds are too small for a model.
        let count = if round == 0 { 1500 } else { 20 };
        for _ in 0..count {
            put(
                &db,
                &mut rows,
                key(b"\0\x05", rng.below(2000)),
                order(&mut rng),
            );
        }
        db.flush().unwrap();
        compact(&db);
        seen.extend(models(&db).into_values().flat_map(|(ids, _)| ids));
    }
    check(&db, &rows);
    assert_eq!(seen.len(), 1, "{seen:?}");
    db.close().unwrap();
}

#[test]
fn what_lies_across_borders_is_read_as_it_was_written() {
    for seed in 0..12 {
        let dir = memory_dir();
        let mut rng = Rng::new(seed);
        let mut settings = options();
        settings.family.scope_bytes = Some(1 + rng.below(3) as usize);
        settings.tuning.shared_model_from_bytes = [0, 300][rng.below(2) as usize];
        settings.tuning.target_file_bytes = [1 << 10, 16 << 10][rng.below(2) as usize];
        settings.background_threads = Some(rng.below(3) as usize);
        let db = Db::open(dir.path(), settings).unwrap();
        let mut rows = Rows::new();
        let any = |rng: &mut Rng| {
            let letters = [0, 1, 0x7F, 0xFE, 0xFF];
            let length = rng.below(6) as usize;
            (0..length)
                .map(|_| letters[rng.below(5) as usize])
                .collect::<Vec<u8>>()
        };
        for _ in 0..10 {
            for _ in 0..400 {
                let key = any(&mut rng);
                let value = match rng.below(3) {
                    0 => order(&mut rng),
                    1 => prose(&mut rng),
                    _ => path(&mut rng),
                };
                put(&db, &mut rows, key, value);
            }
            let (a, b) = (any(&mut rng), any(&mut rng));
            let (from, to) = (a.clone().min(b.clone()), a.max(b));
            let mut batch = WriteBatch::new();
            batch.delete_range(&from, &to).unwrap();
            db.write(batch, &WriteOptions::default()).unwrap();
            rows.retain(|key, _| *key < from || *key >= to);
            db.flush().unwrap();
            if rng.one_in(2) {
                compact(&db);
            }
            check(&db, &rows);
        }
        db.close().unwrap();
    }
}
