//! The steps of two-phase commit on the write path, and the transactions that are prepared.
//!
//! A prepared section is logged and not applied. Its commit logs a marker alone, and what the section has is applied, with
//! the numbers that come next. So each step logs something else than it applies, and is a group of its own.
//!
//! Invariant: a section is in the list of the prepared, with its WAL, from when it is logged until its end is; both are
//! noted with the lead, before another WAL can begin.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin_base::limits::BATCH_BYTES_MAX;
use drumlin_base::sync::Mutex;
use drumlin_base::{Error, ErrorKind, Result};

use crate::version::SectionWals;
use crate::write::batch::WriteBatch;

/// A step that a transaction takes.
#[derive(Debug)]
pub(crate) enum Phase {
    /// These writes are logged to be made later.
    Prepare(Arc<WriteBatch>),
    /// They are made.
    Commit,
    /// They are given up.
    Rollback,
}

/// One step of the transaction `name`.
#[derive(Debug)]
pub(crate) struct TwoPhase {
    pub(crate) name: Arc<[u8]>,
    pub(crate) phase: Phase,
    /// What is logged of it.
    pub(crate) record: WriteBatch,
}

impl TwoPhase {
    /// The step `phase` of the transaction `name`.
    ///
    /// # Errors
    /// `TooLarge` where the section is longer than a batch may be.
    pub(crate) fn new(name: &[u8], phase: Phase) -> Result<Self> {
        let mut record = WriteBatch::new();
        match &phase {
            Phase::Prepare(writes) => {
                check_len(writes.len() + name.len())?;
                record.put_prepared(name, writes)?;
            }
            Phase::Commit => record.put_commit(name)?,
            Phase::Rollback => record.put_rollback(name)?,
        }
        let name = Arc::from(name);
        Ok(Self {
            name,
            phase,
            record,
        })
    }

    /// Has a commit log `writes`, which the section has, once more: whoever follows changes then needs no older WAL. Not
    /// where the record would be too large.
    pub(crate) fn carry(&mut self, writes: &WriteBatch) {
        let mut record = WriteBatch::new();
        let carried = record
            .put_rollback(&self.name)
            .and_then(|()| record.put_prepared(&self.name, writes))
            .and_then(|()| record.put_commit(&self.name));
        if carried.is_ok() {
            self.record = record;
        }
    }
}

/// Refuses a section that a recovery could not log anew: there its record has a marker and marks of the WAL beside it.
fn check_len(bytes: usize) -> Result<()> {
    /// More than the marker, with the longest name, and all marks take.
    const BESIDE_BYTES: usize = 4 << 10;
    match bytes > BATCH_BYTES_MAX - BESIDE_BYTES
        && !drumlin_base::bug!("section-too-large-to-carry")
    {
        true => {
            let message = format!("what is prepared has {bytes} bytes, too many to be logged anew");
            Err(Error::new(ErrorKind::TooLarge, message))
        }
        false => Ok(()),
    }
}

/// A section that waits for its end.
#[derive(Debug)]
struct Section {
    wal: u64,
    writes: Arc<WriteBatch>,
}

/// The transactions that are prepared, by name. Any thread; the lock is a leaf.
#[derive(Debug)]
pub(crate) struct PreparedSections {
    sections: Mutex<BTreeMap<Arc<[u8]>, Section>>,
    wals: Arc<SectionWals>,
}

impl PreparedSections {
    /// None yet; their WAL files are noted in `wals`.
    pub(crate) fn new(wals: Arc<SectionWals>) -> Self {
        Self {
            sections: Mutex::default(),
            wals,
        }
    }

    /// Notes that `step` was logged in `wal`.
    ///
    /// Requires: the lead.
    pub(crate) fn note(&self, step: &TwoPhase, wal: u64) {
        match &step.phase {
            Phase::Prepare(writes) => self.add(&step.name, writes, wal),
            Phase::Commit => {
                if let Some(section) = self.sections.lock().remove(&step.name) {
                    self.wals.committed(section.wal, wal);
                }
            }
            Phase::Rollback => {
                if let Some(section) = self.sections.lock().remove(&step.name) {
                    self.wals.rolled_back(section.wal);
                }
            }
        }
    }

    /// Whether there was one since the database was opened.
    pub(crate) fn were_any(&self) -> bool {
        self.wals.is_used()
    }

    /// Notes a section in `wal`.
    pub(crate) fn add(&self, name: &Arc<[u8]>, writes: &Arc<WriteBatch>, wal: u64) {
        self.wals.prepared(wal);
        let writes = Arc::clone(writes);
        let section = Section { wal, writes };
        self.sections.lock().insert(Arc::clone(name), section);
    }

    /// What the transaction `name` will write.
    pub(crate) fn writes_of(&self, name: &[u8]) -> Option<Arc<WriteBatch>> {
        let sections = self.sections.lock();
        sections
            .get(name)
            .map(|section| Arc::clone(&section.writes))
    }

    /// Each, with its writes, in the order of the names.
    pub(crate) fn all(&self) -> Vec<(Arc<[u8]>, Arc<WriteBatch>)> {
        let sections = self.sections.lock();
        let copy = |(name, section): (&Arc<[u8]>, &Section)| {
            (Arc::clone(name), Arc::clone(&section.writes))
        };
        sections.iter().map(copy).collect()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: whatever is prepared can be logged anew beside the largest marker and marks. Method: lengths at the limit.
    use super::*;
    use crate::wal::log::WalMark;
    use crate::wal::record::SyncedMark;

    #[test]
    fn what_is_accepted_fits_beside_what_a_recovery_adds() {
        let name = [b'n'; 512];
        let mut beside = WriteBatch::new();
        let synced = SyncedMark {
            log_number: u64::MAX,
            bytes: u64::MAX,
        };
        let marks = [
            WalMark::Synced(synced),
            WalMark::Again { from: u64::MAX },
            WalMark::Began {
                unix_seconds: u64::MAX,
            },
        ];
        for mark in marks {
            beside.put_log_data(&mark.encode()).expect("it is short");
        }
        beside.put_rollback(&name).expect("it is short");
        beside
            .put_prepared(&name, &WriteBatch::new())
            .expect("it is short");
        let mut accepted = BATCH_BYTES_MAX;
        while check_len(accepted).is_err() {
            accepted -= 1;
        }
        assert!(accepted - name.len() + beside.len() <= BATCH_BYTES_MAX);
        assert!(
            accepted > BATCH_BYTES_MAX - (8 << 10),
            "no more than is needed"
        );
    }
}
