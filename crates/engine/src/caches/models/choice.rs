//! Chooses the model that a job writes its tables with.
//!
//! A family keeps its model (where it has scopes, each large one its own; the rest of it is one more) as long as it serves: rows of one model are copied from table to table as
//! they are, so a change costs encoding everything once more. Each job encodes a small fresh sample of
//! its inputs. A new model is learned only when that sample's codes are clearly larger than those when
//! the model was made, or the family has grown so much that a larger sample says more. The new model is
//! taken only if it saves enough on values that neither model has seen.
//!
//! After an attempt that did not pay, the next one waits until jobs have read many times its sample.

use std::collections::HashMap;
use std::sync::Arc;

use drumlin_base::budget::Charge;
use drumlin_base::sync::Mutex;
use drumlin_base::{MemoryBudget, MemoryUse, Result};
use drumlin_table::{Effort, Encoder, Model, ModelFacts, Table};

use super::sample::Sample;
use super::scope::{Scope, Within, prefix_around};
use super::store::{ModelHold, ModelStore};
use crate::caches::table_cache::TableCache;
use crate::version::{FileMeta, Version};

/// Bytes of the fresh sample that shows whether the model serves.
const CHECK_BYTES: u64 = 1 << 20;
/// A sample to learn from takes at most one part in so many of the budget: learning takes three times as much.
const BUDGET_DIVISOR: u64 = 16;
/// Memory that a sample and learning from it take together, in samples.
const LEARNING_SAMPLES: u64 = 4;
/// And at most this many bytes: a larger sample gains a dictionary too little for its time.
const SAMPLE_BYTES_MAX: u64 = 64 << 20;
/// A sample for the cheap coder: its few tokens are learned from little.
const FAST_SAMPLE_BYTES: u64 = 4 << 20;
/// A new model must save this many percent, and codes this much larger are a reason to look for one.
const GAIN_PERCENT: f64 = 3.0;
/// The family must have grown by this factor for a larger sample to be a reason.
const GROWTH: u64 = 4;
/// After an attempt, this many times its sample must go through jobs before the next.
const PAUSE: u64 = 64;
/// Tables beside the job's inputs that a sample to learn from is taken from.
const SAMPLED_TABLES_MAX: usize = 64;
/// One value in so many is held back to judge by.
const JUDGED_EVERY: usize = 8;

/// A job that wants a model.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// The family's id.
    pub(crate) family: u32,
    /// Where its tables are opened.
    pub(crate) tables: &'a TableCache,
    /// Its present tables.
    pub(crate) version: &'a Version,
    /// The job's inputs.
    pub(crate) inputs: &'a [Arc<Table>],
    /// The keys that the model is for.
    pub(crate) within: Within<'a>,
    /// How many first bytes of a key name its scope; 0 in a family without scopes.
    pub(crate) scope_bytes: usize,
    /// Bytes of the values of these keys in the inputs.
    pub(crate) job_bytes: u64,
    /// The goal to train a model for.
    pub(crate) effort: Effort,
    /// Jobs of fewer bytes of values get no shared model while the family has none.
    pub(crate) from_bytes: u64,
    /// The memory budget, which is charged while a model is learned.
    pub(crate) budget: &'a Arc<MemoryBudget>,
}

/// Chooses models and remembers when learning one was last in vain.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    /// By family, and scope: bytes that are yet to go through its jobs before the next attempt, if any are.
    pauses: Mutex<HashMap<(u32, Option<Scope>), u64>>,
    /// By family: the model that everything is being written with.
    appointed: Mutex<HashMap<u32, u64>>,
}

/// Has the jobs of a family write with one model until it is dropped.
#[derive(Debug)]
pub(crate) struct Appointment<'a> {
    chooser: &'a Chooser,
    family: u32,
    _held: ModelHold,
}

impl Drop for Appointment<'_> {
    fn drop(&mut self) {
        self.chooser.appointed.lock().remove(&self.family);
    }
}

