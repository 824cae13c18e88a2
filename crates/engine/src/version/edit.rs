//! A version edit: what one record of the MANIFEST says.

use super::NewFile;

/// Whose bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// What RocksDB 6.6 to 11 read.
    #[default]
    RocksDb,
    /// What LevelDB reads: one family, no sequence numbers in the description of a table.
    LevelDb,
}

/// A blob file that came to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobFileAddition {
    /// The number in the file's name.
    pub number: u64,
    /// Blobs inside.
    pub blob_count: u64,
    /// Bytes of all blobs inside.
    pub blob_bytes: u64,
    /// The name of the checksum over the file; empty for none.
    pub checksum_method: Vec<u8>,
    /// The checksum over the file; empty for none.
    pub checksum_value: Vec<u8>,
}

/// Blobs of a file that became garbage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobFileGarbage {
    /// The number in the file's name.
    pub number: u64,
    /// Blobs more that nothing refers to.
    pub garbage_count: u64,
    /// Bytes more that nothing refers to.
    pub garbage_bytes: u64,
}

/// A change from one version of one family to the next, and of the database's own numbers.
/// A field that is `None` or empty says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionEdit {
    /// The database's id.
    pub db_id: Option<String>,
    /// The stored name of the family's key order.
    pub comparator: Option<String>,
    /// WAL files below this number hold nothing the family still needs.
    pub log_number: Option<u64>,
    /// A second live WAL, from old LevelDB days; 0.
    pub prev_log_number: Option<u64>,
    /// No file has this number or a higher one.
    pub next_file_number: Option<u64>,
    /// The last sequence number in the tables.
    pub last_seqno: Option<u64>,
    /// The highest family id ever given out.
    pub max_column_family: Option<u32>,
    /// WAL files below this number are not needed by any family.
    pub min_log_number_to_keep: Option<u64>,
    /// Per level, the internal key at which the next compaction begins.
    pub compact_cursors: Vec<(u32, Vec<u8>)>,
    /// Tables that go: level and number.
    pub deleted_files: Vec<(u32, u64)>,
    /// Tables that come: level and description.
    pub new_files: Vec<(u32, NewFile)>,
    /// Blob files that come.
    pub blob_additions: Vec<BlobFileAddition>,
    /// Blob files of which more became garbage.
    pub blob_garbage: Vec<BlobFileGarbage>,
    /// The family concerned; 0 is `default`.
    pub column_family: u32,
    /// The family is created, under this name.
    pub add_family: Option<String>,
    /// The family is dropped.
    pub drop_family: bool,
    /// Edits of the same atomic group that follow this one.
    pub atomic_group_remaining: Option<u32>,
}
