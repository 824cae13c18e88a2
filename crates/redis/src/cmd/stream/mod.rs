//! Commands of streams.

mod args;
mod range;
mod read;
mod table;
mod write;

pub(crate) use table::COMMANDS;
