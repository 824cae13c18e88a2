//! RocksDB and LevelDB as oracles: their C libraries and command-line tools behind safe wrappers, and
//! checks that each engine reads the other's files, row for row.
//!
//! For tests only. The libraries are Debian's (`librocksdb` 7.8, `libleveldb` 1.23), linked
//! dynamically; `make deps` installs them with the tools. Every wrapper is used by one thread.

mod leveldb;
mod leveldb_ffi;
mod memory;
mod ours;
mod rocks;
mod rocks_backups;
mod rocks_changes;
mod rocks_ffi;
mod rocks_files;
mod rocks_options;
mod rows;
mod tools;
mod workload;

pub use leveldb::{LevelDb, LevelOptions};
pub use ours::{check_ours, check_ours_in, ours_rows, small};
pub use rocks::{Families, Rocks, Scan};
pub use rocks_backups::{RocksBackup, RocksBackups};
pub use rocks_changes::Updates;
pub use rocks_files::{RocksSstWriter, RocksTransactions};
pub use rocks_options::load_latest_options;
pub use rows::{Rows, assert_rows, key, numbered, value};
pub use tools::{Ran, db_bench, ldb, ldb_scan, run, sst_dump};
pub use workload::{Op, Operators, apply_ours, apply_rocks, random_op};
