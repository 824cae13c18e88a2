//! The directory: names, free space, obsolete files and files written in their place.
//!
//! Tables and blob files are handed to the disk each MiB while they are written, and the writer waits for the MiB but
//! two before: syncs are short, and the kernel never has seconds of our dirty pages. Flushes and compactions write
//! through a rate limiter if `background_rate` sets one: a flush goes before compactions, those before manual work,
//! and none starves. With `Tuning::background_direct_io` they bypass the page cache, which stays with the readers;
//! the last part of a block at a file's end goes through the cache, and so do blobs that are moved, which are read
//! one by one.
//!
//! `space` watches free space: below the reserve writes are refused, deletions are allowed down to a quarter of it,
//! and a compaction first reserves space for its output. The WAL directory, if it is on another disk, is not watched.
//! On a small disk the derived sizes shrink, so that all memtables can be flushed within the reserve: memtables to a
//! 64th of the free space, the space reserved ahead for a WAL to a 16th.

pub(crate) mod disk_watch;
pub(crate) mod held_files;
pub mod names;
pub(crate) mod reuse;
pub(crate) mod space;
pub(crate) mod trash;
