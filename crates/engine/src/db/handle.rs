//! The handle a program holds: every method checks its arguments and hands on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, PinnedSlice, Result, SeqNo};
use drumlin_fs::Env;

use crate::compaction::CancelToken;
use crate::db::engine::{Engine, Running};
use crate::db::identity::stored_identity;
use crate::db::open::OpenMode;
use crate::db::{open, reader, ttl};
use crate::family::column_family::{ColumnFamily, DEFAULT_FAMILY, Family};
use crate::family::snapshot::{Snapshot, SnapshotList};
use crate::family::super_version::SuperVersion;
use crate::maintenance::repair::RepairReport;
use crate::maintenance::verify::VerifyReport;
use crate::maintenance::{checkpoint, compact, families, history, ingest, repair, verify};
use crate::options::settings::{FamilyOptions, Options, ReadOptions, WriteOptions};
use crate::options::stored as stored_options;
use crate::read;
use crate::read::{DbIterator, KeyInterval, ReadView, RefreshSource};
use crate::watch::events::{Health, RecoveryReport};
use crate::watch::statistics::Statistics;
use crate::watch::times::CallTimes;
use crate::write::batch::WriteBatch;
use crate::write::commit::CommitEnv;
use crate::write::two_phase::{Phase, TwoPhase};

/// Where an iterator finds the present state when it is refreshed.
pub(super) struct FamilySource {
    engine: Arc<Engine>,
    family: Arc<Family>,
}

impl FamilySource {
    pub(super) fn new(engine: &Arc<Engine>, family: &Arc<Family>) -> Self {
        Self {
            engine: Arc::clone(engine),
            family: Arc::clone(family),
        }
    }
}

impl RefreshSource for FamilySource {
    fn present(&self) -> (Arc<SuperVersion>, SeqNo) {
        let super_version = self.family.super_version.load_full();
        (super_version, self.engine.store.visible_seqno())
    }

    fn seqno_if_present(&self, held: &Arc<SuperVersion>) -> Option<SeqNo> {
        let present = self.family.super_version.load();
        Arc::ptr_eq(&present, held).then(|| self.engine.store.visible_seqno())
    }

    fn call_times(&self) -> Option<&CallTimes> {
        self.engine.store.watch.times.calls()
    }
}

/// An open database. Cheap to clone; every method may be called from any thread.
///
/// The database is closed when the last clone is dropped, or by [`Db::close`], which reports what
/// dropping cannot.
///
/// A process that has it open may fork. The child's copies of the handle refuse what they are asked with
/// `InvalidArgument` and do nothing when they are dropped; the child may open databases of its own. Iterators
/// that it holds end with that error at their next move, reads at its snapshots are refused.
///
/// ```
/// # fn main() -> drumlin::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("drumlin-doc-{}", std::process::id()));
/// use drumlin::{Db, Options};
///
/// let db = Db::open(&dir, Options::default())?;
/// db.put(b"key", b"value")?;
/// assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
/// db.delete(b"key")?;
/// assert!(db.get(b"key")?.is_none());
/// db.close()?;
/// # std::fs::remove_dir_all(&dir).expect("it is there");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) engine: Arc<Engine>,
    /// Stops the background threads when the last handle goes.
    pub(super) running: Arc<Running>,
    pub(super) default: ColumnFamily,
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Db({})", self.engine.store.id.dir.display())
    }
}

