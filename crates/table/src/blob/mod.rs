//! Blob files: large values kept beside the tables, in RocksDB's format.
//!
//! A table's entry of kind `BlobIndex` holds a [`BlobIndex`] in place of the value: file, offset,
//! size and codec. A blob file is written once from front to back, value after value, and read at
//! random; it has no index of its own, because every reference has the place of its value. Byte
//! tables: `docs/format/blob-file.md`.
//!
//! Invariant: every decoder here treats its bytes as a claim. The lengths in a reference or a
//! record are compared with the file before they are used to read or allocate.
//!
//! - [`mod@format`]: references, headers, records and footers, to and from bytes.
//! - [`writer`]: makes a file.
//! - [`reader`]: a value by its reference.
//! - [`ahead`]: many values with few reads.
//! - [`records`]: all records of a file in order, for tools.

pub mod ahead;
pub mod format;
pub mod reader;
pub mod records;
pub mod writer;

pub use ahead::{BlobAhead, get_sorted};
pub use format::{
    BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES, BLOB_RECORD_HEADER_BYTES, BlobFooter, BlobHeader,
    BlobIndex, BlobRecordHeader,
};
pub use reader::BlobReader;
pub use records::BlobRecords;
pub use writer::{BlobFileInfo, BlobWriter};
