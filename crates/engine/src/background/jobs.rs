//! Carrying out flushes and compactions, and installing what they made.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::{Error, ErrorKind, MemoryBudget, MemoryUse, Result, SEQNO_MAX};
use drumlin_fs::{Env, IoPriority, IoTimes, PacedFileSystem};
use drumlin_memtable::Memtable;
use drumlin_table::{
    Codec, Compression, FilterOptions, TableFormat, TableStyle, TableWriterOptions,
};

use crate::background::made_files::MadeFiles;
use crate::caches::table_cache::Ahead;
use crate::compaction::blob_outputs::BlobOptions;
use crate::compaction::flush::{self, Flushed};
use crate::compaction::job::{self, Outcome};
use crate::compaction::output::JobContext;
use crate::compaction::progress::{Progress, Watcher};
use crate::compaction::{self, CompactionStyle, Moment, Plan, Reason, Work};
use crate::db::engine::{Engine, FamilyState, State};
use crate::family::column_family::{Family, level_compression};
use crate::files::names;
use crate::files::reuse::ReusingFileSystem;
use crate::files::space::Promise;
use crate::version::obsolete::{obsolete_files, remove_files};
use crate::version::{JobFiles, NewFile, VersionEdit};
use crate::watch::events::{CompactionInfo, FlushInfo, Health};
use crate::watch::notices::Notice;
use crate::watch::pressure::{JobKind, RunningJob};

/// About what one thread of a job holds in buffers: read-ahead of its inputs, blocks under way.
const JOB_BYTES: usize = 4 << 20;
/// What it holds beside that when it passes the page cache by: aligned copies of what it reads.
const DIRECT_BYTES: usize = 2 << 20;
/// A table's filter and index are built in memory; together about this part of its size.
const FILTER_SHARE: usize = 12;
/// WAL files kept to be recycled.
const SPARE_WALS_MAX: usize = 2;
/// From this score on a compaction is so far behind that it takes cores from writers.
const URGENT_SCORE: f64 = 2.0;

