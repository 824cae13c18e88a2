//! Commands of streams.

mod args;
mod autoclaim;
mod effects;
mod groups;
mod info;
mod pending;
mod range;
mod read;
mod readgroup;
mod table;
mod write;

pub(crate) use table::COMMANDS;
