//! What users read: one key, many keys, a walk. Every read works on one pinned super version.

#[cfg(test)]
mod blob_tests;
mod context;
mod db_iter;
mod entity;
mod get;
mod iterator;
#[cfg(test)]
mod iterator_tests;
mod lazy_blob;
mod multi_get;
mod own_key;
mod resident;
mod sampling;
#[cfg(test)]
mod test_family;
#[cfg(test)]
pub(crate) mod test_tables;
#[cfg(test)]
mod tests;
mod walk;
mod walk_backward;
mod walk_forward;

pub use context::ReadContext;
pub use db_iter::{IteratorCounters, IteratorOptions, ViewSource, Walk};
pub use get::get_to;
pub use iterator::{DbIterator, WalkPool};
pub use multi_get::multi_get;
