//! A compaction: carries a claimed plan out and installs its output.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::{CompactionFilter, Error, ErrorKind, FilterJob, Result};
use drumlin_fs::IoPriority;
use drumlin_table::Compression;

use crate::background::background::{
    Background, DIRECT_BYTES, FILTER_DIVISOR, JOB_BYTES, open_ahead,
};
use crate::background::made_files::MadeFiles;
use crate::compaction::output::JobContext;
use crate::compaction::progress::Watcher;
use crate::compaction::rewrite::Outcome;
use crate::compaction::{Plan, Work, rewrite};
use crate::family::column_family::Family;
use crate::files::space::Promise;
use crate::store::state::FamilyState;
use crate::store::store::Store;
use crate::version::{BlobFileAddition, BlobFileGarbage, NewFile, Version, VersionEdit};
use crate::watch::events::{BlobCount, CompactionInfo, TableOfJob};
use crate::watch::notices::Notice;
use crate::watch::reason::Reason;
use crate::watch::times::Span;

/// From this score on a compaction is so far behind that it takes cores from writers.
const URGENT_SCORE: f64 = 2.0;
/// The least size at which tables end: that of the settings.
const FILE_BYTES_MIN: u64 = 1 << 10;

/// What a job is told beside its plan.
#[derive(Default)]
pub(crate) struct Orders {
    /// May end it, or do something more urgent in between.
    pub(crate) watcher: Option<Arc<dyn Watcher>>,
    /// Where tables end, and how they are compressed, in place of what the family's settings say.
    pub(crate) file_bytes: Option<u64>,
    pub(crate) compression: Option<Compression>,
    /// The most threads, in place of as many as there are in the background.
    pub(crate) threads_max: Option<usize>,
    /// Whether somebody wants to know what the tables say of themselves.
    pub(crate) is_told: bool,
}

impl Orders {
    fn give(self, plan: &Plan, context: &mut JobContext) {
        context.watcher = self.watcher;
        if let Some(bytes) = self.file_bytes {
            // What is written is hardly more than what is read: past twice that there is no limit, and buffers go by it.
            let all = plan.input_bytes().saturating_mul(2).max(FILE_BYTES_MIN);
            context.options.target_file_bytes = bytes.clamp(FILE_BYTES_MIN, all);
        }
        if let Some(compression) = self.compression {
            for writer in &mut context.writers {
                writer.compression = compression;
            }
        }
        if let Some(threads) = self.threads_max {
            context.threads_max = threads.max(1);
        }
    }
}

impl Background {
    /// Carries out a claimed plan and installs its outcome; what was done, unless the family is gone.
    pub(crate) fn run_compaction(
        &self,
        id: u32,
        plan: &Plan,
        orders: Orders,
    ) -> Result<Option<CompactionInfo>> {
        let claim = Claim {
            store: &self.store,
            id,
            plan,
        };
        let outcome = self.compact(id, plan, orders);
        drop(claim);
        self.store.changes.fetch_add(1, Ordering::Relaxed);
        self.store.changed.notify_all();
        outcome
    }

    fn compact(&self, id: u32, plan: &Plan, orders: Orders) -> Result<Option<CompactionInfo>> {
        let (family, version) = match self.store.lock_state().family_mut(id) {
            Ok(family) => (Arc::clone(&family.family), Arc::clone(&family.version)),
            Err(_) => return Ok(None),
        };
        let _span = tracing::info_span!("compaction", family = family.name).entered();
        let mut info = CompactionInfo {
            family: family.name.clone(),
            family_id: id,
            job: self.store.watch.notices.next_job(),
            level: plan.level,
            output_level: plan.output_level,
            inputs: plan.files().count(),
            outputs: plan.files().count(),
            input_tables: plan
                .files()
                .map(|(level, file)| table_at(level, file.described()))
                .collect(),
            output_tables: plan
                .files()
                .map(|(_, file)| table_at(plan.output_level, file.described()))
                .collect(),
            took: Duration::ZERO,
            bytes_read: 0,
            bytes_written: 0,
            trivial_move: plan.work == Work::Move,
            reason: plan.reason,
            takes_all: plan.files().count() == version.files().count(),
            properties: Vec::new(),
            output_keys: None,
            blob_files: Vec::new(),
            blob_garbage: Vec::new(),
            blob_codec: self.blob_codec(&family),
        };
        let begun = || CompactionInfo {
            outputs: 0,
            output_tables: Vec::new(),
            ..info.clone()
        };
        self.store
            .watch
            .notices
            .note(|| Notice::CompactionBegun(begun()));
        let begin = self.store.id.env.clock.monotonic();
        match plan.edit_alone(id) {
            Some(edit) => self.edit_only(id, plan, edit, &mut info)?,
            None => self.rewrite((&family, &version), plan, orders, &mut info)?,
        }
        info.took = self.store.id.env.clock.monotonic().saturating_sub(begin);
        let notices = &self.store.watch.notices;
        notices.note(|| Notice::Compacted(info.clone()));
        Ok(Some(info))
    }

