//! Everything the state's lock guards: versions, memtable lists, the bookkeeping of jobs.
//!
//! The lock is held for MANIFEST appends and for making a WAL file, never while a table is read or written, with the
//! few exceptions that ARCHITECTURE.md lists.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use drumlin_base::{Error, Result, SeqNo};
use drumlin_memtable::Memtable;

use crate::background::manual_queue::ManualQueue;
use crate::compaction::InFlight;
use crate::family::column_family::Family;
use crate::family::super_version::SuperVersion;
use crate::options::file::Section;
use crate::version::{Version, VersionSet};

/// Everything the state lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) versions: VersionSet,
    pub(crate) families: BTreeMap<u32, FamilyState>,
    /// WAL files on disk that may still be needed, with the live one.
    pub(crate) wals: BTreeSet<u64>,
    /// Checkpoints under way: WAL files must stay what they are meanwhile, and closing waits.
    pub(crate) wal_pins: usize,
    /// Obsolete WAL files, kept on disk to be recycled.
    pub(crate) spare_wals: Vec<u64>,
    pub(crate) flushes_running: usize,
    pub(crate) compactions_running: usize,
    /// The numbers of the threads for flushes and compactions that have not ended.
    pub(crate) threads: BTreeSet<usize>,
    /// Those who had the background paused and did not have it go on yet.
    pub(crate) pauses: usize,
    /// The same of those who had no file removed.
    pub(crate) removal_pauses: usize,
    /// Options of the database that were set by name, for the OPTIONS file.
    pub(crate) named: Section,
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

/// One family, as writers and jobs change it under the state's lock.
#[derive(Debug)]
pub(crate) struct FamilyState {
    pub(crate) family: Arc<Family>,
    pub(crate) mutable: Arc<Memtable>,
    /// The oldest WAL that may hold entries of `mutable`.
    pub(crate) mutable_oldest_wal: u64,
    /// The last sequence number before `mutable` took writes; lower where that is unknown.
    pub(crate) mutable_since: SeqNo,
    /// What `mutable` had when the live WAL began, and whether that was all it had a WAL before.
    had: usize,
    had_no_more: bool,
    /// Oldest first.
    pub(crate) immutables: VecDeque<Immutable>,
    pub(crate) version: Arc<Version>,
    pub(crate) flushing: bool,
    /// Compactions of this family under way.
    pub(crate) in_flight: InFlight,
    /// Grows with every installed super version.
    pub(crate) installs: u64,
    /// `installs` when the disk had no space for work that can wait.
    pub(crate) no_space_at: Option<u64>,
}

/// A full memtable on its way to L0.
#[derive(Debug)]
pub(crate) struct Immutable {
    pub(crate) memtable: Arc<Memtable>,
    /// The oldest WAL that may hold entries of `memtable`: RocksDB's log number of a memtable.
    pub(crate) oldest_wal: u64,
}

impl FamilyState {
    /// The oldest WAL this family still needs.
    pub(crate) fn min_wal_needed(&self) -> u64 {
        self.immutables
            .front()
            .map_or(self.mutable_oldest_wal, |first| first.oldest_wal)
    }

    /// Has a fresh memtable take the writes of `wal`, where the present one has those of an older WAL.
    pub(crate) fn begin_wal(&mut self, wal: u64) {
        if wal <= self.mutable_oldest_wal {
            return;
        }
        if !self.mutable.is_empty() && !drumlin_base::bug!("follower-mixes-wals") {
            let fresh = self.family.fresh_memtable();
            self.immutables.push_back(Immutable {
                memtable: std::mem::replace(&mut self.mutable, fresh),
                oldest_wal: self.mutable_oldest_wal,
            });
            self.mutable_oldest_wal = wal;
            self.install();
        }
        self.mutable_oldest_wal = wal;
    }

    /// Shows readers `version`, whose tables have the writes of all WAL files below `flushed_below`, in place of the
    /// memtables that have them.
    ///
    /// Requires: each memtable holds the writes of one WAL.
    pub(crate) fn flushed_elsewhere(&mut self, version: Arc<Version>, flushed_below: u64) {
        let is_same = Arc::ptr_eq(&version, &self.version);
        let oldest = self.min_wal_needed();
        if is_same && oldest >= flushed_below {
            return;
        }
        self.version = version;
        if !drumlin_base::bug!("follower-keeps-what-was-flushed") {
            self.immutables.retain(|it| it.oldest_wal >= flushed_below);
        }
        if self.mutable_oldest_wal < flushed_below {
            self.mutable = self.family.fresh_memtable();
            self.mutable_oldest_wal = flushed_below;
        }
        self.install();
    }

