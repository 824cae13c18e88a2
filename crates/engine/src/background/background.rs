//! The setup that every job shares: its environment, its table writers, its entry on the board.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use drumlin_base::Result;
use drumlin_base::sync::Mutex;
use drumlin_fs::{Env, IoPriority, IoTimes, JoinHandle, PacedFileSystem};
use drumlin_table::{
    Codec, Compression, FilterOptions, TableFormat, TableStyle, TableWriterOptions,
};

use crate::caches::table_cache::Ahead;
use crate::compaction::blob_outputs::BlobOptions;
use crate::compaction::output::JobContext;
use crate::compaction::progress::Progress;
use crate::compaction::{CompactionOptions, CompactionStyle, Plan};
use crate::family::column_family::Family;
use crate::family::settings::{FamilySettings, level_compression};
use crate::files::reuse::ReusingFileSystem;
use crate::store::store::Store;
use crate::version::NewFile;
use crate::watch::pressure::{JobKind, RunningJob};

/// Flushes and compactions of one store, and the threads that run them.
pub(crate) struct Background {
    pub(crate) store: Arc<Store>,
    /// Itself, for jobs that call back into it.
    pub(crate) me: Weak<Background>,
    /// Handles of the threads that run no jobs, joined once at close.
    pub(crate) helpers: Mutex<Vec<Box<dyn JoinHandle>>>,
    /// Handles of the threads that run jobs, by their numbers. Taken before the state's lock.
    pub(crate) workers: Mutex<BTreeMap<usize, Box<dyn JoinHandle>>>,
}

impl Background {
    /// The background of `store`, without a thread yet.
    pub(crate) fn new(store: Arc<Store>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            store,
            me: me.clone(),
            helpers: Mutex::new(Vec::new()),
            workers: Mutex::new(BTreeMap::new()),
        })
    }
}

/// Approximate buffers of one thread of a job: read-ahead of its inputs, blocks under way.
pub(super) const JOB_BYTES: usize = 4 << 20;

/// Its further buffers under `O_DIRECT`: aligned copies of its input.
pub(super) const DIRECT_BYTES: usize = 2 << 20;

/// A table's filter and index are built in memory; together about this part of its size.
pub(super) const FILTER_DIVISOR: usize = 12;

impl Background {
    /// The context of a job of the family.
    pub(super) fn job_context(
        &self,
        family: &Arc<Family>,
        progress: Arc<Progress>,
        priority: IoPriority,
    ) -> JobContext {
        let numbers = Arc::clone(&self.store.files.numbers);
        let settings = family.settings();
        JobContext {
            env: self.job_env(priority, progress.io()),
            dir: self.store.id.dir.clone(),
            options: CompactionOptions {
                order: family.options.order.clone(),
                ..settings.compaction.clone()
            },
            full_history_ts_low: family.full_history_ts_low.load_full(),
            tables: Arc::clone(&family.reads.tables),
            writers: std::array::from_fn(|level| self.table_writer(family, &settings, level)),
            scopes: Vec::new(),
            merge_operator: family.reads.merge_operator.clone(),
            filter: None,
            has_blobs: true,
            blobs: self.blob_options(family, &settings),
            numbers: Arc::new(move || numbers.take()),
            snapshots: self.store.snapshots.all(),
            threads_max: self.store.settings.threads().max(1),
            progress,
            watcher: None,
            direct: self.store.id.direct_io,
            space: None,
        }
    }

    /// How the family's large values are kept apart.
    fn blob_options(&self, family: &Family, settings: &FamilySettings) -> BlobOptions {
        // FIFO rewrites nothing, and counts the bytes of its tables.
        if self.store.id.leveldb || matches!(settings.style, CompactionStyle::Fifo(_)) {
            return BlobOptions::never();
        }
        let format = family.options.table_format.unwrap_or_default();
        BlobOptions {
            from_bytes: settings.tuning.blob_from(format),
            file_bytes: settings.tuning.blob_file_bytes(),
            compression: blob_compression(settings.compression, format),
            family_id: family.id,
        }
    }

    /// What blobs of the family are compressed with, should there be any.
    pub(super) fn blob_codec(&self, family: &Family) -> Codec {
        let options = self.blob_options(family, &family.settings());
        options.compression.codec
    }

