//! `leveldb_options_t`, `leveldb_readoptions_t` and `leveldb_writeoptions_t`.

use std::ffi::{c_int, c_uchar};
use std::path::Path;
use std::sync::Arc;

use drumlin::{
    Codec, Comparator, Compression, DirectoryFormat, Error, KeyOrder, Options, ReadOptions, Result,
    Snapshot, WriteOptions,
};

use crate::cache::Cache;
use crate::comparator::{CComparator, ComparatorHandle};
use crate::filter::{FilterPolicy, FilterPolicyHandle};
use crate::misc::{Env, Logger};
use drumlin_ffi::handle::{self, Handle, Tagged};

const NO_COMPRESSION: c_int = 0;
const SNAPPY_COMPRESSION: c_int = 1;

/// What a program has set. LevelDB's bounds: sizes beyond them are moved to the nearest bound, as there.
#[derive(Debug)]
pub(crate) struct OpenOptions {
    comparator: Option<Arc<CComparator>>,
    filter_bits: f64,
    create_if_missing: bool,
    error_if_exists: bool,
    write_buffer_bytes: Option<usize>,
    open_files_max: usize,
    cache_bytes: Option<usize>,
    block_bytes: usize,
    restart_interval: usize,
    file_bytes_max: u64,
    compression: c_int,
}

impl Tagged for OpenOptions {
    const TAG: u64 = 0x6c64_6f70_7469_6f6e;
    const NAME: &'static str = "leveldb_options_t";
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            comparator: None,
            filter_bits: 0.0,
            create_if_missing: false,
            error_if_exists: false,
            write_buffer_bytes: None,
            open_files_max: 1000,
            cache_bytes: None,
            block_bytes: 4 << 10,
            restart_interval: 16,
            file_bytes_max: 2 << 20,
            compression: SNAPPY_COMPRESSION,
        }
    }
}

impl OpenOptions {
    /// The engine's options for the database in `dir`. A directory that is there keeps its format; a new one is LevelDB's.
    ///
    /// # Errors
    /// `NotSupported` for a compression that LevelDB 1.23 does not have.
    pub(crate) fn to_engine(&self, dir: &Path) -> Result<Options> {
        let codec = match self.compression {
            NO_COMPRESSION => Codec::None,
            SNAPPY_COMPRESSION => Codec::Snappy,
            other => {
                return Err(Error::not_supported(format!(
                    "compression {other}; 0 is none, 1 is Snappy"
                )));
            }
        };
        let mut options = Options {
            create_if_missing: self.create_if_missing,
            error_if_exists: self.error_if_exists,
            compression: Compression::new(codec),
            max_open_files: Some(self.open_files_max),
            memory_budget: self.memory_budget(),
            ..Options::default()
        };
        if !options.env.files.exists(&dir.join("CURRENT"))? {
            options.format = DirectoryFormat::LevelDb;
        }
        if let Some(comparator) = &self.comparator {
            options.family.order = KeyOrder::Custom(Arc::clone(comparator) as Arc<dyn Comparator>);
        }
        let tuning = &mut options.tuning;
        tuning.write_buffer_bytes = self.write_buffer_bytes;
        tuning.block_bytes = self.block_bytes;
        tuning.restart_interval = self.restart_interval;
        tuning.target_file_bytes = self.file_bytes_max;
        tuning.filter_bits = self.filter_bits;
        Ok(options)
    }

    /// A program that sets a cache says how much memory it gives: that much, and its write buffers, and a quarter more
    /// for what LevelDB does not count. Without one the engine's own default holds.
    fn memory_budget(&self) -> Option<usize> {
        const LEAST: usize = 16 << 20;
        const BUFFERS: usize = 4;
        const DEFAULT_BUFFER: usize = 4 << 20;
        let cache = self.cache_bytes?;
        let buffers = BUFFERS.saturating_mul(self.write_buffer_bytes.unwrap_or(DEFAULT_BUFFER));
        let sum = cache.saturating_add(buffers);
        Some(
            sum.saturating_add(sum / 4)
                .clamp(LEAST, isize::MAX as usize),
        )
    }
}

