//! Commands of sorted sets.

mod args;
mod change;
mod combine;
mod pop;
mod range;
mod read;
mod table;

pub(crate) use table::COMMANDS;
