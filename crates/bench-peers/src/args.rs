//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use drumlin_base::Result;
use drumlin_bench::Flags;

use crate::compare::{Contest, Line};
use crate::engines::Engine;

/// The lines a comparison runs unless told otherwise.
const LINES: &str = "fillseq,fillrandom,overwrite,readrandom,readseq,readreverse,seekrandom,\
                     multireadrandom,compact,readrandom,readseq,readreverse,seekrandom,\
                     fillrandom@2,readrandom@2";

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
    /// Run workloads on several engines in turn and print a table.
    Compare(CompareArgs),
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
            flags: Flags::parse(&words)?,
            multiread_batch: self.multiread_batch.max(1),
            db_bench: self.db_bench.clone(),
        })
    }
}