    /// Moves or drops the plan's tables: nothing is read or written but the MANIFEST.
    fn edit_only(
        &self,
        id: u32,
        plan: &Plan,
        edit: VersionEdit,
        info: &mut CompactionInfo,
    ) -> Result<()> {
        let mut state = self.store.lock_state();
        if state.families.contains_key(&id) {
            self.store.log_and_apply(&mut state, vec![edit])?;
        }
        let statistics = &self.store.watch.statistics;
        let count = info.inputs as u64;
        if plan.work == Work::Drop {
            info.outputs = 0;
            info.output_tables.clear();
            statistics.dropped_tables.add(count);
        } else {
            statistics.trivial_moves.add(count);
        }
        Ok(())
    }

    /// Merges the plan's tables into new ones and installs these.
    fn rewrite(
        &self,
        (family, version): (&Arc<Family>, &Version),
        plan: &Plan,
        orders: Orders,
        info: &mut CompactionInfo,
    ) -> Result<()> {
        let _pending = self.store.begin_job()?;
        let span = Span::begin(&*self.store.id.env.clock);
        let mut posted = self.post_compaction(family, plan);
        let priority = match plan.reason.is_for_writers() {
            true => IoPriority::Compaction,
            false => IoPriority::Manual,
        };
        let mut context = self.job_context(family, posted.progress(), priority);
        if self.leaves_cores(plan) {
            context.threads_max = 1;
        }
        let is_told = orders.is_told;
        orders.give(plan, &mut context);
        // First: without space no model need be learned.
        context.space = Some(Arc::new(self.reserve_space(&context, plan)?));
        context.filter = self.filter_of(family, plan)?;
        context.has_blobs = !version.blobs().is_empty();
        let model = self.give_model(family, version, plan, &mut context)?;
        let direct = match self.store.id.direct_io {
            true => DIRECT_BYTES,
            false => 0,
        };
        let output = context.options.target_file_bytes as usize / FILTER_DIVISOR;
        let buffers = context.threads_max.max(1) * (JOB_BYTES + direct + output);
        let _charge = self.store.caches.charge_job(buffers);
        let outcome = rewrite::run(&context, version, plan, &self.store.closing)?;
        let files = outcome.new_files.iter().map(|(_, file)| file);
        let mut made = MadeFiles::new(&self.store, files.clone(), &outcome.blob_additions);
        info.outputs = outcome.new_files.len();
        let made_tables = outcome.new_files.iter();
        info.output_tables = made_tables
            .skip(usize::from(drumlin_base::bug!("first-output-untold")))
            .map(|(level, file)| table_at(*level as usize, file))
            .collect();
        (info.bytes_read, info.bytes_written) = (outcome.bytes_read, outcome.bytes_written);
        if is_told || self.store.watch.notices.are_heard() {
            describe(info, family, plan, &outcome);
        }
        self.count_blobs(&outcome);
        let ahead = open_ahead(family, files)?;
        self.install_compaction(family.id, plan, outcome, &mut made)?;
        drop(made);
        drop(model);
        ahead.keep();
        posted.is_done = true;
        drop(posted);
        let statistics = &self.store.watch.statistics;
        statistics.compactions.bump();
        if plan.reason == Reason::Reads {
            statistics.compactions_for_reads.bump();
        }
        statistics.compaction_read_bytes.add(info.bytes_read);
        statistics.compaction_write_bytes.add(info.bytes_written);
        let watch = &self.store.watch;
        let (read, written) = (info.bytes_read, info.bytes_written);
        watch.levels.add(plan.output_level, read, written);
        span.end(&watch.times.compaction);
        Ok(())
    }

    /// The user's filter for this compaction.
    fn filter_of(&self, family: &Family, plan: &Plan) -> Result<Option<Arc<dyn CompactionFilter>>> {
        let Some(factory) = &family.filter else {
            return Ok(None);
        };
        let levels = plan.inputs.iter().map(|input| input.level as u32);
        let durable = match drumlin_base::bug!("filters-count-what-is-not-durable") {
            true => self.store.visible_seqno(),
            false => self.store.durable.load(Ordering::Acquire),
        };
        let job = FilterJob::new(
            family.id,
            levels.collect(),
            plan.output_level as u32,
            durable,
        );
        let create = AssertUnwindSafe(|| Arc::clone(factory).create(&job));
        catch_unwind(create).map_err(|_| {
            let message = "the factory of compaction filters panicked";
            Error::new(ErrorKind::Aborted, message)
        })
    }

    /// Whether a compaction keeps to one thread, and leaves the other cores to writers: one that they do not
    /// wait for, while they write.
    fn leaves_cores(&self, plan: &Plan) -> bool {
        let is_urgent = self.is_pressed(plan) || plan.score >= URGENT_SCORE;
        let is_written = self.store.watch.board.was_written();
        plan.reason.can_wait() || (is_written && !is_urgent)
    }

    fn count_blobs(&self, outcome: &Outcome) {
        let statistics = &self.store.watch.statistics;
        statistics
            .blob_bytes_written
            .add(outcome.blob_bytes_written);
        statistics.blobs_moved.add(outcome.blobs_moved);
        statistics.blob_bytes_moved.add(outcome.blob_bytes_moved);
    }

