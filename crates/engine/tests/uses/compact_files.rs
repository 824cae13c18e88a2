//! Goal: a compaction of tables that a user names loses nothing and shows nothing old, whatever tables and level are named; it
//! says what it did; one that cannot be done changes nothing; a table that is taken out brings nothing to light. Method: random histories beside a map, at present and at
//! snapshots; small databases whose tables are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::{
    CancelToken, Codec, CompactFilesOptions, CompactionStyle, Db, Env, ErrorKind, LiveTable,
    Options, ReadOptions, Snapshot, Tuning, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 300;

fn options(style: CompactionStyle) -> Options {
    Options {
        background_threads: Some(0),
        compaction_style: style,
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        tuning: Tuning {
            target_file_bytes: 2 << 10,
            blob_from_bytes: Some(200),
            l0_trigger: 100,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn tables(db: &Db) -> Vec<LiveTable> {
    let family = db.default_family().clone();
    db.live_tables(&family).expect("it is open")
}

fn rows(db: &Db, snapshot: Option<&Snapshot>) -> Rows {
    let options = ReadOptions {
        snapshot: snapshot.cloned(),
        ..ReadOptions::default()
    };
    let mut walk = db.iter_cf(db.default_family(), options);
    let mut found = Rows::new();
    walk.seek_to_first();
    while walk.valid() {
        found.insert(walk.key().to_vec(), walk.value().to_vec());
        walk.next();
    }
    walk.status().expect("memory does not fail");
    found
}

/// Some writes of each kind, and a flush.
fn change(db: &Db, rows: &mut Rows, rng: &mut Rng) {
    let key = |number: u64| format!("key{number:04}").into_bytes();
    for _ in 0..rng.below(60) + 1 {
        let at = rng.below(KEYS);
        match rng.below(10) {
            0 => {
                let (begin, end) = (key(at), key((at + rng.below(40)).min(KEYS)));
                db.delete_range_cf(db.default_family(), &begin, &end, &WriteOptions::default())
                    .expect("memory does not fail");
                rows.retain(|key, _| *key < begin || *key >= end);
            }
            1..=3 => {
                db.delete(key(at)).expect("memory does not fail");
                rows.remove(&key(at));
            }
            _ => {
                let len = if rng.below(20) == 0 { 300 } else { 20 };
                let mut value = vec![0; len];
                rng.fill(&mut value);
                db.put(key(at), &value).expect("memory does not fail");
                rows.insert(key(at), value);
            }
        }
    }
    db.flush().expect("memory does not fail");
}

/// Some of the tables into some level; whether that was done.
fn compact(db: &Db, rng: &mut Rng) -> bool {
    let tables = tables(db);
    let named = tables.iter().filter(|_| rng.below(3) == 0);
    let named: Vec<u64> = named.map(|table| table.number).collect();
    let deepest = tables.iter().filter(|it| named.contains(&it.number));
    let deepest = deepest.map(|table| table.level).max().unwrap_or(0);
    let output_level = rng.below(7) as usize;
    let how = CompactFilesOptions {
        file_bytes: (rng.below(2) == 0).then(|| 1 << rng.below(16)),
        compression: (rng.below(2) == 0).then_some(Codec::None),
        may_move: rng.below(2) == 0,
        ..CompactFilesOptions::default()
    };
    let family = db.default_family().clone();
    match db.compact_files(&family, &named, output_level, &how) {
        Ok(done) => {
            let inputs = done.input_tables.iter().map(|it| it.number);
            let inputs: Vec<u64> = inputs.collect();
            assert!(named.iter().all(|number| inputs.contains(number)));
            assert_eq!(done.output_level, output_level);
            let left = self::tables(db);
            for made in &done.output_tables {
                let found = left.iter().find(|it| it.number == made.number);
                assert_eq!(found.map(|it| it.level), Some(output_level), "{made:?}");
            }
            let is_left = |number: &u64| left.iter().any(|it| it.number == *number);
            assert!(done.trivial_move || !inputs.iter().any(is_left));
            true
        }
        Err(error) => {
            assert!(named.is_empty() || deepest > output_level, "{error}");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert_eq!(self::tables(db), tables);
            false
        }
    }
}

#[test]
fn whatever_is_named_every_row_stays_what_it_was() {
    let mut done = 0;
    for seed in 0..40 {
        println!("seed {seed}");
        let style = match seed % 3 {
            0 => CompactionStyle::Universal(drumlin::UniversalOptions::default()),
            _ => CompactionStyle::Leveled,
        };
        let db = Db::open("/db", options(style)).expect("memory does not fail");
        let (mut rng, mut now) = (Rng::new(seed), Rows::new());
        let mut held = Vec::new();
        for _ in 0..30 {
            match rng.below(3) {
                0 => change(&db, &mut now, &mut rng),
                1 => done += u32::from(compact(&db, &mut rng)),
                _ if rng.below(3) == 0 => held.push((db.snapshot(), now.clone())),
                _ if rng.below(8) == 0 => held.clear(),
                _ => {}
            }
            assert_eq!(rows(&db, None), now);
        }
        for (snapshot, then) in &held {
            assert_eq!(rows(&db, Some(snapshot)), *then);
        }
        drop(held);
        db.verify().expect("nothing is damaged");
        db.close().expect("memory does not fail");
    }
    assert!(done > 150, "{done} compactions");
}

/// Ten tables of L0 with the same keys.
fn ten() -> Db {
    let db = Db::open("/db", options(CompactionStyle::Leveled)).expect("memory does not fail");
    for round in 0..10 {
        for key in 0..50 {
            db.put(format!("key{key:02}"), format!("{round} of {key:0100}"))
                .expect("memory does not fail");
        }
        db.flush().expect("memory does not fail");
    }
    db
}

#[test]
fn older_tables_of_l0_go_along_and_newer_ones_stay() {
    let db = ten();
    let family = db.default_family().clone();
    let before = tables(&db);
    let fourth = before[3].number;
    let whole = CompactFilesOptions {
        file_bytes: Some(u64::MAX),
        ..CompactFilesOptions::default()
    };
    let done = db.compact_files(&family, &[fourth], 2, &whole);
    let done = done.expect("nothing else runs");
    let levels: Vec<usize> = tables(&db).iter().map(|table| table.level).collect();
    assert_eq!(levels, [0, 0, 0, 2]);
    assert_eq!((done.inputs, done.outputs, done.level), (7, 1, 0));
    assert_eq!(done.properties.len(), 8, "of inputs and outputs");
    assert_eq!(db.get("key07").unwrap().unwrap()[..1], *b"9");
    // Within L0 the neighbours alone.
    let named = [before[0].number, before[2].number];
    let done = db.compact_files(&family, &named, 0, &whole);
    assert_eq!(done.expect("nothing else runs").inputs, 3);
    let levels: Vec<usize> = tables(&db).iter().map(|table| table.level).collect();
    assert_eq!(levels, [0, 2]);
}

#[test]
fn tables_end_and_are_compressed_as_it_was_asked() {
    let db = ten();
    let family = db.default_family().clone();
    let newest = [tables(&db)[0].number];
    let mut how = CompactFilesOptions {
        file_bytes: Some(1 << 10),
        compression: Some(Codec::None),
        threads_max: Some(1),
        ..CompactFilesOptions::default()
    };
    let done = db.compact_files(&family, &newest, 1, &how);
    let done = done.expect("nothing else runs");
    assert!(done.outputs > 3, "{}", done.outputs);
    let codecs = |done: &drumlin::CompactionInfo| -> Vec<String> {
        let made = |number: u64| done.output_tables.iter().any(|it| it.number == number);
        let of = done.properties.iter().filter(|(number, _)| made(*number));
        of.map(|(_, it)| it.compression_name.clone()).collect()
    };
    assert!(codecs(&done).iter().all(|name| name == "NoCompression"));
    how.may_move = true;
    let one = [done.output_tables[0].number];
    let moved = db.compact_files(&family, &one, 5, &how);
    let moved = moved.expect("nothing else runs");
    assert!(moved.trivial_move && moved.output_tables[0].number == one[0]);
    how.may_move = false;
    how.compression = Some(Codec::Snappy);
    let all: Vec<u64> = tables(&db).iter().map(|it| it.number).collect();
    let written = db.compact_files(&family, &all, 6, &how);
    let written = written.expect("nothing else runs");
    assert!(written.takes_all && codecs(&written).iter().all(|name| name == "Snappy"));
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let db = ten();
    let family = db.default_family().clone();
    let before = tables(&db);
    let first = [before[0].number];
    let how = CompactFilesOptions::default();
    let refused = |tables: &[u64], level, how: &CompactFilesOptions| {
        let refused = db.compact_files(&family, tables, level, how);
        refused.expect_err("it cannot be done").kind()
    };
    assert_eq!(refused(&[], 1, &how), ErrorKind::InvalidArgument);
    assert_eq!(refused(&[9_999], 1, &how), ErrorKind::InvalidArgument);
    assert_eq!(refused(&first, 7, &how), ErrorKind::InvalidArgument);
    let cancel = CancelToken::new();
    cancel.cancel();
    let mut cancelled = CompactFilesOptions {
        cancel: Some(cancel.clone()),
        ..CompactFilesOptions::default()
    };
    assert_eq!(refused(&first, 1, &cancelled), ErrorKind::Aborted);
    assert_eq!(tables(&db), before);
    cancel.reset();
    db.compact_files(&family, &first, 1, &cancelled)
        .expect("it was taken back");
    let deeper = [tables(&db)[0].number];
    assert_eq!(refused(&deeper, 0, &how), ErrorKind::InvalidArgument);
    cancelled.cancel = None;

    let fifo = CompactionStyle::Fifo(drumlin::FifoOptions::default());
    let db = Db::open("/db", options(fifo)).expect("memory does not fail");
    db.put("key", "value").expect("memory does not fail");
    db.flush().expect("memory does not fail");
    let only = [tables(&db)[0].number];
    let refused = db.compact_files(db.default_family(), &only, 1, &how);
    let kind = refused.expect_err("it stays").kind();
    assert_eq!(kind, ErrorKind::NotSupported);
}

#[test]
fn a_table_goes_only_where_it_hides_nothing() {
    let db = ten();
    let family = db.default_family().clone();
    let numbers = || -> Vec<u64> { tables(&db).iter().map(|it| it.number).collect() };
    let all = numbers();
    let kind = |number| {
        let refused = db.delete_table(&family, number);
        refused.expect_err("it stays").kind()
    };
    assert_eq!(kind(9_999), ErrorKind::InvalidArgument);
    assert_eq!(kind(all[0]), ErrorKind::InvalidArgument);
    assert_eq!(kind(all[8]), ErrorKind::InvalidArgument);
    assert_eq!(numbers(), all);
    let gone = db.delete_table(&family, all[9]).expect("it is the oldest");
    assert_eq!(gone.tables, 1);
    assert_eq!(numbers(), all[..9]);
    db.compact_files(&family, &all[8..9], 3, &CompactFilesOptions::default())
        .expect("nothing else runs");
    // The oldest of L0 may hide what is deeper.
    let left = numbers();
    assert_eq!(kind(left[7]), ErrorKind::InvalidArgument);
    for &deep in &left[8..] {
        db.delete_table(&family, deep).expect("nothing is below it");
    }
    assert_eq!(numbers(), left[..8]);
    db.verify().expect("nothing is damaged");
}
