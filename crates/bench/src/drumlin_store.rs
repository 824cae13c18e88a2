//! The engine's own database under measurement.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin::internals::batch::WriteBatch;
use drumlin::internals::names::FileName;
use drumlin::{
    ColumnFamily, CompactionStyle, Db, DbIterator, FamilyOptions, FifoOptions, Options, RateLimit,
    ReadOptions, TableFormat, Timings, Tuning, UniversalOptions, WriteOptions,
};
use drumlin_base::histogram::Times;
use drumlin_base::limits::LEVELS;
use drumlin_base::operators::FixedPrefix;
use drumlin_base::{Error, PrefixExtractor, Result};
use drumlin_fs::Env;
use drumlin_table::Compression;

use crate::direct_reads::DirectReads;
use crate::flags::Flags;
use crate::mark;
use crate::sample::Sample;
use crate::store::{Cursor, Session, Store};

/// Memory for indexes, filters and jobs beside the memtables and the cache a peer's flags name.
const OTHER_BYTES: usize = 64 << 20;

/// A database of this engine.
#[derive(Debug)]
pub struct DrumlinStore {
    db: Db,
}

impl Store for DrumlinStore {
    type Session<'a> = DrumlinSession<'a>;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        let mut fresh = Vec::new();
        for dir in dirs(flags) {
            if !holds_a_store(dir, env)? {
                fresh.push(dir);
            }
        }
        let db = Db::open(&flags.db, options(flags, env)?)?;
        fresh.iter().try_for_each(|dir| mark::set(dir, env))?;
        Ok(Self { db })
    }

    fn destroy(flags: &Flags, env: &Env) -> Result<()> {
        for dir in dirs(flags) {
            if !flags.overwrite_existing_store
                && !mark::is_set(dir, env)?
                && holds_a_store(dir, env)?
            {
                return Err(mark::refusal(dir));
            }
        }
        // Nothing is touched before all of it may be.
        dirs(flags).try_for_each(|dir| remove_files(dir, env))
    }

    fn close(self) -> Result<()> {
        self.db.close()
    }

    fn session(&self, flags: &Flags) -> Self::Session<'_> {
        DrumlinSession {
            db: &self.db,
            family: self.db.default_family(),
            batch: WriteBatch::new(),
            read: ReadOptions {
                verify_checksums: flags.verify_checksum,
                prefix_same_as_start: flags.prefix_same_as_start,
                ..ReadOptions::default()
            },
            write: WriteOptions {
                sync: Some(flags.sync),
                no_wal: flags.disable_wal,
                ..WriteOptions::default()
            },
        }
    }

    fn flush(&self) -> Result<()> {
        self.db.flush()
    }

    fn compact(&self) -> Result<()> {
        self.db.compact_range(self.db.default_family(), None, None)
    }

    fn wait_for_background(&self) -> Result<()> {
        self.db.wait_for_background()
    }

    fn property(&self, name: &str) -> Option<String> {
        self.db.property(self.db.default_family(), name)
    }

    fn statistics(&self) -> Option<String> {
        let metrics = self.db.metrics().ok()?;
        let counters = metrics.tickers.iter();
        let counters = counters.map(|(name, value)| format!("{name} COUNT : {value}\n"));
        let times = metrics.times.iter().map(line_of_times);
        Some(counters.chain(times).collect())
    }

    fn sample(&self) -> Sample {
        let number = |name: &str| self.property(name)?.parse::<u64>().ok();
        let level = |level: usize| number(&format!("rocksdb.num-files-at-level{level}"));
        let statistics = self.db.statistics();
        let written = [
            &statistics.wal_bytes,
            &statistics.flush_bytes,
            &statistics.compaction_write_bytes,
        ];
        Sample {
            debt_bytes: number("rocksdb.estimate-pending-compaction-bytes"),
            files_by_level: (0..LEVELS).map_while(level).collect(),
            table_bytes: number("rocksdb.total-sst-files-size"),
            blob_bytes: number("rocksdb.total-blob-file-size"),
            waited_micros: Some(statistics.stall_micros.get()),
            written_bytes: Some(written.iter().map(|counter| counter.get()).sum()),
        }
    }

    fn version() -> String {
        format!("Drumlin:    version {}", env!("CARGO_PKG_VERSION"))
    }
}

