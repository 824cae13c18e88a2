//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use drumlin_base::{Error, Result};
use drumlin_bench::Flags;

use crate::compare::{Contest, Line};
use crate::curve;
use crate::engines::Engine;
use crate::watched::{self, Load};

/// The lines a comparison runs unless told otherwise.
const LINES: &str = "fillseq,fillrandom,overwrite,readrandom,readseq,readreverse,seekrandom,\
                     multireadrandom,compact,readrandom,readseq,readreverse,seekrandom,\
                     fillrandom@2,readrandom@2";

/// Minutes for a line unless told otherwise: many times what any took.
const LIMIT_MINUTES: u64 = 240;

/// Drumlin's workloads on other engines.
#[derive(Debug, Parser)]
#[command(name = "peers", about)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run workloads on one engine, under db_bench's flags.
    Bench(BenchArgs),
    /// Do what `drumlin lab` asks on standard input, with one engine.
    Agent {
        /// The engine.
        #[arg(long)]
        engine: Engine,
    },
    /// Run workloads on several engines in turn and print a table.
    Compare(CompareArgs),
    /// Random writes from several threads with a full compaction in the middle, watched second by
    /// second, on one engine after the other.
    Stall(WatchArgs),
    /// Many overwrites of a filled store, watched second by second: does it keep its pace?
    Sustain(WatchArgs),
    /// Cost against size: lines at several numbers of entries, as a table and a drawing.
    Curve(CurveArgs),
    /// Hand a directory with large values to RocksDB and back, twice, and compare everything.
    #[cfg(feature = "rocksdb")]
    CheckBlobs {
        /// Directory for the database. One that is there is destroyed.
        dir: PathBuf,
    },
    /// Write small databases by the peers, for the engine's tests to read.
    Fixture {
        /// Directory to write to; one directory an engine is made there.
        #[arg(long)]
        out: PathBuf,
    },
}

/// The engines a comparison has unless told otherwise.
const ENGINES: &str = if cfg!(feature = "rocksdb") {
    "drumlin,rocksdb,leveldb,fjall,lmdb"
} else {
    "drumlin,leveldb,fjall,lmdb"
};

/// `peers bench`
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// drumlin, rocksdb, leveldb, fjall, redb or lmdb. Comes first.
    #[arg(long)]
    pub(crate) engine: Engine,
    /// db_bench's flags, as `drumlin bench` has them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) flags: Vec<String>,
}

/// The engines a watched load has unless told otherwise.
const WATCHED: &str = if cfg!(feature = "rocksdb") {
    "drumlin,rocksdb,rocksdb-blobs"
} else {
    "drumlin,leveldb,fjall"
};

/// `peers stall` and `peers sustain`
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// The engines, one after the other.
    #[arg(long, value_delimiter = ',', default_value = WATCHED)]
    engines: Vec<Engine>,
    /// Bytes a value; several make several tables.
    #[arg(long, value_delimiter = ',', default_value = "10000")]
    value_size: Vec<usize>,
    /// Bytes of keys and values in the store once every key was written.
    #[arg(long, default_value_t = 5_000_000_000)]
    store_bytes: u64,
    /// Writing threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Seconds; 0: by --writes (stall: 60).
    #[arg(long, default_value_t = 0)]
    duration: u64,
    /// Overwrites of all threads (sustain).
    #[arg(long, default_value_t = 20_000_000)]
    writes: u64,
    /// How often all of it is done.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Directory for the stores.
    #[arg(long, default_value = "/tmp/drumlin-peers")]
    dir: PathBuf,
    /// Minutes that one engine may take for one line or load. What takes longer hangs: it is ended and
    /// named, and this program fails.
    #[arg(long, default_value_t = LIMIT_MINUTES, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    time_limit: u64,
    /// Also write the tables to this path with .md and everything with .json.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// More of db_bench's flags, after `--`.
    #[arg(last = true)]
    flags: Vec<String>,
}

impl WatchArgs {
    /// What to run. Memtables have each engine's own size and number unless a flag sets them.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown flag.
    pub(crate) fn contest(&self, load: Load) -> Result<watched::Contest> {
        let flags = |value_size: &usize| {
            let entry_bytes = *value_size as u64 + KEY_BYTES;
            let mut words = vec![
                format!("--num={}", (self.store_bytes / entry_bytes).max(1)),
                format!("--value_size={value_size}"),
                format!("--threads={}", self.threads),
                format!("--duration={}", self.duration),
                format!("--writes={}", self.writes / self.threads.max(1) as u64),
                "--cache_size=268435456".to_owned(),
                "--write_buffer_size=67108864".to_owned(),
                "--compression_type=none".to_owned(),
                "--bloom_bits=10".to_owned(),
                "--max_background_jobs=2".to_owned(),
                "--statistics".to_owned(),
                "--seed=1".to_owned(),
            ];
            words.extend(self.flags.iter().cloned());
            Flags::parse(&words)
        };
        Ok(watched::Contest {
            load,
            engines: self.engines.clone(),
            rounds: self.rounds.max(1),
            dir: self.dir.clone(),
            limit: Duration::from_secs(60 * self.time_limit),
            flags: self.value_size.iter().map(flags).collect::<Result<_>>()?,
            more_flags: self.flags.clone(),
        })
    }
}

