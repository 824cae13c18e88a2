//! RocksDB of today, compiled from the sources in the `rocksdb` crate.

use std::fmt;
use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_bench::{Cursor, Flags, Sample, Session, Store};
use drumlin_fs::Env;
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, ColumnFamilyDescriptor, CompactOptions,
    DB, DBCompactionStyle, DBCompressionType, DBRawIterator, DataBlockIndexType, FlushOptions,
    KeyEncodingType, MemtableFactory, Options, PlainTableFactoryOptions, ReadOptions,
    SliceTransform, WaitForCompactOptions, WriteBatch, WriteOptions,
    statistics::{StatsLevel, Ticker},
};

use super::{given, remove_store};

const FAMILY: &str = "default";

/// Size from which values go to blob files unless the flags say otherwise.
const MIN_BLOB_BYTES: u64 = 4096;

fn failed(error: impl fmt::Display) -> Error {
    super::failed("RocksDB", error)
}

/// A database.
pub(crate) struct RocksDbStore {
    db: DB,
    options: Options,
    /// Whether it keeps statistics.
    counts: bool,
}

impl Store for RocksDbStore {
    type Session<'a> = RocksDbSession<'a>;

    fn open(flags: &Flags, _: &Env) -> Result<Self> {
        let options = options(flags)?;
        // The family is named so that its handle, which the batched reads want, exists.
        let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
        let db = DB::open_cf_descriptors(&options, &flags.db, [family]).map_err(failed)?;
        Ok(Self {
            db,
            options,
            counts: flags.statistics,
        })
    }

    fn destroy(flags: &Flags, _: &Env) -> Result<()> {
        remove_store(&flags.db, &["CURRENT", "LOCK"])?;
        match flags.wal_dir.as_str() {
            "" => Ok(()),
            dir => remove_logs(Path::new(dir)),
        }
    }

    fn close(self) -> Result<()> {
        self.db.cancel_all_background_work(true);
        Ok(())
    }

    fn session(&self, flags: &Flags) -> RocksDbSession<'_> {
        let mut write = WriteOptions::default();
        write.set_sync(flags.sync);
        write.disable_wal(flags.disable_wal);
        RocksDbSession {
            db: &self.db,
            read: read_options(flags.verify_checksum),
            verify: flags.verify_checksum,
            keeps_prefix: flags.prefix_same_as_start,
            write,
            batch: WriteBatch::default(),
        }
    }

    fn flush(&self) -> Result<()> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        self.db.flush_opt(&options).map_err(failed)
    }

    fn compact(&self) -> Result<()> {
        let mut options = CompactOptions::default();
        // As db_bench does.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        self.db
            .compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    fn wait_for_background(&self) -> Result<()> {
        let options = WaitForCompactOptions::default();
        self.db.wait_for_compact(&options).map_err(failed)
    }

    fn property(&self, name: &str) -> Option<String> {
        self.db.property_value(name).ok().flatten()
    }

    fn statistics(&self) -> Option<String> {
        self.options.get_statistics()
    }

    fn sample(&self) -> Sample {
        let number = |name: &str| self.db.property_int_value(name).ok().flatten();
        let level = |level: usize| {
            let name = format!("rocksdb.num-files-at-level{level}");
            self.property(&name)?.parse().ok()
        };
        // 0 where statistics are off; then nothing was counted.
        let counted = |ticker| Some(self.options.get_ticker_count(ticker)).filter(|_| self.counts);
        let written = [
            Ticker::WalFileBytes,
            Ticker::FlushWriteBytes,
            Ticker::CompactWriteBytes,
        ];
        Sample {
            debt_bytes: number("rocksdb.estimate-pending-compaction-bytes"),
            files_by_level: (0..7).map_while(level).collect(),
            table_bytes: number("rocksdb.total-sst-files-size"),
            blob_bytes: number("rocksdb.total-blob-file-size"),
            waited_micros: counted(Ticker::StallMicros),
            written_bytes: written.into_iter().map(counted).sum(),
        }
    }

    fn version() -> String {
        "RocksDB:    version 11.8.1".to_owned()
    }
}

/// Removes the logs in a directory of their own: RocksDB creates no new database beside old ones.
fn remove_logs(dir: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list directory", dir, error)),
    };
    for entry in entries {
        let path = entry
            .map_err(|error| Error::io("list directory", dir, error))?
            .path();
        if path.extension().is_some_and(|extension| extension == "log") {
            std::fs::remove_file(&path).map_err(|error| Error::io("remove file", &path, error))?;
        }
    }
    Ok(())
}

fn read_options(verify_checksums: bool) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(verify_checksums);
    options
}

