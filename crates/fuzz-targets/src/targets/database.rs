//! A small database in memory against a sorted map.
//!
//! A long input is a whole history, flushed and compacted beside it by a thread. A short one is a few
//! small steps without threads, at a tenth of the cost: millions of them fit where thousands of the
//! others do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use drumlin::{
    Db, DbIterator, Env, FamilyOptions, MergeOperator, Options, ReadOptions, Result, Snapshot,
    Tuning, WriteBatch, WriteOptions,
};
use drumlin_fs::{CrashPolicy, ManualClock, StrictMemFileSystem};

use crate::input::Input;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Merges by putting the operands behind the value.
struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "fuzz.Append"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let mut value = existing.unwrap_or_default().to_vec();
        operands
            .iter()
            .for_each(|operand| value.extend_from_slice(operand));
        Ok(value)
    }

    fn partial_merge(&self, _: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        Some([left, right].concat())
    }
}

/// Bytes from which an input is a whole history.
const WHOLE_FROM: usize = 512;
/// Most operations of a whole history.
const OPERATIONS_MAX: usize = 400;
/// Most operations of a short input.
const STEPS_MAX: usize = 8;
/// How many times fewer rows than in a whole history a step of many puts has in a short input.
const FEWER: u8 = 16;
/// Most snapshots held at once.
const SNAPSHOTS_MAX: usize = 4;

struct World {
    whole: bool,
    files: StrictMemFileSystem,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
}

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let whole = data.len() >= WHOLE_FROM;
    let mut world = World {
        whole,
        files: StrictMemFileSystem::new(),
        db: None,
        model: Model::new(),
        snapshots: Vec::new(),
    };
    world.open();
    let steps = if whole { OPERATIONS_MAX } else { STEPS_MAX };
    for _ in 0..steps {
        if input.is_empty() {
            break;
        }
        world.step(&mut input);
    }
    if whole {
        world.check_all();
    }
    // Opening is most of the cost of a short input.
    if whole || data.len().is_multiple_of(2) {
        world.reopen(None);
    }
    world.check_all();
}

fn options(files: &StrictMemFileSystem, whole: bool) -> Options {
    Options {
        memory_budget: Some(4 << 20),
        background_threads: Some(usize::from(whole)),
        tuning: Tuning {
            write_buffer_bytes: Some(16 << 10),
            target_file_bytes: 4 << 10,
            level_base_bytes: Some(8 << 10),
            l0_trigger: 2,
            block_bytes: 256,
            restart_interval: 3,
            partition_above_bytes: 2 << 10,
            blob_from_bytes: Some(128),
            ..Tuning::default()
        },
        family: FamilyOptions {
            merge_operator: Some(Arc::new(Append)),
            ..FamilyOptions::default()
        },
        env: Env::system()
            .with_files(Arc::new(files.clone()))
            .with_clock(Arc::new(ManualClock::new(1_700_000_000)))
            .with_seed(1),
        ..Options::default()
    }
}

impl World {
    fn open(&mut self) {
        let db = Db::open(Path::new("/db"), options(&self.files, self.whole));
        self.db = Some(db.expect("the database opens"));
    }

    fn db(&self) -> &Db {
        self.db
            .as_ref()
            .expect("the database is open between steps")
    }

    /// Closes and opens again; with a seed, the power fails in between, after a synced write.
    fn reopen(&mut self, crash: Option<u64>) {
        self.snapshots.clear();
        if let Some(seed) = crash {
            self.db().sync_wal().expect("memory does not fail");
            let policy = CrashPolicy::ALL[seed as usize % CrashPolicy::ALL.len()];
            let image = self.files.crash_image(seed, policy);
            drop(self.db.take());
            self.files = image;
        } else if let Some(db) = self.db.take() {
            db.close().expect("memory does not fail");
        }
        self.open();
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(16) {
            0..=4 => self.write(input),
            5 => self.delete_range(input),
            6 => self.many(input),
            7 | 8 => self.check_get(&input.key(5)),
            9 if input.below(2) == 0 => self.check_bounds(input),
            9 => self.check_seek(input),
            10 => self.db().flush().expect("memory does not fail"),
            11 => self.compact(input),
            12 => self.take_or_check_snapshot(input),
            13 => self.check_all(),
            14 => self.reopen(None),
            _ => {
                let seed = u64::from(input.byte());
                self.reopen(Some(seed));
            }
        }
    }

    /// A batch of puts, deletions and merge operands.
    fn write(&mut self, input: &mut Input<'_>) {
        let mut batch = WriteBatch::new();
        for _ in 0..=input.below(4) {
            let key = input.key(5);
            match input.below(5) {
                0 => {
                    batch.delete(&key).expect("a short key");
                    self.model.remove(&key);
                }
                1 => {
                    let operand = [input.byte()];
                    batch.merge(&key, &operand).expect("a short operand");
                    self.model.entry(key).or_default().extend(operand);
                }
                _ => {
                    let value = vec![input.byte(); usize::from(input.byte())];
                    batch.put(&key, &value).expect("a short value");
                    self.model.insert(key, value);
                }
            }
        }
        let options = WriteOptions::default();
        self.db()
            .write(batch, &options)
            .expect("memory does not fail");
    }

    fn delete_range(&mut self, input: &mut Input<'_>) {
        let (begin, end) = (input.key(3), input.key(3));
        let (begin, end) = (begin.clone().min(end.clone()), begin.max(end));
        self.model.retain(|key, _| *key < begin || *key >= end);
        let family = self.db().default_family();
        let written = self
            .db()
            .delete_range_cf(family, &begin, &end, &WriteOptions::default());
        written.expect("memory does not fail");
    }

