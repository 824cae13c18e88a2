//! Open tables, and the limits on how many there are.
//!
//! An open table is in its file's own slot ([`FileMeta::table`]), so finding it is one load: no
//! lock, no hash table, nothing written that readers share. The price is that nobody notes which
//! tables are used. The order of eviction comes from *parking*: the table opened longest ago
//! is taken out of its slot but stays open for a while. A reader that needs it meanwhile gets it back
//! at the price of a short lock, and it counts as newly opened. A parked table that nobody asked for is
//! closed. This is second-chance FIFO with the chance checked on the miss path only.
//!
//! A table is opened by one thread at a time (sharded locks); the rest wait for it. Lock order: one
//! opener shard, then the queues. Tables are dropped, and thus closed, under no lock.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use drumlin_base::bytes::{HazardPtr, Retired};
use drumlin_base::sync::Mutex;
use drumlin_base::{
    Error, ErrorKind, KeyOrder, MemoryBudget, MemoryUse, PrefixExtractor, Result, SeqNo,
};
use drumlin_fs::{Env, RandomAccessFile};
use drumlin_table::{
    BlockCache, ModelSource, ReadTier, Table, TableFormat, TableReadOptions, TableReaderOptions,
};

use crate::files::names;
use crate::version::{EntryCounts, FileMeta, NewFile};

const SHARDS: usize = 16;

/// Tables that stay open whatever their memory, so that reads keep moving.
const OPEN_MIN: usize = 8;

/// The operating system's numbers for "too many open files", of the process and of the machine.
const TOO_MANY_OPEN: [i32; 2] = [24, 23];

/// The parts that the table caches of one database share.
#[derive(Clone, Debug)]
pub struct TableCacheOptions {
    /// Files.
    pub env: Env,
    /// The directory of the tables.
    pub dir: PathBuf,
    /// Where their blocks are kept.
    pub blocks: Arc<BlockCache>,
    /// Their indexes and filters are charged to it; they may take up half.
    pub budget: Arc<MemoryBudget>,
    /// Where tables find the models that they name.
    pub models: Option<Arc<dyn ModelSource>>,
    /// Open tables kept at most.
    pub open_max: usize,
}

/// Finds the open table of a file, opening it if need be. Shared by all threads.
///
/// One handle serves the families of one key order and prefix extractor; all handles of a database
/// share the limits. Cheap to clone by [`TableCache::for_family`].
pub struct TableCache {
    shared: Arc<Shared>,
    order: KeyOrder,
    prefix: Option<Arc<dyn PrefixExtractor>>,
}

struct Shared {
    options: TableCacheOptions,
    /// Open tables kept at most; may change.
    open_max: AtomicUsize,
    openers: [Mutex<()>; SHARDS],
    queues: Mutex<Queues>,
}

/// Invariant: a table is in its file's slot, or parked, or neither, never both.
#[derive(Default)]
struct Queues {
    /// Files whose slot was filled, the longest ago first. Some may have been dropped since.
    open: VecDeque<Weak<FileMeta>>,
    /// Parked tables with the tick they were parked at, the longest parked first; some may have
    /// been taken back since.
    parked_order: VecDeque<(u64, u64)>,
    /// By number, with the tick.
    parked: HashMap<u64, (u64, Retired<Arc<Table>>)>,
    /// Counts parkings.
    tick: u64,
}

