//! Pausing the background: no flush and no compaction begins, or no file goes, until it goes on.

use drumlin_base::{Error, Result};

use crate::db::handle::Db;

impl Db {
    /// Has no flush and no compaction begin until [`Db::continue_background`], and returns when none runs any more: for
    /// copying the directory, or for an hour that shall have the disk to itself. Pauses add up. Meanwhile writers wait
    /// when memtables are full, and calls that wait for flushes, compactions or the background wait. Closing ends it.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn pause_background(&self) -> Result<()> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        let mut state = store.lock_state();
        state.pauses += 1;
        while state.flushes_running + state.compactions_running > 0
            && !drumlin_base::bug!("pause-waits-for-nobody")
        {
            if let Err(error) = store.check_open() {
                state.pauses = state.pauses.saturating_sub(1); // Closing may have ended it.
                return Err(error);
            }
            state = store.wait_for_background(state);
        }
        Ok(())
    }

    /// Ends a pause; after the last one jobs begin again.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none.
    pub fn continue_background(&self) -> Result<()> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        let mut state = store.lock_state();
        let Some(left) = state.pauses.checked_sub(1) else {
            let message = "the background goes on already: nobody paused it";
            return Err(Error::invalid_argument(message));
        };
        state.pauses = left;
        store.changed.notify_all();
        Ok(())
    }

    /// Has no file of the database removed until [`Db::continue_removal`]: tables, blob files, WAL files and MANIFESTs
    /// that are needed now stay, though nothing needs them any more, and take space; flushes and compactions go on. For a program that
    /// copies files by their names. A WAL file that is live goes on growing, and so does the MANIFEST. Pauses add up.
    /// Closing ends it.
    ///
    /// # Errors
    /// `NotSupported` for a database that is read only, which removes nothing; `Shutdown`.
    pub fn pause_removal(&self) -> Result<()> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        store.check_writable()?;
        store.lock_state().removal_pauses += 1;
        Ok(())
    }

    /// Ends a pause; after the last one removes, on this thread, what nothing needs any more, but for large files that are
    /// kept for new ones to be written in their place.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none; `Shutdown`.
    pub fn continue_removal(&self) -> Result<()> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        let mut state = store.lock_state();
        let Some(left) = state.removal_pauses.checked_sub(1) else {
            let message = "files are removed already: nobody paused it";
            return Err(Error::invalid_argument(message));
        };
        state.removal_pauses = match drumlin_base::bug!("removal-pauses-end-at-once") {
            true => 0,
            false => left,
        };
        if state.removal_pauses == 0 {
            drop(state);
            store.finish_removal();
        }
        Ok(())
    }

    /// Removes, on this thread, what nothing needs any more; returns when it is gone. The background does so soon by itself.
    /// Large files that are kept for new ones to be written in their place stay, as do all while removal is paused.
    ///
    /// # Errors
    /// `ReadOnly`, `Poisoned`; `Shutdown`. A file that cannot be removed is told to the listener.
    pub fn finish_removal(&self) -> Result<()> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        store.check_writable()?;
        store.finish_removal();
        Ok(())
    }
}
