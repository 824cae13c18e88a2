//! Setters of `rocksdb_options_t` that are no single numbers.

#[cfg(abi_since = "8.11")]
use std::ffi::c_char;
use std::ffi::{CStr, c_int};
use std::path::PathBuf;
use std::sync::Arc;

use drumlin::{Error, KeyOrder, Result, TableFormat, UInt64Add};
use drumlin_ffi::bytes::path_of;
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use super::OpenOptions;
use crate::cache::Cache;
use crate::compaction_filter::{Factory, Filter};
use crate::comparator::Ordered;
use crate::env::Environment;
use crate::fields::{CuckooTableOptions, FifoCompactionOptions, UniversalCompactionOptions};
use crate::merge::Operator;
use crate::misc::{DbPath, RateLimiter};
use crate::table_options::{BlockOptions, FilterPolicy};
use crate::transform::Transform;
use crate::write_buffers::WriteBufferManager;

pub(crate) fn options_create_copy(options: &mut OpenOptions) -> OpenOptions {
    options.clone()
}

pub(crate) fn options_set_block_based_table_factory(
    options: &mut OpenOptions,
    blocks: Option<&mut BlockOptions>,
) {
    if let Some(blocks) = blocks {
        options.blocks = Some(blocks.clone());
        options.table_format = Some(TableFormat::Block);
    }
}

/// Block-based tables are written, as the OPTIONS file says; the options are told in LOG.
pub(crate) fn options_set_cuckoo_table_factory(
    options: &mut OpenOptions,
    table: &mut CuckooTableOptions,
) {
    options.recorded.cuckoo = Some(table.clone());
    options.table_format = Some(TableFormat::Block);
}

/// Plain tables are the engine's own: RocksDB does not read them.
#[cfg(not(abi_since = "8.11"))]
pub(crate) fn options_set_plain_table_factory(
    options: &mut OpenOptions,
    _key_len: u32,
    _bloom_bits: i32,
    _hash_ratio: f64,
    _sparseness: usize,
) {
    options.table_format = Some(TableFormat::Plain);
}

/// As above.
#[cfg(abi_since = "8.11")]
pub(crate) fn options_set_plain_table_factory(
    options: &mut OpenOptions,
    _key_len: u32,
    _bloom_bits: i32,
    _hash_ratio: f64,
    _sparseness: usize,
    _huge_pages: usize,
    _encoding: c_char,
    _full_scan: bool,
    _store_index: bool,
) {
    options.table_format = Some(TableFormat::Plain);
}

pub(crate) fn options_increase_parallelism(options: &mut OpenOptions, threads: i32) {
    options.threads = usize::try_from(threads).ok().filter(|count| *count > 0);
}

pub(crate) fn options_optimize_for_point_lookup(options: &mut OpenOptions, cache_megabytes: u64) {
    let bytes = usize::try_from(cache_megabytes << 20).unwrap_or(usize::MAX);
    options.blocks = Some(BlockOptions {
        filter: Some(FilterPolicy { bits: 10.0 }),
        cache: Some(Cache::new(bytes)),
        ..BlockOptions::default()
    });
}

/// Sizes that follow from the memory for memtables, as in RocksDB.
fn sizes_for(options: &mut OpenOptions, memory: u64) {
    let buffer = usize::try_from(memory / 4).unwrap_or(usize::MAX);
    let fields = &mut options.fields;
    fields.write_buffer_size = Some(buffer);
    fields.min_write_buffer_number_to_merge = Some(2);
    fields.max_write_buffer_number = Some(6);
}

pub(crate) fn options_optimize_level_style_compaction(options: &mut OpenOptions, memory: u64) {
    sizes_for(options, memory);
    let fields = &mut options.fields;
    fields.level0_file_num_compaction_trigger = Some(2);
    fields.target_file_size_base = Some(memory / 8);
    fields.max_bytes_for_level_base = Some(memory);
    fields.compaction_style = Some(0);
}

pub(crate) fn options_optimize_universal_style_compaction(options: &mut OpenOptions, memory: u64) {
    sizes_for(options, memory);
    options.fields.compaction_style = Some(1);
}

/// A load of sorted data: no compaction until it is asked for.
pub(crate) fn options_prepare_for_bulk_load(options: &mut OpenOptions) {
    let fields = &mut options.fields;
    fields.level0_file_num_compaction_trigger = Some(1 << 30);
    fields.level0_slowdown_writes_trigger = Some(1 << 30);
    fields.level0_stop_writes_trigger = Some(1 << 30);
    fields.disable_auto_compactions = Some(true);
    fields.max_compaction_bytes = Some(1 << 60);
    fields.max_write_buffer_number = Some(6);
    fields.min_write_buffer_number_to_merge = Some(1);
    fields.target_file_size_base = Some(256 << 20);
}

