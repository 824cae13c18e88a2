//! Histories of concurrent transactions under the scheduler, with power cuts, and their judge.
//!
//! Every key holds the list of the transactions that appended to it, so what a transaction read says exactly which others
//! it saw, and the last list of a key says in which order it was written ([`judge`]). [`run`] makes such a history from a
//! seed: threads with transactions of each isolation, gets, walks over ranges, two-phase commit, flushes, a power cut, and
//! what recovery finds.

mod judge;
mod run;

pub use run::{Outcome, Sum, run};
