//! `rocksdb_readoptions_t` and `rocksdb_writeoptions_t`.

use drumlin::{Error, ReadOptions, ReadTier, Result, Snapshot, WriteOptions};

use crate::error::not_implemented;
use crate::fields::{Readoptions, Writeoptions};

/// What the handle of read options holds.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) fields: Readoptions,
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) lower: Option<Vec<u8>>,
    pub(crate) upper: Option<Vec<u8>>,
    /// What families whose keys have timestamps are read at.
    pub(crate) timestamp: Option<Vec<u8>>,
    request_id: Option<Vec<u8>>,
    refused: Option<&'static str>,
}

impl Reads {
    /// Notes that `function` was called, which reads with these options report.
    pub(crate) fn refuse(&mut self, function: &'static str) {
        self.refused.get_or_insert(function);
    }

    /// For reads of single keys, which need no bounds.
    pub(crate) fn to_engine(&self) -> Result<ReadOptions> {
        if let Some(function) = self.refused {
            return Err(not_implemented(function));
        }
        if self.fields.ignore_range_deletions() {
            let message = "ignore_range_deletions=true: deleted ranges are always seen as deleted";
            return Err(Error::not_supported(message));
        }
        Ok(ReadOptions {
            snapshot: self.snapshot.clone(),
            fill_cache: self.fields.fill_cache(),
            verify_checksums: self.fields.verify_checksums(),
            tier: match self.fields.read_tier() {
                0 => ReadTier::Disk,
                _ => ReadTier::BlockCache,
            },
            readahead_bytes: self.fields.readahead_size(),
            prefix_same_as_start: self.fields.prefix_same_as_start(),
            ..ReadOptions::default()
        })
    }

    /// For walks.
    pub(crate) fn to_engine_with_bounds(&self) -> Result<ReadOptions> {
        Ok(ReadOptions {
            lower_bound: self.lower.clone(),
            upper_bound: self.upper.clone(),
            ..self.to_engine()?
        })
    }
}

impl Writeoptions {
    pub(crate) fn to_engine(&self) -> Result<WriteOptions> {
        if self.sync() && self.disable_wal() {
            return Err(Error::invalid_argument("Sync writes has to enable WAL."));
        }
        Ok(WriteOptions {
            sync: Some(self.sync()),
            no_wal: self.disable_wal(),
            no_stall: self.no_slowdown(),
        })
    }
}

pub(crate) mod calls {
    use super::{Reads, Writeoptions};
    use crate::snapshot::SnapshotOf;

    /// One that was set is refused by each read.
    pub(crate) fn readoptions_has_table_filter(_options: &Reads) -> bool {
        false
    }

    /// Indexes are RocksDB's and the engine's own.
    pub(crate) fn readoptions_get_table_index_factory_name(_options: &Reads) -> Option<&[u8]> {
        None
    }

    /// Takes a share of the snapshot: it stays readable by these options when it is released.
    pub(crate) fn readoptions_set_snapshot(options: &mut Reads, snapshot: Option<&SnapshotOf>) {
        options.snapshot =
            snapshot.map(|snapshot| snapshot.share("rocksdb_readoptions_set_snapshot"));
    }

    /// The bound is copied; the caller's memory may go.
    pub(crate) fn readoptions_set_iterate_upper_bound(options: &mut Reads, key: Option<&[u8]>) {
        options.upper = key.map(<[u8]>::to_vec);
    }

    /// As above.
    pub(crate) fn readoptions_set_iterate_lower_bound(options: &mut Reads, key: Option<&[u8]>) {
        options.lower = key.map(<[u8]>::to_vec);
    }

    /// As above.
    pub(crate) fn readoptions_set_timestamp(options: &mut Reads, timestamp: Option<&[u8]>) {
        options.timestamp = timestamp.map(<[u8]>::to_vec);
    }

    /// Kept, and told to nobody.
    pub(crate) fn readoptions_set_request_id(options: &mut Reads, id: &[u8]) {
        options.request_id = Some(id.to_vec());
    }

    pub(crate) fn readoptions_get_request_id(options: &mut Reads) -> Option<&[u8]> {
        options.request_id.as_deref()
    }

    pub(crate) fn readoptions_clear_request_id(options: &mut Reads) {
        options.request_id = None;
    }

    pub(crate) fn readoptions_has_merge_operand_count_threshold(options: &mut Reads) -> bool {
        options.fields.merge_operand_count_threshold.is_some()
    }

    pub(crate) fn readoptions_clear_merge_operand_count_threshold(options: &mut Reads) {
        options.fields.merge_operand_count_threshold = None;
    }

    pub(crate) fn writeoptions_disable_wal(options: &mut Writeoptions, disable: i32) {
        options.disable_wal = Some(disable != 0);
    }
}
