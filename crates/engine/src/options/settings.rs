//! Options the user may set: about ten; everything else follows from them and the machine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{
    CompactionFilterFactory, Error, KeyOrder, MergeOperator, PrefixExtractor, Result, limits,
};
use drumlin_fs::{Env, RateLimit};
use drumlin_table::{ChecksumKind, Codec, Compression, ReadTier, TableFormat, TableReadOptions};

use crate::compaction::CompactionStyle;
use crate::family::snapshot::Snapshot;
use crate::family::ttl::{TTL_SECONDS_MAX, whole_seconds};
use crate::options::vintage::Vintage;
use crate::read::IteratorOptions;
use crate::version::MOMENTS_MAX;
use crate::wal::archive::KeepChanges;
use crate::watch::events::EventListener;
use crate::watch::times::Timings;

/// The engine whose format the directory is written in. Both are always readable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DirectoryFormat {
    /// Keep the directory's; a new directory is RocksDB's.
    #[default]
    Auto,
    /// RocksDB's: every RocksDB from 6.6 on opens it, from 6.27 on with values in blob files; a
    /// directory of an older one stays readable by that.
    RocksDb,
    /// LevelDB's: one family, puts and deletions only, so that LevelDB opens it.
    LevelDb,
}

/// Options of a database.
#[derive(Clone)]
pub struct Options {
    /// Create the database when the directory holds none. Default: true.
    pub create_if_missing: bool,
    /// Fail when the database exists. Default: false.
    pub error_if_exists: bool,
    /// Bytes the database may keep in memory for memtables, cached blocks, indexes, filters and
    /// compaction buffers together. Default: a quarter of the machine's (or container's) memory,
    /// at least 64 MiB.
    pub memory_budget: Option<usize>,
    /// Compression of the lower levels; L0 and L1 are rewritten soon and stay uncompressed
    /// unless the codec is as cheap as LZ4 or Snappy. Default: LZ4.
    pub compression: Compression,
    /// Whether writes are synced unless they say otherwise. Default: false: a write outlives the
    /// process, not a power cut.
    pub sync: bool,
    /// Threads for flushes and compactions. Default: one a core, at least two. With 0 there are
    /// none: a caller that flushes, compacts or waits for the background does its work, one job at a
    /// time, so that a run depends on its caller alone.
    pub background_threads: Option<usize>,
    /// How tables are rearranged. Default: as the OPTIONS file says, leveled in a new directory.
    pub compaction_style: CompactionStyle,
    /// Where WAL files go. An open that would miss some because they are elsewhere (beside the tables, or where
    /// the OPTIONS file says) is refused. No two databases may share it. Default: beside the tables.
    pub wal_dir: Option<PathBuf>,
    /// The machine's name, which tables say that they were made on; for people. Default: empty, tables name none.
    pub host_id: String,
    /// How long changes are kept for [`crate::Db::changes`]: WAL files that are in tables move to the folder
    /// `archive` beside them instead of being used again. Not in LevelDB's format. Default: as the OPTIONS file says,
    /// not at all in a new directory; [`KeepChanges::default`] ends it.
    pub keep_changes: Option<KeepChanges>,
    /// How long the past is kept for [`crate::Db::snapshot_at`]: values that were overwritten or deleted stay on disk as long.
    /// Not in the formats of LevelDB and of RocksDB 5. Default: as the MANIFEST says, not at all in a new directory, nor
    /// where another engine has opened it since; [`KeepHistory::default`] ends it.
    pub keep_history: Option<KeepHistory>,
    /// Open tables kept at most. Default: 50,000.
    pub max_open_files: Option<usize>,
    /// Notified of flushes, compactions, state changes and stalls.
    pub listener: Option<Arc<dyn EventListener>>,
    /// The engine whose format the directory is written in.
    pub format: DirectoryFormat,
    /// After damage to the WAL short of its synced end: false refuses to open (the error names
    /// the place), true opens at the last good point, keeps the WAL under a `.quarantine` name
    /// and says so in the recovery report. Default: false.
    pub point_in_time_recovery: bool,
    /// Which times [`crate::Db::metrics`] has. Default: those of jobs, which cost calls nothing.
    pub timings: Timings,
    /// Options of the default family and of families opened without their own.
    pub family: FamilyOptions,
    /// Sizes that are derived unless set.
    pub tuning: Tuning,
    /// Files, clock, threads, seed.
    pub env: Env,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            error_if_exists: false,
            memory_budget: None,
            compression: Compression::new(Codec::Lz4),
            sync: false,
            background_threads: None,
            compaction_style: CompactionStyle::Auto,
            wal_dir: None,
            host_id: String::new(),
            keep_changes: None,
            keep_history: None,
            max_open_files: None,
            listener: None,
            format: DirectoryFormat::Auto,
            point_in_time_recovery: false,
            timings: Timings::default(),
            family: FamilyOptions::default(),
            tuning: Tuning::default(),
            env: Env::system(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("create_if_missing", &self.create_if_missing)
            .field("memory_budget", &self.memory_budget)
            .field("compression", &self.compression)
            .field("sync", &self.sync)
            .field("background_threads", &self.background_threads)
            .field("compaction_style", &self.compaction_style)
            .field("wal_dir", &self.wal_dir)
            .field("keep_changes", &self.keep_changes)
            .field("keep_history", &self.keep_history)
            .field("tuning", &self.tuning)
            .finish_non_exhaustive()
    }
}

