//! Compaction: rewriting tables into fewer, larger, deeper ones.
//!
//! A [`Picker`] (one for each [`CompactionStyle`]) looks at a version and returns a [`Plan`];
//! [`rewrite::run`] carries it out and returns
//! the changes. Neither installs anything. `keep` holds the rules for entries, `stream` carries
//! them out over a cursor, `split` says where output files end.

pub(crate) mod blob_inputs;
pub(crate) mod blob_outputs;
pub(crate) mod blob_picker;
pub(crate) mod blob_tally;
pub(crate) mod chosen;
pub(crate) mod cover;
pub(crate) mod created;
pub(crate) mod density;
pub(crate) mod fifo;
pub(crate) mod flush;
pub(crate) mod for_reads;
pub(crate) mod intra_l0;
pub(crate) mod keep;
pub(crate) mod leveled;
pub(crate) mod manual;
pub(crate) mod output;
pub(crate) mod parts;
pub(crate) mod pick;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod rewrite;
pub(crate) mod span;
pub(crate) mod split;
pub(crate) mod stream;
pub(crate) mod style;
pub mod style_text;
pub(crate) mod universal;
pub(crate) mod wanted;
pub(crate) mod within;

pub(crate) use leveled::Leveled;
pub use manual::CancelToken;
pub(crate) use manual::{ManualWork, Piece};
pub(crate) use pick::{l0_is_due, pending_bytes, pick, read_account};
pub(crate) use plan::{CompactionOptions, InFlight, ManualRange, Moment, Plan, Work};
pub use style::{CompactionStyle, FifoOptions, UniversalOptions};

#[cfg(test)]
mod fifo_tests;
#[cfg(test)]
mod for_reads_tests;
#[cfg(test)]
mod leveled_tests;
#[cfg(test)]
mod manual_tests;
#[cfg(test)]
mod picture;
#[cfg(test)]
mod rewrite_tests;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod simulator_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod universal_tests;
