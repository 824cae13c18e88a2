//! What is done with a transaction, and how databases with transactions are opened.

use std::ffi::CStr;
use std::sync::Arc;

use drumlin::{
    Error, ErrorKind, Isolation, PinnedSlice, Prepared, Result, WriteBatch, WriteOptions,
};
use drumlin_base::ValueKind;

use super::{OptimisticDatabase, Running, TransactionDatabase, no_savepoint};
use crate::batch::Batch;
use crate::database::Database;
use crate::family::Family;
use crate::fields::{OptimistictransactiondbOptions, TransactiondbOptions};
use crate::indexed_batch::{Indexed, Overlaid, Writes};
use crate::iterator::Walk;
use crate::opening::{Mode, Opening};
use crate::options::OpenOptions;
use crate::reads::Pinned;
use crate::small_options::Reads;
use crate::snapshot::SnapshotOf;

pub(crate) fn transactiondb_open(
    options: &OpenOptions,
    transactions: &TransactiondbOptions,
    name: &CStr,
) -> Result<TransactionDatabase> {
    let (db, _) = Opening::new(options, name, Mode::ReadWrite).open(&[])?;
    TransactionDatabase::new(&db, transactions)
}

pub(crate) fn optimistictransactiondb_open(
    options: &OpenOptions,
    name: &CStr,
) -> Result<OptimisticDatabase> {
    let (db, _) = Opening::new(options, name, Mode::ReadWrite).open(&[])?;
    OptimisticDatabase::new(&db)
}

/// How it is validated does not change what is refused.
pub(crate) fn optimistictransactiondb_open_with_otxn_db_options(
    options: &OpenOptions,
    _transactions: Option<&OptimistictransactiondbOptions>,
    name: &CStr,
) -> Result<OptimisticDatabase> {
    optimistictransactiondb_open(options, name)
}

/// Its writes lock what they write, as those of the database do.
pub(crate) fn transactiondb_get_base_db(db: &TransactionDatabase) -> Database {
    db.base()
}

/// Its writes are validated against those of transactions, too.
pub(crate) fn optimistictransactiondb_get_base_db(db: &OptimisticDatabase) -> Database {
    db.base()
}

pub(crate) fn transaction_set_name(running: &mut Running, name: &[u8]) -> Result<()> {
    if running.options.isolation == Some(Isolation::Snapshot) {
        let message = "Optimistic transactions cannot be named.";
        return Err(Error::invalid_argument(message));
    }
    if name.is_empty() || name.len() > 512 {
        let message = "Transaction name length must be between 1 and 512 chars.";
        return Err(Error::invalid_argument(message));
    }
    if !running.name.is_empty() {
        return Err(Error::invalid_argument(
            "Transaction has already been named.",
        ));
    }
    let prepared = running.locks.prepared_transactions();
    if prepared.iter().any(|other| other == name) {
        return Err(Error::invalid_argument("Transaction name must be unique."));
    }
    running.name = name.to_vec();
    Ok(())
}

/// What fails is rolled back.
pub(crate) fn transaction_prepare(running: &mut Running) -> Result<()> {
    if running.options.isolation == Some(Isolation::Snapshot) {
        let message = "Two phase commit not supported for optimistic transactions.";
        return Err(Error::invalid_argument(message));
    }
    if running.name.is_empty() {
        let message = "Cannot prepare a transaction that has not been named.";
        return Err(Error::invalid_argument(message));
    }
    if running.prepared.is_some() {
        return Err(Error::invalid_argument(
            "Transaction has already been prepared.",
        ));
    }
    running.running()?;
    running.check()?;
    if let Some(transaction) = running.transaction.take() {
        let prepared = transaction.prepare_with(&running.name, &running.write_options)?;
        running.prepared = Some(prepared);
    }
    Ok(())
}

pub(crate) fn transaction_get_name(running: &mut Running) -> Option<Vec<u8>> {
    Some(running.name.clone())
}

/// What fails is rolled back, and may be rolled back again; what is prepared stays so.
pub(crate) fn transaction_commit(running: &mut Running) -> Result<()> {
    if running.prepared.is_some() {
        return end_prepared(running, |prepared, options| {
            prepared.commit_with(options).map(drop)
        });
    }
    running.running()?;
    running.check()?;
    if running.asks_for_prepare {
        return Err(Error::invalid_argument("Txn not prepared"));
    }
    let options = running.write_options;
    let Some(transaction) = running.transaction.take() else {
        return Ok(());
    };
    transaction.commit_checked(&options).map(drop)
}

