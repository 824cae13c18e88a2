//! RocksDB's backup engine.
//!
//! Invariant: the pointer in [`RocksBackups`] is live until it is dropped. One thread.

use std::path::Path;
use std::ptr;

use crate::memory::{c_path, take_error};
use crate::rocks::{Rocks, RocksOptions, must};
use crate::rocks_ffi::{self as ffi, rocksdb_free};

/// A directory of backups, open in RocksDB.
pub struct RocksBackups {
    engine: *mut ffi::BackupHandle,
}

impl std::fmt::Debug for RocksBackups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RocksBackups").finish_non_exhaustive()
    }
}

/// What RocksDB says of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RocksBackup {
    /// Its number.
    pub id: u32,
    /// When it was made, in seconds since 1970.
    pub unix_seconds: i64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Its files.
    pub files: u32,
}

impl RocksBackups {
    /// Opens or makes the directory.
    ///
    /// # Panics
    /// With RocksDB's message.
    pub fn open(dir: &Path) -> Self {
        let path = c_path(dir);
        let options = RocksOptions::parse("").expect("no options are sound");
        let mut error = ptr::null_mut();
        // SAFETY: both are live for the call, and the library keeps none of them.
        let engine =
            unsafe { ffi::rocksdb_backup_engine_open(options.0, path.as_ptr(), &mut error) };
        must("open the backups", error);
        Self { engine }
    }

    /// Makes a backup.
    ///
    /// # Panics
    /// With RocksDB's message.
    pub fn create(&self, db: &Rocks) {
        let mut error = ptr::null_mut();
        // SAFETY: both are live.
        unsafe {
            ffi::rocksdb_backup_engine_create_new_backup(self.engine, db.handle_of_db(), &mut error)
        };
        must("make a backup", error);
    }

    /// The backups that RocksDB takes for whole.
    pub fn list(&self) -> Vec<RocksBackup> {
        // SAFETY: live.
        let info = unsafe { ffi::rocksdb_backup_engine_get_backup_info(self.engine) };
        // SAFETY: given out by the library just now, as below.
        let count = unsafe { ffi::rocksdb_backup_engine_info_count(info) };
        let found = (0..count).map(|index| {
            // SAFETY: as above, and `index` is below the count.
            let id = unsafe { ffi::rocksdb_backup_engine_info_backup_id(info, index) };
            // SAFETY: as above.
            let unix_seconds = unsafe { ffi::rocksdb_backup_engine_info_timestamp(info, index) };
            // SAFETY: as above.
            let bytes = unsafe { ffi::rocksdb_backup_engine_info_size(info, index) };
            // SAFETY: as above.
            let files = unsafe { ffi::rocksdb_backup_engine_info_number_files(info, index) };
            RocksBackup {
                id,
                unix_seconds,
                bytes,
                files,
            }
        });
        let found = found.collect();
        // SAFETY: given out by the library, destroyed once.
        unsafe { ffi::rocksdb_backup_engine_info_destroy(info) };
        found
    }

    /// Checks names and sizes of a backup.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn verify(&self, id: u32) -> Result<(), String> {
        let mut error = ptr::null_mut();
        // SAFETY: live.
        unsafe { ffi::rocksdb_backup_engine_verify_backup(self.engine, id, &mut error) };
        take_error(error, rocksdb_free)
    }

    /// Restores a backup, with its checksums compared.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn restore(&self, id: u32, target: &Path) -> Result<(), String> {
        let path = c_path(target);
        let options = ffi::rocksdb_restore_options_create();
        let mut error = ptr::null_mut();
        // SAFETY: all are live for the call.
        unsafe {
            ffi::rocksdb_backup_engine_restore_db_from_backup(
                self.engine,
                path.as_ptr(),
                path.as_ptr(),
                options,
                id,
                &mut error,
            );
        }
        // SAFETY: created above, destroyed once.
        unsafe { ffi::rocksdb_restore_options_destroy(options) };
        take_error(error, rocksdb_free)
    }

    /// Removes all but the newest `keep`.
    ///
    /// # Panics
    /// With RocksDB's message.
    pub fn purge(&self, keep: u32) {
        let mut error = ptr::null_mut();
        // SAFETY: live.
        unsafe { ffi::rocksdb_backup_engine_purge_old_backups(self.engine, keep, &mut error) };
        must("purge backups", error);
    }
}

impl Drop for RocksBackups {
    fn drop(&mut self) {
        // SAFETY: opened by the library, closed once.
        unsafe { ffi::rocksdb_backup_engine_close(self.engine) };
    }
}
