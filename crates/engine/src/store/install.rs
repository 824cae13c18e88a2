//! Installing results of jobs: one MANIFEST edit, then the new versions for readers.
//!
//! Invariant: nothing else changes a family's version.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::{Error, ErrorKind, Result};

use crate::store::state::State;
use crate::store::store::Store;
use crate::version::{Version, VersionEdit, VersionSet};
use crate::watch::events::Health;

impl Store {
    /// Logs `edits` to the MANIFEST and shows every family its new version.
    pub(crate) fn log_and_apply(&self, state: &mut State, edits: Vec<VersionEdit>) -> Result<()> {
        self.edit_manifest(state, |versions| versions.log_and_apply(edits))?;
        self.show_versions(state, None)
    }

    /// As [`Store::log_and_apply`], for a flush of the `flushed.1` oldest memtables of family
    /// `flushed.0`: they leave in the same step in which their table comes. A reader that saw both
    /// would apply each merge operand twice.
    pub(crate) fn log_flush(
        &self,
        state: &mut State,
        edits: Vec<VersionEdit>,
        flushed: (u32, usize),
    ) -> Result<()> {
        let logged = self.edit_manifest(state, |versions| versions.log_and_apply(edits));
        if !drumlin_base::bug!("memtable-freed-though-flush-failed") {
            logged?;
        }
        self.show_versions(state, Some(flushed))
    }

    /// Syncs every closed WAL. Call before installing a table that a flush made or an ingest took in: its writes become
    /// durable with it, and a power cut must not keep them and lose another family's older ones. With one family there
    /// is no other, and nothing is synced, unless changes are kept: what is in tables must be among them. It is synced
    /// as well where something was prepared: the MANIFEST will say that its WAL has it.
    pub(crate) fn sync_closed_wals(&self) -> Result<()> {
        let is_needed = self.families.load().len() > 1
            || self.files.archive.is_on()
            || self.prepared.were_any();
        if !is_needed || drumlin_base::bug!("flush-before-wal-sync") {
            return Ok(());
        }
        self.files.unsynced_wals.sync().inspect_err(|error| {
            self.degrade(&mut self.lock_state(), Health::Poisoned, error);
        })
    }

    fn show_versions(&self, state: &mut State, flushed: Option<(u32, usize)>) -> Result<()> {
        let State {
            versions, families, ..
        } = state;
        for (id, family) in families.iter_mut() {
            let current = current_version(versions, *id)?;
            let leaving = flushed.filter(|flushed| flushed.0 == *id);
            let leaving = leaving.map_or(0, |flushed| flushed.1);
            assert!(
                leaving <= family.immutables.len(),
                "only memtables that wait are flushed"
            );
            if leaving == 0 && Arc::ptr_eq(&current, &family.version) {
                continue;
            }
            self.changes.fetch_add(1, Ordering::Relaxed);
            family.version = current;
            family.immutables.drain(..leaving);
            family.install();
        }
        Ok(())
    }

    /// Runs one change of the MANIFEST. A failure that leaves it in doubt what is on disk poisons
    /// the database; a full disk only stops the job that wanted the change.
    pub(crate) fn edit_manifest<R>(
        &self,
        state: &mut State,
        change: impl FnOnce(&mut VersionSet) -> Result<R>,
    ) -> Result<R> {
        if state.closed {
            self.check_open()?;
        }
        if self.health() == Health::Poisoned {
            return Err(self.refusal(state));
        }
        let changed = change(&mut state.versions);
        if let Some(healed) = state.versions.take_healed() {
            // A new MANIFEST took the place of the one that could not be written.
            self.watch.report_error(&healed);
        }
        changed.map_err(|error| {
            let to = match error.kind() {
                ErrorKind::InvalidArgument => return error,
                ErrorKind::NoSpace | ErrorKind::Corruption => Health::BackgroundPaused,
                _ => Health::Poisoned,
            };
            self.degrade(state, to, &error);
            error.context("the MANIFEST could not be written")
        })
    }
}

/// The present version of family `id`.
pub(crate) fn current_version(versions: &VersionSet, id: u32) -> Result<Arc<Version>> {
    match versions.family(id) {
        Some(family) => Ok(Arc::clone(&family.current)),
        None => Err(Error::invalid_argument(format!(
            "there is no column family {id}"
        ))),
    }
}
