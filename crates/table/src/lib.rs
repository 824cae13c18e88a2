//! Table files: formats, filters, compression, block cache.
//!
//! A table is one immutable file of sorted entries, written once from front to back and read at
//! random. RocksDB's block-based table and LevelDB's are read and written ([`mod@format`]), and two
//! formats of our own: the plain table for data that lives in memory, and the searchable table for data
//! that is read more often than written. The magic number at the end of a file names its format
//! ([`Table::open`]).
//!
//! Everything here that decodes treats its bytes as a claim: damage becomes an error, never a
//! panic. Byte layouts are described in `docs/format/block-table.md` and
//! `docs/format/plain-table.md`, `docs/format/searchable-table.md`.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

pub mod blob;
pub mod compress;
pub mod filter;
pub mod format;

mod block;
mod cache;
mod hint;
mod iter;
mod options;
mod plain;
mod searchable;
mod table;
mod together;
mod verify;
mod writer;

pub use block::{
    Block, BlockMeta, BlockTable, BlockTableIter, BlockTableWriter, BlockValue, Place, read_footer,
};
#[doc(hidden)]
pub use block::{probe, sorted_words};
pub use cache::BlockCache;
pub use compress::{Codec, Compression, Framing, PreparedDict};
pub use drumlin_succinct::{Effort, Encoder, Model};
pub use filter::{FilterBuilder, FilterReader};
pub use format::{
    BlockHandle, ChecksumKind, FORMAT_VERSION_OLD, FORMAT_VERSION_WRITTEN, FinishedTable, Footer,
    TableProperties, TableStyle, properties,
};
pub use hint::{Hint, STEPS};
pub use iter::TableIter;
pub use options::{
    FilterOptions, ReadTier, TableFormat, TableReadOptions, TableReaderOptions, TableWriterOptions,
};
pub use plain::{
    KeyHint, Newest, PlainProbe, PlainTable, PlainTableIter, PlainTableWriter, PlainValue,
};
pub use searchable::{
    ModelFacts, ModelSource, SearchableTable, SearchableTableIter, SearchableTableWriter,
    SearchableValue, TOGETHER_MAX,
};
pub use table::{Table, TableValue};
pub use together::read_together;
pub use writer::TableWriter;
