//! Opening: lock, MANIFEST, WAL replay, a fresh WAL, the first super versions.
//!
//! Nothing of an earlier run is appended to. What the WAL files held is written to new tables, the
//! MANIFEST is written anew, and only when both are on disk do the old files go. A crash at any
//! point of this leaves a directory that opens again to the same state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use drumlin_base::sync::{Condvar, Mutex};
use drumlin_base::{Error, ErrorKind, MemoryBudget, Result, SeqNo};
use drumlin_fs::process::Process;
use drumlin_fs::{CreateOptions, Env, FileKind, FileLock, FileSystem, RateLimiter};
use drumlin_memtable::Memtable;
use drumlin_table::{BlockCache, ModelSource};

use crate::background::manual_queue::ManualQueue;
use crate::caches::blob_cache::BlobCache;
use crate::caches::models::{Chooser, ModelStore};
use crate::caches::table_cache::{TableCache, TableCacheOptions};
use crate::compaction::CompactionStyle;
use crate::compaction::flush::Flushed;
use crate::db::engine::{Engine, FamilyState, State};
use crate::db::foreign;
use crate::family::column_family::{DEFAULT_FAMILY, Family, next_store};
use crate::family::families::empty_view;
use crate::family::snapshot::SnapshotList;
use crate::files::disk_watch::DiskWatch;
use crate::files::held_files::HeldFiles;
use crate::files::names::{self, FileName};
use crate::files::space::{self, Space};
use crate::files::trash::Trash;
use crate::options::file as options_file;
use crate::options::file::{FamilySection, OptionsFile};
use crate::options::settings::{DirectoryFormat, FamilyOptions, Options};
use crate::options::stored as stored_options;
use crate::options::vintage::Vintage;
use crate::version::{
    FileMeta, FileNumbers, Profile, RecoveredInfo, VersionEdit, VersionSet, VersionSetOptions,
};
use crate::wal::dir as wal_dir;
use crate::wal::log::Wal;
use crate::wal::replay::{FlushedFamily, WalReplay};
use crate::wal::supply::WalSupply;
use crate::watch::events::{Health, RecoveryReport};
use crate::watch::notices::Notices;
use crate::watch::pressure::Board;
use crate::watch::statistics::Statistics;
use crate::watch::waits::WaitsByCause;
use crate::write::batch::BatchView;
use crate::write::leader::{FullFamilies, Leader};
use crate::write::published::Published;
use crate::write::queue::CommitQueue;
use crate::write::turns::Turns;

/// Open tables kept unless the options say otherwise. Where the process may open fewer files, the
/// table cache closes some when it meets that limit.
const MAX_OPEN_FILES: usize = 50_000;

/// Whether a database is opened for writing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenMode<'a> {
    ReadWrite,
    /// Only by `reader.rs`, with what holds the files.
    ReadOnly(&'a HeldFiles),
}

impl OpenMode<'_> {
    fn is_read_only(self) -> bool {
        matches!(self, Self::ReadOnly(_))
    }
}

/// An opened database whose background threads have not been started.
pub(crate) struct Opened {
    pub(crate) engine: Arc<Engine>,
}

