//! One transaction: its writes, the locks it holds, and the moment it reads at.
//!
//! Invariant: a key in the batch is locked exclusively until the batch is written or given up; an optimistic transaction
//! locks all of them just before it is written, and what it has to look at again beside them. With a snapshot, no key that
//! is locked had a newer version than the snapshot when its lock was taken; so none has until the commit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, PinnedSlice, Result, SeqNo};

use crate::family::column_family::ColumnFamily;
use crate::family::snapshot::Snapshot;
use crate::options::settings::{ReadOptions, WriteOptions};
use crate::read::KeyInterval;
use crate::txn::core::{Core, Held, Isolation, Standing, Written};
use crate::txn::expiry::Deadline;
use crate::txn::indexed_batch::{check_order, check_range, get_over};
use crate::txn::lock::{Claim, Mode, Owner};
use crate::txn::lock_key::LockKey;
use crate::txn::lock_table::Patience;
use crate::txn::overlay::{Course, OverlayIterator};
use crate::txn::own_writes::{Mark, OwnWrites};
use crate::txn::prepared::Prepared;
use crate::txn::reads::{End, Reads, Stretch};
use crate::txn::wanted::KeysBetween;
use crate::write::batch::WriteBatch;
use crate::write::two_phase::{Phase, TwoPhase};

/// The longest name of a prepared transaction, in bytes: RocksDB's.
pub const NAME_BYTES_MAX: usize = 512;

/// How one transaction goes about it.
#[derive(Clone, Copy, Debug)]
pub struct TransactionOptions {
    /// Whether it reads as of the moment it began, and is refused keys that were written since (`Busy`). Without, each
    /// read sees what is committed by then, and only locks keep others away.
    pub snapshot: bool,
    /// The longest wait for one lock; the database's own where it is open.
    pub lock_timeout: Option<Duration>,
    /// How long it may take: after that, others may take its locks, and its commit ends with `Expired`. `None` is for ever.
    /// What is prepared does not expire.
    pub expiration: Option<Duration>,
    /// What it is kept from; the database's own where it is open. An optimistic one has a snapshot in any case.
    pub isolation: Option<Isolation>,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            snapshot: true,
            lock_timeout: None,
            expiration: None,
            isolation: None,
        }
    }
}

/// A point that a transaction went past.
#[derive(Debug)]
struct Savepoint {
    mark: Mark,
    locks: usize,
}

/// Writes that are made together or not at all, and reads that see them before.
///
/// Each key it writes, or reads for an update, is locked until the end: others wait for it, or get `TimedOut`; an
/// optimistic one ([`Isolation`]) locks nothing before it commits. Dropping it rolls it back. One thread at a time. See [`crate::TransactionDb`].
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction<'db> {
    core: &'db Core,
    owner: Owner,
    snapshot: Option<Snapshot>,
    patience: Patience,
    deadline: Option<Arc<Deadline>>,
    writes: OwnWrites,
    /// In the order they were taken.
    locks: Vec<Held>,
    savepoints: Vec<Savepoint>,
    isolation: Isolation,
    /// Of an optimistic one: what it has to look at again.
    reads: Reads,
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("number", &self.owner)
            .field("writes", self.writes.batch())
            .field("locks", &self.locks.len())
            .finish_non_exhaustive()
    }
}

impl<'db> Transaction<'db> {
    /// A transaction that has done nothing.
    pub(crate) fn new(core: &'db Core, options: TransactionOptions) -> Self {
        let isolation = options.isolation.unwrap_or(core.locking.isolation);
        let snapshot = options.snapshot || isolation != Isolation::Locks;
        let owner = core.next_owner();
        let deadline = options.expiration.map(|longest| {
            let at = core.now().saturating_add(longest);
            core.locks.deadlines.add(owner, at)
        });
        Self {
            core,
            owner,
            deadline,
            snapshot: snapshot.then(|| core.db.snapshot()),
            patience: Patience {
                timeout: options.lock_timeout.unwrap_or(core.locking.timeout),
                deadlock_delay: core.locking.deadlock_delay,
            },
            writes: OwnWrites::default(),
            locks: Vec::new(),
            savepoints: Vec::new(),
            isolation,
            reads: Reads::default(),
        }
    }

