//! What every handle to one open database shares.
//!
//! Lock order: the lead of the commit queue, then `leader`, then `state`. Readers take none of
//! them. `state` guards versions, memtable lists and job bookkeeping; it is never held while a
//! table is read or written, only for MANIFEST appends and for making a WAL file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use drumlin_base::sync::{Condvar, Mutex, MutexGuard};
use drumlin_base::{Error, ErrorKind, MemoryBudget, Result, SeqNo};
use drumlin_fs::process::Process;
use drumlin_fs::{Env, FileLock, JoinHandle, RateLimiter};
use drumlin_memtable::Memtable;
use drumlin_table::BlockCache;

use crate::background::manual_queue::ManualQueue;
use crate::caches::blob_cache::BlobCache;
use crate::caches::models::{Chooser, ModelStore};
use crate::caches::table_cache::TableCache;
use crate::compaction::InFlight;
use crate::family::column_family::Family;
use crate::family::snapshot::{Snapshot, SnapshotList};
use crate::family::super_version::SuperVersion;
use crate::files::disk_watch::DiskWatch;
use crate::files::space::Space;
use crate::files::trash::Trash;
use crate::options::settings::Options;
use crate::options::vintage::Vintage;
use crate::version::{FileNumbers, Version, VersionSet};
use crate::wal::log::UnsyncedWals;
use crate::wal::supply::WalSupply;
use crate::watch::events::{Health, RecoveryReport};
use crate::watch::notices::{Notice, Notices, TellAtEnd};
use crate::watch::pressure::Board;
use crate::watch::statistics::Statistics;
use crate::watch::waits::WaitsByCause;
use crate::write::leader::{FullFamilies, Leader, Logged, Request};
use crate::write::published::Published;
use crate::write::queue::CommitQueue;
use crate::write::turns::Turns;

/// Longest pause between tries of a failed job: a disk that has space again is noticed within it.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(1);

/// An open database.
pub(crate) struct Engine {
    /// Which of the stores opened in this process it is.
    pub(crate) store: u64,
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) wal_dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) leveldb: bool,
    pub(crate) read_only: bool,
    /// The WALs that were replayed, each with how many bytes of it, where it was opened for reading.
    pub(crate) replayed_wals: Vec<(u64, u64)>,
    /// The process that opened the database. A forked child may not use it.
    pub(crate) process: Process,
    /// Whether flushes and compactions pass the page cache by.
    pub(crate) direct_io: bool,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) block_cache: Arc<BlockCache>,
    pub(crate) table_cache: Arc<TableCache>,
    pub(crate) blob_cache: Arc<BlobCache>,
    /// What the listener is to be told.
    pub(crate) notices: Notices,
    /// The models that searchable tables share.
    pub(crate) models: Arc<ModelStore>,
    /// Which of them jobs write with.
    pub(crate) chooser: Chooser,
    /// Files on their way off the disk.
    pub(crate) trash: Arc<Trash>,
    /// What flushes and compactions write passes it.
    pub(crate) limiter: Arc<RateLimiter>,
    /// Room on the disk.
    pub(crate) space: Arc<Space>,
    pub(crate) queue: CommitQueue<Request>,
    pub(crate) leader: Mutex<Leader>,
    /// Which of several writers in a burst goes on while cores are short.
    pub(crate) turns: Turns,
    /// Groups that are logged and wait for a sync.
    pub(crate) syncs: CommitQueue<Logged>,
    /// The newest sequence number readers may see: the memtables hold everything up to it.
    pub(crate) published: Published,
    /// Families whose memtable the next leader rotates.
    pub(crate) full: FullFamilies,
    pub(crate) unsynced_wals: Arc<UnsyncedWals>,
    /// WAL files made ahead.
    pub(crate) supply: Arc<WalSupply>,
    /// WAL files below this number are in tables; follows `state`.
    pub(crate) oldest_wal: AtomicU64,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) state: Mutex<State>,
    /// Notified whenever `state` changed in a way someone may wait for.
    pub(crate) changed: Condvar,
    /// With `state`: threads that pause after a failure; woken when its cause is gone, or to end.
    pub(crate) retry: Condvar,
    /// Families by id, for the write path; follows `state`.
    pub(crate) families: ArcSwap<BTreeMap<u32, Arc<Family>>>,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) statistics: Statistics,
    /// How long writers waited.
    pub(crate) waits: WaitsByCause,
    /// What runs, and how fast writers may go because of it.
    pub(crate) board: Board,
    /// What the disk costs them.
    pub(crate) disk: DiskWatch,
    pub(crate) health: AtomicU8,
    pub(crate) closing: Arc<AtomicBool>,
    pub(crate) db_id: String,
    /// Who must be able to read what is written.
    pub(crate) vintage: Vintage,
    pub(crate) session_id: String,
    pub(crate) recovery: RecoveryReport,
    /// The background threads' handles, joined once at close.
    pub(crate) threads: Mutex<Vec<Box<dyn JoinHandle>>>,
    /// This engine, for jobs that call back into it; set when the threads start.
    pub(crate) me: OnceLock<Weak<Engine>>,
    /// Counts changes of `state`, so that a long job knows when to look for something more urgent.
    pub(crate) changes: AtomicU64,
    /// Whether some write skipped the WAL since the database was opened.
    pub(crate) unlogged: AtomicBool,
    /// Held until the database is closed: of its directory, and of one that its WAL has apart.
    pub(crate) locks: Mutex<Vec<Box<dyn FileLock>>>,
}

