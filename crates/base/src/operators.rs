//! User callbacks that teach the engine about the data: merge operators, compaction filters, prefix extractors.
//!
//! All of them are called from many threads, and may be called during recovery and compaction, long after the
//! write. They must be deterministic and must not call back into the database.

use crate::Result;

/// Combines operands with the value under them.
pub trait MergeOperator: Send + Sync {
    /// The stored name.
    fn name(&self) -> &str;

    /// How an OPTIONS file describes the operator: its name or, where it has settings of its own,
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

    /// One operand that does what `left` and then `right` do, or `None` when there is none.
    fn partial_merge(&self, key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        let _ = (key, left, right);
        None
    }
}

/// What a compaction filter says of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// Keep it.
    Keep,
    /// Drop it, as if it had been deleted.
    Remove,
    /// Keep the key with another value.
    Change(Vec<u8>),
}

/// Looks at each value that compaction carries and no snapshot protects.
pub trait CompactionFilter: Send + Sync {
    /// The filter's name, for logs.
    fn name(&self) -> &str;

    /// What becomes of `key` and its `value`, on its way to `level`.
    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// Cuts a prefix from a key, so that filters can answer for a whole prefix.
pub trait PrefixExtractor: Send + Sync {
    /// The stored name; a table built under another name is read without its prefix filter. Change it
    /// whenever prefixes are cut otherwise.
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
