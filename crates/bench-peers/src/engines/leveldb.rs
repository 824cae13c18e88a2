//! LevelDB, by its C interface and the system's shared library.
//!
//! Every handle from C is owned by one Rust value that frees it on drop; the safe methods here are
//! the only callers of [`leveldb_sys`](super::leveldb_sys).

use std::ffi::{CStr, CString, c_char, c_int, c_uchar};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use drumlin_base::{Error, Result};
use drumlin_bench::{Cursor, Flags, Session, Store};
use drumlin_fs::Env;

use super::leveldb_sys as sys;
use super::{failed, given, quiet, remove_store};

/// `leveldb_no_compression` and `leveldb_snappy_compression`.
const CODECS: [&str; 2] = ["none", "snappy"];

/// Owns a handle from C; frees it by `free`.
macro_rules! handle {
    ($name:ident, $free:ident) => {
        struct $name(NonNull<sys::$name>);

        impl $name {
            /// Takes over `handle`.
            fn new(handle: *mut sys::$name) -> Self {
                Self(NonNull::new(handle).expect("LevelDB's constructors never return null"))
            }

            #[inline]
            fn ptr(&self) -> *mut sys::$name {
                self.0.as_ptr()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle came from the matching constructor, is freed only here, and
                // nothing that uses it outlives this value.
                unsafe { sys::$free(self.ptr()) }
            }
        }
    };
}

handle!(Db, leveldb_close);
handle!(Cache, leveldb_cache_destroy);
handle!(FilterPolicy, leveldb_filterpolicy_destroy);
handle!(Iterator, leveldb_iter_destroy);
handle!(Options, leveldb_options_destroy);
handle!(ReadOptions, leveldb_readoptions_destroy);
handle!(WriteBatch, leveldb_writebatch_destroy);
handle!(WriteOptions, leveldb_writeoptions_destroy);

/// Takes a message left by LevelDB, if it left one.
fn check(message: *mut c_char) -> Result<()> {
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null message is a C string allocated by LevelDB; it is freed only below.
    let text = unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: the message came from LevelDB's allocator and is not used afterwards.
    unsafe { sys::leveldb_free(message.cast()) };
    Err(failed("LevelDB", text))
}

#[inline]
fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// A database. Dropped in this order: LevelDB wants the database closed before its parts.
pub(crate) struct LevelDbStore {
    db: Db,
    _options: Options,
    _cache: Cache,
    _filter: Option<FilterPolicy>,
}

// SAFETY: LevelDB's database may be used from any thread (leveldb/db.h: "thread safe"); the options,
// cache and filter are only held until the drop, which happens on one thread.
unsafe impl Send for LevelDbStore {}
// SAFETY: as above: every use through a shared reference is a database call, which LevelDB
// synchronises itself.
unsafe impl Sync for LevelDbStore {}

impl Store for LevelDbStore {
    type Session<'a> = LevelDbSession<'a>;

    fn open(flags: &Flags, _: &Env) -> Result<Self> {
        let codec = CODECS
            .iter()
            .position(|codec| *codec == flags.compression_type);
        let Some(codec) = codec.and_then(|codec| c_int::try_from(codec).ok()) else {
            let message = format!("LevelDB does not compress by '{}'", flags.compression_type);
            return Err(Error::invalid_argument(message));
        };
        if flags.disable_wal {
            return Err(Error::not_supported("LevelDB always writes its log"));
        }
        // SAFETY: takes a size and returns a new handle.
        let cache = unsafe { sys::leveldb_cache_create_lru(given(flags.cache_size, 8 << 20)) };
        let cache = Cache::new(cache);
        let filter = (flags.bloom_bits > 0.0).then(|| {
            // SAFETY: takes a number and returns a new handle.
            let filter =
                unsafe { sys::leveldb_filterpolicy_create_bloom(flags.bloom_bits as c_int) };
            FilterPolicy::new(filter)
        });
        let options = options(flags, codec, &cache, filter.as_ref());
        let path = CString::new(flags.db.as_str())
            .map_err(|_| Error::invalid_argument("--db holds a zero byte"))?;
        let mut message = ptr::null_mut();
        // SAFETY: options and path are alive, the message is a place to write to.
        let db = unsafe { sys::leveldb_open(options.ptr(), path.as_ptr(), &raw mut message) };
        check(message)?;
        Ok(Self {
            db: Db::new(db),
            _options: options,
            _cache: cache,
            _filter: filter,
        })
    }

    fn destroy(flags: &Flags, _: &Env) -> Result<()> {
        remove_store(&flags.db, &["CURRENT", "LOCK"])
    }

    fn close(self) -> Result<()> {
        Ok(())
    }