/// A distribution in RocksDB's words.
fn line_of_times((name, times): &(&str, Times)) -> String {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| micros(times.quantile(share)));
    format!(
        "{name} P50 : {p50:.3} P95 : {p95:.3} P99 : {p99:.3} P100 : {:.3} COUNT : {} SUM : {:.0}\n",
        micros(times.longest()),
        times.count(),
        micros(times.total()),
    )
}

/// The engine's options for these flags. Options without a flag keep the engine's default.
fn options(flags: &Flags, env: &Env) -> Result<Options> {
    let compression = Compression {
        codec: flags.compression_type.parse()?,
        level: flags.level(),
        dictionary_bytes: flags.compression_max_dict_bytes,
    };
    let prefix_extractor = (flags.prefix_size > 0)
        .then(|| Arc::new(FixedPrefix::new(flags.prefix_size)) as Arc<dyn PrefixExtractor>);
    let wal_dir = (!flags.wal_dir.is_empty()).then(|| PathBuf::from(&flags.wal_dir));
    let compaction_style = compaction_style(flags)?;
    let tuning = tuning(flags);
    Ok(Options {
        memory_budget: memory_budget(flags, &tuning),
        compression,
        background_threads: given(flags.max_background_jobs),
        compaction_style,
        timings: timings(flags)?,
        wal_dir,
        max_open_files: usize::try_from(flags.open_files).ok(),
        family: FamilyOptions {
            prefix_extractor,
            table_format: Some(match (flags.use_plain_table, flags.use_searchable_table) {
                (true, _) => TableFormat::Plain,
                (false, true) => TableFormat::Searchable,
                (false, false) => TableFormat::Block,
            }),
            ..FamilyOptions::default()
        },
        tuning,
        env: match flags.use_direct_reads {
            true => env
                .clone()
                .with_files(Arc::new(DirectReads::new(Arc::clone(&env.files)))),
            false => env.clone(),
        },
        ..Options::default()
    })
}

fn timings(flags: &Flags) -> Result<Timings> {
    Ok(match flags.stats_level {
        0..=5 if !flags.statistics => Timings::Jobs,
        0..=2 => Timings::Jobs,
        3 | 4 => Timings::Sampled,
        5 => Timings::Calls,
        other => {
            let message = format!("--stats_level={other}: there are 0 to 5");
            return Err(Error::invalid_argument(message));
        }
    })
}

fn compaction_style(flags: &Flags) -> Result<CompactionStyle> {
    if flags.disable_auto_compactions {
        return Ok(CompactionStyle::Manual);
    }
    let percent = |value: u32, default| if value == 0 { default } else { value };
    Ok(match flags.compaction_style {
        0 => CompactionStyle::Leveled,
        1 => {
            let defaults = UniversalOptions::default();
            CompactionStyle::Universal(UniversalOptions {
                runs_trigger: given(flags.level0_file_num_compaction_trigger)
                    .unwrap_or(defaults.runs_trigger),
                size_ratio_percent: percent(
                    flags.universal_size_ratio,
                    defaults.size_ratio_percent,
                ),
                merge_width_min: given(flags.universal_min_merge_width)
                    .unwrap_or(defaults.merge_width_min),
                merge_width_max: given(flags.universal_max_merge_width)
                    .unwrap_or(defaults.merge_width_max),
                levels_max: defaults.levels_max,
                space_percent_max: percent(
                    flags.universal_max_size_amplification_percent,
                    defaults.space_percent_max,
                ),
            })
        }
        2 => CompactionStyle::Fifo(FifoOptions {
            table_bytes_max: given(flags.fifo_compaction_max_table_files_size_mb)
                .map_or(FifoOptions::default().table_bytes_max, |mib| mib << 20),
            ttl_seconds: given(flags.fifo_compaction_ttl),
            merge_small: flags.fifo_compaction_allow_compaction,
        }),
        3 => CompactionStyle::Manual,
        other => {
            let message = format!("--compaction_style={other}: there are 0, 1, 2 and 3");
            return Err(Error::invalid_argument(message));
        }
    })
}

