//! The plain table: for data that lives in memory.
//!
//! Records are stored whole, in key order, in a file that is in memory as a whole. A hash index finds a key
//! with one cache line, and its record with the next; a sparse list of records in order, with eight
//! bytes of each key beside it, finds where a walk begins. Values are handed out in place.
//!
//! ```text
//! header · records · key index · prefix index · anchors · range tombstones · properties · footer
//! ```
//!
//! Byte layouts are described in `docs/format/plain-table.md`. Everything is checked when a table is
//! opened: once, over all its bytes.

mod anchors;
mod cursor;
mod format;
mod guess;
mod hash_index;
mod lookup;
mod open;
mod rank;
mod record;
mod seek;
mod step;
mod table;
mod verify;
mod writer;

pub use cursor::PlainTableIter;
pub(crate) use format::PLAIN_MAGIC;
pub use lookup::{KeyHint, Newest, PlainProbe, PlainValue};
pub use table::PlainTable;
pub use writer::PlainTableWriter;