/// Ends what is prepared, which may be tried again where that fails.
fn end_prepared(
    running: &mut Running,
    end: impl FnOnce(Prepared<'static>, &WriteOptions) -> Result<()>,
) -> Result<()> {
    let Some(prepared) = running.prepared.take() else {
        return Ok(());
    };
    let ended = end(prepared, &running.write_options);
    if ended.is_err() {
        running.prepared = running.lent_locks().prepared(&running.name);
    }
    ended
}

/// The transaction begins anew, with the same options; one that was prepared is over.
pub(crate) fn transaction_rollback(running: &mut Running) -> Result<()> {
    if running.prepared.is_some() {
        return end_prepared(running, |prepared, options| prepared.rollback_with(options));
    }
    if let Some(transaction) = running.transaction.take() {
        transaction.rollback();
    }
    running.begin();
    Ok(())
}

/// Of one that has ended nothing is added, and that is no error, as in RocksDB.
pub(crate) fn transaction_put_log_data(running: &mut Running, data: &[u8]) {
    let added = running.transaction.as_mut().map(|it| it.put_log_data(data));
    running.note(added.unwrap_or(Ok(())));
}

pub(crate) fn transaction_set_savepoint(running: &mut Running) {
    if let Some(transaction) = &mut running.transaction {
        transaction.set_savepoint();
    }
}

pub(crate) fn transaction_rollback_to_savepoint(running: &mut Running) -> Result<()> {
    running
        .running()?
        .rollback_to_savepoint()
        .map_err(no_savepoint)
}

/// A handle of a copy of the writes; it goes back with `rocksdb_free`, and reads until the transaction is destroyed.
pub(crate) fn transaction_get_writebatch_wi(running: &mut Running) -> Indexed {
    let batch = running.transaction.as_ref().map(|it| it.batch().clone());
    let writes = Box::new(Writes::of(batch.unwrap_or_default()));
    running.lent.push(writes);
    match running.lent.last_mut() {
        Some(writes) => Indexed::lent(writes),
        None => Indexed::default(),
    }
}

/// Makes the records of `batch` writes of the transaction, which locks their keys.
fn rebuild(running: &mut Running, batch: &WriteBatch) -> Result<()> {
    let families = running.db.families();
    for record in batch.iter() {
        let record = record?;
        let Some(family) = families.iter().find(|family| family.id() == record.family) else {
            let message = "Invalid column family specified in write batch";
            return Err(Error::invalid_argument(message));
        };
        let (key, value) = (record.key, record.value);
        let transaction = running.running()?;
        match record.kind {
            ValueKind::Deletion => transaction.delete(family, key)?,
            ValueKind::SingleDeletion => transaction.single_delete(family, key)?,
            ValueKind::RangeDeletion => transaction.delete_range(family, key, value)?,
            ValueKind::Merge => transaction.merge(family, key, value)?,
            _ => transaction.put(family, key, value)?,
        }
    }
    Ok(())
}

pub(crate) fn transaction_rebuild_from_writebatch(
    running: &mut Running,
    batch: &mut Batch,
) -> Result<()> {
    batch.check()?;
    rebuild(running, &batch.batch)
}

pub(crate) fn transaction_rebuild_from_writebatch_wi(
    running: &mut Running,
    batch: &mut Indexed,
) -> Result<()> {
    batch.get().check()?;
    rebuild(running, batch.get().batch())
}

/// It goes back with `rocksdb_free`, and reads as long as the transaction is there.
pub(crate) fn transaction_get_snapshot(running: &mut Running) -> Option<SnapshotOf> {
    running
        .snapshot
        .as_ref()
        .map(|snapshot| SnapshotOf::lent(Arc::downgrade(snapshot)))
}

pub(crate) fn transaction_get_cf(
    running: &mut Running,
    options: &Reads,
    family: Option<&Family>,
    key: &[u8],
) -> Result<Option<PinnedSlice>> {
    running.read(options, family, key)
}

pub(crate) fn transaction_get_pinned_cf(
    running: &mut Running,
    options: &Reads,
    family: Option<&Family>,
    key: &[u8],
) -> Result<Option<Pinned>> {
    Ok(running.read(options, family, key)?.map(Pinned))
}

pub(crate) fn transaction_get_for_update_cf(
    running: &mut Running,
    options: &Reads,
    family: Option<&Family>,
    key: &[u8],
    exclusive: bool,
) -> Result<Option<PinnedSlice>> {
    running.read_for_update(options, family, key, exclusive)
}

pub(crate) fn transaction_get_pinned_for_update_cf(
    running: &mut Running,
    options: &Reads,
    family: Option<&Family>,
    key: &[u8],
    exclusive: bool,
) -> Result<Option<Pinned>> {
    let found = running.read_for_update(options, family, key, exclusive)?;
    Ok(found.map(Pinned))
}

pub(crate) fn transaction_put_cf(
    running: &mut Running,
    family: Option<&Family>,
    key: &[u8],
    value: &[u8],
) -> Result<()> {
    let family = running.family(family);
    running.running()?.put(&family, key, value)
}

pub(crate) fn transaction_merge_cf(
    running: &mut Running,
    family: Option<&Family>,
    key: &[u8],
    operand: &[u8],
) -> Result<()> {
    let family = running.family(family);
    let merge = running.running()?.merge(&family, key, operand);
    merge.map_err(|error| match error.kind() {
        ErrorKind::InvalidArgument => crate::batch::as_of_a_write(error),
        _ => error,
    })
}

pub(crate) fn transaction_delete_cf(
    running: &mut Running,
    family: Option<&Family>,
    key: &[u8],
) -> Result<()> {
    let family = running.family(family);
    running.running()?.delete(&family, key)
}

/// A walk over the transaction's writes as they are now, and what is stored as the options say.
pub(crate) fn transaction_create_iterator_cf(
    running: &mut Running,
    options: &Reads,
    family: Option<&Family>,
) -> Walk {
    let family = running.family(family);
    let db = running.db.clone();
    let mut begin = || {
        let options = options.to_engine_with_bounds()?;
        Overlaid::new(running.running()?.batch(), &db, &family, options)
    };
    begin().map_or_else(Walk::Refused, Walk::Overlaid)
}