    /// Notes that a new WAL begins.
    pub(crate) fn note_new_wal(&mut self) {
        let has = entries(&self.mutable);
        self.had_no_more = has == self.had;
        self.had = has;
    }

    /// Whether nothing was written since the WAL before the live one began.
    pub(crate) fn is_idle(&self) -> bool {
        self.had_no_more && entries(&self.mutable) == self.had
    }

    /// Bytes of all memtables.
    pub(crate) fn memtable_bytes(&self) -> usize {
        let immutables = self.immutables.iter().map(|it| &it.memtable);
        let all = immutables.chain([&self.mutable]);
        all.map(|memtable| memtable.bytes()).sum()
    }

    /// Whether there are as many memtables as there may be.
    pub(crate) fn is_line_full(&self) -> bool {
        1 + self.immutables.len() >= self.family.settings().tuning.memtables_max
    }

    /// Whether work that can wait is worth a try: not where it found no space and nothing changed since.
    pub(crate) fn may_have_space(&self) -> bool {
        self.no_space_at != Some(self.installs)
    }

    /// Until the memtable is full, at `pace` bytes a second; `u64::MAX` where nothing is written.
    pub(crate) fn seconds_to_flush(&self, pace: f64) -> u64 {
        let room = self
            .family
            .write_buffer()
            .saturating_sub(self.mutable.bytes());
        match pace > 0.0 {
            true => (room as f64 / pace) as u64,
            false => u64::MAX,
        }
    }

    /// Shows readers the present memtables and version.
    pub(crate) fn install(&mut self) {
        self.installs += 1;
        debug_assert!(
            self.immutables.iter().is_sorted_by_key(|it| it.oldest_wal)
                && self
                    .immutables
                    .back()
                    .is_none_or(|it| it.oldest_wal <= self.mutable_oldest_wal),
            "memtables are in the order of their WALs"
        );
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

fn entries(memtable: &Memtable) -> usize {
    memtable.entries() + memtable.range_tombstone_count()
}

impl State {
    /// Nothing runs yet.
    pub(crate) fn new(versions: VersionSet, families: BTreeMap<u32, FamilyState>) -> Self {
        Self {
            versions,
            families,
            wals: BTreeSet::new(),
            wal_pins: 0,
            spare_wals: Vec::new(),
            flushes_running: 0,
            compactions_running: 0,
            threads: BTreeSet::new(),
            pauses: 0,
            removal_pauses: 0,
            named: Section::default(),
            idle_threads: 0,
            manual: ManualQueue::default(),
            failure: None,
            failures_in_row: 0,
            flush_failures: 0,
            compaction_failures: 0,
            flush_failing: false,
            closed: false,
            compaction_blocked: None,
        }
    }

    /// The oldest WAL any family still needs; `None` when there is no family.
    pub(crate) fn oldest_wal(&self) -> Option<u64> {
        self.families
            .values()
            .map(FamilyState::min_wal_needed)
            .min()
    }

    /// The family `id`, or why there is none.
    pub(crate) fn family_mut(&mut self, id: u32) -> Result<&mut FamilyState> {
        self.families
            .get_mut(&id)
            .ok_or_else(|| Error::invalid_argument(format!("column family {id} was dropped")))
    }
}

impl FamilyState {
    /// A family as it stands after recovery or creation: an empty memtable over `version`.
    pub(crate) fn new(family: Arc<Family>, version: Arc<Version>, wal: u64) -> Self {
        let mutable = family.fresh_memtable();
        let mut state = Self {
            family,
            mutable,
            mutable_oldest_wal: wal,
            mutable_since: 0,
            had: 0,
            had_no_more: false,
            immutables: VecDeque::new(),
            version,
            flushing: false,
            in_flight: InFlight::default(),
            installs: 0,
            no_space_at: None,
        };
        state.install();
        state
    }
}
