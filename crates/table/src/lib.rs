//! Table files: formats, filters, compression, block cache.
//!
//! A table is one immutable file of sorted entries, written once from front to back and read at
//! random. RocksDB's block-based table and LevelDB's are read and written ([`mod@format`]), and a
//! plain table of our own for data that lives in memory; the magic number at the end of a file tells
//! which it is ([`Table::open`]).
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
mod plain;
#[doc(hidden)]
pub mod probe;
pub mod properties;

mod any_iter;
mod any_table;
mod any_writer;
mod block;
mod block_builder;
mod block_hash;
mod block_iter;
mod block_lookup;
mod block_point;
mod block_run;
mod cache;
mod fetch;
mod filter_writer;
mod hint;
mod index;
mod index_builder;
mod intake;
mod iter;
mod meta_block;
mod model_file;
mod open;
mod options;
mod readahead;
mod searchable;
mod sorted_words;
mod table;
mod table_filter;
mod table_tail;
mod together;
mod verify;
mod writer;

pub use any_iter::TableIter;
pub use any_table::{Table, TableValue};
pub use any_writer::TableWriter;
pub use block::{Block, BlockMeta};
pub use cache::BlockCache;
pub use compress::{Codec, Compression, Framing, PreparedDict};
pub use drumlin_succinct::{Effort, Encoder, Model};
pub use filter::{FilterBuilder, FilterReader};
pub use format::{
    BlockHandle, ChecksumKind, FORMAT_VERSION_OLD, FORMAT_VERSION_WRITTEN, Footer, TableStyle,
};
pub use hint::{Hint, STEPS};
pub use iter::BlockTableIter;
pub use model_file::{ModelFacts, ModelSource};
pub use open::read_footer;
pub use options::{
    FilterOptions, TableFormat, TableReadOptions, TableReaderOptions, TableWriterOptions,
};
pub use plain::{KeyHint, Newest, PlainTable, PlainTableIter, PlainTableWriter, PlainValue};
pub use properties::TableProperties;
pub use searchable::{
    SearchableTable, SearchableTableIter, SearchableTableWriter, SearchableValue, TOGETHER_MAX,
};
pub use table::{BlockTable, BlockValue};
pub use together::read_together;
pub use writer::{BlockTableWriter, FinishedTable};
