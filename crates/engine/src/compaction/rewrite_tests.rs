//! Goal: flushes and compactions over real tables change no answer, leave levels in shape, and on
//! any failure leave nothing behind. Method: a small tree driven at random by the picker beside a
//! naive twin; then the same job with a fault at every file operation, and with every byte of its
//! input damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drumlin_base::key::{ParsedKey, compare_internal};
use drumlin_base::limits::LEVELS;
use drumlin_base::rng::Rng;
use drumlin_base::{
    ErrorKind, InternalIterator, KeyOrder, MemoryBudget, RangeTombstone, Result, SEQNO_MAX, SeqNo,
    ValueKind,
};
use drumlin_fs::{
    Env, Fault, FaultFileSystem, FaultRule, StrictMemFileSystem, SystemClock, ThreadSpawner,
};
use drumlin_memtable::Memtable;
use drumlin_table::blob::BlobIndex;
use drumlin_table::{BlockCache, Codec, Compression, TableReadOptions, TableWriterOptions};

use super::blob_inputs::BlobInputs;
use super::blob_outputs::BlobOptions;
use super::blob_tally::BlobTally;
use super::leveled::Leveled;
use super::output::JobContext;
use super::pick::pick;
use super::picture::IDLE;
use super::plan::{CompactionOptions, InFlight, ManualRange, Moment, Plan, Work};
use super::rewrite::{self, Outcome};
use super::span::Span;
use super::stream_tests::{Append, Store};
use super::style::{CompactionStyle, UniversalOptions};
use crate::caches::table_cache::{TableCache, TableCacheOptions};
use crate::compaction::flush;
use crate::files::names;
use crate::iter::range_tombstone::Fragments;
use crate::version::{BlobFile, BlobFileAddition, BlobFileGarbage, FileMeta, NewFile, Version};
use crate::watch::reason::Reason;

const DIR: &str = "/db";

fn env(files: Arc<dyn drumlin_fs::FileSystem>) -> Env {
    Env {
        files,
        clock: Arc::new(SystemClock::new()),
        spawner: Arc::new(ThreadSpawner),
        seed: 1,
    }
}

fn table_cache(env: &Env, open_max: usize) -> Arc<TableCache> {
    let budget = MemoryBudget::new(64 << 20);
    TableCache::new(TableCacheOptions {
        env: env.clone(),
        dir: PathBuf::from(DIR),
        blocks: BlockCache::new(Arc::clone(&budget)),
        budget,
        models: None,
        open_max,
    })
}

fn context(env: &Env, numbers: &Arc<AtomicU64>) -> JobContext {
    let order = KeyOrder::Bytewise;
    let numbers = Arc::clone(numbers);
    let writer = TableWriterOptions {
        block_bytes: 128,
        restart_interval: 4,
        ..TableWriterOptions::default()
    };
    JobContext {
        env: env.clone(),
        dir: PathBuf::from(DIR),
        options: CompactionOptions {
            level_base_bytes: 6 << 10,
            target_file_bytes: 2 << 10,
            level_multiplier: 3,
            ..CompactionOptions::new(order)
        },
        tables: table_cache(env, 10),
        writers: std::array::from_fn(|_| writer.clone()),
        scopes: Vec::new(),
        merge_operator: Some(Arc::new(Append { partial: true })),
        full_history_ts_low: None,
        filter: None,
        has_blobs: true,
        blobs: BlobOptions {
            file_bytes: 2 << 10,
            compression: Compression::new(Codec::Lz4),
            ..BlobOptions::never()
        },
        numbers: Arc::new(move || numbers.fetch_add(1, Ordering::Relaxed)),
        snapshots: Vec::new(),
        threads_max: 1,
        progress: Arc::default(),
        watcher: None,
        direct: false,
        space: None,
    }
}

/// A tree of tables without a MANIFEST.
struct Tree {
    context: JobContext,
    levels: [Vec<Arc<FileMeta>>; LEVELS],
    blobs: BTreeMap<u64, BlobFile>,
    epoch: u64,
}

impl Tree {
    fn new(env: &Env) -> Self {
        env.files.create_dir_all(Path::new(DIR)).unwrap();
        env.files.sync_dir(Path::new(DIR)).unwrap();
        Self {
            context: context(env, &Arc::new(AtomicU64::new(1))),
            levels: Default::default(),
            blobs: BTreeMap::new(),
            epoch: 1,
        }
    }

