//! Records that are compressed together and read one by one.
//!
//! Block compression finds the redundancy of neighbouring records and must unpack a block to read
//! one of them. Here the redundancy is learned once, from a sample, into a [`Model`]; each record
//! then becomes a short code of its own, and is decoded from that code and the model alone.
//!
//! Rooms, bottom to top:
//!
//! - [`bits`] and [`huffman`]: bits, and codes that decode by one small table;
//! - [`tokens`] and [`dictionary`]: the parts of texts: short strings, and long ones stored once;
//! - [`text`]: texts as rows of bits;
//! - [`documents`]: BSON documents as text, and back;
//! - [`template`]: records of a stable shape, as typed columns;
//! - [`model`]: the choice among these for a sample, and the meaning of a record's code;
//! - [`keys`]: the keys of a table, in order, encoded by their common pattern.
//!
//! ```
//! use std::sync::Arc;
//! use drumlin_succinct::{Effort, Encoder, Model};
//!
//! let record = |n: u32| format!("{n}|1996-03-{:02}|till and drumlins", n % 28 + 1);
//! let records: Vec<String> = (0..800).map(record).collect();
//! let sample: Vec<&[u8]> = records.iter().map(|record| record.as_bytes()).collect();
//! let model = Arc::new(Model::train(&sample, Effort::Small));
//!
//! let (mut code, mut back) = (Vec::new(), Vec::new());
//! Encoder::new(Arc::clone(&model)).encode(sample[17], &mut code);
//! model.decode(&code, &mut back)?;
//! assert_eq!(back, sample[17]);
//! assert!(code.len() < 5);
//! # Ok::<(), drumlin_base::Error>(())
//! ```
//!
//! Nothing here does I/O, reads a clock or starts a thread; the crate works without the engine.
//! Every decoder treats its bytes as a claim: it fails with `Corruption`, never panics, and writes
//! no more than a stated multiple of the bytes it read.

#![forbid(unsafe_code)]

pub mod bits;
pub mod dictionary;
pub mod documents;
mod held;
pub mod huffman;
pub mod keys;
pub mod model;
pub mod template;
pub mod text;
pub mod tokens;

pub use held::HeldBytes;
pub use keys::{KeyCursor, KeyIndex, KeyIndexBuilder, KeyWalk};
pub use model::{Effort, Encoder, Model};
