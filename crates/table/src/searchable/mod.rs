//! The searchable table: keys and values compressed apart, each row read by itself.
//!
//! - [`mod@format`]: the footer and the sections it names;
//! - [`page`]: rows in pages of 4 KiB; [`row`]: the versions of a key in its row;
//! - [`locator`]: from a key's rank to its page; [`coded`]: the ratio of values to codes;
//! - [`model_file`]: models that several tables share;
//! - [`writer`], [`open`], [`table`], [`step`], [`batch`], [`cursor`], [`verify`], [`describe`].
//!
//! Keys are in a [`drumlin_succinct::KeyIndex`], which stays in memory and knows exactly which keys
//! the table has; a get of a key that is there reads one page at most, one of an absent key none.
//! Values are coded by a [`drumlin_succinct::Model`]; pages are cached as they are on disk. Only for
//! keys in bytewise order. Byte layout: `docs/format/searchable-table.md`.

mod batch;
mod coded;
mod cursor;
mod describe;
mod format;
mod locator;
mod model_file;
mod open;
mod page;
mod row;
mod step;
mod table;
mod verify;
mod writer;

pub use batch::TOGETHER_MAX;
pub use cursor::SearchableTableIter;
pub(crate) use format::SEARCHABLE_MAGIC;
pub(crate) use locator::{RowPlace, RowSpan};
pub use model_file::{ModelFacts, ModelSource};
pub(crate) use open::{properties_of, shared_model_of};
pub(crate) use table::PageMeta;
pub use table::{SearchableTable, SearchableValue};
pub use writer::SearchableTableWriter;
