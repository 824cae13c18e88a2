//! What all transactions of one database share: the store, the locks, and how long one waits for them.

use std::time::Duration;

use drumlin_base::sync::atomic::{AtomicU64, Ordering};

use crate::db::handle::Db;
use crate::txn::lock::Owner;
use crate::txn::lock_table::LockTable;

/// How transactions wait for locks, unless one says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Locking {
    /// The longest wait for one lock.
    pub timeout: Duration,
    /// How long a transaction waits before it looks whether it is in a circle of those that wait.
    pub deadlock_delay: Duration,
}

impl Default for Locking {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(1),
            deadlock_delay: Duration::from_micros(500),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) db: Db,
    pub(crate) locks: LockTable,
    pub(crate) locking: Locking,
    next_owner: AtomicU64,
}

impl Core {
    /// The transactions of `db`, which nobody else writes to.
    pub(crate) fn new(db: Db, locking: Locking) -> Self {
        let clock = db.engine.store.id.env.clock.clone();
        Self {
            db,
            locks: LockTable::new(clock),
            locking,
            next_owner: AtomicU64::new(1),
        }
    }

    /// A number that no transaction had before.
    pub(crate) fn next_owner(&self) -> Owner {
        // Relaxed: nothing is handed over with it.
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }
}
