//! A prepared transaction, which waits for its end: the second phase of two-phase commit.

use std::fmt;

use drumlin_base::{Result, SeqNo};

use crate::options::settings::WriteOptions;
use crate::txn::core::Core;
use crate::write::batch::WriteBatch;
use crate::write::two_phase::{Phase, TwoPhase};

/// A transaction that was prepared: its writes are in the log, nobody sees them, its locks are held.
///
/// [`Prepared::commit`] or [`Prepared::rollback`] ends it. Dropping it leaves it prepared, and so does the end of the
/// process: [`crate::TransactionDb::prepared`] gives it again, also after the database was opened anew. Any thread; the
/// first that ends it does.
#[must_use = "a prepared transaction stays until it is committed or rolled back"]
pub struct Prepared<'db> {
    core: &'db Core,
    name: Vec<u8>,
}

impl fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.escape_ascii().to_string();
        f.debug_struct("Prepared")
            .field("name", &name)
            .finish_non_exhaustive()
    }
}

impl<'db> Prepared<'db> {
    /// The transaction that is prepared as `name`.
    pub(crate) fn new(core: &'db Core, name: &[u8]) -> Self {
        let name = name.to_vec();
        Self { core, name }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Makes its writes, all at once, and lets go of its locks. Returns the last sequence number; readers see it all
    /// already. What it wrote to families that were dropped meanwhile is gone with them.
    ///
    /// # Errors
    /// As [`crate::Db::write`]; `InvalidArgument` for a write without the WAL; `NotFound` where it was ended already,
    /// `Busy` where another thread is ending it. It stays prepared; after a failed sync the next open decides whether it
    /// was committed.
    pub fn commit(self) -> Result<SeqNo> {
        self.commit_with(&WriteOptions::default())
    }

    /// As [`Prepared::commit`], with options of the write.
    ///
    /// # Errors
    /// As [`Prepared::commit`].
    pub fn commit_with(self, options: &WriteOptions) -> Result<SeqNo> {
        self.end(Phase::Commit, options)
    }

    /// Gives its writes up and lets go of its locks.
    ///
    /// # Errors
    /// As [`Prepared::commit`].
    pub fn rollback(self) -> Result<()> {
        self.rollback_with(&WriteOptions::default())
    }

    /// As [`Prepared::rollback`], with options of the write.
    ///
    /// # Errors
    /// As [`Prepared::commit`].
    pub fn rollback_with(self, options: &WriteOptions) -> Result<()> {
        self.end(Phase::Rollback, options).map(drop)
    }

    fn end(&self, phase: Phase, options: &WriteOptions) -> Result<SeqNo> {
        let standing = self.core.take_standing(&self.name)?;
        let mut batch = match phase {
            Phase::Commit => WriteBatch::clone(&standing.writes),
            _ => WriteBatch::new(),
        };
        let step = TwoPhase::new(&self.name, phase);
        let ended = step.and_then(|step| self.core.db.write_step(step, &mut batch, options));
        if let Err(error) = ended {
            self.core.stand(&self.name, standing);
            return Err(error);
        }
        self.core.free_name(&self.name);
        self.core.unlock(standing.owner, standing.locks.into_iter());
        Ok(batch.last_seqno())
    }
}
