//! A version edit: the content of one MANIFEST record.
//!
//! The bytes are tags (varint32), each followed by its fields; `edit_encode` writes them,
//! `edit_decode` reads them. Format page: `docs/format/manifest.md`.

use drumlin_table::blob::{BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES, BlobFileInfo};

use super::NewFile;
use super::history::History;

/// Tags of a record, on disk. Tags with [`tag::IGNORABLE`] set are followed by one length-prefixed
/// body (but for the four oldest of them), so that readers skip the ones they do not know.
pub(super) mod tag {
    pub(in crate::version) const COMPARATOR: u32 = 1;
    pub(in crate::version) const LOG_NUMBER: u32 = 2;
    pub(in crate::version) const NEXT_FILE_NUMBER: u32 = 3;
    pub(in crate::version) const LAST_SEQNO: u32 = 4;
    pub(in crate::version) const COMPACT_CURSOR: u32 = 5;
    pub(in crate::version) const DELETED_FILE: u32 = 6;
    pub(in crate::version) const NEW_FILE: u32 = 7;
    pub(in crate::version) const PREV_LOG_NUMBER: u32 = 9;
    pub(in crate::version) const MIN_LOG_NUMBER_TO_KEEP: u32 = 10;
    pub(in crate::version) const NEW_FILE_2: u32 = 100;
    pub(in crate::version) const NEW_FILE_3: u32 = 102;
    pub(in crate::version) const NEW_FILE_4: u32 = 103;
    pub(in crate::version) const COLUMN_FAMILY: u32 = 200;
    pub(in crate::version) const ADD_FAMILY: u32 = 201;
    pub(in crate::version) const DROP_FAMILY: u32 = 202;
    pub(in crate::version) const MAX_COLUMN_FAMILY: u32 = 203;
    pub(in crate::version) const ATOMIC_GROUP: u32 = 300;
    pub(in crate::version) const BLOB_ADDITION: u32 = 400;
    pub(in crate::version) const BLOB_GARBAGE: u32 = 401;
    pub(in crate::version) const IGNORABLE: u32 = 1 << 13;
    pub(in crate::version) const DB_ID: u32 = 8193;
    pub(in crate::version) const OLD_BLOB_ADDITION: u32 = 8194;
    pub(in crate::version) const OLD_BLOB_GARBAGE: u32 = 8195;
    pub(in crate::version) const OLD_WAL_ADDITION: u32 = 8196;
    pub(in crate::version) const OLD_WAL_DELETION: u32 = 8197;
    pub(in crate::version) const FULL_HISTORY_TS_LOW: u32 = 8198;
    pub(in crate::version) const WAL_ADDITION: u32 = 8199;
    pub(in crate::version) const WAL_DELETION: u32 = 8200;
    pub(in crate::version) const PERSIST_TIMESTAMPS: u32 = 8201;
    /// Our own: other readers skip it.
    pub(in crate::version) const SYNCED_FROM: u32 = IGNORABLE | 0xD01;
    /// Our own: other readers skip it.
    pub(in crate::version) const CHANGE: u32 = IGNORABLE | 0xD02;
    /// Our own: other readers skip it.
    pub(in crate::version) const SECTION_WALS: u32 = IGNORABLE | 0xD03;
    /// Our own: other readers skip it.
    pub(in crate::version) const HISTORY: u32 = IGNORABLE | 0xD04;
}

