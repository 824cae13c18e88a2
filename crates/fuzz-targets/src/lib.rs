//! The targets of the fuzzers.
//!
//! Each target takes any bytes and panics when something breaks its promise: a decoder that
//! panics itself, an error of the wrong kind, a structure that differs from its naive twin. The
//! same bodies run in three ways:
//!
//! - `fuzz/fuzz_targets/*.rs` hand them to libFuzzer, which looks for inputs by coverage;
//! - `tests/replay.rs` replays the committed corpus and seeded mutations of it, on any compiler;
//! - the same test with `DRUMLIN_FUZZ_ROUNDS=n` goes on for as long as one likes.
//!
//! Invariant: a target depends on nothing but its input, so a failing input fails again.

#![forbid(unsafe_code)]

mod changes;
mod claims;
pub mod drive;
mod input;
#[path = "../../doc/tests/doc/json.rs"]
mod json;
mod models;
mod mongo;
mod mongo_operators;
mod mutate;
mod redis;
mod reseal;
mod resp;
pub mod seeds;
mod targets;

pub use drive::{Failure, drive};

/// A target: its name, and the function that runs an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target. A name is also the name of its corpus folder and of its libFuzzer binary.
pub const TARGETS: &[Target] = &[
    ("backup_meta", targets::backup_meta::run),
    ("blob_file", targets::blob::run_file),
    ("blob_index", targets::blob::run_index),
    ("changes", targets::changes::run),
    ("coded_rows", targets::coded_rows::run),
    ("config_file", targets::redis_text::run_config),
    ("data_block_iter", targets::data_block::run),
    ("db_ops", targets::database::run),
    ("decompress", targets::decompress::run),
    ("filter_block", targets::filter_block::run),
    ("glob_pattern", targets::redis_text::run_glob),
    ("index_block", targets::index_block::run),
    ("key_claims", targets::key_claims::run),
    ("key_index", targets::key_index::run),
    ("manifest_edit", targets::manifest_edit::run),
    ("manifest_replay", targets::manifest_replay::run),
    ("memtable_ops", targets::memtable::run),
    ("model", targets::model::run_model),
    ("model_file", targets::model::run_file),
    ("model_frame", targets::model_frame::run),
    ("mongo_bson", targets::mongo::run_bson),
    ("mongo_catalog", targets::mongo_catalog::run),
    ("mongo_filter", targets::mongo::run_filter),
    ("mongo_keystring", targets::mongo::run_keystring),
    ("mongo_message", targets::mongo::run_message),
    ("mongo_pipeline", targets::mongo::run_pipeline),
    ("mongo_update", targets::mongo::run_update),
    ("names", targets::names::run),
    ("options_file", targets::options_file::run),
    ("range_tombstones", targets::range_tombstones::run),
    ("rdb_dump", targets::rdb::run_dump),
    ("rdb_file", targets::rdb::run_file),
    ("rdb_intset", targets::rdb::run_intset),
    ("rdb_listpack", targets::rdb::run_listpack),
    ("rdb_lzf", targets::rdb::run_lzf),
    ("rdb_ziplist", targets::rdb::run_ziplist),
    ("record_code", targets::model::run_code),
    ("resp_reply", targets::resp::run_reply),
    ("resp_request", targets::resp::run_request),
    ("resp_words", targets::resp::run_words),
    ("script_code", targets::script::run_code),
    ("script_values", targets::script::run_values),
    ("spelled_document", targets::documents::run),
    ("sst_open_scan", targets::table::run),
    ("stored_collections", targets::stored::run),
    ("table_properties", targets::properties::run),
    ("timed_values", targets::timed_values::run),
    ("two_phase", targets::two_phase::run),
    ("users_file", targets::users::run),
    ("wal_reader", targets::wal::run),
    ("write_batch", targets::batch::run),
];

/// A target that fails on some inputs by design: it proves that failures are seen and reported. It
/// is in no list of targets that must pass.
pub const CANARY: Target = ("canary", targets::canary::run);

/// The target called `name`, the canary included.
pub fn find(name: &str) -> Option<Target> {
    let all = TARGETS.iter().chain([&CANARY]);
    all.copied().find(|(known, _)| *known == name)
}

/// Runs the target called `name` once.
///
/// # Panics
/// When the target does, which is its way to report; when there is no such target.
pub fn run(name: &str, data: &[u8]) {
    let (_, body) = find(name).unwrap_or_else(|| panic!("there is no fuzz target {name}"));
    body(data);
}
