//! Column families: their handles, what readers see of them, snapshots.

pub(crate) mod column_family;
pub(crate) mod merge_operators;
pub mod snapshot;
pub mod super_version;
