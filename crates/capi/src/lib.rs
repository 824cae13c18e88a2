//! RocksDB's C interface over Drumlin: the functions of `rocksdb/c.h`, with its ownership and its errors.
//!
//! What is the same for hundreds of functions is generated from the tables in `abi` (see `build/shells.rs`): the shells that C calls,
//! which check handles and make slices of pointers and lengths, the objects that hold options, and the header. A shell
//! hands on to the safe function of the same name here, one file a noun; [`calls`] lists the files. What takes callbacks or arrays is written
//! by hand, shell and all. No logic of a database is here: a function reads its arguments, calls the engine, and gives back.
//!
//! No panic crosses into C. A handle of the wrong type, destroyed before, or null where RocksDB takes none ends the process with a
//! sentence that names the function.
//!
//! Threads: databases, families, caches, environments and backup engines may be used by any thread at a time, all else by one.

mod backup;
mod batch;
mod cache;
mod callback;
mod calls;
mod changes;
mod compact_files;
mod compaction_filter;
mod comparator;
mod database;
mod env;
mod error;
mod family;
mod family_copy;
mod fields;
mod file_manager;
mod indexed_batch;
mod iterator;
mod job_stats;
mod jobs;
mod listener;
mod log_header;
mod logger;
mod maintenance;
mod memory;
mod merge;
mod metadata;
mod misc;
mod opening;
mod options;
mod perf;
mod pinned;
mod reads;
mod recorded;
mod secondary;
mod set_options;
mod shells;
mod small_options;
mod snapshot;
mod statistics;
mod storage_info;
mod stored_options;
mod table_options;
mod table_properties;
mod table_writer;
mod timestamped_gets;
mod timestamps;
mod transaction;
mod transform;
mod wal_files;
mod write_buffers;
mod writes;