fn codec(name: &str) -> Result<DBCompressionType> {
    Ok(match name {
        "none" => DBCompressionType::None,
        "snappy" => DBCompressionType::Snappy,
        "lz4" => DBCompressionType::Lz4,
        "lz4hc" => DBCompressionType::Lz4hc,
        "zstd" => DBCompressionType::Zstd,
        _ => {
            let message = format!("RocksDB is built here without '{name}'");
            return Err(Error::invalid_argument(message));
        }
    })
}

/// RocksDB's options for these flags; without a flag the choice of db_bench of the same version:
/// two background jobs, two memtables, the clock cache.
pub(super) fn options(flags: &Flags) -> Result<Options> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(codec(&flags.compression_type)?);
    dictionary(flags, &mut options);
    let jobs = i32::try_from(flags.max_background_jobs).unwrap_or_default();
    options.set_max_background_jobs(if jobs > 0 { jobs } else { 2 });
    options.set_max_open_files(i32::try_from(flags.open_files).unwrap_or(-1));
    options.set_disable_auto_compactions(flags.disable_auto_compactions);
    options.set_use_direct_reads(flags.use_direct_reads);
    options
        .set_use_direct_io_for_flush_and_compaction(flags.use_direct_io_for_flush_and_compaction);
    if flags.write_buffer_size > 0 {
        let bytes = usize::try_from(flags.write_buffer_size).unwrap_or(usize::MAX);
        options.set_write_buffer_size(bytes);
    }
    if flags.target_file_size_base > 0 {
        options.set_target_file_size_base(flags.target_file_size_base);
    }
    if flags.max_bytes_for_level_base > 0 {
        options.set_max_bytes_for_level_base(flags.max_bytes_for_level_base);
    }
    if flags.max_bytes_for_level_multiplier > 0.0 {
        options.set_max_bytes_for_level_multiplier(flags.max_bytes_for_level_multiplier);
    }
    counts(flags, &mut options);
    if !flags.wal_dir.is_empty() {
        options.set_wal_dir(&flags.wal_dir);
    }
    if flags.prefix_size > 0 {
        options.set_prefix_extractor(SliceTransform::create_fixed_prefix(flags.prefix_size));
    }
    if flags.statistics {
        options.enable_statistics();
        // Counters only: reading clocks for histograms would distort the measurement.
        options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    }
    if flags.compaction_style == 1 {
        options.set_compaction_style(DBCompactionStyle::Universal);
    }
    if flags.enable_blob_files {
        blobs(flags, &mut options);
    }
    if flags.use_plain_table {
        plain(flags, &mut options);
    } else {
        options.set_allow_mmap_reads(flags.mmap_read);
        options.set_block_based_table_factory(&table_options(flags));
        if flags.memtablerep == "prefix_hash" {
            hashed_memtables(&mut options);
        }
    }
    Ok(options)
}

/// The flags of a dictionary for each table. It is trained, on a hundred times as much, as RocksDB's
/// authors advise for zstd.
fn dictionary(flags: &Flags, options: &mut Options) {
    const TRAINED_ON: i32 = 100;
    let bytes = i32::try_from(flags.compression_max_dict_bytes).unwrap_or(i32::MAX);
    if bytes > 0 {
        // Window, level and strategy by default; 32767 means the codec's own level.
        options.set_compression_options(-14, 32767, 0, bytes);
        options.set_zstd_max_train_bytes(bytes.saturating_mul(TRAINED_ON));
    }
}

/// Tables and memtables for data in memory, found by the hash of a prefix, as db_bench's
/// `--use_plain_table --mmap_read --memtablerep=prefix_hash --bloom_locality=1` sets them up.
fn plain(flags: &Flags, options: &mut Options) {
    options.set_allow_mmap_reads(true);
    options.set_bloom_locality(1);
    options.set_num_levels(6);
    hashed_memtables(options);
    options.set_plain_table_factory(&PlainTableFactoryOptions {
        user_key_length: u32::try_from(flags.key_size).unwrap_or_default(),
        bloom_bits_per_key: flags.bloom_bits.max(0.0) as i32,
        hash_table_ratio: 0.75,
        index_sparseness: 16,
        huge_page_tlb_size: 0,
        encoding_type: KeyEncodingType::Plain,
        full_scan_mode: false,
        store_index_in_file: false,
    });
}

/// Memtables found by the hash of a prefix, as db_bench's `--memtablerep=prefix_hash` sets them up.
fn hashed_memtables(options: &mut Options) {
    options.set_allow_concurrent_memtable_write(false);
    options.set_memtable_factory(MemtableFactory::HashSkipList {
        bucket_count: 1_000_000,
        height: 4,
        branching_factor: 4,
    });
}

