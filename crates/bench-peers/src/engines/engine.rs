//! The engines by name.

use std::fmt;
use std::str::FromStr;

use drumlin_base::{Error, Result};

/// An engine that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Ours.
    Drumlin,
    /// RocksDB of today.
    #[cfg(feature = "rocksdb")]
    RocksDb,
    /// The system's LevelDB.
    LevelDb,
    /// fjall.
    Fjall,
    /// redb.
    Redb,
    /// LMDB.
    Lmdb,
}

impl Engine {
    const ALL: &[Self] = &[
        Self::Drumlin,
        #[cfg(feature = "rocksdb")]
        Self::RocksDb,
        Self::LevelDb,
        Self::Fjall,
        Self::Redb,
        Self::Lmdb,
    ];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Drumlin => "drumlin",
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => "rocksdb",
            Self::LevelDb => "leveldb",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
            Self::Lmdb => "lmdb",
        }
    }
}

impl Engine {
    /// Whether its store's `wait_for_background` knows when the work is done; the others watch the
    /// process for it.
    pub(crate) fn knows_when_done(self) -> bool {
        match self {
            Self::Drumlin => true,
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => true,
            Self::LevelDb | Self::Fjall | Self::Redb | Self::Lmdb => false,
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
            $crate::engines::Engine::Drumlin => {
                type $store = ::drumlin_bench::DrumlinStore;
                $body
            }
            #[cfg(feature = "rocksdb")]
            $crate::engines::Engine::RocksDb => {
                type $store = $crate::engines::rocksdb::RocksDbStore;
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
        }
    };
}
pub(crate) use with_store;
