//! Making room: new memtables, new WAL files.

use std::sync::atomic::Ordering;

use drumlin_base::sync::MutexGuard;
use drumlin_base::{Error, ErrorKind, MemoryUse, Result, ValueKind};

use crate::db::engine::{Engine, FamilyState, Immutable, State};
use crate::version::VersionEdit;
use crate::watch::events::Health;
use crate::watch::waits::WaitCause;
use crate::write::leader::{Leader, PendingWrite};

/// The share of itself that a full memtable may take on top while somebody holds the state: it may be
/// a job that syncs the MANIFEST, and at a bad moment a sync takes a tenth of a second.
const OVERFILL: usize = 2;

impl Engine {
    /// Returns when the group may be written. The usual case touches two atomics.
    pub(crate) fn make_room(&self, leader: &mut Leader, own: &PendingWrite) -> Result<()> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::Shutdown,
                "the database is being closed",
            ));
        }
        if self.health() >= Health::WriteStopped || !leader.wal.is_open() {
            self.try_resume(leader)?;
        }
        self.check_space(own)?;
        self.slow_down(leader, own.no_stall)?;
        self.bound_memtables();
        if !self.full.any() {
            // What is only logged fills no memtable.
            return match leader.wal.is_due_for_look() {
                true => self.bound_wal(leader, own.no_stall),
                false => Ok(()),
            };
        }
        // Groups before this one still fill the memtables; what they find full is noted by then.
        self.published.wait_for(leader.last_seqno);
        let mut state = self.state.try_lock();
        if state.is_none() && self.may_overfill() {
            return Ok(());
        }
        while let Some(id) = self.full.last() {
            let state = state.take().unwrap_or_else(|| self.lock_state());
            let rotated = self.rotate_locked(leader, state, id, own.no_stall);
            if rotated
                .as_ref()
                .is_err_and(|error| error.kind() != ErrorKind::InvalidArgument)
            {
                return rotated; // `InvalidArgument`: the family was dropped, nothing is full.
            }
            self.full.remove(id);
        }
        drop(state);
        self.bound_wal(leader, own.no_stall)
    }

    /// Whether no memtable has taken more than its size and some on top.
    fn may_overfill(&self) -> bool {
        self.families.load().values().all(|family| {
            let most = family.write_buffer + family.write_buffer / OVERFILL;
            family.view.load().memtable.bytes() < most
        })
    }

    /// After a full disk: tries a fresh WAL, and if there is room for one, all is well again.
    fn try_resume(&self, leader: &mut Leader) -> Result<()> {
        self.published.wait_for(leader.last_seqno);
        let mut state = self.lock_state();
        if self.health() == Health::Poisoned {
            return Err(self.refusal(&state));
        }
        match self.switch_wal(leader, &mut state) {
            Ok(()) => {
                self.recover_health(&mut state);
                Ok(())
            }
            Err(error) => {
                self.degrade(&mut state, Health::WriteStopped, &error);
                Err(error.context("writes are still refused"))
            }
        }
    }

    /// Refuses what would fill the disk.
    fn check_space(&self, own: &PendingWrite) -> Result<()> {
        let only_deletes = || {
            let mut records = own.batch.iter();
            records.all(|record| record.is_ok_and(|record| is_deletion(record.kind)))
        };
        match self.space.admit(own.batch.len(), only_deletes) {
            Err(error) if error.kind() != ErrorKind::NoSpace => {
                // Not to know how much is free is no reason to refuse.
                self.tell(&error);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Makes the family's memtable immutable and gives it a fresh one with a fresh WAL. Waits for
    /// a flush when every memtable is full.
    ///
    /// Requires: every group logged before is published, or never will be.
    ///
    /// # Errors
    /// `InvalidArgument` when the family is gone, `Busy` when it would wait and may not, the cause
    /// when flushing fails.
    pub(crate) fn rotate(&self, leader: &mut Leader, id: u32, no_stall: bool) -> Result<()> {
        self.rotate_locked(leader, self.lock_state(), id, no_stall)
    }

    fn rotate_locked(
        &self,
        leader: &mut Leader,
        state: MutexGuard<'_, State>,
        id: u32,
        no_stall: bool,
    ) -> Result<()> {
        let mut state = self.wait_for_memtable(state, id, no_stall)?;
        if state.family_mut(id)?.mutable.is_empty() {
            return Ok(());
        }
        if self.health() == Health::Poisoned {
            return Err(self.refusal(&state));
        }
        self.retire(leader, state, &[id])
    }

    /// Makes the memtables of the families `ids` immutable, at the cost of one new WAL; those that are empty, or
    /// have no place for one more, stay as they are.
    ///
    /// Requires: as [`Engine::rotate`].
    ///
    /// # Errors
    /// Why there is no new WAL.
    pub(crate) fn rotate_together(&self, leader: &mut Leader, ids: &[u32]) -> Result<()> {
        let state = self.lock_state();
        if self.health() == Health::Poisoned {
            return Err(self.refusal(&state));
        }
        let can_go = |id: &u32| {
            let family = state.families.get(id);
            family.is_some_and(|family| !family.mutable.is_empty()) && self.has_place(&state, *id)
        };
        let ids: Vec<u32> = ids.iter().copied().filter(can_go).collect();
        match ids.is_empty() {
            true => Ok(()),
            false => self.retire(leader, state, &ids),
        }
    }

    fn retire(
        &self,
        leader: &mut Leader,
        mut state: MutexGuard<'_, State>,
        ids: &[u32],
    ) -> Result<()> {
        self.switch_wal_or_degrade(leader, &mut state)?;
        let wal = leader.wal.number();
        for (id, family) in &mut state.families {
            if ids.contains(id) {
                retire_mutable(family, wal);
            } else if family.mutable.is_empty() {
                // Nothing of an empty memtable is in older WALs.
                family.mutable_wal = wal;
            }
        }
        drop(state);
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
        self.look(self.env.clock.monotonic());
        Ok(())
    }

    fn switch_wal_or_degrade(&self, leader: &mut Leader, state: &mut State) -> Result<()> {
        self.switch_wal(leader, state).map_err(|error| {
            let to = match error.kind() {
                ErrorKind::NoSpace => Health::WriteStopped,
                _ => Health::Poisoned,
            };
            self.degrade(state, to, &error);
            error.context("no new WAL could be made")
        })
    }

    /// Whether the family may have one more immutable memtable.
    pub(crate) fn has_place(&self, state: &State, id: u32) -> bool {
        let family = state.families.get(&id);
        let line = family
            .is_none_or(|family| 1 + family.immutables.len() < family.family.tuning.memtables_max);
        line && !self.memtables_wait(state)
    }

    /// The state, with room for one more immutable memtable of the family.
    fn wait_for_memtable<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        id: u32,
        no_stall: bool,
    ) -> Result<MutexGuard<'a, State>> {
        let mut waited_since = None;
        loop {
            state.family_mut(id)?;
            if self.has_place(&state, id) {
                break;
            }
            self.check_open()?;
            let retried_here = self.options.background_threads == Some(0);
            if self.health() == Health::Poisoned || (state.flush_failing && !retried_here) {
                return Err(self.refusal(&state));
            }
            if no_stall {
                return Err(Error::new(ErrorKind::Busy, WaitCause::FullLine.as_str()));
            }
            waited_since.get_or_insert_with(|| self.env.clock.monotonic());
            state = self.help_or_wait(state)?;
        }
        if let Some(since) = waited_since {
            let wait = self.env.clock.monotonic().saturating_sub(since);
            self.note_wait(wait, WaitCause::FullLine);
        }
        Ok(state)
    }

    /// Begins a new WAL file.
    ///
    /// Requires: every group logged before is published, or never will be.
    pub(crate) fn switch_wal(&self, leader: &mut Leader, state: &mut State) -> Result<()> {
        let fresh = self.fresh_wal(&mut state.spare_wals)?;
        let number = fresh.number;
        leader.wal.switch(fresh)?;
        state.wals.insert(number);
        Ok(())
    }

    /// When WAL files pile up because some families write little, flushes those that hold the oldest; where no
    /// memtable holds any, for only log data was written, begins a new file that needs none of them.
    fn bound_wal(&self, leader: &mut Leader, no_stall: bool) -> Result<()> {
        leader
            .wal
            .forget_below(self.oldest_wal.load(Ordering::Acquire));
        if leader.wal.live_bytes() < self.wal_bytes_max() {
            return Ok(());
        }
        self.published.wait_for(leader.last_seqno);
        let state = self.lock_state();
        let holders = state.families.iter().filter(|(_, f)| !f.mutable.is_empty());
        let oldest = holders.clone().map(|(_, f)| f.mutable_wal).min();
        let Some(oldest) = oldest else {
            let is_flushing = state.families.values().any(|f| !f.immutables.is_empty());
            if !is_flushing {
                return self.let_go_of_log_data(leader, state);
            }
            if self.options.background_threads == Some(0) && !no_stall {
                drop(self.help_or_wait(state)?);
            }
            return Ok(());
        };
        let ids: Vec<u32> = holders
            .filter(|(_, family)| family.mutable_wal == oldest)
            .map(|(&id, _)| id)
            .collect();
        let waits = ids.iter().find(|id| !self.has_place(&state, **id)).copied();
        drop(state);
        self.rotate_together(leader, &ids)?;
        match waits {
            // A bound may be passed by who must not wait.
            Some(id) if !no_stall => match self.rotate(leader, id, false) {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => Ok(()), // It was dropped.
                rotated => rotated,
            },
            _ => Ok(()),
        }
    }

    /// Begins a new WAL and tells the MANIFEST that no older one is needed.
    fn let_go_of_log_data(
        &self,
        leader: &mut Leader,
        mut state: MutexGuard<'_, State>,
    ) -> Result<()> {
        self.switch_wal_or_degrade(leader, &mut state)?;
        let wal = leader.wal.number();
        let mut edits = Vec::new();
        for (&id, family) in &mut state.families {
            family.mutable_wal = wal;
            edits.push(VersionEdit {
                column_family: id,
                log_number: Some(wal),
                ..VersionEdit::default()
            });
        }
        self.log_and_apply(&mut state, edits)?;
        self.remove_obsolete(&mut state);
        Ok(())
    }

    /// What WAL files may come to: twice what is in memory only, and on top of that two of the largest
    /// memtables. So it does not grow with the number of families, but with what they hold.
    fn wal_bytes_max(&self) -> u64 {
        self.options.tuning.wal_bytes_max.unwrap_or_else(|| {
            let families = self.families.load();
            let largest = families.values().map(|family| family.write_buffer).max();
            let held = self.budget.used(MemoryUse::Memtables);
            2 * held.min(self.memtables_share()) as u64 + 2 * largest.unwrap_or(0) as u64
        })
    }
}

fn is_deletion(kind: ValueKind) -> bool {
    use ValueKind::{Deletion, RangeDeletion, SingleDeletion};
    matches!(kind, Deletion | SingleDeletion | RangeDeletion)
}

/// Moves the mutable memtable to the immutables and shows readers the change.
pub(crate) fn retire_mutable(family: &mut FamilyState, wal: u64) {
    let fresh = family.family.fresh_memtable();
    let memtable = std::mem::replace(&mut family.mutable, fresh);
    family.immutables.push_back(Immutable {
        memtable,
        wal: family.mutable_wal,
    });
    family.mutable_wal = wal;
    family.install();
}