    /// Enough to fill blocks and memtables.
    fn many(&mut self, input: &mut Input<'_>) {
        let (stem, fill) = (input.key(2), input.byte());
        let rows = input.byte() / if self.whole { 1 } else { FEWER };
        for index in 0..rows {
            let key = [stem.as_slice(), &[index]].concat();
            let value = vec![fill; usize::from(fill)];
            self.db().put(&key, &value).expect("memory does not fail");
            self.model.insert(key, value);
        }
    }

    fn compact(&self, input: &mut Input<'_>) {
        let (begin, end) = (input.key(2), input.key(2));
        let begin = (!begin.is_empty()).then_some(begin);
        let end = (!end.is_empty()).then_some(end);
        if begin.is_some() && end.is_some() && begin > end {
            return;
        }
        let db = self.db();
        db.compact_range(db.default_family(), begin.as_deref(), end.as_deref())
            .expect("memory does not fail");
    }

    fn take_or_check_snapshot(&mut self, input: &mut Input<'_>) {
        if self.snapshots.len() < SNAPSHOTS_MAX && input.below(2) == 0 {
            let snapshot = self.db().snapshot();
            self.snapshots.push((snapshot, self.model.clone()));
        } else if !self.snapshots.is_empty() {
            let index = usize::from(input.byte()) % self.snapshots.len();
            let (snapshot, model) = self.snapshots.swap_remove(index);
            check_scan(self.db(), &model, Some(snapshot));
        }
    }

    fn check_get(&self, key: &[u8]) {
        let found = self.db().get(key).expect("memory does not fail");
        let expected = self.model.get(key);
        assert_eq!(found.as_deref(), expected.map(Vec::as_slice), "{key:?}");
    }

    fn check_seek(&self, input: &mut Input<'_>) {
        let key = input.key(5);
        let mut iter = self.db().iter(ReadOptions::default());
        iter.seek(&key);
        assert_eq!(here(&iter), entry(self.model.range(key.clone()..).next()));
        for _ in 0..input.below(4) {
            if !iter.valid() {
                break;
            }
            let at = iter.key().to_vec();
            if input.below(2) == 0 {
                iter.next();
                let after = self.model.range(at.clone()..).find(|(key, _)| **key > at);
                assert_eq!(here(&iter), entry(after));
            } else {
                iter.prev();
                assert_eq!(here(&iter), entry(self.model.range(..at).next_back()));
            }
        }
        iter.seek_for_prev(&key);
        assert_eq!(here(&iter), entry(self.model.range(..=key).next_back()));
        iter.status().expect("memory does not fail");
    }

    /// A walk within bounds, forwards and back, and a seek from outside.
    fn check_bounds(&self, input: &mut Input<'_>) {
        let (lower, upper) = (input.key(3), input.key(3));
        let mut iter = self.db().iter(ReadOptions {
            lower_bound: Some(lower.clone()),
            upper_bound: Some(upper.clone()),
            ..ReadOptions::default()
        });
        let mut inside: Vec<_> = self.model.iter().collect();
        inside.retain(|(key, _)| **key >= lower && **key < upper);
        iter.seek_to_first();
        for expected in &inside {
            assert_eq!(here(&iter), entry(Some(*expected)));
            iter.next();
        }
        assert_eq!(here(&iter), None);
        iter.seek_to_last();
        for expected in inside.iter().rev() {
            assert_eq!(here(&iter), entry(Some(*expected)));
            iter.prev();
        }
        assert_eq!(here(&iter), None);
        let key = input.key(4);
        iter.seek(&key);
        let after = inside.iter().find(|(found, _)| **found >= key);
        assert_eq!(here(&iter), entry(after.copied()));
        iter.seek_for_prev(&key);
        let before = inside.iter().rev().find(|(found, _)| **found <= key);
        assert_eq!(here(&iter), entry(before.copied()));
        iter.status().expect("memory does not fail");
    }

    fn check_all(&self) {
        check_scan(self.db(), &self.model, None);
        let keys: Vec<&Vec<u8>> = self.model.keys().take(8).collect();
        let db = self.db();
        let found = db.multi_get_cf(db.default_family(), &keys, &ReadOptions::default());
        for (key, found) in keys.into_iter().zip(found) {
            let found = found.expect("memory does not fail");
            assert_eq!(found.as_deref(), self.model.get(key).map(Vec::as_slice));
            self.check_get(key);
        }
    }
}

fn entry(entry: Option<(&Vec<u8>, &Vec<u8>)>) -> Option<(Vec<u8>, Vec<u8>)> {
    entry.map(|(key, value)| (key.clone(), value.clone()))
}

fn here(iter: &DbIterator) -> Option<(Vec<u8>, Vec<u8>)> {
    iter.valid()
        .then(|| (iter.key().to_vec(), iter.value().to_vec()))
}

/// A whole walk there and back.
fn check_scan(db: &Db, model: &Model, snapshot: Option<Snapshot>) {
    let mut iter = db.iter(ReadOptions {
        snapshot,
        ..ReadOptions::default()
    });
    iter.seek_to_first();
    for expected in model {
        assert_eq!(here(&iter), entry(Some(expected)));
        iter.next();
    }
    assert_eq!(here(&iter), None);
    iter.seek_to_last();
    for expected in model.iter().rev() {
        assert_eq!(here(&iter), entry(Some(expected)));
        iter.prev();
    }
    assert_eq!(here(&iter), None);
    iter.status().expect("memory does not fail");
}