pub(crate) fn options_set_compaction_filter(options: &mut OpenOptions, filter: Option<&Filter>) {
    options.compaction_filter = filter.map(|filter| Arc::clone(&filter.0) as Arc<_>);
}

pub(crate) fn options_set_compaction_filter_factory(
    options: &mut OpenOptions,
    factory: Option<Factory>,
) {
    options.filter_factory = factory.map(|factory| factory.0 as Arc<_>);
}

pub(crate) fn options_compaction_readahead_size(options: &mut OpenOptions, bytes: usize) {
    options.fields.compaction_readahead_size = Some(bytes);
}

pub(crate) fn options_set_comparator(options: &mut OpenOptions, order: Option<&Ordered>) {
    options.order = order.map_or(KeyOrder::Bytewise, |order| {
        KeyOrder::Custom(Arc::clone(&order.0) as Arc<_>)
    });
}

pub(crate) fn options_set_merge_operator(options: &mut OpenOptions, operator: Option<Operator>) {
    options.merge_operator = operator.map(|operator| operator.0);
}

pub(crate) fn options_set_uint64add_merge_operator(options: &mut OpenOptions) {
    options.merge_operator = Some(Arc::new(UInt64Add));
}

pub(crate) fn options_set_prefix_extractor(options: &mut OpenOptions, cut: Option<Transform>) {
    options.prefix_extractor = cut.map(|cut| cut.0);
}

pub(crate) fn options_set_env(options: &mut OpenOptions, env: Option<&Environment>) {
    options.env = env.map(|env| env.env.clone());
    options.threads = env.and_then(Environment::threads).or(options.threads);
}

/// The window and the strategy are zlib's own.
pub(crate) fn options_set_compression_options(
    options: &mut OpenOptions,
    _window_bits: i32,
    level: i32,
    _strategy: i32,
    dictionary_bytes: i32,
) {
    // RocksDB's number for a codec's own level.
    options.compression_level = (level != 32767).then_some(level);
    options.dictionary_bytes = u32::try_from(dictionary_bytes).unwrap_or(0);
}

/// The lowest level is compressed as the others.
pub(crate) fn options_set_bottommost_compression_options(
    _options: &mut OpenOptions,
    _window_bits: i32,
    _level: i32,
    _strategy: i32,
    _dictionary_bytes: i32,
    _enabled: bool,
) {
}

pub(crate) fn options_set_bottommost_compression_options_zstd_max_train_bytes(
    _options: &mut OpenOptions,
    _bytes: i32,
    _enabled: bool,
) {
}

pub(crate) fn options_set_bottommost_compression_options_use_zstd_dict_trainer(
    options: &mut OpenOptions,
    on: bool,
    _enabled: bool,
) {
    options
        .fields
        .bottommost_compression_options_use_zstd_dict_trainer = Some(on);
}

pub(crate) fn options_set_bottommost_compression_options_max_dict_buffer_bytes(
    _options: &mut OpenOptions,
    _bytes: u64,
    _enabled: bool,
) {
}

pub(crate) fn options_set_blob_cache(_options: &mut OpenOptions, _cache: Option<&Cache>) {}

pub(crate) fn options_set_row_cache(_options: &mut OpenOptions, _cache: Option<&Cache>) {}

pub(crate) fn options_set_wal_dir(options: &mut OpenOptions, dir: &CStr) {
    options.wal_dir = (!dir.is_empty()).then(|| path_of(dir));
}

pub(crate) fn options_set_memtable_vector_rep(_options: &mut OpenOptions) {}

pub(crate) fn options_set_hash_skip_list_rep(
    _options: &mut OpenOptions,
    _buckets: usize,
    _height: i32,
    _branching: i32,
) {
}

pub(crate) fn options_set_hash_link_list_rep(_options: &mut OpenOptions, _buckets: usize) {}

pub(crate) fn options_set_universal_compaction_options(
    options: &mut OpenOptions,
    universal: &mut UniversalCompactionOptions,
) {
    options.universal = Some(universal.clone());
}

pub(crate) fn options_set_fifo_compaction_options(
    options: &mut OpenOptions,
    fifo: &mut FifoCompactionOptions,
) {
    options.fifo = Some(fifo.clone());
}

/// Databases with one manager have memory of their own each.
pub(crate) fn options_set_write_buffer_manager(
    options: &mut OpenOptions,
    manager: Option<&WriteBufferManager>,
) {
    options.write_buffers = manager.cloned();
}

pub(crate) fn options_set_ratelimiter(options: &mut OpenOptions, limiter: Option<&RateLimiter>) {
    options.rate = limiter.copied();
}

