//! `rocksdb_backup_engine_t`, which no function makes yet.

pub(crate) use crate::fields::BackupEngineOptions as BackupFields;

/// `rocksdb_backup_engine_t`.
#[derive(Debug)]
pub(crate) struct BackupEngine;

/// `rocksdb_backup_engine_info_t`.
#[derive(Debug)]
pub(crate) struct BackupInfos;

/// `rocksdb_backup_engine_options_t`.
#[derive(Debug)]
pub(crate) struct BackupEngineOptions {
    pub(crate) fields: BackupFields,
}

pub(crate) mod calls {}