impl TableCache {
    /// A cache for tables in bytewise order without prefixes.
    pub fn new(options: TableCacheOptions) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::new(Shared {
                open_max: AtomicUsize::new(options.open_max.max(OPEN_MIN)),
                options,
                openers: Default::default(),
                queues: Mutex::default(),
            }),
            order: KeyOrder::Bytewise,
            prefix: None,
        })
    }

    /// The same cache for the tables of a family with another order or prefix.
    pub fn for_family(
        &self,
        order: KeyOrder,
        prefix: Option<Arc<dyn PrefixExtractor>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            order,
            prefix,
        })
    }

    /// The open table of `file`.
    ///
    /// Requires: the handle is one for the file's family.
    ///
    /// # Errors
    /// `Corruption` when the file is missing or damaged; `Io`, also when too many files are open
    /// even after some were closed.
    #[inline]
    pub fn find(&self, file: &Arc<FileMeta>) -> Result<Arc<Table>> {
        match file.table.load_full() {
            Some(table) => Ok(table),
            None => self.find_closed(file, || self.open(file)),
        }
    }

    /// As [`TableCache::find`], for a read with `options`.
    ///
    /// # Errors
    /// As [`TableCache::find`]; `Incomplete` when the table is not open and only the cache may be read.
    #[inline]
    pub fn find_for(&self, file: &Arc<FileMeta>, options: &TableReadOptions) -> Result<Arc<Table>> {
        if options.tier != ReadTier::Disk {
            let open = self.find_open(file);
            return open.ok_or_else(|| self.not_open(file));
        }
        self.find(file)
    }

    /// The table of `file`, if it is open; no file is opened for it.
    pub fn find_open(&self, file: &Arc<FileMeta>) -> Option<Arc<Table>> {
        file.table.load_full().or_else(|| {
            // Checked first, because a thread that opens another table may hold the opener's lock for long.
            let is_parked = self.shared.queues.lock().parked.contains_key(&file.number);
            let found = is_parked.then(|| self.find_closed(file, || Err(self.not_open(file))));
            found?.ok()
        })
    }

    /// Most memory that tables held open by a layout may take; 0 while open tables exceed their share,
    /// because tables held open cannot be closed.
    pub fn laid_out_bytes_max(&self) -> usize {
        if self.shared.meta_bytes() > self.shared.meta_bytes_max() {
            0
        } else {
            self.shared.meta_bytes_max()
        }
    }

    /// Keeps at most `open_max` tables open from now on; those that are too many are closed by the next opening.
    pub(crate) fn set_open_max(&self, open_max: usize) {
        let open_max = open_max.max(OPEN_MIN);
        self.shared.open_max.store(open_max, Ordering::Relaxed);
    }

    /// Whether another table can be opened without closing one.
    pub fn has_room(&self) -> bool {
        let shared = &*self.shared;
        let open = shared.queues.lock().open.len();
        open < shared.open_max() - shared.parked_max()
            && shared.meta_bytes() < shared.meta_bytes_max()
    }

    #[cold]
    fn not_open(&self, file: &FileMeta) -> Error {
        let path = names::table(&self.shared.options.dir, file.number);
        Error::new(ErrorKind::Incomplete, "the table is not open").with_file(&path)
    }

    /// The table of `file`, under its opener's lock: opened meanwhile, parked, or from `open`.
    #[cold]
    fn find_closed(
        &self,
        file: &Arc<FileMeta>,
        open: impl FnOnce() -> Result<Arc<Table>>,
    ) -> Result<Arc<Table>> {
        let shared = &*self.shared;
        let guard = shared.openers[file.number as usize % SHARDS].lock();
        if let Some(table) = file.table.load_full() {
            return Ok(table);
        }
        let table = match shared.take_parked(file.number) {
            Some(table) => table,
            None => open()?,
        };
        file.note_properties(table.properties());
        shared.put_in_slot(file, &table);
        drop(guard);
        shared.shrink();
        Ok(table)
    }

    /// Opens the table of `file`, which no version has yet, so that its first reader finds it open. Worth it
    /// where opening reads the whole file. [`Ahead`] keeps it open.
    fn open_ahead(&self, file: &NewFile) -> Result<()> {
        self.park_ahead(file.number, self.open(file)?);
        Ok(())
    }

    fn park_ahead(&self, number: u64, table: Arc<Table>) {
        // Parked as one that was taken out of a slot: the first reader takes it back.
        let slot = HazardPtr::new(Some(table));
        if let Some(table) = slot.swap(None) {
            self.shared.queues.lock().park(number, table);
        }
        self.shared.shrink();
    }

    /// Opens a table that has no sequence number yet, for [`Ahead::take`].
    ///
    /// # Errors
    /// As [`TableCache::find`].
    pub fn open_unnumbered(&self, number: u64, size: u64) -> Result<Arc<Table>> {
        self.open(&NewFile {
            number,
            size,
            ..NewFile::default()
        })
    }

    /// How many entries the table of `file` has. A table that is not open is not opened for it: its properties are read.
    ///
    /// # Errors
    /// As [`TableCache::find`].
    pub fn counts_of(&self, file: &Arc<FileMeta>) -> Result<EntryCounts> {
        if let Some(counts) = file.counts() {
            return Ok(counts);
        }
        let (path, opened) = self.open_whole(file)?;
        match Table::properties_of(opened, &path)? {
            Some(properties) => Ok(file.note_properties(&properties)),
            None => Ok(file.note_properties(self.find(file)?.properties())),
        }
    }

    /// Opens the file of `file`, which must be as large as the MANIFEST says.
    fn open_whole(&self, file: &NewFile) -> Result<(PathBuf, Arc<dyn RandomAccessFile>)> {
        let (path, opened) = match self.shared.open_file(file.number) {
            Err(error) if is_too_many_open(&error) => {
                self.shared.close_some();
                self.shared.open_file(file.number)?
            }
            other => other?,
        };
        let is_checked = file.size != 0 && !drumlin_base::bug!("table-size-unchecked");
        if is_checked && opened.size() != file.size {
            let (found, expected) = (opened.size(), file.size);
            let message = format!("the table has {found} bytes, the MANIFEST says {expected}");
            return Err(Error::corruption(message).with_file(&path));
        }
        Ok((path, opened))
    }

    fn open(&self, file: &NewFile) -> Result<Arc<Table>> {
        let (path, opened) = self.open_whole(file)?;
        let options = TableReaderOptions {
            order: self.order.clone(),
            prefix: self.prefix.clone(),
            models: self.shared.options.models.clone(),
            largest_seqno: (file.largest_seqno != 0).then_some(file.largest_seqno),
            ..TableReaderOptions::new(
                path.clone(),
                file.number,
                Arc::clone(&self.shared.options.blocks),
                Arc::clone(&self.shared.options.budget),
            )
        };
        let table = Table::open(opened, options).map_err(|error| error.with_file(&path))?;
        if self.order.timestamp_bytes() > 0 && !table.range_tombstones().is_empty() {
            let message = "range deletions of keys with timestamps";
            return Err(Error::not_supported(message).with_file(&path));
        }
        Ok(table)
    }

    /// Checks that the table with this number is of a format we read. Reads its footer alone.
    ///
    /// # Errors
    /// `NotSupported` for another format; `Corruption`, `Io`.
    pub fn check_format(&self, number: u64) -> Result<()> {
        let (path, file) = self.shared.open_file(number)?;
        TableFormat::of(&*file).map_err(|error| error.with_file(&path))?;
        Ok(())
    }

    /// The model in a file of its own that the table with this number names, if it does.
    ///
    /// # Errors
    /// `Corruption`, `Io`.
    pub fn model_of(&self, number: u64) -> Result<Option<u64>> {
        let (path, file) = self.shared.open_file(number)?;
        Table::shared_model_of(&*file).map_err(|error| error.with_file(&path))
    }

    /// Forgets the table with this number, whose file is about to be removed.
    pub fn evict(&self, number: u64) {
        drop(self.shared.take_parked(number));
    }

    /// The path of the table with this number: `NNNNNN.sst`, unless only `NNNNNN.ldb` is there.
    pub fn path(&self, number: u64) -> PathBuf {
        let options = &self.shared.options;
        let leveldb = names::leveldb_table(&options.dir, number);
        let path = names::table(&options.dir, number);
        let is_there = |path: &Path| options.env.files.exists(path).unwrap_or(false);
        if !is_there(&path) && is_there(&leveldb) {
            leveldb
        } else {
            path
        }
    }

    /// Tables that are open now, parked ones included. Dropped files may still count for a while.
    pub fn open_count(&self) -> usize {
        let queues = self.shared.queues.lock();
        queues.open.len() + queues.parked.len()
    }
}

