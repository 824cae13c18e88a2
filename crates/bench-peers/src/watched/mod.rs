//! Watched loads (`stall`, `sustain`) on several engines, one after the other.
//!
//! They cannot share a machine while they are measured, so each runs alone from an empty directory;
//! before the next one begins, the one before has finished its background work, its files are gone
//! and the disk has taken what was still to be written. Rounds repeat all engines in turn, so that a
//! slow quarter of an hour of the machine shows as a difference between rounds and not between
//! engines.

mod contest;
mod report;

pub(crate) use contest::{Contest, Load, run};
