//! The tables a job writes: one open at a time, all removed again unless the job succeeds.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::key::{TAG_BYTES, append_internal, compare_internal, user_key};
use drumlin_base::limits::LEVELS;
use drumlin_base::{
    CompactionFilter, Error, ErrorKind, InternalIterator, MergeOperator, RangeTombstone, Result,
    SEQNO_MAX, SeqNo, ValueKind,
};
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_table::{Model, TableFormat, TableStyle, TableWriter, TableWriterOptions};

use super::blob_outputs::{BlobChanges, BlobOptions, BlobOutputs, BlobPlace, FileNumbers, Placed};
use super::blob_tally::BlobTally;
use super::cover::Territory;
use super::created::Created;
use super::density::Watch;
use super::plan::CompactionOptions;
use super::progress::{CheckTimer, Progress, Watcher};
use super::split::Splitter;
use super::stream::Stream;
use crate::caches::table_cache::TableCache;
use crate::files::names;
use crate::files::space::Promise;
use crate::version::NewFile;

/// A table ends early when it refers to many blobs: so many of their bytes count as one of its own.
/// References are so small that a table of the usual size would refer to hundreds of times its
/// bytes, and emptying a blob file rewrites whole tables and moves what they refer to.
const BLOB_BYTES_PER_TABLE_BYTE: u64 = 16;

/// The environment and options of one family's flushes and compactions.
#[derive(Clone)]
pub(crate) struct JobContext {
    /// Files, clock and threads.
    pub env: Env,
    /// The directory of the tables.
    pub dir: PathBuf,
    /// Sizes, and the order of user keys.
    pub options: CompactionOptions,
    /// Where inputs are opened: the family's handle.
    pub tables: Arc<TableCache>,
    /// How the tables of each level are written. Numbers, times and expected sizes are filled in
    /// by the job.
    pub writers: [TableWriterOptions; LEVELS],
    /// Ranges of user keys whose tables are written with another model than `writers` has, ascending, none over another.
    pub scopes: Vec<ScopeModel>,
    /// Combines operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Where keys end with timestamps: the oldest at which anybody reads.
    pub full_history_ts_low: Option<Arc<Vec<u8>>>,
    /// Looks at values on their way through compaction; flushes do not ask it.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// Whether tables of the family may refer to blob files.
    pub has_blobs: bool,
    /// The values that are kept apart from the tables, and how.
    pub blobs: BlobOptions,
    /// Where new tables get their numbers. The owner protects these files from being removed as
    /// unknown until the job has ended.
    pub numbers: FileNumbers,
    /// The snapshots alive when the job was planned, in any order.
    pub snapshots: Vec<SeqNo>,
    /// Upper bound of threads one compaction is spread over; 0 and 1 are one.
    pub threads_max: usize,
    /// Where the job says how far it is.
    pub progress: Arc<Progress>,
    /// Asked on the way; `None` for a job that nothing interrupts.
    pub watcher: Option<Arc<dyn Watcher>>,
    /// Whether inputs are read past the page cache. For outputs `env` decides.
    pub direct: bool,
    /// Free space reserved for the output, if any.
    pub space: Option<Arc<Promise>>,
}

/// A range of user keys and the model that its tables are written with, which no other keys come into.
#[derive(Clone, Debug)]
pub(crate) struct ScopeModel {
    /// The first key.
    pub first: Vec<u8>,
    /// The first key behind it; `None` where there is none.
    pub limit: Option<Vec<u8>>,
    /// The model.
    pub model: Arc<Model>,
}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobContext")
            .field("dir", &self.dir)
            .field("options", &self.options)
            .field("snapshots", &self.snapshots)
            .finish_non_exhaustive()
    }
}

impl JobContext {
    /// Notes that `entries` were passed since the walk began, and gives way to threads of the foreground: woken
    /// beside a thread that computes, they would get its core at the next tick of the system, after up to 4 ms.
    pub(crate) fn note(&self, timer: &mut CheckTimer, entries: u64) {
        timer.note(&self.progress, entries);
        if !drumlin_base::bug!("jobs-never-give-way") {
            self.env.spawner.give_way();
        }
    }

