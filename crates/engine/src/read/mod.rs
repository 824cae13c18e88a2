//! Reads: one key, many keys, a walk. Every read works on one pinned super version.
//!
//! ```text
//! get         one key, newest source to oldest
//! multi_get   many keys, each stage of a lookup with all of them before the next
//! iterator    the cursor a user holds, over a walk that is pooled
//! walk        the walk in it
//! newest      how new a key is
//! newer       whether a key of a range is newer than a moment
//! resident    all three over tables in memory
//! context     the arguments that all of them take
//! source      the cursors that a walk merges
//! lazy_blob   a walk's value in a blob file, read when it is asked for
//! own_key     a blob under the key it was written with
//! entity      the default column of a wide-column entity
//! sampling    the cost of having several sorted runs, charged to their tables
//! ```

#[cfg(test)]
mod blob_tests;
mod context;
mod entity;
mod get;
mod iterator;
#[cfg(test)]
mod iterator_tests;
mod lazy_blob;
mod multi_get;
mod newer;
mod newest;
mod own_key;
pub(crate) mod resident;
mod sampling;
mod source;
#[cfg(test)]
mod test_family;
#[cfg(test)]
pub(crate) mod test_tables;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use context::{ReadContext, ReadView};
pub(crate) use get::get_to;
pub use iterator::DbIterator;
pub(crate) use multi_get::multi_get;
pub(crate) use newer::{KeyInterval, newer_in_range};
pub(crate) use newest::newest_seqno;
pub(crate) use walk::{FamilyReads, IteratorOptions, RefreshSource, WalkPool};
