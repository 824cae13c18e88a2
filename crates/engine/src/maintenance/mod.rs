//! Operations on a whole store: check, mend, copy, take files in.

pub(crate) mod checkpoint;
pub(crate) mod ingest;
pub(crate) mod repair;
pub(crate) mod repair_blobs;
pub(crate) mod verify;