/// Everything the state lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) versions: VersionSet,
    pub(crate) families: BTreeMap<u32, FamilyState>,
    /// WAL files on disk that may still be needed, with the live one.
    pub(crate) wals: BTreeSet<u64>,
    /// Checkpoints under way: WAL files must stay what they are meanwhile, and closing waits.
    pub(crate) wal_pins: usize,
    /// WAL files nobody needs, kept on disk to become new ones.
    pub(crate) spare_wals: Vec<u64>,
    pub(crate) flushes_running: usize,
    pub(crate) compactions_running: usize,
    /// Threads for compactions that wait for work.
    pub(crate) idle_threads: usize,
    /// Compactions that were asked for.
    pub(crate) manual: ManualQueue,
    /// The error that changed the health, for those who are refused because of it.
    pub(crate) failure: Option<Error>,
    /// Failures of background jobs in a row.
    pub(crate) failures_in_row: u32,
    /// Flushes and compactions that failed since the database was opened.
    pub(crate) flush_failures: u64,
    pub(crate) compaction_failures: u64,
    /// The last flush failed.
    pub(crate) flush_failing: bool,
    /// The directory was given back: nothing in it may be changed any more.
    pub(crate) closed: bool,
    /// The damage compaction met in its input: it stays off until the database is reopened.
    pub(crate) compaction_blocked: Option<Error>,
}

/// One family's memtables and version.
#[derive(Debug)]
pub(crate) struct FamilyState {
    pub(crate) family: Arc<Family>,
    pub(crate) mutable: Arc<Memtable>,
    /// The oldest WAL that may hold entries of `mutable`.
    pub(crate) mutable_wal: u64,
    /// Oldest first.
    pub(crate) immutables: VecDeque<Immutable>,
    pub(crate) version: Arc<Version>,
    pub(crate) flushing: bool,
    /// Compactions of this family under way.
    pub(crate) in_flight: InFlight,
    /// Grows with every installed super version.
    pub(crate) installs: u64,
    /// `installs` when the disk had no room for work that can wait.
    pub(crate) no_room_at: Option<u64>,
}

/// A full memtable on its way to L0.
#[derive(Debug)]
pub(crate) struct Immutable {
    pub(crate) memtable: Arc<Memtable>,
    pub(crate) wal: u64,
}

impl FamilyState {
    /// The oldest WAL this family still needs.
    pub(crate) fn oldest_wal(&self) -> u64 {
        self.immutables
            .front()
            .map_or(self.mutable_wal, |first| first.wal)
    }

    /// Whether work that can wait is worth a try: not where it found no room and nothing changed since.
    pub(crate) fn may_have_room(&self) -> bool {
        self.no_room_at != Some(self.installs)
    }

    /// Until the memtable is full, at `pace` bytes a second; `u64::MAX` where nothing is written.
    pub(crate) fn seconds_to_flush(&self, pace: f64) -> u64 {
        let room = self
            .family
            .write_buffer
            .saturating_sub(self.mutable.bytes());
        match pace > 0.0 {
            true => (room as f64 / pace) as u64,
            false => u64::MAX,
        }
    }

    /// Shows readers the present memtables and version.
    pub(crate) fn install(&mut self) {
        self.installs += 1;
        let immutables = self
            .immutables
            .iter()
            .rev()
            .map(|i| Arc::clone(&i.memtable))
            .collect();
        self.family.install(SuperVersion::new(
            Arc::clone(&self.mutable),
            immutables,
            Arc::clone(&self.version),
            self.installs,
        ));
    }
}

impl State {
    /// The oldest WAL any family still needs; `None` when there is no family.
    pub(crate) fn oldest_wal(&self) -> Option<u64> {
        self.families.values().map(FamilyState::oldest_wal).min()
    }

    /// The family `id`, or why there is none.
    pub(crate) fn family_mut(&mut self, id: u32) -> Result<&mut FamilyState> {
        self.families
            .get_mut(&id)
            .ok_or_else(|| Error::invalid_argument(format!("column family {id} was dropped")))
    }
}

