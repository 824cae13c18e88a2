//! Files that RocksDB writes beside a plain database: external tables, and prepared transactions.

use std::path::Path;
use std::ptr;

use crate::memory::{c_path, take_bytes, take_error};
use crate::rocks::{RocksOptions, must};
use crate::rocks_ffi::{self as ffi, rocksdb_free};

/// RocksDB's writer of external tables.
pub struct RocksSstWriter {
    writer: *mut ffi::SstWriterHandle,
    env: *mut ffi::EnvOptionsHandle,
    _options: RocksOptions,
}

impl std::fmt::Debug for RocksSstWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RocksSstWriter").finish_non_exhaustive()
    }
}

impl RocksSstWriter {
    /// Creates `path`.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn create(path: &Path, options: &str) -> Result<Self, String> {
        let options = RocksOptions::parse(options)?;
        let env = ffi::rocksdb_envoptions_create();
        // SAFETY: both are live, and kept as long as the writer.
        let writer = unsafe { ffi::rocksdb_sstfilewriter_create(env, options.0) };
        let path = c_path(path);
        let mut error = ptr::null_mut();
        // SAFETY: both are live; the name is copied.
        unsafe { ffi::rocksdb_sstfilewriter_open(writer, path.as_ptr(), &mut error) };
        let this = Self {
            writer,
            env,
            _options: options,
        };
        take_error(error, rocksdb_free)?;
        Ok(this)
    }

    /// Adds a value; keys ascend.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        let mut error = ptr::null_mut();
        // SAFETY: the writer is live; both are read within their lengths and copied.
        unsafe {
            ffi::rocksdb_sstfilewriter_put(self.writer, k, key.len(), v, value.len(), &mut error);
        }
        must("external put", error);
    }

    /// Adds a deletion; keys ascend.
    pub fn delete(&mut self, key: &[u8]) {
        let k = key.as_ptr().cast();
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe { ffi::rocksdb_sstfilewriter_delete(self.writer, k, key.len(), &mut error) };
        must("external delete", error);
    }

    /// Adds a range deletion.
    pub fn delete_range(&mut self, begin: &[u8], end: &[u8]) {
        let (b, e) = (begin.as_ptr().cast(), end.as_ptr().cast());
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe {
            ffi::rocksdb_sstfilewriter_delete_range(
                self.writer,
                b,
                begin.len(),
                e,
                end.len(),
                &mut error,
            );
        }
        must("external range deletion", error);
    }

    /// Completes the file.
    pub fn finish(self) {
        let mut error = ptr::null_mut();
        // SAFETY: the writer is live.
        unsafe { ffi::rocksdb_sstfilewriter_finish(self.writer, &mut error) };
        must("finish external table", error);
    }
}

impl Drop for RocksSstWriter {
    fn drop(&mut self) {
        // SAFETY: created in `create`, destroyed once.
        unsafe { ffi::rocksdb_sstfilewriter_destroy(self.writer) };
        // SAFETY: created in `create`, destroyed once, after the writer that uses it.
        unsafe { ffi::rocksdb_envoptions_destroy(self.env) };
    }
}

/// A database with two-phase transactions. Closed when dropped.
pub struct RocksTransactions {
    db: *mut ffi::TransactionDbHandle,
    options: *mut ffi::TransactionDbOptionsHandle,
    each: *mut ffi::TransactionOptionsHandle,
    write: *mut ffi::WriteHandle,
}

impl std::fmt::Debug for RocksTransactions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RocksTransactions").finish_non_exhaustive()
    }
}

impl RocksTransactions {
    /// Opens `dir`.
    ///
    /// # Errors
    /// RocksDB's message.
    pub fn open(dir: &Path, options: &str) -> Result<Self, String> {
        let parsed = RocksOptions::parse(options)?;
        let transactions = ffi::rocksdb_transactiondb_options_create();
        let path = c_path(dir);
        let mut error = ptr::null_mut();
        // SAFETY: all are live; options and name are copied.
        let db = unsafe {
            ffi::rocksdb_transactiondb_open(parsed.0, transactions, path.as_ptr(), &mut error)
        };
        take_error(error, rocksdb_free)?;
        Ok(Self {
            db,
            options: transactions,
            each: ffi::rocksdb_transaction_options_create(),
            write: ffi::rocksdb_writeoptions_create(),
        })
    }