/// For how long the past is kept, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepHistory {
    /// At least so long, in whole seconds; less than one: not at all.
    pub age: Duration,
    /// Every so often a moment is marked that can be read at, from a second on; at most 999 in `age`. Each costs a sync of
    /// the WAL and one of the MANIFEST, and keeps what was overwritten later, as a [`crate::Snapshot`] does.
    pub every: Duration,
}

impl KeepHistory {
    fn check(self) -> Result<()> {
        let (age, every) = (self.age.as_secs(), self.every.as_secs());
        let is_sound = age == 0 || every > 0 && age / every < MOMENTS_MAX as u64;
        match is_sound {
            true => Ok(()),
            false => Err(Error::invalid_argument(format!(
                "keep_history has at least a second between its moments, and at most {} of them in its age",
                MOMENTS_MAX - 1
            ))),
        }
    }
}

/// Options of one column family.
#[derive(Clone, Default)]
pub struct FamilyOptions {
    /// Order of the user keys. Fixed for the family's life.
    pub order: KeyOrder,
    /// Combines merge operands; needed once `merge` is called.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Makes the filter that looks at values on their way through a compaction; a [`drumlin_base::CompactionFilter`]
    /// serves as one.
    pub compaction_filter: Option<Arc<dyn CompactionFilterFactory>>,
    /// How long what is written lives; zero is for ever. Each value then has the time of its writing behind it on disk, as
    /// RocksDB's `DBWithTTL` has, so a family has a time to live from its first write on, or never; an open that gives one
    /// to a family that holds values without times is refused. No read shows what is older, by the clock of [`Options::env`]
    /// in whole seconds; compactions drop it. Not in LevelDB's format. Default: as the OPTIONS file says, none in a new
    /// family. See `docs/ttl.md`.
    pub ttl: Option<Duration>,
    /// Cuts prefixes for the filters of tables and memtables, and for walks within a prefix. Tables keep its
    /// name: one written under another name is read without its prefixes, so it may be changed at any
    /// open. Rename your own whenever it cuts otherwise.
    pub prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
    /// Overrides [`Options::compression`].
    pub compression: Option<Compression>,
    /// Overrides [`Options::compaction_style`].
    pub compaction_style: Option<CompactionStyle>,
    /// Levels that leveled compaction may use, with L0: RocksDB's `num_levels`, which refuses a directory with
    /// more. Tables already on deeper levels stay readable, and their levels in use. 2 to 7. Default: as the
    /// OPTIONS file says, 7 in a new directory.
    pub levels_max: Option<usize>,
    /// Options of RocksDB's that steer nothing here, by name, for the OPTIONS file, where its programs and tools find
    /// them: `compaction_pri` with a word for its value, as RocksDB would refuse a file with others.
    pub recorded: Vec<(String, String)>,
    /// The format of new tables; those that are there stay readable, and compaction rewrites them in
    /// time. Only this store reads plain tables: to hand a directory back to RocksDB, compact it with
    /// [`TableFormat::Block`]. LevelDB's directories always have block-based ones. Default: as the
    /// OPTIONS file says, block-based in a new directory.
    pub table_format: Option<TableFormat>,
    /// How many first bytes of a key name its scope, in searchable tables: the keys that begin alike are records of a kind, such as
    /// those of one collection of many in the family. A scope with enough in it (four times
    /// [`Tuning::shared_model_from_bytes`] in one compaction) gets tables, and where that makes it smaller a model, of its own.
    /// 0: all of the family is one. In other formats, and where keys have timestamps or another order than that of
    /// their bytes, it is without effect. Default: as the OPTIONS file says, 0 in a new directory.
    pub scope_bytes: Option<usize>,
    /// Overrides [`Options::tuning`].
    pub tuning: Option<Tuning>,
}

