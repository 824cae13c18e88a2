//! db_bench's flags, parsed as gflags parses them.
//!
//! `--name=value`, `--name value`, `-name` and, for switches, `--name`, `--noname` and
//! `--name=false`. Names have underscores; dashes are taken for them. A flag that db_bench has but
//! that has no meaning here is accepted and listed, so that a peer's command line can be used
//! unchanged; an unknown flag is an error.

use drumlin_base::{Error, Result};

/// A type a flag can have.
trait FlagValue: Sized {
    /// Whether the flag may stand without a value.
    const SWITCH: bool = false;
    fn parse(text: &str) -> Option<Self>;
    fn show(&self) -> String;
}

macro_rules! parsed_flag_value {
    ($($kind:ty),*) => {$(
        impl FlagValue for $kind {
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
parsed_flag_value!(i64, u64, u32, usize, f64, String);

impl FlagValue for bool {
    const SWITCH: bool = true;
    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" | "y" => Some(true),
            "false" | "f" | "0" | "no" | "n" => Some(false),
            _ => None,
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! flags {
    ($($name:ident: $kind:ty = $default:expr, $help:literal;)*) => {
        /// The workloads, the store and its options. The fields are the flags of the same names.
        #[derive(Clone, Debug)]
        pub struct Flags {
            $(#[doc = $help] pub $name: $kind,)*
            /// Flags given that db_bench has and that mean nothing here.
            pub without_effect: Vec<String>,
            /// Flags the command line had, by name.
            pub given: Vec<&'static str>,
        }

        impl Default for Flags {
            fn default() -> Self {
                Self {
                    $($name: $default,)*
                    without_effect: Vec::new(),
                    given: Vec::new(),
                }
            }
        }

        impl Flags {
            /// Whether `name` is a switch; `None` if there is no such flag.
            fn is_switch(name: &str) -> Option<bool> {
                match name {
                    $(stringify!($name) => Some(<$kind as FlagValue>::SWITCH),)*
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, value: &str) -> Result<()> {
                match name {
                    $(stringify!($name) => {
                        self.$name = <$kind as FlagValue>::parse(value).ok_or_else(|| {
                            Error::invalid_argument(format!(
                                "--{name} takes a {}, not '{value}'",
                                stringify!($kind).to_lowercase(),
                            ))
                        })?;
                        self.given.push(stringify!($name));
                    })*
                    _ => return Err(unknown(name)),
                }
                Ok(())
            }

            /// Every flag with its default and meaning, one a line.
            pub fn help() -> String {
                let flags = Self::default();
                let mut text = String::new();
                $(text.push_str(&format!(
                    "  --{}={}\n        {}\n",
                    stringify!($name),
                    flags.$name.show(),
                    $help,
                ));)*
                text
            }
        }
    };
}

flags! {
    benchmarks: String = "fillseq,fillrandom,overwrite,readrandom,readseq,readreverse,compact,readrandom,readseq,readreverse".to_owned(),
        "Workloads to run, in order, separated by commas. `name[X5-W1]` runs one five times after one warm-up.";
    db: String = String::new(), "Directory of the database. Fills empty it unless --use_existing_db; a store that no benchmark made is refused.";
    use_existing_db: bool = false, "Keep what is in the directory; workloads that start afresh are skipped.";
    overwrite_existing_store: bool = false, "Empty the directory although the store in it was made by no benchmark.";
    num: u64 = 1_000_000, "Keys in the key space, and operations a thread unless told otherwise.";
    reads: i64 = -1, "Reads a thread; negative: --num.";
    writes: i64 = -1, "Writes a thread; negative: --num.";
    deletes: i64 = -1, "Deletions a thread; negative: --num.";
    range_tombstone_width: u64 = 100, "Keys in each range that deleterange deletes.";
    duration: u64 = 0, "Seconds for random workloads instead of a count of operations; 0: by count.";
    ops_between_duration_checks: u64 = 1000, "Operations between two looks at the clock under --duration.";
    records: String = String::new(), "A file of `key TAB value` lines whose entries are written and read instead of made-up ones; --num of them at most.";
    key_size: usize = 16, "Bytes a key.";
    value_size: usize = 100, "Bytes a value.";
    compression_ratio: f64 = 0.5, "Size to which the generated values can be compressed.";
    prefix_size: usize = 0, "Bytes of the prefix that prefix filters (and --keys_per_prefix) use; 0: none.";
    keys_per_prefix: u64 = 0, "Keys that share a prefix; 0: keys carry none of their own.";
    threads: usize = 1, "Threads that run the workload; those named whilewriting add one that writes.";
    batch_size: usize = 1, "Operations a write batch or multi-get.";
    seed: u64 = 0, "Seed of all random draws; 0: one from the clock, printed.";
    sync: bool = false, "Make every write durable before it returns.";
    disable_wal: bool = false, "Write without the log.";
    histogram: bool = false, "Time each operation and print the distribution.";
    statistics: bool = false, "Print the engine's counters and times at the end.";
    stats_level: u32 = 3, "Which times --statistics keeps: up to 2 those of jobs, 3 and 4 those of a sample of calls too, 5 those of all calls.";
    compression_type: String = "snappy".to_owned(), "none, snappy, zlib, bzip2, lz4, lz4hc or zstd.";
    compression_level: i64 = 32_767, "Level for codecs that have one; 32767: the codec's own default.";
    compression_max_dict_bytes: u32 = 0, "Bytes of the compression dictionary a table; 0: none.";
    write_buffer_size: u64 = 0, "Bytes of a memtable; 0: derived from the memory budget.";
    memtablerep: String = "skip_list".to_owned(), "skip_list, prefix_hash, hash_linkedlist or vector, which a peer chooses between; all name the one memtable there is, ordered and with a filter over keys and prefixes.";
    max_write_buffer_number: usize = 0, "Memtables at once, active and waiting; 0: the engine's choice.";
    cache_size: i64 = -1, "Bytes for cached blocks; negative: derived from the memory budget.";
    memory_budget: u64 = 0, "Bytes for everything the database keeps in memory (Drumlin only); 0: derived from the machine.";
    bloom_bits: f64 = -1.0, "Filter bits a key; 0: no filters; negative: the engine's choice.";
    block_size: usize = 4096, "Bytes of a table block before compression; also the unit of the codec workloads.";
    target_file_size_base: u64 = 0, "Bytes of a table file; 0: the engine's choice.";
    max_bytes_for_level_base: u64 = 0, "Bytes of level 1; 0: the engine's choice.";
    max_bytes_for_level_multiplier: f64 = 0.0, "Growth from level to level; 0: the engine's choice.";
    level0_file_num_compaction_trigger: usize = 0, "Level-0 files that start a compaction; 0: the engine's choice.";
    level0_slowdown_writes_trigger: usize = 0, "Level-0 files that slow writes; 0: the engine's choice.";
    level0_stop_writes_trigger: usize = 0, "Level-0 files that stop writes; 0: the engine's choice.";
    compaction_style: u32 = 0, "0: leveled; 1: universal; 2: FIFO; 3: none.";
    universal_size_ratio: u32 = 0, "Percent by which an older run may be larger and still be merged; 0: 1.";
    universal_min_merge_width: usize = 0, "Fewest runs merged for their size; 0: 2.";
    universal_max_merge_width: usize = 0, "Most runs merged at once; 0: no limit.";
    universal_max_size_amplification_percent: u32 = 0, "Wasted space, in percent, that merges everything; 0: 100.";
    fifo_compaction_max_table_files_size_mb: u64 = 0, "MiB of tables from which FIFO drops the oldest; 0: 1024.";
    fifo_compaction_ttl: u64 = 0, "Seconds after which FIFO drops a table; 0: never.";
    fifo_compaction_allow_compaction: bool = true, "FIFO merges small tables.";
    disable_auto_compactions: bool = false, "Compact only when asked.";
    enable_blob_files: bool = false, "Keep large values in blob files; Drumlin does so by itself, --enable_blob_files=false stops it.";
    min_blob_size: i64 = -1, "Bytes from which values go to blob files; negative: the engine's choice.";
    max_background_jobs: usize = 0, "Background threads; 0: the engine's choice.";
    use_plain_table: bool = false, "Write plain tables, for data in memory, instead of block-based ones.";
    use_data_block_hash_index: bool = false, "Write hash indexes into data blocks (RocksDB only: blocks here are searched by the prefixes of their keys).";
    block_restart_interval: usize = 16, "Entries of a data block of which one has its key whole.";
    mmap_read: bool = false, "Map tables instead of caching their blocks (RocksDB only: plain tables here are mapped where they lie in memory).";
    use_searchable_table: bool = false, "Write searchable tables to the last levels, instead of block-based ones.";
    prefix_same_as_start: bool = false, "Iterators stay within the prefix of --prefix_size that they sought.";
    open_files: i64 = -1, "Table files open at once; negative: no bound.";
    wal_dir: String = String::new(), "Directory of the log; empty: the database's.";
    verify_checksum: bool = true, "Check block checksums on reads.";
    refresh_iterators: bool = false, "seekrandom keeps one iterator and refreshes it before each seek, instead of a new one each time.";
    seek_nexts: u64 = 0, "Entries read after each seek of seekrandom.";
    reverse_iterator: bool = false, "seekrandom goes backward.";
    max_scan_distance: u64 = 0, "Bound seekrandom's iterators this many keys away; 0: no bound.";
    multiread_stride: u64 = 0, "Distance between the keys of a multi-get; 0: each is drawn.";
    read_random_exp_range: f64 = 0.0, "Skew of random reads; 0: uniform.";
    rate_limiter_bytes_per_sec: u64 = 0, "Bytes a second that flushes and compactions write; 0: no limit.";
    rate_limiter_auto_tuned: bool = false, "Treat --rate_limiter_bytes_per_sec as the most, and follow what is needed.";
    use_direct_reads: bool = false, "Reads pass the page cache by.";
    use_direct_io_for_flush_and_compaction: bool = false, "Flushes and compactions pass the page cache by.";
    benchmark_write_rate_limit: u64 = 0, "Bytes a second written by fills and by the writer of readwhilewriting; 0: no limit.";
    finish_after_writes: bool = false, "readwhilewriting ends after --writes writes, not with its readers.";
    compact_at: i64 = -1, "Second at which stall asks for a full compaction; negative: the middle; 0: never.";
    report_path: String = String::new(), "Where stall and sustain also put their report, with .json and .md; empty: nowhere.";
    report_interval_seconds: u64 = 0, "Seconds between lines of --report_file; 0: no report.";
    report_file: String = "report.csv".to_owned(), "File of the interval report: secs_elapsed,interval_qps.";
}

/// Flags of db_bench 7.8 and 11.8 that describe parts this engine does not have, or has without a
/// choice. Each is accepted with any value.
const WITHOUT_EFFECT: &[&str] = &[
    "adaptive_readahead",
    "allow_concurrent_memtable_write",
    "allow_mmap_reads",
    "async_io",
    "bloom_locality",
    "bytes_per_sync",
    "cache_high_pri_pool_ratio",
    "cache_index_and_filter_blocks",
    "cache_numshardbits",
    "cache_type",
    "checksum_type",
    "compaction_readahead_size",
    "compression_parallel_threads",
    "compression_zstd_max_train_bytes",
    "delayed_write_rate",
    "enable_pipelined_write",
    "format_version",
    "hard_pending_compaction_bytes_limit",
    "index_shortening_mode",
    "key_id_range",
    "level_compaction_dynamic_level_bytes",
    "max_background_compactions",
    "max_background_flushes",
    "max_subcompactions",
    "memtable_bloom_size_ratio",
    "min_level_to_compress",
    "min_write_buffer_number_to_merge",
    "mmap_write",
    "num_levels",
    "optimize_filters_for_hits",
    "partition_index",
    "partition_index_and_filters",
    "perf_level",
    "pin_l0_filter_and_index_blocks_in_cache",
    "pin_top_level_index_and_filter",
    "progress_reports",
    "readahead_size",
    "report_bg_io_stats",
    "soft_pending_compaction_bytes_limit",
    "stats_dump_period_sec",
    "stats_interval",
    "stats_interval_seconds",
    "stats_per_interval",
    "subcompactions",
    "total_order_seek",
    "transaction_db",
    "wal_bytes_per_sync",
    "whole_key_filtering",
    "writable_file_max_buffer_size",
];

/// Kinds of memtables that db_bench knows. The engine's one kind serves the purposes of all: point
/// lookups, lookups within a prefix, and order.
const MEMTABLES: &[&str] = &["skip_list", "prefix_hash", "hash_linkedlist", "vector"];
/// Those that hash prefixes.
const HASHED_MEMTABLES: &[&str] = &["prefix_hash", "hash_linkedlist"];

fn unknown(name: &str) -> Error {
    Error::invalid_argument(format!(
        "there is no flag --{name}; `drumlin bench --help` lists them"
    ))
}

impl Flags {
    /// Parses `arguments`, without the program's name.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown flag, a missing or malformed value, a word that is no flag.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Self> {
        let mut flags = Self::default();
        let mut words = arguments.iter().map(AsRef::as_ref).peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                let message = format!("'{word}' is not a flag; flags are --name=value");
                return Err(Error::invalid_argument(message));
            };
            let (name, attached) = match flag.split_once('=') {
                Some((name, value)) => (name.replace('-', "_"), Some(value)),
                None => (flag.replace('-', "_"), None),
            };
            if WITHOUT_EFFECT.contains(&name.as_str()) {
                if attached.is_none() {
                    words.next_if(|next| !next.starts_with('-'));
                }
                flags.without_effect.push(name);
                continue;
            }
            match (Self::is_switch(&name), attached) {
                (Some(_), Some(value)) => flags.set(&name, value)?,
                (Some(true), None) => flags.set(&name, "true")?,
                (Some(false), None) => {
                    let value = words.next().ok_or_else(|| {
                        Error::invalid_argument(format!("--{name} needs a value"))
                    })?;
                    flags.set(&name, value)?;
                }
                (None, None) => match name.strip_prefix("no") {
                    Some(switch) if Self::is_switch(switch) == Some(true) => {
                        flags.set(switch, "false")?;
                    }
                    _ => return Err(unknown(&name)),
                },
                (None, Some(_)) => return Err(unknown(&name)),
            }
        }
        flags.check()?;
        Ok(flags)
    }

    /// Rejects flags that no workload could serve.
    fn check(&self) -> Result<()> {
        let complaint = if self.key_size == 0 {
            "--key_size must be at least 1"
        } else if self.num == 0 {
            "--num must be at least 1"
        } else if self.threads == 0 || self.threads > 1024 {
            "--threads must be 1 to 1024"
        } else if self.batch_size == 0 {
            "--batch_size must be at least 1"
        } else if self.block_restart_interval == 0 {
            "--block_restart_interval must be at least 1"
        } else if self.keys_per_prefix > 0 && self.prefix_size == 0 {
            "--keys_per_prefix needs a --prefix_size"
        } else if !MEMTABLES.contains(&self.memtablerep.as_str()) {
            "--memtablerep must be skip_list, prefix_hash, hash_linkedlist or vector"
        } else if HASHED_MEMTABLES.contains(&self.memtablerep.as_str()) && self.prefix_size == 0 {
            "--memtablerep=prefix_hash and hash_linkedlist need a --prefix_size"
        } else if !(0.0..=1.0).contains(&self.compression_ratio) {
            "--compression_ratio must be 0 to 1"
        } else {
            return Ok(());
        };
        Err(Error::invalid_argument(complaint))
    }

    /// Whether the command line had `name`, so that its value is no default.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains(&name)
    }

    /// Reads a thread does.
    pub fn reads_per_thread(&self) -> u64 {
        u64::try_from(self.reads).unwrap_or(self.num)
    }

    /// The compression level asked for, if one was.
    pub fn level(&self) -> Option<i32> {
        i32::try_from(self.compression_level)
            .ok()
            .filter(|level| *level != 32_767)
    }

    /// Deletions a thread does.
    pub fn deletes_per_thread(&self) -> u64 {
        u64::try_from(self.deletes).unwrap_or(self.num)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_giving_a_value_are_understood() {
        let line = "--num=5 --key_size 20 -threads=3 --value-size 7 --reads -1";
        let words: Vec<&str> = line.split(' ').collect();
        let flags = Flags::parse(&words).expect("sound flags");
        assert_eq!(
            (flags.num, flags.key_size, flags.threads, flags.value_size),
            (5, 20, 3, 7)
        );
        assert_eq!(flags.reads_per_thread(), 5);
        assert!(flags.is_given("value_size") && !flags.is_given("seed"));
    }

    #[test]
    fn switches_stand_alone_and_can_be_turned_off() {
        let flags = Flags::parse(&["--histogram", "--sync=1", "--noverify_checksum"]);
        let flags = flags.expect("sound flags");
        assert!(flags.histogram && flags.sync && !flags.verify_checksum);
        let flags = Flags::parse(&["--histogram", "--histogram=false"]).expect("sound flags");
        assert!(!flags.histogram);
    }

    #[test]
    fn a_peers_flags_without_meaning_here_are_accepted_and_listed() {
        let line = [
            "--memtable_bloom_size_ratio=0.1",
            "--num_levels",
            "6",
            "--mmap_write",
            "--num=9",
        ];
        let flags = Flags::parse(&line).expect("accepted");
        assert_eq!(
            flags.without_effect,
            ["memtable_bloom_size_ratio", "num_levels", "mmap_write"]
        );
        assert_eq!(flags.num, 9);
    }

    #[test]
    fn mistakes_are_refused_with_a_sentence() {
        for (words, sentence) in [
            (&["--nmu=5"][..], "there is no flag --nmu"),
            (&["--num=five"], "--num takes a u64, not 'five'"),
            (&["--num"], "--num needs a value"),
            (&["num=5"], "'num=5' is not a flag"),
            (&["--key_size=0"], "--key_size must be at least 1"),
            (&["--keys_per_prefix=10"], "needs a --prefix_size"),
            (
                &["--memtablerep=prefix_hsah"],
                "must be skip_list, prefix_hash",
            ),
            (&["--memtablerep=prefix_hash"], "need a --prefix_size"),
        ] {
            let error = Flags::parse(words).expect_err("a mistake").to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }
}
