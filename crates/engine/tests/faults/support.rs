//! Shared parts of the fault tests: a database on a disk in memory, scripts of writes, a model of their
//! expected effects, and the check of the actual ones.
//!
//! Every batch a script writes carries a marker in each family it touches, so that the check can
//! tell which batches are there and that each is there as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use drumlin::internals::names::FileName;
use drumlin::{
    ColumnFamily, Db, Env, Error, FamilyOptions, KeyOrder, MergeOperator, Options, ReadOptions,
    Result, Tuning, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::FileSystem;
use drumlin_table::Table;

/// The path of the database on its disk.
pub(crate) const DIR: &str = "/db";

/// Whether the long form of the tests was asked for.
pub(crate) fn exhaustive() -> bool {
    std::env::var_os("DRUMLIN_EXHAUSTIVE").is_some()
}

/// Joins operands with commas.
#[derive(Debug)]
pub(crate) struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "drumlin.test.append"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.iter().chain(operands).copied().collect();
        Ok(parts.join(&b','))
    }

    fn partial_merge(&self, _key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        Some([left, right].join(&b','))
    }
}

/// One change of one key or range.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    SingleDelete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl Op {
    pub(crate) fn add_to(&self, batch: &mut WriteBatch, family: u32) -> Result<()> {
        match self {
            Self::Put(key, value) => batch.put_cf(family, key, value),
            Self::Delete(key) => batch.delete_cf(family, key),
            Self::SingleDelete(key) => batch.single_delete_cf(family, key),
            Self::Merge(key, operand) => batch.merge_cf(family, key, operand),
            Self::DeleteRange(begin, end) => batch.delete_range_cf(family, begin, end),
        }
    }
}

/// The expected rows of one family.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The expected contents of every family. Knows nothing of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) families: BTreeMap<String, Rows>,
    pub(crate) reverse: bool,
}

impl Model {
    pub(crate) fn apply(&mut self, family: &str, op: &Op) {
        let reverse = self.reverse;
        let rows = self.families.entry(family.to_owned()).or_default();
        match op {
            Op::Put(key, value) => {
                rows.insert(key.clone(), value.clone());
            }
            Op::Delete(key) | Op::SingleDelete(key) => {
                rows.remove(key);
            }
            Op::Merge(key, operand) => match rows.get_mut(key) {
                Some(value) => {
                    value.push(b',');
                    value.extend_from_slice(operand);
                }
                None => {
                    rows.insert(key.clone(), operand.clone());
                }
            },
            Op::DeleteRange(begin, end) => rows.retain(|key, _| match reverse {
                false => key < begin || key >= end,
                true => key > begin || key <= end,
            }),
        }
    }
}

/// Sizes so small that everything happens within a few hundred writes.
pub(crate) fn tiny() -> Tuning {
    Tuning {
        write_buffer_bytes: Some(16 << 10),
        memtables_max: 3,
        target_file_bytes: 4 << 10,
        level_base_bytes: Some(16 << 10),
        level_multiplier: 4,
        blob_from_bytes: Some(35),
        l0_trigger: 3,
        block_bytes: 512,
        restart_interval: 4,
        reuse_from_bytes: 1,
        shared_model_from_bytes: 0,
        ..Tuning::default()
    }
}

/// A database on `files` whose run depends on its caller alone.
pub(crate) fn options(files: Arc<dyn FileSystem>) -> Options {
    Options {
        memory_budget: Some(4 << 20),
        background_threads: Some(0),
        family: FamilyOptions {
            merge_operator: Some(Arc::new(Append)),
            ..FamilyOptions::default()
        },
        tuning: tiny(),
        env: Env::system().with_files(files).with_seed(7),
        ..Options::default()
    }
}

/// One thing a script does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write {
        ops: Vec<(&'static str, Op)>,
        sync: bool,
    },
    SyncWal,
    Flush,
    FlushFamily(&'static str),
    Compact(&'static str),
    Wait,
    Create(&'static str),
    Drop(&'static str),
    Reopen,
}

/// How much is known of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// The write failed: it may be there or not.
    Failed,
    /// The write was acknowledged.
    Acked,
    /// The write was acknowledged and is promised to outlive a power cut.
    Synced,
}

/// The effects of a script on a database.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) batches: Vec<(Vec<(&'static str, Op)>, Fate)>,
    /// Families that must be there, and those of which it is not known.
    pub(crate) present: BTreeSet<String>,
    pub(crate) unsure: BTreeSet<String>,
    pub(crate) errors: Vec<(String, Error)>,
}

/// The steps applied to a database, from opening it to dropping it.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
}

