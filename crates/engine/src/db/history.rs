//! Reads of the past.

use drumlin_base::{Error, Result};

use crate::db::handle::Db;
use crate::family::snapshot::Snapshot;
use crate::maintenance::history;
use crate::version::PastMoment;

impl Db {
    /// The database as it was at a time, in seconds since 1970: at the newest moment that was marked and is not later, for
    /// every kind of read. See [`crate::Options::keep_history`].
    ///
    /// What a family that was dropped since had is not seen. It is no past of tables that were taken out by
    /// [`Db::delete_files_in_range`] or the FIFO style, of what a compaction filter dropped, and of families that came
    /// with their tables.
    ///
    /// # Errors
    /// `NotFound` where history is kept from later on, or not at all; `NotSupported` of a [`crate::Follower`].
    pub fn snapshot_at(&self, unix_seconds: u64) -> Result<Snapshot> {
        let _call = self.engine.store.begin_call()?;
        if self.engine.store.id.follows {
            let message = "a follower's past: open the database for reading";
            return Err(Error::not_supported(message));
        }
        self.engine.store.history.at(unix_seconds)
    }

    /// The moments that can be read at, the oldest first.
    pub fn past_moments(&self) -> Vec<PastMoment> {
        self.engine.store.history.get().marked
    }

    /// Marks the present as a moment that can be read at, as a thread does again and again
    /// ([`crate::KeepHistory::every`]). It syncs the WAL.
    ///
    /// There are no two moments within a second, and none where nothing was written since the last.
    ///
    /// # Errors
    /// `InvalidArgument` where no history is kept; `ReadOnly`, `Poisoned`, `NoSpace`, `Io`.
    pub fn mark_moment(&self) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        history::mark(&self.engine)
    }
}
