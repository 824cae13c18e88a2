//! The store: everything that writers, background jobs and readers of one database share.
//!
//! It owns the state behind its lock, and four parts with data and methods of their own: its identity
//! ([`Identity`]), files on disk ([`Files`]), memory ([`Caches`]), and counters and notices ([`Watch`]).
//!
//! Lock order: the lead of the commit queue, then `state`. Readers take none of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use drumlin_base::sync::atomic::AtomicU64;
use drumlin_base::sync::{Condvar, Mutex, MutexGuard};
use drumlin_base::{Error, Result, SeqNo};

use crate::family::column_family::Family;
use crate::family::snapshot::{Snapshot, SnapshotList};
use crate::family::super_version::SuperVersions;
use crate::store::caches::Caches;
use crate::store::files::Files;
use crate::store::history::KeptHistory;
use crate::store::identity::Identity;
use crate::store::settings::StoreSettings;
use crate::store::state::State;
use crate::store::watch::Watch;
use crate::watch::events::Health;
use crate::watch::notices::DeliverAtEnd;
use crate::write::published::Published;
use crate::write::two_phase::PreparedSections;

/// See the module.
pub(crate) struct Store {
    pub(crate) id: Identity,
    pub(crate) settings: StoreSettings,
    pub(crate) files: Files,
    pub(crate) caches: Caches,
    pub(crate) watch: Watch,
    pub(crate) state: Mutex<State>,
    /// Notified whenever `state` changed in a way someone may wait for.
    pub(crate) changed: Condvar,
    /// With `state`: threads that pause after a failure; woken when its cause is gone, or to end.
    pub(crate) retry: Condvar,
    /// Counts changes of `state`, so that a long job knows when to look for something more urgent.
    pub(crate) changes: AtomicU64,
    /// Families by id, for the write path; follows `state`.
    pub(crate) families: ArcSwap<BTreeMap<u32, Arc<Family>>>,
    /// Whether one of them has a time behind its values; follows `state`.
    pub(crate) has_times: AtomicBool,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) history: KeptHistory,
    /// The newest sequence number readers may see; everything up to it is in memtables or tables.
    pub(crate) published: Published,
    /// Up to here every write that went to the WAL is synced.
    pub(crate) durable: AtomicU64,
    /// WAL files below this number are in tables; follows `state`.
    pub(crate) oldest_wal: AtomicU64,
    /// WAL files below this number hold no writes of a memtable; they may hold prepared transactions. Follows `state`.
    pub(crate) oldest_unflushed_wal: AtomicU64,
    /// The transactions that are prepared.
    pub(crate) prepared: PreparedSections,
    pub(crate) health: AtomicU8,
    pub(crate) closing: Arc<AtomicBool>,
}

impl Store {
    /// A store whose newest sequence number is `last_seqno`.
    pub(crate) fn new(
        id: Identity,
        files: Files,
        caches: Caches,
        watch: Watch,
        state: State,
        last_seqno: SeqNo,
    ) -> Self {
        let snapshots = Arc::new(SnapshotList::new());
        let history = KeptHistory::new(state.versions.history().clone(), &snapshots);
        let prepared = PreparedSections::new(Arc::clone(state.versions.sections()));
        Self {
            settings: StoreSettings::new(&id.options),
            id,
            files,
            caches,
            watch,
            state: Mutex::new(state),
            changed: Condvar::new(),
            retry: Condvar::new(),
            changes: AtomicU64::new(0),
            families: ArcSwap::from_pointee(BTreeMap::new()),
            has_times: AtomicBool::new(false),
            snapshots,
            history,
            published: Published::new(last_seqno),
            durable: AtomicU64::new(0),
            oldest_wal: AtomicU64::new(0),
            oldest_unflushed_wal: AtomicU64::new(0),
            prepared,
            health: AtomicU8::new(Health::Healthy as u8),
            closing: Arc::new(AtomicBool::new(false)),
        }
    }

    pub(crate) fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Whether there are no background threads: callers that wait for a job run it themselves.
    pub(crate) fn runs_inline(&self) -> bool {
        self.settings.threads() == 0
    }

    /// Of a follower: held as long as its versions and its newest sequence number go together.
    pub(crate) fn settled(&self) -> Option<MutexGuard<'_, State>> {
        self.id.follows.then(|| self.lock_state())
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

    /// Begins a call of the user's. Notices that it leaves for the listener are delivered when the guard is dropped.
    ///
    /// # Errors
    /// `NotSupported` in a forked child.
    #[inline]
    pub(crate) fn begin_call(&self) -> Result<DeliverAtEnd<'_>> {
        self.id.process.check()?;
        Ok(DeliverAtEnd(&self.watch.notices))
    }

    /// Refuses a handle of another store, or of this one before it was opened again.
    ///
    /// # Errors
    /// `InvalidArgument`.
    #[inline]
    pub(crate) fn check_own(&self, family: &Family) -> Result<()> {
        match family.store == self.id.number {
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
            false if self.id.follows => Err(Error::not_supported(
                "a snapshot of a follower: the writer keeps nothing for it; take a view (Db::view)",
            )),
            false => Err(is_of_another("snapshot", &snapshot.seqno().to_string())),
        }
    }

    /// Families by id.
    pub(crate) fn publish_families(&self, state: &State) {
        let map: BTreeMap<_, _> = state
            .families
            .iter()
            .map(|(id, f)| (*id, Arc::clone(&f.family)))
            .collect();
        let has_times = map.values().any(|family| family.reads.ttl.is_some());
        // Before a handle to a new family is given out, so that whoever writes to it sees it.
        self.has_times.store(has_times, Ordering::Release);
        self.families.store(Arc::new(map));
        self.caches.moments.forget();
    }

    /// The super versions that readers see now, each taken by itself.
    pub(crate) fn super_versions(&self) -> SuperVersions {
        let families = self.families.load();
        let each = families.iter();
        each.map(|(id, family)| (*id, family.super_version.load_full()))
            .collect()
    }
}

/// Longest pause between tries of a failed job: a disk that has space again is noticed within it.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(1);

fn is_of_another(what: &str, which: &str) -> Error {
    let message = format!(
        "the {what} {which:?} is of another store, or of this one before it was opened again"
    );
    Error::invalid_argument(message)
}