    /// Its number, as the texts of deadlocks have it.
    pub fn number(&self) -> u64 {
        self.owner
    }

    /// The moment it reads at, if it has one.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// The value of `key`: its own, else the store's at its snapshot. Takes no lock.
    ///
    /// # Errors
    /// As [`crate::Db::get_cf`]; the merge operator's.
    pub fn get(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<PinnedSlice>> {
        if self.isolation == Isolation::Serializable {
            self.check_family(family)?;
            self.reads.of_family(family).note_key(key.as_ref());
        }
        self.read(family, key.as_ref())
    }

    /// The value of `key`: its own, else the store's as `options` say, whatever moment the transaction has. Takes no lock.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_as(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        let key = key.as_ref();
        if self.isolation == Isolation::Serializable {
            self.check_family(family)?;
            self.reads.of_family(family).note_key(key);
        }
        match drumlin_base::bug!("transaction-reads-options-lost") {
            true => self.read(family, key),
            false => self.read_as(family, key, options),
        }
    }

    /// Its writes so far.
    pub fn batch(&self) -> &WriteBatch {
        self.writes.batch()
    }

    /// As [`Transaction::get`], and keeps others from writing or locking `key` until the end.
    ///
    /// # Errors
    /// As [`Transaction::put`], [`Transaction::get`].
    pub fn get_for_update(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<PinnedSlice>> {
        self.lock_key(family, key.as_ref())?;
        self.read(family, key.as_ref())
    }

    /// As [`Transaction::get`], and keeps others from writing `key` until the end; they may do the same.
    ///
    /// # Errors
    /// As [`Transaction::put`], [`Transaction::get`].
    pub fn get_for_share(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<PinnedSlice>> {
        self.share_key(family, key.as_ref())?;
        self.read(family, key.as_ref())
    }

    /// Keeps others from writing or locking `key` until the end, be it there or not, and reads nothing.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn lock_key(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.lock_read(family, key.as_ref(), Mode::Exclusive)
    }

    /// As [`Transaction::lock_key`], beside others that share `key`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn share_key(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.lock_read(family, key.as_ref(), Mode::Shared)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// `TimedOut` where another transaction holds the key for too long; `Deadlock` where waiting for it would be for
    /// ever; `Busy` where it was written since the snapshot; `TooLarge`; `InvalidArgument` for a family of another
    /// store; `NotSupported` for one with a key order of the user's. The transaction is as it was before, and goes on.
    pub fn put(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.lock(family, key.as_ref(), Mode::Exclusive)?;
        let batch = self.writes.batch_mut();
        batch.put_cf(family.id(), key.as_ref(), value.as_ref())
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.lock(family, key.as_ref(), Mode::Exclusive)?;
        self.writes.batch_mut().delete_cf(family.id(), key.as_ref())
    }

    /// Removes `key`, which was put exactly once since it was last removed.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn single_delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.lock(family, key.as_ref(), Mode::Exclusive)?;
        let batch = self.writes.batch_mut();
        batch.single_delete_cf(family.id(), key.as_ref())
    }

    /// Adds `operand` to `key` for the family's merge operator.
    ///
    /// # Errors
    /// As [`Transaction::put`]; `InvalidArgument` when the family has no merge operator.
    pub fn merge(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        if family.0.options.merge_operator.is_none() {
            let message = format!("column family {:?} has no merge operator", family.name());
            return Err(Error::invalid_argument(message));
        }
        self.lock(family, key.as_ref(), Mode::Exclusive)?;
        let batch = self.writes.batch_mut();
        batch.merge_cf(family.id(), key.as_ref(), operand.as_ref())
    }

