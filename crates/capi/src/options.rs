//! `rocksdb_options_t`: options of a database and of a family, as RocksDB has them, and what they are here.
//!
//! An option that was not set has RocksDB's default for the program that asks, and the engine's own where it only says how
//! something is done. `abi/options.tsv` says of each whether it is done, done by a coarser knob, recorded only, or refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    CompactionFilterFactory, CompactionStyle, Compression, Db, DirectoryFormat, Env, Error,
    FamilyOptions, FifoOptions, KeepChanges, KeyOrder, MergeOperator, Options, PrefixExtractor,
    RateLimit, Result, TableFormat, Timings, Tuning, UniversalOptions,
};
use drumlin_base::sync::Mutex;
use drumlin_table::{ChecksumKind, Codec, TableStyle};

use crate::fields::{FifoCompactionOptions, Options as Fields, UniversalCompactionOptions};
use crate::file_manager::FileManager;
use crate::listener::Listener;
use crate::logger::Logger;
use crate::misc::RateLimiter;
use crate::recorded::Recorded;
use crate::table_options::BlockOptions;
use crate::write_buffers::WriteBufferManager;

/// Databases opened with options whose statistics were enabled.
pub(crate) type Opened = Arc<Mutex<Vec<Db>>>;

/// What the handle holds.
#[derive(Clone, Default)]
pub(crate) struct OpenOptions {
    pub(crate) fields: Fields,
    pub(crate) order: KeyOrder,
    pub(crate) merge_operator: Option<Arc<dyn MergeOperator>>,
    pub(crate) compaction_filter: Option<Arc<dyn CompactionFilterFactory>>,
    pub(crate) filter_factory: Option<Arc<dyn CompactionFilterFactory>>,
    pub(crate) prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
    pub(crate) blocks: Option<BlockOptions>,
    pub(crate) table_format: Option<TableFormat>,
    pub(crate) universal: Option<UniversalCompactionOptions>,
    pub(crate) fifo: Option<FifoCompactionOptions>,
    pub(crate) compression_levels: Vec<i32>,
    pub(crate) compression_level: Option<i32>,
    pub(crate) dictionary_bytes: u32,
    pub(crate) rate: Option<RateLimiter>,
    pub(crate) wal_dir: Option<PathBuf>,
    pub(crate) env: Option<Env>,
    pub(crate) threads: Option<usize>,
    pub(crate) db_paths: Vec<PathBuf>,
    pub(crate) cf_paths: Vec<PathBuf>,
    pub(crate) statistics: Option<Opened>,
    pub(crate) statistics_level: Option<i32>,
    pub(crate) write_buffers: Option<WriteBufferManager>,
    pub(crate) logger: Logger,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) file_manager: Option<FileManager>,
    pub(crate) recorded: Recorded,
    /// What was set that cannot be done, and what to do instead.
    pub(crate) refused: Option<String>,
}

/// The codec with RocksDB's `number`, which is that of its blocks.
pub(crate) fn codec(number: i32) -> Result<Codec> {
    let id = u8::try_from(number).ok();
    let found = id.and_then(|id| Codec::from_id(id, TableStyle::RocksDb).ok());
    found.ok_or_else(|| {
        let message = format!("compression={number}: use none, Snappy, LZ4 or zstd (0, 1, 4, 7)");
        Error::not_supported(message)
    })
}

/// RocksDB's number of a codec.
pub(crate) fn number_of(codec: Codec) -> u32 {
    codec.id(TableStyle::RocksDb).map_or(0, u32::from)
}

/// RocksDB's sizes of a write buffer.
const WRITE_BUFFER_MIN: usize = 64 << 10;
const MEMORY_MIN: usize = 16 << 20;
/// RocksDB's seconds for its own choice.
const NEVER: u64 = u64::MAX - 1;
/// RocksDB's names of the orders in which tables are compacted, with their numbers.
pub(crate) const PRIORITIES: [(&str, i32); 5] = [
    ("kByCompensatedSize", 0),
    ("kOldestLargestSeqFirst", 1),
    ("kOldestSmallestSeqFirst", 2),
    ("kMinOverlappingRatio", 3),
    ("kRoundRobin", 4),
];
/// Levels at most.
const LEVELS: usize = 7;

impl OpenOptions {
    pub(crate) fn environment(&self) -> Env {
        self.env.clone().unwrap_or_else(Env::system)
    }