    /// Puts one row in a transaction called `name`, prepares it and, if `commit`, commits it.
    pub fn transact(&self, name: &str, key: &[u8], value: &[u8], commit: bool) {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        let (db, write, options) = (self.db, self.write, self.each);
        let mut error = ptr::null_mut();
        // SAFETY: handles are live as long as `self`; null asks for a new transaction.
        let one = unsafe { ffi::rocksdb_transaction_begin(db, write, options, ptr::null_mut()) };
        let text = name.as_ptr().cast();
        // SAFETY: `one` is live; the name is read within its length and copied.
        unsafe { ffi::rocksdb_transaction_set_name(one, text, name.len(), &mut error) };
        must("name a transaction", error);
        // SAFETY: `one` is live; both are read within their lengths and copied.
        unsafe { ffi::rocksdb_transaction_put(one, k, key.len(), v, value.len(), &mut error) };
        must("transaction put", error);
        // SAFETY: `one` is live.
        unsafe { ffi::rocksdb_transaction_prepare(one, &mut error) };
        must("prepare", error);
        if commit {
            // SAFETY: `one` is live.
            unsafe { ffi::rocksdb_transaction_commit(one, &mut error) };
            must("commit", error);
        }
        // SAFETY: begun above, destroyed once. A prepared one stays in the WAL.
        unsafe { ffi::rocksdb_transaction_destroy(one) };
    }

    /// Commits those of the prepared transactions for which `commits` says so, and rolls the others of its `Some` back;
    /// the names of all there were.
    pub fn end_prepared(&self, commits: impl Fn(&[u8]) -> Option<bool>) -> Vec<Vec<u8>> {
        let mut count = 0;
        // SAFETY: the database is live; the array is the caller's, or null where there is none.
        let all =
            unsafe { ffi::rocksdb_transactiondb_get_prepared_transactions(self.db, &mut count) };
        let mut names = Vec::new();
        for index in 0..count {
            // SAFETY: the array has `count` elements.
            let place = unsafe { all.add(index) };
            // SAFETY: within the array.
            let one = unsafe { *place };
            let mut len = 0;
            // SAFETY: `one` is live; the name is a copy for the caller.
            let text = unsafe { ffi::rocksdb_transaction_get_name(one, &mut len) };
            let name = take_bytes(text, len, rocksdb_free).expect("a prepared one has a name");
            let mut error = ptr::null_mut();
            match commits(&name) {
                // SAFETY: `one` is live and prepared.
                Some(true) => unsafe { ffi::rocksdb_transaction_commit(one, &mut error) },
                // SAFETY: `one` is live and prepared.
                Some(false) => unsafe { ffi::rocksdb_transaction_rollback(one, &mut error) },
                None => {}
            }
            must("end a prepared transaction", error);
            names.push(name);
        }
        if !all.is_null() {
            // SAFETY: allocated by the library for the caller; the transactions stay its database's.
            unsafe { rocksdb_free(all.cast()) };
        }
        names.sort();
        names
    }
}

impl Drop for RocksTransactions {
    fn drop(&mut self) {
        // SAFETY: opened by the library, closed once.
        unsafe { ffi::rocksdb_transactiondb_close(self.db) };
        // SAFETY: created at open, destroyed once.
        unsafe { ffi::rocksdb_transactiondb_options_destroy(self.options) };
        // SAFETY: created at open, destroyed once.
        unsafe { ffi::rocksdb_transaction_options_destroy(self.each) };
        // SAFETY: created at open, destroyed once.
        unsafe { ffi::rocksdb_writeoptions_destroy(self.write) };
    }
}