    /// The id of the model that tables of `level` are written with and name, if they are.
    pub(crate) fn model_at(&self, level: usize) -> Option<u64> {
        let writer = self.writers.get(level)?;
        let model = writer.model.as_ref()?;
        (writer.format == TableFormat::Searchable).then(|| model.id())
    }

    /// The same job for tables of `level` with another model.
    pub(crate) fn with_model(&self, level: usize, model: &Arc<Model>) -> Self {
        let mut context = self.clone();
        if let Some(writer) = context.writers.get_mut(level) {
            writer.model = Some(Arc::clone(model));
        }
        context
    }

    fn blob_place(&self, expected_bytes: u64) -> BlobPlace {
        BlobPlace {
            env: self.env.clone(),
            dir: self.dir.clone(),
            numbers: Arc::clone(&self.numbers),
            expected_bytes,
        }
    }
}

/// Metadata shared by all output tables of one job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputStamp {
    /// The level they go to.
    pub level: usize,
    /// See [`NewFile::epoch`].
    pub epoch: u64,
    /// See [`NewFile::oldest_ancestor_time`]; 0 means now.
    pub oldest_ancestor_time: u64,
    /// Unix seconds after which none of their entries was written; 0 when unknown.
    pub newest_key_time: u64,
    /// About how large each will get.
    pub expected_bytes: u64,
    /// Whether nothing is below them.
    pub bottommost: bool,
    /// Whether some snapshot is older than the newest entry of the inputs.
    pub protects: bool,
}

/// The output tables of one job, or of one of its threads.
///
/// Dropping it removes the files, unless they were taken by [`Outputs::finish`] and then kept.
pub(crate) struct Outputs<'a> {
    context: &'a JobContext,
    stamp: OutputStamp,
    splitter: Splitter,
    /// Ascending; cut to each table's territory.
    tombstones: Vec<RangeTombstone>,
    /// The first user key of the present table's territory; `None` is unbounded.
    territory_first: Option<Vec<u8>>,
    /// Where the last table's territory ends; `None` is unbounded.
    territory_limit: Option<Vec<u8>>,
    open: Option<OpenTable>,
    /// Where large values go. `None` only within a call and after the last.
    blobs: Option<Box<BlobOutputs>>,
    written: Written,
}

struct OpenTable {
    writer: TableWriter,
    number: u64,
    path: PathBuf,
    /// The first point entry; empty while there is none.
    smallest: Vec<u8>,
    /// The last point entry; empty while there is none.
    largest: Vec<u8>,
    points: u64,
    /// The blobs it refers to.
    blobs: BlobTally,
    watch: Watch,
}

/// Finished tables and blob files, and the guard over them.
#[derive(Debug)]
pub(crate) struct Written {
    files: Vec<NewFile>,
    blobs: BlobChanges,
    created: Created,
}

impl<'a> Outputs<'a> {
    /// No tables yet. `tombstones` ascend, all between `first` and `limit`.
    pub(crate) fn new(context: &'a JobContext, stamp: OutputStamp, splitter: Splitter) -> Self {
        Self {
            context,
            stamp,
            splitter,
            tombstones: Vec::new(),
            territory_first: None,
            territory_limit: None,
            open: None,
            blobs: Some(Box::new(BlobOutputs::new(
                context.blob_place(stamp.expected_bytes),
                context.blobs,
                Arc::from([]),
            ))),
            written: Written {
                files: Vec::new(),
                blobs: BlobChanges::default(),
                created: Created::new(&context.env),
            },
        }
    }

    /// The same, moving the blobs out of the files `emptied` (ascending).
    #[must_use]
    pub(crate) fn emptying(mut self, emptied: Arc<[u64]>) -> Self {
        let options = self.context.blobs;
        let place = self.context.blob_place(options.file_bytes);
        self.blobs = Some(Box::new(BlobOutputs::new(place, options, emptied)));
        self
    }

    /// The same, with range tombstones (ascending, as `cover::retain` returns them) of which the
    /// part between `first` and `limit` goes to these tables.
    #[must_use]
    pub(crate) fn with_tombstones(
        mut self,
        tombstones: Vec<RangeTombstone>,
        first: Option<Vec<u8>>,
        limit: Option<Vec<u8>>,
    ) -> Self {
        self.tombstones = tombstones;
        self.territory_first = first;
        self.territory_limit = limit;
        self
    }

