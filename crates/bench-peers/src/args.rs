//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::engines::Engine;

/// Drumlin's workloads on other engines.
#[derive(Debug, Parser)]
#[command(name = "peers", about)]
pub(crate) struct Args {
    /// The task.
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// The tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run workloads on one engine, under db_bench's flags.
    Bench(BenchArgs),
    /// Carry out the requests of `drumlin lab` from standard input, with one engine.
    Agent {
        /// The engine.
        #[arg(long)]
        engine: Engine,
    },
    /// Hand a directory with large values to RocksDB and back, twice, and compare everything.
    #[cfg(feature = "rocksdb")]
    CheckBlobs {
        /// Directory for the database. One that is there is destroyed.
        dir: PathBuf,
    },
    /// Ask for ranks in a sorted set, as Kvrocks finds them.
    #[cfg(feature = "rocksdb")]
    KvrocksRanks(RanksArgs),
    /// Write small databases by the peers, for the engine's tests to read.
    Fixture {
        /// Directory to write to; one directory an engine is made there.
        #[arg(long)]
        out: PathBuf,
    },
}

/// `peers kvrocks-ranks`
#[cfg(feature = "rocksdb")]
#[derive(Debug, clap::Args)]
pub(crate) struct RanksArgs {
    /// The database; filled and compacted if it is empty or missing.
    pub(crate) dir: PathBuf,
    /// Members of the sorted set.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) members: u64,
    /// Ranks to ask for.
    #[arg(long, default_value_t = 20)]
    pub(crate) lookups: u64,
    /// Chooses the members.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

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