    fn version(&self) -> Arc<Version> {
        let order = &self.context.options.order;
        let version = Version::new(order, self.levels.clone());
        Arc::new(version.with_blobs(self.blobs.clone()))
    }

    fn flush(&mut self, memtables: &[Arc<Memtable>]) -> Result<()> {
        let flushed = flush::run(&self.context, memtables)?;
        self.add_blobs(&flushed.blob_files, &[]);
        if let Some(mut file) = flushed.file {
            file.epoch = self.epoch;
            self.epoch += 1;
            self.levels[0].insert(0, Arc::new(FileMeta::new(file)));
        }
        Ok(())
    }

    fn run(&self, plan: &Plan) -> Result<Outcome> {
        rewrite::run(&self.context, &self.version(), plan, &Arc::default())
    }

    fn apply(&mut self, outcome: &Outcome) {
        for &(level, number) in &outcome.deleted_files {
            self.levels[level as usize].retain(|file| file.number != number);
            self.context.tables.evict(number);
            self.context
                .env
                .files
                .remove(&names::table(Path::new(DIR), number))
                .unwrap();
        }
        self.add(outcome.new_files.clone());
        self.add_blobs(&outcome.blob_additions, &outcome.blob_garbage);
    }

    fn add_blobs(&mut self, additions: &[BlobFileAddition], garbage: &[BlobFileGarbage]) {
        for addition in additions {
            let blob = BlobFile {
                addition: Arc::new(addition.clone()),
                ..BlobFile::default()
            };
            assert!(self.blobs.insert(addition.number, blob).is_none());
        }
        for more in garbage {
            let blob = self.blobs.get_mut(&more.number).unwrap();
            blob.garbage_count += more.garbage_count;
            blob.garbage_bytes += more.garbage_bytes;
        }
        let files = &self.context.env.files;
        self.blobs.retain(|&number, blob| {
            if blob.live_count() == 0 {
                files.remove(&names::blob(Path::new(DIR), number)).unwrap();
            }
            blob.live_count() > 0
        });
    }

    /// Garbage must match a count over all tables, and every table must say which files
    /// it refers to.
    fn check_blobs(&self) {
        let mut referred = BlobTally::default();
        for file in self.levels.iter().flatten() {
            let mut own = BlobTally::default();
            let table = self.context.tables.find(file).unwrap();
            let mut iter = table.iter(TableReadOptions::default());
            iter.seek_to_first();
            while iter.valid() {
                let key = ParsedKey::parse(iter.key()).unwrap();
                if key.kind == ValueKind::BlobIndex {
                    own.add(key.user_key, &BlobIndex::decode(iter.value()).unwrap());
                }
                iter.next();
            }
            let files: Vec<u64> = own.files().collect();
            assert_eq!(file.oldest_blob_file, files.first().copied().unwrap_or(0));
            assert!(
                file.blob_files
                    .as_deref()
                    .is_none_or(|known| known == files)
            );
            referred.append(&own);
        }
        for (&number, blob) in &self.blobs {
            let live = (blob.live_count(), blob.live_bytes());
            assert_eq!(referred.of(number), live, "blob file {number}");
            let path = names::blob(Path::new(DIR), number);
            let info = self.context.env.files.info(&path).unwrap();
            assert_eq!(info.size, blob.addition.file_bytes());
        }
        let known = |number| self.blobs.contains_key(&number);
        assert!(referred.files().all(known), "{referred:?}");
    }

    fn add(&mut self, files: Vec<(u32, NewFile)>) {
        for (level, file) in files {
            self.levels[level as usize].push(Arc::new(FileMeta::new(file)));
        }
        let order = &self.context.options.order;
        self.levels[0].sort_by_key(|file| std::cmp::Reverse(file.epoch));
        for level in &mut self.levels[1..] {
            level.sort_by(|a, b| compare_internal(order, &a.smallest, &b.smallest));
        }
    }

    fn forget_references(&mut self) {
        for file in self.levels.iter_mut().flatten() {
            let described = NewFile {
                blob_files: None,
                ..file.described().clone()
            };
            *file = Arc::new(FileMeta::new(described));
        }
    }

    fn carry_out(&mut self, plan: &Plan) {
        if let Some(edit) = plan.edit_alone(0) {
            for &(level, number) in &edit.deleted_files {
                self.levels[level as usize].retain(|file| file.number != number);
            }
            self.add(edit.new_files);
        } else {
            let outcome = self.run(plan).unwrap();
            self.apply(&outcome);
        }
    }