fn tuning(flags: &Flags) -> Tuning {
    let defaults = Tuning::default();
    let multiplier = flags.max_bytes_for_level_multiplier as u64;
    Tuning {
        write_buffer_bytes: given(flags.write_buffer_size)
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        memtables_max: given(flags.max_write_buffer_number).unwrap_or(defaults.memtables_max),
        target_file_bytes: given(flags.target_file_size_base).unwrap_or(defaults.target_file_bytes),
        level_base_bytes: given(flags.max_bytes_for_level_base),
        level_multiplier: given(multiplier).unwrap_or(defaults.level_multiplier),
        background_direct_io: Some(flags.use_direct_io_for_flush_and_compaction),
        background_rate: match flags.rate_limiter_bytes_per_sec {
            0 => RateLimit::Unlimited,
            most if flags.rate_limiter_auto_tuned => RateLimit::Auto(most),
            bytes => RateLimit::Fixed(bytes),
        },
        blob_from_bytes: blob_from_bytes(flags).or(defaults.blob_from_bytes),
        l0_trigger: given(flags.level0_file_num_compaction_trigger).unwrap_or(defaults.l0_trigger),
        l0_slowdown: given(flags.level0_slowdown_writes_trigger).unwrap_or(defaults.l0_slowdown),
        block_bytes: flags.block_size,
        restart_interval: flags.block_restart_interval,
        filter_bits: if flags.bloom_bits < 0.0 {
            defaults.filter_bits
        } else {
            flags.bloom_bits
        },
        ..defaults
    }
}

/// Size from which values go to blob files, if the flags name one. Blob files need no switching on,
/// but can be switched off.
fn blob_from_bytes(flags: &Flags) -> Option<usize> {
    if flags.is_given("enable_blob_files") && !flags.enable_blob_files {
        return Some(usize::MAX);
    }
    // RocksDB's 0 is every value; empty ones stay in the tables here.
    usize::try_from(flags.min_blob_size)
        .ok()
        .map(|bytes| bytes.max(1))
}

/// A peer names its cache and its memtables; this engine has one budget for all.
fn memory_budget(flags: &Flags, tuning: &Tuning) -> Option<usize> {
    let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    if flags.memory_budget > 0 {
        return Some(bytes(flags.memory_budget));
    }
    let cache = bytes(u64::try_from(flags.cache_size).ok()?);
    let memtable = tuning.write_buffer_bytes.unwrap_or(64 << 20);
    let memtables = memtable.saturating_mul(tuning.memtables_max);
    Some(cache.saturating_add(memtables).saturating_add(OTHER_BYTES))
}

/// `number`, unless it is the zero that stands for "not given".
fn given<N: Default + PartialEq>(number: N) -> Option<N> {
    (number != N::default()).then_some(number)
}

/// The directories that a store under `flags` has files in.
fn dirs(flags: &Flags) -> impl Iterator<Item = &Path> {
    let dirs = [flags.db.as_str(), flags.wal_dir.as_str()];
    dirs.into_iter()
        .filter(|dir| !dir.is_empty())
        .map(Path::new)
}

/// Whether [`remove_files`] would find something in `dir`.
fn holds_a_store(dir: &Path, env: &Env) -> Result<bool> {
    Ok(!files_of_a_store(dir, env)?.is_empty())
}

/// The files in `dir` whose names are those of a database's.
fn files_of_a_store(dir: &Path, env: &Env) -> Result<Vec<PathBuf>> {
    let mut names = match env.files.list(dir) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    names.retain(|name| !matches!(FileName::parse(name), None | Some(FileName::Archive)));
    Ok(names)
}

/// Removes the files a database left in `dir`, and no others; its mark last.
fn remove_files(dir: &Path, env: &Env) -> Result<()> {
    for name in files_of_a_store(dir, env)? {
        env.files.remove(&dir.join(name))?;
    }
    // A store that somebody makes there next is not a benchmark's.
    mark::clear(dir, env)
}

/// One thread's handle.
#[derive(Debug)]
pub struct DrumlinSession<'s> {
    db: &'s Db,
    family: &'s ColumnFamily,
    batch: WriteBatch,
    read: ReadOptions,
    write: WriteOptions,
}

