//! Carrying a plan out: reading its tables as one ordered stream, writing the surviving entries.
//!
//! Inputs are never touched. Any error, from damage in an input at any offset to a full disk, ends
//! the job, removes its outputs and is returned; the caller decides whether to try again.
//!
//! A large job is spread over threads by key: each takes a range of user keys between borders of
//! input tables and works alone, so the parts need no coordination and their outputs concatenate.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::key::{seek_key, split_internal, tag_kind, user_key};
use drumlin_base::limits::LEVELS;
use drumlin_base::{
    Error, ErrorKind, InternalIterator, KeyOrder, RangeTombstone, Result, SEQNO_MAX, ValueCode,
    ValueKind,
};
use drumlin_table::blob::BlobIndex;
use drumlin_table::{TableFormat, TableReadOptions};
use parking_lot::Mutex;

use super::blob_inputs::BlobInputs;
use super::blob_tally::BlobTally;
use super::cover::{Cover, retain};
use super::keep::{Below, KeyRange, Stripes};
use super::output::{JobContext, OutputStamp, Outputs, Written};
use super::parts::borders;
use super::plan::Plan;
use super::progress::CheckTimer;
use super::span::{Span, covering_range};
use super::split::Splitter;
use super::stream::{Stream, StreamCounts, StreamOptions};
use crate::iter::merging::MergingIterator;
use crate::iter::range_tombstone::Fragments;
use crate::iter::run::{RunFiles, RunIter, RunOptions};
use crate::version::{BlobFileAddition, BlobFileGarbage, FileMeta, NewFile, Version};
use crate::watch::reason::Reason;

/// Bytes that one thread of a job reads ahead, all input runs together: the job's memory charge
/// has to cover many runs too.
const READAHEAD_BYTES: usize = 2 << 20;
/// The share of each run, between enough for a system call and enough for a disk to stream.
const READAHEAD_BYTES_RUN: Range<usize> = 64 << 10..512 << 10;

/// The result of a compaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The inputs, for the edit: level and number.
    pub deleted_files: Vec<(u32, u64)>,
    /// The outputs, for the edit: synced, their names too.
    pub new_files: Vec<(u32, NewFile)>,
    /// Bytes of the inputs.
    pub bytes_read: u64,
    /// Bytes of the outputs.
    pub bytes_written: u64,
    /// The blob files written.
    pub blob_additions: Vec<BlobFileAddition>,
    /// The blobs to which no reference is left.
    pub blob_garbage: Vec<BlobFileGarbage>,
    /// Blobs moved to another file.
    pub blobs_moved: u64,
    /// Bytes of those.
    pub blob_bytes_moved: u64,
    /// Bytes of the blob files written; part of [`Outcome::bytes_written`].
    pub blob_bytes_written: u64,
}

/// Carries out `plan`, which was made from `version`. Set `cancel` to have it give up soon.
///
/// # Errors
/// `Corruption` and `Io` from reading inputs, `Io` and `NoSpace` from writing, errors of the merge
/// operator, `Shutdown` when cancelled, errors of the watcher, `Aborted` when a callback panicked. No output is
/// left behind.
pub(crate) fn run(
    context: &JobContext,
    version: &Version,
    plan: &Plan,
    cancel: &Arc<AtomicBool>,
) -> Result<Outcome> {
    let job = Arc::new(Job::new(context, version, plan, Arc::clone(cancel))?);
    let done = run_parts(&job)?;
    job.check_counts(&done.counts)?;
    let mut blob_garbage = done.referred.garbage(&done.written.blobs().kept)?;
    // After a repair tables may refer to files that are lost; those have no account.
    blob_garbage.retain(|garbage| version.blobs().contains_key(&garbage.number));
    let (files, blobs) = done.written.keep(context)?;
    let level = plan.output_level as u32;
    let table_bytes: u64 = files.iter().map(|file| file.size).sum();
    Ok(Outcome {
        deleted_files: plan.deleted_files(),
        bytes_read: plan.input_bytes() + blobs.moved_bytes,
        bytes_written: table_bytes + blobs.bytes_written,
        new_files: files.into_iter().map(|file| (level, file)).collect(),
        blob_additions: blobs.additions,
        blob_garbage,
        blobs_moved: blobs.moved,
        blob_bytes_moved: blobs.moved_bytes,
        blob_bytes_written: blobs.bytes_written,
    })
}

/// The output of one part of a job.
struct Part {
    written: Written,
    counts: StreamCounts,
    /// The references to blobs that were read.
    referred: BlobTally,
}