impl Engine {
    pub(crate) fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The newest sequence number a reader may see.
    #[inline]
    pub(crate) fn visible_seqno(&self) -> SeqNo {
        self.published.load()
    }

    /// Waits until something in `state` changes, or a moment passes, so that retries come due.
    pub(crate) fn wait_for_background<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        self.changed.wait_for(state, RETRY_MAX)
    }

    pub(crate) fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            0 => Health::Healthy,
            1 => Health::BackgroundPaused,
            2 => Health::WriteStopped,
            _ => Health::Poisoned,
        }
    }

    /// Counts a failure that no caller is told of, and tells the listener.
    pub(crate) fn tell(&self, error: &Error) {
        self.statistics.background_errors.bump();
        if !drumlin_base::bug!("errors-untold") {
            self.notices
                .note(|| Notice::BackgroundFailed(error.duplicate()));
        }
    }

    /// Worsens the health to `to` because of `error`; never betters it.
    pub(crate) fn degrade(&self, state: &mut State, to: Health, error: &Error) {
        let from = self.health();
        self.tell(error);
        if to <= from {
            return;
        }
        self.health.store(to as u8, Ordering::Release);
        state.failure = Some(error.duplicate());
        tracing::error!(?from, ?to, %error, "the database's health got worse");
        self.notices.note(|| Notice::HealthChanged {
            from,
            to,
            cause: error.to_string(),
        });
        self.changed.notify_all();
    }

    /// Betters the health, unless the database is poisoned: to `Healthy`, or, where damage keeps
    /// compactions from running, to `BackgroundPaused`.
    pub(crate) fn recover_health(&self, state: &mut State) {
        let from = self.health();
        state.failures_in_row = 0;
        let left = state.compaction_blocked.as_ref().map(Error::duplicate);
        let to = match &left {
            Some(_) => Health::BackgroundPaused,
            None => Health::Healthy,
        };
        if from <= to || from == Health::Poisoned {
            return;
        }
        self.health.store(to as u8, Ordering::Release);
        self.statistics.resumes.bump();
        tracing::info!(?from, ?to, "the database's health got better");
        self.notices.note(|| {
            let why = left.as_ref().map(ToString::to_string);
            let cause = why.unwrap_or_else(|| "the cause is gone".to_owned());
            Notice::HealthChanged { from, to, cause }
        });
        state.failure = left;
        self.changed.notify_all();
        self.retry.notify_all();
    }

    /// Begins an operation that may have something to tell the listener, which is told when what this gives is
    /// dropped.
    ///
    /// # Errors
    /// `NotSupported` in a forked child.
    #[inline]
    pub(crate) fn enter(&self) -> Result<TellAtEnd<'_>> {
        self.process.check()?;
        Ok(TellAtEnd(&self.notices))
    }

    /// Refuses a handle of another store, or of this one before it was opened again.
    ///
    /// # Errors
    /// `InvalidArgument`.
    #[inline]
    pub(crate) fn check_own(&self, family: &Family) -> Result<()> {
        match family.store == self.store {
            true => Ok(()),
            false => Err(is_of_another("column family", &family.name)),
        }
    }

    /// Refuses a snapshot of another store, or of this one before it was opened again.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        match self.snapshots.owns(snapshot) {
            true => Ok(()),
            false => Err(is_of_another("snapshot", &snapshot.seqno().to_string())),
        }
    }

    /// The error a refused writer gets.
    pub(crate) fn refusal(&self, state: &State) -> Error {
        let cause = state.failure.as_ref();
        let kind = match (self.health(), cause.map(Error::kind)) {
            (Health::Poisoned, _) if !drumlin_base::bug!("poison-told-as-its-cause") => {
                ErrorKind::Poisoned
            }
            (_, Some(kind)) => kind,
            (_, None) => ErrorKind::Io,
        };
        let why = cause.map_or_else(|| "an earlier failure".to_owned(), ToString::to_string);
        let advice = if kind == ErrorKind::Poisoned {
            "; reopen the database to recover"
        } else {
            ""
        };
        Error::new(kind, format!("writes are refused after {why}{advice}"))
    }

    /// Families by id.
    pub(crate) fn publish_families(&self, state: &State) {
        let map = state
            .families
            .iter()
            .map(|(id, f)| (*id, Arc::clone(&f.family)))
            .collect();
        self.families.store(Arc::new(map));
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("dir", &self.dir)
            .field("health", &self.health())
            .finish()
    }
}

#[cold]
fn is_of_another(what: &str, name: &str) -> Error {
    let message = format!(
        "the {what} {name:?} is of another store, or of this one before it was opened again"
    );
    Error::invalid_argument(message)
}
