//! Goal: under any mixture of operations and options, every read answers as a map would. Method:
//! random operations on a tiny database beside a `BTreeMap`, under a dozen sets of options; a
//! failure names the set and the seed.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use drumlin::{
    Codec, ColumnFamily, CompactionStyle, Compression, Db, DbIterator, DirectoryFormat,
    FamilyOptions, FixedPrefix, Options, ReadOptions, Snapshot, TableFormat, UniversalOptions,
    WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

use crate::support::{Append, DIR, Model, Op, Rows, difference, exhaustive, options, order};

/// One set of options, and the operations allowed under it.
struct Setup {
    name: &'static str,
    reverse: bool,
    /// Puts and deletions in one family only.
    plain: bool,
    change: fn(&mut Options),
}

impl Setup {
    const fn new(name: &'static str, change: fn(&mut Options)) -> Self {
        Self {
            name,
            reverse: false,
            plain: false,
            change,
        }
    }
}

struct World {
    setup: Setup,
    options: Options,
    rng: Rng,
    db: Db,
    model: Model,
    /// Keys that were put once and not removed since.
    single: BTreeSet<(String, Vec<u8>)>,
    snapshots: Vec<(Snapshot, Model)>,
    iterators: Vec<(DbIterator, Rows)>,
    made: u32,
}