/// Opens `dir`.
pub(crate) fn open(
    dir: &Path,
    mut options: Options,
    families: &[(&str, FamilyOptions)],
    mode: OpenMode<'_>,
) -> Result<Opened> {
    options.validate()?;
    let mut families = with_default(families, &options)?;
    let env = options.env.clone();
    foreign::refuse(&*env.files, dir)?;
    let lock = match mode {
        OpenMode::ReadWrite => Some(claim(dir, &options)?),
        OpenMode::ReadOnly(_) => None,
    };
    let leveldb = is_leveldb(&env, dir, &options)?;
    options.format = match leveldb {
        true => DirectoryFormat::LevelDb,
        false => DirectoryFormat::RocksDb,
    };
    let stored = stored_options::read(dir, &options)?;
    for (name, family) in &mut families {
        if let Some(stored) = stored.as_ref().and_then(|file| file.family(name)) {
            stored_options::complete(family, stored, options.compaction_style);
        }
        refuse_style(family, &options)?;
    }
    let direct = stored
        .as_ref()
        .and_then(|file| file.database.flag(options_file::DIRECT_IO));
    let wanted = &mut options.tuning.background_direct_io;
    *wanted = wanted.or(direct);
    let set_options = VersionSetOptions {
        profile: if leveldb {
            Profile::LevelDb
        } else {
            Profile::RocksDb
        },
        families: families
            .iter()
            .map(|(name, f)| (name.clone(), f.order.clone()))
            .collect(),
        read_only: mode.is_read_only(),
        // Who only reads holds the WAL files first.
        check_tables: !mode.is_read_only(),
    };
    let (mut versions, info) = match VersionSet::recover(Arc::clone(&env.files), dir, &set_options)
    {
        Ok(_) if options.error_if_exists => {
            let message = "the database exists, and error_if_exists is set";
            return Err(Error::invalid_argument(message).with_file(dir));
        }
        Ok((versions, info)) => (versions, Some(info)),
        Err(error) if error.is_not_found() => {
            if mode.is_read_only() || !options.create_if_missing {
                return Err(error);
            }
            (create(&env, dir, &set_options)?, None)
        }
        Err(error) => return Err(error),
    };
    if let (OpenMode::ReadOnly(held), Some(info)) = (mode, &info) {
        let wal_dir = options.wal_dir.as_deref().unwrap_or(dir);
        held.take_wals(wal_dir, info)?;
        versions.check_tables()?;
        held.take_models(dir, &versions)?;
    }
    let free = free_at_open(&env, dir, &options);
    let derived = options.tuning.write_buffer(options.memory_budget_bytes());
    let fits = derived.min(usize::try_from(space::memtable_bytes_max(free)).unwrap_or(derived));
    options.tuning.write_buffer_bytes.get_or_insert(fits);
    for (name, family) in &mut families {
        if let Some(stored) = stored.as_ref().and_then(|file| file.family(name)) {
            stored_options::keep_hash_indexes(family, stored, &options.tuning);
            stored_options::keep_blobs_out(family, stored, &options.tuning);
        }
    }
    let vintage = match info.is_some() && !leveldb && stored_identity(&env, dir)?.is_some() {
        true => stored_options::vintage(stored.as_ref(), &versions),
        false => Vintage::NEWEST,
    };
    if !vintage.skips_unknown_records() {
        versions.set_profile(Profile::RocksDb5);
    }
    for family in families.values_mut() {
        family.keep_to(vintage, &options.tuning);
    }
    let opener = Opener {
        env,
        dir,
        options,
        families,
        stored,
        mode,
        leveldb,
        vintage,
        free,
    };
    opener.finish(versions, info, lock)
}

/// Bytes free on the disk, or as many as can be where that is not known, which is told.
fn free_at_open(env: &Env, dir: &Path, options: &Options) -> u64 {
    env.files.free_space(dir).unwrap_or_else(|error| {
        if let Some(listener) = &options.listener {
            listener.background_failed(&error);
        }
        u64::MAX
    })
}

/// Whether the directory is to be written as LevelDB does. What LevelDB made has neither of the two
/// files that RocksDB, and we, always make.
fn is_leveldb(env: &Env, dir: &Path, options: &Options) -> Result<bool> {
    match options.format {
        DirectoryFormat::LevelDb => return Ok(true),
        DirectoryFormat::RocksDb => return Ok(false),
        DirectoryFormat::Auto => {}
    }
    let mut has_current = false;
    for name in env.files.list(dir)? {
        match FileName::parse(&name) {
            Some(FileName::Identity | FileName::Options(_)) => return Ok(false),
            Some(FileName::Current) => has_current = true,
            _ => {}
        }
    }
    Ok(has_current)
}

/// The names of the families in `dir`.
pub(crate) fn list_families(dir: &Path, env: &Env) -> Result<Vec<String>> {
    foreign::refuse(&*env.files, dir)?;
    VersionSet::list_families(&*env.files, dir)
}

