//! Goal: in a family with a time to live no read shows what is older, and every read shows what is not, by the store's clock;
//! what has no time behind it ends in a clear error and is kept. Method: random histories in tables of every format under a
//! clock that the test moves, all reads beside a map with times; then stores with values that are none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ColumnFamily, Db, DirectoryFormat, Env, ErrorKind, FamilyOptions, ImportOptions, Locking,
    Options, ReadOptions, SstFileWriter, StringAppend, TableFormat, TableWriterOptions,
    TransactionDb, Tuning, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{CrashPolicy, ManualClock, StrictMemFileSystem};

const KEYS: u64 = 40;
/// Some second of 2023.
const BEGIN: u64 = 1_700_000_000;
const TTL: u64 = 100;
const STEPS: usize = 600;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    text: String,
    written: u64,
}

/// A key's value and the operands on it, oldest first. What the first part is does not matter: both are texts to be joined.
type Rows = BTreeMap<Vec<u8>, Vec<Part>>;

struct Store {
    memory: StrictMemFileSystem,
    env: Env,
    clock: ManualClock,
    format: TableFormat,
    ttl: Option<Duration>,
    blobs: bool,
}

impl Store {
    fn new(format: TableFormat, ttl: Option<Duration>, blobs: bool) -> Self {
        let clock = ManualClock::new(BEGIN);
        let memory = StrictMemFileSystem::new();
        let mut env = Env::system().with_files(Arc::new(memory.clone()));
        env.clock = Arc::new(clock.clone());
        Self {
            memory,
            env,
            clock,
            format,
            ttl,
            blobs,
        }
    }

    fn options(&self) -> Options {
        Options {
            background_threads: Some(0),
            family: FamilyOptions {
                ttl: self.ttl,
                merge_operator: Some(Arc::new(StringAppend::new(","))),
                table_format: Some(self.format),
                ..FamilyOptions::default()
            },
            tuning: Tuning {
                target_file_bytes: 4 << 10,
                level_base_bytes: Some(8 << 10),
                // So that a WAL is short, which is read whole after a power cut.
                write_buffer_bytes: Some(64 << 10),
                blob_from_bytes: self.blobs.then_some(12),
                ..Tuning::default()
            },
            env: self.env.clone(),
            ..Options::default()
        }
    }

    /// Cuts the power.
    fn cut(&mut self, seed: u64) {
        self.memory = self.memory.crash(seed, CrashPolicy::KeepNothing);
        self.env = self.env.clone().with_files(Arc::new(self.memory.clone()));
    }

