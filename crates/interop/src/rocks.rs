//! RocksDB in this process, through its C library.
//!
//! Options are given as RocksDB's own text (`key=value;key={...}`), so that a test reads like the
//! options it sets. Invariant: every pointer in [`Rocks`] is live until it is dropped. One thread.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::ptr;

use crate::memory::{c_path, c_text, copy_bytes, take_bytes, take_error};
use crate::rocks_ffi::{self as ffi, rocksdb_free};
use crate::rows::Rows;

/// Families to open: each one's name, and options beside those of the database.
pub type Families<'a> = &'a [(&'a str, &'a str)];

/// RocksDB's options, parsed from its text.
pub(crate) struct RocksOptions(pub(crate) *mut ffi::OptionsHandle);

impl RocksOptions {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let base = Self(ffi::rocksdb_options_create());
        let new = Self(ffi::rocksdb_options_create());
        // The parser takes no empty statement.
        let statements: Vec<&str> = text
            .split(';')
            .filter(|one| !one.trim().is_empty())
            .collect();
        let c = c_text(&statements.join(";"));
        let mut error = ptr::null_mut();
        // SAFETY: all three are live for the call, and the library keeps none of them.
        unsafe { ffi::rocksdb_get_options_from_string(base.0, c.as_ptr(), new.0, &mut error) };
        take_error(error, rocksdb_free).map_err(|error| format!("{error} in {text:?}"))?;
        Ok(new)
    }
}

impl Drop for RocksOptions {
    fn drop(&mut self) {
        // SAFETY: created by the library, owned by this value, destroyed once.
        unsafe { ffi::rocksdb_options_destroy(self.0) };
    }
}

/// An open RocksDB database. Closed, without a flush, when dropped.
pub struct Rocks {
    db: *mut ffi::DbHandle,
    families: Vec<(String, *mut ffi::FamilyHandle)>,
    write: *mut ffi::WriteHandle,
    read: *mut ffi::ReadHandle,
}

impl std::fmt::Debug for Rocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rocks").finish_non_exhaustive()
    }
}

/// The part of a family to walk, and the direction.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// At or above this key.
    pub lower: Option<Vec<u8>>,
    /// Below this key.
    pub upper: Option<Vec<u8>>,
    /// From here instead of from the end the walk starts at.
    pub from: Option<Vec<u8>>,
    /// From the last key to the first.
    pub backward: bool,
}