impl Engine {
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.closing.load(Ordering::Acquire) {
            true => Err(Error::new(
                ErrorKind::Shutdown,
                "the database is being closed",
            )),
            false => Ok(()),
        }
    }

    /// Refuses what changes the database where it was opened for reading.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.read_only {
            true => Err(Error::new(
                ErrorKind::ReadOnly,
                "the database was opened read-only",
            )),
            false => Ok(()),
        }
    }

    /// Announces a job that makes files. Closing waits until the guard is dropped.
    ///
    /// # Errors
    /// `Shutdown` once closing has begun.
    pub(crate) fn begin_job(&self) -> Result<JobFiles> {
        // In this order: either closing sees the job, or the job sees that it is too late.
        let job = self.numbers.begin_job();
        self.check_open()?;
        Ok(job)
    }

    /// Flushes all of a family's immutable memtables into one table and installs it.
    pub(crate) fn run_flush(&self, id: u32) -> Result<()> {
        let (family, memtables) = {
            let mut state = self.lock_state();
            let Ok(family) = state.family_mut(id) else {
                return Ok(());
            };
            (Arc::clone(&family.family), next_to_flush(family))
        };
        let pending = self.begin_job()?;
        let bytes: usize = memtables.iter().map(|memtable| memtable.bytes()).sum();
        let what = format!("flush of {} memtables", memtables.len());
        let mut posted = self.post(&family, what, JobKind::Flush, bytes as u64);
        let charge = self.charge_job(JOB_BYTES + family.write_buffer / FILTER_SHARE);
        let flushed = self.write_memtables(&family, &memtables, posted.progress())?;
        let mut made = MadeFiles::new(self, flushed.file.iter(), &flushed.blob_files);
        drop(charge);
        self.sync_closed_wals()?;
        let ahead = open_ahead(&family, flushed.file.iter())?;
        self.install_flush(&family, memtables.len(), &flushed, &mut made)?;
        ahead.keep();
        posted.is_done = true;
        drop(posted);
        drop(pending);
        self.statistics.flushes.bump();
        let bytes = flushed.bytes_written;
        self.statistics.flush_bytes.add(bytes);
        self.statistics.blob_bytes_written.add(flushed.blob_bytes);
        self.notices.note(|| {
            Notice::Flushed(FlushInfo {
                family: family.name.clone(),
                table: flushed.file.map(|table| table.number),
                bytes,
            })
        });
        Ok(())
    }

    /// Syncs the WAL files before the live one, for whoever is about to install tables that no compaction made:
    /// or a power cut could keep this family's newest writes and lose another's older ones.
    pub(crate) fn sync_closed_wals(&self) -> Result<()> {
        if self.families.load().len() < 2 || drumlin_base::bug!("flush-before-wal-sync") {
            return Ok(());
        }
        self.unsynced_wals.sync().inspect_err(|error| {
            self.degrade(&mut self.lock_state(), Health::Poisoned, error);
        })
    }

    /// Writes `memtables` (oldest first) to a new table for L0 and to blob files, which are not
    /// installed yet.
    ///
    /// Requires: the caller holds a guard of `FileNumbers::begin_job` until it is.
    pub(crate) fn write_memtables(
        &self,
        family: &Arc<Family>,
        memtables: &[Arc<Memtable>],
        progress: Arc<Progress>,
    ) -> Result<Flushed> {
        let _span = tracing::info_span!("flush", family = family.name).entered();
        let context = self.job_context(family, progress, IoPriority::Flush);
        flush::run(&context, memtables)
    }

    /// What jobs of the family are done with.
    fn job_context(
        &self,
        family: &Arc<Family>,
        progress: Arc<Progress>,
        priority: IoPriority,
    ) -> JobContext {
        let numbers = Arc::clone(&self.numbers);
        JobContext {
            env: self.job_env(priority, progress.io()),
            dir: self.dir.clone(),
            options: family.compaction.clone(),
            tables: Arc::clone(&family.reads.tables),
            writers: std::array::from_fn(|level| self.table_writer(family, level)),
            merge_operator: family.options.merge_operator.clone(),
            filter: family.options.compaction_filter.clone(),
            blobs: self.blob_options(family),
            numbers: Arc::new(move || numbers.take()),
            snapshots: self.snapshots.all(),
            threads_max: self.options.background_threads_count().max(1),
            progress,
            watcher: None,
            direct: self.direct_io,
            room: None,
        }
    }

    /// How the family's large values are kept apart.
    fn blob_options(&self, family: &Family) -> BlobOptions {
        // FIFO rewrites nothing, and counts what its tables hold.
        if self.leveldb || matches!(family.compaction.style, CompactionStyle::Fifo(_)) {
            return BlobOptions::never();
        }
        let format = family.options.table_format.unwrap_or_default();
        BlobOptions {
            from_bytes: family.tuning.blob_from(format),
            file_bytes: family.tuning.blob_file_bytes(),
            compression: blob_compression(family.compression, format),
            family_id: family.id,
        }
    }

    /// Posts a job on the board until the guard is dropped.
    fn post(&self, family: &Family, what: String, kind: JobKind, bytes: u64) -> Posted<'_> {
        let job = RunningJob {
            family: family.id,
            what,
            kind,
            progress: Progress::new(bytes),
            since: self.env.clock.monotonic(),
        };
        let since = job.since;
        let job = self.board.begin(job);
        self.look(since);
        Posted {
            engine: self,
            job,
            is_done: false,
        }
    }

    fn post_compaction(&self, family: &Family, plan: &Plan) -> Posted<'_> {
        let l0_tables = plan.files().filter(|(level, _)| *level == 0).count();
        let kind = match plan.reason.is_for_writers() {
            true => JobKind::Compaction { l0_tables },
            false => JobKind::Manual,
        };
        let what = format!(
            "compaction of {} tables from L{} to L{} ({:?})",
            plan.files().count(),
            plan.level,
            plan.output_level,
            plan.reason
        );
        self.post(family, what, kind, plan.input_bytes())
    }

    /// The environment whose files are written with this priority, timed, and in the place of old
    /// ones where that can be.
    fn job_env(&self, priority: IoPriority, times: &Arc<IoTimes>) -> Env {
        let env = self.env.clone();
        let files = PacedFileSystem::new(
            Arc::clone(&env.files),
            (Arc::clone(&self.limiter), priority),
            (Arc::clone(&env.clock), Arc::clone(times)),
        )
        .directly(self.direct_io);
        let files = ReusingFileSystem::new(Arc::new(files), Arc::clone(&self.trash));
        env.with_files(Arc::new(files))
    }

    /// Charges a job's buffers and has the block cache make room for them.
    fn charge_job(&self, bytes: usize) -> JobCharge<'_> {
        self.budget.charge(MemoryUse::Jobs, bytes);
        self.block_cache.trim();
        JobCharge {
            budget: &self.budget,
            bytes,
        }
    }

    /// How tables of `level` are written.
    fn table_writer(&self, family: &Family, level: usize) -> TableWriterOptions {
        let tuning = &family.tuning;
        let compression = level_compression(family.compression, level);
        let filter = FilterOptions {
            bits_per_key: tuning.filter_bits,
            whole_keys: tuning.whole_key_filter,
            prefix: family.options.prefix_extractor.clone(),
        };
        let merge_operator = family.options.merge_operator.as_ref();
        let format = match self.leveldb {
            true => TableFormat::Block,
            false => {
                let wanted = family.options.table_format.unwrap_or_default();
                level_format(wanted, level, family.compaction.levels)
            }
        };
        // Plain tables have no filter, but index prefixes.
        let filter_wanted = tuning.filter_bits > 0.0 || format == TableFormat::Plain;
        TableWriterOptions {
            order: family.options.order.clone(),
            format,
            style: if self.leveldb {
                TableStyle::LevelDb
            } else {
                TableStyle::RocksDb
            },
            compression: if self.leveldb {
                leveldb_compression(compression)
            } else {
                compression
            },
            block_bytes: tuning.block_bytes,
            restart_interval: tuning.restart_interval,
            hash_ratio: tuning.hash_ratio.filter(|&ratio| ratio > 0.0),
            filter: filter_wanted.then_some(filter),
            format_version: self.vintage.format_version(),
            checksum: tuning.checksum,
            partition_index_above_bytes: tuning.partition_above_bytes,
            partition_filters: true,
            family_id: family.id,
            family_name: family.name.clone(),
            db_id: self.db_id.clone(),
            session_id: self.session_id.clone(),
            merge_operator_name: merge_operator.map_or(String::new(), |m| m.name().to_owned()),
            ..TableWriterOptions::default()
        }
    }

    fn install_flush(
        &self,
        family: &Arc<Family>,
        flushed: usize,
        made: &Flushed,
        files: &mut MadeFiles<'_>,
    ) -> Result<()> {
        let mut state = self.lock_state();
        let is_there = state.families.contains_key(&family.id);
        let outcome = self.install_flush_locked(&mut state, family, flushed, made);
        if outcome.is_ok() {
            if is_there {
                files.keep();
            }
            self.remove_obsolete(&mut state);
        }
        self.changed.notify_all();
        outcome
    }

    fn install_flush_locked(
        &self,
        state: &mut State,
        family: &Arc<Family>,
        flushed: usize,
        made: &Flushed,
    ) -> Result<()> {
        let Ok(view) = state.family_mut(family.id) else {
            return Ok(()); // Dropped meanwhile: nobody needs the table.
        };
        let next_wal = view
            .immutables
            .get(flushed)
            .map_or(view.mutable_wal, |next| next.wal);
        let edit = VersionEdit {
            column_family: family.id,
            log_number: Some(next_wal),
            new_files: made.file.iter().map(|table| (0, table.clone())).collect(),
            blob_additions: made.blob_files.clone(),
            ..VersionEdit::default()
        };
        let mut edits = vec![edit];
        // Families with nothing in memory need no older WAL either.
        for (&id, other) in &state.families {
            let told = state.versions.family(id).map_or(0, |told| told.log_number);
            let is_empty = other.mutable.is_empty() && other.immutables.is_empty();
            // Only what is synced is let go of; a WAL may have been closed since.
            let needed = other.mutable_wal.min(next_wal);
            if id != family.id && is_empty && told < needed {
                let log_number = Some(needed);
                let column_family = id;
                edits.push(VersionEdit {
                    column_family,
                    log_number,
                    ..VersionEdit::default()
                });
            }
        }
        self.log_flush(state, edits, (family.id, flushed))
    }

    /// Gives up files nobody needs any more; how many. Cheap when nothing left the versions. They
    /// are removed by the background, or at once where no thread works in it.
    pub(crate) fn remove_obsolete(&self, state: &mut State) -> usize {
        if state.closed {
            return 0;
        }
        if let Some(oldest) = state.oldest_wal() {
            // What the MANIFEST asks for stays too, or recovery would take it for lost.
            let oldest = match drumlin_base::bug!("wal-removed-early") {
                true => oldest + 1,
                false => oldest.min(state.versions.min_log_number()),
            };
            self.oldest_wal.store(oldest, Ordering::Release);
        }
        let oldest_wal = self.oldest_wal.load(Ordering::Acquire);
        let mut given_up = 0;
        for number in state.versions.take_obsolete_tables() {
            self.table_cache.evict(number);
            self.trash.put(names::table(&self.dir, number));
            given_up += 1;
        }
        for number in state.versions.take_obsolete_manifests() {
            self.trash.put(names::manifest(&self.dir, number));
            given_up += 1;
        }
        for number in state.versions.take_obsolete_blobs() {
            self.blob_cache.evict(number);
            self.trash.put(names::blob(&self.dir, number));
            given_up += 1;
        }
        if given_up > 0 || self.models.take_changed() {
            given_up += self.remove_unused_models(state);
        }
        if state.wal_pins == 0 {
            let gone: Vec<u64> = state.wals.range(..oldest_wal).copied().collect();
            for number in gone {
                state.wals.remove(&number);
                if !self.leveldb && state.spare_wals.len() < SPARE_WALS_MAX {
                    state.spare_wals.push(number);
                } else {
                    self.trash.put(names::wal(&self.wal_dir, number));
                    given_up += 1;
                }
            }
        }
        self.settle_trash();
        given_up
    }

    /// Where no thread removes what was given up: does so, but for what is kept for reuse.
    fn settle_trash(&self) {
        if self.options.background_threads == Some(0)
            && let Err(error) = self.trash.settle()
        {
            self.file_stays(&error);
        }
    }

    /// Has what is kept for reuse removed too.
    pub(crate) fn release_trash(&self) {
        self.trash.release();
        self.settle_trash();
    }

    /// Removes what was given up, now and on this thread.
    pub(crate) fn empty_trash(&self) {
        if let Err(error) = self.trash.empty() {
            self.file_stays(&error);
        }
    }

    pub(crate) fn file_stays(&self, error: &Error) {
        tracing::warn!(%error, "an obsolete file stays until the next open");
        self.tell(error);
    }

    /// The life of the thread that removes obsolete files.
    pub(crate) fn remove_trash(&self) {
        self.trash.work(|outcome| {
            if let Err(error) = outcome {
                self.file_stays(&error);
            }
            if self.trash.is_empty() {
                // Through the lock, so that who has just looked and is about to wait is woken.
                drop(self.lock_state());
                self.changed.notify_all();
            }
        });
    }

    /// Looks at the whole directory and removes what nobody needs: what an earlier run left.
    pub(crate) fn remove_leftovers(&self, state: &mut State) -> Result<usize> {
        let mut removed = self.remove_obsolete(state);
        self.empty_trash();
        let Some(mut needed) = state
            .versions
            .needed(state.spare_wals.iter().copied().collect())
        else {
            return Ok(removed);
        };
        needed.wals_from = needed
            .wals_from
            .min(self.oldest_wal.load(Ordering::Acquire));
        needed.models.extend(self.models.ids()); // Those that are not needed were given up above.
        for dir in [&self.dir, &self.wal_dir] {
            let listing = self.env.files.list(dir)?;
            let names = obsolete_files(&listing, &needed);
            removed += remove_files(&*self.env.files, dir, &names)?;
        }
        Ok(removed)
    }

    /// The most urgent plan of any family.
    pub(crate) fn best_plan(&self, state: &State) -> Option<(u32, Plan)> {
        let is_quiet = self.is_quiet(state);
        let pace = self.board.pace(self.env.clock.monotonic());
        let families = state.families.iter();
        let picked =
            families.filter_map(|(id, family)| Some((*id, self.pick_in(family, is_quiet, pace)?)));
        picked.max_by(|a, b| a.1.score.total_cmp(&b.1.score))
    }

    /// The most urgent plan of any family, claimed and noted as running.
    pub(crate) fn pick_compaction(&self, state: &mut State) -> Option<(u32, Plan)> {
        let (id, plan) = self.best_plan(state)?;
        begin(state.families.get_mut(&id)?, &plan).then_some((id, plan))
    }

    /// Whether some compaction is due.
    pub(crate) fn compaction_is_due(&self, state: &State) -> bool {
        self.best_plan(state).is_some()
    }

    /// The most urgent plan of one family of a store that is written at `pace`.
    fn pick_in(&self, family: &FamilyState, is_quiet: bool, pace: f64) -> Option<Plan> {
        let moment = Moment {
            is_quiet,
            flush_in: family.seconds_to_flush(pace),
            in_flight: &family.in_flight,
            now: self.env.clock.unix_seconds(),
            oldest_snapshot: self.snapshots.oldest().unwrap_or(SEQNO_MAX),
            has_room: family.may_have_room(),
        };
        compaction::pick(&family.version, &family.family.compaction, &moment)
            .or_else(|| is_quiet.then(|| self.recode_plan(family)).flatten())
    }

    /// Bytes compaction still has to rewrite in the family.
    pub(crate) fn compaction_debt(&self, family: &FamilyState) -> u64 {
        compaction::pending_bytes(&family.version, &family.family.compaction)
    }

    /// Carries out a claimed plan and installs its outcome.
    pub(crate) fn run_compaction(
        &self,
        id: u32,
        plan: &Plan,
        watcher: Option<Arc<dyn Watcher>>,
    ) -> Result<()> {
        let claim = Claim {
            engine: self,
            id,
            plan,
        };
        let outcome = self.compact(id, plan, watcher);
        drop(claim);
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
        outcome
    }

    fn compact(&self, id: u32, plan: &Plan, watcher: Option<Arc<dyn Watcher>>) -> Result<()> {
        let (family, version) = match self.lock_state().family_mut(id) {
            Ok(view) => (Arc::clone(&view.family), Arc::clone(&view.version)),
            Err(_) => return Ok(()),
        };
        let _span = tracing::info_span!("compaction", family = family.name).entered();
        let mut info = CompactionInfo {
            family: family.name.clone(),
            level: plan.level,
            output_level: plan.output_level,
            inputs: plan.files().count(),
            outputs: plan.files().count(),
            bytes_read: 0,
            bytes_written: 0,
            trivial_move: plan.work == Work::Move,
            for_reads: plan.reason == Reason::Reads,
        };
        if let Some(edit) = plan.edit_alone(id) {
            let mut state = self.lock_state();
            if state.families.contains_key(&id) {
                self.log_and_apply(&mut state, vec![edit])?;
            }
            let count = info.inputs as u64;
            if plan.work == Work::Drop {
                info.outputs = 0;
                self.statistics.dropped_tables.add(count);
            } else {
                self.statistics.trivial_moves.add(count);
            }
        } else {
            let _pending = self.begin_job()?;
            let mut posted = self.post_compaction(&family, plan);
            let priority = match plan.reason.is_for_writers() {
                true => IoPriority::Compaction,
                false => IoPriority::Manual,
            };
            let mut context = self.job_context(&family, posted.progress(), priority);
            context.watcher = watcher;
            if self.leaves_cores(plan) {
                context.threads_max = 1;
            }
            // First: without room no model need be learned.
            context.room = Some(Arc::new(self.room_for(&context, plan)?));
            let model = self.give_model(&family, &version, plan, &mut context)?;
            let output = family.tuning.target_file_bytes as usize / FILTER_SHARE;
            let direct = if self.direct_io { DIRECT_BYTES } else { 0 };
            let job = JOB_BYTES + direct + output;
            let _charge = self.charge_job(context.threads_max.max(1) * job);
            let outcome = job::run(&context, &version, plan, &self.closing)?;
            let files = outcome.new_files.iter().map(|(_, file)| file);
            let mut made = MadeFiles::new(self, files, &outcome.blob_additions);
            info.outputs = outcome.new_files.len();
            (info.bytes_read, info.bytes_written) = (outcome.bytes_read, outcome.bytes_written);
            self.count_blobs(&outcome);
            let ahead = open_ahead(&family, outcome.new_files.iter().map(|(_, file)| file))?;
            self.install_compaction(id, outcome, &mut made)?;
            drop(made);
            drop(model);
            ahead.keep();
            posted.is_done = true;
            drop(posted);
            self.statistics.compactions.bump();
            if plan.reason == Reason::Reads {
                self.statistics.compactions_for_reads.bump();
            }
            self.statistics.compaction_read_bytes.add(info.bytes_read);
            self.statistics
                .compaction_write_bytes
                .add(info.bytes_written);
        }
        self.notices.note(|| Notice::Compacted(info));
        Ok(())
    }

    /// Whether a compaction keeps to one thread, and leaves the other cores to writers: one that they do not
    /// wait for, while they write.
    fn leaves_cores(&self, plan: &Plan) -> bool {
        let is_urgent = self.is_pressed(plan) || plan.score >= URGENT_SCORE;
        let is_written = self.board.was_written();
        plan.reason.can_wait() || (is_written && !is_urgent)
    }

    fn count_blobs(&self, outcome: &Outcome) {
        let statistics = &self.statistics;
        statistics
            .blob_bytes_written
            .add(outcome.blob_bytes_written);
        statistics.blobs_moved.add(outcome.blobs_moved);
        statistics.blob_bytes_moved.add(outcome.blob_bytes_moved);
    }

    /// Keeps room on the disk for what the plan will write.
    fn room_for(&self, context: &JobContext, plan: &Plan) -> Result<Promise> {
        // New filters, indexes and properties may make it a little more than the inputs.
        let bytes_max = plan.input_bytes() / 16 * 17;
        self.space.promise(bytes_max).or_else(|error| {
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
                    return self.space.promise(0);
                }
                let entries = properties.num_entries.max(1);
                let gone = properties.num_deletions.saturating_mul(2).min(entries);
                likely += file.size / entries * (entries - gone);
            }
            match likely < bytes_max / 2 {
                true => self.space.promise(likely),
                false => Err(error),
            }
        })
    }

    fn install_compaction(
        &self,
        id: u32,
        outcome: Outcome,
        files: &mut MadeFiles<'_>,
    ) -> Result<()> {
        let mut state = self.lock_state();
        if !state.families.contains_key(&id) {
            return Ok(()); // Dropped meanwhile: nobody needs the tables.
        }
        let edit = VersionEdit {
            column_family: id,
            deleted_files: outcome.deleted_files,
            new_files: outcome.new_files,
            blob_additions: outcome.blob_additions,
            blob_garbage: outcome.blob_garbage,
            ..VersionEdit::default()
        };
        self.log_and_apply(&mut state, vec![edit])?;
        files.keep();
        Ok(())
    }
}

