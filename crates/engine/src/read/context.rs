//! What every read of one family needs beside the super version.

use std::fmt;
use std::sync::Arc;

use drumlin_base::{KeyOrder, MergeOperator, PrefixExtractor};

use super::iterator::WalkPool;
use crate::caches::blob_cache::BlobCache;
use crate::caches::table_cache::TableCache;

/// The fixed parts of one family that reads use. Made once when the family is opened.
pub struct ReadContext {
    /// The order of its keys.
    pub order: KeyOrder,
    /// Applies merge operands; reads of keys with operands fail without it.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Cuts prefixes, for walks that stay within one.
    pub prefix: Option<Arc<dyn PrefixExtractor>>,
    /// Whether its new tables are made for memory, so that lookups ask all of them ahead.
    pub in_memory: bool,
    /// Where tables are opened.
    pub tables: Arc<TableCache>,
    /// Where blob files are opened.
    pub blobs: Arc<BlobCache>,
    /// Walks for the next iterators. Renewed with the super version, and closed with the family.
    pub walks: WalkPool,
}

impl fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadContext")
            .field("order", &self.order)
            .field("merges", &self.merge_operator.is_some())
            .finish_non_exhaustive()
    }
}
