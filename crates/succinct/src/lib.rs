//! Records that are compressed together and read one by one.
//!
//! Block compression finds what neighbouring records share and must unpack a block to give one of
//! them back. Here what records share is learned once, from a sample, into a [`Model`]; each record
//! then becomes a short code of its own, and is decoded from that code and the model alone.
//!
//! Rooms, bottom to top: [`model`] (what a record's code means).
//!
//! Nothing here does I/O, reads a clock or starts a thread; the crate is of use without the engine.
//! Every decoder takes its bytes as a claim: it fails with `Corruption`, never panics, and writes no
//! more than a stated multiple of what it read.

#![forbid(unsafe_code)]

pub mod keys;
pub mod model;

pub use keys::{KeyCursor, KeyIndex, KeyIndexBuilder, KeyWalk};
pub use model::{Effort, Encoder, Model};
