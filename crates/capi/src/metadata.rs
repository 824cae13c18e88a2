//! Descriptions of live files, which no function makes yet.

/// `rocksdb_livefiles_t`.
#[derive(Debug)]
pub(crate) struct LiveFiles;

/// `rocksdb_column_family_metadata_t`.
#[derive(Debug)]
pub(crate) struct FamilyMetadata;

/// `rocksdb_level_metadata_t`.
#[derive(Debug)]
pub(crate) struct LevelMetadata;

/// `rocksdb_sst_file_metadata_t`.
#[derive(Debug)]
pub(crate) struct FileMetadata;

pub(crate) mod calls {}
