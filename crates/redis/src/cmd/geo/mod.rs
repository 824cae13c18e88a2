//! Commands of places.

mod args;
mod place;
mod search;
mod table;

pub(crate) use table::COMMANDS;
