//! User callbacks that teach the engine about the data: merge operators, compaction filters, prefix extractors.
//!
//! All of them are called from many threads, and may be called during recovery and compaction, long after the
//! write. They must be deterministic and must not call back into the database.

use std::sync::Arc;

use crate::{Result, SeqNo};

/// Combines operands with the value under them.
pub trait MergeOperator: Send + Sync {
    /// The stored name.
    fn name(&self) -> &str;

    /// The operator's description in an OPTIONS file: its name or, if it has settings of its own,
    /// `{id=name;key=value;}`.
    fn options_text(&self) -> String {
        self.name().to_owned()
    }

    /// The value of `key` after `operands` (oldest first) are applied to `existing`, which is
    /// `None` when there is no value under them.
    ///
    /// # Errors
    /// `Corruption` or `InvalidArgument` when the operands make no sense; the read or compaction
    /// that met them fails, the entries stay.
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>>;

    /// One operand with the effect of `left` and then `right`, or `None` when there is none.
    fn partial_merge(&self, key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        let _ = (key, left, right);
        None
    }
}

/// A compaction filter's verdict on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// Keep it.
    Keep,
    /// Drop it, as if it had been deleted.
    Remove,
    /// Keep the key with another value.
    Change(Vec<u8>),
    /// Drop it and every entry that no snapshot protects up to, not including, this user key, without asking about
    /// each: if nothing else is in the way, one seek passes over all of them. Unlike [`FilterDecision::Remove`] it puts
    /// no tombstones in their place, so older versions below show again until their own compaction. For keys that
    /// nobody reads any more, in any version. A key that is not after the entry's own keeps the entry.
    RemoveUntil(Vec<u8>),
}

/// Looks at each value that one compaction carries and no snapshot protects.
///
/// A panic in it fails the compaction with an error that names the filter; compactions then stay off until the store is
/// opened again, and nothing is lost.
pub trait CompactionFilter: Send + Sync {
    /// The filter's name, for errors and logs.
    fn name(&self) -> &str;

    /// Whether values in blob files are read and shown to the filter, at the cost of a read for each. If not, their
    /// entries stay, except under [`FilterDecision::RemoveUntil`].
    fn reads_blobs(&self) -> bool;

    /// The verdict on `key` and its `value`, on its way to `level`.
    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// The compaction that a filter is made for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FilterJob {
    /// The id of the column family.
    pub family: u32,
    /// The levels that are read.
    pub input_levels: Vec<u32>,
    /// The level that is written.
    pub output_level: u32,
    /// Writes to the WAL up to this sequence number were known to outlive a power cut when the job began. A filter that
    /// acts on writes of its own (it drops keys that they declared dead) may only count those up to here: a power cut
    /// could take back a later write, but not the drop it caused.
    pub durable_seqno: SeqNo,
}

impl FilterJob {
    /// A job that reads `input_levels` and writes `output_level` of `family`.
    pub fn new(
        family: u32,
        input_levels: Vec<u32>,
        output_level: u32,
        durable_seqno: SeqNo,
    ) -> Self {
        Self {
            family,
            input_levels,
            output_level,
            durable_seqno,
        }
    }
}

/// Makes the filter of each compaction. Every [`CompactionFilter`] is one that makes itself.
pub trait CompactionFilterFactory: Send + Sync {
    /// The filter for `job`; `None` where this job needs none.
    fn create(self: Arc<Self>, job: &FilterJob) -> Option<Arc<dyn CompactionFilter>>;
}

impl<F: CompactionFilter + 'static> CompactionFilterFactory for F {
    fn create(self: Arc<Self>, _job: &FilterJob) -> Option<Arc<dyn CompactionFilter>> {
        Some(self)
    }
}

/// Cuts a prefix from a key, so that filters can answer for a whole prefix.
pub trait PrefixExtractor: Send + Sync {
    /// The stored name; a table built under another name is read without its prefix filter. Change it
    /// whenever prefixes are cut differently.
    fn name(&self) -> &str;

    /// The prefix of `key`, or `None` when it has none (it is then in no prefix filter).
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]>;
}

/// The first `len` bytes; shorter keys have no prefix. Stored as `rocksdb.FixedPrefix.<len>`.
#[derive(Debug)]
pub struct FixedPrefix {
    len: usize,
    name: String,
}

impl FixedPrefix {
    /// A prefix of `len` bytes.
    pub fn new(len: usize) -> Self {
        Self {
            len,
            name: format!("rocksdb.FixedPrefix.{len}"),
        }
    }
}

impl PrefixExtractor for FixedPrefix {
    fn name(&self) -> &str {
        &self.name
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.get(..self.len)
    }
}

/// At most the first `len` bytes. Stored as `rocksdb.CappedPrefix.<len>`.
#[derive(Debug)]
pub struct CappedPrefix {
    len: usize,
    name: String,
}

impl CappedPrefix {
    /// A prefix of at most `len` bytes.
    pub fn new(len: usize) -> Self {
        Self {
            len,
            name: format!("rocksdb.CappedPrefix.{len}"),
        }
    }
}

impl PrefixExtractor for CappedPrefix {
    fn name(&self) -> &str {
        &self.name
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        Some(key.get(..self.len).unwrap_or(key))
    }
}