impl Rocks {
    /// Opens (with `create_if_missing=true` in `options`, creates) the database in `dir`.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn open(dir: &Path, options: &str, families: Families<'_>) -> Result<Self, String> {
        let parsed = RocksOptions::parse(options)?;
        let each: Vec<RocksOptions> = families
            .iter()
            .map(|(_, more)| RocksOptions::parse(&format!("{options};{more}")))
            .collect::<Result<_, _>>()?;
        let names: Vec<CString> = families.iter().map(|(name, _)| c_text(name)).collect();
        let name_pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let option_pointers: Vec<_> = each.iter().map(|one| one.0.cast_const()).collect();
        let mut handles = vec![ptr::null_mut(); families.len()];
        let path = c_path(dir);
        let mut error = ptr::null_mut();
        // SAFETY: the three arrays have `families.len()` live elements each; all is copied.
        let db = unsafe {
            ffi::rocksdb_open_column_families(
                parsed.0,
                path.as_ptr(),
                families.len() as c_int,
                name_pointers.as_ptr(),
                option_pointers.as_ptr(),
                handles.as_mut_ptr(),
                &mut error,
            )
        };
        take_error(error, rocksdb_free)?;
        let names = families.iter().map(|(name, _)| (*name).to_owned());
        let read = ffi::rocksdb_readoptions_create();
        // SAFETY: just created. Without total order, a prefix extractor would hide keys from walks.
        unsafe { ffi::rocksdb_readoptions_set_total_order_seek(read, 1) };
        Ok(Self {
            db,
            families: names.zip(handles).collect(),
            write: ffi::rocksdb_writeoptions_create(),
            read,
        })
    }

    /// Opens with the default family only.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn open_default(dir: &Path, options: &str) -> Result<Self, String> {
        Self::open(dir, options, &[("default", "")])
    }

    /// Whether writes from now on skip the WAL.
    pub fn skip_wal(&mut self, skip: bool) {
        // SAFETY: `write` is live as long as `self`.
        unsafe { ffi::rocksdb_writeoptions_disable_WAL(self.write, c_int::from(skip)) };
    }

    /// Sets `key` of `family`.
    pub fn put(&self, family: &str, key: &[u8], value: &[u8]) {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        let (db, handle) = (self.db, self.handle(family));
        let mut error = ptr::null_mut();
        // SAFETY: handles live as long as `self`; `k` and `v` are read within their lengths.
        unsafe {
            ffi::rocksdb_put_cf(
                db,
                self.write,
                handle,
                k,
                key.len(),
                v,
                value.len(),
                &mut error,
            );
        }
        must("put", error);
    }

    /// Adds an operand to `key` of `family`.
    pub fn merge(&self, family: &str, key: &[u8], operand: &[u8]) {
        let (k, v) = (key.as_ptr().cast(), operand.as_ptr().cast());
        let (db, handle) = (self.db, self.handle(family));
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe {
            ffi::rocksdb_merge_cf(
                db,
                self.write,
                handle,
                k,
                key.len(),
                v,
                operand.len(),
                &mut error,
            );
        }
        must("merge", error);
    }

    /// Removes `key` from `family`.
    pub fn delete(&self, family: &str, key: &[u8]) {
        let k = key.as_ptr().cast();
        let mut error = ptr::null_mut();
        let handle = self.handle(family);
        // SAFETY: as in `put`.
        unsafe { ffi::rocksdb_delete_cf(self.db, self.write, handle, k, key.len(), &mut error) };
        must("delete", error);
    }

    /// Removes `key`, put once, from `family`.
    pub fn single_delete(&self, family: &str, key: &[u8]) {
        let k = key.as_ptr().cast();
        let mut error = ptr::null_mut();
        let (db, handle) = (self.db, self.handle(family));
        // SAFETY: as in `put`.
        unsafe { ffi::rocksdb_singledelete_cf(db, self.write, handle, k, key.len(), &mut error) };
        must("single delete", error);
    }

    /// Removes the keys from `begin` up to `end` from `family`.
    pub fn delete_range(&self, family: &str, begin: &[u8], end: &[u8]) {
        let (b, e) = (begin.as_ptr().cast(), end.as_ptr().cast());
        let (db, handle) = (self.db, self.handle(family));
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe {
            ffi::rocksdb_delete_range_cf(
                db,
                self.write,
                handle,
                b,
                begin.len(),
                e,
                end.len(),
                &mut error,
            );
        }
        must("delete range", error);
    }

    /// The value of `key` in `family`.
    pub fn get(&self, family: &str, key: &[u8]) -> Option<Vec<u8>> {
        let k = key.as_ptr().cast();
        let (db, handle) = (self.db, self.handle(family));
        let (mut len, mut error) = (0, ptr::null_mut());
        // SAFETY: as in `put`; the value is allocated for the caller.
        let value = unsafe {
            ffi::rocksdb_get_cf(db, self.read, handle, k, key.len(), &mut len, &mut error)
        };
        must("get", error);
        take_bytes(value, len, rocksdb_free)
    }

    /// Writes `family`'s memtable to a table.
    pub fn flush(&self, family: &str) {
        let options = ffi::rocksdb_flushoptions_create();
        let mut error = ptr::null_mut();
        // SAFETY: all handles are live.
        unsafe { ffi::rocksdb_flush_cf(self.db, options, self.handle(family), &mut error) };
        // SAFETY: created above, destroyed once.
        unsafe { ffi::rocksdb_flushoptions_destroy(options) };
        must("flush", error);
    }

    /// Flushes every family.
    pub fn flush_all(&self) {
        self.families.iter().for_each(|(name, _)| self.flush(name));
    }

    /// Compacts all of `family`.
    pub fn compact(&self, family: &str) {
        let (db, handle) = (self.db, self.handle(family));
        // SAFETY: handles are live; null bounds are no bounds.
        unsafe { ffi::rocksdb_compact_range_cf(db, handle, ptr::null(), 0, ptr::null(), 0) };
    }

    /// A property of the default family.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = c_text(name);
        // SAFETY: both are live; the text is allocated for the caller.
        let text = unsafe { ffi::rocksdb_property_value(self.db, name.as_ptr()) };
        take_error(text, rocksdb_free).err()
    }

    /// Every row of `family`, in order.
    pub fn rows(&self, family: &str) -> Rows {
        self.scan(family, &Scan::default())
    }

    /// Every row of `family`, last first.
    pub fn rows_backward(&self, family: &str) -> Rows {
        let backward = true;
        self.scan(
            family,
            &Scan {
                backward,
                ..Scan::default()
            },
        )
    }

    /// The rows that `scan` meets.
    pub fn scan(&self, family: &str, scan: &Scan) -> Rows {
        let read = self.bounded(scan);
        // SAFETY: handles are live; `read` and the bounds in `scan` outlive the iterator.
        let raw = unsafe { ffi::rocksdb_create_iterator_cf(self.db, read, self.handle(family)) };
        // SAFETY: never null, live until destroyed below; the library guards its own state.
        let iterator = unsafe { &*raw };
        let mut rows = Vec::new();
        match (&scan.from, scan.backward) {
            (None, false) => ffi::rocksdb_iter_seek_to_first(iterator),
            (None, true) => ffi::rocksdb_iter_seek_to_last(iterator),
            // SAFETY: the key is read within its length.
            (Some(key), false) => unsafe {
                ffi::rocksdb_iter_seek(raw, key.as_ptr().cast(), key.len());
            },
            // SAFETY: the key is read within its length.
            (Some(key), true) => unsafe {
                ffi::rocksdb_iter_seek_for_prev(raw, key.as_ptr().cast(), key.len());
            },
        }
        while ffi::rocksdb_iter_valid(iterator) != 0 {
            let (mut key_len, mut value_len) = (0, 0);
            let key = ffi::rocksdb_iter_key(iterator, &mut key_len);
            let value = ffi::rocksdb_iter_value(iterator, &mut value_len);
            rows.push((copy_bytes(key, key_len), copy_bytes(value, value_len)));
            match scan.backward {
                true => ffi::rocksdb_iter_prev(iterator),
                false => ffi::rocksdb_iter_next(iterator),
            }
        }
        let mut error = ptr::null_mut();
        ffi::rocksdb_iter_get_error(iterator, &mut error);
        // SAFETY: created above, destroyed once, not used after.
        unsafe { ffi::rocksdb_iter_destroy(raw) };
        // SAFETY: created by `bounded`, no iterator uses it any more.
        unsafe { ffi::rocksdb_readoptions_destroy(read) };
        must("iterate", error);
        rows
    }

    /// Read options with the bounds of `scan`, which must outlive them.
    fn bounded(&self, scan: &Scan) -> *mut ffi::ReadHandle {
        let read = ffi::rocksdb_readoptions_create();
        // SAFETY: just created.
        unsafe { ffi::rocksdb_readoptions_set_total_order_seek(read, 1) };
        if let Some(key) = &scan.lower {
            let bytes = key.as_ptr().cast();
            // SAFETY: the library keeps the pointer; the key outlives the options by contract.
            unsafe { ffi::rocksdb_readoptions_set_iterate_lower_bound(read, bytes, key.len()) };
        }
        if let Some(key) = &scan.upper {
            let bytes = key.as_ptr().cast();
            // SAFETY: the library keeps the pointer; the key outlives the options by contract.
            unsafe { ffi::rocksdb_readoptions_set_iterate_upper_bound(read, bytes, key.len()) };
        }
        read
    }

    /// Takes the external tables `files` in.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn ingest(&self, family: &str, files: &[&Path]) -> Result<(), String> {
        let names: Vec<CString> = files.iter().map(|file| c_path(file)).collect();
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let options = ffi::rocksdb_ingestexternalfileoptions_create();
        let (db, handle) = (self.db, self.handle(family));
        let mut error = ptr::null_mut();
        // SAFETY: handles are live; `names` has that many elements, and is copied.
        unsafe {
            ffi::rocksdb_ingest_external_file_cf(
                db,
                handle,
                names.as_ptr(),
                names.len(),
                options,
                &mut error,
            );
        }
        // SAFETY: created above, destroyed once.
        unsafe { ffi::rocksdb_ingestexternalfileoptions_destroy(options) };
        take_error(error, rocksdb_free)
    }

    /// Makes `target` a copy of the database.
    pub fn checkpoint(&self, target: &Path) {
        let path = c_path(target);
        let mut error = ptr::null_mut();
        // SAFETY: `db` is live.
        let object = unsafe { ffi::rocksdb_checkpoint_object_create(self.db, &mut error) };
        must("checkpoint", error);
        // SAFETY: `object` and `path` are live; a huge size means: copy the WAL, flush nothing.
        unsafe { ffi::rocksdb_checkpoint_create(object, path.as_ptr(), u64::MAX, &mut error) };
        // SAFETY: created above, destroyed once.
        unsafe { ffi::rocksdb_checkpoint_object_destroy(object) };
        must("checkpoint", error);
    }

    /// The database, for other parts of the library; live as long as `self`.
    pub(crate) fn handle_of_db(&self) -> *mut ffi::DbHandle {
        self.db
    }

    fn handle(&self, family: &str) -> *mut ffi::FamilyHandle {
        let found = self.families.iter().find(|(name, _)| name == family);
        found
            .unwrap_or_else(|| panic!("family {family} was not opened"))
            .1
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        for (_, family) in &self.families {
            // SAFETY: given out by the library at open, destroyed once, before the database.
            unsafe { ffi::rocksdb_column_family_handle_destroy(*family) };
        }
        // SAFETY: opened by the library, closed once; no iterator outlives a method.
        unsafe { ffi::rocksdb_close(self.db) };
        // SAFETY: created at open, destroyed once.
        unsafe { ffi::rocksdb_writeoptions_destroy(self.write) };
        // SAFETY: created at open, destroyed once.
        unsafe { ffi::rocksdb_readoptions_destroy(self.read) };
    }
}

/// Panics with RocksDB's error of `what`.
pub(crate) fn must(what: &str, error: *mut c_char) {
    if let Err(error) = take_error(error, rocksdb_free) {
        panic!("RocksDB, {what}: {error}");
    }
}