    /// Everything in the tables, each file's tombstones cut to its bounds.
    fn content(&self) -> Store {
        let mut store = Store::default();
        for file in self.levels.iter().flatten() {
            let one = self.content_of(file);
            store.entries.extend(one.entries);
            store.tombstones.extend(one.tombstones);
        }
        store
    }

    fn content_of(&self, file: &Arc<FileMeta>) -> Store {
        let order = &self.context.options.order;
        let table = self.context.tables.find(file).unwrap();
        let mut store = Store::default();
        let mut iter = table.iter(TableReadOptions::default());
        iter.seek_to_first();
        while iter.valid() {
            assert!(compare_internal(order, &file.smallest, iter.key()).is_le());
            assert!(compare_internal(order, iter.key(), &file.largest).is_le());
            let key = ParsedKey::parse(iter.key()).unwrap();
            assert!(file.smallest_seqno <= key.seqno && key.seqno <= file.largest_seqno);
            let (mut kind, mut value) = (key.kind, iter.value().to_vec());
            if kind == ValueKind::BlobIndex {
                let index = BlobIndex::decode(&value).unwrap();
                let mut blobs = BlobInputs::new(&self.context.env.files, Path::new(DIR));
                value = blobs.value(key.user_key, &index).unwrap().to_vec();
                kind = ValueKind::Value;
            }
            store
                .entries
                .push((key.user_key.to_vec(), key.seqno, kind, value));
            iter.next();
        }
        iter.status().unwrap();
        let tombstones = table.range_tombstones();
        let within = Fragments::within_file(order, tombstones, &file.smallest, &file.largest);
        store.tombstones.extend(within.tombstones());
        // A job writes its tombstones cut already, so that readers of any age read them right.
        assert_eq!(store.tombstones, tombstones);
        store
    }

    fn check_levels(&self) {
        let order = &self.context.options.order;
        for (number, level) in self.levels.iter().enumerate().skip(1) {
            for pair in level.windows(2) {
                let next = pair[1].smallest_user_key();
                assert!(
                    Span::of(&pair[0]).ends_before(order, next),
                    "L{number}: {pair:?}"
                );
            }
        }
        let listed = self.context.env.files.list(Path::new(DIR)).unwrap();
        assert_eq!(
            listed.len(),
            self.levels.iter().flatten().count() + self.blobs.len(),
            "no stray files"
        );
    }
}

/// Writes random operations into a memtable and the twin.
fn write_some(rng: &mut Rng, twin: &mut Store, seqno: &mut SeqNo, count: u64) -> Arc<Memtable> {
    let memtable = Memtable::new(KeyOrder::Bytewise);
    for _ in 0..count {
        *seqno += 1;
        let key = format!("key{:03}", rng.below(200)).into_bytes();
        let value = format!("{:0width$}", *seqno, width = 1 + rng.below(60) as usize).into_bytes();
        match rng.below(20) {
            0 => {
                let end = format!("key{:03}", rng.below(200)).into_bytes();
                memtable.add(*seqno, ValueKind::RangeDeletion, &key, &end);
                twin.tombstones.push(RangeTombstone {
                    begin: key,
                    end,
                    seqno: *seqno,
                });
            }
            1..=3 => {
                memtable.add(*seqno, ValueKind::Deletion, &key, b"");
                twin.entries
                    .push((key, *seqno, ValueKind::Deletion, vec![]));
            }
            4..=6 => {
                memtable.add(*seqno, ValueKind::Merge, &key, &value[..1]);
                twin.entries
                    .push((key, *seqno, ValueKind::Merge, value[..1].to_vec()));
            }
            _ => {
                memtable.add(*seqno, ValueKind::Value, &key, &value);
                twin.entries.push((key, *seqno, ValueKind::Value, value));
            }
        }
    }
    Arc::new(memtable)
}

fn assert_equal(twin: &Store, tree: &Tree, snapshots: &[SeqNo], what: &str) {
    let content = tree.content();
    for number in 0..200 {
        let key = format!("key{number:03}").into_bytes();
        for snapshot in snapshots.iter().copied().chain([SeqNo::MAX]) {
            let (expected, found) = (twin.read(&key, snapshot), content.read(&key, snapshot));
            assert_eq!(expected, found, "{what}: key{number:03} at {snapshot}");
        }
    }
}

