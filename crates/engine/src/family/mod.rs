//! Column families: their handles, their super versions, snapshots.
//!
//! A family's state has three parts: `Family` is what its handles and its readers share, `FamilyState` (in the
//! store) what writers and jobs change under the state's lock, `FamilyVersions` (in the version set) what the
//! MANIFEST says of it.

pub(crate) mod column_family;
pub(crate) mod merge_operators;
pub(crate) mod moment;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod super_version;
pub(crate) mod ttl;