    fn open(&self) -> Db {
        Db::open("/db", self.options()).unwrap()
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

fn is_live(part: &Part, ttl: u64, now: u64) -> bool {
    ttl == 0 || part.written + ttl >= now
}

/// Whether `found` is what a reader may see of `parts`: all that is live, and before it as much as a compaction merged in time.
fn may_show(parts: &[Part], ttl: u64, now: u64, found: Option<&[u8]>) -> bool {
    let Some(first) = parts.iter().position(|part| is_live(part, ttl, now)) else {
        return found.is_none();
    };
    let joined = |from: usize| {
        let texts: Vec<_> = parts[from..].iter().map(|part| &*part.text).collect();
        texts.join(",").into_bytes()
    };
    found.is_some_and(|found| (0..=first).any(|from| joined(from) == found))
}

fn change(db: &Db, family: &ColumnFamily, rows: &mut Rows, rng: &mut Rng, now: u64, step: usize) {
    let options = WriteOptions::default();
    let number = rng.below(KEYS);
    let of = key(number);
    let part = Part {
        text: format!("{step}{}", "x".repeat(rng.below(20) as usize)),
        written: now,
    };
    match rng.below(12) {
        0..5 => {
            db.put_cf(family, &of, &part.text, &options).unwrap();
            rows.insert(of, vec![part]);
        }
        5..8 => {
            db.merge_cf(family, &of, &part.text, &options).unwrap();
            rows.entry(of).or_default().push(part);
        }
        8 => {
            db.delete_cf(family, &of, &options).unwrap();
            rows.remove(&of);
        }
        9 => {
            let end = key(number + 3);
            db.delete_range_cf(family, &of, &end, &options).unwrap();
            rows.retain(|key, _| *key < of || *key >= end);
        }
        _ => {
            let mut batch = WriteBatch::new();
            let other = key(rng.below(KEYS));
            batch.put_log_data(b"of no family").unwrap();
            batch.delete_cf(family.id(), &of).unwrap();
            batch
                .put_cf(family.id(), &other, part.text.as_bytes())
                .unwrap();
            let last = db.commit(&mut batch, &options).unwrap();
            assert_eq!(last, db.latest_seqno());
            rows.remove(&of);
            rows.insert(other, vec![part]);
        }
    }
}

/// All reads of `family` show the same, and what the rows have.
fn check(db: &Db, family: &ColumnFamily, rows: &Rows, ttl: u64, now: u64) {
    let keys: Vec<_> = (0..KEYS + 3).map(key).collect();
    let options = ReadOptions::default();
    let none = Vec::new();
    let live: Vec<_> = keys
        .iter()
        .filter(|key| {
            let mut parts = rows.get(*key).unwrap_or(&none).iter();
            parts.any(|part| is_live(part, ttl, now))
        })
        .collect();
    let mut many = db.multi_get_cf(family, &keys, &options).into_iter();
    let mut viewed = db.view().multi_get_cf(family, &keys, &options).into_iter();
    let mut shown = BTreeMap::new();
    for key in &keys {
        let one = db.get_cf(family, key, &options).unwrap();
        let parts = rows.get(key).unwrap_or(&none);
        let (at, key_text) = (now - BEGIN, String::from_utf8_lossy(key));
        assert!(
            may_show(parts, ttl, now, one.as_deref()),
            "{key_text} at {at}: {one:?} of {parts:?}"
        );
        assert_eq!(many.next().unwrap().unwrap(), one, "{key_text} at {at}");
        assert_eq!(viewed.next().unwrap().unwrap(), one, "{key_text} at {at}");
        if let Some(one) = one {
            shown.insert(key.clone(), one.to_vec());
        }
    }
    let mut cursor = db.iter_cf(family, ReadOptions::default());
    let mut walked = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        let newest = rows[cursor.key()].last().unwrap().written;
        assert_eq!(cursor.written_at(), (ttl > 0).then_some(newest));
        assert_eq!(cursor.pin_value(), *cursor.value());
        assert_eq!(cursor.try_value().unwrap(), cursor.value());
        walked.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next();
    }
    cursor.status().unwrap();
    assert!(walked.iter().map(|(key, _)| key).eq(live.iter().copied()));
    assert!(walked.iter().map(|(k, v)| (k, v)).eq(shown.iter()));
    let mut backwards = Vec::new();
    cursor.seek_to_last();
    while cursor.valid() {
        backwards.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.prev();
    }
    cursor.status().unwrap();
    backwards.reverse();
    assert_eq!(backwards, walked);
    for sought in keys.iter().step_by(7) {
        cursor.seek(sought);
        let next = live.iter().find(|key| **key >= sought);
        assert_eq!(
            cursor.valid().then(|| cursor.key()),
            next.map(|key| &***key)
        );
        cursor.seek_for_prev(sought);
        let before = live.iter().rfind(|key| **key <= sought);
        assert_eq!(
            cursor.valid().then(|| cursor.key()),
            before.map(|key| &***key)
        );
    }
    let count = db.count_range(family, None, None).unwrap();
    assert!(
        count.keys.contains(&(live.len() as u64)),
        "{count:?}, {}",
        live.len()
    );
}

fn run(seed: u64, format: TableFormat, blobs: bool) {
    let mut rng = Rng::new(seed);
    let mut store = Store::new(format, Some(Duration::from_secs(TTL)), blobs);
    let mut db = store.open();
    let without = FamilyOptions {
        merge_operator: Some(Arc::new(StringAppend::new(","))),
        ..FamilyOptions::default()
    };
    let other = FamilyOptions {
        ttl: Some(Duration::from_secs(3 * TTL)),
        ..without.clone()
    };
    db.create_family("longer", other).unwrap();
    db.create_family("without", without.clone()).unwrap();
    let names = ["default", "longer", "without"];
    let mut ttls = [TTL, 3 * TTL, 0];
    let mut rows = [Rows::new(), Rows::new(), Rows::new()];
    let mut now = BEGIN;
    for step in 0..STEPS {
        let at = rng.below(3) as usize;
        let family = db.column_family(names[at]).unwrap();
        change(&db, &family, &mut rows[at], &mut rng, now, step);
        match rng.below(40) {
            0..12 => {
                let seconds = rng.below(TTL / 8);
                store.clock.advance(Duration::from_secs(seconds));
                now += seconds;
            }
            12 => db.flush().unwrap(),
            13 => db.compact_range(&family, None, None).unwrap(),
            14 | 15 => {
                db.sync_wal().unwrap();
                if rng.below(2) > 0 {
                    store.cut(seed);
                }
                drop(family);
                drop(db);
                // Whoever says nothing has what the OPTIONS file says.
                let families: Vec<_> = names[1..].iter().map(|n| (*n, without.clone())).collect();
                let mut options = store.options();
                options.family.ttl = (rng.below(2) > 0).then(|| Duration::from_secs(ttls[0]));
                let default = ("default", options.family.clone());
                let all: Vec<_> = families.into_iter().chain([default]).collect();
                db = Db::open_families("/db", options, &all).unwrap();
            }
            16 => {
                // Shorter: a longer one brings back what no compaction has dropped.
                ttls[0] = (ttls[0] - 7).max(20);
                let default = db.default_family().clone();
                db.set_ttl(&default, Duration::from_secs(ttls[0])).unwrap();
            }
            _ => {}
        }
        if step % 10 == 9 {
            for at in 0..3 {
                let family = db.column_family(names[at]).unwrap();
                assert_eq!(family.ttl().map_or(0, |ttl| ttl.as_secs()), ttls[at]);
                check(&db, &family, &rows[at], ttls[at], now);
            }
        }
    }
    // A year later.
    store.clock.advance(Duration::from_secs(365 * 24 * 60 * 60));
    let default = db.default_family().clone();
    check(
        &db,
        &default,
        &Rows::new(),
        ttls[0],
        now + 365 * 24 * 60 * 60,
    );
    db.compact_range(&default, None, None).unwrap();
    db.compact_range(&default, None, None).unwrap();
    assert_eq!(
        db.metrics().unwrap().families[0]
            .levels
            .iter()
            .map(|l| l.tables)
            .sum::<u64>(),
        0
    );
}

#[test]
fn reads_show_what_lives_and_nothing_else() {
    for seed in 0..6 {
        for format in [
            TableFormat::Block,
            TableFormat::Plain,
            TableFormat::Searchable,
        ] {
            println!("seed {seed}, {format:?}");
            run(seed, format, seed % 2 == 0);
        }
    }
}

/// An open database, and the message of an error.
fn refused(result: drumlin::Result<Db>, kind: ErrorKind) -> String {
    let error = result.err().unwrap();
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

#[test]
fn an_open_that_would_take_values_for_times_is_refused_and_changes_nothing() {
    for is_flushed in [false, true] {
        let mut store = Store::new(TableFormat::Block, None, false);
        let db = store.open();
        // Its last four letters would do as a time: RocksDB shows it without them.
        db.put("apple", "a value in English text").unwrap();
        db.delete("aardvark").unwrap();
        if is_flushed {
            db.flush().unwrap();
        }
        db.close().unwrap();
        store.ttl = Some(Duration::from_secs(TTL));
        for _ in 0..2 {
            let error = refused(Db::open("/db", store.options()), ErrorKind::InvalidArgument);
            assert!(error.contains("apple"), "{error}");
        }
        store.ttl = None;
        let db = store.open();
        assert_eq!(db.default_family().ttl(), None);
        assert_eq!(
            db.get("apple").unwrap().unwrap(),
            b"a value in English text"[..]
        );
        let ingested = db.set_ttl(db.default_family(), Duration::from_secs(1));
        assert_eq!(ingested.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_store_that_was_opened_without_its_times_gets_them_back() {
    let mut store = Store::new(TableFormat::Block, Some(Duration::from_secs(TTL)), false);
    let db = store.open();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    // As RocksDB leaves the file when it opens the store without a time to live.
    let files = &*store.env.files;
    let names = files.list("/db".as_ref()).unwrap();
    for name in names
        .iter()
        .filter(|name| name.to_string_lossy().starts_with("OPTIONS"))
    {
        files
            .remove(&std::path::Path::new("/db").join(name))
            .unwrap();
    }
    let db = store.open();
    assert_eq!(db.get("a").unwrap().unwrap(), b"1"[..]);
    db.close().unwrap();
    store.ttl = None;
    assert_eq!(store.open().get("a").unwrap().unwrap(), b"1"[..]);
}

/// A store with times that holds `value` as it is under `key`.
fn hostile(value: &[u8], with_operand: bool) -> Db {
    let mut store = Store::new(TableFormat::Block, Some(Duration::ZERO), false);
    let db = store.open();
    db.put("fine", "1").unwrap();
    db.close().unwrap();
    // Without the file nothing tells of the times, and what is first is fine.
    let files = Arc::clone(&store.env.files);
    let options_files = || {
        let names = files.list("/db".as_ref()).unwrap();
        let names = names.into_iter();
        names.filter(|name| name.to_string_lossy().starts_with("OPTIONS"))
    };
    for name in options_files() {
        files
            .remove(&std::path::Path::new("/db").join(name))
            .unwrap();
    }
    store.ttl = None;
    let db = store.open();
    // The first of its table, so that the open finds nothing.
    db.put("fine", [&b"1"[..], &(BEGIN as u32).to_le_bytes()].concat())
        .unwrap();
    match with_operand {
        true => db
            .merge_cf(
                db.default_family(),
                "hostile",
                value,
                &WriteOptions::default(),
            )
            .unwrap(),
        false => db.put("hostile", value).unwrap(),
    }
    db.close().unwrap();
    store.ttl = Some(Duration::from_secs(TTL));
    store.open()
}

#[test]
fn values_without_a_time_are_corruption_for_their_readers_and_are_kept() {
    let early = 1_368_146_401u32.to_le_bytes();
    let late = 0x8000_0000u32.to_le_bytes();
    for value in [&b""[..], b"abc", &[0; 9], &early, &late] {
        for with_operand in [false, true] {
            let db = hostile(value, with_operand);
            let read = || db.get("hostile").unwrap_err();
            assert_eq!(read().kind(), ErrorKind::Corruption);
            assert!(read().to_string().contains("hostile"), "{}", read());
            let keys = ["fine", "hostile", "none"];
            let default = ReadOptions::default();
            let answers = db.multi_get_cf(db.default_family(), &keys, &default);
            let answers: Vec<_> = answers
                .iter()
                .map(|a| a.as_ref().map(|v| v.is_some()).ok())
                .collect();
            assert_eq!(answers, [Some(true), None, Some(false)]);
            let mut cursor = db.iter(ReadOptions::default());
            cursor.seek_to_first();
            assert!(cursor.valid());
            cursor.next();
            assert!(!cursor.valid());
            assert_eq!(cursor.status().unwrap_err().kind(), ErrorKind::Corruption);
            // Of operands a compaction needs the times.
            let compacted = db.compact_range(db.default_family(), None, None);
            assert_eq!(compacted.is_err(), with_operand);
            assert_eq!(read().kind(), ErrorKind::Corruption);
            assert_eq!(db.get("fine").unwrap().unwrap(), b"1"[..]);
        }
    }
}

#[test]
fn a_clock_that_shows_no_time_that_can_be_stored_refuses_writes() {
    let store = Store::new(TableFormat::Block, Some(Duration::from_secs(TTL)), false);
    let db = store.open();
    for seconds in [0, 1_368_146_401, 1 << 31, 1 << 40] {
        store.clock.set_unix_seconds(seconds);
        let error = db.put("a", "1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("clock"), "{error}");
        db.delete("a").unwrap();
    }
    store.clock.set_unix_seconds(BEGIN);
    db.put("a", "1").unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"1"[..]);
}

#[test]
fn transactions_write_times_once_and_read_their_own_writes() {
    let store = Store::new(TableFormat::Block, Some(Duration::from_secs(TTL)), false);
    let plain = store.open();
    let db = TransactionDb::over(plain.clone(), Locking::default()).unwrap();
    let default = plain.default_family().clone();
    let prepare = |db: &TransactionDb| {
        let mut txn = db.begin();
        txn.put(&default, b"a", b"1").unwrap();
        txn.merge(&default, b"a", b"2").unwrap();
        assert_eq!(txn.get(&default, b"a").unwrap().unwrap(), b"1,2"[..]);
        txn.prepare("one").unwrap().commit().unwrap();
    };
    prepare(&db);
    assert_eq!(plain.get("a").unwrap().unwrap(), b"1,2"[..]);
    let mut txn = db.begin();
    txn.merge(&default, b"a", b"3").unwrap();
    assert_eq!(txn.get(&default, b"a").unwrap().unwrap(), b"1,2,3"[..]);
    store.clock.advance(Duration::from_secs(TTL + 1));
    assert_eq!(txn.get(&default, b"a").unwrap().unwrap(), b"3"[..]);
    txn.commit().unwrap();
    assert_eq!(plain.get("a").unwrap().unwrap(), b"3"[..]);
}

/// What expired before a compaction merged it is gone or what it was, not a value that nobody wrote.
#[test]
fn a_longer_time_to_live_shows_no_remains_of_merges() {
    let begin = Some(Duration::from_secs(TTL));
    for base in [false, true] {
        let store = Store::new(TableFormat::Block, begin, false);
        let db = store.open();
        let (family, options) = (db.default_family(), WriteOptions::default());
        if base {
            db.put("a", "1").unwrap();
        }
        for operand in ["2", "3"] {
            db.merge_cf(family, "a", operand, &options).unwrap();
            db.flush().unwrap();
        }
        store.clock.advance(Duration::from_secs(TTL + 1));
        db.compact_range(family, None, None).unwrap();
        assert!(db.get("a").unwrap().is_none());
        db.set_ttl(family, Duration::ZERO).unwrap();
        let found = db.get("a").unwrap();
        let whole = if base { &b"1,2,3"[..] } else { b"2,3" };
        assert!(found.is_none_or(|found| found == *whole));
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut store = Store::new(
        TableFormat::Block,
        Some(Duration::from_secs(1 << 31)),
        false,
    );
    refused(Db::open("/db", store.options()), ErrorKind::InvalidArgument);
    store.ttl = Some(Duration::from_secs(1));
    let leveldb = Options {
        format: DirectoryFormat::LevelDb,
        ..store.options()
    };
    refused(Db::open("/leveldb", leveldb), ErrorKind::NotSupported);
    // A part of a second is a second, and not for ever.
    store.ttl = Some(Duration::from_millis(1));
    assert_eq!(
        store.open().default_family().ttl(),
        Some(Duration::from_secs(1))
    );
}

#[test]
fn external_tables_need_times() {
    let store = Store::new(TableFormat::Block, Some(Duration::from_secs(TTL)), false);
    let db = store.open();
    let make = |path: &str, value: &[u8]| {
        let options = TableWriterOptions::default();
        let mut writer = SstFileWriter::create(&store.env, path.as_ref(), options).unwrap();
        writer.put(b"a", value).unwrap();
        writer.finish().unwrap();
        db.ingest(db.default_family(), &[path.into()], false)
    };
    let error = make("/without.sst", b"a value in English text").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let timed = [&b"1"[..], &(BEGIN as u32).to_le_bytes()].concat();
    make("/with.sst", &timed).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"1"[..]);
}

#[test]
fn an_imported_family_has_the_times_of_its_source() {
    let store = Store::new(TableFormat::Block, Some(Duration::from_secs(TTL)), false);
    let db = store.open();
    db.put("a", "1").unwrap();
    db.export_family(db.default_family(), "/export").unwrap();
    let import = ImportOptions {
        family: Some(FamilyOptions::default()),
        ..ImportOptions::default()
    };
    let family = db.import_family("taken", "/export", import).unwrap();
    assert_eq!(family.ttl(), Some(Duration::from_secs(TTL)));
    let read = || db.get_cf(&family, "a", &ReadOptions::default()).unwrap();
    assert_eq!(read().unwrap(), b"1"[..]);
    store.clock.advance(Duration::from_secs(TTL + 1));
    assert!(read().is_none());
}
