//! `rocksdb_transactiondb_t`, `rocksdb_optimistictransactiondb_t` and `rocksdb_transaction_t`.

use std::ffi::{c_char, c_int};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ColumnFamily, Db, Error, ErrorKind, Isolation, Locking, PinnedSlice, Prepared, Result,
    Snapshot, Transaction, TransactionDb, TransactionOptions, WriteOptions,
};
use drumlin_ffi::error::{end_process, guard_infallible};
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{not_implemented, set};
use crate::family::{Family, FamilyArrays, open_with};
use crate::fields::{
    OptimistictransactionOptions, OptimistictransactiondbOptions, TransactionOptions as Fields,
    TransactiondbOptions, Writeoptions,
};
use crate::indexed_batch::Writes;
use crate::opening::{Mode, Named, Opening};
use crate::options::OpenOptions;
use crate::reads::{KeyList, families};
use crate::small_options::Reads;
use crate::snapshot::ErrPtr;

/// `rocksdb_transactiondb_t`: writes of the database itself are transactions of one write.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct TransactionDatabase(Database);

/// `rocksdb_optimistictransactiondb_t`.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct OptimisticDatabase(Database);

impl Deref for TransactionDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

impl Deref for OptimisticDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

/// RocksDB's milliseconds: none or less waits as long as it takes.
fn timeout(millis: i64) -> Duration {
    /// Longer than anybody waits.
    const FOREVER: Duration = Duration::from_secs(1 << 32);
    u64::try_from(millis).map_or(FOREVER, Duration::from_millis)
}

/// What `make` makes of a database that was just opened, which is closed again where it fails.
fn made_of<T>(db: &Db, make: impl FnOnce(Db) -> Result<T>) -> Result<T> {
    let allowed = crate::timestamps::refuse_any(&db.families(), "transactions");
    let made = allowed.and_then(|()| make(db.clone()));
    if made.is_err() {
        // The first error is the one that is told.
        let _ = db.clone().close();
    }
    made
}

impl TransactionDatabase {
    pub(crate) fn new(db: &Db, options: &TransactiondbOptions) -> Result<Self> {
        made_of(db, |db| Self::over(db, options))
    }

    fn over(db: Db, options: &TransactiondbOptions) -> Result<Self> {
        if let Some(most @ 1..) = options.max_num_locks {
            let message = format!("max_num_locks={most}: locks are not counted; leave it at -1");
            return Err(Error::not_supported(message));
        }
        if let Some(policy @ 1..) = options.write_policy {
            let message =
                format!("write_policy={policy}: writes are made at commit; leave it at 0");
            return Err(Error::not_supported(message));
        }
        let locking = Locking {
            timeout: timeout(options.transaction_lock_timeout()),
            ..Locking::default()
        };
        let locks = Arc::new(TransactionDb::over(db.clone(), locking)?);
        Ok(Self(Database::with_locks(db, locks)))
    }
}

impl OptimisticDatabase {
    pub(crate) fn new(db: &Db) -> Result<Self> {
        made_of(db, Self::over)
    }

    fn over(db: Db) -> Result<Self> {
        let locking = Locking {
            isolation: Isolation::Snapshot,
            ..Locking::default()
        };
        let locks = Arc::new(TransactionDb::over(db.clone(), locking)?);
        Ok(Self(Database::with_locks(db, locks)))
    }
}

/// `rocksdb_transaction_t`.
pub(crate) struct Running {
    /// Before what it borrows from, as it is dropped first. `None` when it is prepared or committed.
    transaction: Option<Transaction<'static>>,
    /// It stays prepared when the handle goes.
    prepared: Option<Prepared<'static>>,
    locks: Arc<TransactionDb>,
    db: Db,
    options: TransactionOptions,
    write_options: WriteOptions,
    /// What a set snapshot is read by, lent to handles.
    snapshot: Option<Arc<Snapshot>>,
    /// What handles of the batch were lent.
    #[expect(clippy::vec_box, reason = "handles point to them while the list grows")]
    lent: Vec<Box<Writes>>,
    name: Vec<u8>,
    /// Whether it may be committed only after it was prepared.
    asks_for_prepare: bool,
    /// Why it cannot be committed.
    refused: Option<Error>,
}

impl Running {
    fn new(
        db: &Database,
        write_options: &Writeoptions,
        options: TransactionOptions,
    ) -> Result<Self> {
        let Some(locks) = db.locks() else {
            return Err(Error::invalid_argument("the database has no transactions"));
        };
        let mut running = Self {
            transaction: None,
            prepared: None,
            locks: Arc::clone(locks),
            db: db.db().clone(),
            options,
            write_options: write_options.to_engine()?,
            snapshot: None,
            lent: Vec::new(),
            name: Vec::new(),
            asks_for_prepare: false,
            refused: None,
        };
        running.begin();
        Ok(running)
    }