/// Bytes of a key unless a flag says otherwise.
const KEY_BYTES: u64 = 16;

/// `peers curve`
#[derive(Debug, clap::Args)]
pub(crate) struct CurveArgs {
    /// The engines.
    #[arg(long, value_delimiter = ',', default_value = CURVED)]
    engines: Vec<Engine>,
    /// The lines.
    #[arg(long, default_value = "fillrandom,overwrite,readrandom")]
    benchmarks: String,
    /// Numbers of entries, ascending.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000000,10000000,100000000"
    )]
    sizes: Vec<u64>,
    /// Random reads at each size.
    #[arg(long, default_value_t = 1_000_000)]
    reads: u64,
    /// How often each size is measured.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Bytes of the block cache.
    #[arg(long, default_value_t = 1 << 30)]
    cache_size: i64,
    /// Bytes of a memtable.
    #[arg(long, default_value_t = 64 << 20)]
    write_buffer_size: u64,
    /// Directory for the stores.
    #[arg(long, default_value = "/tmp/drumlin-peers")]
    dir: PathBuf,
    /// Minutes that one engine may take for one line or load. What takes longer hangs: it is ended and
    /// named, and this program fails.
    #[arg(long, default_value_t = LIMIT_MINUTES, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    time_limit: u64,
    /// Also write the table to this path with .md and .json, and the drawing with .svg.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// More of db_bench's flags, after `--`.
    #[arg(last = true)]
    flags: Vec<String>,
}

/// The engines a curve has unless told otherwise.
const CURVED: &str = if cfg!(feature = "rocksdb") {
    "drumlin,rocksdb"
} else {
    "drumlin,leveldb"
};

impl CurveArgs {
    /// What to measure.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown line or flag, no size.
    pub(crate) fn contest(&self) -> Result<curve::Contest> {
        if self.sizes.is_empty() {
            return Err(Error::invalid_argument("--sizes needs at least one number"));
        }
        let contest = |entries: &u64| {
            let mut flags = vec![format!("--reads={}", self.reads)];
            flags.extend(self.flags.iter().cloned());
            let compare = CompareArgs {
                engines: self.engines.clone(),
                benchmarks: self.benchmarks.clone(),
                num: *entries,
                rounds: self.rounds,
                cache_size: self.cache_size,
                write_buffer_size: self.write_buffer_size,
                multiread_batch: 32,
                dir: self.dir.clone(),
                time_limit: self.time_limit,
                out: None,
                db_bench: None,
                flags,
            };
            compare.contest()
        };
        Ok(curve::Contest {
            sizes: self.sizes.iter().map(contest).collect::<Result<_>>()?,
        })
    }
}

/// `peers compare`
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// The engines, in the order of the columns.
    #[arg(long, value_delimiter = ',', default_value = ENGINES)]
    engines: Vec<Engine>,
    /// The lines; `name@2` runs two threads.
    #[arg(long, default_value = LINES)]
    benchmarks: String,
    /// Entries, and operations a thread.
    #[arg(long, default_value_t = 10_000_000)]
    num: u64,
    /// How often all of it is done.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Bytes of the block cache.
    #[arg(long, default_value_t = 1 << 30)]
    cache_size: i64,
    /// Bytes of a memtable.
    #[arg(long, default_value_t = 256 << 20)]
    write_buffer_size: u64,
    /// Keys of one multi-get in multireadrandom.
    #[arg(long, default_value_t = 32)]
    multiread_batch: usize,
    /// Directory for the stores.
    #[arg(long, default_value = "/tmp/drumlin-peers")]
    dir: PathBuf,
    /// Minutes that one engine may take for one line or load. What takes longer hangs: it is ended and
    /// named, and this program fails.
    #[arg(long, default_value_t = LIMIT_MINUTES, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    time_limit: u64,
    /// Also write the tables to this path with .md and .json.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Also run a db_bench process (named, or `db_bench`) under the same flags.
    #[arg(long, num_args = 0..=1, default_missing_value = "db_bench")]
    db_bench: Option<String>,
    /// More of db_bench's flags, after `--`.
    #[arg(last = true)]
    flags: Vec<String>,
}

impl CompareArgs {
    /// What to compare.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown line or flag.
    pub(crate) fn contest(&self) -> Result<Contest> {
        let mut words = vec![
            format!("--num={}", self.num),
            format!("--cache_size={}", self.cache_size),
            format!("--write_buffer_size={}", self.write_buffer_size),
            "--compression_type=none".to_owned(),
            "--bloom_bits=10".to_owned(),
            "--max_background_jobs=2".to_owned(),
            "--seed=1".to_owned(),
        ];
        words.extend(self.flags.iter().cloned());
        Ok(Contest {
            engines: self.engines.clone(),
            lines: Line::parse_all(&self.benchmarks)?,
            rounds: self.rounds.max(1),
            dir: self.dir.clone(),
            limit: Duration::from_secs(60 * self.time_limit),
            flags: Flags::parse(&words)?,
            multiread_batch: self.multiread_batch.max(1),
            db_bench: self.db_bench.clone(),
        })
    }
}
