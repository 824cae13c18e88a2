//! Where writes live until they are flushed: an ordered set of entries in bump memory.
//!
//! [`Memtable`] takes entries from many threads at once and serves reads that take no lock.

mod arena;
mod entry;
mod iterator;
mod memtable;
mod node;
mod prefetch;
mod probe;
mod range_tombstones;
mod sync;
mod tree;

pub use iterator::MemtableIter;
pub use memtable::{MemValue, Memtable};
