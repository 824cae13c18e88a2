//! LevelDB's C interface over Drumlin: the functions of `leveldb/c.h`, with its ownership and its errors.
//!
//! Each function checks its handles (`drumlin_ffi::handle`), makes slices of pointers and lengths (`drumlin_ffi::bytes`), and turns errors and
//! panics into LevelDB's error texts ([`error`]). No panic crosses into C. A handle of the wrong type, destroyed
//! before, or null where LevelDB takes none ends the process with a sentence that names the function: what it
//! points to cannot be trusted.
//!
//! Threads: as `leveldb/c.h` has it. Databases, caches and comparators may be used by any thread at a time; options,
//! batches and iterators by one at a time.

mod batch;
mod cache;
mod comparator;
mod database;
mod error;
mod filter;
mod iterator;
mod misc;
mod options;
