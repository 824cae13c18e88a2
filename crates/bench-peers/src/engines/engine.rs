//! The engines by name.

use std::fmt;
use std::str::FromStr;

use drumlin_base::{Error, Result};
use drumlin_bench::Flags;

/// An engine that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Ours.
    Drumlin,
    /// Ours with universal compaction.
    DrumlinUniversal,
    /// RocksDB of today.
    #[cfg(feature = "rocksdb")]
    RocksDb,
    /// The same with large values in blob files, collected.
    #[cfg(feature = "rocksdb")]
    RocksDbBlobs,
    /// The same with universal compaction.
    #[cfg(feature = "rocksdb")]
    RocksDbUniversal,
    /// The same for data in memory: plain tables, memtables by prefix.
    #[cfg(feature = "rocksdb")]
    RocksDbPlain,
    /// What Kvrocks would ask of it.
    #[cfg(feature = "rocksdb")]
    Kvrocks,
    /// The same with large values in blob files, collected.
    #[cfg(feature = "rocksdb")]
    KvrocksBlobs,
    /// The system's LevelDB.
    LevelDb,
    /// fjall.
    Fjall,
    /// redb.
    Redb,
    /// LMDB.
    Lmdb,
    /// The system's WiredTiger.
    #[cfg(feature = "wiredtiger")]
    WiredTiger,
}

impl Engine {
    const ALL: &[Self] = &[
        Self::Drumlin,
        Self::DrumlinUniversal,
        #[cfg(feature = "rocksdb")]
        Self::RocksDb,
        #[cfg(feature = "rocksdb")]
        Self::RocksDbBlobs,
        #[cfg(feature = "rocksdb")]
        Self::RocksDbUniversal,
        #[cfg(feature = "rocksdb")]
        Self::RocksDbPlain,
        #[cfg(feature = "rocksdb")]
        Self::Kvrocks,
        #[cfg(feature = "rocksdb")]
        Self::KvrocksBlobs,
        Self::LevelDb,
        Self::Fjall,
        Self::Redb,
        Self::Lmdb,
        #[cfg(feature = "wiredtiger")]
        Self::WiredTiger,
    ];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Drumlin => "drumlin",
            Self::DrumlinUniversal => "drumlin-universal",
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => "rocksdb",
            #[cfg(feature = "rocksdb")]
            Self::RocksDbBlobs => "rocksdb-blobs",
            #[cfg(feature = "rocksdb")]
            Self::RocksDbUniversal => "rocksdb-universal",
            #[cfg(feature = "rocksdb")]
            Self::RocksDbPlain => "rocksdb-plain",
            #[cfg(feature = "rocksdb")]
            Self::Kvrocks => "kvrocks-replayed",
            #[cfg(feature = "rocksdb")]
            Self::KvrocksBlobs => "kvrocks-replayed-blobs",
            Self::LevelDb => "leveldb",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
            Self::Lmdb => "lmdb",
            #[cfg(feature = "wiredtiger")]
            Self::WiredTiger => "wiredtiger",
        }
    }
}

impl Engine {
    /// Changes the common flags for this engine.
    pub(crate) fn adjust(self, flags: &mut Flags) {
        match self {
            // The flag is for Drumlin; RocksDB's plain tables are an engine of their own.
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => flags.use_plain_table = false,
            #[cfg(feature = "rocksdb")]
            Self::RocksDbPlain => {
                flags.use_plain_table = true;
                flags.verify_checksum = false;
            }
            #[cfg(feature = "rocksdb")]
            Self::RocksDbBlobs | Self::KvrocksBlobs => flags.enable_blob_files = true,
            #[cfg(feature = "rocksdb")]
            Self::RocksDbUniversal => flags.compaction_style = 1,
            Self::DrumlinUniversal => flags.compaction_style = 1,
            _ => {}
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|engine| engine.name() == text);
        known.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|engine| engine.name()).collect();
            let message = format!(
                "there is no engine '{text}' here; there is {}",
                names.join(", ")
            );
            Error::invalid_argument(message)
        })
    }
}

/// Evaluates `$body` with `$store` standing for the store type of `$engine`.
macro_rules! with_store {
    ($engine:expr, $store:ident => $body:expr) => {
        match $engine {
            $crate::engines::Engine::Drumlin | $crate::engines::Engine::DrumlinUniversal => {
                type $store = ::drumlin_bench::DrumlinStore;
                $body
            }
            #[cfg(feature = "rocksdb")]
            $crate::engines::Engine::RocksDb
            | $crate::engines::Engine::RocksDbBlobs
            | $crate::engines::Engine::RocksDbUniversal
            | $crate::engines::Engine::RocksDbPlain => {
                type $store = $crate::engines::rocksdb::RocksDbStore;
                $body
            }
            #[cfg(feature = "rocksdb")]
            $crate::engines::Engine::Kvrocks | $crate::engines::Engine::KvrocksBlobs => {
                type $store = $crate::engines::kvrocks::KvrocksStore;
                $body
            }
            $crate::engines::Engine::LevelDb => {
                type $store = $crate::engines::leveldb::LevelDbStore;
                $body
            }
            $crate::engines::Engine::Fjall => {
                type $store = $crate::engines::fjall::FjallStore;
                $body
            }
            $crate::engines::Engine::Redb => {
                type $store = $crate::engines::redb::RedbStore;
                $body
            }
            $crate::engines::Engine::Lmdb => {
                type $store = $crate::engines::lmdb::LmdbStore;
                $body
            }
            #[cfg(feature = "wiredtiger")]
            $crate::engines::Engine::WiredTiger => {
                type $store = $crate::engines::wiredtiger::WiredTigerStore;
                $body
            }
        }
    };
}
pub(crate) use with_store;
