//! The memtable: an ordered set of entries in bump memory, which holds writes until they are flushed.
//!
//! [`Memtable`] takes entries from many threads at once, serves reads that take no lock and write
//! nothing shared, and hands out values in place. Its modules:
//!
//! ```text
//! memtable, iterator   the engine's interface
//! filter               rules absent keys out without a search
//! dead_spans           keys that walks found dead, for later walks to go past
//! range_tombstones     kept apart from the point entries, with an index of their own
//! step_function        the newest range tombstone over each key
//! tree                 the order: descents, splits, positions
//! descent              many searches, interleaved
//! node                 one sorted array under a versioned latch
//! probe                keys to look for; eight-byte key prefixes that decide most comparisons
//! entry, arena         the bytes, where they stay until the memtable is dropped
//! ```
//!
//! # Why a tree and not a skiplist
//!
//! A skiplist of 1.8 million entries outgrows every cache, and each step down it is a DRAM miss that
//! depends on the one before: about ten for a random insert. Here a node is an array of 64 eight-byte
//! key prefixes beside 64 pointers. Inner nodes together fit the second-level cache; a search prefetches
//! all lines of the next node at once and decides inside it without visiting entries, because key prefixes
//! start after the bytes that the node's fences prove common. That leaves about two misses: the leaf, and
//! for a hit the entry. A scan knows the coming entries from the leaf and prefetches them, which a list
//! cannot.
//!
//! Measured by `examples/speed.rs` (EPYC, 2 cores, 32 MB L3; 16-byte keys, 100-byte values, 1.8
//! million entries, one thread; ns per operation, elapsed, one run each on a machine with other
//! builds going on, before chunks were advised as huge pages):
//!
//! | | skiplist, CAS | this tree |
//! | --- | --- | --- |
//! | sequential adds | 210 | 117 |
//! | random adds | 2595 | 465 |
//! | random gets, present | 4896 | 558 |
//! | scan forward | 268 | 88 |
//! | scan backward | 677 | 61 |
//!
//! With huge pages, in processor time, because the machine was too loaded by then for wall-clock times
//! (two runs): sequential adds 65 to 109, random adds 438 to 516, gets 481 to 540, forward scan 12 to 13,
//! backward scan 32 to 39; the skiplist, run beside the second: sequential adds 216, random adds
//! 4817. With 32 slots to a node instead of 64, one run: random adds 563, gets 608, forward scan 14.
//! An entry takes 19 bytes beside its own after ascending adds and 26 after random ones (the
//! skiplist: 20), slack of the last chunk included.
//!
//! A filter answers for most absent keys, so that the tree is descended only for those that are present.
//! Radix trees and hash tables were measured beside both: see *Memtables* in `docs/measurements/writes.md`.
//!
//! The price: a reader that meets a writer in the same leaf waits for it or starts over. Writers
//! hold a latch for some dozen nanoseconds and never while they allocate an entry.

mod arena;
mod dead_spans;
mod descent;
mod entry;
mod filter;
mod iterator;
mod memtable;
mod node;
mod pool;
mod probe;
mod range_tombstones;
mod step_function;
mod sync;
mod tree;

pub use dead_spans::{DeadSpans, Note, Sight};
pub use iterator::MemtableIter;
pub use memtable::{MemValue, Memtable};
pub use step_function::CoveredSpan;
#[cfg(loom)]
pub use sync::set_stepping;