impl fmt::Debug for FamilyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FamilyOptions")
            .field("order", &self.order)
            .field(
                "merge_operator",
                &self.merge_operator.as_ref().map(|m| m.name().to_owned()),
            )
            .field(
                "prefix_extractor",
                &self.prefix_extractor.as_ref().map(|p| p.name().to_owned()),
            )
            .field("ttl", &self.ttl)
            .field("compression", &self.compression)
            .field("compaction_style", &self.compaction_style)
            .field("table_format", &self.table_format)
            .field("scope_bytes", &self.scope_bytes)
            .finish_non_exhaustive()
    }
}

/// Sizes that follow from the memory budget unless set; tests and benchmarks set them.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Bytes of a memtable before it is flushed. Default: an eighth of the budget, 1 to 256 MiB;
    /// less on a disk with less than 16 GiB free: a 64th of that, at least 1 MiB.
    pub write_buffer_bytes: Option<usize>,
    /// Memtables, mutable and not, kept before writers wait. Default: 4.
    pub memtables_max: usize,
    /// Size at which compaction begins a new table. Default: 64 MiB.
    pub target_file_bytes: u64,
    /// Size of the first level below L0. Default: four memtables, at least 256 MiB.
    pub level_base_bytes: Option<u64>,
    /// How much larger each level is than the one above. Default: 10.
    pub level_multiplier: u64,
    /// Whether the deepest level sets the sizes of those above, and L0 is compacted straight into the first that is worth
    /// having. Without, L1 has [`Tuning::level_base_bytes`] and each level below its multiple, as in RocksDB's
    /// `level_compaction_dynamic_level_bytes=false`: more levels, and more space for what was overwritten. Default: true.
    pub dynamic_levels: bool,
    /// Whether compactions begin by themselves. Without, L0 grows until one is asked for. Default: true.
    pub automatic_compactions: bool,
    /// Values of this many bytes and more are kept apart from the tables, in blob files, so that
    /// compaction does not rewrite them at every level; `usize::MAX` for none. LevelDB's
    /// directories have none. Default: 4 KiB; 64 KiB in families with searchable tables, whose model
    /// serves the values stored in tables.
    pub blob_from_bytes: Option<usize>,
    /// L0 tables that start a compaction. Default: 4.
    pub l0_trigger: usize,
    /// Half the L0 tables that are too many: from about half of this on writers are slowed, if
    /// compactions do not follow. Default: 24.
    pub l0_slowdown: usize,
    /// Seconds after which data above older data goes down a level, so that deleted data is dropped at
    /// last, and, with a compaction filter, tables are rewritten; `None` is never. Default: 30 days.
    pub age_max_seconds: Option<u64>,
    /// Bytes of a data block before compression. Default: 4 KiB.
    pub block_bytes: usize,
    /// Entries between restart points in a data block. Default: 16.
    pub restart_interval: usize,
    /// Bloom filter bits a key; 0 writes no filters. Default: 10.
    pub filter_bits: f64,
    /// Put whole keys in filters (beside prefixes, when there is an extractor). Default: true.
    pub whole_key_filter: bool,
    /// Tables expected to be larger than this get a two-level index and filter. Default: 512 MiB.
    pub partition_above_bytes: u64,
    /// Checksum of table blocks. Default: CRC-32C, which every RocksDB knows; XXH3 is for 6.27 and later,
    /// and not used in a directory of an earlier version.
    pub checksum: ChecksumKind,
    /// WAL bytes on disk at which the families that hold the oldest WAL are flushed. Default: twice what is in
    /// memtables at the time, and two of the largest memtables more, however many families there are.
    pub wal_bytes_max: Option<u64>,
    /// Bytes a second that flushes and compactions may write together; flushes go first, manual compactions
    /// last. A limit below what they need makes writers wait. Default: no limit.
    pub background_rate: RateLimit,
    /// Whether flushes and compactions read and write past the page cache, so that it stays with the
    /// readers, at the price of a disk that works in their time only. Where the file system has no
    /// direct I/O they go through the cache, and the listener is notified. Default: as the OPTIONS file
    /// says (`use_direct_io_for_flush_and_compaction`), else false.
    pub background_direct_io: Option<bool>,
    /// Bytes kept free on the disk: writes other than deletions are refused politely before they
    /// would be used, and compactions that would not fit wait. 0 never looks. Default: the memory that
    /// memtables may take, 64 MiB to 1 GiB, and at most an eighth of the most space seen free.
    pub disk_reserve_bytes: Option<u64>,
    /// Obsolete tables and blob files of this many bytes and more are kept for a while, for new ones
    /// to be written in their place; `u64::MAX` for none. They take at most as many bytes as the store
    /// holds, and as were written in the last 8 to 16 seconds. Default: 8 MiB.
    pub reuse_from_bytes: u64,
    /// The first compaction into searchable tables that reads this many bytes of values learns a model
    /// for all tables of the family to share; in smaller ones each table learns its own. Default: 1 MiB.
    pub shared_model_from_bytes: u64,
    /// Most bytes of a user key.
    pub key_bytes_max: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            write_buffer_bytes: None,
            memtables_max: 4,
            target_file_bytes: 64 << 20,
            level_base_bytes: None,
            level_multiplier: 10,
            dynamic_levels: true,
            automatic_compactions: true,
            blob_from_bytes: None,
            l0_trigger: 4,
            l0_slowdown: 24,
            age_max_seconds: Some(30 * 24 * 60 * 60),
            block_bytes: 4 << 10,
            restart_interval: 16,
            filter_bits: 10.0,
            whole_key_filter: true,
            partition_above_bytes: 512 << 20,
            checksum: ChecksumKind::Crc32c,
            wal_bytes_max: None,
            background_rate: RateLimit::Unlimited,
            background_direct_io: None,
            disk_reserve_bytes: None,
            reuse_from_bytes: 8 << 20,
            shared_model_from_bytes: 1 << 20,
            key_bytes_max: limits::KEY_BYTES_MAX,
        }
    }
}