    /// The locks for as long as this lives.
    fn lent_locks(&self) -> &'static TransactionDb {
        let locks: *const TransactionDb = Arc::as_ptr(&self.locks);
        // SAFETY: the share in `locks` lives as long as this, and is dropped after what borrows from it.
        unsafe { &*locks }
    }

    /// Notes that `function` was called, which its end reports.
    pub(crate) fn refuse(&mut self, function: &str) {
        self.refused.get_or_insert(not_implemented(function));
    }

    /// Notes why it cannot be committed, if that failed.
    pub(crate) fn note(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.refused.get_or_insert(error);
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        match &self.refused {
            Some(error) => Err(error.duplicate()),
            None => Ok(()),
        }
    }

    fn begin(&mut self) {
        self.refused = None;
        let transaction = self.lent_locks().begin_with(self.options);
        self.snapshot = match self.options.snapshot {
            true => transaction.snapshot().cloned().map(Arc::new),
            false => None,
        };
        self.transaction = Some(transaction);
    }

    fn running(&mut self) -> Result<&mut Transaction<'static>> {
        let why = match self.prepared {
            Some(_) => "a transaction that is prepared is committed or rolled back, nothing else",
            None => "Transaction has already been committed.",
        };
        self.transaction
            .as_mut()
            .ok_or_else(|| Error::invalid_argument(why))
    }

    /// A transaction for each that is prepared.
    fn all_prepared(db: &Database) -> Result<Vec<Self>> {
        let options = TransactionOptions {
            snapshot: false,
            isolation: Some(Isolation::Locks),
            ..TransactionOptions::default()
        };
        let names = db.locks().map(|locks| locks.prepared_transactions());
        let mut all = Vec::new();
        for name in names.unwrap_or_default() {
            let mut running = Self::new(db, &Writeoptions::default(), options)?;
            running.transaction = None;
            running.prepared = running.lent_locks().prepared(&name);
            running.name = name;
            // Another thread may have ended it since.
            if running.prepared.is_some() {
                all.push(running);
            }
        }
        Ok(all)
    }

    fn family<'a>(&'a self, family: Option<&'a Family>) -> ColumnFamily {
        family.map_or_else(
            || self.db.default_family().clone(),
            |family| family.0.clone(),
        )
    }

    /// The transaction's own value of `key`, else the store's, as `options` say.
    fn read(
        &mut self,
        options: &Reads,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<PinnedSlice>> {
        let (family, options) = (self.family(family), options.to_engine()?);
        self.running()?.get_as(&family, key, &options)
    }

    /// The same, after the key was locked.
    fn read_for_update(
        &mut self,
        options: &Reads,
        family: Option<&Family>,
        key: &[u8],
        exclusive: bool,
    ) -> Result<Option<PinnedSlice>> {
        let (family, options) = (self.family(family), options.to_engine()?);
        let transaction = self.running()?;
        match exclusive {
            true => transaction.lock_key(&family, key)?,
            false => transaction.share_key(&family, key)?,
        }
        transaction.get_as(&family, key, &options)
    }
}

/// # Safety
/// The arguments are as c.h has them.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_open_column_families(
    options: *const Handle<OpenOptions>,
    transaction_options: *const Handle<TransactiondbOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const Handle<OpenOptions>,
    handles: *mut *mut Handle<Family>,
    errptr: ErrPtr,
) -> *mut Handle<TransactionDatabase> {
    const NAME: &str = "rocksdb_transactiondb_open_column_families";
    // SAFETY: the C program's promise.
    let transactions = unsafe { handle::get(transaction_options, NAME) };
    let families = FamilyArrays {
        count,
        names,
        options: family_options,
        handles,
        ttls: std::ptr::null(),
    };
    let opening = (options, name, Mode::ReadWrite);
    let open = |opening: &Opening<'_>, named: &[Named<'_>]| {
        let (db, found) = opening.open(named)?;
        Ok((TransactionDatabase::new(&db, transactions)?, found))
    };
    // SAFETY: as above.
    unsafe { open_with(NAME, opening, families, errptr, open) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_optimistictransactiondb_open_column_families(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const Handle<OpenOptions>,
    handles: *mut *mut Handle<Family>,
    errptr: ErrPtr,
) -> *mut Handle<OptimisticDatabase> {
    const NAME: &str = "rocksdb_optimistictransactiondb_open_column_families";
    let families = FamilyArrays {
        count,
        names,
        options: family_options,
        handles,
        ttls: std::ptr::null(),
    };
    let opening = (options, name, Mode::ReadWrite);
    let open = |opening: &Opening<'_>, named: &[Named<'_>]| {
        let (db, found) = opening.open(named)?;
        Ok((OptimisticDatabase::new(&db)?, found))
    };
    // SAFETY: the C program's promise.
    unsafe { open_with(NAME, opening, families, errptr, open) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
    options: *const Handle<OpenOptions>,
    transaction_options: *const Handle<OptimistictransactiondbOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const Handle<OpenOptions>,
    handles: *mut *mut Handle<Family>,
    errptr: ErrPtr,
) -> *mut Handle<OptimisticDatabase> {
    const NAME: &str = "rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options";
    if !transaction_options.is_null() {
        // SAFETY: the C program's promise.
        unsafe { handle::get(transaction_options, NAME) };
    }
    // SAFETY: the C program's promise.
    unsafe {
        rocksdb_optimistictransactiondb_open_column_families(
            options,
            name,
            count,
            names,
            family_options,
            handles,
            errptr,
        )
    }
}

/// As the next.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_close_base_db(base: *mut Handle<Database>) {
    const NAME: &str = "rocksdb_transactiondb_close_base_db";
    // SAFETY: the C program's promise.
    guard_infallible(NAME, || unsafe { handle::destroy(base, NAME) });
}

