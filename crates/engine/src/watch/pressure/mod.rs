//! Back-pressure: how fast writers may go, from how fast the background works and how far it is
//! behind. Nothing in here reads a clock or takes the state lock.

mod board;
mod controller;
mod debt;
mod memory;
mod pace;
#[cfg(test)]
mod simulation;
mod speed;
mod toll;
mod verdict;

pub(crate) use board::{Board, JobKind, PressureState, Removal, RunningJob};
#[cfg(test)]
use controller::{Controller, Sample};
#[cfg(test)]
use memory::memory_fill;
pub(crate) use toll::Toll;
pub(crate) use verdict::Fill;
#[cfg(test)]
use verdict::Verdict;
