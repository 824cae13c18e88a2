//! Opening: lock, MANIFEST, WAL replay, a fresh WAL, the first super versions.
//!
//! No file of an earlier run is appended to. The contents of the WAL files are written to new tables, the
//! MANIFEST is written anew, and only when both are on disk do the old files go. A crash at any
//! point of this leaves a directory that opens again to the same state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::{Error, ErrorKind, MemoryBudget, Result};
use drumlin_fs::process::Process;
use drumlin_fs::{Env, FileLock, FileSystem, RateLimiter, machine};
use drumlin_table::{BlockCache, ModelSource};

use crate::background::background::Background;
use crate::caches::blob_cache::BlobCache;
use crate::caches::models::{Chooser, ModelStore};
use crate::caches::table_cache::{TableCache, TableCacheOptions};
use crate::compaction::CompactionStyle;
use crate::db::engine::Engine;
use crate::db::identity::{
    session_id, stored_identity, stored_or_new_identity, write_identity_file,
};
use crate::db::{foreign, recover, settle};
use crate::family::column_family::{DEFAULT_FAMILY, Family, next_store};
use crate::family::super_version::SuperVersion;
use crate::files::held_files::HeldFiles;
use crate::files::names::FileName;
use crate::files::space::Space;
use crate::files::trash::Trash;
use crate::files::{names, space};
use crate::options::file as options_file;
use crate::options::file::{FamilySection, OptionsFile};
use crate::options::settings::{DirectoryFormat, FamilyOptions, OPEN_FILES_MAX, Options};
use crate::options::stored as stored_options;
use crate::options::vintage::Vintage;
use crate::store::caches::Caches;
use crate::store::files::Files;
use crate::store::identity::Identity;
use crate::store::state::{FamilyState, State};
use crate::store::store::Store;
use crate::store::watch::Watch;
use crate::version::{
    FileMeta, FileNumbers, History, Profile, RecoveredInfo, VersionSet, VersionSetOptions,
};
use crate::wal::archive::{KeepChanges, WalArchive};
use crate::wal::dir as wal_dir;
use crate::wal::log::{Wal, WalFormat};
use crate::wal::preallocator::WalPreallocator;
use crate::wal::replay::has_two_phase;
use crate::watch::notices::Notices;
use crate::watch::times::StoreTimes;
use crate::write::commit::CommitPipeline;
use crate::write::env::WriteEnv;

/// How often the OPTIONS file is looked at for a family that it lacks, and the pause before the next look. There are files
/// that lack one for good.
const LOOKS_MAX: usize = 10;
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// Whether a database is opened for writing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenMode<'a> {
    ReadWrite,
    /// All families, and only by `reader.rs`, with the files it holds.
    ReadOnly {
        held: &'a HeldFiles,
        follows: bool,
    },
}