    fn session(&self, flags: &Flags) -> LevelDbSession<'_> {
        // SAFETY: returns a new handle.
        let read = ReadOptions::new(unsafe { sys::leveldb_readoptions_create() });
        // SAFETY: returns a new handle.
        let write = WriteOptions::new(unsafe { sys::leveldb_writeoptions_create() });
        // SAFETY: returns a new handle.
        let batch = WriteBatch::new(unsafe { sys::leveldb_writebatch_create() });
        let verify = c_uchar::from(flags.verify_checksum);
        // SAFETY: the handle is alive and not shared yet.
        unsafe { sys::leveldb_readoptions_set_verify_checksums(read.ptr(), verify) };
        // SAFETY: the handle is alive and not shared yet.
        unsafe { sys::leveldb_writeoptions_set_sync(write.ptr(), c_uchar::from(flags.sync)) };
        LevelDbSession {
            db: &self.db,
            read,
            write,
            batch,
        }
    }

    fn flush(&self) -> Result<()> {
        // LevelDB writes its memtable out only as a part of compacting.
        self.compact()
    }

    fn compact(&self) -> Result<()> {
        // SAFETY: the database is alive; null bounds stand for everything.
        unsafe { sys::leveldb_compact_range(self.db.ptr(), ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn wait_for_background(&self) -> Result<()> {
        quiet::wait_until_idle();
        Ok(())
    }

    fn property(&self, name: &str) -> Option<String> {
        let name = CString::new(name.replace("rocksdb.", "leveldb.")).ok()?;
        // SAFETY: the database and the name are alive.
        let text = unsafe { sys::leveldb_property_value(self.db.ptr(), name.as_ptr()) };
        if text.is_null() {
            return None;
        }
        // SAFETY: a non-null answer is a C string allocated by LevelDB; it is freed only below.
        let answer = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: the text came from LevelDB's allocator and is not used afterwards.
        unsafe { sys::leveldb_free(text.cast()) };
        Some(answer)
    }

    fn version() -> String {
        // SAFETY: returns a number.
        let major = unsafe { sys::leveldb_major_version() };
        // SAFETY: returns a number.
        let minor = unsafe { sys::leveldb_minor_version() };
        format!("LevelDB:    version {major}.{minor}")
    }
}

/// LevelDB's options for these flags. The result refers to `cache` and `filter`.
fn options(flags: &Flags, codec: c_int, cache: &Cache, filter: Option<&FilterPolicy>) -> Options {
    // SAFETY: returns a new handle.
    let options = Options::new(unsafe { sys::leveldb_options_create() });
    let handle = options.ptr();
    // SAFETY: the handle is alive and not shared.
    unsafe { sys::leveldb_options_set_create_if_missing(handle, 1) };
    // SAFETY: the handle is alive and not shared; the store keeps the cache until it is closed.
    unsafe { sys::leveldb_options_set_cache(handle, cache.ptr()) };
    // SAFETY: the handle is alive and not shared.
    unsafe { sys::leveldb_options_set_block_size(handle, flags.block_size) };
    // SAFETY: the handle is alive and not shared.
    unsafe { sys::leveldb_options_set_compression(handle, codec) };
    if let Some(filter) = filter {
        // SAFETY: the handle is alive and not shared; the store keeps the filter until it is closed.
        unsafe { sys::leveldb_options_set_filter_policy(handle, filter.ptr()) };
    }
    if let Some(bytes) = usize::try_from(flags.write_buffer_size)
        .ok()
        .filter(|bytes| *bytes > 0)
    {
        // SAFETY: the handle is alive and not shared.
        unsafe { sys::leveldb_options_set_write_buffer_size(handle, bytes) };
    }
    if let Some(bytes) = usize::try_from(flags.target_file_size_base)
        .ok()
        .filter(|bytes| *bytes > 0)
    {
        // SAFETY: the handle is alive and not shared.
        unsafe { sys::leveldb_options_set_max_file_size(handle, bytes) };
    }
    let files = c_int::try_from(flags.open_files)
        .ok()
        .filter(|files| *files > 0);
    // SAFETY: the handle is alive and not shared. LevelDB has no "unbounded"; it caps the number.
    unsafe { sys::leveldb_options_set_max_open_files(handle, files.unwrap_or(50_000)) };
    options
}

/// One thread's handle.
pub(crate) struct LevelDbSession<'s> {
    db: &'s Db,
    read: ReadOptions,
    write: WriteOptions,
    batch: WriteBatch,
}

impl Session for LevelDbSession<'_> {
    type Cursor<'a>
        = LevelDbCursor<'a>
    where
        Self: 'a;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut message = ptr::null_mut();
        // SAFETY: the database and options are alive; LevelDB copies key and value.
        unsafe {
            sys::leveldb_put(
                self.db.ptr(),
                self.write.ptr(),
                chars(key),
                key.len(),
                chars(value),
                value.len(),
                &raw mut message,
            );
        }
        check(message)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the batch is this session's alone; LevelDB copies key and value.
        unsafe {
            sys::leveldb_writebatch_put(
                self.batch.ptr(),
                chars(key),
                key.len(),
                chars(value),
                value.len(),
            );
        }
        Ok(())
    }

    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the batch is this session's alone; LevelDB copies the key.
        unsafe { sys::leveldb_writebatch_delete(self.batch.ptr(), chars(key), key.len()) };
        Ok(())
    }

    fn batch_write(&mut self) -> Result<()> {
        let mut message = ptr::null_mut();
        let batch = self.batch.ptr();
        // SAFETY: database, options and batch are alive; the batch is this session's alone.
        unsafe { sys::leveldb_write(self.db.ptr(), self.write.ptr(), batch, &raw mut message) };
        // SAFETY: the batch is this session's alone.
        unsafe { sys::leveldb_writebatch_clear(batch) };
        check(message)
    }

    #[inline]
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let (mut len, mut message) = (0, ptr::null_mut());
        // SAFETY: the database and options are alive; `len` and `message` are places to write to.
        let value = unsafe {
            sys::leveldb_get(
                self.db.ptr(),
                self.read.ptr(),
                chars(key),
                key.len(),
                &raw mut len,
                &raw mut message,
            )
        };
        check(message)?;
        if value.is_null() {
            return Ok(false);
        }
        // SAFETY: a non-null answer is an allocation of `len` bytes that is freed only below.
        on_value(unsafe { std::slice::from_raw_parts(value.cast(), len) });
        // SAFETY: the value came from LevelDB's allocator and is not used afterwards.
        unsafe { sys::leveldb_free(value.cast()) };
        Ok(true)
    }

    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<LevelDbCursor<'_>> {
        // SAFETY: the database and options are alive and outlive the cursor, which borrows them.
        let iterator = unsafe { sys::leveldb_create_iterator(self.db.ptr(), self.read.ptr()) };
        Ok(LevelDbCursor {
            iterator: Iterator::new(iterator),
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            session: PhantomData,
        })
    }
}