impl Db {
    /// Opens the database in `dir` with its default family only.
    ///
    /// A merge operator or a prefix extractor that is built in, that the directory's OPTIONS file
    /// names and that `options` leaves open is used; so it is in every way of opening.
    ///
    /// # Errors
    /// `InvalidArgument` when the database has other families (see [`Db::open_families`]) or an
    /// option makes no sense; `Locked` when another process or handle has it open; `Corruption`
    /// naming the damage; `NotSupported` naming a feature that cannot be read faithfully;
    /// `Io`, `NoSpace`. A failed open changes nothing that a good open needs.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        let family = options.family.clone();
        Self::open_families(dir, options, &[(DEFAULT_FAMILY, family)])
    }

    /// Opens the database in `dir` with `families`, which must name every family it has. The
    /// default family may be left out; families that are not there are an error (create them with
    /// [`Db::create_family`]).
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_families(
        dir: impl AsRef<Path>,
        options: Options,
        families: &[(&str, FamilyOptions)],
    ) -> Result<Self> {
        Self::from_engine(open::open(
            dir.as_ref(),
            options,
            families,
            OpenMode::ReadWrite,
        )?)
    }

    /// Opens every family in the directory, each with `options.family`, and in the key order it was
    /// written in where that is a built-in one.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_all_families(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_all_families_as(dir, options, |_, _| {})
    }

    /// The same, each with its options passed through `adapt`, which is given the family's name.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_all_families_as(
        dir: impl AsRef<Path>,
        options: Options,
        mut adapt: impl FnMut(&str, &mut FamilyOptions),
    ) -> Result<Self> {
        let dir = dir.as_ref();
        let mut families = stored_options::all_families(dir, &options)?;
        for (name, family) in &mut families {
            adapt(name, family);
        }
        let families: Vec<_> = families
            .iter()
            .map(|(name, family)| (name.as_str(), family.clone()))
            .collect();
        Self::open_families(dir, options, &families)
    }

    /// Opens the database for reading: nothing in the directory is changed, not even its lock. Another process
    /// may be writing: reads see one moment after this call began; opening begins anew while the files
    /// change under it, and later writes are not seen.
    ///
    /// # Errors
    /// As [`Db::open`], but never `Locked`; `Busy` where a writer was faster a thousand times.
    pub fn open_read_only(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        let (opened, _held) = reader::open_read_only(dir.as_ref(), &options, false)?;
        Self::from_engine(opened)
    }

    /// The names of the families in `dir`.
    ///
    /// # Errors
    /// `NotFound` when `dir` holds no database; `Corruption`, `Io`.
    pub fn list_families(dir: impl AsRef<Path>, env: &Env) -> Result<Vec<String>> {
        open::list_families(dir.as_ref(), env)
    }

    /// Rebuilds the MANIFEST of the database in `dir` from its tables, for when it is lost or damaged.
    /// Damaged files are moved to the folder `lost`; WAL files are replayed by the next open. Keys
    /// deleted shortly before may come back, where a crash kept replaced tables from being removed.
    ///
    /// # Errors
    /// `NotSupported` where no database is, or none of a family's tables; the error of a table
    /// where none can be read; nothing was changed then. `Locked`, `Io`, `NoSpace`.
    pub fn repair(dir: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
        repair::repair(dir.as_ref(), options)
    }

    pub(super) fn from_engine(opened: open::Opened) -> Result<Self> {
        let engine = opened.engine;
        let families = engine.store.families.load();
        let Some(default) = families.get(&0) else {
            return Err(Error::corruption("the database has no default family"));
        };
        let default = ColumnFamily(Arc::clone(default));
        let running = Running::start(&engine)?;
        history::start(&engine)?;
        drop(families);
        Ok(Self {
            engine,
            running,
            default,
        })
    }

    /// The report of the recovery that opened the database.
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.engine.store.id.recovered().report
    }

    /// The default family.
    pub fn default_family(&self) -> &ColumnFamily {
        &self.default
    }

    /// The family called `name`, for the methods that end in `_cf`; [`Db::family`] is one that works.
    pub fn column_family(&self, name: &str) -> Option<ColumnFamily> {
        let families = self.engine.store.families.load();
        families
            .values()
            .find(|family| family.name == name)
            .cloned()
            .map(ColumnFamily)
    }

    /// Every family, by id.
    pub fn families(&self) -> Vec<ColumnFamily> {
        self.engine
            .store
            .families
            .load()
            .values()
            .cloned()
            .map(ColumnFamily)
            .collect()
    }

    /// Creates a family.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name, one that exists, or an option that makes no sense;
    /// `NotSupported` in a LevelDB directory; `Poisoned`, `Io`, `NoSpace`.
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<ColumnFamily> {
        let _call = self.engine.store.begin_call()?;
        families::create_family(&self.engine, name, options).map(ColumnFamily)
    }

    /// Drops a family. Its data is gone when this returns; handles, iterators and snapshots of it
    /// go on reading what they see until they are dropped, and its files go with the last of them.
    ///
    /// # Errors
    /// `InvalidArgument` for the default family or one already dropped; `Poisoned`, `Io`.
    pub fn drop_family(&self, family: &ColumnFamily) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        families::drop_family(&self.engine, &family.0)
    }

    /// Sets `key` to `value` in the default family.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_cf(&self.default, key, value, &WriteOptions::default())
    }

    /// Removes `key` from the default family. Removing an absent key is no error.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_cf(&self.default, key, &WriteOptions::default())
    }

    /// The value of `key` in the default family.
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        self.get_cf(&self.default, key, &ReadOptions::default())
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn put_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let mut batch = WriteBatch::with_capacity(key.len() + value.len() + 16);
        self.engine.store.check_own(&family.0)?;
        batch.put_cf(family.id(), key, value)?;
        self.write(batch, options)
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn delete_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.engine.store.check_own(&family.0)?;
        batch.delete_cf(family.id(), key.as_ref())?;
        self.write(batch, options)
    }

    /// Removes `key`, which was put exactly once since it was last removed; the two then vanish
    /// together in compaction. On a key that was put more often the result is undefined, as in
    /// RocksDB.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn single_delete_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.engine.store.check_own(&family.0)?;
        batch.single_delete_cf(family.id(), key.as_ref())?;
        self.write(batch, options)
    }

    /// Removes every key from `begin` up to, not including, `end`. Costs one entry, however many
    /// keys are covered.
    ///
    /// # Errors
    /// As [`Db::write`]; `InvalidArgument` when `end` comes before `begin`.
    pub fn delete_range_cf(
        &self,
        family: &ColumnFamily,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.engine.store.check_own(&family.0)?;
        batch.delete_range_cf(family.id(), begin.as_ref(), end.as_ref())?;
        self.write(batch, options)
    }

    /// Adds `operand` to `key` for the family's merge operator.
    ///
    /// # Errors
    /// As [`Db::write`]; `InvalidArgument` when the family has no merge operator.
    pub fn merge_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.engine.store.check_own(&family.0)?;
        batch.merge_cf(family.id(), key.as_ref(), operand.as_ref())?;
        self.write(batch, options)
    }

    /// Applies `batch` as a whole: after a crash all of it is there or nothing.
    ///
    /// When this returns, the write outlives the process, and with `sync` also a power cut; with `no_wal` it outlives
    /// neither until a flush. Writers on several threads are logged together. An empty batch does nothing, with `sync` neither:
    /// [`Db::sync_wal`] makes durable what was written before.
    ///
    /// # Errors
    /// `TooLarge`, `InvalidArgument`, `NotSupported` (a record that the directory's format cannot hold), `ReadOnly`
    /// before anything is written; `NoSpace` while the disk is full (heals by itself); `Busy` where
    /// [`WriteOptions::no_stall`] is set and it would stall; `Aborted` when the user's key order panics; `Poisoned`
    /// after that or after a failed sync (reopen); `Io`; `Shutdown`.
    pub fn write(&self, mut batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        self.write_whole(&mut batch, options)
    }

    /// As [`Db::write`], and keeps the batch: it is empty and has its memory on success, and is whole after an error,
    /// so that a writer with [`WriteOptions::no_stall`] that met `Busy` can try again. Returns the batch's last
    /// sequence number; readers see it already. An empty batch returns the newest one they see.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn commit(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<SeqNo> {
        if batch.is_empty() {
            return Ok(self.latest_seqno());
        }
        self.write_whole(batch, options)?;
        let last = batch.last_seqno();
        batch.clear();
        Ok(last)
    }

    /// The names of the transactions that were prepared and have no end yet, in order. [`crate::TransactionDb`] ends
    /// them; a plain store keeps them as they are, and does not keep others from what they wrote.
    pub fn prepared_transactions(&self) -> Vec<Vec<u8>> {
        let all = self.engine.store.prepared.all();
        all.into_iter().map(|(name, _)| name.to_vec()).collect()
    }

    /// Takes a step of two-phase commit, and makes the writes of `batch` with it.
    pub(crate) fn write_step(
        &self,
        mut step: TwoPhase,
        batch: &mut WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        ttl::stamp_step(store, &mut step, batch)?;
        if let Phase::Prepare(writes) = &step.phase {
            if store.id.leveldb || !store.id.vintage.skips_unknown_records() {
                let message = "two-phase commit in a directory of LevelDB or of RocksDB 5";
                return Err(Error::not_supported(message).with_file(&store.id.dir));
            }
            self.engine.writes.env.check(writes)?;
        } else {
            store.check_writable()?;
        }
        if let (Phase::Commit, true) = (&step.phase, store.files.archive.is_on())
            && let Some(writes) = store.prepared.writes_of(&step.name)
        {
            step.carry(&writes);
        }
        self.engine.writes.write_step(step, batch, options)
    }

    fn write_whole(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let _call = self.engine.store.begin_call()?;
        let mut write = move || ttl::write(&self.engine, batch, options);
        match self.engine.store.watch.times.calls() {
            None => write(),
            Some(times) => times.time(&times.write, write),
        }
    }

    /// The value of `key`, pinned in place.
    ///
    /// # Errors
    /// `Corruption` naming file and offset, `Io`, `Incomplete` under
    /// [`ReadOptions::tier`].
    #[inline]
    pub fn get_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        let times = self.engine.store.watch.times.calls();
        let begun = times.and_then(CallTimes::begin);
        let answer = self.get_key(family, key.as_ref(), options);
        if let (Some(begun), Some(times)) = (begun, times) {
            times.end(begun, &times.get);
        }
        answer
    }

    fn get_key(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        self.check_read(family, options)?;
        let super_version = family.0.super_version.load();
        let read = self.read_view(family, &super_version, options);
        let mut answer = Ok(None);
        read::get_to(read, key, || options.for_tables(), &mut answer);
        answer
    }

    /// The values of `keys`, in their order, all as of one moment.
    pub fn multi_get_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily,
        keys: &[K],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedSlice>>> {
        if let Err(error) = self.check_read(family, options) {
            return keys.iter().map(|_| Err(error.duplicate())).collect();
        }
        let super_version = family.0.super_version.load();
        let read = self.read_view(family, &super_version, options);
        let look_up = || read::multi_get(read, keys, &options.for_tables());
        match self.engine.store.watch.times.calls() {
            None => look_up(),
            Some(times) => times.time(&times.multi_get, look_up),
        }
    }

    /// The sequence number of the newest entry for `key`, whatever it is (a value, a merge operand, a deletion, a range
    /// deletion over it); `None` when there is none. A compaction sets that of an entry older than every snapshot to 0:
    /// so it shows whether the key changed since a snapshot that is held, and for nothing older. Costs a get.
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub fn newest_seqno_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<SeqNo>> {
        self.check_read(family, options)?;
        let super_version = family.0.super_version.load();
        let read = self.read_view(family, &super_version, options);
        read::newest_seqno(read, key.as_ref(), &options.for_tables())
    }

    /// A key of `range` that was written to after `than`, if there is one. See [`read::newer_in_range`].
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub(crate) fn newer_in_range(
        &self,
        family: &ColumnFamily,
        range: KeyInterval<'_>,
        than: SeqNo,
    ) -> Result<Option<Vec<u8>>> {
        let options = ReadOptions::default();
        self.check_read(family, &options)?;
        let super_version = family.0.super_version.load();
        let read = self.read_view(family, &super_version, &options);
        read::newer_in_range(read, range, than, &options.for_tables())
    }

    /// A cursor over the default family. See [`Db::iter_cf`].
    pub fn iter(&self, options: ReadOptions) -> DbIterator {
        self.iter_cf(&self.default, options)
    }

    /// A cursor over the family's contents now (or at the snapshot). It keeps seeing exactly those,
    /// whatever is written, flushed, compacted or dropped meanwhile, and keeps the files alive.
    pub fn iter_cf(&self, family: &ColumnFamily, options: ReadOptions) -> DbIterator {
        self.engine.store.watch.statistics.iterators.bump();
        if let Err(error) = self.check_read(family, &options) {
            let (super_version, options) = (
                SuperVersion::empty(family.0.options.order.clone()),
                options.for_iterators(),
            );
            return DbIterator::refused(&family.0.reads, super_version, options, error);
        }
        let super_version = family.0.super_version.load();
        let seqno = self.read_seqno(&options);
        let walked = options.for_iterators();
        DbIterator::over_present(
            &family.0.reads,
            &super_version,
            seqno,
            options.snapshot,
            walked,
            || Arc::new(FamilySource::new(&self.engine, &family.0)),
        )
        .timed(self.engine.store.watch.times.calls().is_some())
    }

    /// Pins the present moment for reads. Holding one keeps overwritten values on disk. Reads of a [`crate::Follower`]
    /// refuse it: take a [`Db::view`] there.
    pub fn snapshot(&self) -> Snapshot {
        let store = &self.engine.store;
        match store.id.follows {
            true => SnapshotList::new().take_current(|| self.latest_seqno()),
            false => store.snapshots.take_current(|| store.visible_seqno()),
        }
    }

    /// The sequence number up to which every write that went to the WAL is known to outlive a power cut: that of the
    /// last sync, or of the recovery. Flushes make more durable than this says.
    pub fn durable_seqno(&self) -> SeqNo {
        self.engine.writes.durable_seqno()
    }

    /// The newest sequence number readers see.
    pub fn latest_seqno(&self) -> SeqNo {
        let _settled = self.engine.store.settled();
        self.engine.store.visible_seqno()
    }

    /// Writes the family's memtables to a table and waits for it.
    ///
    /// # Errors
    /// The cause of a failed flush.
    pub fn flush_cf(&self, family: &ColumnFamily) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        self.engine.flush_family(family.id())
    }

    /// [`Db::flush_cf`] for every family.
    ///
    /// # Errors
    /// As [`Db::flush_cf`].
    pub fn flush(&self) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.flush_all()
    }

    /// Makes every write acknowledged so far outlive a power cut, beside writers that go on; calls at one time share
    /// their syncs with each other and with synced writes. Returns the sequence number up to which that holds.
    ///
    /// # Errors
    /// `Io`; the database is then poisoned.
    pub fn sync_wal(&self) -> Result<SeqNo> {
        let _call = self.engine.store.begin_call()?;
        self.engine.sync_wal()
    }

    /// Rewrites everything between `begin` and `end` (inclusive; `None` is unbounded) into the
    /// deepest level, dropping deleted and overwritten entries. Blocks; writes and reads go on. It is
    /// done in pieces of a few tables, after the store's own work, and its bytes are
    /// not charged to writers.
    ///
    /// # Errors
    /// The cause of a failed compaction; `Shutdown`.
    pub fn compact_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        compact::compact_range(&self.engine, family, (begin, end), None)
    }

    /// [`Db::compact_range`], until `cancel` ends it. Work done by then stays done.
    ///
    /// # Errors
    /// As [`Db::compact_range`]; `Aborted` when it was cancelled.
    pub fn compact_range_until(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        compact::compact_range(&self.engine, family, (begin, end), Some(cancel))
    }

    /// Writes everything in `family` anew, in the table format it has now: after the format was changed
    /// this moves all of it at once, while compaction would over time. Searchable tables share one model
    /// afterwards, learned anew from all of them if that saves enough.
    ///
    /// # Errors
    /// As [`Db::compact_range`].
    pub fn recode(&self, family: &ColumnFamily) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        compact::recode(&self.engine, family, None)
    }

    /// Waits until no flush or compaction is running or due.
    ///
    /// # Errors
    /// The failure that keeps the background from finishing.
    pub fn wait_for_background(&self) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.background.wait_for_idle()
    }

    /// Makes `target`, which must not exist, a copy of the database as of now. Tables are linked,
    /// not copied; on another file system they are copied.
    ///
    /// # Errors
    /// `InvalidArgument` when `target` exists, `NoSpace`, `Io`; `Shutdown` when the database is closed meanwhile, which waits until this has given up.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        checkpoint::checkpoint(&self.engine, target.as_ref())
    }

    /// Takes in tables made by [`crate::SstFileWriter`] (or RocksDB's), in order: where they overlap,
    /// later ones win, and all of them win over the database's contents. Files are linked where they
    /// can be; `move_files` removes the originals. All are taken, or none.
    ///
    /// # Errors
    /// `InvalidArgument` for a table that is not external; `Corruption` naming the damage.
    pub fn ingest(&self, family: &ColumnFamily, paths: &[PathBuf], move_files: bool) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        ingest::ingest(&self.engine, family, paths, move_files)
    }

    /// Reads every live table whole, with the models and values in blob files that it refers to, and
    /// compares it with the MANIFEST: a scrub.
    ///
    /// # Errors
    /// `Shutdown`. Damage found is in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        let _call = self.engine.store.begin_call()?;
        verify::verify(&self.engine, &verify::VerifyOptions::default())
    }

    /// How the database stands.
    pub fn health(&self) -> Health {
        self.engine.store.health()
    }

    /// Counters since the database was opened.
    pub fn statistics(&self) -> &Statistics {
        &self.engine.store.watch.statistics
    }

    /// The database's id, as the file IDENTITY has it; `None` in a directory of LevelDB. Copies have the same, and so has a backup
    /// that is restored.
    ///
    /// # Errors
    /// `Io`; `Shutdown`.
    pub fn identity(&self) -> Result<Option<String>> {
        let _call = self.engine.store.begin_call()?;
        stored_identity(&self.engine.store.id.env, self.path())
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.engine.store.id.dir
    }

    /// Flushes what only memtables hold (writes without WAL), stops the background and releases
    /// the directory. Iterators and snapshots held elsewhere stay readable. Syncs nothing: what was written without `sync`
    /// outlives the process, and a power cut after [`Db::sync_wal`] or a flush.
    ///
    /// # Errors
    /// The error of the last flush or sync. The database is closed all the same.
    pub fn close(self) -> Result<()> {
        let closed = self.engine.close();
        self.engine.store.watch.notices.deliver();
        closed
    }

    /// Refuses a read with a handle or snapshot of another store, or in a forked child.
    #[inline]
    fn check_read(&self, family: &ColumnFamily, options: &ReadOptions) -> Result<()> {
        let engine = &self.engine;
        let in_process =
            engine.store.id.process.is_present() || drumlin_base::bug!("forked-child-reads");
        let owns_family = in_process && family.0.store == engine.store.id.number;
        let snapshot = options.snapshot.as_ref();
        match owns_family && snapshot.is_none_or(|snapshot| engine.store.snapshots.owns(snapshot)) {
            true => Ok(()),
            false => self.refuse_read(family, snapshot),
        }
    }

    #[cold]
    fn refuse_read(&self, family: &ColumnFamily, snapshot: Option<&Snapshot>) -> Result<()> {
        self.engine.store.id.process.check()?;
        self.engine.store.check_own(&family.0)?;
        snapshot.map_or(Ok(()), |snapshot| {
            self.engine.store.check_snapshot(snapshot)
        })
    }

    /// The view of a read on `family` over `super_version`, which was loaded before the sequence number is.
    #[inline]
    fn read_view<'a>(
        &self,
        family: &'a ColumnFamily,
        super_version: &'a SuperVersion,
        options: &ReadOptions,
    ) -> ReadView<'a> {
        ReadView {
            super_version,
            context: &family.0.reads,
            seqno: self.read_seqno(options),
        }
    }

    /// Requires: the super version was loaded before, so that it holds all that is visible.
    #[inline]
    fn read_seqno(&self, options: &ReadOptions) -> SeqNo {
        match &options.snapshot {
            Some(snapshot) => {
                snapshot.seqno() + u64::from(drumlin_base::bug!("snapshot-reads-one-more"))
            }
            None => self.engine.store.visible_seqno(),
        }
    }
}