#[test]
fn a_tree_kept_in_shape_answers_as_its_history() {
    let styles = [
        CompactionStyle::Leveled,
        CompactionStyle::Universal(UniversalOptions {
            runs_trigger: 3,
            ..UniversalOptions::default()
        }),
        CompactionStyle::Universal(UniversalOptions {
            runs_trigger: 3,
            levels_max: 1,
            ..UniversalOptions::default()
        }),
    ];
    for (seed, style) in styles.into_iter().cycle().take(9).enumerate() {
        let mut rng = Rng::new(0x5eed_0100 + seed as u64);
        let mut tree = Tree::new(&env(Arc::new(StrictMemFileSystem::new())));
        let (kind, time) = (seed % 3, seed / 3);
        tree.context.threads_max = 1 + time;
        tree.context.blobs.from_bytes = [usize::MAX, 30, 1][time];
        tree.context.options.style = style;
        let (mut twin, mut seqno) = (Store::default(), 0);
        let (mut jobs, mut moves, mut levels_seen) = (0, 0, BTreeSet::new());
        let mut emptied = 0;
        for round in 0..40 {
            let memtables: Vec<_> = (0..1 + rng.below(2))
                .map(|_| write_some(&mut rng, &mut twin, &mut seqno, 60))
                .collect();
            if rng.one_in(3) {
                tree.context.snapshots.push(seqno - rng.below(30));
            }
            if rng.one_in(4) && !tree.context.snapshots.is_empty() {
                let at = rng.below(tree.context.snapshots.len() as u64);
                tree.context.snapshots.swap_remove(at as usize);
            }
            tree.flush(&memtables).unwrap();
            let oldest = tree.context.snapshots.iter().min();
            let moment = Moment {
                oldest_snapshot: oldest.copied().unwrap_or(SEQNO_MAX),
                ..IDLE
            };
            while let Some(plan) = pick(&tree.version(), &tree.context.options, &moment) {
                tree.carry_out(&plan);
                moves += u32::from(plan.work == Work::Move);
                emptied += u32::from(plan.reason == Reason::BlobGarbage);
                jobs += 1;
                levels_seen.insert(plan.output_level);
            }
            tree.check_levels();
            tree.check_blobs();
            if rng.one_in(8) && time > 0 {
                // Tables of other engines do not record which files they refer to.
                tree.forget_references();
            }
            let what = format!("seed {seed} round {round}");
            assert_equal(&twin, &tree, &tree.context.snapshots, &what);
        }
        assert!(
            jobs > 10 && (levels_seen.len() > 1) == (kind < 2),
            "{jobs} {moves} {levels_seen:?}"
        );
        assert_eq!(emptied > 0, time > 0, "{seed} {emptied}");
    }
}

/// A tree with work to do in L0 and L6, and the plan for it.
fn due(env: &Env, blobs_from: usize) -> (Tree, Plan, Store) {
    let mut rng = Rng::new(0x5eed_0200);
    let mut tree = Tree::new(env);
    tree.context.blobs.from_bytes = blobs_from;
    let (mut twin, mut seqno) = (Store::default(), 0);
    for _ in 0..2 {
        for _ in 0..2 {
            let memtable = write_some(&mut rng, &mut twin, &mut seqno, 80);
            tree.flush(&[memtable]).unwrap();
        }
        let plan = manual(&tree, 0);
        if tree.levels[6].is_empty() {
            tree.carry_out(&plan);
        }
    }
    // Moments between jobs: nobody could see the entries that an earlier job dropped.
    tree.context.snapshots = vec![160, 240];
    let plan = manual(&tree, 0);
    assert_eq!(plan.inputs.len(), 2);
    (tree, plan, twin)
}

fn manual(tree: &Tree, level: usize) -> Plan {
    let range = ManualRange {
        level,
        output_level: 6,
        begin: None,
        end: None,
    };
    let (version, options) = (tree.version(), &tree.context.options);
    Leveled
        .plan_manual(&version, options, &InFlight::default(), &range)
        .unwrap()
}

fn all_files(files: &StrictMemFileSystem) -> Vec<(PathBuf, Vec<u8>)> {
    files.snapshot_files().into_iter().collect()
}