    /// Notes what cannot be done, which opening reports.
    pub(crate) fn refuse(&mut self, what: &str) {
        self.refused.get_or_insert(what.to_owned());
    }

    /// Refuses what would change bytes on disk in a way that is not written here, or weaken a guarantee.
    fn check(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::not_supported(what));
        if let Some(what) = &self.refused {
            return refuse(what);
        }
        if self
            .file_manager
            .as_ref()
            .is_some_and(FileManager::has_most)
        {
            return refuse("a file manager with a most of space: nothing stops at it");
        }
        if self.fields.allow_ingest_behind() {
            return refuse("allow_ingest_behind=true: no level is kept empty; ingest on top");
        }
        if self.fields.wal_recovery_mode() == 3 {
            return refuse(
                "wal_recovery_mode=3: damage is not skipped; use 2, which stops at it and keeps the rest",
            );
        }
        if self.fields.best_efforts_recovery() {
            return refuse("best_efforts_recovery=true: repair the directory instead");
        }
        if self.fields.cf_allow_ingest_behind() {
            return refuse("cf_allow_ingest_behind=true: no level is kept empty; ingest on top");
        }
        if !self.fields.persist_user_defined_timestamps() {
            return refuse("persist_user_defined_timestamps=false: keys have no timestamps");
        }
        if self.fields.disallow_memtable_writes() {
            return refuse("disallow_memtable_writes=true: every family takes writes");
        }
        if self.order.timestamp_bytes() > 0 {
            let is_filtered = self.compaction_filter.is_some() || self.filter_factory.is_some();
            let is_plain = self.table_format == Some(TableFormat::Plain);
            let set = [
                ("a prefix_extractor", self.prefix_extractor.is_some()),
                ("a compaction filter", is_filtered),
                ("plain tables", is_plain),
            ];
            if let Some((what, _)) = set.iter().find(|(_, is_set)| *is_set) {
                let message = format!("{what} of keys with timestamps");
                return refuse(&message);
            }
        }
        let blocks = self.blocks.as_ref();
        if let Some(version @ 0..2) = blocks.and_then(|blocks| blocks.fields.format_version) {
            let what = format!("format_version={version}: 2 and later are written");
            return Err(Error::not_supported(what));
        }
        Ok(())
    }

    /// How long changes are kept: as the OPTIONS file says where the program sets no bound.
    fn keep_changes(&self) -> Option<KeepChanges> {
        let bound = |value: Option<u64>| value.filter(|value| *value > 0);
        let keep = KeepChanges {
            age: bound(self.fields.wal_ttl_seconds).map(Duration::from_secs),
            bytes: bound(self.fields.wal_size_limit_mb).map(|mib| mib.saturating_mul(1 << 20)),
        };
        (keep != KeepChanges::default()).then_some(keep)
    }

    /// Options of the database, for `families` of them.
    pub(crate) fn to_engine(&self, families: usize) -> Result<Options> {
        self.check()?;
        let family = self.to_family()?;
        Ok(Options {
            create_if_missing: self.fields.create_if_missing(),
            error_if_exists: self.fields.error_if_exists(),
            memory_budget: self.memory_budget(families),
            compression: self.compression()?,
            sync: false,
            background_threads: self.threads_wanted(),
            compaction_style: self.style(),
            wal_dir: self.wal_dir.clone(),
            host_id: self.recorded.host_id(),
            keep_changes: self.keep_changes(),
            max_open_files: usize::try_from(self.fields.max_open_files()).ok(),
            format: DirectoryFormat::Auto,
            point_in_time_recovery: matches!(self.fields.wal_recovery_mode, Some(0 | 2)),
            tuning: self.tuning(),
            listener: self.logger.listener(),
            timings: match self.times_calls() {
                true => Timings::Calls,
                false => Timings::Jobs,
            },
            family,
            env: self.environment(),
            ..Options::default()
        })
    }

    /// Options of a family.
    pub(crate) fn to_family(&self) -> Result<FamilyOptions> {
        self.check()?;
        let filter = self.filter_factory.clone();
        Ok(FamilyOptions {
            ttl: None,
            order: self.order.clone(),
            merge_operator: self.merge_operator.clone(),
            compaction_filter: self.compaction_filter.clone().or(filter),
            prefix_extractor: self.prefix_extractor.clone(),
            compression: Some(self.compression()?),
            compaction_style: Some(self.style()),
            levels_max: self.fields.num_levels.map(levels),
            recorded: self.recorded_options(),
            table_format: self.table_format,
            scope_bytes: None,
            tuning: Some(self.tuning()),
        })
    }

    /// Those that were set and that RocksDB's programs find in the OPTIONS file.
    fn recorded_options(&self) -> Vec<(String, String)> {
        let order = self.fields.compaction_pri;
        let order = order.and_then(|order| PRIORITIES.iter().find(|(_, number)| *number == order));
        let text = order.map(|(name, _)| ("compaction_pri".to_owned(), (*name).to_owned()));
        text.into_iter().collect()
    }

    /// The cache, the write buffers and a quarter of both; the engine's own where none was set.
    fn memory_budget(&self, families: usize) -> Option<usize> {
        let fields = &self.fields;
        let cache = self
            .blocks
            .as_ref()
            .and_then(|blocks| blocks.cache.as_ref());
        let is_set = cache.is_some()
            || self.write_buffers.is_some()
            || fields.write_buffer_size.is_some()
            || fields.db_write_buffer_size.is_some();
        if !is_set {
            return None;
        }
        let bytes = cache.map_or(8 << 20, |cache| cache.bytes());
        let bytes = bytes.saturating_add(self.buffer_bytes(families));
        Some(bytes.saturating_add(bytes / 4).max(MEMORY_MIN))
    }

    fn buffer_bytes(&self, families: usize) -> usize {
        let managed = self
            .write_buffers
            .as_ref()
            .map_or(0, |manager| manager.bytes());
        match managed.max(self.fields.db_write_buffer_size()) {
            0 => {
                let count = usize::try_from(self.fields.max_write_buffer_number()).unwrap_or(2);
                let each = self.fields.write_buffer_size().max(WRITE_BUFFER_MIN);
                each.saturating_mul(count).saturating_mul(families)
            }
            bytes => bytes,
        }
    }

    fn threads_wanted(&self) -> Option<usize> {
        let positive = |count: i32| usize::try_from(count).ok().filter(|count| *count > 0);
        let jobs = self.fields.max_background_jobs.and_then(positive);
        let flushes = self.fields.max_background_flushes.and_then(positive);
        let compactions = self.fields.max_background_compactions.and_then(positive);
        let apart = (flushes.is_some() || compactions.is_some())
            .then(|| flushes.unwrap_or(1) + compactions.unwrap_or(1));
        jobs.or(apart).or(self.threads).map(|count| count.min(1024))
    }

    fn compression(&self) -> Result<Compression> {
        let number = self.compression_levels.last().copied();
        let number = number.unwrap_or_else(|| self.fields.compression());
        Ok(Compression {
            level: self.compression_level,
            dictionary_bytes: self.dictionary_bytes,
            ..Compression::new(codec(number)?)
        })
    }

    fn style(&self) -> CompactionStyle {
        match self.fields.compaction_style() {
            1 => CompactionStyle::Universal(self.universal()),
            2 => CompactionStyle::Fifo(FifoOptions {
                table_bytes_max: self
                    .fifo
                    .clone()
                    .unwrap_or_default()
                    .max_table_files_size()
                    .max(1),
                ttl_seconds: self
                    .fields
                    .ttl
                    .filter(|seconds| *seconds > 0 && *seconds < NEVER),
                merge_small: self
                    .fifo
                    .as_ref()
                    .is_some_and(FifoCompactionOptions::allow_compaction),
            }),
            _ => CompactionStyle::Leveled,
        }
    }

    fn universal(&self) -> UniversalOptions {
        let set = self.universal.clone().unwrap_or_default();
        let own = UniversalOptions::default();
        let count = |set: Option<i32>, own: usize| {
            set.and_then(|set| usize::try_from(set).ok()).unwrap_or(own)
        };
        let percent =
            |set: Option<i32>, own: u32| set.and_then(|set| u32::try_from(set).ok()).unwrap_or(own);
        let least = count(set.min_merge_width, own.merge_width_min).max(2);
        let trigger = self.fields.level0_file_num_compaction_trigger;
        UniversalOptions {
            runs_trigger: count(trigger, own.runs_trigger).max(2),
            size_ratio_percent: percent(set.size_ratio, own.size_ratio_percent),
            merge_width_min: least,
            merge_width_max: count(set.max_merge_width, own.merge_width_max).max(least),
            space_percent_max: percent(set.max_size_amplification_percent, own.space_percent_max),
            levels_max: self.fields.num_levels.map_or(LEVELS, levels),
        }
    }

    fn tuning(&self) -> Tuning {
        let fields = &self.fields;
        let own = Tuning::default();
        let positive = |set: Option<i32>, own: usize| {
            let set = set.and_then(|set| usize::try_from(set).ok());
            set.map_or(own, |set| set.max(1))
        };
        let slowdown = positive(fields.level0_slowdown_writes_trigger, own.l0_slowdown);
        let multiplier = fields
            .max_bytes_for_level_multiplier
            .map(|times| times as u64);
        let blocks = self.blocks.clone().unwrap_or_default();
        let block_fields = &blocks.fields;
        Tuning {
            write_buffer_bytes: fields
                .write_buffer_size
                .map(|bytes| bytes.max(WRITE_BUFFER_MIN)),
            memtables_max: positive(fields.max_write_buffer_number, own.memtables_max).max(2),
            target_file_bytes: fields
                .target_file_size_base
                .unwrap_or(own.target_file_bytes)
                .max(1 << 10),
            level_base_bytes: fields.max_bytes_for_level_base,
            automatic_compactions: !fields.disable_auto_compactions(),
            dynamic_levels: fields.level_compaction_dynamic_level_bytes.unwrap_or(true),
            level_multiplier: multiplier.unwrap_or(own.level_multiplier).clamp(2, 1 << 16),
            blob_from_bytes: Some(match fields.enable_blob_files() {
                true => usize::try_from(fields.min_blob_size())
                    .unwrap_or(usize::MAX)
                    .max(1),
                false => usize::MAX,
            }),
            l0_trigger: positive(fields.level0_file_num_compaction_trigger, own.l0_trigger),
            l0_slowdown: slowdown,
            block_bytes: block_fields
                .block_size
                .unwrap_or(own.block_bytes)
                .clamp(64, 16 << 20),
            restart_interval: positive(block_fields.block_restart_interval, own.restart_interval)
                .min(1 << 16),
            filter_bits: blocks.filter.map_or(own.filter_bits, |filter| filter.bits),
            whole_key_filter: block_fields.whole_key_filtering(),
            checksum: match block_fields.checksum {
                Some(4) => ChecksumKind::Xxh3,
                _ => ChecksumKind::Crc32c,
            },
            wal_bytes_max: fields.max_total_wal_size.filter(|bytes| *bytes > 0),
            background_rate: self
                .rate
                .map_or(RateLimit::Unlimited, RateLimiter::to_engine),
            background_direct_io: fields.use_direct_io_for_flush_and_compaction,
            ..own
        }
    }

    /// What is noted when a database was opened with these options.
    pub(crate) fn opened(&self, db: &Db) {
        if let Some(opened) = &self.statistics {
            opened.lock().push(db.clone());
        }
        if let Some(manager) = &self.write_buffers {
            manager.serves(db.budget());
        }
        if let Some(manager) = &self.file_manager {
            manager.serves(db);
        }
        if let Some(blocks) = &self.blocks
            && let Some(cache) = &blocks.cache
        {
            cache.serves(db, blocks.fields.cache_index_and_filter_blocks());
        }
    }

    /// Refuses paths of the database in `dir` and of its families that are not `dir`: no table is written elsewhere.
    pub(crate) fn check_paths(&self, dir: &Path) -> Result<()> {
        all_are("db_paths", &self.db_paths, dir)?;
        self.check_family_paths(dir)
    }

    /// Refuses such paths of a family.
    pub(crate) fn check_family_paths(&self, dir: &Path) -> Result<()> {
        all_are("cf_paths", &self.cf_paths, dir)
    }
}

fn all_are(name: &str, paths: &[PathBuf], dir: &Path) -> Result<()> {
    match paths.iter().find(|path| *path != dir) {
        None => Ok(()),
        Some(path) => Err(Error::not_supported(format!(
            "{name} with {}: all tables are in {}",
            path.display(),
            dir.display()
        ))),
    }
}

fn levels(set: i32) -> usize {
    usize::try_from(set).unwrap_or(LEVELS).clamp(2, LEVELS)
}

#[path = "options_calls.rs"]
pub(crate) mod calls;
