//! Sorted keys in few bytes each, found by key and by rank.
//!
//! Keys go in blocks of [`BLOCK_KEYS`]. A block is encoded as columns of integers if its keys fit a
//! template (constant texts with decimal, hexadecimal or binary numbers between them, learned from a
//! sample), else as texts that leave out the prefix they share with their predecessor. A directory
//! over the blocks' first keys, made when the index is opened, leads from a key to its block.
//!
//! Rooms, bottom to top: `packed` (bits), `digits`, `field` (kinds of number), `ascending`, `template`,
//! `letters` (a code for bytes), `run`, `rows`; `columns`, `probe` and `strings` (blocks), `learn`, `directory`;
//! `index`, `cursor`, `builder`, `cost`.
//!
//! Keys are ordered bytewise. An index knows exactly which keys it holds, so it is its own filter.

/// Keys of a block, but for the last (on disk).
pub const BLOCK_KEYS: usize = 64;

mod ascending;
mod builder;
mod columns;
mod cost;
mod cursor;
mod digits;
mod directory;
mod field;
mod index;
mod learn;
mod letters;
mod packed;
mod probe;
mod rows;
mod run;
mod strings;
mod template;

pub use builder::KeyIndexBuilder;
pub use cursor::{KeyCursor, KeyWalk};
pub use index::KeyIndex;