fn marker(index: usize) -> Vec<u8> {
    format!("#{index:05}").into_bytes()
}

impl Script {
    /// Runs the script on `options`, up to its first error when `stop_at_error`.
    pub(crate) fn run(&self, options: &Options, stop_at_error: bool) -> (History, Option<Db>) {
        let mut history = History::default();
        history.unsure.insert("default".to_owned());
        let mut db = history.open(options);
        if db.is_some() {
            history.present = std::mem::take(&mut history.unsure);
        }
        for step in &self.steps {
            if stop_at_error && !history.errors.is_empty() {
                break;
            }
            if matches!(step, Step::Reopen) {
                if let Some(db) = db.take() {
                    let closed = db.close();
                    history.note("close", closed);
                }
                if stop_at_error && !history.errors.is_empty() {
                    break;
                }
                db = history.open(options);
            } else if let Some(db) = &db {
                history.take(db, step);
            }
        }
        (history, db)
    }
}

impl History {
    fn open(&mut self, options: &Options) -> Option<Db> {
        let opened = Db::open_all_families(DIR, options.clone());
        opened
            .map_err(|error| self.errors.push(("open".to_owned(), error)))
            .ok()
    }

    fn note(&mut self, what: &str, outcome: Result<()>) -> bool {
        let ok = outcome.is_ok();
        if let Err(error) = outcome {
            self.errors.push((what.to_owned(), error));
        }
        ok
    }

    fn all_synced(&mut self) {
        for (_, fate) in &mut self.batches {
            if *fate == Fate::Acked {
                *fate = Fate::Synced;
            }
        }
    }

    fn take(&mut self, db: &Db, step: &Step) {
        let family = |name: &str| db.column_family(name);
        match step {
            Step::Write { ops, sync } => self.write(db, ops, *sync),
            Step::SyncWal => {
                if self.note("sync", db.sync_wal().map(drop)) {
                    self.all_synced();
                }
            }
            Step::Flush => {
                if self.note("flush", db.flush()) {
                    self.all_synced();
                }
            }
            Step::FlushFamily(name) => {
                if let Some(family) = family(name) {
                    self.note("flush", db.flush_cf(&family));
                }
            }
            Step::Compact(name) => {
                if let Some(family) = family(name) {
                    self.note("compact", db.compact_range(&family, None, None));
                }
            }
            Step::Wait => {
                self.note("wait", db.wait_for_background());
            }
            Step::Create(name) => {
                let made = db.create_family(name, db_family_options(db));
                let ok = self.note("create", made.map(|_| ()));
                let known = if ok {
                    &mut self.present
                } else {
                    &mut self.unsure
                };
                known.insert((*name).to_owned());
            }
            Step::Drop(name) => {
                let Some(family) = family(name) else { return };
                self.present.remove(*name);
                if !self.note("drop", db.drop_family(&family)) {
                    self.unsure.insert((*name).to_owned());
                }
            }
            Step::Reopen => unreachable!("done by the caller"),
        }
    }

