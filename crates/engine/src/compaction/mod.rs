//! Compaction: rewriting tables into fewer, larger, deeper ones.
//!
//! A [`Picker`] (one for each [`CompactionStyle`]) looks at a version and returns a [`Plan`];
//! [`job::run`] carries it out and returns
//! what changed. Neither installs anything. `keep` holds the rules of what stays, `stream` carries
//! them out over a cursor, `split` says where output files end.

pub mod blob_inputs;
pub mod blob_outputs;
pub mod blob_picker;
pub mod blob_tally;
pub mod cover;
pub mod created;
pub mod density;
pub mod fifo;
pub mod flush;
pub mod for_reads;
pub mod intra_l0;
pub mod job;
pub mod keep;
pub mod leveled;
pub mod manual;
pub mod output;
pub mod parts;
pub mod pick;
pub mod plan;
pub mod progress;
pub mod span;
pub mod split;
pub mod stream;
pub mod style;
pub mod style_text;
pub mod universal;
pub mod wanted;

pub use leveled::Leveled;
pub use manual::{CancelToken, ManualWork, Piece};
pub use pick::{pending_bytes, pick, read_account};
pub use plan::{
    CompactionOptions, InFlight, ManualRange, Moment, Picker, Plan, PlanInput, Reason, Work,
};
pub use style::{CompactionStyle, FifoOptions, UniversalOptions};

#[cfg(test)]
mod fifo_tests;
#[cfg(test)]
mod for_reads_tests;
#[cfg(test)]
mod job_tests;
#[cfg(test)]
mod leveled_tests;
#[cfg(test)]
mod manual_tests;
#[cfg(test)]
mod picture;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod simulator_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod universal_tests;