impl OpenMode<'_> {
    fn is_read_only(self) -> bool {
        matches!(self, Self::ReadOnly { .. })
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
        OpenMode::ReadOnly { .. } => None,
    };
    let leveldb = is_leveldb(&env, dir, &options)?;
    options.format = match leveldb {
        true => DirectoryFormat::LevelDb,
        false => DirectoryFormat::RocksDb,
    };
    let mut stored = stored_options::read(dir, &options)?;
    let is_on = |keep: KeepChanges| keep.is_on();
    let is_keeping_asked = options.keep_changes.is_some_and(is_on);
    let may_have_sections = may_have_sections(stored.as_ref());
    let (mut versions, info) = match mode {
        OpenMode::ReadWrite => {
            take_stored(stored.as_ref(), &mut options, &mut families)?;
            open_versions(dir, &options, &families, may_have_sections)?
        }
        OpenMode::ReadOnly { held, .. } => {
            let profile = profile(&options);
            let (versions, info) =
                settle::read_moment(dir, &options, held, profile, may_have_sections)?;
            families = families_of(&versions, &options);
            stored = stored_of(&families, dir, &options)?;
            take_stored(stored.as_ref(), &mut options, &mut families)?;
            (versions, Some(info))
        }
    };
    let free = free_at_open(&env, dir, &options);
    fit_memtables(&mut options, free);
    for (name, family) in &mut families {
        if let Some(stored) = stored.as_ref().and_then(|file| file.family(name)) {
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
    let can_keep = !leveldb && vintage.skips_unknown_records() || mode.is_read_only();
    if !can_keep && options.keep_changes.is_some_and(is_on) {
        if is_keeping_asked {
            let message = "keeping changes in a directory of LevelDB or of RocksDB 5";
            return Err(Error::not_supported(message).with_file(dir));
        }
        options.keep_changes = None;
    }
    keep_history(&mut versions, &options, can_keep, mode).map_err(|error| error.with_file(dir))?;
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

/// Has `versions` keep the past as `options` say; what they leave open is as it was.
///
/// # Errors
/// `NotSupported` where the MANIFEST cannot say it.
fn keep_history(
    versions: &mut VersionSet,
    options: &Options,
    can_keep: bool,
    mode: OpenMode<'_>,
) -> Result<()> {
    let Some(wanted) = options.keep_history.filter(|_| !mode.is_read_only()) else {
        return Ok(());
    };
    let mut history = History::default();
    if wanted.age.as_secs() > 0 {
        if !can_keep {
            let message = "keeping history in a directory of LevelDB or of RocksDB 5";
            return Err(Error::not_supported(message));
        }
        history = History {
            keep_seconds: wanted.age.as_secs(),
            every_seconds: wanted.every.as_secs(),
            ..versions.history().clone()
        };
    }
    versions.set_history(history);
    Ok(())
}

/// Fills in from the OPTIONS file what the caller left open, and refuses a compaction style that the directory's format
/// cannot have.
fn take_stored(
    stored: Option<&OptionsFile>,
    options: &mut Options,
    families: &mut BTreeMap<String, FamilyOptions>,
) -> Result<()> {
    for (name, family) in families {
        if let Some(stored) = stored.and_then(|file| file.family(name)) {
            stored_options::complete(family, stored, options.compaction_style);
        }
        refuse_style(family, options)?;
        if family.ttl.is_some() && options.format == DirectoryFormat::LevelDb {
            let message = "a time to live in a LevelDB directory";
            return Err(Error::not_supported(message));
        }
    }
    if options.keep_changes.is_none() {
        options.keep_changes = stored.and_then(stored_options::keep_changes);
    }
    let direct = stored.and_then(|file| file.database.flag(options_file::DIRECT_IO));
    let wanted = &mut options.tuning.background_direct_io;
    *wanted = wanted.or(direct);
    Ok(())
}

/// The versions in `dir`, with the findings of their recovery; a new database where there is none, one is allowed, and
/// with it no findings.
///
/// Requires: the options say which format the directory has.
fn open_versions(
    dir: &Path,
    options: &Options,
    families: &BTreeMap<String, FamilyOptions>,
    may_have_sections: bool,
) -> Result<(VersionSet, Option<RecoveredInfo>)> {
    let files = &options.env.files;
    let set_options = version_set_options(options, families);
    let (versions, info) = match VersionSet::recover(Arc::clone(files), dir, &set_options) {
        Ok(_) if options.error_if_exists => {
            let message = "the database exists, and error_if_exists is set";
            return Err(Error::invalid_argument(message).with_file(dir));
        }
        Err(error) if error.is_not_found() && options.create_if_missing => {
            return Ok((create(&options.env, dir, &set_options)?, None));
        }
        found => found?,
    };
    Ok((versions, Some(info.with_sections(may_have_sections))))
}

/// Whether there may be sections of two-phase commit in WAL files that no family needs, where the MANIFEST does not say
/// which ones are kept: RocksDB's recovery does not say so, but its OPTIONS file has the option that it takes.
fn may_have_sections(stored: Option<&OptionsFile>) -> bool {
    stored.is_none_or(|stored| stored.database.flag(options_file::TWO_PHASE) == Some(true))
}

fn version_set_options(
    options: &Options,
    families: &BTreeMap<String, FamilyOptions>,
) -> VersionSetOptions {
    let orders = families.iter();
    VersionSetOptions {
        profile: profile(options),
        families: orders
            .map(|(name, family)| (name.clone(), family.order.clone()))
            .collect(),
        check_tables: true,
    }
}

fn profile(options: &Options) -> Profile {
    match options.format {
        DirectoryFormat::LevelDb => Profile::LevelDb,
        _ => Profile::RocksDb,
    }
}

/// The OPTIONS file, with what it says of `families`: of a new one that is written after the MANIFEST.
fn stored_of(
    families: &BTreeMap<String, FamilyOptions>,
    dir: &Path,
    options: &Options,
) -> Result<Option<OptionsFile>> {
    for _ in 0..LOOKS_MAX {
        let stored = stored_options::read(dir, options)?;
        let is_told = |name: &String| stored.as_ref().is_none_or(|it| it.family(name).is_some());
        if families.keys().all(is_told) {
            return Ok(stored);
        }
        options.env.clock.sleep(LOOK_PAUSE);
    }
    stored_options::read(dir, options)
}

/// Every family of `versions`, with `options.family` in the order that it is in.
fn families_of(versions: &VersionSet, options: &Options) -> BTreeMap<String, FamilyOptions> {
    let families = versions.families().values();
    families
        .map(|family| {
            let of_order = stored_options::of_order(options, Some(family.order.name()));
            (family.name.clone(), of_order)
        })
        .collect()
}

/// Sets the size of memtables that the caller left open: what the budget gives, and the free disk takes.
fn fit_memtables(options: &mut Options, free: u64) {
    let derived = options.tuning.write_buffer(options.memory_budget_bytes());
    let fits = derived.min(usize::try_from(space::memtable_bytes_max(free)).unwrap_or(derived));
    options.tuning.write_buffer_bytes.get_or_insert(fits);
}

/// Free bytes on the disk. Where they are not known, the listener gets the error, and the answer is the maximum.
fn free_at_open(env: &Env, dir: &Path, options: &Options) -> u64 {
    env.files.free_space(dir).unwrap_or_else(|error| {
        if let Some(listener) = &options.listener {
            listener.background_failed(&error);
        }
        u64::MAX
    })
}

/// Whether the directory must be written in LevelDB's format. A LevelDB directory has neither of the two
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
        write_identity_file(env, dir, &stored_or_new_identity(env, dir)?)?;
    }
    VersionSet::create(Arc::clone(&env.files), dir, options)
}