    /// Adds bytes that go to the WAL with the writes, and nowhere else ([`WriteBatch::put_log_data`]). Locks nothing.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        self.writes.batch_mut().put_log_data(data.as_ref())
    }

    /// Removes every key from `begin` up to, not including, `end`, and keeps others from writing or locking any.
    ///
    /// # Errors
    /// As [`Transaction::lock_range`].
    pub fn delete_range(
        &mut self,
        family: &ColumnFamily,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (begin, end) = (begin.as_ref(), end.as_ref());
        self.lock_range(family, Some(begin), Some(end))?;
        let batch = self.writes.batch_mut();
        batch.delete_range_cf(family.id(), begin, end)
    }

    /// Keeps others from writing or locking any key from `begin` up to, not including, `end`, be it there or not; `None`
    /// is unbounded. So no key appears in the range that the transaction did not see: there are no phantoms.
    ///
    /// # Errors
    /// As [`Transaction::put`], of any key in the range; `InvalidArgument` where `end` comes before `begin`.
    pub fn lock_range(
        &mut self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        self.lock_span(family, KeyInterval { begin, end }, Mode::Exclusive)
    }

    /// As [`Transaction::lock_range`], beside others that share keys of the range.
    ///
    /// # Errors
    /// As [`Transaction::lock_range`].
    pub fn share_range(
        &mut self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        self.lock_span(family, KeyInterval { begin, end }, Mode::Shared)
    }

    /// Notes where the transaction stands.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(Savepoint {
            mark: self.writes.mark(),
            locks: self.locks.len(),
        });
    }

    /// Undoes all writes since the last savepoint, lets go of the locks taken since, and forgets the savepoint. A
    /// shared lock that became exclusive meanwhile stays so.
    ///
    /// # Errors
    /// `NotFound` without one.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let Savepoint { mark, locks } = self.pop()?;
        self.writes.go_back(mark);
        self.unlock_after(locks);
        Ok(())
    }

    /// Forgets the last savepoint.
    ///
    /// # Errors
    /// `NotFound` without one.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.pop().map(drop)
    }

    fn pop(&mut self) -> Result<Savepoint> {
        let none = || Error::new(ErrorKind::NotFound, "the transaction has no savepoint");
        self.savepoints.pop().ok_or_else(none)
    }

    /// Does `body`, and undoes what it wrote where it fails.
    ///
    /// # Errors
    /// The body's.
    pub fn nested<R>(&mut self, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let depth = self.savepoints.len();
        self.set_savepoint();
        let outcome = body(self);
        // The body may have left savepoints of its own, or have taken this one.
        self.savepoints.truncate(depth + 1);
        if self.savepoints.len() > depth {
            match outcome {
                Ok(_) => self.pop_savepoint()?,
                Err(_) => self.rollback_to_savepoint()?,
            }
        }
        outcome
    }

    /// Writes everything at once. Returns the last sequence number; readers see it all already.
    ///
    /// # Errors
    /// As [`crate::Db::write`]; `Expired` where it took longer than its `expiration`; of an optimistic one those of [`Transaction::put`] and [`Transaction::lock_range`] as well,
    /// and `TooLarge` where it read more than a million keys and stretches. Nothing is written then, and the transaction
    /// is rolled back.
    pub fn commit(self) -> Result<SeqNo> {
        self.commit_with(&WriteOptions::default())
    }

    /// As [`Transaction::commit`], with options of the write.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(mut self, options: &WriteOptions) -> Result<SeqNo> {
        self.end_in_time()?;
        if self.isolation != Isolation::Locks && !self.writes.batch().is_empty() {
            self.lock_all()?;
        }
        self.core.db.commit(self.writes.batch_mut(), options)
    }

    /// As [`Transaction::commit_with`], and refused where a key that was read for an update, or locked, has changed, though
    /// nothing is written: RocksDB's optimistic transactions.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_checked(mut self, options: &WriteOptions) -> Result<SeqNo> {
        if self.isolation != Isolation::Locks && self.writes.batch().is_empty() {
            self.lock_all()?;
        }
        self.commit_with(options)
    }

    /// Writes everything to the log under `name`, to be committed or rolled back later: whatever happens to the process,
    /// and after a power cut where the write was synced ([`Transaction::prepare_with`]). Nobody sees the writes before
    /// they are committed, and its locks are held until then. The WAL files from here on are kept meanwhile, until the
    /// database is opened anew. Where it is done nothing of the transaction can fail but writing itself.
    ///
    /// # Errors
    /// As [`Transaction::commit`], and the transaction is rolled back. `InvalidArgument` for a name that another prepared
    /// transaction has, that is empty or longer than [`NAME_BYTES_MAX`]; `NotSupported` where the directory is kept in
    /// the format of LevelDB or of RocksDB 5.
    pub fn prepare(self, name: impl AsRef<[u8]>) -> Result<Prepared<'db>> {
        self.prepare_with(name, &WriteOptions::default())
    }

    /// As [`Transaction::prepare`], with options of the write.
    ///
    /// # Errors
    /// As [`Transaction::prepare`].
    pub fn prepare_with(
        mut self,
        name: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<Prepared<'db>> {
        let name = name.as_ref();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let len = name.len();
            let message = format!(
                "the name of a prepared transaction has {len} bytes, not 1 to {NAME_BYTES_MAX}"
            );
            return Err(Error::invalid_argument(message));
        }
        self.end_in_time()?;
        if self.isolation != Isolation::Locks && !self.writes.batch().is_empty() {
            self.lock_all()?;
        }
        self.core.take_name(name)?;
        let writes = Arc::new(std::mem::take(&mut self.writes).into_batch());
        let step = TwoPhase::new(name, Phase::Prepare(Arc::clone(&writes)));
        let mut nothing = WriteBatch::new();
        let logged = step.and_then(|step| self.core.db.write_step(step, &mut nothing, options));
        if let Err(error) = logged {
            self.core.free_name(name);
            return Err(error);
        }
        Ok(self.stand(name, writes))
    }

    /// Locks what `writes` of a transaction prepared as `name` write to, as it did before the database was opened.
    pub(crate) fn take_up(mut self, name: &[u8], writes: Arc<WriteBatch>) -> Result<()> {
        if !drumlin_base::bug!("prepared-locks-forgotten") {
            let written = self.core.written_where_present(&writes)?;
            self.lock_each(written)?;
        }
        self.core.take_name(name)?;
        let _stays = self.stand(name, writes);
        Ok(())
    }

    fn stand(mut self, name: &[u8], writes: Arc<WriteBatch>) -> Prepared<'db> {
        let standing = Standing {
            owner: self.owner,
            locks: std::mem::take(&mut self.locks),
            writes,
        };
        self.core.stand(name, standing);
        Prepared::new(self.core, name)
    }

    /// Gives everything up, as dropping it does.
    pub fn rollback(self) {
        drop(self);
    }

    /// Makes the writes of `batch`, whose keys are locked, its own; it had none.
    pub(crate) fn adopt(&mut self, batch: WriteBatch) {
        debug_assert!(self.writes.batch().is_empty());
        self.writes = OwnWrites::of(batch);
    }

    /// Locks what `batch` writes to. See [`Transaction::put`] for the errors.
    pub(crate) fn lock_written(&mut self, batch: &WriteBatch) -> Result<()> {
        let written = self.core.written(batch)?;
        self.lock_each(written)
    }

    fn lock_each(&mut self, written: Vec<Written<'_>>) -> Result<()> {
        for Written { family, key, end } in written {
            match end {
                None => self.lock_now(&family, key, Mode::Exclusive)?,
                Some(end) => {
                    let (begin, end) = (Some(key), Some(end));
                    self.lock_span_now(&family, KeyInterval { begin, end }, Mode::Exclusive)?;
                }
            }
        }
        Ok(())
    }

    /// Locks all that an optimistic transaction wrote and then all that it read, and looks whether any of it is newer than
    /// its snapshot. Nobody can write to it then before this transaction is written.
    ///
    /// Two that wait for each other here are in each other's way in any order: what is written is locked in one order,
    /// so one of them wrote what the other one read.
    fn lock_all(&mut self) -> Result<()> {
        let writes = std::mem::take(&mut self.writes);
        let written = self.lock_written(writes.batch());
        self.writes = writes;
        written?;
        if drumlin_base::bug!("reads-never-looked-at-again") {
            return Ok(());
        }
        for read in std::mem::take(&mut self.reads).into_families()? {
            for key in &read.keys {
                self.lock_now(&read.family, key, Mode::Shared)?;
            }
            for Stretch { begin, end } in &read.stretches {
                let (end, last) = match end {
                    End::At(last) => (Some(&last[..]), Some(last)),
                    End::Bound(bound) => (bound.as_deref(), None),
                };
                let begin = begin.as_deref();
                self.lock_span_now(&read.family, KeyInterval { begin, end }, Mode::Shared)?;
                if let Some(last) = last {
                    self.lock_now(&read.family, last, Mode::Shared)?;
                }
            }
        }
        Ok(())
    }

    /// Locks a key that is read, or notes that it was.
    fn lock_read(&mut self, family: &ColumnFamily, key: &[u8], mode: Mode) -> Result<()> {
        self.lock(family, key, mode)?;
        if self.isolation != Isolation::Locks {
            self.reads.of_family(family).note_key(key);
        }
        Ok(())
    }

    /// Locks a key that is written to, at once or when it commits. See [`Transaction::put`] for the errors.
    fn lock(&mut self, family: &ColumnFamily, key: &[u8], mode: Mode) -> Result<()> {
        match self.isolation {
            Isolation::Locks => self.lock_now(family, key, mode),
            Isolation::Snapshot | Isolation::Serializable => self.check_family(family),
        }
    }

    fn check_family(&self, family: &ColumnFamily) -> Result<()> {
        self.core.db.engine.store.check_own(&family.0)?;
        check_order(family)
    }

    /// From here on its locks cannot be taken, however long it takes.
    fn end_in_time(&self) -> Result<()> {
        match &self.deadline {
            Some(deadline) if !deadline.end(self.core.now()) => Err(expired()),
            _ => Ok(()),
        }
    }

    /// Refuses to go on where its locks were taken.
    fn check_deadline(&self) -> Result<()> {
        match &self.deadline {
            Some(deadline) if deadline.is_taken() => Err(expired()),
            _ => Ok(()),
        }
    }

    fn lock_now(&mut self, family: &ColumnFamily, key: &[u8], mode: Mode) -> Result<()> {
        self.check_family(family)?;
        let name = LockKey::new(family.id(), key);
        let owner = self.owner;
        let locks = &self.core.locks;
        if !locks.lock(Claim { owner, mode }, &name, self.patience)? {
            return Ok(()); // It is as it was when the lock was taken.
        }
        // After the lock was granted, for it may have been waited for.
        let valid = self
            .check_deadline()
            .and_then(|()| self.validate(family, key));
        match valid {
            Ok(()) => self.locks.push(Held::Key(name)),
            Err(_) => locks.unlock(owner, &name),
        }
        valid
    }

    /// Locks the keys of `range`, those that are not there included, at once or when it commits.
    fn lock_span(
        &mut self,
        family: &ColumnFamily,
        range: KeyInterval<'_>,
        mode: Mode,
    ) -> Result<()> {
        self.check_family(family)?;
        if let (Some(begin), Some(end)) = (range.begin, range.end) {
            check_range(family, begin, end)?;
        }
        if self.isolation == Isolation::Locks {
            return self.lock_span_now(family, range, mode);
        }
        let stretch = Stretch {
            begin: range.begin.map(<[u8]>::to_vec),
            end: End::Bound(range.end.map(<[u8]>::to_vec)),
        };
        self.reads.of_family(family).stretches.push(stretch);
        Ok(())
    }

    fn lock_span_now(
        &mut self,
        family: &ColumnFamily,
        range: KeyInterval<'_>,
        mode: Mode,
    ) -> Result<()> {
        self.check_family(family)?;
        if let (Some(begin), Some(end)) = (range.begin, range.end)
            && family.order().compare(begin, end).is_ge()
        {
            return Ok(()); // There is no key in it.
        }
        let span = KeysBetween::new(family.id(), family.order(), range);
        let owner = self.owner;
        let locks = &self.core.locks;
        let Some(id) = locks.lock_range(Claim { owner, mode }, span, self.patience)? else {
            return Ok(()); // It is as it was when the lock was taken.
        };
        let valid = self
            .check_deadline()
            .and_then(|()| self.validate_range(family, range));
        match valid {
            Ok(()) => self.locks.push(Held::Range(id)),
            Err(_) => locks.unlock_range(id),
        }
        valid
    }

    /// Refuses a range that was written to after the snapshot.
    fn validate_range(&self, family: &ColumnFamily, range: KeyInterval<'_>) -> Result<()> {
        let Some(snapshot) = &self.snapshot else {
            return Ok(());
        };
        let db = &self.core.db;
        match db.newer_in_range(family, range, snapshot.seqno())? {
            Some(key) if !drumlin_base::bug!("range-unvalidated") => Err(conflict(family, &key)),
            _ => Ok(()),
        }
    }

    /// Refuses a key that was written after the snapshot.
    fn validate(&self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        let Some(snapshot) = &self.snapshot else {
            return Ok(());
        };
        let options = ReadOptions::default();
        let newest = self.core.db.newest_seqno_cf(family, key, &options)?;
        let is_newer = newest.is_some_and(|newest| newest > snapshot.seqno());
        match is_newer && !drumlin_base::bug!("snapshot-unvalidated") {
            true => Err(conflict(family, key)),
            false => Ok(()),
        }
    }

    fn read(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<Option<PinnedSlice>> {
        let options = ReadOptions {
            snapshot: self.snapshot.clone(),
            ..ReadOptions::default()
        };
        self.read_as(family, key, &options)
    }

    fn read_as(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        let db = &self.core.db;
        db.engine.store.check_own(&family.0)?;
        let stored = || db.get_cf(family, key, options);
        // Nothing was written to a family with an order of the user's.
        if self.writes.batch().is_empty() || !family.order().equality_is_bytewise() {
            return stored();
        }
        let merge = family.0.options.merge_operator.as_deref();
        let change = self.writes.of_family(family)?.change(key, merge)?;
        get_over(change, family, key, stored)
    }

    /// A walk over `family` as the transaction sees it: its own writes over what the store has at its snapshot, or now
    /// where it has none. Takes no lock. Nothing is written while it lives.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another store, and where `options` have a snapshot though the transaction has its
    /// own; `NotSupported` for a family with a key order of the user's. What a walk meets is its status.
    pub fn iter(
        &mut self,
        family: &ColumnFamily,
        mut options: ReadOptions,
    ) -> Result<OverlayIterator<'_>> {
        self.check_family(family)?;
        let db = &self.core.db;
        if let Some(snapshot) = &self.snapshot
            && options.snapshot.replace(snapshot.clone()).is_some()
        {
            let message = "a transaction is walked as of its own snapshot, not of another";
            return Err(Error::invalid_argument(message));
        }
        let course = Course::new(family, &mut options);
        let stored = db.iter_cf(family, options);
        let writes = self.writes.of_family(family)?;
        let walked = match self.isolation {
            Isolation::Serializable => Some(&mut self.reads.of_family(family).stretches),
            Isolation::Locks | Isolation::Snapshot => None,
        };
        Ok(OverlayIterator::new(stored, writes, course).noting(walked))
    }

    /// As [`Transaction::iter`], after the range between the bounds of `options` was locked as
    /// [`Transaction::lock_range`] does.
    ///
    /// # Errors
    /// As [`Transaction::iter`] and [`Transaction::lock_range`].
    pub fn iter_for_update(
        &mut self,
        family: &ColumnFamily,
        options: ReadOptions,
    ) -> Result<OverlayIterator<'_>> {
        let (begin, end) = (
            options.lower_bound.as_deref(),
            options.upper_bound.as_deref(),
        );
        self.lock_range(family, begin, end)?;
        self.iter(family, options)
    }

    fn unlock_after(&mut self, kept: usize) {
        self.core.unlock(self.owner, self.locks.drain(kept..));
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.unlock_after(0);
        if self.deadline.is_some() {
            self.core.locks.deadlines.remove(self.owner);
        }
    }
}

#[cold]
fn expired() -> Error {
    let message = "the transaction took longer than it may; nothing of it was written";
    Error::new(ErrorKind::Expired, message)
}

#[cold]
fn conflict(family: &ColumnFamily, key: &[u8]) -> Error {
    let message = format!(
        "the key \"{}\" of column family {:?} was written after the transaction's snapshot",
        key.escape_ascii(),
        family.name()
    );
    Error::new(ErrorKind::Busy, message)
}