/// Tables that were opened before a version has them. Dropping this closes them, unless they are kept:
/// after a failure they must hold neither memory nor, being mapped, the space of a removed file.
#[derive(Debug)]
pub(crate) struct Ahead<'a> {
    tables: &'a TableCache,
    numbers: Vec<u64>,
}

impl<'a> Ahead<'a> {
    /// None yet.
    pub(crate) fn new(tables: &'a TableCache) -> Self {
        Self {
            tables,
            numbers: Vec::new(),
        }
    }

    /// Opens the table of `file`.
    ///
    /// # Errors
    /// As [`TableCache::find`].
    pub(crate) fn open(&mut self, file: &NewFile) -> Result<()> {
        self.tables.open_ahead(file)?;
        self.numbers.push(file.number);
        Ok(())
    }

    /// Keeps the `table` of the file `number`, from [`TableCache::open_unnumbered`], now that its entries have
    /// the sequence number `seqno`. A table whose format cannot take the number afterwards is closed; its
    /// first reader opens it.
    pub(crate) fn take(&mut self, number: u64, mut table: Arc<Table>, seqno: SeqNo) {
        if Table::set_seqno(&mut table, seqno) {
            self.tables.park_ahead(number, table);
            self.numbers.push(number);
        }
    }

    /// Leaves them open: a version has them.
    pub(crate) fn keep(mut self) {
        self.numbers.clear();
    }
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        for &number in &self.numbers {
            if drumlin_base::bug!("tables-ahead-stay-open") {
                continue;
            }
            self.tables.evict(number);
        }
    }
}

