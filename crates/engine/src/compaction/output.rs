//! The tables a job writes: one open at a time, all removed again unless the job succeeds.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::key::{TAG_BYTES, append_internal, compare_internal, user_key};
use drumlin_base::limits::LEVELS;
use drumlin_base::{
    CompactionFilter, Error, InternalIterator, MergeOperator, RangeTombstone, Result, SEQNO_MAX,
    SeqNo, ValueKind,
};
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_table::{TableStyle, TableWriter, TableWriterOptions};

use super::cover::Territory;
use super::plan::CompactionOptions;
use super::split::Splitter;
use super::stream::Stream;
use crate::names;
use crate::table_cache::TableCache;
use crate::version::NewFile;

/// Gives out file numbers that no file has.
pub type FileNumbers = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What flushes and compactions of one family are done with.
#[derive(Clone)]
pub struct JobContext {
    /// Files, clock and threads.
    pub env: Env,
    /// Where the tables lie.
    pub dir: PathBuf,
    /// Sizes, and the order of user keys.
    pub options: CompactionOptions,
    /// Where inputs are opened: the family's handle.
    pub tables: Arc<TableCache>,
    /// How the tables of each level are written. Numbers, times and expected sizes are filled in
    /// by the job.
    pub writers: [TableWriterOptions; LEVELS],
    /// Combines operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Looks at values on their way through compaction; flushes do not ask it.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// Where new tables get their numbers. The owner protects these files from being removed as
    /// unknown until the job has ended.
    pub numbers: FileNumbers,
    /// The snapshots alive when the job was planned, in any order.
    pub snapshots: Vec<SeqNo>,
    /// Upper bound of threads one compaction is spread over; 0 and 1 are one.
    pub threads_max: usize,
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

/// What all output tables of one job have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutputStamp {
    /// The level they go to.
    pub level: usize,
    /// See [`NewFile::epoch`].
    pub epoch: u64,
    /// See [`NewFile::oldest_ancestor_time`]; 0 stands for now.
    pub oldest_ancestor_time: u64,
    /// See [`NewFile::oldest_blob_file`].
    pub oldest_blob_file: u64,
    /// About how large each will get.
    pub expected_bytes: u64,
}

/// The output tables of one job, or of one of its threads.
///
/// Dropping it removes the files, unless they were taken by [`Outputs::finish`] and then kept.
pub struct Outputs<'a> {
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
}

/// Finished tables and the guard over their files.
pub struct Written {
    env: Env,
    dir: PathBuf,
    /// Every file created, finished or not.
    created: Vec<PathBuf>,
    files: Vec<NewFile>,
    kept: bool,
}

impl<'a> Outputs<'a> {
    /// No tables yet. `tombstones` ascend and lie between `first` and `limit`.
    pub fn new(context: &'a JobContext, stamp: OutputStamp, splitter: Splitter) -> Self {
        Self {
            context,
            stamp,
            splitter,
            tombstones: Vec::new(),
            territory_first: None,
            territory_limit: None,
            open: None,
            written: Written {
                env: context.env.clone(),
                dir: context.dir.clone(),
                created: Vec::new(),
                files: Vec::new(),
                kept: false,
            },
        }
    }

    /// The same, with range tombstones (ascending, as `cover::retain` returns them) of which the
    /// part between `first` and `limit` goes to these tables.
    #[must_use]
    pub fn with_tombstones(
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
    /// What creating, writing or syncing a table met.
    #[inline]
    pub fn add<I: InternalIterator>(&mut self, stream: &Stream<I>) -> Result<()> {
        let key = stream.key();
        if stream.starts_user_key() {
            self.split_before(key)?;
        }
        let Some(open) = &mut self.open else {
            return Err(Error::corruption("an entry of no user key"));
        };
        open.writer.add(key, stream.value())?;
        open.points += 1;
        open.largest.clear();
        open.largest.extend_from_slice(key);
        Ok(())
    }

    /// Ends the open table before `key` if it is time to, and opens one if none is open.
    #[inline]
    fn split_before(&mut self, key: &[u8]) -> Result<()> {
        let order = &self.context.options.order;
        let bytes = self
            .open
            .as_ref()
            .map_or(0, |open| open.writer.size_estimate().max(1));
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
        let template = self.context.writers.get(self.stamp.level).cloned();
        let template = template.unwrap_or_default();
        let path = match template.style {
            TableStyle::RocksDb => names::table(&self.context.dir, number),
            TableStyle::LevelDb => names::leveldb_table(&self.context.dir, number),
        };
        // Noted first: a failed create may leave a file behind too.
        self.written.created.push(path.clone());
        let file = self
            .context
            .env
            .files
            .create(&path, CreateOptions::new(FileKind::Table))
            .map_err(|error| error.with_file(&path))?;
        let now = self.context.env.clock.unix_seconds();
        let ancestor = match self.stamp.oldest_ancestor_time {
            0 => now,
            time => time,
        };
        let options = TableWriterOptions {
            file_number: number,
            creation_time: now,
            oldest_ancestor_time: ancestor,
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
            self.written.files.push(file);
        }
        self.territory_first = limit.map(<[u8]>::to_vec);
        Ok(())
    }

    /// Ends the last table. The files stay only if [`Written::keep`] is called.
    ///
    /// # Errors
    /// What writing or syncing met.
    pub fn finish(mut self) -> Result<Written> {
        let limit = self.territory_limit.take();
        self.end_table(limit.as_deref())?;
        let nothing = Written {
            env: self.context.env.clone(),
            dir: PathBuf::new(),
            created: Vec::new(),
            files: Vec::new(),
            kept: true,
        };
        Ok(std::mem::replace(&mut self.written, nothing))
    }
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
        let finished = self
            .writer
            .finish()
            .map_err(|error| error.with_file(&self.path))?;
        let properties = &finished.properties;
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
            epoch: stamp.epoch,
            creation_time: now,
            oldest_ancestor_time: match stamp.oldest_ancestor_time {
                0 => now,
                time => time,
            },
            oldest_blob_file: stamp.oldest_blob_file,
            ..NewFile::default()
        })
    }
}

impl Written {
    /// The tables written, ascending.
    pub fn files(&self) -> &[NewFile] {
        &self.files
    }

    /// Takes over what `other` wrote.
    pub fn append(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.created.append(&mut other.created);
        other.kept = true;
    }

    /// Makes the names outlive a power cut and keeps the files: they are the caller's now.
    ///
    /// # Errors
    /// `Io`; the files are removed.
    pub fn keep(mut self) -> Result<Vec<NewFile>> {
        if !self.created.is_empty() {
            self.env.files.sync_dir(&self.dir)?;
        }
        self.kept = true;
        Ok(std::mem::take(&mut self.files))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for path in &self.created {
            if let Err(error) = self.env.files.remove(path)
                && !error.is_not_found()
            {
                // The scan for unknown files at the next open will find it.
                tracing::warn!(%error, path = %path.display(), "cannot remove a failed output");
            }
        }
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

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("created", &self.created)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}
