//! Commands: the table of them, and what is the same for all.

mod aggregate;
mod bulk_write;
mod call;
mod change;
mod collections;
mod concerns;
mod cursor;
mod delete;
mod diagnosis;
mod explain;
mod find;
mod find_and_modify;
mod first;
mod handshake;
mod indexes;
mod insert;
mod options;
mod refusals;
mod sasl;
mod server_status;
mod shape;
mod stable_api;
mod statements;
mod table;
mod update;
mod users;
mod values;
mod write_reply;

pub(crate) use handshake::pause_of;
pub(crate) use refusals::refused;
pub(crate) use table::{names, run, run_at_once, run_or_wait};
