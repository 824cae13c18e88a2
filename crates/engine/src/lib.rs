//! A persistent key-value store whose directories RocksDB can open.

pub mod batch;
pub mod names;
pub mod version;