fn run(setup: Setup) {
    let name = setup.name;
    let seeds = if exhaustive() { 60 } else { 3 };
    let (change, reverse, plain) = (setup.change, setup.reverse, setup.plain);
    for seed in 0..seeds {
        let setup = Setup {
            name,
            reverse,
            plain,
            change,
        };
        let outcome = std::panic::catch_unwind(|| World::new(setup, seed).live(350));
        if let Err(panic) = outcome {
            eprintln!("the model test {name:?} failed with seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

impl World {
    fn new(setup: Setup, seed: u64) -> Self {
        let mut options = options(Arc::new(StrictMemFileSystem::new()));
        options.family.order = order(setup.reverse);
        (setup.change)(&mut options);
        let db = Db::open(DIR, options.clone()).expect("a new database");
        let mut model = Model {
            reverse: setup.reverse,
            ..Model::default()
        };
        model.families.insert("default".into(), Rows::new());
        Self {
            rng: Rng::new(seed),
            setup,
            options,
            db,
            model,
            single: BTreeSet::new(),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            made: 0,
        }
    }

    fn live(mut self, steps: u32) {
        for _ in 0..steps {
            self.step();
        }
        self.check_all();
        self.reopen();
        self.check_all();
        let damaged = self.db.verify().expect("open").damaged;
        assert!(damaged.is_empty(), "{damaged:?}");
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..=54 => self.write(),
            55..=64 => self.check_some(),
            65..=69 => {
                let family = self.family();
                self.db.flush_cf(&family).expect("flush");
            }
            70..=73 => self.db.wait_for_background().expect("background"),
            74..=77 => self.compact(),
            78..=83 if self.snapshots.len() < 4 => {
                let snapshot = self.db.snapshot();
                self.snapshots.push((snapshot, self.model.clone()));
            }
            84..=87 if !self.snapshots.is_empty() => {
                let index = self.rng.below(self.snapshots.len() as u64) as usize;
                self.snapshots.swap_remove(index);
            }
            88..=91 => self.hold_iterator(),
            92..=93 => self.check_held(),
            94..=95 if !self.setup.plain => self.change_families(),
            96..=97 => self.reopen(),
            98 => self.check_all(),
            _ => {}
        }
    }

    fn family(&mut self) -> ColumnFamily {
        let families = self.db.families();
        let index = self.rng.below(families.len() as u64) as usize;
        families[index].clone()
    }

    fn key(&mut self) -> Vec<u8> {
        match self.rng.below(30) {
            0 => Vec::new(),
            1 => vec![0xFF; 1 + self.rng.below(3) as usize],
            _ => format!("k{:03}", self.rng.below(200)).into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = if self.rng.one_in(40) {
            3000
        } else {
            self.rng.below(80)
        };
        let letter = b'a' + self.rng.below(26) as u8;
        let mut value = vec![letter; len as usize];
        if self.rng.one_in(2) {
            self.rng.fill(&mut value);
        }
        value
    }

    fn op(&mut self, family: &str) -> Op {
        if self.setup.plain {
            return match self.rng.below(4) {
                0 => Op::Delete(self.key()),
                _ => Op::Put(self.key(), self.value()),
            };
        }
        match self.rng.below(40) {
            0..=21 => Op::Put(self.key(), self.value()),
            22..=28 => Op::Delete(self.key()),
            29..=34 => Op::Merge(self.key(), self.value()),
            35..=36 => {
                let (a, b) = (self.key(), self.key());
                let (a, b) = (a.clone().min(b.clone()), a.max(b));
                match self.setup.reverse {
                    false => Op::DeleteRange(a, b),
                    true => Op::DeleteRange(b, a),
                }
            }
            _ => self.single_op(family),
        }
    }

    /// A put of a key that is not there, or the single deletion of one that was put once.
    fn single_op(&mut self, family: &str) -> Op {
        let key = format!("s{:02}", self.rng.below(20)).into_bytes();
        let place = (family.to_owned(), key.clone());
        if self.single.remove(&place) {
            return Op::SingleDelete(key);
        }
        self.single.insert(place);
        Op::Put(key, self.value())
    }

    fn write(&mut self) {
        let mut batch = WriteBatch::new();
        let count = 1 + self.rng.below(12);
        for _ in 0..count {
            let family = self.family();
            let op = self.op(family.name());
            // Ranges may cover the keys of single deletions, which then were removed.
            if let Op::DeleteRange(begin, end) = &op {
                let reverse = self.setup.reverse;
                let (low, high) = if reverse { (end, begin) } else { (begin, end) };
                self.single
                    .retain(|(name, key)| name != family.name() || key < low || key > high);
            }
            op.add_to(&mut batch, family.id()).expect("a small batch");
            self.model.apply(family.name(), &op);
        }
        let options = WriteOptions {
            sync: Some(self.rng.one_in(10)),
            ..WriteOptions::default()
        };
        self.db.write(batch, &options).expect("write");
    }

    fn compact(&mut self) {
        let family = self.family();
        let (a, b) = (self.key(), self.key());
        let (a, b) = match a <= b {
            true => (a, b),
            false => (b, a),
        };
        let (a, b) = if self.setup.reverse { (b, a) } else { (a, b) };
        let begin = self.rng.one_in(2).then_some(a);
        let end = self.rng.one_in(2).then_some(b);
        let outcome = self
            .db
            .compact_range(&family, begin.as_deref(), end.as_deref());
        outcome.expect("compact");
    }

    fn change_families(&mut self) {
        let families = self.db.families();
        if families.len() < 4 && self.rng.one_in(2) {
            let name = format!("family{}", self.made);
            self.made += 1;
            let options = FamilyOptions {
                ..self.options.family.clone()
            };
            self.db.create_family(&name, options).expect("create");
            self.model.families.insert(name, Rows::new());
        } else if let Some(family) = families.get(1) {
            let before = self.rows_of(&self.model, family.name());
            let held = self.db.iter_cf(family, ReadOptions::default());
            self.db.drop_family(family).expect("drop");
            self.model.families.remove(family.name());
            self.single.retain(|(name, _)| name != family.name());
            for (_, model) in &mut self.snapshots {
                model.families.remove(family.name());
            }
            self.iterators.push((held, before));
            self.check_held();
        }
    }

    fn reopen(&mut self) {
        self.check_held();
        self.snapshots.clear();
        self.iterators.clear();
        self.db.clone().close().expect("close");
        if self.rng.one_in(3) {
            let reader = Db::open_read_only(DIR, self.options.clone()).expect("read only");
            std::mem::replace(&mut self.db, reader)
                .close()
                .expect("close");
            self.check_all();
        }
        let opened = Db::open_all_families(DIR, self.options.clone()).expect("reopen");
        self.db = opened;
    }

    fn rows_of(&self, model: &Model, family: &str) -> Rows {
        model.families.get(family).cloned().unwrap_or_default()
    }

    fn hold_iterator(&mut self) {
        if self.iterators.len() >= 3 {
            self.iterators.remove(0);
        }
        let family = self.family();
        let iter = self.db.iter_cf(&family, ReadOptions::default());
        let rows = self.rows_of(&self.model, family.name());
        self.iterators.push((iter, rows));
    }

    /// Iterators see the rows that were there when they were made.
    fn check_held(&mut self) {
        let mut held = std::mem::take(&mut self.iterators);
        for (iter, rows) in &mut held {
            self.walk(iter, rows, (Bound::Unbounded, Bound::Unbounded));
        }
        self.iterators = held;
    }

    fn check_some(&mut self) {
        let family = self.family();
        let (snapshot, model) = match self.snapshots.len() {
            0 => (None, self.model.clone()),
            len => match self.rng.below(2 * len as u64) as usize {
                index if index < len => {
                    let (snapshot, model) = &self.snapshots[index];
                    (Some(snapshot.clone()), model.clone())
                }
                _ => (None, self.model.clone()),
            },
        };
        let rows = self.rows_of(&model, family.name());
        let options = ReadOptions {
            snapshot,
            fill_cache: self.rng.one_in(2),
            ..ReadOptions::default()
        };
        if options.snapshot.is_some() && !model.families.contains_key(family.name()) {
            return; // The family is younger than the snapshot.
        }
        self.check_gets(&family, &rows, &options);
        self.check_bounded_walk(&family, &rows, options);
    }

    fn check_gets(&mut self, family: &ColumnFamily, rows: &Rows, options: &ReadOptions) {
        let mut keys: Vec<Vec<u8>> = (0..8).map(|_| self.key()).collect();
        keys.push(format!("s{:02}", self.rng.below(20)).into_bytes());
        let many = self.db.multi_get_cf(family, &keys, options);
        for (key, found) in keys.iter().zip(many) {
            let want = rows.get(key).map(Vec::as_slice);
            let got = self.db.get_cf(family, key, options).expect("get");
            assert_eq!(got.as_deref(), want, "get of {key:?}");
            assert_eq!(found.expect("get").as_deref(), want, "multi_get of {key:?}");
        }
    }

    fn check_bounded_walk(&mut self, family: &ColumnFamily, rows: &Rows, options: ReadOptions) {
        let (a, b) = (self.key(), self.key());
        let (low, high) = (a.clone().min(b.clone()), a.max(b));
        let low = self.rng.one_in(2).then_some(low);
        let high = self.rng.one_in(2).then_some(high);
        // In model order; the database's bounds are in its own.
        let (lower, upper, range) = match self.setup.reverse {
            false => (
                low.clone(),
                high.clone(),
                (
                    low.map_or(Bound::Unbounded, Bound::Included),
                    high.map_or(Bound::Unbounded, Bound::Excluded),
                ),
            ),
            true => (
                high.clone(),
                low.clone(),
                (
                    low.map_or(Bound::Unbounded, Bound::Excluded),
                    high.map_or(Bound::Unbounded, Bound::Included),
                ),
            ),
        };
        let options = ReadOptions {
            lower_bound: lower,
            upper_bound: upper,
            ..options
        };
        let mut iter = self.db.iter_cf(family, options);
        self.walk(&mut iter, rows, range);
    }

    /// Scans both ways, then moves at random.
    fn walk(
        &mut self,
        iter: &mut DbIterator,
        rows: &Rows,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) {
        let reverse = self.setup.reverse;
        let mut want: Vec<(Vec<u8>, Vec<u8>)> = match is_empty(&range) {
            true => Vec::new(),
            false => {
                let rows = rows.range(range);
                rows.map(|(k, v)| (k.clone(), v.clone())).collect()
            }
        };
        if reverse {
            want.reverse();
        }
        let forward = scan(iter, true);
        if forward != want {
            let (found, want) = (forward.into_iter().collect(), want.into_iter().collect());
            panic!("a forward scan: {}", difference(&found, &want));
        }
        let mut backward = scan(iter, false);
        backward.reverse();
        assert_eq!(forward, backward, "the scans differ");
        let mut at: Option<usize> = None;
        let before = |a: &[u8], b: &[u8]| if reverse { a > b } else { a < b };
        for _ in 0..25 {
            match (self.rng.below(6), at) {
                (0, _) => {
                    let key = self.key();
                    iter.seek(&key);
                    at = Some(want.partition_point(|row| before(&row.0, &key)));
                }
                (1, _) => {
                    let key = self.key();
                    iter.seek_for_prev(&key);
                    at = want
                        .partition_point(|row| !before(&key, &row.0))
                        .checked_sub(1);
                }
                (2 | 3, Some(index)) if index < want.len() => {
                    iter.next();
                    at = Some(index + 1);
                }
                (4 | 5, Some(index)) if index < want.len() => {
                    iter.prev();
                    at = index.checked_sub(1);
                }
                _ => {
                    iter.seek_to_last();
                    at = want.len().checked_sub(1);
                }
            }
            iter.status().expect("a sound database");
            let row = at.and_then(|index| want.get(index));
            assert_eq!(iter.valid(), row.is_some(), "validity after a move");
            if let Some((key, value)) = row {
                assert_eq!(iter.key(), key.as_slice());
                assert_eq!(iter.value(), value.as_slice());
            }
        }
    }

    fn check_all(&mut self) {
        let model = self.model.clone();
        let names: Vec<String> = self.db.families().iter().map(|f| f.name().into()).collect();
        let known: Vec<String> = model.families.keys().cloned().collect();
        let sorted: BTreeSet<_> = names.iter().cloned().collect();
        assert_eq!(sorted.into_iter().collect::<Vec<_>>(), known);
        for family in self.db.families() {
            let rows = self.rows_of(&model, family.name());
            self.check_gets(&family, &rows, &ReadOptions::default());
            let mut iter = self.db.iter_cf(&family, ReadOptions::default());
            self.walk(&mut iter, &rows, (Bound::Unbounded, Bound::Unbounded));
        }
    }
}

fn is_empty(range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    match range {
        (Bound::Included(a), Bound::Excluded(b)) | (Bound::Excluded(a), Bound::Included(b)) => {
            a >= b
        }
        _ => false,
    }
}

fn scan(iter: &mut DbIterator, forward: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    match forward {
        true => iter.seek_to_first(),
        false => iter.seek_to_last(),
    }
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        match forward {
            true => iter.next(),
            false => iter.prev(),
        }
    }
    iter.status().expect("a sound database");
    rows
}

fn codec(options: &mut Options, codec: Codec) {
    options.compression = Compression::new(codec);
}

#[test]
fn the_usual_options_agree_with_the_model() {
    run(Setup::new("usual", |_| {}));
}

#[test]
fn background_threads_agree_with_the_model() {
    run(Setup::new("threads", |options| {
        options.background_threads = Some(2);
    }));
}

#[test]
fn every_codec_agrees_with_the_model() {
    run(Setup::new("none", |options| codec(options, Codec::None)));
    run(Setup::new("zstd", |options| codec(options, Codec::Zstd)));
    run(Setup::new("snappy", |options| {
        codec(options, Codec::Snappy)
    }));
    run(Setup::new("zlib", |options| codec(options, Codec::Zlib)));
}

#[test]
fn without_filters_it_agrees_with_the_model() {
    run(Setup::new("no filter", |options| {
        options.tuning.filter_bits = 0.0;
        options.max_open_files = Some(4);
    }));
}

#[test]
fn prefix_filters_agree_with_the_model() {
    run(Setup::new("prefix", |options| {
        options.family.prefix_extractor = Some(Arc::new(FixedPrefix::new(2)));
    }));
    run(Setup::new("prefix only", |options| {
        options.family.prefix_extractor = Some(Arc::new(FixedPrefix::new(3)));
        options.tuning.whole_key_filter = false;
    }));
}

#[test]
fn partitioned_indexes_agree_with_the_model() {
    run(Setup::new("partitions", |options| {
        options.tuning.partition_above_bytes = 0;
        options.tuning.block_bytes = 64;
    }));
}

#[test]
fn a_restart_at_every_entry_agrees_with_the_model() {
    run(Setup::new("restarts", |options| {
        options.tuning.restart_interval = 1;
    }));
}

#[test]
fn plain_tables_agree_with_the_model() {
    run(Setup::new("plain tables", |options| {
        options.family.table_format = Some(TableFormat::Plain);
    }));
    run(Setup::new("plain tables, prefixes, threads", |options| {
        options.family.table_format = Some(TableFormat::Plain);
        options.family.prefix_extractor = Some(Arc::new(FixedPrefix::new(2)));
        options.background_threads = Some(2);
    }));
    run(Setup {
        reverse: true,
        ..Setup::new("plain tables in reverse", |options| {
            options.family.table_format = Some(TableFormat::Plain);
        })
    });
}

#[test]
fn past_the_page_cache_it_agrees_with_the_model() {
    run(Setup::new("direct", |options| {
        options.tuning.background_direct_io = Some(true);
        options.background_threads = Some(2);
    }));
}

#[test]
fn searchable_tables_agree_with_the_model() {
    run(Setup::new("searchable tables", |options| {
        options.family.table_format = Some(TableFormat::Searchable);
    }));
    run(Setup::new(
        "searchable tables, prefixes, threads",
        |options| {
            options.family.table_format = Some(TableFormat::Searchable);
            options.family.prefix_extractor = Some(Arc::new(FixedPrefix::new(2)));
            options.background_threads = Some(2);
        },
    ));
}

#[test]
fn universal_compaction_agrees_with_the_model() {
    for change in [
        |options: &mut Options| options.compaction_style = universal(),
        |options: &mut Options| {
            options.compaction_style = universal();
            options.background_threads = Some(2);
        },
        |options: &mut Options| {
            options.compaction_style = CompactionStyle::Universal(UniversalOptions {
                runs_trigger: 3,
                levels_max: 1,
                ..UniversalOptions::default()
            });
        },
    ] {
        run(Setup::new("universal", change));
    }
}

fn universal() -> CompactionStyle {
    CompactionStyle::Universal(UniversalOptions {
        runs_trigger: 3,
        ..UniversalOptions::default()
    })
}

#[test]
fn the_reverse_order_agrees_with_the_model() {
    run(Setup {
        reverse: true,
        ..Setup::new("reverse", |options| {
            options.family.merge_operator = Some(Arc::new(Append));
        })
    });
}

#[test]
fn a_memtable_of_one_write_agrees_with_the_model() {
    run(Setup::new("one write", |options| {
        options.tuning.write_buffer_bytes = Some(1);
        options.tuning.memtables_max = 2;
    }));
}

#[test]
fn a_leveldb_directory_agrees_with_the_model() {
    run(Setup {
        plain: true,
        ..Setup::new("leveldb", |options| {
            options.format = DirectoryFormat::LevelDb;
            options.family.merge_operator = None;
        })
    });
}