    /// Writes the entry under `stream`.
    ///
    /// # Errors
    /// Errors of creating, writing or syncing a table.
    #[inline]
    pub(crate) fn add<I: InternalIterator>(&mut self, stream: &Stream<I>) -> Result<()> {
        let mut blobs = self.blobs.take().ok_or_else(after_the_end)?;
        let placed = match stream.code() {
            // Copied as it is; it was small enough for a table when it was written.
            Some(code) => Placed::copied(stream.key(), code),
            None => blobs.place(stream.key(), stream.value())?,
        };
        self.add_placed(&placed, stream.starts_user_key())?;
        self.blobs = Some(blobs);
        Ok(())
    }

    #[inline]
    fn add_placed(&mut self, placed: &Placed<'_>, starts_user_key: bool) -> Result<()> {
        if starts_user_key {
            self.split_before(placed.key)?;
        }
        let Some(open) = &mut self.open else {
            return Err(Error::corruption("an entry of no user key"));
        };
        match &placed.code {
            None => open.writer.add(placed.key, placed.value)?,
            Some(code) => open.writer.add_code(placed.key, code)?,
        }
        open.watch.add(placed.key, starts_user_key);
        if let Some(index) = &placed.index {
            open.blobs.add(user_key(placed.key), index);
        }
        open.points += 1;
        open.largest.clear();
        open.largest.extend_from_slice(placed.key);
        Ok(())
    }

    /// Ends the open table before `key` if it is time to, and opens one if none is open.
    #[inline]
    fn split_before(&mut self, key: &[u8]) -> Result<()> {
        let order = &self.context.options.order;
        let bytes = self.open.as_ref().map_or(0, |open| {
            let apart = open.blobs.bytes() / BLOB_BYTES_PER_TABLE_BYTE;
            (open.writer.size_estimate() + apart).max(1)
        });
        let user = user_key(key);
        if self.splitter.ends_before(order, user, bytes) {
            self.end_table(Some(user))?;
        }
        if self.open.is_none() {
            self.open = Some(self.create()?);
        }
        if let Some(open) = &mut self.open
            && open.smallest.is_empty()
        {
            open.smallest.extend_from_slice(key);
        }
        Ok(())
    }

    fn create(&mut self) -> Result<OpenTable> {
        let number = (self.context.numbers)();
        let template = self.context.writers[self.stamp.level].clone();
        let path = match template.style {
            TableStyle::RocksDb => names::table(&self.context.dir, number),
            TableStyle::LevelDb => names::leveldb_table(&self.context.dir, number),
        };
        let options = CreateOptions::new(FileKind::Table).expecting(self.stamp.expected_bytes);
        let files = &self.context.env.files;
        let created = &mut self.written.created;
        let file = created.make(&path, || files.create(&path, options))?;
        let now = self.context.env.clock.unix_seconds();
        let ancestor = match self.stamp.oldest_ancestor_time {
            0 => now,
            time => time,
        };
        let options = TableWriterOptions {
            file_number: number,
            creation_time: now,
            oldest_ancestor_time: ancestor,
            newest_key_time: self.stamp.newest_key_time,
            expected_bytes: self.stamp.expected_bytes,
            ..template
        };
        Ok(OpenTable {
            writer: TableWriter::new(file, options),
            number,
            path,
            smallest: Vec::new(),
            largest: Vec::new(),
            points: 0,
            blobs: BlobTally::default(),
            watch: Watch::new(self.stamp.level, self.stamp.bottommost, self.stamp.protects),
        })
    }

    /// Ends the open table, whose territory ends before `limit`.
    fn end_table(&mut self, limit: Option<&[u8]>) -> Result<()> {
        let order = &self.context.options.order;
        let territory = Territory {
            first: self.territory_first.as_deref(),
            limit,
        };
        let tombstones = territory.clip(order, &self.tombstones);
        if self.open.is_none() && !tombstones.is_empty() {
            self.open = Some(self.create()?);
        }
        if let Some(open) = self.open.take() {
            let file = open.finish(self.context, &self.stamp, &tombstones)?;
            if let Some(space) = &self.context.space {
                space.written(file.size);
            }
            self.written.files.push(file);
        }
        self.territory_first = limit.map(<[u8]>::to_vec);
        Ok(())
    }

