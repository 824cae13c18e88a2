//! A persistent key-value store whose directories RocksDB can open.

pub mod batch;
pub mod compaction;
pub mod iter;
pub mod names;
pub mod options_file;
pub mod read;
pub mod record;
pub mod snapshot;
pub mod super_version;
pub mod table_cache;
pub mod version;