#[test]
fn a_fault_at_any_operation_leaves_the_inputs_and_nothing_else() {
    for (threads_max, from_bytes) in [(1, usize::MAX), (3, usize::MAX), (1, 20), (3, 20)] {
        let mut struck = 0;
        for index in 0.. {
            let memory = StrictMemFileSystem::new();
            let (mut tree, plan, twin) = due(&env(Arc::new(memory.clone())), from_bytes);
            let before = all_files(&memory);
            let faulty = FaultFileSystem::over_memory(&memory);
            faulty.add_rule(FaultRule::once(index, Fault::Io));
            let faulty_env = env(Arc::new(faulty.clone()));
            tree.context.env = faulty_env.clone();
            tree.context.tables = table_cache(&faulty_env, 10);
            tree.context.threads_max = threads_max;
            // The tables of `due` are open; their slots go with these.
            for file in tree.levels.iter().flatten() {
                file.table.store(None);
            }
            let outcome = tree.run(&plan);
            if faulty.injected() == 0 {
                faulty.clear_rules();
                tree.apply(&outcome.unwrap());
                assert_equal(&twin, &tree, &tree.context.snapshots, "no fault");
                break;
            }
            assert!(outcome.is_err(), "operation {index}");
            assert_eq!(all_files(&memory), before, "operation {index}");
            struck += 1;
        }
        assert!(struck > 20, "{struck}");
    }
}

#[test]
fn damage_anywhere_in_an_input_ends_the_job_or_changes_nothing() {
    let memory = StrictMemFileSystem::new();
    let (mut tree, plan, twin) = due(&env(Arc::new(memory.clone())), usize::MAX);
    let (_, input) = plan.files().next().unwrap();
    let path = names::table(Path::new(DIR), input.number);
    let before = all_files(&memory);
    let mut refused = 0;
    for offset in (0..input.size).step_by(7) {
        memory.flip(&path, offset, (offset % 8) as u8).unwrap();
        tree.context.tables = table_cache(&tree.context.env, 10);
        for file in tree.levels.iter().flatten() {
            file.table.store(None);
        }
        match tree.run(&plan) {
            Err(error) => {
                refused += 1;
                let kinds = [ErrorKind::Corruption, ErrorKind::NotSupported];
                assert!(kinds.contains(&error.kind()), "{error:?}");
            }
            Ok(outcome) => {
                let mut after = Tree {
                    context: tree.context.clone(),
                    levels: Default::default(),
                    blobs: BTreeMap::new(),
                    epoch: 0,
                };
                after.add(outcome.new_files.clone());
                assert_equal(
                    &twin,
                    &after,
                    &tree.context.snapshots,
                    &format!("unseen damage at {offset}"),
                );
                for (_, file) in &outcome.new_files {
                    let path = names::table(Path::new(DIR), file.number);
                    tree.context.env.files.remove(&path).unwrap();
                }
            }
        }
        memory.flip(&path, offset, (offset % 8) as u8).unwrap();
        assert_eq!(all_files(&memory), before, "offset {offset}");
    }
    let tried = input.size.div_ceil(7);
    assert!(refused * 10 > tried * 9, "{refused} of {tried}");
}

#[test]
fn a_cancelled_job_leaves_nothing() {
    let memory = StrictMemFileSystem::new();
    let (tree, plan, _) = due(&env(Arc::new(memory.clone())), usize::MAX);
    let before = all_files(&memory);
    let cancel = Arc::new(AtomicBool::new(true));
    let error = rewrite::run(&tree.context, &tree.version(), &plan, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shutdown);
    assert_eq!(all_files(&memory), before);
}

#[test]
fn a_fault_at_any_operation_of_a_flush_leaves_nothing() {
    for from_bytes in [usize::MAX, 40] {
        let struck = strike_flush(from_bytes);
        assert!(struck >= 4, "{struck}");
    }
}

fn strike_flush(from_bytes: usize) -> u64 {
    let mut struck = 0;
    loop {
        let index = struck;
        let memory = StrictMemFileSystem::new();
        let faulty = FaultFileSystem::over_memory(&memory);
        let mut tree = Tree::new(&env(Arc::new(faulty.clone())));
        tree.context.blobs.from_bytes = from_bytes;
        let mut rng = Rng::new(7);
        let memtable = write_some(&mut rng, &mut Store::default(), &mut 0, 300);
        faulty.add_rule(FaultRule::once(index, Fault::Io));
        let outcome = tree.flush(&[memtable]);
        if faulty.injected() == 0 {
            outcome.unwrap();
            return struck;
        }
        assert!(outcome.is_err());
        assert_eq!(all_files(&memory), [], "operation {index}");
        struck += 1;
    }
}

#[test]
fn a_flush_of_nothing_writes_nothing() {
    let memory = StrictMemFileSystem::new();
    let mut tree = Tree::new(&env(Arc::new(memory.clone())));
    tree.flush(&[Arc::new(Memtable::new(KeyOrder::Bytewise))])
        .unwrap();
    assert!(tree.levels[0].is_empty() && all_files(&memory).is_empty());
}
