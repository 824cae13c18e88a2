//! Goal: in a family whose keys end with timestamps every version stays as long as anybody may read it, and those that
//! nobody reads go; what such a family cannot hold is refused. Method: random histories beside a map of versions, with
//! flushes, compactions, reopening and a lowest timestamp that rises; at every timestamp that may be read each key is looked
//! up as its readers do, by a seek, and both ways through all entries; after a compaction of everything the entries are
//! counted.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use drumlin::{
    Comparator, Db, DbIterator, Env, ErrorKind, KeyOrder, Options, ReadOptions, SstFileWriter,
    TableWriterOptions, Tuning, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

/// Bytewise keys, each with eight bytes behind it: the newest first.
struct Timed;

fn split(key: &[u8]) -> (&[u8], u64) {
    let (key, timestamp) = key.split_last_chunk::<8>().expect("a timestamp");
    (key, u64::from_be_bytes(*timestamp))
}

impl Comparator for Timed {
    fn name(&self) -> &str {
        "test.timed"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ((a, at_a), (b, at_b)) = (split(a), split(b));
        a.cmp(b).then_with(|| at_b.cmp(&at_a))
    }

    fn timestamp_bytes(&self) -> usize {
        8
    }

    fn compare_without_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        split(a).0.cmp(split(b).0)
    }
}

fn timed(key: &str, at: u64) -> Vec<u8> {
    [key.as_bytes(), &at.to_be_bytes()].concat()
}

fn options(files: &StrictMemFileSystem) -> Options {
    let mut options = Options {
        env: Env::system().with_files(Arc::new(files.clone())),
        background_threads: Some(0),
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 1 << 10,
            level_base_bytes: Some(8 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    };
    options.family.order = KeyOrder::Custom(Arc::new(Timed));
    options
}

/// The versions of each key, the newest first: `None` is a deletion.
type Versions = BTreeMap<String, BTreeMap<Reverse<u64>, Option<String>>>;

struct Bench {
    files: StrictMemFileSystem,
    db: Db,
    versions: Versions,
    now: u64,
    low: u64,
}

impl Bench {
    fn new() -> Self {
        let files = StrictMemFileSystem::new();
        let db = Db::open("/db", options(&files)).unwrap();
        Self {
            files,
            db,
            versions: Versions::new(),
            now: 1,
            low: 0,
        }
    }

    fn reopen(&mut self) {
        self.db.clone().close().unwrap();
        self.db = Db::open("/db", options(&self.files)).unwrap();
        let low = self.db.full_history_ts_low(self.db.default_family());
        let low = low.map_or(0, |low| split(&low).1);
        assert_eq!(low, self.low);
    }

    fn step(&mut self, rng: &mut Rng) {
        let key = format!("key{:02}", rng.below(20));
        match rng.below(20) {
            0 => self.db.flush().unwrap(),
            1 => self
                .db
                .compact_range(self.db.default_family(), None, None)
                .unwrap(),
            2 => self.reopen(),
            3 => {
                self.low = self.low.max(self.now.saturating_sub(rng.below(40)));
                let (family, low) = (self.db.default_family(), timed("", self.low));
                self.db.increase_full_history_ts_low(family, &low).unwrap();
            }
            4..8 => {
                self.now += rng.below(3) + 1;
                self.db.delete(timed(&key, self.now)).unwrap();
                let versions = self.versions.entry(key).or_default();
                versions.insert(Reverse(self.now), None);
            }
            _ => {
                self.now += rng.below(3) + 1;
                let value = format!("{key} of {}", self.now);
                self.db.put(timed(&key, self.now), &value).unwrap();
                let versions = self.versions.entry(key).or_default();
                versions.insert(Reverse(self.now), Some(value));
            }
        }
    }

    /// What a reader at `at` sees of `key`.
    fn seen(&self, key: &str, at: u64) -> Option<&String> {
        let versions = self.versions.get(key)?;
        versions.range(Reverse(at)..).next()?.1.as_ref()
    }

    fn check(&self) {
        let mut walk = self.db.iter(ReadOptions::default());
        for at in self.low.max(1)..=self.now + 1 {
            for key in self.versions.keys() {
                walk.seek(&timed(key, at));
                let is_seen =
                    walk.valid() && split(walk.key()).0 == key.as_bytes() && !walk.is_deletion();
                let found = is_seen.then(|| walk.value());
                assert_eq!(
                    found,
                    self.seen(key, at).map(String::as_bytes),
                    "{key} {at}"
                );
            }
        }
        walk.status().unwrap();
        let forward = entries(&mut walk, DbIterator::seek_to_first, DbIterator::next);
        let mut backward = entries(&mut walk, DbIterator::seek_to_last, DbIterator::prev);
        backward.reverse();
        assert_eq!(forward, backward);
    }

    /// Entries that are there, and those that somebody may read.
    fn counts(&self) -> (usize, usize) {
        let mut walk = self.db.iter(ReadOptions::default());
        let there = entries(&mut walk, DbIterator::seek_to_first, DbIterator::next).len();
        let read = self.versions.values().map(|versions| {
            let newer = versions.range(..Reverse(self.low)).count();
            let at_low = versions.range(Reverse(self.low)..);
            let is_at_low = at_low.clone().next().map(|(at, _)| at.0) == Some(self.low);
            // The newest that is old is read, too, unless it is a deletion or one is at the lowest itself.
            let mut old = versions.range(Reverse(self.low.saturating_sub(1))..);
            let is_old_read = old.next().is_some_and(|(_, value)| value.is_some());
            newer + usize::from(is_at_low) + usize::from(is_old_read)
        });
        (there, read.sum())
    }
}

type Entry = (Vec<u8>, bool, Vec<u8>);

fn entries(
    walk: &mut DbIterator,
    seek: fn(&mut DbIterator),
    step: fn(&mut DbIterator),
) -> Vec<Entry> {
    let mut found = Vec::new();
    seek(walk);
    while walk.valid() {
        found.push((
            walk.key().to_vec(),
            walk.is_deletion(),
            walk.value().to_vec(),
        ));
        step(walk);
    }
    walk.status().unwrap();
    found
}

#[test]
fn versions_stay_as_long_as_somebody_may_read_them() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut bench = Bench::new();
        for step in 0..400 {
            bench.step(&mut rng);
            if step % 40 == 0 {
                bench.check();
            }
        }
        bench.check();
        bench
            .db
            .compact_range(bench.db.default_family(), None, None)
            .unwrap();
        bench.check();
        let (there, read) = bench.counts();
        assert!(
            there <= read,
            "seed {seed}: {there} entries, {read} are read"
        );
    }
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    let mut bench = Bench::new();
    bench.db.put(timed("key", 1), "one").unwrap();
    let snapshot = bench.db.snapshot();
    bench.db.delete(timed("key", 2)).unwrap();
    bench.now = 5;
    bench.low = 5;
    let family = bench.db.default_family();
    let low = timed("", 5);
    bench.db.increase_full_history_ts_low(family, &low).unwrap();
    bench
        .db
        .compact_range(bench.db.default_family(), None, None)
        .unwrap();
    let reads = ReadOptions {
        snapshot: Some(snapshot),
        ..ReadOptions::default()
    };
    let mut walk = bench.db.iter(reads);
    walk.seek(&timed("key", 9));
    assert!(walk.valid() && !walk.is_deletion());
    assert_eq!(walk.value(), b"one");
}

