//! The functions of `leveldb/c.h` (1.23) that the tests need.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_uchar, c_void};

macro_rules! opaque {
    ($($name:ident),* $(,)?) => { $(
        #[repr(C)]
        pub(crate) struct $name {
            // The library changes the value behind a shared reference.
            inside: UnsafeCell<[u8; 0]>,
        }
    )* };
}

opaque!(
    DbHandle,
    OptionsHandle,
    ReadHandle,
    WriteHandle,
    IteratorHandle,
    FilterHandle,
);

#[link(name = "leveldb")]
unsafe extern "C" {
    pub(crate) fn leveldb_free(memory: *mut c_void);

    pub(crate) safe fn leveldb_options_create() -> *mut OptionsHandle;
    pub(crate) fn leveldb_options_destroy(options: *mut OptionsHandle);
    pub(crate) safe fn leveldb_options_set_create_if_missing(options: &OptionsHandle, on: c_uchar);
    pub(crate) safe fn leveldb_options_set_paranoid_checks(options: &OptionsHandle, on: c_uchar);
    pub(crate) safe fn leveldb_options_set_compression(options: &OptionsHandle, codec: c_int);
    pub(crate) safe fn leveldb_options_set_write_buffer_size(options: &OptionsHandle, bytes: usize);
    pub(crate) safe fn leveldb_options_set_max_file_size(options: &OptionsHandle, bytes: usize);
    pub(crate) safe fn leveldb_options_set_block_size(options: &OptionsHandle, bytes: usize);
    pub(crate) fn leveldb_options_set_filter_policy(
        options: *mut OptionsHandle,
        filter: *mut FilterHandle,
    );
    pub(crate) safe fn leveldb_filterpolicy_create_bloom(bits: c_int) -> *mut FilterHandle;
    pub(crate) fn leveldb_filterpolicy_destroy(filter: *mut FilterHandle);

    pub(crate) fn leveldb_open(
        options: *const OptionsHandle,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut DbHandle;
    pub(crate) fn leveldb_close(db: *mut DbHandle);
    pub(crate) fn leveldb_put(
        db: *mut DbHandle,
        options: *const WriteHandle,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn leveldb_delete(
        db: *mut DbHandle,
        options: *const WriteHandle,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn leveldb_get(
        db: *mut DbHandle,
        options: *const ReadHandle,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    pub(crate) fn leveldb_compact_range(
        db: *mut DbHandle,
        begin: *const c_char,
        begin_len: usize,
        end: *const c_char,
        end_len: usize,
    );
    pub(crate) safe fn leveldb_writeoptions_create() -> *mut WriteHandle;
    pub(crate) fn leveldb_writeoptions_destroy(options: *mut WriteHandle);
    pub(crate) safe fn leveldb_readoptions_create() -> *mut ReadHandle;
    pub(crate) fn leveldb_readoptions_destroy(options: *mut ReadHandle);
    pub(crate) safe fn leveldb_readoptions_set_verify_checksums(options: &ReadHandle, on: c_uchar);

    pub(crate) fn leveldb_create_iterator(
        db: *mut DbHandle,
        options: *const ReadHandle,
    ) -> *mut IteratorHandle;
    pub(crate) fn leveldb_iter_destroy(iterator: *mut IteratorHandle);
    pub(crate) safe fn leveldb_iter_valid(iterator: &IteratorHandle) -> c_uchar;
    pub(crate) safe fn leveldb_iter_seek_to_first(iterator: &IteratorHandle);
    pub(crate) safe fn leveldb_iter_next(iterator: &IteratorHandle);
    pub(crate) safe fn leveldb_iter_key(
        iterator: &IteratorHandle,
        len: &mut usize,
    ) -> *const c_char;
    pub(crate) safe fn leveldb_iter_value(
        iterator: &IteratorHandle,
        len: &mut usize,
    ) -> *const c_char;
    pub(crate) safe fn leveldb_iter_get_error(iterator: &IteratorHandle, error: &mut *mut c_char);
}
