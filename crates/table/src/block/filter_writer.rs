//! Collects a table's keys for its filter: none, one block, partitions, or LevelDB's.

use std::sync::Arc;

use drumlin_base::PrefixExtractor;

use crate::filter::{FilterBuilder, LevelDbFilterBuilder};
use crate::format::{FORMAT_VERSION_WRITTEN, TableStyle};
use crate::options::{FilterOptions, TableWriterOptions};

/// Size a filter partition aims at; RocksDB's `metadata_block_size`.
const PARTITION_BYTES: f64 = 4096.0;

/// The filter of a table being written.
pub(crate) enum FilterWriter {
    /// No filter.
    None,
    /// One filter, or partitions.
    Bloom(BloomWriter),
    /// Filters by file range.
    LevelDb(LevelDbFilterBuilder),
}

/// RocksDB's Bloom filter, whole or in partitions.
pub(crate) struct BloomWriter {
    builder: FilterBuilder,
    whole_keys: bool,
    prefix: Option<Arc<dyn PrefixExtractor>>,
    /// Keys at which a partition is ended; `None` for one filter.
    partition_keys: Option<usize>,
    /// Finished partitions: the filter, and the last user key it knows of.
    partitions: Vec<(Vec<u8>, Vec<u8>)>,
    last_key: Vec<u8>,
    entries: u64,
}

/// The filter of a finished table.
pub(crate) enum FinishedFilter {
    /// There is none.
    None,
    /// One block.
    Full(Vec<u8>),
    /// Partitions: each block, and the last user key it knows of.
    Partitioned(Vec<(Vec<u8>, Vec<u8>)>),
    /// LevelDB's block.
    LevelDb(Vec<u8>),
}

impl FilterWriter {
    /// The filter that `options` ask for. Orders under which different bytes may be equal get no filter.
    pub(crate) fn new(options: &TableWriterOptions, partitioned: bool) -> Self {
        let Some(filter) = &options.filter else {
            return Self::None;
        };
        if !options.order.equality_is_bytewise() {
            return Self::None;
        }
        match options.style {
            TableStyle::LevelDb => Self::LevelDb(LevelDbFilterBuilder::new(
                filter.bits_per_key.round() as usize,
            )),
            TableStyle::RocksDb if !filter.whole_keys && filter.prefix.is_none() => Self::None,
            TableStyle::RocksDb => {
                let builder = if options.format_version < FORMAT_VERSION_WRITTEN {
                    FilterBuilder::legacy(filter.bits_per_key)
                } else {
                    FilterBuilder::new(filter.bits_per_key)
                };
                Self::Bloom(BloomWriter::new(filter, builder, partitioned))
            }
        }
    }

    /// A data block begins at `offset`.
    pub(crate) fn start_block(&mut self, offset: u64) {
        if let Self::LevelDb(builder) = self {
            builder.start_block(offset);
        }
    }

    /// Adds the next user key.
    #[inline]
    pub(crate) fn add(&mut self, user_key: &[u8]) {
        match self {
            Self::None => {}
            Self::Bloom(bloom) => bloom.add(user_key),
            Self::LevelDb(builder) => builder.add_key(user_key),
        }
    }

    /// Keys and prefixes added.
    pub(crate) fn entries(&self) -> u64 {
        match self {
            Self::Bloom(bloom) => bloom.entries + bloom.builder.len() as u64,
            _ => 0,
        }
    }

    /// About how many bytes the filter will take.
    pub(crate) fn size_estimate(&self) -> usize {
        match self {
            Self::Bloom(bloom) => {
                let done: usize = bloom
                    .partitions
                    .iter()
                    .map(|(filter, _)| filter.len())
                    .sum();
                done + bloom.builder.filter_bytes()
            }
            _ => 0,
        }
    }

    /// The filter's blocks.
    pub(crate) fn finish(self) -> FinishedFilter {
        match self {
            Self::None => FinishedFilter::None,
            Self::Bloom(bloom) => bloom.finish(),
            Self::LevelDb(builder) => FinishedFilter::LevelDb(builder.finish()),
        }
    }
}

impl BloomWriter {
    fn new(options: &FilterOptions, builder: FilterBuilder, partitioned: bool) -> Self {
        let keys = (PARTITION_BYTES * 8.0 / options.bits_per_key.max(1.0)) as usize;
        Self {
            builder,
            whole_keys: options.whole_keys,
            prefix: options.prefix.clone(),
            partition_keys: partitioned.then_some(keys.max(16)),
            partitions: Vec::new(),
            last_key: Vec::new(),
            entries: 0,
        }
    }

    #[inline]
    fn add(&mut self, user_key: &[u8]) {
        if let Some(limit) = self.partition_keys {
            if self.builder.len() >= limit && user_key != self.last_key {
                self.cut(user_key);
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(user_key);
        }
        match (&self.prefix, self.whole_keys) {
            (None, _) => self.builder.add_key(user_key),
            (Some(by), whole_keys) => match (by.prefix(user_key), whole_keys) {
                (Some(prefix), true) => self.builder.add_key_and_prefix(user_key, prefix),
                (Some(prefix), false) => self.builder.add_key(prefix),
                (None, true) => self.builder.add_key(user_key),
                (None, false) => {}
            },
        }
    }

    /// Ends a partition before `next_key`.
    ///
    /// A seek for a prefix asks the partition its target falls into, which may be on the other
    /// side of the cut than the keys with that prefix. So the partition before the cut also gets the next
    /// key's prefix, and the one after it the last key's.
    fn cut(&mut self, next_key: &[u8]) {
        let by = self.prefix.clone();
        if let Some(prefix) = by.as_ref().and_then(|by| by.prefix(next_key)) {
            self.builder.add_key(prefix);
        }
        self.end_partition();
        if let Some(prefix) = by.as_ref().and_then(|by| by.prefix(&self.last_key)) {
            self.builder.add_key(prefix);
        }
    }

    fn end_partition(&mut self) {
        self.entries += self.builder.len() as u64;
        let filter = self.builder.finish();
        self.partitions.push((filter, self.last_key.clone()));
    }

    fn finish(mut self) -> FinishedFilter {
        if self.partition_keys.is_none() {
            return if self.builder.is_empty() {
                FinishedFilter::None
            } else {
                FinishedFilter::Full(self.builder.finish())
            };
        }
        if !self.builder.is_empty() {
            self.end_partition();
        }
        if self.partitions.is_empty() {
            FinishedFilter::None
        } else {
            FinishedFilter::Partitioned(self.partitions)
        }
    }
}