/// The base handle alone; the database goes on.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_optimistictransactiondb_close_base_db(base: *mut Handle<Database>) {
    const NAME: &str = "rocksdb_optimistictransactiondb_close_base_db";
    // SAFETY: the C program's promise.
    guard_infallible(NAME, || unsafe { handle::destroy(base, NAME) });
}

/// A new transaction, in the place of `old` where there is one.
///
/// # Safety
/// `old` is a handle, or null.
unsafe fn begin(
    made: Result<Running>,
    old: *mut Handle<Running>,
    function: &str,
) -> *mut Handle<Running> {
    let running = match made {
        Ok(running) => running,
        // There is no place for an error.
        Err(error) => end_process(function, &error.to_string()),
    };
    if old.is_null() {
        return handle::create(running);
    }
    // SAFETY: the caller's promise.
    *unsafe { handle::get_mut(old, function) } = running;
    old
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transaction_begin(
    db: *mut Handle<TransactionDatabase>,
    write_options: *const Handle<Writeoptions>,
    options: *const Handle<Fields>,
    old: *mut Handle<Running>,
) -> *mut Handle<Running> {
    const NAME: &str = "rocksdb_transaction_begin";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let write_options = unsafe { handle::get(write_options, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let wanted = TransactionOptions {
        snapshot: options.set_snapshot(),
        lock_timeout: options
            .lock_timeout
            .filter(|millis| *millis >= 0)
            .map(timeout),
        expiration: options
            .expiration
            .filter(|millis| *millis >= 0)
            .map(timeout),
        isolation: Some(Isolation::Locks),
    };
    let mut made = guard_infallible(NAME, || Running::new(db, write_options, wanted));
    if let Ok(running) = &mut made {
        running.asks_for_prepare = !options.skip_prepare();
    }
    // SAFETY: as above.
    unsafe { begin(made, old, NAME) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_optimistictransaction_begin(
    db: *mut Handle<OptimisticDatabase>,
    write_options: *const Handle<Writeoptions>,
    options: *const Handle<OptimistictransactionOptions>,
    old: *mut Handle<Running>,
) -> *mut Handle<Running> {
    const NAME: &str = "rocksdb_optimistictransaction_begin";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let write_options = unsafe { handle::get(write_options, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let wanted = TransactionOptions {
        snapshot: options.set_snapshot(),
        lock_timeout: None,
        expiration: None,
        isolation: Some(Isolation::Snapshot),
    };
    let made = guard_infallible(NAME, || Running::new(db, write_options, wanted));
    // SAFETY: as above.
    unsafe { begin(made, old, NAME) }
}

/// An array of transactions and its length: those that are prepared. It goes back by `rocksdb_free`, each of them by
/// `rocksdb_transaction_destroy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_get_prepared_transactions(
    db: *mut Handle<TransactionDatabase>,
    count: *mut usize,
) -> *mut *mut Handle<Running> {
    const NAME: &str = "rocksdb_transactiondb_get_prepared_transactions";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    let prepared = guard_infallible(NAME, || Running::all_prepared(db));
    let prepared = match prepared {
        Ok(prepared) => prepared,
        // There is no place for an error.
        Err(error) => end_process(NAME, &error.to_string()),
    };
    // SAFETY: as above.
    unsafe { set(count, 0, prepared.len()) };
    if prepared.is_empty() {
        return std::ptr::null_mut();
    }
    // SAFETY: malloc has no conditions.
    let array: *mut *mut Handle<Running> =
        unsafe { libc::malloc(prepared.len() * size_of::<*mut Handle<Running>>()) }.cast();
    if array.is_null() {
        end_process(NAME, "no memory is left for a result");
    }
    for (at, running) in prepared.into_iter().enumerate() {
        // SAFETY: the array has a place for each.
        unsafe { set(array, at, handle::create(running)) };
    }
    array
}

/// Reads each key by itself, own writes first.
fn each(
    running: &mut Running,
    options: &Reads,
    families: &[Option<&Family>],
    keys: &[&[u8]],
) -> Vec<Result<Option<PinnedSlice>>> {
    let both = families.iter().zip(keys);
    both.map(|(family, key)| running.read(options, *family, key))
        .collect()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transaction_multi_get(
    transaction: *mut Handle<Running>,
    options: *const Handle<Reads>,
    count: usize,
    keys: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    errs: *mut *mut c_char,
) {
    const NAME: &str = "rocksdb_transaction_multi_get";
    // SAFETY: the C program's promise.
    let running = unsafe { handle::get_mut(transaction, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let list = KeyList {
        count,
        keys,
        lens,
        values,
        value_lens,
        errs,
    };
    let families = vec![None; count];
    // SAFETY: as above.
    unsafe { list.answer(NAME, |keys| each(running, options, &families, keys)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transaction_multi_get_cf(
    transaction: *mut Handle<Running>,
    options: *const Handle<Reads>,
    handles: *const *const Handle<Family>,
    count: usize,
    keys: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    errs: *mut *mut c_char,
) {
    const NAME: &str = "rocksdb_transaction_multi_get_cf";
    // SAFETY: the C program's promise.
    let running = unsafe { handle::get_mut(transaction, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let list = KeyList {
        count,
        keys,
        lens,
        values,
        value_lens,
        errs,
    };
    // SAFETY: as above.
    let families = unsafe { families(handles, count, NAME) };
    let families: Vec<_> = families.into_iter().map(Some).collect();
    // SAFETY: as above.
    unsafe { list.answer(NAME, |keys| each(running, options, &families, keys)) };
}

/// The same, after each key was locked. Where one cannot be, that is the answer for all.
fn each_for_update(
    running: &mut Running,
    options: &Reads,
    families: &[Option<&Family>],
    keys: &[&[u8]],
) -> Vec<Result<Option<PinnedSlice>>> {
    let both = families.iter().zip(keys);
    let found: Result<Vec<_>> = both
        .map(|(family, key)| running.read_for_update(options, *family, key, true))
        .collect();
    match found {
        Ok(found) => found.into_iter().map(Ok).collect(),
        Err(error) => keys.iter().map(|_| Err(error.duplicate())).collect(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transaction_multi_get_for_update(
    transaction: *mut Handle<Running>,
    options: *const Handle<Reads>,
    count: usize,
    keys: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    errs: *mut *mut c_char,
) {
    const NAME: &str = "rocksdb_transaction_multi_get_for_update";
    // SAFETY: the C program's promise.
    let running = unsafe { handle::get_mut(transaction, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let list = KeyList {
        count,
        keys,
        lens,
        values,
        value_lens,
        errs,
    };
    let families = vec![None; count];
    // SAFETY: as above.
    unsafe {
        list.answer(NAME, |keys| {
            each_for_update(running, options, &families, keys)
        })
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transaction_multi_get_for_update_cf(
    transaction: *mut Handle<Running>,
    options: *const Handle<Reads>,
    handles: *const *const Handle<Family>,
    count: usize,
    keys: *const *const c_char,
    lens: *const usize,
    values: *mut *mut c_char,
    value_lens: *mut usize,
    errs: *mut *mut c_char,
) {
    const NAME: &str = "rocksdb_transaction_multi_get_for_update_cf";
    // SAFETY: the C program's promise.
    let running = unsafe { handle::get_mut(transaction, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    let list = KeyList {
        count,
        keys,
        lens,
        values,
        value_lens,
        errs,
    };
    // SAFETY: as above.
    let families = unsafe { families(handles, count, NAME) };
    let families: Vec<_> = families.into_iter().map(Some).collect();
    // SAFETY: as above.
    unsafe {
        list.answer(NAME, |keys| {
            each_for_update(running, options, &families, keys)
        })
    };
}

/// The error of a savepoint that is not there, in RocksDB's words.
fn no_savepoint(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::new(ErrorKind::NotFound, ""),
        _ => error,
    }
}

#[path = "transaction_calls.rs"]
pub(crate) mod calls;