impl Session for DrumlinSession<'_> {
    type Cursor<'a>
        = DrumlinCursor
    where
        Self: 'a;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_cf(self.family, key, value, &self.write)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value)
    }

    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.delete(key)
    }

    fn batch_delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        self.batch.delete_range(begin, end)
    }

    fn batch_write(&mut self) -> Result<()> {
        let next = WriteBatch::with_capacity(self.batch.len());
        let full = std::mem::replace(&mut self.batch, next);
        self.db.write(full, &self.write)
    }

    #[inline]
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        // Looked at where it was written: not moved.
        let answer = self.db.get_cf(self.family, key, &self.read);
        match &answer {
            Ok(Some(value)) => on_value(value),
            Ok(None) => return Ok(false),
            Err(error) => return Err(error.duplicate()),
        }
        Ok(true)
    }

    fn multi_get(
        &mut self,
        keys: &[Vec<u8>],
        mut on_value: impl FnMut(usize, &[u8]),
    ) -> Result<usize> {
        let mut found = 0;
        let answers = self.db.multi_get_cf(self.family, keys, &self.read);
        for (index, answer) in answers.iter().enumerate() {
            match answer {
                Ok(Some(value)) => {
                    on_value(index, value);
                    found += 1;
                }
                Ok(None) => {}
                Err(error) => return Err(error.duplicate()),
            }
        }
        Ok(found)
    }

    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<DrumlinCursor> {
        let options = ReadOptions {
            lower_bound: lower.map(<[u8]>::to_vec),
            upper_bound: upper.map(<[u8]>::to_vec),
            ..self.read.clone()
        };
        Ok(DrumlinCursor {
            entries: self.db.iter_cf(self.family, options),
        })
    }
}

/// A walk over the default family.
#[derive(Debug)]
pub struct DrumlinCursor {
    entries: DbIterator,
}

impl Cursor for DrumlinCursor {
    #[inline]
    fn refresh(&mut self) -> Result<()> {
        self.entries.refresh()
    }
    fn seek_to_first(&mut self) {
        self.entries.seek_to_first();
    }
    fn seek_to_last(&mut self) {
        self.entries.seek_to_last();
    }
    #[inline]
    fn seek(&mut self, key: &[u8]) {
        self.entries.seek(key);
    }
    #[inline]
    fn next(&mut self) {
        self.entries.next();
    }
    #[inline]
    fn prev(&mut self) {
        self.entries.prev();
    }
    #[inline]
    fn valid(&self) -> bool {
        self.entries.valid()
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.entries.key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.entries.value()
    }
    fn status(&self) -> Result<()> {
        self.entries.status()
    }
}

#[cfg(test)]
mod tests {
    use drumlin::Codec;

    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<&str> = line.split_whitespace().collect();
        options(&Flags::parse(&words)?, &Env::system())
    }

    #[test]
    fn what_flags_leave_open_is_the_engines_choice() {
        let options = parse("").expect("sound flags");
        assert_eq!(options.memory_budget, None);
        assert_eq!(options.background_threads, None);
        assert_eq!(options.tuning.write_buffer_bytes, None);
        assert_eq!(options.tuning.filter_bits, Tuning::default().filter_bits);
        assert!(options.family.prefix_extractor.is_none());
    }

    #[test]
    fn a_peers_cache_and_memtables_become_one_budget() {
        let line = "--cache_size=1000000000 --write_buffer_size=268435456 \
                    --max_write_buffer_number=2 --bloom_bits=0 --compression_type=zstd \
                    --prefix_size=12";
        let options = parse(line).expect("sound flags");
        let expected = 1_000_000_000 + 2 * 268_435_456 + OTHER_BYTES;
        assert_eq!(options.memory_budget, Some(expected));
        assert_eq!(options.tuning.filter_bits, 0.0);
        assert_eq!(options.compression.codec, Codec::Zstd);
        assert!(options.family.prefix_extractor.is_some());
        let budget = parse("--cache_size=5 --memory_budget=7000000").expect("sound flags");
        assert_eq!(budget.memory_budget, Some(7_000_000));
        assert!(parse("--compression_type=brotli").is_err());
    }

    #[test]
    fn statistics_time_calls_as_their_level_says() {
        let timings = |line: &str| parse(line).map(|options| options.timings);
        assert_eq!(timings("--stats_level=5").ok(), Some(Timings::Jobs));
        assert_eq!(timings("--statistics").ok(), Some(Timings::Sampled));
        let level = |level: u32| timings(&format!("--statistics --stats_level={level}"));
        assert_eq!(level(2).ok(), Some(Timings::Jobs));
        assert_eq!(level(5).ok(), Some(Timings::Calls));
        assert!(level(6).is_err());
    }

    #[test]
    fn blob_files_follow_the_flags() {
        let blobs = |line: &str| parse(line).expect("sound flags").tuning.blob_from_bytes;
        assert_eq!(blobs(""), Tuning::default().blob_from_bytes);
        assert_eq!(blobs("--enable_blob_files=false"), Some(usize::MAX));
        assert_eq!(blobs("--min_blob_size=2000"), Some(2000));
        assert_eq!(blobs("--min_blob_size=0"), Some(1));
    }
}