    /// Reserves space for the output of the plan.
    fn reserve_space(&self, context: &JobContext, plan: &Plan) -> Result<Promise> {
        // New filters, indexes and properties may make it a little more than the inputs.
        let bytes_max = plan.input_bytes() / 16 * 17;
        self.store.files.space.promise(bytes_max).or_else(|error| {
            if error.kind() != ErrorKind::NoSpace {
                return Err(error);
            }
            // Compactions that drop deleted entries are how a full disk gets space back: of these
            // only what is likely to stay must fit.
            let mut likely = 0;
            for (_, file) in plan.files() {
                let table = context.tables.find(file)?;
                let properties = table.properties();
                if !table.range_tombstones().is_empty() {
                    return self.store.files.space.promise(0);
                }
                let entries = properties.num_entries.max(1);
                let gone = properties.num_deletions.saturating_mul(2).min(entries);
                likely += file.size / entries * (entries - gone);
            }
            match likely < bytes_max / 2 {
                true => self.store.files.space.promise(likely),
                false => Err(error),
            }
        })
    }

    fn install_compaction(
        &self,
        id: u32,
        plan: &Plan,
        outcome: Outcome,
        files: &mut MadeFiles<'_>,
    ) -> Result<()> {
        assert_eq!(
            outcome.deleted_files.len(),
            plan.files().count(),
            "a compaction replaces its inputs and nothing else"
        );
        let mut state = self.store.lock_state();
        if !state.families.contains_key(&id) {
            return Ok(()); // The family was dropped meanwhile.
        }
        let edit = VersionEdit {
            column_family: id,
            deleted_files: outcome.deleted_files,
            new_files: outcome.new_files,
            blob_additions: outcome.blob_additions,
            blob_garbage: outcome.blob_garbage,
            ..VersionEdit::default()
        };
        self.store.log_and_apply(&mut state, vec![edit])?;
        files.keep();
        Ok(())
    }
}

fn table_at(level: usize, file: &NewFile) -> TableOfJob {
    TableOfJob {
        level,
        number: file.number,
        oldest_blob_file: file.oldest_blob_file,
    }
}

/// Adds what listeners are told of the tables and blob files of a compaction. Nothing is read for it: tables that were read are open,
/// but for those that had to be closed meanwhile.
fn describe(info: &mut CompactionInfo, family: &Family, plan: &Plan, outcome: &Outcome) {
    let tables = &family.reads.tables;
    let read = plan.files().filter_map(|(_, file)| {
        let table = tables.find_open(file)?;
        Some((file.number, Arc::new(table.properties().clone())))
    });
    let made = outcome.new_files.iter().map(|(_, file)| file);
    let written = made
        .clone()
        .filter_map(|file| Some((file.number, Arc::clone(file.properties.as_ref()?))));
    info.properties = read.chain(written).collect();
    let order = &family.options.order;
    let smallest = made.clone().map(NewFile::smallest_user_key);
    let smallest = smallest.min_by(|a, b| order.compare(a, b));
    let largest = made.map(NewFile::largest_user_key);
    let keys = smallest.zip(largest.max_by(|a, b| order.compare(a, b)));
    info.output_keys = keys.map(|(smallest, largest)| (smallest.to_vec(), largest.to_vec()));
    info.blob_files = blob_counts(&outcome.blob_additions);
    info.blob_garbage = blob_counts_of_garbage(&outcome.blob_garbage);
}

/// The blob files that were written, as listeners are told of them.
pub(super) fn blob_counts(written: &[BlobFileAddition]) -> Vec<BlobCount> {
    let count = |written: &BlobFileAddition| BlobCount {
        file: written.number,
        blobs: written.blob_count,
        bytes: written.blob_bytes,
    };
    written.iter().map(count).collect()
}

fn blob_counts_of_garbage(garbage: &[BlobFileGarbage]) -> Vec<BlobCount> {
    let count = |garbage: &BlobFileGarbage| BlobCount {
        file: garbage.number,
        blobs: garbage.garbage_count,
        bytes: garbage.garbage_bytes,
    };
    garbage.iter().map(count).collect()
}

/// Gives a plan's inputs back when its job ends, also by a panic in a callback.
struct Claim<'a> {
    store: &'a Store,
    id: u32,
    plan: &'a Plan,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(family) = self.store.lock_state().families.get_mut(&self.id) {
            end(family, self.plan);
        }
        self.plan.release_claims();
    }
}

/// Claims the plan's inputs and notes it as running; false when another plan has one of them.
pub(crate) fn begin(family: &mut FamilyState, plan: &Plan) -> bool {
    if !plan.claim() {
        return false;
    }
    let running = plan.running(&family.family.options.order);
    family.in_flight.running.extend(running);
    true
}

fn end(family: &mut FamilyState, plan: &Plan) {
    if let Some(running) = plan.running(&family.family.options.order) {
        family.in_flight.remove(&running);
    }
}
