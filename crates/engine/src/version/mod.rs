//! The tables that make up the database: versions, the edits between them, and the MANIFEST that
//! keeps both.
//!
//! An edit is decoded by `edit`, applied by `builder` to give a new immutable [`Version`], and made
//! durable and installed by `set`, which is the only place that does so. `obsolete` decides which
//! files nobody needs any more.

mod blob_file;
pub mod blob_garbage;
mod builder;
pub mod edit;
mod edit_decode;
mod edit_encode;
mod family_versions;
mod file_meta;
mod follow;
mod history;
mod key_ranks;
mod key_walk;
mod leaving;
mod left_files;
mod levels;
mod manifest;
mod manifest_tail;
mod numbers;
pub mod obsolete;
mod open;
mod recover;
mod section_wals;
mod set;
#[cfg(test)]
mod tests;
mod told;

pub use blob_file::{BlobFile, BlobTotals};
pub use blob_garbage::excess_garbage;
pub use builder::{Built, VersionBuilder};
pub use edit::{BlobFileAddition, BlobFileGarbage, Profile, VersionEdit};
pub use family_versions::FamilyVersions;
pub use file_meta::{EntryCounts, FileChecksum, FileMeta, NewFile};
pub(crate) use follow::NewFiles;
pub use history::{History, MOMENTS_MAX, PastMoment};
pub use key_ranks::{KeyRanks, Ranked};
pub use key_walk::{KeyCounts, KeyWalk};
pub use levels::Version;
pub use manifest::{ManifestCopy, locate_manifest};
pub use numbers::{FileNumbers, JobFiles};
pub use open::{RecoveredInfo, VersionSetOptions};
pub use recover::{DEFAULT_FAMILY, OrderOf, find_table};
pub use section_wals::SectionWals;
pub use set::{NewTables, VersionSet};
#[cfg(test)]
pub(crate) use told::ToldFamily;
pub(crate) use told::{Told, refuse_tables_elsewhere};
