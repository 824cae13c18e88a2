//! The targets, one a file: each has a `run` that takes any bytes and panics to report.

pub(crate) mod batch;
pub(crate) mod blob;
pub(crate) mod canary;
pub(crate) mod coded_rows;
pub(crate) mod data_block;
pub(crate) mod database;
pub(crate) mod decompress;
pub(crate) mod expect;
pub(crate) mod filter_block;
pub(crate) mod index_block;
pub(crate) mod key_claims;
pub(crate) mod key_index;
pub(crate) mod manifest_edit;
pub(crate) mod manifest_replay;
pub(crate) mod memtable;
pub(crate) mod model;
pub(crate) mod model_frame;
pub(crate) mod names;
pub(crate) mod options_file;
pub(crate) mod properties;
pub(crate) mod range_tombstones;
pub(crate) mod rdb;
pub(crate) mod resp;
pub(crate) mod table;
pub(crate) mod users;
pub(crate) mod wal;