impl Part {
    fn append(&mut self, other: Self) {
        self.written.append(other.written);
        self.counts += other.counts;
        self.referred.append(&other.referred);
    }
}

type PartResult = Result<Part>;

/// Runs every part on a thread of its own, the last on this one.
fn run_parts(job: &Arc<Job>) -> PartResult {
    let results: Arc<Vec<Mutex<Option<PartResult>>>> =
        Arc::new((0..job.parts()).map(|_| Mutex::default()).collect());
    let mut threads = Vec::new();
    for (part, result) in results.iter().enumerate() {
        let is_last = part + 1 == results.len();
        let (body, all) = (Arc::clone(job), Arc::clone(&results));
        let work = Box::new(move || {
            let outcome = body.run_part(part);
            if let Some(result) = all.get(part) {
                *result.lock() = Some(outcome);
            }
        });
        match (is_last, &job.context.env.spawner) {
            (false, spawner) => match spawner.spawn("drumlin-compact", work) {
                Ok(thread) => threads.push(thread),
                // No more threads to be had: this one does it.
                Err(_) => *result.lock() = Some(job.run_part(part)),
            },
            (true, _) => work(),
        }
    }
    let joined: Vec<Result<()>> = threads.into_iter().map(|thread| thread.join()).collect();
    let mut all: Option<Part> = None;
    let mut cancelled = None;
    for result in results.iter() {
        match result.lock().take() {
            Some(Ok(part)) => match &mut all {
                None => all = Some(part),
                Some(all) => all.append(part),
            },
            // A part that stopped because another failed says less than the other.
            Some(Err(error)) if error.kind() == ErrorKind::Shutdown => cancelled = Some(error),
            Some(Err(error)) => return Err(error),
            None => {}
        }
    }
    joined.into_iter().collect::<Result<()>>()?;
    match (cancelled, all) {
        (Some(error), _) => Err(error),
        (None, Some(all)) => Ok(all),
        (None, None) => Err(without_parts()),
    }
}

#[cold]
fn without_parts() -> Error {
    Error::new(ErrorKind::Aborted, "a compaction without parts")
}

/// Everything that is the same for all parts of a job.
struct Job {
    context: JobContext,
    plan: Plan,
    stripes: Stripes,
    below: Below,
    fragments: Arc<Fragments>,
    /// The tombstones that go to the output.
    tombstones: Vec<RangeTombstone>,
    /// The blob files whose blobs are moved on the way.
    emptied: Arc<[u64]>,
    stamp: OutputStamp,
    /// Point entries of all inputs, if every table records them.
    entries: Option<RangeInclusive<u64>>,
    /// User keys between the parts.
    borders: Vec<Vec<u8>>,
    cancel: Arc<AtomicBool>,
    /// Set by a part that failed, so that the others stop.
    failed: AtomicBool,
}

impl Job {
    fn new(
        context: &JobContext,
        version: &Version,
        plan: &Plan,
        cancel: Arc<AtomicBool>,
    ) -> Result<Self> {
        let order = &context.options.order;
        let (fragments, entries) = survey(context, plan)?;
        let entries_max = entries.as_ref().map_or(0, |entries| *entries.end());
        context.progress.expect_entries(entries_max);
        let stripes = Stripes::new(context.snapshots.clone());
        let below = below(order, version, plan);
        let tombstones = retain(order, &fragments, &stripes, &below);
        let lowest = |values: &mut dyn Iterator<Item = u64>| {
            values.filter(|&value| value != 0).min().unwrap_or(0)
        };
        let files = || plan.files().map(|(_, file)| file);
        let stamp = OutputStamp {
            level: plan.output_level,
            epoch: lowest(&mut files().map(|file| file.epoch)),
            oldest_ancestor_time: lowest(&mut files().map(|file| file.oldest_ancestor_time)),
            newest_key_time: newest_key_time(context, plan)?,
            expected_bytes: plan.input_bytes().min(context.options.target_file_bytes),
            bottommost: below.is_nothing(),
            protects: {
                let newest = files().map(|file| file.largest_seqno).max().unwrap_or(0);
                context.snapshots.iter().any(|&snapshot| snapshot < newest)
            },
        };
        let emptied = version.collection().filter(|_| may_move_blobs(plan));
        let emptied = emptied.map_or(&[][..], |collection| &collection.emptied);
        Ok(Self {
            context: context.clone(),
            plan: plan.clone(),
            emptied: emptied.into(),
            borders: match plan.output_level {
                0 => Vec::new(), // One table: its neighbours in age shall stay so.
                // The versions of a key, each a key here, are judged together.
                _ if order.timestamp_bytes() > 0 => Vec::new(),
                _ => cut(context, plan)?,
            },
            cancel,
            failed: AtomicBool::new(false),
            stripes,
            below,
            fragments: Arc::new(fragments),
            tombstones,
            stamp,
            entries,
        })
    }

