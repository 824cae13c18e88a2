//! `rocksdb_transactiondb_t`, which no function makes yet.

use std::ops::Deref;

use crate::database::Database;

/// `rocksdb_transactiondb_t`.
#[derive(Debug)]
pub(crate) struct TransactionDatabase(Database);

impl Deref for TransactionDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

/// `rocksdb_optimistictransactiondb_t`.
#[derive(Debug)]
pub(crate) struct OptimisticDatabase(Database);

impl Deref for OptimisticDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

/// `rocksdb_transaction_t`.
#[derive(Debug)]
pub(crate) struct Running;

pub(crate) mod calls {}
