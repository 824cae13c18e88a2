//! Pausing the background: no flush and no compaction begins until it goes on.

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
}
