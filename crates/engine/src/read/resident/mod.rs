//! Reads over tables in memory: one key, a batch of keys, a walk within a prefix.
//!
//! In memory a lookup costs its cache misses. The key alone determines the first lines it needs, in every table
//! that may hold it, so none of these loads has to wait for another:
//!
//! ```text
//! tables = layout.cell(key)                 the table of each sorted run that may hold the key
//! for each table    prefetch its index line
//! search the memtables                      while the lines arrive
//! for each table    read the index, then the record; stop at the first answer
//! ```
//!
//! A batch takes each of these steps with all its keys before the next, and a walk within a prefix begins the
//! same way, with the prefix index in place of the key index.
//!
//! Tricks, and what each buys:
//!
//! - *One search for all runs* ([`layout`]). The bounds of all tables cut the order of keys into cells, so the
//!   tables to search come from one array, however many runs there are. The layout holds them open: no guard
//!   on a slot for each table.
//! - *A guess* at the record in the oldest run, which has most keys: index line and record arrive together.
//! - *Answers written in place.* A small value is inside its [`drumlin_base::PinnedSlice`]. Moving it right
//!   after it was written stalls store-to-load forwarding, so nothing on this path returns a value by move.
//! - *Little between two gets.* While a core waits for a record it sees some four hundred instructions ahead.
//!   A short path lets it reach the prefetches of the next get.
//! - *Handles kept* ([`walk`]). A cursor keeps the handles of tables it was in, so that one used for walk
//!   after walk counts each table once.
//!
//! Only the usual case is here: values and deletions, in memtables and plain tables without range tombstones,
//! in bytewise order. A key with anything else (a merge operand, a blob, a key that two tables of a run share) is
//! left to [`super::get`]; the caller hands it over, so this folder calls nothing above it.
//!
//! `layout` is below the rest of the folder in the order of modules: a super version owns its layout (made once,
//! found with one load, freed with it), and `get`, `batch` and `walk` read super versions.

mod batch;
mod get;
pub(crate) mod layout;
mod walk;

pub(super) use batch::multi_get;
pub(super) use get::get;
pub(super) use walk::{ResidentTables, WithinPrefix};
