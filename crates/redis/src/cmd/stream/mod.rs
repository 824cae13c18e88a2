//! Commands of streams.

mod args;
mod groups;
mod pending;
mod range;
mod read;
mod readgroup;
mod table;
mod write;

pub(crate) use table::COMMANDS;
