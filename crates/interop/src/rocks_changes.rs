//! RocksDB's `GetUpdatesSince`.

use std::ptr;

use crate::memory::take_error;
use crate::rocks::Rocks;
use crate::rocks_ffi::{self as ffi, rocksdb_free};

/// Batches, each with its sequence number and its bytes, and the error at which they ended, if one did.
pub type Updates = (Vec<(u64, Vec<u8>)>, Option<String>);

impl Rocks {
    /// What was written from the sequence number `from` on.
    ///
    /// # Errors
    /// RocksDB's message, where it cannot begin.
    pub fn updates_since(&self, from: u64) -> Result<Updates, String> {
        let mut error = ptr::null_mut();
        // SAFETY: the database is live as long as `self`; null are the default options.
        let iterator = unsafe {
            ffi::rocksdb_get_updates_since(self.handle_of_db(), from, ptr::null(), &mut error)
        };
        take_error(error, rocksdb_free)?;
        let mut found = Vec::new();
        // SAFETY: `iterator` is live until it is destroyed below.
        while unsafe { ffi::rocksdb_wal_iter_valid(iterator) } != 0 {
            let mut seqno = 0;
            // SAFETY: as above; the number is written within the call.
            let batch = unsafe { ffi::rocksdb_wal_iter_get_batch(iterator, &mut seqno) };
            let mut len = 0;
            // SAFETY: the batch is live until it is destroyed below.
            let data = unsafe { ffi::rocksdb_writebatch_data(batch, &mut len) };
            // SAFETY: the library says that so many bytes of the live batch are there.
            let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
            found.push((seqno, bytes.to_vec()));
            // SAFETY: made by the library, destroyed once.
            unsafe { ffi::rocksdb_writebatch_destroy(batch) };
            // SAFETY: as above.
            unsafe { ffi::rocksdb_wal_iter_next(iterator) };
        }
        let mut error = ptr::null_mut();
        // SAFETY: as above.
        unsafe { ffi::rocksdb_wal_iter_status(iterator, &mut error) };
        let ended = take_error(error, rocksdb_free).err();
        // SAFETY: made by the library, destroyed once.
        unsafe { ffi::rocksdb_wal_iter_destroy(iterator) };
        Ok((found, ended))
    }
}
