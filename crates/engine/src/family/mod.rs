//! Column families: their handles, their readers' views, snapshots.

pub(crate) mod column_family;
pub(crate) mod merge_operators;
pub(crate) mod moment;
pub(crate) mod snapshot;
pub(crate) mod super_version;
