//! The functions of `rocksdb/c.h` (7.8) that the tests need.
//!
//! Handles are opaque types behind references or pointers of the right mutability. `safe fn` marks
//! functions that are sound for any live handle: they take no raw memory and keep no pointer.

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
    FamilyHandle,
    ReadHandle,
    WriteHandle,
    FlushHandle,
    IteratorHandle,
    EnvOptionsHandle,
    SstWriterHandle,
    IngestHandle,
    TransactionDbHandle,
    TransactionDbOptionsHandle,
    TransactionHandle,
    TransactionOptionsHandle,
    CheckpointHandle,
    EnvHandle,
    CacheHandle,
    BackupHandle,
    BackupInfoHandle,
    RestoreHandle,
    WalIteratorHandle,
    WalReadHandle,
    BatchHandle,
);

#[link(name = "rocksdb")]
unsafe extern "C" {
    pub(crate) fn rocksdb_free(memory: *mut c_void);

    pub(crate) safe fn rocksdb_options_create() -> *mut OptionsHandle;
    pub(crate) fn rocksdb_options_destroy(options: *mut OptionsHandle);
    pub(crate) fn rocksdb_get_options_from_string(
        base: *const OptionsHandle,
        text: *const c_char,
        new: *mut OptionsHandle,
        error: *mut *mut c_char,
    );

    pub(crate) fn rocksdb_get_updates_since(
        db: *mut DbHandle,
        from: u64,
        options: *const WalReadHandle,
        error: *mut *mut c_char,
    ) -> *mut WalIteratorHandle;
    pub(crate) fn rocksdb_wal_iter_valid(iterator: *const WalIteratorHandle) -> c_uchar;
    pub(crate) fn rocksdb_wal_iter_next(iterator: *mut WalIteratorHandle);
    pub(crate) fn rocksdb_wal_iter_status(
        iterator: *const WalIteratorHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_wal_iter_get_batch(
        iterator: *const WalIteratorHandle,
        seqno: *mut u64,
    ) -> *mut BatchHandle;
    pub(crate) fn rocksdb_wal_iter_destroy(iterator: *const WalIteratorHandle);
    pub(crate) fn rocksdb_writebatch_data(
        batch: *mut BatchHandle,
        len: *mut usize,
    ) -> *const c_char;
    pub(crate) fn rocksdb_writebatch_destroy(batch: *mut BatchHandle);

    pub(crate) safe fn rocksdb_create_default_env() -> *mut EnvHandle;
    pub(crate) fn rocksdb_env_destroy(env: *mut EnvHandle);
    pub(crate) safe fn rocksdb_cache_create_lru(bytes: usize) -> *mut CacheHandle;
    pub(crate) fn rocksdb_cache_destroy(cache: *mut CacheHandle);
    pub(crate) fn rocksdb_load_latest_options(
        name: *const c_char,
        env: *mut EnvHandle,
        ignore_unknown: bool,
        cache: *mut CacheHandle,
        options: *mut *mut OptionsHandle,
        count: *mut usize,
        names: *mut *mut *mut c_char,
        family_options: *mut *mut *mut OptionsHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_load_latest_options_destroy(
        options: *mut OptionsHandle,
        names: *mut *mut c_char,
        family_options: *mut *mut OptionsHandle,
        count: usize,
    );

    pub(crate) fn rocksdb_open_column_families(
        options: *const OptionsHandle,
        name: *const c_char,
        count: c_int,
        names: *const *const c_char,
        family_options: *const *const OptionsHandle,
        handles: *mut *mut FamilyHandle,
        error: *mut *mut c_char,
    ) -> *mut DbHandle;
    pub(crate) fn rocksdb_close(db: *mut DbHandle);
    pub(crate) fn rocksdb_column_family_handle_destroy(family: *mut FamilyHandle);

    pub(crate) fn rocksdb_put_cf(
        db: *mut DbHandle,
        options: *const WriteHandle,
        family: *mut FamilyHandle,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_merge_cf(
        db: *mut DbHandle,
        options: *const WriteHandle,
        family: *mut FamilyHandle,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_delete_range_cf(
        db: *mut DbHandle,
        options: *const WriteHandle,
        family: *mut FamilyHandle,
        begin: *const c_char,
        begin_len: usize,
        end: *const c_char,
        end_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_delete_cf(
        db: *mut DbHandle,
        options: *const WriteHandle,
        family: *mut FamilyHandle,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_singledelete_cf(
        db: *mut DbHandle,
        options: *const WriteHandle,
        family: *mut FamilyHandle,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_get_cf(
        db: *mut DbHandle,
        options: *const ReadHandle,
        family: *mut FamilyHandle,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    pub(crate) fn rocksdb_flush_cf(
        db: *mut DbHandle,
        options: *const FlushHandle,
        family: *mut FamilyHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_compact_range_cf(
        db: *mut DbHandle,
        family: *mut FamilyHandle,
        begin: *const c_char,
        begin_len: usize,
        end: *const c_char,
        end_len: usize,
    );
    pub(crate) fn rocksdb_property_value(db: *mut DbHandle, name: *const c_char) -> *mut c_char;

    pub(crate) safe fn rocksdb_writeoptions_create() -> *mut WriteHandle;
    pub(crate) fn rocksdb_writeoptions_destroy(options: *mut WriteHandle);
    pub(crate) fn rocksdb_writeoptions_disable_WAL(options: *mut WriteHandle, disable: c_int);
    pub(crate) safe fn rocksdb_readoptions_create() -> *mut ReadHandle;
    pub(crate) fn rocksdb_readoptions_destroy(options: *mut ReadHandle);
    pub(crate) fn rocksdb_readoptions_set_total_order_seek(options: *mut ReadHandle, on: c_uchar);
    pub(crate) fn rocksdb_readoptions_set_iterate_lower_bound(
        options: *mut ReadHandle,
        key: *const c_char,
        key_len: usize,
    );
    pub(crate) fn rocksdb_readoptions_set_iterate_upper_bound(
        options: *mut ReadHandle,
        key: *const c_char,
        key_len: usize,
    );
    pub(crate) safe fn rocksdb_flushoptions_create() -> *mut FlushHandle;
    pub(crate) fn rocksdb_flushoptions_destroy(options: *mut FlushHandle);

    pub(crate) fn rocksdb_create_iterator_cf(
        db: *mut DbHandle,
        options: *const ReadHandle,
        family: *mut FamilyHandle,
    ) -> *mut IteratorHandle;
    pub(crate) fn rocksdb_iter_destroy(iterator: *mut IteratorHandle);
    pub(crate) safe fn rocksdb_iter_valid(iterator: &IteratorHandle) -> c_uchar;
    pub(crate) safe fn rocksdb_iter_seek_to_first(iterator: &IteratorHandle);
    pub(crate) safe fn rocksdb_iter_seek_to_last(iterator: &IteratorHandle);
    pub(crate) safe fn rocksdb_iter_next(iterator: &IteratorHandle);
    pub(crate) safe fn rocksdb_iter_prev(iterator: &IteratorHandle);
    pub(crate) fn rocksdb_iter_seek(
        iterator: *mut IteratorHandle,
        key: *const c_char,
        key_len: usize,
    );
    pub(crate) fn rocksdb_iter_seek_for_prev(
        iterator: *mut IteratorHandle,
        key: *const c_char,
        key_len: usize,
    );
    pub(crate) safe fn rocksdb_iter_key(
        iterator: &IteratorHandle,
        len: &mut usize,
    ) -> *const c_char;
    pub(crate) safe fn rocksdb_iter_value(
        iterator: &IteratorHandle,
        len: &mut usize,
    ) -> *const c_char;
    pub(crate) safe fn rocksdb_iter_get_error(iterator: &IteratorHandle, error: &mut *mut c_char);

    pub(crate) safe fn rocksdb_envoptions_create() -> *mut EnvOptionsHandle;
    pub(crate) fn rocksdb_envoptions_destroy(options: *mut EnvOptionsHandle);
    pub(crate) fn rocksdb_sstfilewriter_create(
        env: *const EnvOptionsHandle,
        options: *const OptionsHandle,
    ) -> *mut SstWriterHandle;
    pub(crate) fn rocksdb_sstfilewriter_open(
        writer: *mut SstWriterHandle,
        name: *const c_char,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_sstfilewriter_put(
        writer: *mut SstWriterHandle,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_sstfilewriter_delete_range(
        writer: *mut SstWriterHandle,
        begin: *const c_char,
        begin_len: usize,
        end: *const c_char,
        end_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_sstfilewriter_delete(
        writer: *mut SstWriterHandle,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_sstfilewriter_finish(
        writer: *mut SstWriterHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_sstfilewriter_destroy(writer: *mut SstWriterHandle);
    pub(crate) safe fn rocksdb_ingestexternalfileoptions_create() -> *mut IngestHandle;
    pub(crate) fn rocksdb_ingestexternalfileoptions_destroy(options: *mut IngestHandle);
    pub(crate) fn rocksdb_ingest_external_file_cf(
        db: *mut DbHandle,
        family: *mut FamilyHandle,
        files: *const *const c_char,
        count: usize,
        options: *const IngestHandle,
        error: *mut *mut c_char,
    );

    pub(crate) fn rocksdb_checkpoint_object_create(
        db: *mut DbHandle,
        error: *mut *mut c_char,
    ) -> *mut CheckpointHandle;
    pub(crate) fn rocksdb_checkpoint_create(
        checkpoint: *mut CheckpointHandle,
        dir: *const c_char,
        log_size_for_flush: u64,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_checkpoint_object_destroy(checkpoint: *mut CheckpointHandle);

    pub(crate) fn rocksdb_backup_engine_open(
        options: *const OptionsHandle,
        dir: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut BackupHandle;
    pub(crate) fn rocksdb_backup_engine_close(engine: *mut BackupHandle);
    pub(crate) fn rocksdb_backup_engine_create_new_backup(
        engine: *mut BackupHandle,
        db: *mut DbHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_backup_engine_purge_old_backups(
        engine: *mut BackupHandle,
        keep: u32,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_backup_engine_verify_backup(
        engine: *mut BackupHandle,
        id: u32,
        error: *mut *mut c_char,
    );
    pub(crate) safe fn rocksdb_restore_options_create() -> *mut RestoreHandle;
    pub(crate) fn rocksdb_restore_options_destroy(options: *mut RestoreHandle);
    pub(crate) fn rocksdb_backup_engine_restore_db_from_backup(
        engine: *mut BackupHandle,
        dir: *const c_char,
        wal_dir: *const c_char,
        options: *const RestoreHandle,
        id: u32,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_backup_engine_get_backup_info(
        engine: *mut BackupHandle,
    ) -> *const BackupInfoHandle;
    pub(crate) fn rocksdb_backup_engine_info_count(info: *const BackupInfoHandle) -> c_int;
    pub(crate) fn rocksdb_backup_engine_info_timestamp(
        info: *const BackupInfoHandle,
        index: c_int,
    ) -> i64;
    pub(crate) fn rocksdb_backup_engine_info_backup_id(
        info: *const BackupInfoHandle,
        index: c_int,
    ) -> u32;
    pub(crate) fn rocksdb_backup_engine_info_size(
        info: *const BackupInfoHandle,
        index: c_int,
    ) -> u64;
    pub(crate) fn rocksdb_backup_engine_info_number_files(
        info: *const BackupInfoHandle,
        index: c_int,
    ) -> u32;
    pub(crate) fn rocksdb_backup_engine_info_destroy(info: *const BackupInfoHandle);

    pub(crate) safe fn rocksdb_transactiondb_options_create() -> *mut TransactionDbOptionsHandle;
    pub(crate) fn rocksdb_transactiondb_options_destroy(options: *mut TransactionDbOptionsHandle);
    pub(crate) fn rocksdb_transactiondb_open(
        options: *const OptionsHandle,
        transactions: *const TransactionDbOptionsHandle,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut TransactionDbHandle;
    pub(crate) fn rocksdb_transactiondb_close(db: *mut TransactionDbHandle);
    pub(crate) safe fn rocksdb_transaction_options_create() -> *mut TransactionOptionsHandle;
    pub(crate) fn rocksdb_transaction_options_destroy(options: *mut TransactionOptionsHandle);
    pub(crate) fn rocksdb_transaction_begin(
        db: *mut TransactionDbHandle,
        write: *const WriteHandle,
        options: *const TransactionOptionsHandle,
        old: *mut TransactionHandle,
    ) -> *mut TransactionHandle;
    pub(crate) fn rocksdb_transaction_set_name(
        transaction: *mut TransactionHandle,
        name: *const c_char,
        name_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_transaction_put(
        transaction: *mut TransactionHandle,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_transaction_prepare(
        transaction: *mut TransactionHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_transaction_commit(
        transaction: *mut TransactionHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_transaction_rollback(
        transaction: *mut TransactionHandle,
        error: *mut *mut c_char,
    );
    pub(crate) fn rocksdb_transactiondb_get_prepared_transactions(
        db: *mut TransactionDbHandle,
        count: *mut usize,
    ) -> *mut *mut TransactionHandle;
    pub(crate) fn rocksdb_transaction_get_name(
        transaction: *mut TransactionHandle,
        len: *mut usize,
    ) -> *mut c_char;
    pub(crate) fn rocksdb_transaction_destroy(transaction: *mut TransactionHandle);
}