/// Smallest memory budget: below it nothing useful fits.
pub(crate) const MEMORY_BUDGET_MIN: usize = 1 << 20;

/// Refuses a budget in which nothing useful fits.
pub(crate) fn check_memory_budget(bytes: usize) -> Result<()> {
    match bytes < MEMORY_BUDGET_MIN {
        true => Err(Error::invalid_argument(format!(
            "memory_budget must be at least {MEMORY_BUDGET_MIN} bytes"
        ))),
        false => Ok(()),
    }
}

impl Options {
    /// Checks what can be checked without touching the disk.
    ///
    /// # Errors
    /// `InvalidArgument` naming the option; `NotSupported` for compression that this build is without.
    pub fn validate(&self) -> Result<()> {
        self.memory_budget.map_or(Ok(()), check_memory_budget)?;
        if self.background_threads.is_some_and(|n| n > THREADS_MAX) {
            let message = "background_threads must be at most 1,024";
            return Err(Error::invalid_argument(message));
        }
        self.keep_history.map_or(Ok(()), KeepHistory::check)?;
        self.tuning.validate()?;
        self.compaction_style.validate()?;
        self.compression.codec.check_built()?;
        self.family.validate()
    }

    /// The budget in bytes: the one set, or a quarter of the memory this process may use.
    pub fn memory_budget_bytes(&self) -> usize {
        self.memory_budget.unwrap_or_else(|| {
            let quarter = drumlin_fs::machine::memory_limit_bytes() / 4;
            usize::try_from(quarter).unwrap_or(usize::MAX).max(64 << 20)
        })
    }

    /// Background threads: the number set, or one a core and at least two.
    pub fn background_threads_count(&self) -> usize {
        self.background_threads
            .unwrap_or_else(|| drumlin_fs::machine::cores_available().max(2))
    }
}

