//! Batches that are read before they are written, and transactions over [`crate::Db`]: keys are locked as they are
//! written, or just before all is written at once.
//!
//! Below this folder only the steps of two-phase commit are known, as records of the log (`write/two_phase`): a program
//! without transactions pays nothing for them.

pub(crate) mod core;
pub(crate) mod database;
pub(crate) mod expiry;
pub(crate) mod family_writes;
pub(crate) mod indexed_batch;
pub(crate) mod lock;
pub(crate) mod lock_key;
pub(crate) mod lock_table;
pub(crate) mod ordered_map;
pub(crate) mod overlay;
pub(crate) mod own_writes;
pub(crate) mod prepared;
pub(crate) mod range_locks;
pub(crate) mod reads;
pub(crate) mod stripes;
pub(crate) mod transaction;
pub(crate) mod waits_for;
pub(crate) mod wanted;

#[cfg(test)]
mod lock_table_tests;
#[cfg(test)]
mod range_lock_tests;
