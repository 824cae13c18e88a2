//! Column families: their handles, what readers see of them, snapshots.

pub(crate) mod column_family;
pub(crate) mod merge_operators;
pub(crate) mod moment;
pub(crate) mod snapshot;
pub(crate) mod super_version;
