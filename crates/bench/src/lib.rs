//! Workloads under db_bench's names, with its keys, its values and its report lines.
//!
//! The point is comparison line by line: the same flags and the same seed make the same bytes in
//! the same order as RocksDB's db_bench, and the report prints the same line, so that two runs can
//! be compared. Workloads run on any [`Store`]; the engine's own is [`DrumlinStore`], peers are in
//! a crate of their own so that nothing here depends on them.
//!
//! Timing is light: threads keep their own [`stats::ThreadStats`], the clock is read twice a
//! benchmark, and once an operation only when `--histogram` asks for it.

pub mod codecs;
pub mod datasets;
pub mod entries;
pub mod flags;
pub mod histogram;
pub mod keygen;
pub mod lineitem;
pub mod mark;
pub mod mersenne;
pub mod pace;
pub mod records;
pub mod report;
pub mod runner;
pub mod sample;
pub mod stats;
pub mod store;
pub mod text;
pub mod values;
pub mod watch;
pub mod workloads;

mod direct_reads;
mod drumlin_store;
mod gate;
mod latency;
mod reporter;

#[cfg(test)]
mod memory;

pub use drumlin_store::DrumlinStore;
pub use flags::Flags;
pub use runner::Runner;
pub use sample::Sample;
pub use store::{Cursor, NoCursor, Session, Store};