/// An iterator. LevelDB's have no bounds; keys outside count as the end.
pub(crate) struct LevelDbCursor<'s> {
    iterator: Iterator,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    session: PhantomData<&'s ()>,
}

impl LevelDbCursor<'_> {
    /// The bytes `part` (key or value) returns. Requires: the iterator is at an entry.
    #[inline]
    fn part(
        &self,
        part: unsafe extern "C" fn(*const sys::Iterator, *mut usize) -> *const c_char,
    ) -> &[u8] {
        let mut len = 0;
        // SAFETY: the iterator is alive and, as `Cursor` requires of the caller, at an entry.
        let bytes = unsafe { part(self.iterator.ptr(), &raw mut len) };
        // SAFETY: LevelDB returns `len` bytes that stay until the iterator moves, which needs
        // `&mut self`.
        unsafe { std::slice::from_raw_parts(bytes.cast(), len) }
    }
}

impl Cursor for LevelDbCursor<'_> {
    fn seek_to_first(&mut self) {
        match self.lower.take() {
            Some(lower) => {
                self.seek(&lower);
                self.lower = Some(lower);
            }
            // SAFETY: the iterator is alive and this thread's alone.
            None => unsafe { sys::leveldb_iter_seek_to_first(self.iterator.ptr()) },
        }
    }

    fn seek_to_last(&mut self) {
        let Some(upper) = self.upper.take() else {
            // SAFETY: the iterator is alive and this thread's alone.
            return unsafe { sys::leveldb_iter_seek_to_last(self.iterator.ptr()) };
        };
        self.seek(&upper);
        if self.valid() {
            self.prev();
        } else {
            // SAFETY: the iterator is alive and this thread's alone.
            unsafe { sys::leveldb_iter_seek_to_last(self.iterator.ptr()) };
        }
        self.upper = Some(upper);
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is alive and this thread's alone.
        unsafe { sys::leveldb_iter_seek(self.iterator.ptr(), chars(key), key.len()) };
    }

    #[inline]
    fn next(&mut self) {
        // SAFETY: the iterator is alive, this thread's alone and, as the trait requires, valid.
        unsafe { sys::leveldb_iter_next(self.iterator.ptr()) };
    }

    #[inline]
    fn prev(&mut self) {
        // SAFETY: the iterator is alive, this thread's alone and, as the trait requires, valid.
        unsafe { sys::leveldb_iter_prev(self.iterator.ptr()) };
    }

    #[inline]
    fn valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        let at_entry = unsafe { sys::leveldb_iter_valid(self.iterator.ptr()) } != 0;
        at_entry
            && self
                .lower
                .as_ref()
                .is_none_or(|lower| self.key() >= lower.as_slice())
            && self
                .upper
                .as_ref()
                .is_none_or(|upper| self.key() < upper.as_slice())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.part(sys::leveldb_iter_key)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.part(sys::leveldb_iter_value)
    }

    fn status(&self) -> Result<()> {
        let mut message = ptr::null_mut();
        // SAFETY: the iterator is alive; the message is a place to write to.
        unsafe { sys::leveldb_iter_get_error(self.iterator.ptr(), &raw mut message) };
        check(message)
    }
}
