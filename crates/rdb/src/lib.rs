//! Redis's files: RDB, append-only files and the payloads of DUMP. A library without I/O: bytes are pushed into
//! readers, and writers append to a [`Sink`].
//!
//! - [`Reader`] takes an RDB file in pieces of any size and gives events; [`Collector`] makes a [`Value`] of the
//!   events of one key.
//! - [`FileWriter`] writes RDB files of the versions that Redis 6.2 to 7.4 read.
//! - [`dump`] has both ways for the payloads of `DUMP` and `RESTORE`.
//! - [`aof`] reads the manifest of a multi-part append-only file and the commands of its parts.
//! - [`listpack`], [`ziplist`], [`zipmap`], [`intset`] and [`lzf`] are the packings inside.
//!
//! # Why events
//!
//! A list may have ten million elements, and a file comes through a socket. So the reader gives one element at a
//! time, and keeps no more than the string that it waits for and the packed node that it takes apart. For whole
//! values there is the collector, which counts memory and fails at a bound. The price: the reader of a file does
//! not see that a large set has a member twice. The collector does; a loader that sorts the members meets equal
//! neighbours. Packed nodes are always in memory, so their duplicates are refused by the reader itself.
//!
//! # Hostile input
//!
//! Every byte is a claim. Lengths and counts are compared with the remaining bytes. Nothing is allocated for bytes
//! that have not arrived, except for compressed strings, whose claimed length is bounded by LZF's highest ratio.
//! Sizes, offsets, counts and back lengths of packed nodes are all compared, as Redis's own deep sanitizer does.
//! Nothing recurses, and the time is linear, except for sorting the names of one packed node or one collected
//! value.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

pub mod aof;
pub mod crc64;
pub mod dump;
pub mod intset;
pub mod listpack;
pub mod lzf;
pub mod ziplist;
pub mod zipmap;

mod collect;
mod cursor;
mod decode;
mod encode;
mod number;
mod unique;
mod value;

pub use collect::Collector;
pub use decode::reader::{Event, KeyHead, Limits, Reader, VERSION_READ_MAX};
pub use encode::file::{FileWriter, KeyFacts, Sink};
pub use encode::streams::{NodeCutter, StreamPart};
pub use encode::{Encoding, Version};
pub use value::{
    Bytes, Consumer, Entry, Field, Group, Item, Kind, Pending, Stream, StreamHead, StreamId, Value,
};