    fn parts(&self) -> usize {
        self.borders.len() + 1
    }

    fn run_part(&self, part: usize) -> PartResult {
        let first = part
            .checked_sub(1)
            .and_then(|before| self.borders.get(before));
        let limit = self.borders.get(part);
        // Relaxed: the flag publishes nothing but itself.
        self.compact_stretches(first.map(Vec::as_slice), limit.map(Vec::as_slice))
            .inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// Compacts the user keys from `first` up to, not including, `limit`: what lies in a scope with a model of its own apart
    /// from what is before and behind.
    fn compact_stretches<'a>(
        &'a self,
        first: Option<&'a [u8]>,
        limit: Option<&'a [u8]>,
    ) -> PartResult {
        let level = self.plan.output_level;
        let mut done: Option<Part> = None;
        let mut add = |part: Part| match &mut done {
            None => done = Some(part),
            Some(done) => done.append(part),
        };
        let mut at = first;
        for scope in &self.context.scopes {
            let is_ahead =
                at.is_none_or(|at| scope.limit.as_deref().is_none_or(|limit| at < limit));
            let is_behind = limit.is_some_and(|limit| limit <= scope.first.as_slice());
            if !is_ahead || is_behind {
                continue;
            }
            if at.is_none_or(|at| at < scope.first.as_slice()) {
                let before = at.replace(scope.first.as_slice());
                add(self.compact(&self.context, before, at)?);
            }
            let ends = match drumlin_base::bug!("scope-without-an-end") {
                true => None,
                false => scope.limit.as_deref(),
            };
            let end = match (ends, limit) {
                (Some(ends), Some(limit)) => Some(ends.min(limit)),
                (ends, limit) => ends.or(limit),
            };
            let context = self.context.with_model(level, &scope.model);
            add(self.compact(&context, at, end)?);
            at = end;
            if end == limit {
                return done.ok_or_else(without_parts);
            }
        }
        add(self.compact(&self.context, at, limit)?);
        done.ok_or_else(without_parts)
    }

    /// Compacts the user keys from `first` up to, not including, `limit`, for `context`.
    fn compact(
        &self,
        context: &JobContext,
        first: Option<&[u8]>,
        limit: Option<&[u8]>,
    ) -> PartResult {
        let order = &context.options.order;
        let input = MergingIterator::new(order.clone(), self.runs(context));
        self.check_cancelled()?;
        let mut input = Bounded::new(self, input, limit);
        match first {
            None => input.seek_to_first(),
            Some(first) => input.seek(&seek_key(first, SEQNO_MAX)),
        }
        let mut stream = Stream::new(
            input,
            StreamOptions {
                order: order.clone(),
                stripes: self.stripes.clone(),
                below: self.below.clone(),
                cover: Cover::new(Arc::clone(&self.fragments)),
                merge_operator: context.merge_operator.clone(),
                filter: context.filter.clone(),
                // Each reference to a blob that goes has to be counted.
                may_skip: !context.has_blobs && context.snapshots.is_empty(),
                output_level: self.plan.output_level as u32,
                full_history_ts_low: context.full_history_ts_low.clone(),
                blobs: Some(BlobInputs::new(&context.env.files, &context.dir)),
            },
        );
        let splitter = match self.plan.output_level {
            0 => Splitter::never(),
            _ => Splitter::new(&context.options, self.plan.grandparents.clone()),
        };
        let mut outputs = Outputs::new(context, self.stamp, splitter)
            .emptying(Arc::clone(&self.emptied))
            .with_tombstones(
                self.tombstones.clone(),
                first.map(<[u8]>::to_vec),
                limit.map(<[u8]>::to_vec),
            );
        while stream.advance()? {
            outputs.add(&stream)?;
        }
        Ok(Part {
            written: outputs.finish()?,
            counts: stream.counts(),
            referred: stream.input_mut().finish(),
        })
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed) {
            let message = "the compaction was cancelled";
            return Err(Error::new(ErrorKind::Shutdown, message));
        }
        let watcher = self.context.watcher.as_ref();
        watcher.map_or(Ok(()), |watcher| watcher.check())
    }

    /// The inputs as sorted runs, newest first: each table of L0, then whole levels.
    fn runs(&self, context: &JobContext) -> Vec<RunIter> {
        let mut lists: Vec<Vec<Arc<FileMeta>>> = Vec::new();
        for input in &self.plan.inputs {
            if input.level == 0 {
                lists.extend(input.files.iter().map(|file| vec![Arc::clone(file)]));
            } else {
                lists.push(input.files.clone());
            }
        }
        let Range { start, end } = READAHEAD_BYTES_RUN;
        let options = Arc::new(RunOptions {
            order: self.context.options.order.clone(),
            tables: Arc::clone(&self.context.tables),
            table: TableReadOptions {
                fill_cache: false,
                codes_of: match drumlin_base::bug!("scope-copies-others-codes") {
                    true => self.context.model_at(self.plan.output_level),
                    false => context.model_at(self.plan.output_level),
                },
                readahead_bytes: (READAHEAD_BYTES / lists.len().max(1)).clamp(start, end),
                ..TableReadOptions::default()
            },
            lower_bound: None,
            upper_bound: None,
            tombstones_seen: Arc::default(),
        });
        lists
            .into_iter()
            .map(|files| {
                let run = RunIter::new(RunFiles::List(files), Arc::clone(&options));
                match self.context.direct {
                    true => run.directly(Arc::clone(&self.context.env.files)),
                    false => run,
                }
            })
            .collect()
    }

    /// Every entry of the inputs must have been seen: a job that lost some must not replace them.
    fn check_counts(&self, counts: &StreamCounts) -> Result<()> {
        match &self.entries {
            // Entries that a filter had passed over were not read.
            Some(expected) if counts.skipped && counts.input <= *expected.end() => Ok(()),
            Some(expected) if !expected.contains(&counts.input) => Err(Error::corruption(format!(
                "a compaction read {} entries of tables that hold {}",
                counts.input,
                expected.start()
            ))),
            _ => Ok(()),
        }
    }
}

