//! The write path.
//!
//! A write passes four stages, all of them in `commit`: it joins a group (`queue`), which is admitted (`admission`, and
//! `rotate` when a memtable or a WAL is full) and logged by its leader; it is synced if the leader asked for that;
//! applied to the memtables (`apply`); and published in the order of the log (`published`). `commit` knows the store
//! as an environment: `env` is its data, `commit_env` its methods.

pub(crate) mod admission;
pub(crate) mod apply;
pub mod batch;
pub(crate) mod batch_view;
pub(crate) mod commit;
pub(crate) mod commit_env;
#[cfg(test)]
mod commit_tests;
pub(crate) mod env;
pub(crate) mod published;
pub(crate) mod queue;
pub(crate) mod rotate;
pub(crate) mod two_phase;
