//! The write path.
//!
//! A write passes four stages, all of them in `commit`: it joins a group (`queue`), whose leader finds room
//! (`room`, and `rotate` when a memtable or a WAL is full) and logs it; it is synced if it asked for that; applied to
//! the memtables (`room`); and published in the order of the log (`published`).

pub mod batch;
pub(crate) mod commit;
#[cfg(test)]
mod commit_tests;
pub(crate) mod published;
pub(crate) mod queue;
pub(crate) mod room;
pub(crate) mod rotate;