    /// Ends the last table and the last blob file. The files stay only if [`Written::keep`] is
    /// called.
    ///
    /// # Errors
    /// Errors of writing or syncing.
    pub(crate) fn finish(mut self) -> Result<Written> {
        let limit = self.territory_limit.take();
        self.end_table(limit.as_deref())?;
        let blobs = self.blobs.take().ok_or_else(after_the_end)?;
        let (changes, created) = blobs.finish()?;
        self.written.blobs = changes;
        self.written.created.append(created);
        Ok(self.written)
    }
}

#[cold]
fn after_the_end() -> Error {
    Error::new(
        ErrorKind::Aborted,
        "an output was written to after an error",
    )
}

impl OpenTable {
    fn finish(
        mut self,
        context: &JobContext,
        stamp: &OutputStamp,
        tombstones: &[RangeTombstone],
    ) -> Result<NewFile> {
        let order = &context.options.order;
        for tombstone in tombstones {
            self.writer
                .add_range_tombstone(&tombstone.begin, &tombstone.end, tombstone.seqno)?;
        }
        if let (Some(first), Some(last)) = (tombstones.first(), tombstones.last()) {
            let kind = ValueKind::RangeDeletion as u8;
            let mut begin = Vec::with_capacity(first.begin.len() + TAG_BYTES);
            append_internal(&mut begin, &first.begin, first.seqno, kind);
            // The end is not covered: no entry of its key sorts before this bound.
            let mut end = Vec::with_capacity(last.end.len() + TAG_BYTES);
            append_internal(&mut end, &last.end, SEQNO_MAX, kind);
            if self.points == 0 || compare_internal(order, &begin, &self.smallest).is_lt() {
                self.smallest = begin;
            }
            if self.points == 0 || compare_internal(order, &end, &self.largest).is_gt() {
                self.largest = end;
            }
        }
        let model = self.writer.shared_model();
        let finished = self
            .writer
            .finish()
            .map_err(|error| error.with_file(&self.path))?;
        let properties = Arc::new(finished.properties);
        if properties.num_entries != self.points + tombstones.len() as u64 {
            return Err(Error::corruption(
                "the table written counts other entries than it was given",
            )
            .with_file(&self.path));
        }
        let now = context.env.clock.unix_seconds();
        Ok(NewFile {
            number: self.number,
            size: finished.size,
            tail_size: finished.tail_size,
            smallest: self.smallest,
            largest: self.largest,
            smallest_seqno: properties.smallest_seqno,
            largest_seqno: properties.largest_seqno,
            properties: Some(properties),
            epoch: stamp.epoch,
            creation_time: now,
            oldest_ancestor_time: match stamp.oldest_ancestor_time {
                0 => now,
                time => time,
            },
            oldest_blob_file: self.blobs.files().next().unwrap_or(0),
            blob_files: Some(self.blobs.files().collect()),
            model,
            marked_for_compaction: self.watch.asks(self.points, tombstones.len()),
            ..NewFile::default()
        })
    }
}

impl Written {
    /// The job's changes to blobs.
    pub(crate) fn blobs(&self) -> &BlobChanges {
        &self.blobs
    }

    /// Takes over the output of `other`.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.blobs.append(other.blobs);
        self.created.append(other.created);
    }

    /// Makes the names outlive a power cut and keeps the files: they are the caller's now.
    ///
    /// # Errors
    /// `Io`; the files are removed.
    pub(crate) fn keep(self, context: &JobContext) -> Result<(Vec<NewFile>, BlobChanges)> {
        if !self.created.is_empty() && !drumlin_base::bug!("table-names-unsynced") {
            context.env.files.sync_dir(&context.dir)?;
        }
        self.created.keep();
        Ok((self.files, self.blobs))
    }
}

impl fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs")
            .field("stamp", &self.stamp)
            .field("files", &self.written.files.len())
            .finish_non_exhaustive()
    }
}
