//! `rocksdb_sst_file_manager_t`: how much the tables of its databases take. Files that nobody needs are removed at once, without a rate
//! and without trash.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use drumlin::{Db, LiveFileKind, WeakDb};
use drumlin_base::sync::Mutex;

#[derive(Debug, Default)]
struct Shared {
    served: Mutex<Vec<WeakDb>>,
    /// The most bytes; 0 for any number.
    most: AtomicU64,
    /// Recorded.
    delete_rate: AtomicI64,
    /// Recorded: bits of a number with a point.
    trash_ratio: AtomicU64,
}

/// RocksDB's ratio, where none was set.
const TRASH_RATIO: f64 = 0.25;

/// What the handle holds.
#[derive(Clone, Debug)]
pub(crate) struct FileManager(Arc<Shared>);

impl FileManager {
    /// `db` was opened with it.
    pub(crate) fn serves(&self, db: &Db) {
        let mut served = self.0.served.lock();
        served.retain(|db| db.upgrade().is_some());
        served.push(db.downgrade());
    }

    /// Whether there is a most: nothing holds a database to it.
    pub(crate) fn has_most(&self) -> bool {
        self.0.most.load(Ordering::Relaxed) > 0
    }

    /// Bytes of tables and blob files.
    fn bytes(&self) -> u64 {
        let served = self.0.served.lock().clone();
        let open = served.iter().filter_map(WeakDb::upgrade);
        let files = open.flat_map(|db| db.live_files().unwrap_or_default());
        let counted =
            files.filter(|file| matches!(file.kind, LiveFileKind::Table | LiveFileKind::Blob));
        counted.filter_map(|file| file.bytes).sum()
    }

    fn is_reached(&self) -> bool {
        let most = self.0.most.load(Ordering::Relaxed);
        most > 0 && self.bytes() >= most
    }
}

pub(crate) mod calls {
    use super::{Arc, AtomicU64, FileManager, Ordering, Shared, TRASH_RATIO};
    use crate::env::Environment;
    use crate::options::OpenOptions;

    pub(crate) fn sst_file_manager_create(_env: &Environment) -> FileManager {
        FileManager(Arc::new(Shared {
            trash_ratio: AtomicU64::new(TRASH_RATIO.to_bits()),
            ..Shared::default()
        }))
    }

    pub(crate) fn options_set_sst_file_manager(options: &mut OpenOptions, manager: &FileManager) {
        options.file_manager = Some(manager.clone());
    }

    /// A database is not opened with one that has a most.
    pub(crate) fn sst_file_manager_set_max_allowed_space_usage(manager: &FileManager, bytes: u64) {
        manager.0.most.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn sst_file_manager_is_max_allowed_space_reached(manager: &FileManager) -> bool {
        manager.is_reached()
    }

    /// Compactions that run are not counted ahead.
    pub(crate) fn sst_file_manager_is_max_allowed_space_reached_including_compactions(
        manager: &FileManager,
    ) -> bool {
        manager.is_reached()
    }

    pub(crate) fn sst_file_manager_get_total_size(manager: &FileManager) -> u64 {
        manager.bytes()
    }

    pub(crate) fn sst_file_manager_get_total_trash_size(_manager: &FileManager) -> u64 {
        0
    }

    pub(crate) fn sst_file_manager_get_delete_rate_bytes_per_second(manager: &FileManager) -> i64 {
        manager.0.delete_rate.load(Ordering::Relaxed)
    }

    pub(crate) fn sst_file_manager_set_delete_rate_bytes_per_second(
        manager: &FileManager,
        rate: i64,
    ) {
        manager.0.delete_rate.store(rate, Ordering::Relaxed);
    }

    pub(crate) fn sst_file_manager_get_max_trash_db_ratio(manager: &FileManager) -> f64 {
        f64::from_bits(manager.0.trash_ratio.load(Ordering::Relaxed))
    }

    pub(crate) fn sst_file_manager_set_max_trash_db_ratio(manager: &FileManager, ratio: f64) {
        manager
            .0
            .trash_ratio
            .store(ratio.to_bits(), Ordering::Relaxed);
    }
}