/// Compactions find by themselves what is mostly deletions.
pub(crate) fn options_add_compact_on_deletion_collector_factory(
    options: &mut OpenOptions,
    window: usize,
    deletions: usize,
) {
    options_add_compact_on_deletion_collector_factory_del_ratio(options, window, deletions, 0.0);
}

pub(crate) fn options_add_compact_on_deletion_collector_factory_del_ratio(
    options: &mut OpenOptions,
    window: usize,
    deletions: usize,
    ratio: f64,
) {
    options.recorded.collectors.push(format!(
        "CompactOnDeletionCollector (Sliding window size = {window} Deletion trigger = {deletions} Deletion ratio = {ratio})"
    ));
}

pub(crate) fn options_add_compact_on_deletion_collector_factory_min_file_size(
    options: &mut OpenOptions,
    window: usize,
    deletions: usize,
    ratio: f64,
    _file_bytes_min: u64,
) {
    options_add_compact_on_deletion_collector_factory_del_ratio(options, window, deletions, ratio);
}

/// `name=value;name=value`, of numbers and flags.
pub(crate) fn get_options_from_string(
    base: &OpenOptions,
    text: &CStr,
    made: &mut OpenOptions,
) -> Result<()> {
    let text = text.to_string_lossy();
    let mut options = base.clone();
    for pair in text
        .split(';')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
    {
        let Some((name, value)) = pair.split_once('=') else {
            let message = format!("Mismatched key value pair, '=' expected: {pair}");
            return Err(Error::invalid_argument(message));
        };
        let (name, value) = (name.trim(), value.trim());
        match options.fields.set_by_name(name, value) {
            Some(true) => {}
            Some(false) => {
                let message = format!("Error parsing {name}:{value}");
                return Err(Error::invalid_argument(message));
            }
            None => {
                let message = format!("Could not find option: : {name}");
                return Err(Error::invalid_argument(message));
            }
        }
    }
    *made = options;
    Ok(())
}

/// The `count` entries of an array.
///
/// # Safety
/// `array` is null where there are none, else it has as many.
unsafe fn entries<'a, T>(array: *const T, count: usize, function: &str) -> &'a [T] {
    match (array.is_null(), count) {
        (_, 0) => &[],
        (true, _) => end_process(function, "the array is null"),
        // SAFETY: the caller's promise.
        (false, _) => unsafe { std::slice::from_raw_parts(array, count) },
    }
}

/// The last one is that of all levels.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_compression_per_level(
    options: *mut Handle<OpenOptions>,
    levels: *const c_int,
    count: usize,
) {
    const NAME: &str = "rocksdb_options_set_compression_per_level";
    // SAFETY: the C program's promise.
    let options = unsafe { handle::get_mut(options, NAME) };
    // SAFETY: as above.
    options.compression_levels = unsafe { entries(levels, count, NAME) }.to_vec();
}

/// Levels grow by one factor.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_max_bytes_for_level_multiplier_additional(
    options: *mut Handle<OpenOptions>,
    _levels: *mut c_int,
    _count: usize,
) {
    const NAME: &str = "rocksdb_options_set_max_bytes_for_level_multiplier_additional";
    // SAFETY: the C program's promise.
    unsafe { handle::get_mut(options, NAME) };
}

/// # Safety
/// `paths` has `count` handles.
unsafe fn set_paths(
    options: *mut Handle<OpenOptions>,
    paths: *const *const Handle<DbPath>,
    count: usize,
    (function, field): (&str, fn(&mut OpenOptions) -> &mut Vec<PathBuf>),
) {
    // SAFETY: the C program's promise.
    let options = unsafe { handle::get_mut(options, function) };
    // SAFETY: as above.
    let paths = unsafe { entries(paths, count, function) };
    let paths = paths.iter().map(|path| {
        // SAFETY: as above.
        unsafe { handle::get(*path, function) }.path.clone()
    });
    *field(options) = paths.collect();
}

/// Another than the directory itself is refused when the database is opened.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_db_paths(
    options: *mut Handle<OpenOptions>,
    paths: *const *const Handle<DbPath>,
    count: usize,
) {
    // SAFETY: the C program's promise.
    unsafe {
        set_paths(
            options,
            paths,
            count,
            ("rocksdb_options_set_db_paths", |it| &mut it.db_paths),
        );
    }
}

/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_options_set_cf_paths(
    options: *mut Handle<OpenOptions>,
    paths: *const *const Handle<DbPath>,
    count: usize,
) {
    // SAFETY: the C program's promise.
    unsafe {
        set_paths(
            options,
            paths,
            count,
            ("rocksdb_options_set_cf_paths", |it| &mut it.cf_paths),
        );
    }
}