fn with_default(
    families: &[(&str, FamilyOptions)],
    options: &Options,
) -> Result<BTreeMap<String, FamilyOptions>> {
    let mut named = BTreeMap::new();
    for (name, family) in families {
        family.validate()?;
        if named.insert((*name).to_owned(), family.clone()).is_some() {
            let message = format!("the column family {name:?} is named twice");
            return Err(Error::invalid_argument(message));
        }
    }
    named
        .entry(DEFAULT_FAMILY.to_owned())
        .or_insert_with(|| options.family.clone());
    Ok(named)
}

fn claim(dir: &Path, options: &Options) -> Result<Box<dyn FileLock>> {
    let files = &options.env.files;
    if options.create_if_missing {
        for dir in std::iter::once(dir).chain(options.wal_dir.as_deref()) {
            make_dir(&**files, dir)?;
        }
    } else if !files.exists(dir)? {
        let message = "there is no such directory, and create_if_missing is off";
        return Err(Error::new(ErrorKind::NotFound, message).with_file(dir));
    }
    files.lock(&names::lock(dir))
}

/// Creates `dir` and its parents, and makes their names outlive a power cut: a directory whose
/// name is lost takes everything with it.
fn make_dir(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    let mut missing = 0;
    for dir in dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
        if files.exists(dir)? {
            break;
        }
        missing += 1;
    }
    files.create_dir_all(dir)?;
    for dir in dir.ancestors().skip(1).take(missing.max(1)) {
        let dir = match dir.as_os_str().is_empty() {
            true => Path::new("."),
            false => dir,
        };
        files.sync_dir(dir)?;
    }
    Ok(())
}

fn create(env: &Env, dir: &Path, options: &VersionSetOptions) -> Result<VersionSet> {
    let others: Vec<_> = options
        .families
        .iter()
        .map(|(name, _)| name)
        .filter(|name| *name != DEFAULT_FAMILY)
        .collect();
    if !others.is_empty() {
        let message = format!(
            "there is no database yet, so {others:?} cannot be opened; open it and create them"
        );
        return Err(Error::invalid_argument(message).with_file(dir));
    }
    if options.profile == Profile::RocksDb {
        // Before CURRENT: a directory with that and without IDENTITY is taken for LevelDB's.
        write_identity_file(env, dir, &identity(env, dir)?)?;
    }
    VersionSet::create(Arc::clone(&env.files), dir, options)
}

fn write_identity_file(env: &Env, dir: &Path, id: &str) -> Result<()> {
    let options = CreateOptions::new(FileKind::Other);
    let mut file = env.files.create(&names::identity(dir), options)?;
    file.append(id.as_bytes())?;
    file.sync()?;
    file.close()?;
    env.files.sync_dir(dir)
}

/// What IDENTITY says; `None` when it is missing or says nothing.
pub(crate) fn stored_identity(env: &Env, dir: &Path) -> Result<Option<String>> {
    let bytes = match env.files.read_file(&names::identity(dir), 4096) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::TooLarge) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let text = String::from_utf8(bytes).unwrap_or_default();
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// In LevelDB's directories the file number alone tells which table of L0 is newer: no style works
/// there that merges tables within L0.
fn refuse_style(family: &FamilyOptions, options: &Options) -> Result<()> {
    let style = family.compaction_style.unwrap_or(options.compaction_style);
    let merges = match style {
        CompactionStyle::Universal(_) => true,
        CompactionStyle::Fifo(limits) => limits.merge_small,
        _ => false,
    };
    match merges && options.format == DirectoryFormat::LevelDb {
        true => Err(Error::not_supported(
            "a compaction style that merges tables within L0, in a LevelDB directory",
        )),
        false => Ok(()),
    }
}