/// Opens new tables whose opening reads them whole before a reader can meet them.
fn open_ahead<'a, 'f>(
    family: &'f Family,
    files: impl Iterator<Item = &'a NewFile>,
) -> Result<Ahead<'f>> {
    let format = family.options.table_format.unwrap_or_default();
    let mut ahead = Ahead::new(&family.reads.tables);
    if format.is_read_in_place() {
        for file in files {
            ahead.open(file)?;
        }
    }
    Ok(ahead)
}

/// A job on the board. Taken down when dropped, however the job ended.
struct Posted<'a> {
    engine: &'a Engine,
    job: Arc<RunningJob>,
    is_done: bool,
}

impl Posted<'_> {
    fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.job.progress)
    }
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        // A look before and one after, so that the time in between is told from that without a job.
        let now = self.engine.env.clock.monotonic();
        self.engine.look(now);
        let took = now.saturating_sub(self.job.since);
        let is_flush = self.job.kind == JobKind::Flush;
        let io = self.job.progress.io();
        self.engine.disk.job_ended(is_flush, took, io);
        self.engine.board.end(&self.job, self.is_done);
        self.engine.look(self.engine.env.clock.monotonic());
    }
}

/// The oldest memtables to be flushed together: one, or as many small ones as make up one. More at
/// once would free none until all are written, while writers fill the rest of the line.
fn next_to_flush(family: &FamilyState) -> Vec<Arc<Memtable>> {
    let mut room = family.family.write_buffer;
    let mut taken = Vec::new();
    for immutable in &family.immutables {
        let bytes = immutable.memtable.bytes();
        if !taken.is_empty() && bytes > room {
            break;
        }
        room = room.saturating_sub(bytes);
        taken.push(Arc::clone(&immutable.memtable));
    }
    taken
}

