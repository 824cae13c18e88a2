//! The file LOG of a database that is opened through this interface: where it is, and the options at its head.
//!
//! The engine has no such file: its programs have listeners and `tracing`. Who operates RocksDB reads LOG first.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use drumlin::Db;
use drumlin::internals::info_log::{InfoLog, InfoLogOptions};

use crate::logger::Logger;
use crate::opening::Named;
use crate::options::OpenOptions;

/// What `options` ask for: a logger of the program's, or the file.
pub(crate) fn logger(options: &OpenOptions) -> Logger {
    if !options.logger.is_none() {
        return options.logger.clone();
    }
    let fields = &options.fields;
    let dir = OsStr::from_bytes(&options.recorded.log_dir);
    let file = InfoLogOptions {
        dir: (!dir.is_empty()).then(|| PathBuf::from(dir)),
        file_bytes_max: fields.max_log_file_size() as u64,
        file_age_max: Duration::from_secs(fields.log_file_time_to_roll() as u64),
        files_max: fields.keep_log_file_num(),
    };
    let log = InfoLog::new(options.environment(), file);
    Logger::to_file(fields.info_log_level(), log)
}

/// The head of each file: the library, the database, all options of `options`, and of each of `families` those that were set.
pub(crate) fn lines(options: &OpenOptions, families: &[Named<'_>], db: &Db) -> Vec<String> {
    let mut lines = vec![
        format!(
            "RocksDB version: {}, as Drumlin {} serves it",
            env!("DRUMLIN_ABI_SERVED"),
            env!("CARGO_PKG_VERSION")
        ),
        format!("Fast CRC32 supported: {}", fast_crc32()),
        "Jemalloc supported: 0".to_owned(),
        format!("DB SUMMARY: {}", db.path().display()),
    ];
    let report = db.recovery_report();
    lines.push(format!(
        "Recovered: {} batches of {} entries, {} files removed, {} prepared transactions",
        report.batches_replayed, report.entries_replayed, report.files_removed, report.prepared
    ));
    if let Some(cut) = &report.cut {
        lines.push(format!(
            "WAL {:06} ends at byte {}, {} bytes are left out: {}",
            cut.wal, cut.offset, cut.dropped_bytes, cut.reason
        ));
    }
    list(&mut lines, options, |_| true);
    for family in families {
        lines.push(format!(
            "--------------- Options for column family [{}], those that were set:",
            family.name
        ));
        list(&mut lines, family.options, |was_set| was_set);
    }
    lines
}

/// Whether the processor has instructions for the checksum, which are used where they are there, in RocksDB's words.
fn fast_crc32() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return match std::arch::is_x86_feature_detected!("sse4.2") {
        true => "Supported on x86",
        false => "Not supported on x86",
    };
    #[cfg(target_arch = "aarch64")]
    return match std::arch::is_aarch64_feature_detected!("crc") {
        true => "Supported on Arm64",
        false => "Not supported on Arm64",
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    "Not supported"
}

fn list(lines: &mut Vec<String>, options: &OpenOptions, is_wanted: impl Fn(bool) -> bool) {
    for (name, value, was_set) in options.fields.listed() {
        if is_wanted(was_set) {
            lines.push(format!("{:>47}: {value}", format!("Options.{name}")));
        }
    }
    for collector in &options.recorded.collectors {
        lines.push(format!(
            "{:>47}: {collector}",
            "Options.table_properties_collectors"
        ));
    }
    if let Some(cuckoo) = &options.recorded.cuckoo {
        lines.push(format!(
            "{:>47}: BlockBasedTable, in place of CuckooTable with hash_table_ratio: {}, max_search_depth: {}, \
             cuckoo_block_size: {}, identity_as_first_hash: {}",
            "Options.table_factory",
            cuckoo.hash_ratio(),
            cuckoo.max_search_depth(),
            cuckoo.cuckoo_block_size(),
            u8::from(cuckoo.identity_as_first_hash())
        ));
    }
    let blocks = options.blocks.clone().unwrap_or_default();
    for (name, value, was_set) in blocks.fields.listed() {
        if is_wanted(was_set) {
            // RocksDB's LOG has another name for it than the function that sets it.
            let name = match name {
                "data_block_hash_ratio" => "data_block_hash_table_util_ratio",
                name => name,
            };
            lines.push(format!("  {name}: {value}"));
        }
    }
}