/// Opens the tables of families in memory, each of which is read as a whole, before a reader needs them,
/// as long as they fit beside each other. One that cannot be opened is left to the reader that asks it,
/// who is told why.
fn open_tables_in_memory(engine: &Engine) {
    let mut wanted = Vec::new();
    for family in engine.lock_state().families.values() {
        if family.family.reads.in_memory {
            let files = family.version.files().map(|(_, file)| Arc::clone(file));
            wanted.extend(files.map(|file| (Arc::clone(&family.family.reads.tables), file)));
        }
    }
    let wanted: Arc<[(Arc<TableCache>, Arc<FileMeta>)]> = wanted.into();
    let next = Arc::new(AtomicUsize::new(0));
    let work = || {
        let (wanted, next) = (Arc::clone(&wanted), Arc::clone(&next));
        move || {
            // Relaxed: a number that each takes once; the list was there before.
            while let Some((tables, file)) = wanted.get(next.fetch_add(1, Ordering::Relaxed))
                && tables.has_room()
            {
                // Its first reader is told of an error.
                let _ = tables.find(file);
            }
        }
    };
    let helpers = engine.options.background_threads_count().min(wanted.len());
    // Without more threads to be had, this one does all.
    let spawn = |_| {
        let thread = engine.env.spawner.spawn("drumlin-open", Box::new(work()));
        thread.ok()
    };
    let helpers: Vec<_> = (1..helpers).filter_map(spawn).collect();
    work()();
    for helper in helpers {
        // A table that it did not open is opened by whoever reads it.
        let _ = helper.join();
    }
}

struct Opener<'a> {
    env: Env,
    dir: &'a Path,
    options: Options,
    families: BTreeMap<String, FamilyOptions>,
    stored: Option<OptionsFile>,
    mode: OpenMode<'a>,
    leveldb: bool,
    /// Who must be able to read what is written.
    vintage: Vintage,
    /// Bytes free on the disk when it was asked.
    free: u64,
}

