//! LevelDB in this process, through its C library, with paranoid checks. One thread.

use std::ffi::c_int;
use std::path::Path;
use std::ptr;

use crate::leveldb_ffi::{self as ffi, leveldb_free};
use crate::memory::{c_path, copy_bytes, take_bytes, take_error};
use crate::rows::Rows;

/// How LevelDB writes.
#[derive(Clone, Copy, Debug)]
pub struct LevelOptions {
    /// Snappy, or nothing.
    pub snappy: bool,
    /// Bloom filter bits a key; 0 for no filter.
    pub filter_bits: u8,
    /// Bytes of a memtable.
    pub write_buffer_bytes: usize,
    /// Bytes of a data block.
    pub block_bytes: usize,
}

impl Default for LevelOptions {
    fn default() -> Self {
        Self {
            snappy: true,
            filter_bits: 10,
            write_buffer_bytes: 64 << 10,
            block_bytes: 4096,
        }
    }
}

/// An open LevelDB database. Closed when dropped.
pub struct LevelDb {
    db: *mut ffi::DbHandle,
    filter: *mut ffi::FilterHandle,
    write: *mut ffi::WriteHandle,
    read: *mut ffi::ReadHandle,
}

impl std::fmt::Debug for LevelDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LevelDb").finish_non_exhaustive()
    }
}

impl LevelDb {
    /// Opens, or creates, the database in `dir`.
    ///
    /// # Errors
    /// LevelDB's message.
    pub fn open(dir: &Path, options: LevelOptions) -> Result<Self, String> {
        let raw = ffi::leveldb_options_create();
        // SAFETY: just created, destroyed below; the library guards its own state.
        let set = unsafe { &*raw };
        ffi::leveldb_options_set_create_if_missing(set, 1);
        ffi::leveldb_options_set_paranoid_checks(set, 1);
        ffi::leveldb_options_set_compression(set, c_int::from(options.snappy));
        ffi::leveldb_options_set_write_buffer_size(set, options.write_buffer_bytes);
        ffi::leveldb_options_set_max_file_size(set, 1 << 20); // The smallest it takes.
        ffi::leveldb_options_set_block_size(set, options.block_bytes);
        let mut filter = ptr::null_mut();
        if options.filter_bits > 0 {
            filter = ffi::leveldb_filterpolicy_create_bloom(c_int::from(options.filter_bits));
            // SAFETY: both are live; the filter is kept until the database is closed.
            unsafe { ffi::leveldb_options_set_filter_policy(raw, filter) };
        }
        let path = c_path(dir);
        let mut error = ptr::null_mut();
        // SAFETY: both are live; options and name are copied.
        let db = unsafe { ffi::leveldb_open(raw, path.as_ptr(), &mut error) };
        // SAFETY: created above, destroyed once, not used after.
        unsafe { ffi::leveldb_options_destroy(raw) };
        let opened = take_error(error, leveldb_free);
        let read = ffi::leveldb_readoptions_create();
        // SAFETY: just created.
        ffi::leveldb_readoptions_set_verify_checksums(unsafe { &*read }, 1);
        let write = ffi::leveldb_writeoptions_create();
        let this = Self {
            db,
            filter,
            write,
            read,
        };
        opened.map(|()| this)
    }

    /// Sets `key`.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        let mut error = ptr::null_mut();
        // SAFETY: handles live as long as `self`; both are read within their lengths.
        unsafe {
            ffi::leveldb_put(
                self.db,
                self.write,
                k,
                key.len(),
                v,
                value.len(),
                &mut error,
            );
        }
        take_error(error, leveldb_free).expect("LevelDB puts");
    }

    /// Removes `key`.
    pub fn delete(&self, key: &[u8]) {
        let k = key.as_ptr().cast();
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe { ffi::leveldb_delete(self.db, self.write, k, key.len(), &mut error) };
        take_error(error, leveldb_free).expect("LevelDB deletes");
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let k = key.as_ptr().cast();
        let (mut len, mut error) = (0, ptr::null_mut());
        // SAFETY: as in `put`; the value is allocated for the caller.
        let value =
            unsafe { ffi::leveldb_get(self.db, self.read, k, key.len(), &mut len, &mut error) };
        take_error(error, leveldb_free).expect("LevelDB gets");
        take_bytes(value, len, leveldb_free)
    }

    /// Compacts everything.
    pub fn compact(&self) {
        // SAFETY: `db` is live; null bounds are no bounds.
        unsafe { ffi::leveldb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
    }

    /// Every row, in order.
    pub fn rows(&self) -> Rows {
        // SAFETY: both live as long as `self`.
        let raw = unsafe { ffi::leveldb_create_iterator(self.db, self.read) };
        // SAFETY: never null, live until destroyed below; the library guards its own state.
        let iterator = unsafe { &*raw };
        let mut rows = Vec::new();
        ffi::leveldb_iter_seek_to_first(iterator);
        while ffi::leveldb_iter_valid(iterator) != 0 {
            let (mut key_len, mut value_len) = (0, 0);
            let key = ffi::leveldb_iter_key(iterator, &mut key_len);
            let value = ffi::leveldb_iter_value(iterator, &mut value_len);
            rows.push((copy_bytes(key, key_len), copy_bytes(value, value_len)));
            ffi::leveldb_iter_next(iterator);
        }
        let mut error = ptr::null_mut();
        ffi::leveldb_iter_get_error(iterator, &mut error);
        // SAFETY: created above, destroyed once, not used after.
        unsafe { ffi::leveldb_iter_destroy(raw) };
        take_error(error, leveldb_free).expect("LevelDB iterates");
        rows
    }
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        if !self.db.is_null() {
            // SAFETY: opened by the library, closed once; no iterator outlives a method.
            unsafe { ffi::leveldb_close(self.db) };
        }
        if !self.filter.is_null() {
            // SAFETY: created at open, destroyed once, after the database that uses it.
            unsafe { ffi::leveldb_filterpolicy_destroy(self.filter) };
        }
        // SAFETY: created at open, destroyed once.
        unsafe { ffi::leveldb_writeoptions_destroy(self.write) };
        // SAFETY: created at open, destroyed once.
        unsafe { ffi::leveldb_readoptions_destroy(self.read) };
    }
}