impl Shared {
    fn open_file(&self, number: u64) -> Result<(PathBuf, Arc<dyn RandomAccessFile>)> {
        let files = &self.options.env.files;
        let path = names::table(&self.options.dir, number);
        let missing = match files.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.is_not_found() => error,
            Err(error) => return Err(error),
        };
        let leveldb = names::leveldb_table(&self.options.dir, number);
        match files.open(&leveldb) {
            Ok(file) => Ok((leveldb, file)),
            Err(error) if error.is_not_found() => Err(missing
                .with_kind(ErrorKind::Corruption)
                .context("a table of the MANIFEST is missing")
                .with_file(&path)),
            Err(error) => Err(error),
        }
    }

    fn take_parked(&self, number: u64) -> Option<Arc<Table>> {
        let (_, table) = self.queues.lock().parked.remove(&number)?;
        Some(Arc::clone(&table))
    }

    /// Hangs `table` in the file's slot.
    fn put_in_slot(&self, file: &Arc<FileMeta>, table: &Arc<Table>) {
        let mut queues = self.queues.lock();
        file.table.store(Some(Arc::clone(table)));
        while let Some(first) = queues.open.front()
            && first.strong_count() == 0
        {
            queues.open.pop_front();
        }
        queues.open.push_back(Arc::downgrade(file));
    }

    fn meta_bytes_max(&self) -> usize {
        self.options.budget.limit_bytes() / 2
    }

    /// Memory that open tables take now.
    fn meta_bytes(&self) -> usize {
        self.options.budget.used(MemoryUse::TableMeta)
    }

    fn open_max(&self) -> usize {
        self.open_max.load(Ordering::Relaxed)
    }

    /// Tables that may be parked beside the open ones.
    fn parked_max(&self) -> usize {
        (self.open_max() / 8).max(1)
    }

    /// Parks and closes until the limits hold again.
    fn shrink(&self) {
        let open_max = self.open_max();
        let parked_max = self.parked_max();
        let mut closed = Vec::new();
        let mut queues = self.queues.lock();
        // Parking is kept full, so that a parked table keeps its chance for many misses.
        while queues.open.len() > open_max - parked_max && queues.park_oldest() {
            while queues.parked.len() > parked_max {
                closed.extend(queues.unpark_oldest());
            }
        }
        let mut meta = self.meta_bytes();
        let meta_max = self.meta_bytes_max();
        while meta > meta_max && queues.open.len() + queues.parked.len() > OPEN_MIN {
            if queues.parked.is_empty() && !queues.park_oldest() {
                break;
            }
            if let Some(table) = queues.unpark_oldest() {
                // A table that others still hold stays charged until they release it.
                meta = meta.saturating_sub(table.resident_bytes());
                closed.push(table);
            }
        }
        drop(queues);
        drop(closed);
    }

    /// Closes an eighth of the open tables, after the system refused to open more.
    fn close_some(&self) {
        let mut closed = Vec::new();
        let mut queues = self.queues.lock();
        let count = (queues.open.len() / 8).max(OPEN_MIN);
        for _ in 0..count {
            if !queues.park_oldest() {
                break;
            }
        }
        while !queues.parked.is_empty() {
            closed.extend(queues.unpark_oldest());
        }
        drop(queues);
        drop(closed);
    }
}

impl Queues {
    /// Parks the table opened longest ago; false when none is open. Files that are gone, or whose
    /// slot was emptied, are passed over.
    fn park_oldest(&mut self) -> bool {
        while let Some(file) = self.open.pop_front() {
            let Some(file) = file.upgrade() else { continue };
            if let Some(table) = file.table.swap(None) {
                self.park(file.number, table);
                return true;
            }
        }
        false
    }

    fn park(&mut self, number: u64, table: Retired<Arc<Table>>) {
        self.tick += 1;
        self.parked.insert(number, (self.tick, table));
        self.parked_order.push_back((number, self.tick));
        self.forget_taken_back();
    }

    /// Takes out the table parked longest ago.
    fn unpark_oldest(&mut self) -> Option<Retired<Arc<Table>>> {
        while let Some((number, tick)) = self.parked_order.pop_front() {
            if self.is_parked_since(number, tick) {
                return self.parked.remove(&number).map(|(_, table)| table);
            }
        }
        // Every parked table has its number in the order.
        debug_assert!(self.parked.is_empty());
        None
    }

