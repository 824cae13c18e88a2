//! The write-ahead log: its files, the records in them, their replay, and the files kept after their time.

pub(crate) mod archive;
pub(crate) mod change;
pub(crate) mod dir;
pub(crate) mod follow;
pub(crate) mod log;
pub(crate) mod preallocator;
pub mod record;
pub(crate) mod replay;
pub(crate) mod tail;
