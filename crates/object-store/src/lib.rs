//! Backups in object storage.
//!
//! [`ObjectFileSystem`] is a bucket, below a prefix, as a file system: as far as `drumlin::Backups` needs one. The engine
//! knows nothing of it, has no asynchronous runtime, and its backups have the same layout as in a directory: what is
//! copied from there into a bucket, or back, by any tool, is restored by either, and by RocksDB.
//!
//! ```no_run
//! # fn main() -> drumlin::Result<()> {
//! use std::sync::Arc;
//! use drumlin::{BackupOptions, Backups, Db, Env, Options, RestoreOptions};
//! use drumlin_object_store::{Limits, ObjectFileSystem};
//!
//! let bucket = ObjectFileSystem::from_env("s3://bucket/nightly", &Limits::default())?;
//! let backups = Backups::new(bucket.root(), Env::system().with_files(Arc::new(bucket.clone())));
//! let db = Db::open("/data/store", Options::default())?;
//! backups.create(&db, &BackupOptions::default())?;
//!
//! let here = RestoreOptions {
//!     files: Some(Env::system().files),
//!     ..RestoreOptions::default()
//! };
//! backups.restore(None, "/data/restored", &here)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What differs from a directory
//! - An object has its name when all of it has arrived, and not before; there is nothing to sync and nothing half-written.
//!   So tables have no temporary name. The few small files that the engine renames are copied by the store.
//! - A directory is there while something is in it.
//! - Names may be removed that are not there.
//! - A lock is an object that its holder writes anew every few seconds ([`Limits::lease`]).
//!
//! # Threads, memory, requests
//! Two threads of a runtime of their own do the requests, whoever calls waits for them; calls may come from any thread,
//! those of another runtime too. A file that is written takes up to five parts of memory, of 8 MiB (more of files above
//! 70 GiB), one that is read up to four. A file of at most one part is one request, a larger one two and one for each part;
//! a file that is read takes one request, and one for each 8 MiB.

mod bucket;
mod calls;
mod download;
mod failure;
mod files;
mod lock;
mod place;
mod upload;

pub use files::ObjectFileSystem;
pub use place::{Limits, is_url};