/// The user keys between the parts of a job.
fn cut(context: &JobContext, plan: &Plan) -> Result<Vec<Vec<u8>>> {
    let options = &context.options;
    let samples = |file: &Arc<FileMeta>, count_max| {
        let table = context.tables.find(file)?;
        Ok(table.key_samples(count_max))
    };
    // Coding rows takes time by their size; the file may be a thirtieth of that.
    let writer = context.writers.get(plan.output_level);
    let codes = writer.is_some_and(|writer| writer.format == TableFormat::Searchable);
    let bytes_of = |file: &Arc<FileMeta>| {
        if !codes {
            return Ok(file.size);
        }
        let held = context.tables.find(file)?.properties().raw_bytes();
        Ok(held.max(file.size))
    };
    borders(options, plan, context.threads_max, bytes_of, samples)
}

/// Whether the job moves blobs out of files with much garbage on its way. One that empties L0 does
/// not: it is short while it handles references only, and many a blob that it would have moved turns
/// out by it to be overwritten.
fn may_move_blobs(plan: &Plan) -> bool {
    plan.level > 0 || plan.reason == Reason::BlobGarbage
}

/// Opens every input: the range tombstones of all, each cut to its file's bounds, and how many point
/// entries there are at least and at most (`None` when a table does not record them).
fn survey(context: &JobContext, plan: &Plan) -> Result<(Fragments, Option<RangeInclusive<u64>>)> {
    let order = &context.options.order;
    let mut sources = Vec::new();
    let mut entries = Some(0..=0);
    for (_, file) in plan.files() {
        let table = context.tables.find(file)?;
        let tombstones = table.range_tombstones();
        if !tombstones.is_empty() {
            let (smallest, largest) = (&file.smallest, &file.largest);
            sources.push(Fragments::within_file(order, tombstones, smallest, largest));
        }
        let properties = table.properties();
        entries = match (entries, properties.num_entries) {
            (Some(sum), count) if count > 0 => {
                let here = properties.point_entries(tombstones.len() as u64);
                Some(sum.start() + here.start()..=sum.end() + here.end())
            }
            _ => None,
        };
    }
    Ok((Fragments::merged(order, &sources), entries))
}

/// The newest of the tables' times, where all of them have one.
fn newest_key_time(context: &JobContext, plan: &Plan) -> Result<u64> {
    let mut newest = 0;
    for (_, file) in plan.files() {
        match context.tables.find(file)?.properties().newest_key_time {
            0 => return Ok(0),
            time => newest = newest.max(time),
        }
    }
    Ok(newest)
}

/// The data below an output to L0: nothing where the plan takes the oldest table of L0 and all of the
/// levels, for plans take neighbours in age; else anything.
fn below_in_l0(version: &Version, plan: &Plan) -> Below {
    let takes = |number: u64| plan.files().any(|(_, file)| file.number == number);
    let oldest = version.level(0).last().map(|file| file.number);
    let deeper = (1..LEVELS).flat_map(|level| version.level(level));
    let mut deeper = deeper.map(|file| file.number);
    match oldest.is_none_or(takes) && deeper.all(takes) {
        true => Below::Nothing,
        false => Below::Anything,
    }
}