impl Opener<'_> {
    fn finish(
        self,
        versions: VersionSet,
        info: Option<RecoveredInfo>,
        lock: Option<Box<dyn FileLock>>,
    ) -> Result<Opened> {
        let needed_from = info.as_ref().map_or(0, |info| info.min_log_number);
        let given = self.options.wal_dir.as_deref();
        let stored = self.stored.as_ref();
        let wal_dir = wal_dir::resolve(&self.env, self.dir, given, stored, needed_from)?;
        if let Some(info) = &info
            && !self.options.point_in_time_recovery
        {
            wal_dir::check_tracked(&self.env, &wal_dir, info)?;
        }
        let wals = match &info {
            Some(info) => self.wal_files(&wal_dir, info, versions.numbers())?,
            None => Vec::new(),
        };
        let mut engine = self.build(versions, lock, wal_dir.clone())?;
        if !self.mode.is_read_only() {
            let lock = wal_dir::claim(&self.env, self.dir, &wal_dir)?;
            engine.locks.lock().extend(lock);
        }
        self.check_table_formats(&engine)?;
        engine.check_models()?;
        engine.direct_io = self.takes_direct(&engine)?;
        let report = if !self.mode.is_read_only() {
            for wal in &wals {
                // What a dying process left in the page cache may not be on disk yet.
                self.env.files.sync_file(&names::wal(&wal_dir, *wal))?;
            }
            engine.recover(&wals, needed_from)?
        } else {
            let (report, replayed) = engine.replay(&wals, needed_from, None)?;
            engine.replayed_wals = replayed;
            report
        };
        engine.recovery = report;
        engine.notices.tell();
        if !engine.read_only {
            // Who only reads may want a single key.
            open_tables_in_memory(&engine);
        }
        Ok(Opened {
            engine: Arc::new(engine),
        })
    }

    /// Whether flushes and compactions shall pass the page cache by, and can; that they cannot is told.
    fn takes_direct(&self, engine: &Engine) -> Result<bool> {
        if self.options.tuning.background_direct_io != Some(true) || engine.read_only {
            return Ok(false);
        }
        let current = names::current(self.dir);
        let takes = self.env.files.takes_direct(&current)?;
        if !takes {
            let message = "this file system has no direct I/O, so flushes and compactions go through \
                           the page cache";
            let error = Error::not_supported(message).with_file(self.dir);
            tracing::warn!(%error, "background_direct_io has no effect");
            engine.tell(&error);
        }
        Ok(takes)
    }

    /// Looks at the tables of families whose OPTIONS name another table format than the usual one, so
    /// that one we cannot read is refused now and not by some later read.
    fn check_table_formats(&self, engine: &Engine) -> Result<()> {
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        let state = engine.lock_state();
        for family in state.families.values() {
            let section = stored.family(&family.family.name);
            if section.is_none_or(FamilySection::is_block_based) {
                continue;
            }
            for (_, file) in family.version.files() {
                family.family.reads.tables.check_format(file.number)?;
            }
        }
        Ok(())
    }

    /// The WAL files that may hold something no table has, ascending.
    fn wal_files(
        &self,
        wal_dir: &Path,
        info: &RecoveredInfo,
        numbers: &FileNumbers,
    ) -> Result<Vec<u64>> {
        let mut wals: Vec<u64> = Vec::new();
        for name in self.env.files.list(wal_dir)? {
            let Some(FileName::Wal(number)) = FileName::parse(&name) else {
                continue;
            };
            // Or a new WAL could take the place of one that is still needed.
            if !drumlin_base::bug!("old-wal-numbers-unmarked") {
                numbers.mark_used(number);
            }
            let least =
                info.min_log_number + u64::from(drumlin_base::bug!("oldest-wal-not-replayed"));
            if number >= least || number == info.prev_log_number {
                wals.push(number);
            }
        }
        wals.sort_unstable();
        Ok(wals)
    }

    fn build(
        &self,
        mut versions: VersionSet,
        lock: Option<Box<dyn FileLock>>,
        wal_dir: PathBuf,
    ) -> Result<Engine> {
        let options = &self.options;
        let budget = MemoryBudget::new(options.memory_budget_bytes());
        let block_cache = BlockCache::new(Arc::clone(&budget));
        let max_open_files = options.max_open_files.unwrap_or(MAX_OPEN_FILES);
        let models = ModelStore::open(Arc::clone(&self.env.files), self.dir, &budget)?;
        let table_cache = TableCache::new(TableCacheOptions {
            env: self.env.clone(),
            dir: self.dir.to_path_buf(),
            blocks: Arc::clone(&block_cache),
            budget: Arc::clone(&budget),
            models: Some(Arc::clone(&models) as Arc<dyn ModelSource>),
            open_max: max_open_files.saturating_sub(BlobCache::share_of(max_open_files)),
        });
        let blob_cache = BlobCache::new(
            Arc::clone(&self.env.files),
            self.dir.to_path_buf(),
            max_open_files,
        );
        if versions.db_id().is_none() {
            versions.set_db_id(&identity(&self.env, self.dir)?);
        }
        let store = next_store();
        let mut states = BTreeMap::new();
        for (&id, found) in versions.families() {
            let Some(family) = self.families.get(&found.name) else {
                continue;
            };
            let tables =
                table_cache.for_family(family.order.clone(), family.prefix_extractor.clone());
            let view = empty_view(family);
            let shared = Family::new(
                (id, &found.name),
                family.clone(),
                options,
                (tables, &blob_cache),
                (store, &budget),
                view,
            );
            states.insert(
                id,
                FamilyState::new(shared, Arc::clone(&found.current), found.log_number),
            );
        }
        let last_seqno = versions.last_seqno();
        let write_buffer = options.tuning.write_buffer(budget.limit_bytes()) as u64;
        let preallocate = write_buffer.min(space::wal_bytes_max(self.free));
        let supply = WalSupply::new(self.env.clone(), wal_dir.clone(), preallocate);
        let wal = Wal::new(
            self.env.clone(),
            wal_dir.clone(),
            Arc::clone(&supply),
            !self.leveldb,
        );
        let db_id = versions.db_id().unwrap_or_default().to_owned();
        let reuse_from = match self.leveldb {
            true => u64::MAX, // LevelDB does not know what is meant by the name.
            false => options.tuning.reuse_from_bytes,
        };
        let trash = Arc::new(Trash::new(&self.env, reuse_from));
        let engine = Engine {
            store,
            env: self.env.clone(),
            dir: self.dir.to_path_buf(),
            wal_dir,
            options: options.clone(),
            leveldb: self.leveldb,
            read_only: self.mode.is_read_only(),
            process: Process::current(),
            direct_io: false,
            budget,
            block_cache,
            table_cache,
            blob_cache,
            models,
            notices: Notices::new(options.listener.clone()),
            chooser: Chooser::default(),
            limiter: Arc::new(RateLimiter::new(
                Arc::clone(&self.env.clock),
                options.tuning.background_rate,
            )),
            space: Space::new(
                Arc::clone(&self.env.files),
                self.dir.to_path_buf(),
                Arc::clone(&trash),
                options.tuning.disk_reserve_bytes,
                write_buffer.saturating_mul(options.tuning.memtables_max as u64),
            ),
            trash,
            queue: CommitQueue::quick(),
            unsynced_wals: wal.unsynced(),
            supply,
            leader: Mutex::new(Leader::new(wal, last_seqno)),
            syncs: CommitQueue::slow(),
            published: Published::new(last_seqno),
            turns: Turns::new(drumlin_fs::machine::cores_available()),
            full: FullFamilies::default(),
            oldest_wal: AtomicU64::new(0),
            numbers: Arc::clone(versions.numbers()),
            state: Mutex::new(State {
                versions,
                families: states,
                wals: BTreeSet::new(),
                wal_pins: 0,
                spare_wals: Vec::new(),
                flushes_running: 0,
                compactions_running: 0,
                idle_threads: 0,
                manual: ManualQueue::default(),
                failure: None,
                failures_in_row: 0,
                flush_failures: 0,
                compaction_failures: 0,
                flush_failing: false,
                closed: false,
                compaction_blocked: None,
            }),
            changed: Condvar::new(),
            retry: Condvar::new(),
            families: ArcSwap::from_pointee(BTreeMap::new()),
            snapshots: Arc::new(SnapshotList::new()),
            statistics: Statistics::default(),
            waits: WaitsByCause::default(),
            board: Board::default(),
            disk: DiskWatch::default(),
            health: AtomicU8::new(Health::Healthy as u8),
            closing: Arc::new(AtomicBool::new(false)),
            db_id,
            vintage: self.vintage,
            session_id: session_id(&self.env),
            recovery: RecoveryReport::default(),
            replayed_wals: Vec::new(),
            threads: Mutex::new(Vec::new()),
            me: OnceLock::new(),
            changes: AtomicU64::new(0),
            unlogged: AtomicBool::new(false),
            locks: Mutex::new(lock.into_iter().collect()),
        };
        engine.publish_families(&engine.lock_state());
        Ok(engine)
    }
}

