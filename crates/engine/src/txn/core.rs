//! What all transactions of one database share: the store, the locks, how long one waits for them, and which of them
//! are prepared.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicU64, Ordering};
use drumlin_base::{Error, ErrorKind, Result, ValueKind};

use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::txn::lock::Owner;
use crate::txn::lock_key::LockKey;
use crate::txn::lock_table::LockTable;
use crate::txn::range_locks::RangeId;
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
    /// How long a transaction waits before it looks whether it is in a circle of those that wait. Whoever closes a circle
    /// waits last, so nothing is gained by waiting: none is the default.
    pub deadlock_delay: Duration,
    /// What transactions are kept from that do not say.
    pub isolation: Isolation,
}

impl Default for Locking {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(1),
            deadlock_delay: Duration::ZERO,
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
    /// By name; `None` where somebody is preparing or ending it.
    prepared: Mutex<BTreeMap<Vec<u8>, Option<Standing>>>,
}

/// A lock that a transaction holds.
#[derive(Debug)]
pub(crate) enum Held {
    Key(LockKey),
    Range(RangeId),
}

/// A transaction that is prepared.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) owner: Owner,
    pub(crate) locks: Vec<Held>,
    pub(crate) writes: Arc<WriteBatch>,
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
            prepared: Mutex::default(),
        }
    }

    /// The time that deadlines are told in.
    pub(crate) fn now(&self) -> Duration {
        self.db.engine.store.id.env.clock.monotonic()
    }

    /// A number that no transaction had before.
    pub(crate) fn next_owner(&self) -> Owner {
        // Relaxed: nothing is handed over with it.
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets go of `locks`, the last one first.
    pub(crate) fn unlock(&self, owner: Owner, locks: impl DoubleEndedIterator<Item = Held>) {
        for lock in locks.rev() {
            match lock {
                Held::Key(key) => self.locks.unlock(owner, &key),
                Held::Range(id) => self.locks.unlock_range(id),
            }
        }
    }

    /// Takes the name of a transaction that is about to be prepared.
    ///
    /// # Errors
    /// `InvalidArgument` where another one has it.
    pub(crate) fn take_name(&self, name: &[u8]) -> Result<()> {
        match self.prepared.lock().entry(name.to_vec()) {
            Entry::Vacant(free) => {
                free.insert(None);
                Ok(())
            }
            Entry::Occupied(_) => {
                let message = format!(
                    "another transaction is prepared as \"{}\"",
                    name.escape_ascii()
                );
                Err(Error::invalid_argument(message))
            }
        }
    }

    /// Gives a name back: nothing is prepared under it.
    pub(crate) fn free_name(&self, name: &[u8]) {
        self.prepared.lock().remove(name);
    }

    /// Keeps a prepared transaction under the name that was taken for it.
    pub(crate) fn stand(&self, name: &[u8], standing: Standing) {
        self.prepared.lock().insert(name.to_vec(), Some(standing));
    }

    /// The prepared transaction `name`, for the one that ends it.
    ///
    /// # Errors
    /// `NotFound`; `Busy` where somebody else is ending it.
    pub(crate) fn take_standing(&self, name: &[u8]) -> Result<Standing> {
        match self.prepared.lock().get_mut(name).map(Option::take) {
            Some(Some(standing)) => Ok(standing),
            Some(None) => Err(Error::new(
                ErrorKind::Busy,
                "another thread is preparing or ending the transaction",
            )),
            None => {
                let message = format!("no transaction is prepared as \"{}\"", name.escape_ascii());
                Err(Error::new(ErrorKind::NotFound, message))
            }
        }
    }

    /// Whether one is prepared as `name` that nobody is ending.
    pub(crate) fn is_standing(&self, name: &[u8]) -> bool {
        matches!(self.prepared.lock().get(name), Some(Some(_)))
    }

    /// The names of those that are prepared and that nobody is ending.
    pub(crate) fn standing_names(&self) -> Vec<Vec<u8>> {
        let prepared = self.prepared.lock();
        let standing = prepared.iter().filter(|(_, standing)| standing.is_some());
        standing.map(|(name, _)| name.clone()).collect()
    }

    /// What `batch` writes to, in the order of its locks. Whoever locks keys and ranges in the order of their beginnings
    /// never waits for one that does the same and waits for it.
    ///
    /// # Errors
    /// `InvalidArgument` where a family is missing.
    pub(crate) fn written<'a>(&self, batch: &'a WriteBatch) -> Result<Vec<Written<'a>>> {
        self.written_where(batch, |family| {
            let message = format!("there is no column family {family}");
            Err(Error::invalid_argument(message))
        })
    }

    /// As [`Core::written`], without what is written to families that were dropped.
    pub(crate) fn written_where_present<'a>(
        &self,
        batch: &'a WriteBatch,
    ) -> Result<Vec<Written<'a>>> {
        self.written_where(batch, |_| Ok(()))
    }

    fn written_where<'a>(
        &self,
        batch: &'a WriteBatch,
        missing: impl Fn(u32) -> Result<()>,
    ) -> Result<Vec<Written<'a>>> {
        let families = self.db.engine.store.families.load();
        let mut written = Vec::with_capacity(batch.count() as usize);
        for record in batch.iter() {
            let record = record?;
            let Some(family) = families.get(&record.family).cloned() else {
                missing(record.family)?;
                continue;
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
