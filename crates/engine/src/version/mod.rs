//! Which tables make up the database: versions, the edits between them, and the MANIFEST that keeps
//! both.
//!
//! An edit is decoded by `edit`, applied by `builder` to give a new immutable [`Version`], and made
//! durable and installed by `set`, which is the only place that does so. `obsolete` decides which
//! files nobody needs any more.

pub mod edit;
mod edit_decode;
mod edit_encode;
mod file_meta;
mod levels;

pub use edit::{BlobFileAddition, BlobFileGarbage, Profile, VersionEdit};
pub use file_meta::{FileChecksum, FileMeta, NewFile};
pub use levels::Version;