/// The database's id: what IDENTITY says, or a new random one in the form of a UUID.
fn identity(env: &Env, dir: &Path) -> Result<String> {
    if let Some(stored) = stored_identity(env, dir)? {
        return Ok(stored);
    }
    let mut rng = drumlin_base::rng::Rng::new(env.seed ^ env.clock.unix_seconds());
    let (a, b) = (rng.next_u64(), rng.next_u64());
    Ok(format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xFFFF,
        a & 0xFFF,
        0x8000 | (b >> 48) & 0x3FFF,
        b & 0xFFFF_FFFF_FFFF,
    ))
}

/// Twenty characters that tell this run from others, as RocksDB's session ids do.
fn session_id(env: &Env) -> String {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut rng = drumlin_base::rng::Rng::new(env.seed ^ env.clock.monotonic().as_nanos() as u64);
    let digit = |rng: &mut drumlin_base::rng::Rng| {
        let index = rng.below(DIGITS.len() as u64) as usize;
        char::from(DIGITS.get(index).copied().unwrap_or(b'0'))
    };
    (0..20).map(|_| digit(&mut rng)).collect()
}

impl Engine {
    /// Replays `wals` into tables, then begins a fresh WAL, installs all of it with one atomic
    /// group of edits and removes what it replaces.
    fn recover(&mut self, wals: &[u64], needed_from: u64) -> Result<RecoveryReport> {
        let _pending = self.numbers.begin_job();
        let mut tables = Vec::new();
        let (mut report, _) = self.replay(wals, needed_from, Some(&mut tables))?;
        let mut leader = self.leader.lock();
        let mut state = self.lock_state();
        self.switch_wal(&mut leader, &mut state)?;
        let wal = leader.wal.number();
        let mut edits: BTreeMap<u32, VersionEdit> = BTreeMap::new();
        for (&id, family) in &mut state.families {
            family.mutable_wal = wal;
            edits.insert(
                id,
                VersionEdit {
                    column_family: id,
                    log_number: Some(wal),
                    prev_log_number: Some(0),
                    ..VersionEdit::default()
                },
            );
        }
        for (id, flushed) in tables {
            if let Some(edit) = edits.get_mut(&id) {
                edit.new_files.extend(flushed.file.map(|table| (0, table)));
                edit.blob_additions.extend(flushed.blob_files);
            }
        }
        self.log_and_apply(&mut state, edits.into_values().collect())?;
        if !self.leveldb {
            if stored_identity(&self.env, &self.dir)?.is_none() {
                write_identity_file(&self.env, &self.dir, &self.db_id)?;
            }
            self.write_options(&state)?;
        }
        report.files_removed = self.remove_leftovers(&mut state)?;
        Ok(report)
    }

