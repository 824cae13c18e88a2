//! RocksDB's own benchmark as an entrant: a process for each stage, watched from outside.

mod command;
mod line;
mod run;

pub use line::{Line, parse};
pub use run::{DbBench, run_within};
