//! The arguments of every read: the fixed parts of its family, and the moment it reads at.

use std::fmt;
use std::sync::Arc;

use drumlin_base::{KeyOrder, MergeOperator, PinnedSlice, PrefixExtractor, Result, SeqNo};

use crate::caches::blob_cache::BlobCache;
use crate::caches::table_cache::TableCache;
use crate::family::super_version::SuperVersion;
use crate::family::ttl::Ttl;

/// Keys that a batch looks up together, each stage with all of them before the next stage.
pub(super) const ROUND: usize = 32;

/// The result of a get for one key.
pub(super) type Answer = Result<Option<PinnedSlice>>;

/// Makes `answer` a value, which the caller writes where it is.
///
/// A small value is inside its [`PinnedSlice`]. Moving it right after it was written stalls store-to-load
/// forwarding, and with it every load behind.
#[inline(always)]
pub(super) fn value_in(answer: &mut Answer) -> &mut PinnedSlice {
    *answer = Ok(Some(PinnedSlice::default()));
    match answer {
        Ok(Some(value)) => value,
        _ => unreachable!("it was made a value above"),
    }
}

/// The fixed parts of one family that reads use. Made once when the family is opened.
pub struct ReadContext {
    /// The order of its keys.
    pub order: KeyOrder,
    /// Applies merge operands; reads of keys with operands fail without it.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Cuts prefixes, for walks that stay within one.
    pub prefix: Option<Arc<dyn PrefixExtractor>>,
    /// The time behind each value, and when it is up; such values are stripped of it, or not shown.
    pub ttl: Option<Arc<Ttl>>,
    /// Whether its new tables are made for memory, so that lookups prefetch from all of them at once.
    pub in_memory: bool,
    /// Where tables are opened.
    pub tables: Arc<TableCache>,
    /// Where blob files are opened.
    pub blobs: Arc<BlobCache>,
}

impl fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadContext")
            .field("order", &self.order)
            .field("merges", &self.merge_operator.is_some())
            .finish_non_exhaustive()
    }
}

/// One family as a reader at `seqno` sees it.
///
/// Requires: the sequence number was taken after the super version, or belongs to a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadView<'a> {
    /// The memtables and tables.
    pub super_version: &'a SuperVersion,
    /// The family.
    pub context: &'a ReadContext,
    /// The newest sequence number that shows.
    pub seqno: SeqNo,
}