/// Calls `set` with the options that `options` holds.
unsafe fn change(
    options: *mut Handle<OpenOptions>,
    function: &str,
    set: impl FnOnce(&mut OpenOptions),
) {
    // SAFETY: the C program says that it is one, and that no other thread uses it.
    set(unsafe { handle::get_mut(options, function) });
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_options_create() -> *mut Handle<OpenOptions> {
    handle::create(OpenOptions::default())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_destroy(options: *mut Handle<OpenOptions>) {
    // SAFETY: the C program's promise, as for every function here.
    unsafe { handle::destroy(options, "leveldb_options_destroy") };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_comparator(
    options: *mut Handle<OpenOptions>,
    comparator: *mut ComparatorHandle,
) {
    const NAME: &str = "leveldb_options_set_comparator";
    let comparator = match comparator.is_null() {
        true => None,
        // SAFETY: as above.
        false => Some(Arc::clone(unsafe { handle::get(comparator, NAME) }.order())),
    };
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.comparator = comparator) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_filter_policy(
    options: *mut Handle<OpenOptions>,
    policy: *mut FilterPolicyHandle,
) {
    const NAME: &str = "leveldb_options_set_filter_policy";
    let bits = match policy.is_null() {
        true => 0.0,
        // SAFETY: as above.
        false => unsafe { handle::get::<FilterPolicy>(policy, NAME) }.bits(),
    };
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.filter_bits = bits) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_create_if_missing(
    options: *mut Handle<OpenOptions>,
    on: c_uchar,
) {
    const NAME: &str = "leveldb_options_set_create_if_missing";
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.create_if_missing = on != 0) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_error_if_exists(
    options: *mut Handle<OpenOptions>,
    on: c_uchar,
) {
    const NAME: &str = "leveldb_options_set_error_if_exists";
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.error_if_exists = on != 0) };
}

/// Changes nothing: what compactions and recovery read is always checked, what reads read as their options say.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_paranoid_checks(
    options: *mut Handle<OpenOptions>,
    _on: c_uchar,
) {
    // SAFETY: as above.
    unsafe { change(options, "leveldb_options_set_paranoid_checks", |_| {}) };
}

/// There is one environment, the default one.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_env(
    options: *mut Handle<OpenOptions>,
    env: *mut Handle<Env>,
) {
    const NAME: &str = "leveldb_options_set_env";
    if !env.is_null() {
        // SAFETY: as above.
        unsafe { handle::get(env, NAME) };
    }
    // SAFETY: as above.
    unsafe { change(options, NAME, |_| {}) };
}

