//! New memtables and new WAL files.

use drumlin_base::sync::MutexGuard;
use drumlin_base::sync::atomic::Ordering;
use drumlin_base::{Error, ErrorKind, MemoryUse, Result};

use crate::store::state::{FamilyState, Immutable, State};
use crate::store::store::Store;
use crate::version::VersionEdit;
use crate::wal::preallocator::FreshWal;
use crate::watch::events::{Health, MemtableInfo};
use crate::watch::notices::Notice;
use crate::watch::waits::WaitCause;
use crate::write::commit::LogState;
use crate::write::env::WriteEnv;

impl WriteEnv {
    /// Makes the family's memtable immutable and gives it a fresh one with a fresh WAL. Waits for
    /// a flush when every memtable is full.
    ///
    /// Requires: every group logged before is published, or never will be.
    ///
    /// # Errors
    /// `InvalidArgument` when the family is gone, `Busy` when it would wait and may not, the cause
    /// when flushing fails.
    pub(crate) fn rotate(&self, log: &mut LogState, id: u32, no_stall: bool) -> Result<()> {
        self.rotate_locked(log, self.store.lock_state(), id, no_stall)
    }

    pub(super) fn rotate_locked(
        &self,
        log: &mut LogState,
        state: MutexGuard<'_, State>,
        id: u32,
        no_stall: bool,
    ) -> Result<()> {
        let mut state = self.wait_for_memtable(log, state, id, no_stall)?;
        if state.family_mut(id)?.mutable.is_empty() {
            return Ok(());
        }
        if self.store.health() == Health::Poisoned {
            return Err(self.store.refusal(&state));
        }
        self.make_immutables(log, state, &[id])
    }

    /// Makes the memtables of the families `ids` (ascending) immutable, at the cost of one new WAL; those that are empty, or
    /// have no place for one more, stay as they are.
    ///
    /// Requires: as [`WriteEnv::rotate`].
    ///
    /// # Errors
    /// Why there is no new WAL.
    pub(crate) fn rotate_together(&self, log: &mut LogState, ids: &[u32]) -> Result<()> {
        let state = self.store.lock_state();
        if self.store.health() == Health::Poisoned {
            return Err(self.store.refusal(&state));
        }
        let waits = self.store.memtables_wait(&state);
        let can_go = |id: &u32| {
            let family = state.families.get(id);
            family.is_some_and(|family| !family.mutable.is_empty() && !family.is_line_full())
        };
        let mut ids = ids.to_vec();
        ids.retain(|id| !waits && can_go(id));
        if ids.is_empty() {
            return Ok(());
        }
        self.make_immutables(log, state, &ids)
    }

    fn make_immutables(
        &self,
        log: &mut LogState,
        mut state: MutexGuard<'_, State>,
        ids: &[u32],
    ) -> Result<()> {
        self.switch_wal_or_degrade(log, &mut state)?;
        let wal = log.wal.number();
        for (id, family) in &mut state.families {
            if ids.binary_search(id).is_ok() {
                self.store.watch.notices.note(|| {
                    Notice::MemtableSealed(MemtableInfo {
                        family: family.family.name.clone(),
                        entries: family.mutable.entries() as u64,
                        deletions: family.mutable.deletions() as u64,
                        first_seqno: family.mutable.first_seqno().unwrap_or(0),
                        earliest_seqno: family.mutable_since,
                    })
                });
                make_immutable(family, wal);
                family.mutable_since = log.last_seqno;
            } else if family.mutable.is_empty() {
                // Nothing of an empty memtable is in older WALs.
                family.mutable_oldest_wal = wal;
            }
            family.note_new_wal();
        }
        drop(state);
        self.store.changes.fetch_add(1, Ordering::Relaxed);
        self.store.changed.notify_all();
        self.store
            .update_write_rate(self.store.id.env.clock.monotonic());
        Ok(())
    }

    fn switch_wal_or_degrade(&self, log: &mut LogState, state: &mut State) -> Result<()> {
        self.switch_wal(log, state).map_err(|error| {
            let to = match error.kind() {
                ErrorKind::NoSpace => Health::WriteStopped,
                _ => Health::Poisoned,
            };
            self.store.degrade(state, to, &error);
            error.context("no new WAL could be made")
        })
    }