/// Large values in blob files. They are collected, which is not RocksDB's default, because without
/// it the space of overwritten values is never given back; the thresholds are its defaults.
fn blobs(flags: &Flags, options: &mut Options) {
    options.set_enable_blob_files(true);
    options.set_min_blob_size(u64::try_from(flags.min_blob_size).unwrap_or(MIN_BLOB_BYTES));
    options.set_enable_blob_gc(true);
}

/// The flags that count memtables and files.
fn counts(flags: &Flags, options: &mut Options) {
    let count = |number: usize| i32::try_from(number).ok().filter(|number| *number > 0);
    if let Some(memtables) = count(flags.max_write_buffer_number) {
        options.set_max_write_buffer_number(memtables);
    }
    if let Some(files) = count(flags.level0_file_num_compaction_trigger) {
        options.set_level_zero_file_num_compaction_trigger(files);
    }
    if let Some(files) = count(flags.level0_slowdown_writes_trigger) {
        options.set_level_zero_slowdown_writes_trigger(files);
    }
    if let Some(files) = count(flags.level0_stop_writes_trigger) {
        options.set_level_zero_stop_writes_trigger(files);
    }
}

fn table_options(flags: &Flags) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    let cache = Cache::new_hyper_clock_cache(given(flags.cache_size, 32 << 20), 0);
    table.set_block_cache(&cache);
    table.set_block_size(flags.block_size);
    table.set_block_restart_interval(i32::try_from(flags.block_restart_interval).unwrap_or(16));
    if flags.use_data_block_hash_index {
        table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    }
    if flags.bloom_bits > 0.0 {
        table.set_bloom_filter(flags.bloom_bits, false);
    }
    table
}

/// One thread's handle.
pub(crate) struct RocksDbSession<'s> {
    db: &'s DB,
    read: ReadOptions,
    verify: bool,
    keeps_prefix: bool,
    write: WriteOptions,
    batch: WriteBatch,
}

impl Session for RocksDbSession<'_> {
    type Cursor<'a>
        = RocksDbCursor<'a>
    where
        Self: 'a;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.write).map_err(failed)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value);
        Ok(())
    }

    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.delete(key);
        Ok(())
    }

    fn batch_delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        self.batch.delete_range(begin, end);
        Ok(())
    }

    fn batch_write(&mut self) -> Result<()> {
        let full = std::mem::take(&mut self.batch);
        self.db.write_opt(full, &self.write).map_err(failed)
    }

    #[inline]
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let value = self.db.get_pinned_opt(key, &self.read).map_err(failed)?;
        Ok(value.map(|value| on_value(&value)).is_some())
    }

    fn multi_get(
        &mut self,
        keys: &[Vec<u8>],
        mut on_value: impl FnMut(usize, &[u8]),
    ) -> Result<usize> {
        let family = self.db.cf_handle(FAMILY);
        let family = family.ok_or_else(|| failed("the default family is missing"))?;
        let values = self
            .db
            .batched_multi_get_cf_opt(family, keys, false, &self.read);
        let mut found = 0;
        for (index, value) in values.into_iter().enumerate() {
            if let Some(value) = value.map_err(failed)? {
                on_value(index, &value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<RocksDbCursor<'_>> {
        let mut options = read_options(self.verify);
        options.set_prefix_same_as_start(self.keeps_prefix);
        if let Some(lower) = lower {
            options.set_iterate_lower_bound(lower);
        }
        if let Some(upper) = upper {
            options.set_iterate_upper_bound(upper);
        }
        Ok(RocksDbCursor(self.db.raw_iterator_opt(options)))
    }
}

/// A walk over the default family.
pub(crate) struct RocksDbCursor<'s>(DBRawIterator<'s>);

impl Cursor for RocksDbCursor<'_> {
    fn seek_to_first(&mut self) {
        self.0.seek_to_first();
    }
    fn seek_to_last(&mut self) {
        self.0.seek_to_last();
    }
    #[inline]
    fn seek(&mut self, key: &[u8]) {
        self.0.seek(key);
    }
    #[inline]
    fn next(&mut self) {
        self.0.next();
    }
    #[inline]
    fn prev(&mut self) {
        self.0.prev();
    }
    #[inline]
    fn valid(&self) -> bool {
        self.0.valid()
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.0.key().unwrap_or_default()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.0.value().unwrap_or_default()
    }
    fn status(&self) -> Result<()> {
        self.0.status().map_err(failed)
    }
}
