//! A persistent key-value store whose directories RocksDB can open.
//!
//! A program opens a [`Db`] and puts, gets, deletes and walks. A put goes through `write` (a leader
//! logs the group, applies and publishes it), a get through `read` (memtables, then the tables of
//! one pinned version, newest first); flushes and compactions run in the background and return what
//! they made to one module that installs it. `ARCHITECTURE.md` is the map.

#![forbid(unsafe_code)]

mod background;
mod caches;
mod compaction;
mod db;
mod family;
mod files;
mod iter;
mod maintenance;
mod options;
mod read;
mod store;
mod txn;
mod version;
mod wal;
mod watch;
#[doc(hidden)]
mod write;

/// Internals that this project's own tools and tests use. No part of the interface: anything here may
/// change with any version.
#[doc(hidden)]
pub mod internals {
    /// Compaction styles as text.
    pub mod compaction {
        pub use crate::compaction::style_text;
    }
    /// Meta files of backups.
    pub mod backup_meta {
        pub use crate::maintenance::backup::meta::{Meta, MetaFile};
    }
    /// Times behind values.
    pub mod ttl {
        pub use crate::family::ttl::{EARLIEST, LATEST, Ttl, compaction_filter, merge_operator};
    }
    /// Versions, edits, the MANIFEST.
    pub mod version {
        pub use crate::version::*;
    }
    pub use crate::files::names;
    pub use crate::iter::range_tombstone;
    pub use crate::options::file as options_file;
    pub use crate::wal::record;
    /// The file LOG.
    pub mod info_log {
        pub use crate::watch::info_log::{InfoLog, InfoLogOptions, Level};
    }
    pub use crate::write::batch;
}

pub use compaction::CancelToken;
pub use compaction::{CompactionStyle, FifoOptions, UniversalOptions};
pub use db::budget::Budget;
pub use db::changes::{ChangeBatch, ChangeEntry, Changes, ChangesOptions};
pub use db::codec::{KeyCodec, ValueCodec};
pub use db::family_copy::ImportOptions;
pub use db::family_handle::FamilyHandle;
pub use db::follower::{FollowOptions, Follower, Lag};
pub use db::handle::Db;
pub use db::range::{Entry, Keys, Range};
pub use db::typed::{TypedFamily, TypedRange};
pub use db::view::View;
pub use db::weak::WeakDb;
pub use drumlin_base::histogram::Times;
pub use drumlin_base::operators::{CappedPrefix, FixedPrefix};
pub use drumlin_base::{
    Account, CompactionFilter, CompactionFilterFactory, Comparator, Error, ErrorKind,
    FilterDecision, FilterJob, KeyOrder, MergeOperator, PinnedSlice, PrefixExtractor, Reclaim,
    Result, SeqNo,
};
pub use drumlin_fs::{Env, RateLimit, machine};
pub use drumlin_table::{
    ChecksumKind, Codec, Compression, ReadTier, TableFormat, TableProperties, TableWriterOptions,
};
pub use family::column_family::{ColumnFamily, DEFAULT_FAMILY};
pub use family::merge_operators::{StringAppend, UInt64Add};
pub use family::snapshot::Snapshot;
pub use maintenance::backup::backups::{BackupInfo, Backups};
pub use maintenance::backup::check::{BackupCheck, CheckDepth};
pub use maintenance::backup::create::{BackupOptions, CreatedBackup, LeavesOut};
pub use maintenance::backup::remove::RemovedBackups;
pub use maintenance::backup::restore::{RestoreOptions, RestoredBackup};
pub use maintenance::backup::transfer::{ProgressListener, TransferOptions, TransferProgress};
pub use maintenance::compact_files::CompactFilesOptions;
pub use maintenance::delete_files::DeletedFiles;
pub use maintenance::ingest::SstFileWriter;
pub use maintenance::moment_files::MomentFile;
pub use maintenance::repair::RepairReport;
pub use maintenance::verify::{VerifyOptions, VerifyReport};
pub use options::settings::{
    DirectoryFormat, FamilyOptions, KeepHistory, Options, ReadOptions, Tuning, WriteOptions,
};
pub use read::DbIterator;
pub use txn::core::{Isolation, Locking};
pub use txn::database::TransactionDb;
pub use txn::family_writes::Change;
pub use txn::indexed_batch::IndexedBatch;
pub use txn::overlay::OverlayIterator;
pub use txn::prepared::Prepared;
pub use txn::transaction::{NAME_BYTES_MAX, Transaction, TransactionOptions};
pub use txn::waits_for::DeadlockStep;
pub use txn::wanted::LockTarget;
pub use version::PastMoment;
pub use wal::archive::KeepChanges;
pub use watch::counting::{RangeCount, RankedKey};
pub use watch::events::{
    BlobCount, CompactionInfo, EventListener, FlushInfo, Health, IngestInfo, MemtableInfo,
    PressureInfo, RecoveryReport, TableOfJob, WalCut, WalMend, WritePressure,
};
pub use watch::level_work::LevelWork;
pub use watch::live_files::{LiveFile, LiveFileKind, LiveTable};
pub use watch::metrics::{FamilyMetrics, JobMetrics, LevelMetrics, Metrics};
pub use watch::reason::Reason as CompactionReason;
pub use watch::sizes::RangeUsage;
pub use watch::statistics::Statistics;
pub use watch::times::Timings;
pub use watch::waits::{WaitCause, Waits, WaitsByCause};
pub use write::batch::WriteBatch;