    /// Posts a job on the board until the guard is dropped.
    pub(super) fn post(
        &self,
        family: &Family,
        what: String,
        kind: JobKind,
        bytes: u64,
    ) -> Posted<'_> {
        let job = RunningJob {
            family: family.id,
            what,
            kind,
            progress: Progress::new(bytes),
            since: self.store.id.env.clock.monotonic(),
        };
        let since = job.since;
        let job = self.store.watch.board.begin(job);
        self.store.update_write_rate(since);
        Posted {
            store: &self.store,
            job,
            is_done: false,
        }
    }

    pub(super) fn post_compaction(&self, family: &Family, plan: &Plan) -> Posted<'_> {
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
    pub(super) fn job_env(&self, priority: IoPriority, times: &Arc<IoTimes>) -> Env {
        let env = self.store.id.env.clone();
        let files = PacedFileSystem::new(
            Arc::clone(&env.files),
            (Arc::clone(&self.store.files.limiter), priority),
            (Arc::clone(&env.clock), Arc::clone(times)),
        )
        .directly(self.store.id.direct_io);
        let files = ReusingFileSystem::new(Arc::new(files), Arc::clone(&self.store.files.trash));
        env.with_files(Arc::new(files))
    }

    /// How tables of `level` are written.
    pub(crate) fn table_writer(
        &self,
        family: &Family,
        settings: &FamilySettings,
        level: usize,
    ) -> TableWriterOptions {
        let tuning = &settings.tuning;
        let compression = level_compression(settings.compression, level);
        let filter = FilterOptions {
            bits_per_key: tuning.filter_bits,
            whole_keys: tuning.whole_key_filter,
            prefix: family.options.prefix_extractor.clone(),
        };
        let merge_operator = family.options.merge_operator.as_ref();
        let format = match self.store.id.leveldb {
            true => TableFormat::Block,
            false => {
                let wanted = family.options.table_format.unwrap_or_default();
                level_format(wanted, level, settings.compaction.levels)
            }
        };
        // Plain tables have no filter, but index prefixes.
        let filter_wanted = tuning.filter_bits > 0.0 || format == TableFormat::Plain;
        TableWriterOptions {
            order: family.options.order.clone(),
            format,
            style: if self.store.id.leveldb {
                TableStyle::LevelDb
            } else {
                TableStyle::RocksDb
            },
            compression: if self.store.id.leveldb {
                leveldb_compression(compression)
            } else {
                compression
            },
            block_bytes: tuning.block_bytes,
            restart_interval: tuning.restart_interval,
            filter: filter_wanted.then_some(filter),
            format_version: self.store.id.vintage.format_version(),
            checksum: tuning.checksum,
            partition_index_above_bytes: tuning.partition_above_bytes,
            partition_filters: true,
            family_id: family.id,
            family_name: family.name.clone(),
            db_id: self.store.id.db_id.clone(),
            session_id: self.store.id.session_id.clone(),
            host_id: self.store.id.options.host_id.clone(),
            merge_operator_name: merge_operator.map_or(String::new(), |m| m.name().to_owned()),
            ..TableWriterOptions::default()
        }
    }
}

/// A job on the board. Taken down when dropped, however the job ended.
pub(super) struct Posted<'a> {
    store: &'a Store,
    job: Arc<RunningJob>,
    pub(super) is_done: bool,
}

impl Posted<'_> {
    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.job.progress)
    }
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        // A look before and one after, so that the time in between counts apart from that without a job.
        let now = self.store.id.env.clock.monotonic();
        self.store.update_write_rate(now);
        let took = now.saturating_sub(self.job.since);
        let is_flush = self.job.kind == JobKind::Flush;
        let io = self.job.progress.io();
        self.store.watch.disk.job_ended(is_flush, took, io);
        self.store.watch.board.end(&self.job, self.is_done);
        self.store
            .update_write_rate(self.store.id.env.clock.monotonic());
    }
}

/// Opens new tables whose opening reads them whole before a reader can meet them.
pub(super) fn open_ahead<'a, 'f>(
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

/// LevelDB reads Snappy and nothing else.
fn leveldb_compression(wanted: Compression) -> Compression {
    match wanted.codec {
        Codec::None => wanted,
        _ => Compression::new(Codec::Snappy),
    }
}

/// The compression of blob files beside tables of `format`: a user of searchable tables wants small
/// ones, and for prose zstd's output is two thirds the size of LZ4's.
fn blob_compression(chosen: Compression, format: TableFormat) -> Compression {
    match (format, chosen.codec) {
        (TableFormat::Searchable, Codec::Lz4) if Codec::Zstd.check_built().is_ok() => {
            Compression::new(Codec::Zstd)
        }
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
