//! The store's files on disk: their numbers, free space, WALs made ahead, and obsolete files.

use std::sync::Arc;

use drumlin_base::sync::Mutex;
use drumlin_fs::RateLimiter;

use crate::files::space::Space;
use crate::files::trash::Trash;
use crate::options::file::LiveFile;
use crate::version::FileNumbers;
use crate::wal::archive::WalArchive;
use crate::wal::log::UnsyncedWals;
use crate::wal::preallocator::WalPreallocator;

/// See the module.
pub(crate) struct Files {
    pub(crate) numbers: Arc<FileNumbers>,
    /// Obsolete files, until they are removed or reused.
    pub(crate) trash: Arc<Trash>,
    /// Bounds the bytes a second that flushes and compactions write.
    pub(crate) limiter: Arc<RateLimiter>,
    /// Free space.
    pub(crate) space: Arc<Space>,
    /// WAL files made ahead.
    pub(crate) preallocator: Arc<WalPreallocator>,
    pub(crate) unsynced_wals: Arc<UnsyncedWals>,
    /// WAL files kept for those who follow changes.
    pub(crate) archive: Arc<WalArchive>,
    /// The OPTIONS file, where it is as this store wrote it. Locked with the state's lock held.
    pub(crate) options: Mutex<Option<LiveFile>>,
}