/// The data below the plan's output in `version`.
fn below(order: &KeyOrder, version: &Version, plan: &Plan) -> Below {
    let Some(span) = plan.span(order) else {
        return Below::Anything;
    };
    if plan.output_level == 0 {
        return below_in_l0(version, plan);
    }
    let levels = (plan.output_level + 1..LEVELS)
        .map(|level| {
            let files = version.level(level);
            let range = covering_range(order, files, &span);
            let files = files.get(range).expect("a range of the level");
            let ranges = files.iter().map(|file| KeyRange {
                first: file.smallest_user_key().to_vec(),
                last: Span::of(file).last.to_vec(),
            });
            ranges.collect()
        })
        .collect();
    Below::levels(levels)
}

/// The input of a part: ends before a user key, counts the references to blobs it stands on, and checks
/// now and then for requests to the job, whatever becomes of the entries: a long stretch of dead ones
/// keeps nobody waiting. Only for walking forward, once.
struct Bounded<'a, I> {
    job: &'a Job,
    inner: I,
    limit: Option<Vec<u8>>,
    inside: bool,
    referred: BlobTally,
    timer: CheckTimer,
    entries: u64,
    /// Why a reference could not be counted, or the job is to end.
    failure: Option<Error>,
}

impl<'a, I: InternalIterator> Bounded<'a, I> {
    fn new(job: &'a Job, inner: I, limit: Option<&[u8]>) -> Self {
        Self {
            job,
            inner,
            limit: limit.map(<[u8]>::to_vec),
            inside: false,
            referred: BlobTally::default(),
            timer: CheckTimer::default(),
            entries: 0,
            failure: None,
        }
    }

    #[inline]
    fn look(&mut self) {
        self.inside = self.inner.valid()
            && match &self.limit {
                None => true,
                Some(limit) => {
                    let order = &self.job.context.options.order;
                    order.compare(user_key(self.inner.key()), limit).is_lt()
                }
            };
        if self.inside
            && let Err(error) = self.count()
        {
            self.inside = false;
            self.failure = Some(error);
        }
    }

    /// Counts the present entry.
    #[inline]
    fn count(&mut self) -> Result<()> {
        let key = self.inner.key();
        if let Some(code) = self.inner.code() {
            self.entries += 1;
            return match self.timer.is_due(key.len() + code.bytes.len()) {
                true => self.check(),
                false => Ok(()),
            };
        }
        let value = self.inner.value();
        let mut bytes = key.len() + value.len();
        if let Some((user_key, tag)) = split_internal(key)
            && tag_kind(tag) == ValueKind::BlobIndex as u8
        {
            let index = BlobIndex::decode(value)?;
            self.referred.add(user_key, &index);
            if self.job.emptied.binary_search(&index.file).is_ok() {
                bytes += index.size as usize;
            }
        }
        self.entries += 1;
        match self.timer.is_due(bytes) {
            true => self.check(),
            false => Ok(()),
        }
    }

    #[cold]
    fn check(&mut self) -> Result<()> {
        self.job.context.note(&mut self.timer, self.entries);
        self.job.check_cancelled()
    }

    /// Notes the end of the walk; the references met.
    fn finish(&mut self) -> BlobTally {
        self.timer.note(&self.job.context.progress, self.entries);
        std::mem::take(&mut self.referred)
    }
}

impl<I: InternalIterator> InternalIterator for Bounded<'_, I> {
    #[inline]
    fn valid(&self) -> bool {
        self.inside
    }

    fn seek_to_first(&mut self) {
        self.inner.seek_to_first();
        self.look();
    }

    fn seek_to_last(&mut self) {
        self.inner.seek_to_last();
        self.look();
    }

    fn seek(&mut self, target: &[u8]) {
        self.inner.seek(target);
        self.look();
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.inner.seek_for_prev(target);
        self.look();
    }

    #[inline]
    fn next(&mut self) {
        self.inner.next();
        self.look();
    }

    fn prev(&mut self) {
        self.inner.prev();
        self.look();
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.inner.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.inner.value()
    }

    #[inline]
    fn code(&self) -> Option<ValueCode<'_>> {
        self.inner.code()
    }

    fn status(&self) -> Result<()> {
        match &self.failure {
            Some(error) => Err(error.duplicate()),
            None => self.inner.status(),
        }
    }
}