    /// Replays `wals` into memtables, or, when full (and at the end), from there into `tables`. With the
    /// report it gives the WALs, each with the bytes of it that were replayed.
    fn replay(
        &self,
        wals: &[u64],
        needed_from: u64,
        mut tables: Option<&mut Vec<(u32, Flushed)>>,
    ) -> Result<(RecoveryReport, Vec<(u64, u64)>)> {
        let first_seqno = self.visible_seqno();
        let replay = WalReplay {
            env: &self.env,
            dir: &self.wal_dir,
            point_in_time: self.options.point_in_time_recovery,
            keep_damaged: tables.is_some(),
            needed_from,
            flushed: FlushedFamily::all(&self.lock_state().versions),
        };
        let replayed = replay.run(wals, |wal, batch| {
            self.apply_recovered(wal, batch)?;
            tables
                .as_mut()
                .map_or(Ok(()), |tables| self.flush_recovered(tables, false))
        })?;
        self.set_last_seqno(first_seqno.max(replayed.last_seqno));
        if let Some(tables) = tables {
            self.flush_recovered(tables, true)?;
        }
        let report = RecoveryReport {
            batches_replayed: replayed.batches,
            entries_replayed: replayed.entries,
            cut: replayed.cut,
            mended: replayed.mended,
            files_removed: 0,
            leveldb: self.leveldb,
        };
        Ok((report, replayed.wals))
    }

    fn set_last_seqno(&self, last: SeqNo) {
        self.leader.lock().last_seqno = last;
        self.published.set(last);
    }

    fn apply_recovered(&self, wal: u64, batch: &BatchView<'_>) -> Result<()> {
        let state = self.lock_state();
        let mut seqno = batch.seqno();
        for record in batch.iter() {
            let record = record?;
            if let Some(family) = state.families.get(&record.family) {
                // Older WAL files hold what this family's tables already have.
                if wal >= family.mutable_wal {
                    family
                        .mutable
                        .add(seqno, record.kind, record.key, record.value);
                }
            } else if record.family > state.versions.max_family_id() {
                let message = format!("the WAL writes to the unknown family {}", record.family);
                return Err(Error::corruption(message).with_file(&names::wal(&self.wal_dir, wal)));
            }
            seqno += 1;
        }
        drop(state);
        self.set_last_seqno(self.visible_seqno().max(seqno.saturating_sub(1)));
        Ok(())
    }

    /// Writes recovered memtables that are full (or all of them) to tables, which are installed
    /// only when all is recovered: a crash before that finds the WAL files and no trace of them.
    fn flush_recovered(&self, tables: &mut Vec<(u32, Flushed)>, all: bool) -> Result<()> {
        let due: Vec<(Arc<Family>, Arc<Memtable>)> = {
            let mut state = self.lock_state();
            let full = state.families.values_mut().filter(|family| {
                !family.mutable.is_empty()
                    && (all || family.mutable.bytes() >= family.family.write_buffer)
            });
            full.map(|family| {
                let fresh = family.family.fresh_memtable();
                let old = std::mem::replace(&mut family.mutable, fresh);
                family.install();
                (Arc::clone(&family.family), old)
            })
            .collect()
        };
        for (family, memtable) in due {
            let flushed = self.write_memtables(&family, &[memtable], Arc::default())?;
            tables.push((family.id, flushed));
        }
        Ok(())
    }
}