/// The same order, of a program that knows of no timestamps.
struct Untimed;

impl Comparator for Untimed {
    fn name(&self) -> &str {
        Timed.name()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        Timed.compare(a, b)
    }
}

#[test]
fn deletions_with_timestamps_are_no_values_to_who_knows_of_none() {
    let bench = Bench::new();
    for key in ["a", "b", "c"] {
        bench.db.put(timed(key, 1), "one").unwrap();
    }
    bench.db.delete(timed("b", 2)).unwrap();
    bench.db.flush().unwrap();
    bench.db.clone().close().unwrap();
    let mut untimed = options(&bench.files);
    untimed.family.order = KeyOrder::Custom(Arc::new(Untimed));
    let db = Db::open("/db", untimed).unwrap();
    assert_eq!(db.get(timed("a", 1)).unwrap().unwrap(), b"one"[..]);
    let refused = db.get(timed("b", 2)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    for (seek, step) in [
        (
            DbIterator::seek_to_first as fn(&mut DbIterator),
            DbIterator::next as fn(&mut DbIterator),
        ),
        (DbIterator::seek_to_last, DbIterator::prev),
    ] {
        let mut walk = db.iter(ReadOptions::default());
        seek(&mut walk);
        assert_eq!(walk.value(), b"one");
        while walk.valid() {
            assert!(!walk.is_deletion());
            step(&mut walk);
        }
        let refused = walk.status().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    }
}

#[test]
fn what_keys_with_timestamps_cannot_hold_is_refused() {
    let bench = Bench::new();
    let (db, family) = (&bench.db, bench.db.default_family());
    let kind = |outcome: drumlin::Result<()>| outcome.unwrap_err().kind();
    assert_eq!(kind(db.put(b"short", "value")), ErrorKind::InvalidArgument);
    let writes = WriteOptions::default();
    let range = db.delete_range_cf(family, timed("a", 1), timed("b", 1), &writes);
    assert_eq!(kind(range), ErrorKind::NotSupported);
    let lows = [b"short".to_vec(), timed("longer", 1)];
    for low in lows {
        let raised = db.increase_full_history_ts_low(family, &low);
        assert_eq!(kind(raised), ErrorKind::InvalidArgument);
    }
    let raised = db.increase_full_history_ts_low(family, &timed("", 7));
    raised.unwrap();
    let lowered = db.increase_full_history_ts_low(family, &timed("", 6));
    assert_eq!(kind(lowered), ErrorKind::InvalidArgument);

    // A table with a deleted range, written in the same order by a program that knows of no timestamps.
    let env = options(&bench.files).env;
    let order = KeyOrder::Custom(Arc::new(Untimed));
    let made = TableWriterOptions {
        order,
        ..TableWriterOptions::default()
    };
    let path = Path::new("/db/external.sst");
    let mut writer = SstFileWriter::create(&env, path, made).unwrap();
    writer.delete_range(&timed("a", 1), &timed("b", 1)).unwrap();
    writer.finish().unwrap();
    let taken = db.ingest(family, &[path.to_path_buf()], false);
    assert_eq!(kind(taken.map(drop)), ErrorKind::NotSupported);
}
