//! The store's files on disk: their numbers, the room they have, those made ahead and those that go.

use std::sync::Arc;

use drumlin_fs::RateLimiter;

use crate::files::space::Space;
use crate::files::trash::Trash;
use crate::version::FileNumbers;
use crate::wal::log::UnsyncedWals;
use crate::wal::supply::WalSupply;

/// See the module.
pub(crate) struct Files {
    pub(crate) numbers: Arc<FileNumbers>,
    /// Obsolete files, until they are removed or reused.
    pub(crate) trash: Arc<Trash>,
    /// Bounds what flushes and compactions write a second.
    pub(crate) limiter: Arc<RateLimiter>,
    /// Room on the disk.
    pub(crate) space: Arc<Space>,
    /// WAL files made ahead.
    pub(crate) supply: Arc<WalSupply>,
    pub(crate) unsynced_wals: Arc<UnsyncedWals>,
}
