//! What writers hand to the one among them that leads, and what belongs to the lead.

use std::time::Duration;

use drumlin_base::SeqNo;

use crate::batch::WriteBatch;
use crate::pressure::Toll;
use crate::wal::Wal;

/// What a writer asks of the leader.
#[derive(Debug)]
pub(crate) enum Request {
    /// Apply a batch.
    Write(PendingWrite),
    /// Nothing: the caller wants the lead itself, with no writer beside it.
    Lead,
}

/// A batch and how it is to be written.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    pub(crate) batch: WriteBatch,
    pub(crate) sync: bool,
    pub(crate) no_wal: bool,
    pub(crate) no_stall: bool,
}

/// What belongs to whoever leads.
#[derive(Debug)]
pub(crate) struct Leader {
    pub(crate) wal: Wal,
    pub(crate) last_seqno: SeqNo,
    /// Families whose memtable is full.
    pub(crate) full: Vec<u32>,
    /// Where groups of several batches are put together.
    pub(crate) scratch: WriteBatch,
    /// What was written and is not paid for yet.
    pub(crate) toll: Toll,
    /// When the leader last looked whether writers must be slowed.
    pub(crate) looked_at: Duration,
}

impl Leader {
    pub(crate) fn new(wal: Wal, last_seqno: SeqNo) -> Self {
        Self {
            wal,
            last_seqno,
            full: Vec::new(),
            scratch: WriteBatch::new(),
            toll: Toll::default(),
            looked_at: Duration::ZERO,
        }
    }
}
