//! Table files: formats, filters, compression, block cache.
//!
//! A table is one immutable file of sorted entries, written once from front to back and read at
//! random. Two families are read and written: RocksDB's block-based table and LevelDB's, told apart
//! by the magic number at the end of the file ([`format`]).
//!
//! Everything here that decodes treats its bytes as a claim: damage becomes an error, never a
//! panic. Byte layouts are described in `docs/format/block-table.md`.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

pub mod compress;
pub mod filter;
pub mod format;
pub mod properties;

pub use compress::{Codec, Compression, Framing, PreparedDict};
pub use filter::{FilterBuilder, FilterReader};
pub use format::{BlockHandle, ChecksumKind, Footer, TableStyle};
pub use properties::TableProperties;