impl Chooser {
    /// The model to write with; `None` when the tables should learn their own. `number` gives a file
    /// number for a new model's file.
    ///
    /// # Errors
    /// `Corruption`, `Io` of reading inputs and models; `Io`, `NoSpace` of writing a new one.
    pub(crate) fn choose(
        &self,
        models: &Arc<ModelStore>,
        wanted: &Wanted<'_>,
        number: impl FnOnce() -> u64,
    ) -> Result<Option<ModelHold>> {
        // Held before the lock is released: once the appointment ends, its model's file may be removed.
        if let Some(&id) = self.appointed.lock().get(&wanted.family) {
            return models.hold(id).map(Some);
        }
        let present = present(models, wanted)?;
        if present.is_none() && wanted.job_bytes < wanted.from_bytes {
            return Ok(None);
        }
        let data_bytes = data_bytes(wanted);
        let serves = match &present {
            Some(present) => !self.is_doubtful(present, wanted, data_bytes)?,
            None => false,
        };
        let present = present.map(|present| present.held);
        if serves {
            Ok(present)
        } else {
            self.learn(models, wanted, present, data_bytes, number)
                .map(Some)
        }
    }

    /// Learns a model for all of the family's tables if it pays, and has every job write with the better
    /// one until the appointment ends; `None` for a family with too little in it.
    ///
    /// # Errors
    /// As [`Chooser::choose`].
    pub(crate) fn appoint(
        &self,
        models: &Arc<ModelStore>,
        wanted: &Wanted<'_>,
        number: impl FnOnce() -> u64,
    ) -> Result<Option<Appointment<'_>>> {
        if wanted.job_bytes < wanted.from_bytes.max(1) {
            return Ok(None);
        }
        let present = present(models, wanted)?.map(|present| present.held);
        let data_bytes = data_bytes(wanted);
        let held = self.learn(models, wanted, present, data_bytes, number)?;
        let id = held.model().id();
        self.appointed.lock().insert(wanted.family, id);
        Ok(Some(Appointment {
            chooser: self,
            family: wanted.family,
            _held: held,
        }))
    }

    /// Learns a model from all of the family. Gives the better one of it and `present`.
    fn learn(
        &self,
        models: &Arc<ModelStore>,
        wanted: &Wanted<'_>,
        present: Option<ModelHold>,
        data_bytes: u64,
        number: impl FnOnce() -> u64,
    ) -> Result<ModelHold> {
        let bytes_max = sample_bytes(wanted);
        // The block cache gives up memory for it until the model is learned.
        let charge = Charge::new(Arc::clone(wanted.budget), MemoryUse::Jobs);
        charge.grow_to((bytes_max.min(data_bytes) * LEARNING_SAMPLES) as usize);
        let sample = Sample::take(&spread(wanted)?, wanted.within, bytes_max)?;
        let pause = (sample.taken() as u64).saturating_mul(PAUSE);
        self.pauses.lock().insert(wanted.keys(), pause);
        let (model, facts, old_bytes) = learn(&sample, wanted.effort, present.as_ref(), data_bytes);
        match (present, old_bytes) {
            (Some(present), Some(old)) if !pays(&model, &facts, old) => Ok(present),
            _ => models.write(model, facts, number()),
        }
    }

    /// Whether it is worth looking for another model than `present`.
    fn is_doubtful(&self, present: &Present, wanted: &Wanted<'_>, data_bytes: u64) -> Result<bool> {
        if self.is_pausing(wanted) {
            return Ok(false);
        }
        if present.is_others && wanted.job_bytes >= wanted.from_bytes {
            return Ok(true);
        }
        let present = &present.held;
        let facts = present.facts();
        let could_say_more = facts.sample_bytes.saturating_mul(2) <= sample_bytes(wanted);
        if could_say_more && data_bytes / GROWTH >= facts.data_bytes {
            return Ok(true);
        }
        let sample = Sample::take(wanted.inputs, wanted.within, CHECK_BYTES)?;
        let codes = code_bytes(present.model(), &sample.values());
        let then = facts.code_bytes as f64 / facts.judged_bytes.max(1) as f64;
        let now = codes as f64 / sample.bytes().max(1) as f64;
        Ok(now > then * (1.0 + GAIN_PERCENT / 100.0))
    }

    /// Counts the job towards the next attempt; whether that is yet to come.
    fn is_pausing(&self, wanted: &Wanted<'_>) -> bool {
        let mut pauses = self.pauses.lock();
        let keys = wanted.keys();
        let Some(pause) = pauses.get_mut(&keys) else {
            return false;
        };
        *pause = pause.saturating_sub(wanted.job_bytes);
        let is_pausing = *pause > 0;
        if !is_pausing {
            pauses.remove(&keys);
        }
        is_pausing
    }
}