/// Tags inside the description of a table (`NEW_FILE_4`), on disk.
pub(super) mod file_tag {
    pub(in crate::version) const END: u32 = 1;
    pub(in crate::version) const MARKED_FOR_COMPACTION: u32 = 2;
    pub(in crate::version) const MIN_LOG_NUMBER_TO_KEEP: u32 = 3;
    pub(in crate::version) const OLDEST_BLOB_FILE: u32 = 4;
    pub(in crate::version) const OLDEST_ANCESTOR_TIME: u32 = 5;
    pub(in crate::version) const CREATION_TIME: u32 = 6;
    pub(in crate::version) const CHECKSUM: u32 = 7;
    pub(in crate::version) const CHECKSUM_FUNCTION: u32 = 8;
    pub(in crate::version) const TEMPERATURE: u32 = 9;
    pub(in crate::version) const UNIQUE_ID: u32 = 12;
    pub(in crate::version) const EPOCH: u32 = 13;
    pub(in crate::version) const COMPENSATED_RANGE_DELETION: u32 = 14;
    pub(in crate::version) const TAIL_SIZE: u32 = 15;
    pub(in crate::version) const TIMESTAMPS_PERSISTED: u32 = 16;
    /// Our own: the id of the model that the table names. Other readers skip it.
    pub(in crate::version) const MODEL: u32 = 0xD02;
    /// Set on tags a reader must know.
    pub(in crate::version) const MUST_UNDERSTAND: u32 = 1 << 6;
    pub(in crate::version) const PATH_ID: u32 = 65;
}

/// The end of a blob record's own fields, and the bit of those a reader must know.
pub(super) const BLOB_FIELDS_END: u32 = 0;

/// The engine whose encoding is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// Read by RocksDB 6.6 to 11.
    #[default]
    RocksDb,
    /// Read by RocksDB 5 as well, which refuses records that it does not know: without the database's id,
    /// atomic groups and anything of ours.
    RocksDb5,
    /// Read by LevelDB: one family, no sequence numbers in the description of a table.
    LevelDb,
}

/// A new blob file.
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

impl From<BlobFileInfo> for BlobFileAddition {
    /// The MANIFEST's description of a file that was written.
    fn from(info: BlobFileInfo) -> Self {
        Self {
            number: info.number,
            blob_count: info.blob_count,
            blob_bytes: info.blob_bytes,
            ..Self::default()
        }
    }
}

impl BlobFileAddition {
    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        let ends = (BLOB_HEADER_BYTES + BLOB_FOOTER_BYTES) as u64;
        self.blob_bytes.saturating_add(ends)
    }
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
    /// Blob files with more garbage than before.
    pub blob_garbage: Vec<BlobFileGarbage>,
    /// WAL files tracked from now on: number, and how many bytes are known to be synced once the
    /// file is complete.
    pub wal_additions: Vec<(u64, Option<u64>)>,
    /// WAL files below this number are tracked no more.
    pub wals_deleted_below: Option<u64>,
    /// The family concerned; 0 is `default`.
    pub column_family: u32,
    /// The family is created, under this name.
    pub add_family: Option<String>,
    /// The family is dropped.
    pub drop_family: bool,
    /// Edits of the same atomic group that follow this one.
    pub atomic_group_remaining: Option<u32>,
    /// Where in the file the records begin that were synced together with this one, when it is not
    /// the first of them.
    pub synced_from: Option<u64>,
    /// The change this is, as the WAL will have it; empty once the WAL has it for sure.
    pub change: Option<Vec<u8>>,
    /// The WAL files that no family needs and that hold sections of two-phase commit which are needed.
    pub section_wals: Option<Vec<u64>>,
    /// The family's history of timestamps is whole from here on only.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// The past that is kept from now on.
    pub history: Option<History>,
}

impl VersionEdit {
    /// An edit of family `column_family` that says nothing yet.
    pub fn of_family(column_family: u32) -> Self {
        Self {
            column_family,
            ..Self::default()
        }
    }

    /// Adds a table to `level`.
    pub fn add_file(&mut self, level: u32, file: NewFile) {
        self.new_files.push((level, file));
    }

    /// Removes table `number` from `level`.
    pub fn delete_file(&mut self, level: u32, number: u64) {
        self.deleted_files.push((level, number));
    }

    /// Whether the edit changes the tables of its family.
    pub fn changes_tables(&self) -> bool {
        !self.deleted_files.is_empty() || !self.new_files.is_empty()
    }
}
