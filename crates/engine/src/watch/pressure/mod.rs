//! Back-pressure: how fast writers may go, from how fast the background works and how far it is
//! behind. Nothing in here reads a clock or takes the state lock.
//!
//! Writers are slowed, not stopped. The controller measures how fast flushes and compactions work and how many bytes of
//! debt each byte written causes, so it knows the speed of writes that the disk sustains. It watches four fills:
//! memtables, L0, the debt of compactions, and waste on the disk (files still to be removed, garbage in blob files
//! past the share that is tolerated; as much is allowed as the store holds, or 1 GiB), which drains at the measured
//! speed of freeing. Up to its soft limit a fill allows any speed, half-way from there to its hard limit the speed at
//! which it drains, and past that less: little by little for memtables, until the last quarter of their limit, for they take
//! up what a flush loses to a compaction beside it. The smallest allowance decides. The leader pays for written bytes in
//! sleeps of a millisecond.
//!
//! No count of tables stops writes. A writer waits for a flush only when every memtable is full, which the fill of
//! memtables prevents as long as flushes make progress. Manual compactions count for nothing in this.

mod board;
mod controller;
mod debt;
mod memory;
mod pace;
#[cfg(test)]
mod simulation;
mod speed;
mod verdict;
mod write_throttle;

pub(crate) use board::{Board, JobKind, PressureState, Removal, RunningJob};
#[cfg(test)]
use controller::{Controller, Sample};
#[cfg(test)]
use memory::memory_fill;
pub(crate) use verdict::Fill;
#[cfg(test)]
use verdict::Verdict;
pub(crate) use write_throttle::WriteThrottle;
