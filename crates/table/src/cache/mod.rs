//! The block cache: a slot per block in the table that owns it, and a clock that empties slots.
//!
//! A table knows the number of every block it reads, so a hit needs no hash table and no lock: it
//! is one array index and one load ([`SlotArray::get`]). Only filling and emptying slots takes a
//! lock, one of several ([`BlockCache`]).
//!
//! [`ReadAhead`] is the buffer of one scan, which reads more of the file than was asked for.

mod clock;
mod readahead;
mod ring;
mod slot;

pub use clock::BlockCache;
pub(crate) use readahead::ReadAhead;
pub(crate) use slot::{Cached, Fetched, SlotArray};
