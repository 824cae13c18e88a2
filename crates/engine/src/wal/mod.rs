//! The write-ahead log: its files, the records in them, and their replay.

pub(crate) mod dir;
pub(crate) mod log;
pub(crate) mod preallocator;
pub mod record;
pub(crate) mod replay;
