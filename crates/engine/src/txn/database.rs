//! A database that is written by transactions.

use std::path::Path;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, PinnedSlice, Result, SeqNo};

use crate::db::handle::Db;
use crate::db::view::View;
use crate::family::column_family::{ColumnFamily, DEFAULT_FAMILY};
use crate::family::snapshot::Snapshot;
use crate::options::settings::{FamilyOptions, Options, ReadOptions, WriteOptions};
use crate::read::DbIterator;
use crate::txn::core::{Core, Isolation, Locking};
use crate::txn::prepared::Prepared;
use crate::txn::transaction::{Transaction, TransactionOptions};
use crate::txn::waits_for::DeadlockStep;
use crate::write::batch::WriteBatch;

/// How often [`TransactionDb::run`] tries.
const RUNS_MAX: u32 = 16;

/// The pause after the first try; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_micros(50);

/// A database whose writers lock what they write: there is no way to write past a transaction that holds a key.
///
/// ```
/// # fn main() -> drumlin::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("drumlin-txn-doc-{}", std::process::id()));
/// use drumlin::{Locking, Options, TransactionDb};
///
/// let db = TransactionDb::open(&dir, Options::default(), Locking::default())?;
/// let accounts = db.default_family();
/// db.put(accounts, b"alice", b"5")?;
///
/// let mut tx = db.begin();
/// assert_eq!(tx.get_for_update(accounts, b"alice")?.as_deref(), Some(&b"5"[..]));
/// tx.put(accounts, b"alice", b"3")?;
/// tx.put(accounts, b"bob", b"2")?;
/// assert_eq!(db.get(accounts, b"bob")?.as_deref(), None); // Others do not see it yet.
/// tx.commit()?;
///
/// // Again when it meets another transaction:
/// db.run(|tx| {
///     tx.delete(accounts, b"alice")?;
///     tx.put(accounts, b"bob", b"5")
/// })?;
/// assert_eq!(db.get(accounts, b"bob")?.as_deref(), Some(&b"5"[..]));
/// db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TransactionDb {
    core: Core,
}