    fn write(&mut self, db: &Db, ops: &[(&'static str, Op)], sync: bool) {
        let mut batch = WriteBatch::new();
        let ops = with_markers(self.batches.len(), ops, db);
        for (name, op) in &ops {
            let family = db.column_family(name).expect("the script created it");
            op.add_to(&mut batch, family.id()).expect("a small batch");
        }
        let options = WriteOptions {
            sync: Some(sync),
            ..WriteOptions::default()
        };
        let fate = match (self.note("write", db.write(batch, &options)), sync) {
            (false, _) => Fate::Failed,
            (true, false) => Fate::Acked,
            (true, true) => {
                self.all_synced();
                Fate::Synced
            }
        };
        self.batches.push((ops, fate));
    }
}

fn db_family_options(_db: &Db) -> FamilyOptions {
    FamilyOptions {
        merge_operator: Some(Arc::new(Append)),
        ..FamilyOptions::default()
    }
}

fn with_markers(index: usize, ops: &[(&'static str, Op)], db: &Db) -> Vec<(&'static str, Op)> {
    let mut all: Vec<_> = ops
        .iter()
        .filter(|(name, _)| db.column_family(name).is_some())
        .cloned()
        .collect();
    let names: BTreeSet<&'static str> = all.iter().map(|(name, _)| *name).collect();
    for name in names {
        all.push((name, Op::Put(marker(index), index.to_string().into_bytes())));
    }
    all
}

/// Everything a family holds, walked forward.
pub(crate) fn rows(db: &Db, family: &ColumnFamily) -> Result<Rows> {
    let mut rows = Rows::new();
    let mut iter = db.iter_cf(family, ReadOptions::default());
    iter.seek_to_first();
    while iter.valid() {
        rows.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status()?;
    Ok(rows)
}

/// The part of a history that the present state must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// The power was cut: every synced batch, and a prefix of all.
    PowerCut,
    /// The process died: every acknowledged batch, and a prefix of all.
    Killed,
    /// Synced bytes were destroyed: a prefix.
    Prefix,
    /// Writes failed in between: every acknowledged batch.
    Errors,
}

/// Checks the open database against its history.
pub(crate) fn check(db: &Db, history: &History, demand: Demand) -> std::result::Result<(), String> {
    let mut found: BTreeMap<String, Rows> = BTreeMap::new();
    for family in db.families() {
        let rows = rows(db, &family).map_err(|error| format!("scan: {error:?}"))?;
        found.insert(family.name().to_owned(), rows);
    }
    for name in &history.present {
        if !found.contains_key(name) {
            return Err(format!("family {name} is gone"));
        }
    }
    for name in found.keys() {
        if !history.present.contains(name) && !history.unsure.contains(name) {
            return Err(format!("family {name} is back"));
        }
    }
    let present = present_batches(history, &found, demand)?;
    let mut model = Model::default();
    for (index, (ops, _)) in history.batches.iter().enumerate() {
        if present.contains(&index) {
            ops.iter().for_each(|(name, op)| model.apply(name, op));
        }
    }
    for (name, rows) in &found {
        let want = model.families.remove(name).unwrap_or_default();
        if *rows != want {
            return Err(format!("{name}: {}", difference(rows, &want)));
        }
        let family = db.column_family(name).ok_or("a family vanished")?;
        for (key, value) in want.iter().step_by(7) {
            let got = db.get_cf(&family, key, &ReadOptions::default());
            let got = got.map_err(|error| format!("get: {error:?}"))?;
            if got.as_deref() != Some(value.as_slice()) {
                return Err(format!("{name}: get of {key:?} differs from the scan"));
            }
        }
    }
    Ok(())
}

fn present_batches(
    history: &History,
    found: &BTreeMap<String, Rows>,
    demand: Demand,
) -> std::result::Result<BTreeSet<usize>, String> {
    let mut present = BTreeSet::new();
    let mut first_missing = None;
    for (index, (ops, fate)) in history.batches.iter().enumerate() {
        let names: BTreeSet<&str> = ops.iter().map(|(name, _)| *name).collect();
        let there: Vec<bool> = names
            .iter()
            .filter_map(|name| found.get(*name))
            .map(|rows| rows.contains_key(&marker(index)))
            .collect();
        if there.is_empty() {
            continue; // It wrote only to families that are gone.
        }
        if there.iter().any(|here| *here != there[0]) {
            return Err(format!("batch {index} is torn: {names:?} {there:?}"));
        }
        let needed = match demand {
            Demand::PowerCut => Some(Fate::Synced),
            Demand::Killed | Demand::Errors => Some(Fate::Acked),
            Demand::Prefix => None,
        };
        if !there[0] {
            if needed.is_some_and(|needed| *fate >= needed) {
                return Err(format!("batch {index} is lost ({fate:?})"));
            }
            first_missing.get_or_insert(index);
            continue;
        }
        if let (Some(missing), true) = (first_missing, demand != Demand::Errors) {
            return Err(format!("batch {index} is there, {missing} is not"));
        }
        present.insert(index);
    }
    Ok(present)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned()
}

/// The first few keys in which two families differ.
pub(crate) fn difference(found: &Rows, want: &Rows) -> String {
    let keys: BTreeSet<_> = found.keys().chain(want.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        let (found, want) = (found.get(key), want.get(key));
        if found != want {
            let show = |value: Option<&Vec<u8>>| value.map(|value| text(value));
            lines.push(format!(
                "{}: {:?}, not {:?}",
                text(key),
                show(found),
                show(want)
            ));
        }
    }
    let count = lines.len();
    lines.truncate(5);
    format!("{count} keys differ: {}", lines.join("; "))
}

/// Checks that an open, idle database left no file behind that nothing needs.
pub(crate) fn check_files(db: &Db, files: &dyn FileSystem) -> std::result::Result<(), String> {
    let mut names = files.list(Path::new(DIR)).map_err(|e| e.to_string())?;
    names.extend(files.list(Path::new("/wal")).unwrap_or_default());
    let count = |suffix: &str| {
        let matching = names
            .iter()
            .filter(|name| name.to_string_lossy().ends_with(suffix));
        matching.count()
    };
    let manifests = names
        .iter()
        .filter(|n| n.to_string_lossy().starts_with("MANIFEST-"));
    let (mut tables, mut blobs) = (0, 0);
    for family in db.families() {
        let files = db.property(&family, "rocksdb.num-blob-files");
        let files = files.ok_or("no such property")?;
        blobs += files.parse::<usize>().map_err(|e| e.to_string())?;
        for level in 0..7 {
            let name = format!("rocksdb.num-files-at-level{level}");
            let files = db.property(&family, &name).ok_or("no such property")?;
            tables += files.parse::<usize>().map_err(|e| e.to_string())?;
        }
    }
    let found = (
        count(".log"),
        count(".sst") + count(".ldb"),
        count(".blob"),
        manifests.count(),
        count(".dbtmp"),
    );
    if found != (1, tables, blobs, 1, 0) {
        return Err(format!(
            "{found:?} files, {tables} live tables, {blobs} blob files: {names:?}"
        ));
    }
    let models = names.iter().filter_map(|name| match FileName::parse(name) {
        Some(FileName::Model(id)) => Some(id),
        _ => None,
    });
    let models: BTreeSet<u64> = models.collect();
    let mut named = BTreeSet::new();
    for name in names
        .iter()
        .filter(|name| name.extension() == Some("sst".as_ref()))
    {
        let file = files.open(&Path::new(DIR).join(name));
        let model = file.and_then(|file| Table::shared_model_of(&*file));
        named.extend(model.map_err(|e| e.to_string())?);
    }
    if models != named {
        return Err(format!("models {models:?}, but tables name {named:?}"));
    }
    // Among the rest: the blobs that tables refer to are those the MANIFEST counts as live.
    let damaged = db.verify().map_err(|e| e.to_string())?.damaged;
    match damaged.is_empty() {
        true => Ok(()),
        false => Err(format!("{damaged:?}")),
    }
}

/// Pseudo-random changes to keys `k000..`, over `families`.
pub(crate) fn random_ops(
    rng: &mut Rng,
    families: &[&'static str],
    count: u64,
) -> Vec<(&'static str, Op)> {
    let key = |rng: &mut Rng| format!("k{:03}", rng.below(150)).into_bytes();
    let mut ops = Vec::new();
    for _ in 0..count {
        let family = families[rng.below(families.len() as u64) as usize];
        let mut value = vec![0; rng.below(60) as usize];
        rng.fill(&mut value);
        value.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
        let op = match rng.below(20) {
            0..=12 => Op::Put(key(rng), value),
            13..=15 => Op::Delete(key(rng)),
            16..=18 => Op::Merge(key(rng), value),
            _ => {
                let (a, b) = (key(rng), key(rng));
                Op::DeleteRange(a.clone().min(b.clone()), a.max(b))
            }
        };
        ops.push((family, op));
    }
    ops
}

/// The order the families of a model with `reverse` have.
pub(crate) fn order(reverse: bool) -> KeyOrder {
    match reverse {
        false => KeyOrder::Bytewise,
        true => KeyOrder::ReverseBytewise,
    }
}
