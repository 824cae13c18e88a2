//! What all transactions of one database share: the store, the locks, and how long one waits for them.

use std::time::Duration;

use drumlin_base::sync::atomic::{AtomicU64, Ordering};
use drumlin_base::{Error, Result, ValueKind};

use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::txn::lock::Owner;
use crate::txn::lock_table::LockTable;
use crate::write::batch::WriteBatch;

/// What a transaction is kept from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Others wait, or are refused, from the moment it writes a key or reads it for an update. Write skew is possible
    /// where a decision rests on a key that was only read.
    #[default]
    Locks,
    /// Optimistic: it locks nothing before it commits, and is refused then (`Busy`) where a key that it wrote, or read
    /// for an update, was written to since it began. Write skew is possible, as with `Locks`.
    Snapshot,
    /// Optimistic, and refused as well where anything changed that it read, keys and the stretches it walked over, those
    /// that appeared there included. Transactions of this kind end as if each had run alone, in the order they
    /// committed; one that wrote nothing, at the moment it began.
    Serializable,
}

/// How transactions wait for locks, unless one says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Locking {
    /// The longest wait for one lock.
    pub timeout: Duration,
    /// How long a transaction waits before it looks whether it is in a circle of those that wait.
    pub deadlock_delay: Duration,
    /// What transactions are kept from that do not say.
    pub isolation: Isolation,
}

impl Default for Locking {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(1),
            deadlock_delay: Duration::from_micros(500),
            isolation: Isolation::default(),
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

    /// What `batch` writes to, in the order of its locks. Whoever locks keys and ranges in the order of their beginnings
    /// never waits for one that does the same and waits for it.
    pub(crate) fn written<'a>(&self, batch: &'a WriteBatch) -> Result<Vec<Written<'a>>> {
        let families = self.db.engine.store.families.load();
        let mut written = Vec::with_capacity(batch.count() as usize);
        for record in batch.iter() {
            let record = record?;
            let Some(family) = families.get(&record.family).cloned() else {
                let message = format!("there is no column family {}", record.family);
                return Err(Error::invalid_argument(message));
            };
            written.push(Written {
                family: ColumnFamily(family),
                key: record.key,
                end: (record.kind == ValueKind::RangeDeletion).then_some(record.value),
            });
        }
        written.sort_unstable_by(|a, b| {
            let same = a.family.id().cmp(&b.family.id());
            same.then_with(|| a.family.order().compare(a.key, b.key))
        });
        Ok(written)
    }
}

/// A key that a batch writes to, or, up to its end, a range that it deletes.
pub(crate) struct Written<'a> {
    pub(crate) family: ColumnFamily,
    pub(crate) key: &'a [u8],
    pub(crate) end: Option<&'a [u8]>,
}