impl FamilyOptions {
    /// Checks the family's own options.
    ///
    /// # Errors
    /// As [`Options::validate`].
    pub fn validate(&self) -> Result<()> {
        if let Some(style) = &self.compaction_style {
            style.validate()?;
        }
        if let Some(compression) = &self.compression {
            compression.codec.check_built()?;
        }
        if self
            .levels_max
            .is_some_and(|n| !(2..=limits::LEVELS).contains(&n))
        {
            let message = "levels_max must be between 2 and 7";
            return Err(Error::invalid_argument(message));
        }
        if self
            .ttl
            .is_some_and(|ttl| whole_seconds(ttl) > TTL_SECONDS_MAX)
        {
            let message =
                format!("a time to live is at most {TTL_SECONDS_MAX} seconds; zero is for ever");
            return Err(Error::invalid_argument(message));
        }
        let is_word = |text: &str| {
            text.chars()
                .all(|it| it.is_ascii_alphanumeric() || it == '_')
        };
        let mut recorded = self.recorded.iter();
        if let Some((name, value)) =
            recorded.find(|(name, value)| !RECORDED.contains(&name.as_str()) || !is_word(value))
        {
            let message = format!("{name}={value} is no option to be recorded");
            return Err(Error::invalid_argument(message));
        }
        self.tuning.as_ref().map_or(Ok(()), Tuning::validate)
    }

    /// Restricts the output format to features that RocksDB of `vintage` reads, whatever was set;
    /// `database` is the database's tuning.
    pub(crate) fn keep_to(&mut self, vintage: Vintage, database: &Tuning) {
        if vintage.takes_all() {
            return;
        }
        let kept = self.tuning.get_or_insert_with(|| database.clone());
        if !drumlin_base::bug!("checksum-too-new") {
            kept.checksum = vintage.checksum(kept.checksum);
        }
        if !vintage.has_blob_files() {
            kept.blob_from_bytes = Some(usize::MAX);
        }
        tracing::info!(%vintage, "tables are written as the directory's RocksDB reads them");
    }
}

/// Options that are only recorded.
const RECORDED: [&str; 1] = ["compaction_pri"];
/// Largest memtable that can be asked for.
const WRITE_BUFFER_BYTES_MAX: usize = 1 << 40;
/// Upper bound of counts: memtables, entries between restart points.
const COUNT_MAX: usize = 1 << 16;
/// Open tables kept at most, where nobody says how many.
pub(crate) const OPEN_FILES_MAX: usize = 50_000;
/// Most background threads.
pub(crate) const THREADS_MAX: usize = 1024;

/// Bytes of a memtable under `budget` bytes, where none are set.
pub(crate) fn write_buffer_under(budget: usize) -> usize {
    (budget / 8).clamp(1 << 20, 256 << 20)
}