    fn is_parked_since(&self, number: u64, tick: u64) -> bool {
        self.parked
            .get(&number)
            .is_some_and(|(since, _)| *since == tick)
    }

    /// Drops tables that were taken back from the order, once they are most of it.
    fn forget_taken_back(&mut self) {
        if self.parked_order.len() > 2 * self.parked.len() + OPEN_MIN {
            let mut order = std::mem::take(&mut self.parked_order);
            order.retain(|&(number, tick)| self.is_parked_since(number, tick));
            self.parked_order = order;
        }
    }
}

/// Whether the system refused to open one more file.
pub(crate) fn is_too_many_open(error: &Error) -> bool {
    error
        .os_code()
        .is_some_and(|code| TOO_MANY_OPEN.contains(&code))
}

impl fmt::Debug for TableCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCache")
            .field("dir", &self.shared.options.dir)
            .field("open_max", &self.shared.open_max())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::ValueKind;
    use drumlin_base::key::internal_key;
    use drumlin_base::rng::Rng;
    use drumlin_fs::{
        CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, OpKind,
        StrictMemFileSystem, SystemClock, ThreadSpawner,
    };
    use drumlin_table::{TableWriter, TableWriterOptions};

    use super::*;
    use crate::version::NewFile;

    const DIR: &str = "/db";

    struct Fixture {
        files: FaultFileSystem,
        cache: Arc<TableCache>,
        tables: Vec<Arc<FileMeta>>,
    }

    fn fixture(count: u64, open_max: usize, budget_bytes: usize) -> Fixture {
        let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        files.create_dir_all(Path::new(DIR)).unwrap();
        let budget = MemoryBudget::new(budget_bytes);
        let cache = TableCache::new(TableCacheOptions {
            env: Env {
                files: Arc::new(files.clone()),
                clock: Arc::new(SystemClock::new()),
                spawner: Arc::new(ThreadSpawner),
                seed: 1,
            },
            dir: PathBuf::from(DIR),
            blocks: BlockCache::new(Arc::clone(&budget)),
            budget,
            models: None,
            open_max,
        });
        let tables = (1..=count).map(|number| write(&files, number)).collect();
        files.record_history();
        Fixture {
            files,
            cache,
            tables,
        }
    }

    fn write(files: &dyn FileSystem, number: u64) -> Arc<FileMeta> {
        let path = names::table(Path::new(DIR), number);
        let file = files
            .create(&path, CreateOptions::new(FileKind::Table))
            .unwrap();
        let mut writer = TableWriter::new(file, TableWriterOptions::default());
        let key = internal_key(&number.to_be_bytes(), number, ValueKind::Value);
        writer.add(&key, b"v").unwrap();
        let finished = writer.finish().unwrap();
        Arc::new(FileMeta::new(NewFile {
            number,
            size: finished.size,
            smallest: key.clone(),
            largest: key,
            ..NewFile::default()
        }))
    }

    #[test]
    fn reads_from_the_cache_only_find_what_is_open_or_parked() {
        let fixture = fixture(20, 16, 8 << 20);
        let cached = TableReadOptions {
            tier: ReadTier::BlockCache,
            ..TableReadOptions::default()
        };
        let find = |at: usize| fixture.cache.find_for(&fixture.tables[at], &cached);
        let error = find(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete);
        assert_eq!(fixture.opened(), 0);
        for file in &fixture.tables {
            fixture.cache.find(file).unwrap();
        }
        let (opened, open) = (fixture.opened(), fixture.cache.open_count());
        let found = (0..20).filter(|at| find(*at).is_ok()).count();
        let slots = fixture
            .tables
            .iter()
            .filter(|file| file.table.load().is_some());
        assert!(found > 0 && found <= open, "{found} of {open}");
        assert!(found >= slots.count() - 1, "parked tables were taken back");
        assert_eq!(fixture.opened(), opened);
    }

    impl Fixture {
        /// How often a table file was opened.
        fn opened(&self) -> usize {
            let history = self.files.history();
            history.iter().filter(|(op, _)| *op == OpKind::Open).count()
        }
    }

    #[test]
    fn tables_opened_ahead_stay_open_only_if_they_are_kept() {
        let fixture = fixture(2, 100, 64 << 20);
        for (kept, left) in [(false, 0), (true, 2)] {
            let mut ahead = Ahead::new(&fixture.cache);
            for table in &fixture.tables {
                ahead.open(table.described()).unwrap();
            }
            assert_eq!(fixture.cache.open_count(), 2);
            if kept {
                ahead.keep()
            } else {
                drop(ahead)
            }
            assert_eq!(fixture.cache.open_count(), left);
        }
    }

    #[test]
    fn a_table_is_opened_once_and_found_by_everybody() {
        let fixture = fixture(1, 100, 64 << 20);
        let file = &fixture.tables[0];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| fixture.cache.find(file).unwrap());
            }
        });
        let (a, b) = (fixture.cache.find(file), fixture.cache.find(file));
        assert!(Arc::ptr_eq(&a.unwrap(), &b.unwrap()));
        assert_eq!(fixture.opened(), 1);
    }

    #[test]
    fn no_more_tables_stay_open_than_allowed_and_the_used_ones_stay() {
        let fixture = fixture(200, 32, 64 << 20);
        let hot = &fixture.tables[0];
        for file in &fixture.tables {
            fixture.cache.find(file).unwrap();
            fixture.cache.find(hot).unwrap();
            assert!(fixture.cache.open_count() <= 33);
        }
        assert_eq!(fixture.opened(), 200, "the hot table was never closed");
        let slots = fixture.tables.iter().filter(|f| f.table.load().is_some());
        assert!(slots.count() <= 32);
    }

    #[test]
    fn indexes_and_filters_stay_within_their_share_of_the_budget() {
        let fixture = fixture(100, 1000, 40 << 10);
        for file in &fixture.tables {
            fixture.cache.find(file).unwrap();
        }
        let budget = &fixture.cache.shared.options.budget;
        let share = budget.limit_bytes() / 2;
        let few = fixture.cache.open_count() <= OPEN_MIN;
        assert!(budget.used(MemoryUse::TableMeta) <= share || few);
        assert!(fixture.cache.open_count() < 100);
    }

    #[test]
    fn too_many_open_files_closes_some_and_tries_again() {
        let fixture = fixture(40, 100, 64 << 20);
        for file in &fixture.tables[..39] {
            fixture.cache.find(file).unwrap();
        }
        fixture
            .files
            .add_rule(FaultRule::once(0, Fault::TooManyFiles).on(OpKind::Open));
        fixture.cache.find(&fixture.tables[39]).unwrap();
        assert!(fixture.cache.open_count() < 39);
        fixture
            .files
            .add_rule(FaultRule::always(Fault::TooManyFiles).on(OpKind::Open));
        let error = fixture.cache.find(&fixture.tables[0]).unwrap_err();
        assert!(is_too_many_open(&error), "{error:?}");
    }

    #[test]
    fn missing_and_cut_tables_are_damage_that_names_the_file() {
        let fixture = fixture(2, 100, 64 << 20);
        let path = |number| names::table(Path::new(DIR), number);
        fixture.files.remove(&path(1)).unwrap();
        fixture
            .files
            .truncate(&path(2), fixture.tables[1].size - 1)
            .unwrap();
        for file in &fixture.tables {
            let error = fixture.cache.find(file).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert_eq!(error.file(), Some(&*path(file.number)));
        }
        // Sound, but not the one that the MANIFEST names.
        let fixture = self::fixture(1, 100, 64 << 20);
        let size = fixture.tables[0].size;
        assert!(fixture.cache.open_unnumbered(1, size).is_ok());
        let error = fixture.cache.open_unnumbered(1, size + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(error.file(), Some(&*path(1)));
    }

    #[test]
    fn tables_under_leveldbs_name_are_found() {
        let fixture = fixture(1, 100, 64 << 20);
        let leveldb = names::leveldb_table(Path::new(DIR), 1);
        let path = names::table(Path::new(DIR), 1);
        assert_eq!(fixture.cache.path(1), path);
        fixture.files.rename(&path, &leveldb).unwrap();
        assert_eq!(fixture.cache.path(1), leveldb);
        fixture.cache.find(&fixture.tables[0]).unwrap();
    }

    #[test]
    fn threads_that_fight_over_few_places_all_get_their_tables() {
        let fixture = fixture(64, 8, 64 << 20);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let fixture = &fixture;
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    for _ in 0..2000 {
                        let file = &fixture.tables[rng.below(64) as usize];
                        let table = fixture.cache.find(file).unwrap();
                        assert_eq!(table.size(), file.size);
                    }
                });
            }
        });
        assert!(fixture.cache.open_count() <= 8);
    }
}
