//! Where writes live until they are flushed: an ordered set of entries in bump memory.
//!
//! [`Memtable`] takes entries from many threads at once, serves reads that take no lock and write
//! nothing shared, and hands out values in place. Its rooms:
//!
//! ```text
//! memtable, iterator   what the engine sees
//! range_tombstones     apart from the point entries: few, and read whole
//! tree                 the order: descents, splits, positions
//! node                 one sorted array under a versioned latch
//! probe                keys to look for; eight-byte heads that decide most comparisons
//! entry, arena         the bytes, where they stay until the memtable is dropped
//! ```
//!
//! # Why a tree and not a skiplist
//!
//! A skiplist of 1.8 million entries outgrows every cache, and each step down it is a DRAM miss that
//! depends on the one before: about ten for a random insert. Here a node is an array of 64 eight-byte
//! key heads beside 64 pointers. Inner nodes together fit the second-level cache; a search asks for
//! all lines of the next node at once and decides inside it without visiting entries, because
//! heads start after the bytes that the node's fences prove common. That leaves about two misses:
//! the leaf, and for a hit the entry. A scan knows the coming entries from the leaf and asks for
//! them ahead, which a list cannot.
//!
//! Measured by `examples/speed.rs` (EPYC, 32 MB L3, 16-byte keys, 100-byte values, 1.8 million
//! entries, one thread; ns per operation, elapsed, both on the same lightly loaded machine):
//!
//! | | skiplist, CAS | this tree |
//! | --- | --- | --- |
//! | sequential adds | 210 | 117 |
//! | random adds | 2595 | 465 |
//! | random gets, present | 4896 | 558 |
//! | scan forward | 268 | 88 |
//! | scan backward | 677 | 61 |
//!
//! Huge pages (see `arena`) came afterwards. With them, in processor time on a machine by then too
//! loaded for a clock: random adds 438, gets 481, forward scan 12, backward scan 32. Of 32 and 64
//! slots to a node, 64 won: random adds 438 against 563, gets 481 against 608, forward scan 12
//! against 14. Beside its bytes an entry costs 19 after ascending adds and 26 after random ones (the
//! skiplist: 20), slack of the last chunk included.
//!
//! The price: a reader that meets a writer in the same leaf waits for it or starts over. Writers
//! hold a latch for some dozen nanoseconds and never while they allocate an entry.

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
#[cfg(loom)]
pub use sync::set_stepping;
