//! The block-based table: RocksDB's format and LevelDB's.
//!
//! ```text
//! data blocks · filter · index · dictionary · range tombstones · properties · metaindex · footer
//! ```
//!
//! - One block: [`layout`] parses it, [`builder`] writes it, [`lookup`] and [`point`] search it,
//!   [`block_iter`] walks it. [`sorted_words`] is the search that key prefixes share.
//! - The index: [`index`] and [`index_builder`]; a [`partition`] is an index block and the cache slots of
//!   the blocks under it.
//! - A table that is read: [`open`] decodes the parts that every lookup needs, [`table`] looks up,
//!   [`step`] prefetches for batches, [`cursor`] walks, [`place`] visits entries from known ones on, [`verify`]
//!   checks. [`fetch`] reads blocks from the file, [`filter`] holds the filter, [`meta_block`] the metaindex and
//!   the properties.
//! - A table that is written: [`writer`] takes entries, [`filter_writer`] gathers the filter, [`tail`]
//!   writes the blocks behind the data blocks.
//! - [`probe`]: single blocks for fuzzing.
//!
//! Byte layout: `docs/format/block-table.md`.

mod block_iter;
mod builder;
mod cursor;
mod fetch;
mod filter;
mod filter_writer;
mod index;
mod index_builder;
mod layout;
mod lookup;
mod meta_block;
mod open;
mod partition;
mod place;
mod point;
pub mod probe;
pub mod sorted_words;
mod step;
mod table;
mod tail;
mod verify;
mod writer;

pub(crate) use builder::common_prefix;
pub use cursor::BlockTableIter;
pub use layout::{Block, BlockMeta};
pub(crate) use meta_block::MetaBlock;
pub use open::read_footer;
pub(crate) use partition::IndexPartition;
pub use place::Place;
pub(crate) use table::TableIndex;
pub use table::{BlockTable, BlockValue};
pub(crate) use tail::properties_block;
pub use writer::BlockTableWriter;
