//! `rocksdb_compaction_job_stats_t`: what a compaction did, counted from what its tables say of themselves.

use drumlin::{CompactionInfo, CompactionReason, TableOfJob, TableProperties};

/// As many bytes of a key are told.
const PREFIX_BYTES: usize = 8;

/// Entries of tables.
#[derive(Clone, Copy, Debug, Default)]
struct Entries {
    all: u64,
    deletions: u64,
    key_bytes: u64,
    value_bytes: u64,
}

impl Entries {
    fn of<'a>(tables: impl Iterator<Item = &'a TableProperties>) -> Self {
        tables.fold(Self::default(), |sum, table| Self {
            // A table may claim any number.
            all: sum.all.saturating_add(table.num_entries),
            deletions: sum.deletions.saturating_add(table.num_deletions),
            key_bytes: sum.key_bytes.saturating_add(table.raw_key_size),
            value_bytes: sum.value_bytes.saturating_add(table.raw_value_size),
        })
    }
}

/// What the handle holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobStats {
    elapsed_micros: u64,
    read: Entries,
    written: Entries,
    /// Whether all tables that were read count their entries.
    is_counted: bool,
    is_full: bool,
    is_manual: bool,
    input_files: usize,
    input_files_at_output_level: usize,
    moved_files: usize,
    output_files: usize,
    output_blob_files: usize,
    input_bytes: u64,
    output_bytes: u64,
    output_blob_bytes: u64,
    prefixes: (Vec<u8>, Vec<u8>),
}

impl JobStats {
    pub(crate) fn of(info: &CompactionInfo) -> Self {
        let tables = |of: &[TableOfJob]| {
            let numbers: Vec<u64> = of.iter().map(|it| it.number).collect();
            let is_of = move |number| numbers.contains(&number);
            let all = info.properties.iter();
            let found = all.filter(move |(number, _)| is_of(*number));
            found.map(|(_, properties)| &**properties)
        };
        let read = || tables(&info.input_tables);
        let at_output = info.input_tables.iter();
        let blob_bytes = info.blob_files.iter().map(|file| file.bytes);
        let blob_bytes = blob_bytes.fold(0, u64::saturating_add);
        let prefix = |key: &[u8]| key.get(..PREFIX_BYTES).unwrap_or(key).to_vec();
        Self {
            elapsed_micros: u64::try_from(info.took.as_micros()).unwrap_or(u64::MAX),
            read: Entries::of(read()),
            written: Entries::of(tables(&info.output_tables)),
            is_counted: read().count() == info.inputs && read().all(|it| it.num_entries > 0),
            is_full: info.takes_all,
            is_manual: info.reason == CompactionReason::Manual,
            input_files: info.inputs,
            input_files_at_output_level: at_output
                .filter(|it| it.level == info.output_level)
                .count(),
            moved_files: if info.trivial_move { info.inputs } else { 0 },
            output_files: info.outputs,
            output_blob_files: info.blob_files.len(),
            input_bytes: info.bytes_read,
            output_bytes: info.bytes_written.saturating_sub(blob_bytes),
            output_blob_bytes: blob_bytes,
            prefixes: info
                .output_keys
                .as_ref()
                .map(|(smallest, largest)| (prefix(smallest), prefix(largest)))
                .unwrap_or_default(),
        }
    }

    pub(crate) fn records(&self) -> (u64, u64) {
        (self.read.all, self.written.all)
    }

    /// Deletions that are gone, whether nothing was below them or newer ones hid them.
    fn ended_deletions(&self) -> u64 {
        self.read.deletions.saturating_sub(self.written.deletions)
    }
}

/// Numbers that are fields.
macro_rules! numbers {
    ($($function:ident $type:ty, $($field:ident).+;)*) => {
        $(pub(crate) fn $function(of: &JobStats) -> $type {
            of.$($field).+
        })*
    };
}

/// Numbers of what the engine does not count, or never does.
macro_rules! none {
    ($($function:ident)*) => {
        $(pub(crate) fn $function(_of: &JobStats) -> u64 {
            0
        })*
    };
}

pub(crate) mod calls {
    use super::JobStats;

    numbers! {
        compaction_job_stats_elapsed_micros u64, elapsed_micros;
        compaction_job_stats_has_accurate_num_input_records bool, is_counted;
        compaction_job_stats_is_full_compaction bool, is_full;
        compaction_job_stats_is_manual_compaction bool, is_manual;
        compaction_job_stats_num_input_records u64, read.all;
        compaction_job_stats_num_input_deletion_records u64, read.deletions;
        compaction_job_stats_num_input_files usize, input_files;
        compaction_job_stats_num_input_files_at_output_level usize, input_files_at_output_level;
        compaction_job_stats_num_input_files_trivially_moved usize, moved_files;
        compaction_job_stats_num_output_files usize, output_files;
        compaction_job_stats_num_output_files_blob usize, output_blob_files;
        compaction_job_stats_num_output_records u64, written.all;
        compaction_job_stats_total_input_bytes u64, input_bytes;
        compaction_job_stats_total_input_raw_key_bytes u64, read.key_bytes;
        compaction_job_stats_total_input_raw_value_bytes u64, read.value_bytes;
        compaction_job_stats_total_output_bytes u64, output_bytes;
        compaction_job_stats_total_output_bytes_blob u64, output_blob_bytes;
    }

    // An entry that cannot be read ends the compaction; times of files are RocksDB's with `report_bg_io_stats`.
    none! {
        compaction_job_stats_cpu_micros
        compaction_job_stats_file_fsync_nanos
        compaction_job_stats_file_prepare_write_nanos
        compaction_job_stats_file_range_sync_nanos
        compaction_job_stats_file_write_nanos
        compaction_job_stats_num_blobs_read
        compaction_job_stats_num_corrupt_keys
        compaction_job_stats_num_single_del_fallthru
        compaction_job_stats_num_single_del_mismatch
        compaction_job_stats_total_blob_bytes_read
        compaction_job_stats_total_skipped_input_bytes
    }

    /// All compactions are done here.
    pub(crate) fn compaction_job_stats_is_remote_compaction(_of: &JobStats) -> bool {
        false
    }

    /// Tables are left out of a compaction before there is one.
    pub(crate) fn compaction_job_stats_num_filtered_input_files(_of: &JobStats) -> usize {
        0
    }

    pub(crate) fn compaction_job_stats_num_filtered_input_files_at_output_level(
        _of: &JobStats,
    ) -> usize {
        0
    }

    pub(crate) fn compaction_job_stats_num_expired_deletion_records(of: &JobStats) -> u64 {
        of.ended_deletions()
    }

    pub(crate) fn compaction_job_stats_num_records_replaced(of: &JobStats) -> u64 {
        let gone = of.read.all.saturating_sub(of.written.all);
        gone.saturating_sub(of.ended_deletions())
    }

    pub(crate) fn compaction_job_stats_smallest_output_key_prefix(of: &JobStats) -> Option<&[u8]> {
        Some(&of.prefixes.0)
    }

    pub(crate) fn compaction_job_stats_largest_output_key_prefix(of: &JobStats) -> Option<&[u8]> {
        Some(&of.prefixes.1)
    }
}