impl TransactionDb {
    /// Opens the database in `dir` with its default family only.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(dir: impl AsRef<Path>, options: Options, locking: Locking) -> Result<Self> {
        let family = options.family.clone();
        Self::open_families(dir, options, &[(DEFAULT_FAMILY, family)], locking)
    }

    /// Opens the database in `dir` with `families`, which must name every family it has.
    ///
    /// # Errors
    /// As [`Db::open_families`].
    pub fn open_families(
        dir: impl AsRef<Path>,
        options: Options,
        families: &[(&str, FamilyOptions)],
        locking: Locking,
    ) -> Result<Self> {
        let db = Db::open_families(dir, options, families)?;
        Self::over(db, locking)
    }

    /// Transactions over a database that is open, with those that are prepared in it. Whoever writes to `db` itself, past the
    /// transactions, meets none of their locks.
    ///
    /// # Errors
    /// `NotSupported` where something prepared writes to a family with a key order of the user's.
    pub fn over(db: Db, locking: Locking) -> Result<Self> {
        let core = Core::new(db, locking);
        for (name, writes) in core.db.engine.store.prepared.all() {
            let transaction = Transaction::new(&core, plain());
            let taken = transaction.take_up(&name, writes);
            taken.map_err(|error| {
                let name = name.escape_ascii();
                error.context(format!(
                    "the prepared transaction \"{name}\" cannot be taken up"
                ))
            })?;
        }
        Ok(Self { core })
    }

    /// The transaction that was prepared as `name`, to be committed or rolled back; `None` where there is none, or
    /// another thread is ending it.
    pub fn prepared(&self, name: impl AsRef<[u8]>) -> Option<Prepared<'_>> {
        let name = name.as_ref();
        let is_there = self.core.is_standing(name);
        is_there.then(|| Prepared::new(&self.core, name))
    }

    /// The names of the transactions that are prepared, in order: those of this process, and those that were when the
    /// database was opened.
    pub fn prepared_transactions(&self) -> Vec<Vec<u8>> {
        self.core.standing_names()
    }

    /// Drops a family with all it has, once nobody holds a lock in it.
    ///
    /// # Errors
    /// As [`Db::drop_family`]; `TimedOut` where a transaction, or one that is prepared, holds locks in it for too long.
    pub fn drop_family(&self, family: &ColumnFamily) -> Result<()> {
        if !family.order().equality_is_bytewise() {
            return self.core.db.drop_family(family); // Nobody has locks in it.
        }
        let mut transaction = self.begin_with(plain());
        transaction.lock_range(family, None, None)?;
        self.core.db.drop_family(family)
    }

    /// Begins a transaction that sees the present moment.
    pub fn begin(&self) -> Transaction<'_> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    pub fn begin_with(&self, options: TransactionOptions) -> Transaction<'_> {
        Transaction::new(&self.core, options)
    }

    /// Does `body` in a transaction and commits it; all over again, up to 16 times with growing pauses, where it meets
    /// another one: after `Busy`, `Deadlock` or `TimedOut`.
    ///
    /// # Errors
    /// The body's or the commit's; the last one's where it never came through.
    pub fn run<R>(&self, mut body: impl FnMut(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..RUNS_MAX {
            match self.run_once(&mut body) {
                Err(error) if may_pass(&error) => {}
                outcome => return outcome,
            }
            self.core.db.engine.store.id.env.clock.sleep(pause);
            pause *= 2;
        }
        self.run_once(&mut body)
    }

    fn run_once<R>(&self, body: &mut impl FnMut(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        let mut transaction = self.begin();
        let result = body(&mut transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Sets `key` to `value`, in a transaction of one write.
    ///
    /// # Errors
    /// As [`TransactionDb::write`].
    pub fn put(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let mut transaction = self.begin_with(plain());
        transaction.put(family, key, value)?;
        transaction.commit().map(drop)
    }

    /// Removes `key`, in a transaction of one write.
    ///
    /// # Errors
    /// As [`TransactionDb::write`].
    pub fn delete(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        let mut transaction = self.begin_with(plain());
        transaction.delete(family, key)?;
        transaction.commit().map(drop)
    }

    /// Removes every key from `begin` up to, not including, `end`, in a transaction of one write.
    ///
    /// # Errors
    /// As [`TransactionDb::write`].
    pub fn delete_range(
        &self,
        family: &ColumnFamily,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.core.db.engine.store.check_own(&family.0)?;
        let mut batch = WriteBatch::new();
        batch.delete_range_cf(family.id(), begin.as_ref(), end.as_ref())?;
        self.write(batch, &WriteOptions::default()).map(drop)
    }

    /// Writes `batch` as a transaction of its own, which locks its keys and ranges in their order: two such never wait
    /// for each other. Returns its last sequence number.
    ///
    /// # Errors
    /// As [`Db::write`], [`Transaction::put`] and [`Transaction::delete_range`].
    pub fn write(&self, batch: WriteBatch, options: &WriteOptions) -> Result<SeqNo> {
        let mut transaction = self.begin_with(plain());
        transaction.lock_written(&batch)?;
        transaction.adopt(batch);
        transaction.commit_with(options)
    }

    /// Writes `batch` without a lock: for loading, while no transaction is under way. One that is would not be kept
    /// from keys that this writes, though it sees by its snapshot what came before it locked them.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write_unlocked(&self, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        self.core.db.write(batch, options)
    }

    /// The last five deadlocks, oldest first: each the transactions that waited for each other, in a circle.
    pub fn last_deadlocks(&self) -> Vec<Vec<DeadlockStep>> {
        self.core.locks.last_deadlocks()
    }

    /// The committed value of `key`.
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub fn get(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        self.core.db.get_cf(family, key, &ReadOptions::default())
    }

    /// A cursor over what is committed. See [`Db::iter_cf`].
    pub fn iter(&self, family: &ColumnFamily, options: ReadOptions) -> DbIterator {
        self.core.db.iter_cf(family, options)
    }

    /// The present moment of all families. See [`Db::view`].
    pub fn view(&self) -> View {
        self.core.db.view()
    }

    /// Pins the present moment for reads. See [`Db::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        self.core.db.snapshot()
    }

    /// The default family.
    pub fn default_family(&self) -> &ColumnFamily {
        self.core.db.default_family()
    }

    /// The family called `name`.
    pub fn column_family(&self, name: &str) -> Option<ColumnFamily> {
        self.core.db.column_family(name)
    }

    /// Creates a family.
    ///
    /// # Errors
    /// As [`Db::create_family`].
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<ColumnFamily> {
        self.core.db.create_family(name, options)
    }

    /// Writes all memtables to tables. See [`Db::flush`].
    ///
    /// # Errors
    /// As [`Db::flush`].
    pub fn flush(&self) -> Result<()> {
        self.core.db.flush()
    }

    /// Closes the database, which no transaction outlives.
    ///
    /// # Errors
    /// As [`Db::close`].
    pub fn close(self) -> Result<()> {
        self.core.db.close()
    }
}

/// What locks as it goes, and reads the present.
fn plain() -> TransactionOptions {
    TransactionOptions {
        snapshot: false,
        isolation: Some(Isolation::Locks),
        ..TransactionOptions::default()
    }
}

/// Whether another try may come through.
fn may_pass(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Busy | ErrorKind::Deadlock | ErrorKind::TimedOut
    )
}
