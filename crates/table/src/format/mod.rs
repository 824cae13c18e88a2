//! The frame of a table file: block handles, block trailers, and the footer that names them; and, for
//! tables of every format, the [`properties`] and the checks of the entries a writer is given.
//!
//! A table is a run of blocks, each followed by a five-byte trailer, and a footer at the very end.
//! The footer's last eight bytes, the magic number, say which engine's rules the rest follows.
//! Byte tables: `docs/format/block-table.md`.
//!
//! Invariant: nothing decoded here is trusted further than its own arithmetic. A [`BlockHandle`]
//! may point anywhere; [`BlockHandle::check_within`] is asked before the file is read.

pub mod footer;
pub mod handle;
mod intake;
pub mod properties;
pub mod trailer;

pub use footer::{
    FOOTER_BYTES_MAX, FORMAT_VERSION_OLD, FORMAT_VERSION_WRITTEN, Footer, LEVELDB_FOOTER_BYTES,
    LEVELDB_MAGIC, ROCKSDB_FOOTER_BYTES, ROCKSDB_MAGIC, TableStyle,
};
pub use handle::{BLOCK_HANDLE_BYTES_MAX, BlockHandle};
pub use intake::FinishedTable;
pub(crate) use intake::{check_entry, foreign_code, tombstone_key};
pub use properties::TableProperties;
pub(crate) use properties::{GLOBAL_SEQNO, IndexType};
pub use trailer::{
    BLOCK_TRAILER_BYTES, ChecksumKind, append_trailer, context_modifier, trailer_compression,
    verify_block,
};
