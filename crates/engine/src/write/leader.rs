//! What writers hand to the one among them that leads, and what belongs to the lead.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, Ordering};
use drumlin_base::{Error, Result, SeqNo};

use crate::wal::log::{Wal, WalSync};
use crate::watch::pressure::Toll;
use crate::write::batch::WriteBatch;
use crate::write::published::Span;
use crate::write::queue::Follower;

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

/// Writers whose batches go into the log together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) own: PendingWrite,
    pub(crate) followers: Vec<(Request, Arc<Follower<Request>>)>,
    pub(crate) span: Span,
}

impl Group {
    /// The batches, the leader's first.
    pub(crate) fn batches(&self) -> impl Iterator<Item = &WriteBatch> {
        let followers = self.followers.iter();
        let followers = followers.filter_map(|(request, _)| match request {
            Request::Write(write) => Some(&write.batch),
            Request::Lead => None,
        });
        std::iter::once(&self.own.batch).chain(followers)
    }

    /// Gives the batches the sequence numbers after `before`.
    pub(crate) fn number(&mut self, before: SeqNo) {
        let mut last = before;
        let followers = self.followers.iter_mut();
        let followers = followers.filter_map(|(request, _)| match request {
            Request::Write(write) => Some(&mut write.batch),
            Request::Lead => None,
        });
        for batch in std::iter::once(&mut self.own.batch).chain(followers) {
            batch.set_seqno(last + 1);
            last += match drumlin_base::bug!("group-numbers-overlap") {
                true => 1,
                false => u64::from(batch.count()),
            };
        }
        self.span = Span { before, last };
    }

    /// Bytes of all batches.
    pub(crate) fn bytes(&self) -> usize {
        self.batches().map(WriteBatch::len).sum()
    }

    /// Ends the followers' wait.
    pub(crate) fn complete(self, outcome: &Result<()>) {
        for (_, follower) in self.followers {
            let told = outcome.as_ref().map_err(Error::duplicate).copied();
            follower.complete(match drumlin_base::bug!("followers-told-of-success") {
                true => Ok(()),
                false => told,
            });
        }
    }
}

/// A group in the log that is not yet synced.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) group: Group,
    pub(crate) sync: WalSync,
}

/// What belongs to whoever leads.
#[derive(Debug)]
pub(crate) struct Leader {
    pub(crate) wal: Wal,
    /// The end of the last group logged, which may not be published yet.
    pub(crate) last_seqno: SeqNo,
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
            scratch: WriteBatch::new(),
            toll: Toll::default(),
            looked_at: Duration::ZERO,
        }
    }
}

/// Families whose memtable is full: noted by those who fill them, rotated by the next leader.
#[derive(Debug, Default)]
pub(crate) struct FullFamilies {
    any: AtomicBool,
    ids: Mutex<Vec<u32>>,
}

impl FullFamilies {
    /// Notes `id`, once.
    #[cold]
    pub(crate) fn add(&self, id: u32) {
        let mut ids = self.ids.lock();
        if !ids.contains(&id) {
            ids.push(id);
        }
        self.any.store(true, Ordering::Relaxed);
    }

    /// Whether one is noted. One relaxed load: what it misses, the next leader sees.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// One of them.
    pub(crate) fn last(&self) -> Option<u32> {
        self.ids.lock().last().copied()
    }

    /// Forgets `id`.
    pub(crate) fn remove(&self, id: u32) {
        let mut ids = self.ids.lock();
        ids.retain(|full| *full != id);
        self.any.store(!ids.is_empty(), Ordering::Relaxed);
    }
}
