//! Operations on a whole store: check, mend, copy, compact, take files in, create and drop families.

pub(crate) mod backup;
mod change_log;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod compact_files;
pub(crate) mod delete_files;
pub(crate) mod destroy;
pub(crate) mod export;
pub(crate) mod families;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod ingest;
mod moment;
pub(crate) mod moment_files;
pub(crate) mod pause;
pub(crate) mod repair;
pub(crate) mod repair_blobs;
mod repair_families;
pub(crate) mod set_options;
mod timestamps;
pub(crate) mod verify;
pub(crate) mod watched;