/// In LevelDB's directories the file number alone shows which table of L0 is newer: no style works
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
/// as long as they fit beside each other. One that cannot be opened is left to its first reader,
/// who gets the error.
fn open_tables_in_memory(store: &Store) {
    let mut wanted = Vec::new();
    for family in store.lock_state().families.values() {
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
                // Its first reader gets an error.
                let _ = tables.find(file);
            }
        }
    };
    let helpers = store
        .id
        .options
        .background_threads_count()
        .min(wanted.len());
    // Without more threads to be had, this one does all.
    let spawn = |_| {
        let thread = store.id.env.spawner.spawn("drumlin-open", Box::new(work()));
        thread.ok()
    };
    let helpers: Vec<_> = (1..helpers).filter_map(spawn).collect();
    work()();
    for helper in helpers {
        // A table that it did not open is opened by its first reader.
        let _ = helper.join();
    }
}

struct Opener<'a> {
    env: Env,
    dir: &'a Path,
    options: Options,
    families: BTreeMap<String, FamilyOptions>,
    /// The OPTIONS file found.
    stored: Option<OptionsFile>,
    mode: OpenMode<'a>,
    leveldb: bool,
    /// The oldest engine that must be able to read this store.
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
            if !self.mode.is_read_only() {
                // From beside a reader a writer may have removed them since.
                wal_dir::check_sections(&self.env, &wal_dir, info)?;
            }
        }
        let wals = match &info {
            Some(info) => self.wal_files(&wal_dir, info, versions.numbers())?,
            None => Vec::new(),
        };
        let (direct_io, untold) = self.takes_direct()?;
        let engine = self.build(versions, lock, wal_dir.clone(), direct_io)?;
        if let Some(error) = untold {
            engine.store.watch.report_error(&error);
        }
        if !self.mode.is_read_only() {
            let lock = wal_dir::claim(&self.env, self.dir, &wal_dir)?;
            engine.locks.lock().extend(lock);
        }
        self.check_table_formats(&engine.store)?;
        engine.background.check_models()?;
        let recovered = match self.mode {
            OpenMode::ReadOnly { held, .. } => {
                recover::replay(&engine, (&wals, &held.ahead()), needed_from)?
            }
            OpenMode::ReadWrite => {
                for wal in &wals {
                    // Pages that a dying process left in the page cache may not be on disk yet.
                    self.env.files.sync_file(&names::wal(&wal_dir, *wal))?;
                }
                recover::recover(&engine, &wals, needed_from)?
            }
        };
        engine.store.id.set_recovered(recovered);
        engine.store.watch.notices.deliver();
        if !self.mode.is_read_only() {
            // A read-only open may be for a single key.
            open_tables_in_memory(&engine.store);
        }
        Ok(Opened {
            engine: Arc::new(engine),
        })
    }

    /// Whether flushes and compactions bypass the page cache; with an error to report when they should and cannot.
    fn takes_direct(&self) -> Result<(bool, Option<Error>)> {
        let wanted = self.options.tuning.background_direct_io == Some(true);
        if !wanted || self.mode.is_read_only() {
            return Ok((false, None));
        }
        if self.env.files.takes_direct(&names::current(self.dir))? {
            return Ok((true, None));
        }
        let message = "this file system has no direct I/O, so flushes and compactions go through \
                       the page cache";
        let error = Error::not_supported(message).with_file(self.dir);
        tracing::warn!(%error, "background_direct_io has no effect");
        Ok((false, Some(error)))
    }

    /// Looks at the tables of families whose OPTIONS name another table format than the usual one, so
    /// that one we cannot read is refused now and not by some later read.
    fn check_table_formats(&self, store: &Store) -> Result<()> {
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        let state = store.lock_state();
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
            let holds = || self.holds_sections(&wal_dir.join(&name), number, info);
            if number >= least || number == info.prev_log_number || holds()? {
                wals.push(number);
            }
        }
        wals.sort_unstable();
        Ok(wals)
    }

    /// Whether a WAL that no family needs is needed for what was prepared in it.
    fn holds_sections(&self, path: &Path, number: u64, info: &RecoveredInfo) -> Result<bool> {
        let may_hold = number >= info.sections_from && number < info.min_log_number;
        if !may_hold || self.leveldb {
            return Ok(false);
        }
        match self.env.files.open(path) {
            Ok(file) => has_two_phase(file, number),
            // A writer beside this reader has removed it: nothing in it is needed any more.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The engine over `versions`, before its WALs are replayed.
    fn build(
        &self,
        mut versions: VersionSet,
        lock: Option<Box<dyn FileLock>>,
        wal_dir: PathBuf,
        direct_io: bool,
    ) -> Result<Engine> {
        if versions.db_id().is_none() {
            versions.set_db_id(&stored_or_new_identity(&self.env, self.dir)?);
        }
        let id = self.identity(&versions, wal_dir, direct_io)?;
        let caches = self.caches()?;
        let families = self.families(&versions, &caches, id.number);
        let last_seqno = versions.last_seqno();
        let write_buffer = id.options.tuning.write_buffer(caches.budget.limit_bytes()) as u64;
        let preallocate = write_buffer.min(space::wal_bytes_max(self.free));
        let preallocator = WalPreallocator::new(self.env.clone(), id.wal_dir.clone(), preallocate);
        let format = match self.leveldb {
            true => WalFormat::LevelDb,
            false => WalFormat::RocksDb,
        };
        let mut wal = Wal::new(
            self.env.clone(),
            id.wal_dir.clone(),
            Arc::clone(&preallocator),
            format,
        );
        let keep = self.options.keep_changes.unwrap_or_default();
        let archive = WalArchive::new(self.env.clone(), id.wal_dir.clone(), keep);
        if archive.is_on() && !self.mode.is_read_only() {
            wal.keep_files();
            archive.make(versions.numbers())?;
        }
        let files = self.files(&versions, &wal, (preallocator, archive), write_buffer);
        let watch = Watch::new(
            Notices::new(self.options.listener.clone()),
            StoreTimes::new(self.options.timings, &self.env.clock),
        );
        let state = State::new(versions, families);
        let store = Store::new(id, files, caches, watch, state, last_seqno);
        let store = Arc::new(store);
        let background = Background::new(Arc::clone(&store));
        let env = WriteEnv::new(Arc::clone(&store), Arc::clone(&background));
        store.publish_families(&store.lock_state());
        Ok(Engine {
            writes: CommitPipeline::new(env, wal, last_seqno, self.options.sync),
            store,
            background,
            locks: Mutex::new(lock.into_iter().collect()),
        })
    }

    fn identity(
        &self,
        versions: &VersionSet,
        wal_dir: PathBuf,
        direct_io: bool,
    ) -> Result<Identity> {
        let Some(db_id) = versions.db_id() else {
            return Err(Error::corruption("the database has no id").with_file(self.dir));
        };
        Ok(Identity {
            number: next_store(),
            env: self.env.clone(),
            dir: self.dir.to_path_buf(),
            wal_dir,
            options: self.options.clone(),
            leveldb: self.leveldb,
            read_only: self.mode.is_read_only(),
            follows: matches!(self.mode, OpenMode::ReadOnly { follows: true, .. }),
            process: Process::current(),
            direct_io,
            db_id: db_id.to_owned(),
            session_id: session_id(&self.env),
            vintage: self.vintage,
            recovered: OnceLock::new(),
        })
    }

    fn caches(&self) -> Result<Caches> {
        let machine = usize::try_from(machine::memory_limit_bytes()).unwrap_or(usize::MAX);
        let budget = MemoryBudget::that_grows(self.options.memory_budget_bytes(), machine);
        let block_cache = BlockCache::new(Arc::clone(&budget));
        let open_max = self.options.max_open_files.unwrap_or(OPEN_FILES_MAX);
        let models = ModelStore::open(Arc::clone(&self.env.files), self.dir, &budget)?;
        let table_cache = TableCache::new(TableCacheOptions {
            env: self.env.clone(),
            dir: self.dir.to_path_buf(),
            blocks: Arc::clone(&block_cache),
            budget: Arc::clone(&budget),
            models: Some(Arc::clone(&models) as Arc<dyn ModelSource>),
            open_max: open_max.saturating_sub(BlobCache::share_of(open_max)),
        });
        let files = Arc::clone(&self.env.files);
        Ok(Caches {
            blob_cache: BlobCache::new(files, self.dir.to_path_buf(), open_max),
            budget,
            block_cache,
            table_cache,
            models,
            chooser: Chooser::default(),
            moments: Arc::default(),
        })
    }

    fn families(
        &self,
        versions: &VersionSet,
        caches: &Caches,
        store: u64,
    ) -> BTreeMap<u32, FamilyState> {
        let mut states = BTreeMap::new();
        for (&id, found) in versions.families() {
            let Some(family) = self.families.get(&found.name) else {
                continue;
            };
            let (order, prefix) = (family.order.clone(), family.prefix_extractor.clone());
            let shared = Family::new(
                (id, &found.name),
                family.clone(),
                &self.options,
                (
                    caches.table_cache.for_family(order, prefix),
                    &caches.blob_cache,
                ),
                (store, &caches.budget, &caches.moments),
                SuperVersion::empty(family.order.clone()),
            );
            let low = found.full_history_ts_low.clone().map(Arc::new);
            shared.full_history_ts_low.store(low);
            let version = Arc::clone(&found.current);
            states.insert(id, FamilyState::new(shared, version, found.log_number));
        }
        states
    }

    fn files(
        &self,
        versions: &VersionSet,
        wal: &Wal,
        (preallocator, archive): (Arc<WalPreallocator>, Arc<WalArchive>),
        write_buffer: u64,
    ) -> Files {
        let tuning = &self.options.tuning;
        let reuse_from = match self.leveldb {
            true => u64::MAX, // LevelDB does not know what is meant by the name.
            false => tuning.reuse_from_bytes,
        };
        let trash = Arc::new(Trash::new(&self.env, reuse_from));
        let clock = Arc::clone(&self.env.clock);
        Files {
            numbers: Arc::clone(versions.numbers()),
            limiter: Arc::new(RateLimiter::new(clock, tuning.background_rate)),
            space: Space::new(
                Arc::clone(&self.env.files),
                self.dir.to_path_buf(),
                Arc::clone(&trash),
                tuning.disk_reserve_bytes,
                write_buffer.saturating_mul(tuning.memtables_max as u64),
            ),
            trash,
            preallocator,
            unsynced_wals: wal.unsynced(),
            archive,
            options: Mutex::default(),
        }
    }
}