/// Memory a job is charged with while it runs.
struct JobCharge<'a> {
    budget: &'a MemoryBudget,
    bytes: usize,
}

impl Drop for JobCharge<'_> {
    fn drop(&mut self) {
        self.budget.release(MemoryUse::Jobs, self.bytes);
    }
}

/// Gives a plan's inputs back when its job ends, also by a panic in a callback.
struct Claim<'a> {
    engine: &'a Engine,
    id: u32,
    plan: &'a Plan,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(family) = self.engine.lock_state().families.get_mut(&self.id) {
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

/// LevelDB reads Snappy and nothing else.
fn leveldb_compression(wanted: Compression) -> Compression {
    match wanted.codec {
        Codec::None => wanted,
        _ => Compression::new(Codec::Snappy),
    }
}

/// The compression of blob files beside tables of `format`: who asks for searchable tables asks for small
/// ones, and zstd leaves two thirds of what LZ4 leaves of prose.
fn blob_compression(chosen: Compression, format: TableFormat) -> Compression {
    match (format, chosen.codec) {
        (TableFormat::Searchable, Codec::Lz4) => Compression::new(Codec::Zstd),
        _ => chosen,
    }
}

/// The format of tables of `level`, of `levels` that the family uses: searchable ones are dear to write, and pay
/// where tables stay.
fn level_format(wanted: TableFormat, level: usize, levels: usize) -> TableFormat {
    /// Levels that have them, from the last up, but for L0.
    const SEARCHABLE_LEVELS: usize = 2;
    match wanted {
        TableFormat::Searchable if level == 0 || level + SEARCHABLE_LEVELS < levels => {
            TableFormat::Block
        }
        wanted => wanted,
    }
}
