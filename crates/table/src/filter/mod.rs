//! Filters: small summaries that say "surely not here" about a key before its block is read.
//!
//! - [`bloom`]: RocksDB's Bloom filter of one cache line a key, the one written; and its older one.
//! - [`ribbon`]: RocksDB's Ribbon filter, only read.
//! - [`leveldb`]: LevelDB's filter block, one small Bloom filter for each 2 KiB of data.
//! - [`xxph3`]: the hash of RocksDB's filters.
//! - [`reader`]: picks the right one from a filter's last five bytes.
//!
//! Invariant: a key that was added is never denied. A filter that a reader does not understand
//! counts as "maybe", which costs a read; a wrong "no" would lose data silently, so every hash and
//! every bit here is pinned by vectors taken from RocksDB's and LevelDB's own files.

pub mod bloom;
pub mod leveldb;
pub mod reader;
pub mod ribbon;
pub mod xxph3;

pub use bloom::FilterBuilder;
pub use leveldb::{LevelDbFilterBuilder, LevelDbFilterReader};
pub use reader::{FilterReader, Spot};
pub use xxph3::hash;

/// Metaindex name of a filter over the whole table.
pub const FULL_FILTER_NAME: &str = "fullfilter.rocksdb.BuiltinBloomFilter";
/// Metaindex name of the top-level index of filter partitions.
pub const PARTITIONED_FILTER_NAME: &str = "partitionedfilter.rocksdb.BuiltinBloomFilter";
/// Metaindex name of LevelDB's filter block.
pub const LEVELDB_FILTER_NAME: &str = "filter.leveldb.BuiltinBloomFilter2";
/// Value of property `rocksdb.filter.policy` for the filters written here.
pub const FILTER_POLICY_NAME: &str = "bloomfilter";