/// `leveldb/c.h` has no way to make a logger, so there is nothing to set.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_info_log(
    options: *mut Handle<OpenOptions>,
    _log: *mut Logger,
) {
    // SAFETY: as above.
    unsafe { change(options, "leveldb_options_set_info_log", |_| {}) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_write_buffer_size(
    options: *mut Handle<OpenOptions>,
    bytes: usize,
) {
    const NAME: &str = "leveldb_options_set_write_buffer_size";
    let bytes = bytes.clamp(64 << 10, 1 << 30);
    // SAFETY: as above.
    unsafe {
        change(options, NAME, |options| {
            options.write_buffer_bytes = Some(bytes)
        })
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_max_open_files(
    options: *mut Handle<OpenOptions>,
    files: c_int,
) {
    const NAME: &str = "leveldb_options_set_max_open_files";
    let files = usize::try_from(files).unwrap_or(0).clamp(74, 50_000);
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.open_files_max = files) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_cache(
    options: *mut Handle<OpenOptions>,
    cache: *mut Handle<Cache>,
) {
    const NAME: &str = "leveldb_options_set_cache";
    let bytes = match cache.is_null() {
        true => None,
        // SAFETY: as above.
        false => Some(unsafe { handle::get(cache, NAME) }.bytes()),
    };
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.cache_bytes = bytes) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_block_size(
    options: *mut Handle<OpenOptions>,
    bytes: usize,
) {
    const NAME: &str = "leveldb_options_set_block_size";
    let bytes = bytes.clamp(1 << 10, 4 << 20);
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.block_bytes = bytes) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_block_restart_interval(
    options: *mut Handle<OpenOptions>,
    keys: c_int,
) {
    const NAME: &str = "leveldb_options_set_block_restart_interval";
    let keys = usize::try_from(keys).unwrap_or(1).clamp(1, 1 << 16);
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.restart_interval = keys) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_max_file_size(
    options: *mut Handle<OpenOptions>,
    bytes: usize,
) {
    const NAME: &str = "leveldb_options_set_max_file_size";
    let bytes = (bytes as u64).clamp(1 << 20, 1 << 30);
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.file_bytes_max = bytes) };
}

/// An unknown compression is refused when the database is opened.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_options_set_compression(
    options: *mut Handle<OpenOptions>,
    compression: c_int,
) {
    const NAME: &str = "leveldb_options_set_compression";
    // SAFETY: as above.
    unsafe { change(options, NAME, |options| options.compression = compression) };
}

/// `leveldb_readoptions_t`.
#[derive(Debug, Default)]
pub(crate) struct Reads(pub(crate) ReadOptions);

impl Tagged for Reads {
    const TAG: u64 = 0x6c64_7265_6164_6f70;
    const NAME: &'static str = "leveldb_readoptions_t";
}

/// `leveldb_snapshot_t`.
#[derive(Debug)]
pub(crate) struct SnapshotOf(pub(crate) Snapshot);

impl Tagged for SnapshotOf {
    const TAG: u64 = 0x6c64_736e_6170_7368;
    const NAME: &'static str = "leveldb_snapshot_t";
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_readoptions_create() -> *mut Handle<Reads> {
    handle::create(Reads::default())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_destroy(options: *mut Handle<Reads>) {
    // SAFETY: as above.
    unsafe { handle::destroy(options, "leveldb_readoptions_destroy") };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_set_verify_checksums(
    options: *mut Handle<Reads>,
    on: c_uchar,
) {
    // SAFETY: as above.
    let options = unsafe { handle::get_mut(options, "leveldb_readoptions_set_verify_checksums") };
    options.0.verify_checksums = on != 0;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_set_fill_cache(options: *mut Handle<Reads>, on: c_uchar) {
    // SAFETY: as above.
    let options = unsafe { handle::get_mut(options, "leveldb_readoptions_set_fill_cache") };
    options.0.fill_cache = on != 0;
}

/// Takes a share of the snapshot: it stays readable by these options when it is released.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_readoptions_set_snapshot(
    options: *mut Handle<Reads>,
    snapshot: *const Handle<SnapshotOf>,
) {
    const NAME: &str = "leveldb_readoptions_set_snapshot";
    let snapshot = match snapshot.is_null() {
        true => None,
        // SAFETY: as above.
        false => Some(unsafe { handle::get(snapshot, NAME) }.0.clone()),
    };
    // SAFETY: as above.
    unsafe { handle::get_mut(options, NAME) }.0.snapshot = snapshot;
}

/// `leveldb_writeoptions_t`.
#[derive(Debug)]
pub(crate) struct Writes(pub(crate) WriteOptions);

impl Tagged for Writes {
    const TAG: u64 = 0x6c64_7772_6974_6f70;
    const NAME: &'static str = "leveldb_writeoptions_t";
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_writeoptions_create() -> *mut Handle<Writes> {
    handle::create(Writes(WriteOptions {
        sync: Some(false),
        ..WriteOptions::default()
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writeoptions_destroy(options: *mut Handle<Writes>) {
    // SAFETY: as above.
    unsafe { handle::destroy(options, "leveldb_writeoptions_destroy") };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writeoptions_set_sync(options: *mut Handle<Writes>, on: c_uchar) {
    // SAFETY: as above.
    let options = unsafe { handle::get_mut(options, "leveldb_writeoptions_set_sync") };
    options.0.sync = Some(on != 0);
}
