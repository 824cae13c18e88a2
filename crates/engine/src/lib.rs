//! A persistent key-value store whose directories RocksDB can open.
//!
//! A program opens a [`Db`] and puts, gets, deletes and walks. A put goes through `write` (a leader
//! logs the group, applies and publishes it), a get through `read` (memtables, then the tables of
//! one pinned version, newest first); flushes and compactions run in the background and return what
//! they made to one room that installs it. `ARCHITECTURE.md` is the map.

#![forbid(unsafe_code)]

mod background;
pub mod batch;
mod blob_cache;
mod checkpoint;
mod column_family;
mod commit_queue;
pub mod compaction;
mod db;
mod disk_watch;
mod engine;
mod events;
mod explain;
mod families;
pub mod flush;
mod for_reads;
mod foreign;
mod held_files;
mod ingest;
pub mod iter;
mod job_models;
mod jobs;
mod leader;
mod made_files;
mod manual;
mod manual_queue;
mod merge_operators;
mod models;
pub mod names;
mod notices;
mod open;
mod options;
pub mod options_file;
mod pressure;
mod properties;
mod published;
pub mod range_tombstone;
pub mod read;
mod reader;
pub mod record;
mod repair;
mod repair_blobs;
mod resident_runs;
mod reuse;
pub mod snapshot;
mod space;
mod statistics;
mod stored_options;
pub mod super_version;
pub mod table_cache;
mod trash;
mod turns;
mod verify;
pub mod version;
mod vintage;
mod waits;
mod wal;
mod wal_dir;
mod wal_replay;
mod wal_supply;
mod write;

pub use batch::WriteBatch;
pub use column_family::{ColumnFamily, DEFAULT_FAMILY};
pub use compaction::CancelToken;
pub use compaction::{CompactionStyle, FifoOptions, UniversalOptions};
pub use db::Db;
pub use drumlin_base::operators::{CappedPrefix, FixedPrefix};
pub use drumlin_base::{
    CompactionFilter, Comparator, Error, ErrorKind, FilterDecision, KeyOrder, MergeOperator,
    PinnedSlice, PrefixExtractor, Result, SeqNo,
};
pub use drumlin_fs::{Env, RateLimit, machine};
pub use drumlin_table::{ChecksumKind, Codec, Compression, TableFormat, TableWriterOptions};
pub use events::{
    CompactionInfo, EventListener, FlushInfo, Health, RecoveryReport, WalCut, WalMend,
};
pub use ingest::SstFileWriter;
pub use merge_operators::{StringAppend, UInt64Add};
pub use options::{DirectoryFormat, FamilyOptions, Options, ReadOptions, Tuning, WriteOptions};
pub use read::DbIterator;
pub use repair::RepairReport;
pub use snapshot::Snapshot;
pub use statistics::Statistics;
pub use verify::VerifyReport;
pub use waits::{WaitCause, Waits, WaitsByCause};
