//! Compaction: rewriting tables into fewer, larger, deeper ones.
//!
//! A [`Picker`] looks at a version and returns a [`Plan`]; [`job::run`] carries it out and returns
//! what changed. Neither installs anything. `keep` holds the rules of what stays, `stream` carries
//! them out over a cursor, `split` says where output files end.

pub mod blob_inputs;
pub mod blob_outputs;
pub mod blob_picker;
pub mod blob_tally;
pub mod cover;
pub mod created;
pub mod job;
pub mod keep;
pub mod leveled;
pub mod output;
pub mod parts;
pub mod plan;
pub mod span;
pub mod split;
pub mod stream;

pub use leveled::Leveled;
pub use plan::{CompactionOptions, InFlight, ManualRange, Picker, Plan, PlanInput, Reason};

#[cfg(test)]
mod job_tests;
#[cfg(test)]
mod leveled_tests;
#[cfg(test)]
mod stream_tests;