    /// Whether the family may have one more immutable memtable.
    pub(crate) fn has_place(&self, state: &State, id: u32) -> bool {
        let family = state.families.get(&id);
        !family.is_some_and(FamilyState::is_line_full) && !self.store.memtables_wait(state)
    }

    /// The state, once the family may have one more immutable memtable.
    fn wait_for_memtable<'a>(
        &'a self,
        log: &LogState,
        mut state: MutexGuard<'a, State>,
        id: u32,
        no_stall: bool,
    ) -> Result<MutexGuard<'a, State>> {
        let (mut waited_since, mut told) = (None, None);
        loop {
            state.family_mut(id)?;
            if self.has_place(&state, id) {
                break;
            }
            self.store.check_open()?;
            let retried_here = self.store.runs_inline();
            if self.store.health() == Health::Poisoned || (state.flush_failing && !retried_here) {
                return Err(self.store.refusal(&state));
            }
            if no_stall {
                return Err(Error::new(ErrorKind::Busy, WaitCause::FullLine.as_str()));
            }
            waited_since.get_or_insert_with(|| self.store.id.env.clock.monotonic());
            if !retried_here {
                told.get_or_insert_with(|| Stop::begin(&self.store, id));
            }
            log.begin_stall(WaitCause::FullLine);
            state = self.background.help_or_wait(state)?;
        }
        if let Some(since) = waited_since {
            let wait = self.store.id.env.clock.monotonic().saturating_sub(since);
            self.store.watch.note_wait(wait, WaitCause::FullLine);
        }
        Ok(state)
    }

    /// Begins a new WAL file.
    ///
    /// Requires: every group logged before is published, or never will be.
    pub(crate) fn switch_wal(&self, log: &mut LogState, state: &mut State) -> Result<()> {
        let fresh = self.fresh_wal(&mut state.spare_wals)?;
        let number = fresh.number;
        log.wal.switch(fresh)?;
        state.wals.insert(number);
        Ok(())
    }

    /// A WAL nothing was written to yet: the one made ahead, or one made now.
    ///
    /// Requires: the state's lock is held, under which numbers of WAL files are taken.
    pub(crate) fn fresh_wal(&self, spares: &mut Vec<u64>) -> Result<FreshWal> {
        match self.store.files.preallocator.take() {
            Some(fresh) => Ok(fresh),
            None => self
                .store
                .files
                .preallocator
                .make(self.store.files.numbers.take(), spares.pop()),
        }
    }

    /// When WAL files pile up because some families write little, flushes those that hold the oldest; where no
    /// memtable holds any, for only log data was written, begins a new file that needs none of them.
    pub(super) fn bound_wal(&self, log: &mut LogState, no_stall: bool) -> Result<()> {
        log.wal
            .forget_below(self.store.oldest_wal.load(Ordering::Acquire));
        // What holds a prepared transaction and nothing else goes by no flush.
        let unflushed = self.store.oldest_unflushed_wal.load(Ordering::Acquire);
        if log.wal.live_bytes_from(unflushed) < self.wal_bytes_max() {
            return self.release_idle(log, unflushed, no_stall);
        }
        self.store.published.wait_settled(log.last_seqno);
        let state = self.store.lock_state();
        let holders = state.families.iter().filter(|(_, f)| !f.mutable.is_empty());
        let oldest = holders.clone().map(|(_, f)| f.mutable_oldest_wal).min();
        let Some(oldest) = oldest else {
            let is_flushing = state.families.values().any(|f| !f.immutables.is_empty());
            if !is_flushing {
                return self.drop_log_data(log, state);
            }
            if self.store.runs_inline() && !no_stall {
                drop(self.background.help_or_wait(state)?);
            }
            return Ok(());
        };
        let ids: Vec<u32> = holders
            .filter(|(_, family)| family.mutable_oldest_wal == oldest)
            .map(|(&id, _)| id)
            .collect();
        let waits = ids.iter().find(|id| !self.has_place(&state, **id)).copied();
        drop(state);
        self.rotate_together(log, &ids)?;
        match waits {
            // A writer that may not wait may exceed the bound.
            Some(id) if !no_stall => match self.rotate(log, id, false) {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => Ok(()), // It was dropped.
                rotated => rotated,
            },
            _ => Ok(()),
        }
    }

    /// Flushes families that nothing was written to for a while, together, when they hold more than a memtable's worth of
    /// WAL beside what the others need. Those that are written to are not: their tables would be small for ever.
    fn release_idle(&self, log: &mut LogState, unflushed: u64, no_stall: bool) -> Result<()> {
        let live = log.wal.live_bytes_from(unflushed);
        let families = self.store.families.load();
        let largest = families.values().map(|family| family.write_buffer()).max();
        let largest = largest.unwrap_or(0);
        // The usual case takes no lock.
        if families.len() < 2
            || live < largest as u64
            || drumlin_base::bug!("idle-families-keep-wal")
        {
            return Ok(());
        }
        self.store.published.wait_settled(log.last_seqno);
        let state = self.store.lock_state();
        let (idle, busy): (Vec<_>, Vec<_>) =
            state.families.iter().partition(|(_, it)| it.is_idle());
        let used: usize = busy.iter().map(|(_, family)| family.memtable_bytes()).sum();
        let allowed = (used + largest) as u64;
        let holds = |family: &FamilyState| {
            let bytes = log.wal.live_bytes_from(family.mutable_oldest_wal);
            !family.mutable.is_empty() && bytes > allowed
        };
        let idle = idle.into_iter().filter(|(_, family)| holds(family));
        let ids: Vec<u32> = idle.map(|(&id, _)| id).collect();
        drop(state);
        if ids.is_empty() {
            return Ok(());
        }
        self.rotate_together(log, &ids)?;
        if self.store.runs_inline() && !no_stall {
            // Nobody else does.
            let mut ids = ids.into_iter();
            ids.try_for_each(|id| self.background.wait_for_flushed(id).map(drop))?;
        }
        Ok(())
    }

    /// Begins a new WAL and records in the MANIFEST that no older one is needed.
    fn drop_log_data(&self, log: &mut LogState, mut state: MutexGuard<'_, State>) -> Result<()> {
        self.switch_wal_or_degrade(log, &mut state)?;
        if self.store.prepared.were_any() {
            // The MANIFEST will say which of the older ones have sections.
            let synced = self.store.files.unsynced_wals.sync();
            synced.inspect_err(|error| self.store.degrade(&mut state, Health::Poisoned, error))?;
        }
        let wal = log.wal.number();
        let mut edits = Vec::new();
        for (&id, family) in &mut state.families {
            family.mutable_oldest_wal = wal;
            edits.push(VersionEdit {
                column_family: id,
                log_number: Some(wal),
                ..VersionEdit::default()
            });
        }
        self.store.log_and_apply(&mut state, edits)?;
        self.store.remove_obsolete(&mut state);
        Ok(())
    }

    /// The bound of all WAL files: twice the unflushed bytes, and on top of that two of the largest
    /// memtables. So it grows with the families' contents, not with their number.
    fn wal_bytes_max(&self) -> u64 {
        self.store.settings.wal_bytes_max().unwrap_or_else(|| {
            let families = self.store.families.load();
            let largest = families.values().map(|family| family.write_buffer()).max();
            let held = self.store.caches.budget.used(MemoryUse::Memtables);
            2 * held.min(self.store.memtables_share()) as u64 + 2 * largest.unwrap_or(0) as u64
        })
    }
}

/// Writers of a family wait for a memtable, until it is dropped, as the listener is told.
struct Stop<'a> {
    store: &'a Store,
    family: u32,
}

impl<'a> Stop<'a> {
    fn begin(store: &'a Store, family: u32) -> Self {
        let tell = |id, from, to| store.note_pressure(id, from, to);
        store.watch.board.begin_stop(family, &tell);
        Self { store, family }
    }
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let tell = |id, from, to| self.store.note_pressure(id, from, to);
        self.store.watch.board.end_stop(self.family, &tell);
    }
}

/// Moves the mutable memtable to the immutables and shows readers the change.
pub(crate) fn make_immutable(family: &mut FamilyState, wal: u64) {
    assert!(
        wal > family.mutable_oldest_wal,
        "a new memtable has a newer WAL than the full one"
    );
    let fresh = family.family.fresh_memtable();
    let memtable = std::mem::replace(&mut family.mutable, fresh);
    family.immutables.push_back(Immutable {
        memtable,
        oldest_wal: family.mutable_oldest_wal,
    });
    family.mutable_oldest_wal = wal;
    family.install();
}