impl Tuning {
    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid_argument(what));
        if self
            .write_buffer_bytes
            .is_some_and(|bytes| bytes == 0 || bytes > WRITE_BUFFER_BYTES_MAX)
        {
            return refuse("tuning.write_buffer_bytes must be between 1 byte and 1 TiB");
        }
        if !(2..=COUNT_MAX).contains(&self.memtables_max) {
            return refuse("tuning.memtables_max must be between 2 and 65,536");
        }
        if !(2..=COUNT_MAX as u64).contains(&self.level_multiplier) {
            return refuse("tuning.level_multiplier must be between 2 and 65,536");
        }
        if self.l0_trigger == 0 || self.l0_slowdown == 0 {
            return refuse("tuning.l0_trigger and tuning.l0_slowdown must be at least 1");
        }
        if self.key_bytes_max == 0 || self.key_bytes_max > limits::KEY_BYTES_MAX {
            return refuse("tuning.key_bytes_max must be at least 1, and at most its default");
        }
        if let RateLimit::Fixed(0) | RateLimit::Auto(0..20) = self.background_rate {
            return refuse(
                "tuning.background_rate must be at least 1, and 20 where it is automatic",
            );
        }
        if self.block_bytes < 64 || self.block_bytes > 16 << 20 {
            return refuse("tuning.block_bytes must be between 64 bytes and 16 MiB");
        }
        if self.age_max_seconds == Some(0) {
            return refuse("tuning.age_max_seconds must be at least 1");
        }
        if !(1..=COUNT_MAX).contains(&self.restart_interval) {
            return refuse("tuning.restart_interval must be between 1 and 65,536");
        }
        if !(0.0..=100.0).contains(&self.filter_bits) {
            return refuse("tuning.filter_bits must be between 0 and 100");
        }
        if self.blob_from_bytes == Some(0) {
            return refuse("tuning.blob_from_bytes must be at least 1");
        }
        if self.target_file_bytes < 1 << 10 {
            return refuse("tuning.target_file_bytes must be at least 1 KiB");
        }
        Ok(())
    }

    /// Memtable size under `budget` bytes.
    pub fn write_buffer(&self, budget: usize) -> usize {
        self.write_buffer_bytes
            .unwrap_or_else(|| write_buffer_under(budget))
    }

    /// Size from which values of a family with tables of `format` are kept apart.
    pub fn blob_from(&self, format: TableFormat) -> usize {
        self.blob_from_bytes.unwrap_or(match format {
            TableFormat::Searchable => 64 << 10,
            _ => 4 << 10,
        })
    }

    /// Size at which a blob file ends: four tables, so that there are fewer files, as their values are
    /// rewritten less often.
    pub fn blob_file_bytes(&self) -> u64 {
        self.target_file_bytes.saturating_mul(4)
    }

    /// Size of the first level below L0 under `budget` bytes.
    pub fn level_base(&self, budget: usize) -> u64 {
        self.level_base_bytes
            .unwrap_or_else(|| (4 * self.write_buffer(budget) as u64).max(256 << 20))
    }
}

/// How one read is done.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Read as of this snapshot instead of now.
    pub snapshot: Option<Snapshot>,
    /// Iterators stay at or above this user key.
    pub lower_bound: Option<Vec<u8>>,
    /// Iterators stay below this user key.
    pub upper_bound: Option<Vec<u8>>,
    /// Iterators stay within the prefix of the key they were sought with.
    pub prefix_same_as_start: bool,
    /// Keep blocks that are read in the cache. Turn off for scans of everything.
    pub fill_cache: bool,
    /// Check block checksums when blocks are read from disk.
    pub verify_checksums: bool,
    /// How far a read may go for data that it needs; beyond it fails with `Incomplete`. Short of the disk, tables that are
    /// not open and values in blob files are beyond it.
    pub tier: ReadTier,
    /// Bytes read ahead on scans; 0 grows from small to large as a scan goes on.
    pub readahead_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            snapshot: None,
            lower_bound: None,
            upper_bound: None,
            prefix_same_as_start: false,
            fill_cache: true,
            verify_checksums: true,
            tier: ReadTier::Disk,
            readahead_bytes: 0,
        }
    }
}

/// How one write is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Return only when the write outlives a power cut. `None`: as [`Options::sync`] says.
    pub sync: Option<bool>,
    /// Do not log: the write is lost with the process unless a flush comes first.
    pub no_wal: bool,
    /// Fail with `Busy` where the write would stall: wait for a flush, or for its turn while writes are throttled, also
    /// behind another writer that does. Nothing of it is then written. It still waits for the groups before it, which
    /// may be syncing.
    pub no_stall: bool,
}

impl WriteOptions {
    /// A synced write.
    pub fn synced() -> Self {
        Self {
            sync: Some(true),
            ..Self::default()
        }
    }
}

impl ReadOptions {
    /// The part that concerns tables.
    #[inline]
    pub(crate) fn for_tables(&self) -> TableReadOptions {
        TableReadOptions {
            fill_cache: self.fill_cache,
            verify_checksums: self.verify_checksums,
            tier: self.tier,
            readahead_bytes: self.readahead_bytes,
            codes_of: None,
        }
    }

    /// The part that concerns iterators.
    pub(crate) fn for_iterators(&self) -> IteratorOptions {
        IteratorOptions {
            lower_bound: self.lower_bound.clone(),
            upper_bound: match drumlin_base::bug!("upper-bound-lost") {
                true => None,
                false => self.upper_bound.clone(),
            },
            prefix_same_as_start: self.prefix_same_as_start,
            table: self.for_tables(),
        }
    }
}
