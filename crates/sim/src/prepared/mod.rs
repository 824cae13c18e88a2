//! Power cuts between the acknowledged prepare of a transaction and the acknowledged end of it, as many as there is time for.
//!
//! A seed is a chain of them: one small store on a disk in memory, that is cut, recovered, judged, worked on and cut again.
//! So a cut costs one recovery and a few steps. One thread: the same seed does the same. [`state`] is what must be there.

mod chain;
mod state;

pub use chain::{CUTS_MAX, Sum, run};