impl Wanted<'_> {
    /// What attempts are counted by.
    fn keys(&self) -> (u32, Option<Scope>) {
        let scope = match self.within {
            Within::Scope(scope) => Some(scope.clone()),
            Within::All | Within::Outside(_) => None,
        };
        (self.family, scope)
    }

    /// Whether `file` is one that a model for these keys is learned from, or that shows which one they have.
    fn is_of(&self, file: &FileMeta) -> bool {
        let around = || prefix_around(file, self.scope_bytes);
        match self.within {
            Within::All => true,
            Within::Scope(scope) => around() == Some(scope.first()),
            Within::Outside(scopes) => {
                let is_one = |prefix| scopes.binary_search_by(|scope| scope.first().cmp(prefix));
                around().is_none_or(|prefix| is_one(prefix).is_err())
            }
        }
    }
}

/// The job's inputs, and tables from across the keys wanted.
fn spread(wanted: &Wanted<'_>) -> Result<Vec<Arc<Table>>> {
    let mut tables = wanted.inputs.to_vec();
    let files = wanted.version.files().map(|(_, file)| file);
    let files: Vec<_> = files.filter(|file| wanted.is_of(file)).collect();
    for file in files
        .iter()
        .step_by(files.len().div_ceil(SAMPLED_TABLES_MAX).max(1))
    {
        let table = wanted.tables.find(file)?;
        if !tables.iter().any(|known| Arc::ptr_eq(known, &table)) {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// The model that keys have now.
struct Present {
    held: ModelHold,
    /// Other keys than a scope's have it, too.
    is_others: bool,
}

/// Which tables name a model.
#[derive(Default)]
struct Users {
    /// The newest of those that are of the keys wanted, and of all.
    newest: (u64, u64),
    /// The prefix of the scope that the first of them is in.
    prefix: Option<Vec<u8>>,
    /// They are in several.
    is_mixed: bool,
}

impl Users {
    fn add(&mut self, file: &FileMeta, wanted: &Wanted<'_>) {
        if wanted.is_of(file) {
            self.newest.0 = file.number.max(self.newest.0);
        }
        self.newest.1 = file.number.max(self.newest.1);
        let around = prefix_around(file, wanted.scope_bytes);
        match (around, &self.prefix) {
            (Some(prefix), None) => self.prefix = Some(prefix.to_vec()),
            (Some(prefix), Some(known)) if prefix == known.as_slice() => {}
            _ => self.is_mixed = true,
        }
    }

    /// Whether it is a model for `wanted`: a scope's own or what it shares with others; outside of scopes what
    /// is shared.
    fn serve(&self, wanted: &Wanted<'_>) -> bool {
        match wanted.within {
            Within::All => true,
            Within::Scope(_) => self.newest.0 > 0 || self.is_mixed,
            Within::Outside(_) => self.is_mixed || drumlin_base::bug!("scope-lends-its-model"),
        }
    }
}

/// The model of the newest table with the keys wanted whose model has the effort wanted; for a scope without one that
/// of the newest table of many scopes.
fn present(models: &Arc<ModelStore>, wanted: &Wanted<'_>) -> Result<Option<Present>> {
    let mut users: HashMap<u64, Users> = HashMap::new();
    for (_, file) in wanted.version.files() {
        if let Some(id) = file.model() {
            users.entry(id).or_default().add(file, wanted);
        }
    }
    users.retain(|_, users| users.serve(wanted));
    let mut ids: Vec<_> = users.iter().map(|(id, by)| (by.newest, *id)).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    for (_, id) in ids {
        let held = models.hold(id)?;
        if held.facts().effort == wanted.effort {
            let is_mixed = users.get(&id).is_some_and(|users| users.is_mixed);
            let is_others = is_mixed && matches!(wanted.within, Within::Scope(_));
            return Ok(Some(Present { held, is_others }));
        }
    }
    Ok(None)
}

/// Bytes of the values of all keys wanted, estimated from the job's inputs: values to file bytes.
fn data_bytes(wanted: &Wanted<'_>) -> u64 {
    let inputs = wanted.inputs.iter();
    let files: f64 = inputs
        .map(|table| table.size() as f64 * wanted.within.share_of(table))
        .sum();
    let all = wanted.version.files().map(|(_, file)| file);
    let all: u64 = all
        .filter(|file| wanted.is_of(file))
        .map(|file| file.size)
        .sum();
    let rest = all as f64 / files.max(1.0);
    (wanted.job_bytes as f64 * rest.max(1.0)) as u64
}

fn sample_bytes(wanted: &Wanted<'_>) -> u64 {
    let most = match wanted.effort {
        Effort::Small => SAMPLE_BYTES_MAX,
        Effort::Fast => FAST_SAMPLE_BYTES,
    };
    most.min(wanted.budget.limit_bytes() as u64 / BUDGET_DIVISOR)
}

/// Learns a model. Gives it with its facts, and the code bytes of the judged values under `present`.
fn learn(
    sample: &Sample,
    effort: Effort,
    present: Option<&ModelHold>,
    data_bytes: u64,
) -> (Model, ModelFacts, Option<u64>) {
    let values = sample.values();
    let is_judged = |index: &usize| index % JUDGED_EVERY == JUDGED_EVERY - 1;
    let pick = |judged: bool| -> Vec<&[u8]> {
        let values = values.iter().enumerate();
        let picked = values.filter(|(index, _)| is_judged(index) == judged);
        picked.map(|(_, value)| *value).collect()
    };
    let (learned, judged) = (pick(false), pick(true));
    let model = Arc::new(Model::train(&learned, effort));
    let judged_bytes = judged.iter().map(|value| value.len() as u64).sum();
    let old_bytes = present.map(|present| code_bytes(present.model(), &judged));
    let facts = ModelFacts {
        effort,
        sample_bytes: sample.taken() as u64,
        judged_bytes,
        code_bytes: code_bytes(&model, &judged),
        data_bytes,
    };
    let model = Arc::into_inner(model).expect("encoders hold it, and all of them are dropped");
    (model, facts, old_bytes)
}

/// Whether a new model, its file included, saves enough bytes against the present one.
fn pays(model: &Model, facts: &ModelFacts, old_bytes: u64) -> bool {
    let whole = facts.data_bytes as f64 / facts.judged_bytes.max(1) as f64;
    let new = facts.code_bytes as f64 * whole + model.to_bytes().len() as f64;
    new < old_bytes as f64 * whole * (1.0 - GAIN_PERCENT / 100.0)
}

fn code_bytes(model: &Arc<Model>, values: &[&[u8]]) -> u64 {
    let mut encoder = Encoder::new(Arc::clone(model));
    let (mut code, mut bytes) = (Vec::new(), 0);
    for value in values {
        code.clear();
        encoder.encode(value, &mut code);
        bytes += code.len() as u64;
    }
    bytes
}
