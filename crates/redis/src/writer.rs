//! The way of a round's changes to the engine and to the disk.

use std::time::Duration;

use drumlin::{ErrorKind, Result, SeqNo, WriteBatch, WriteOptions};
use drumlin_redis_store::{Overlay, Store};

use crate::io::Gate;
use crate::workers::{Job, Workers};

/// One round at a time is on its way: the engine takes it at once, or the writer's thread waits for the engine.
#[derive(Debug)]
pub(crate) struct Writer {
    batch: WriteBatch,
    /// The changes that the writer's thread has.
    in_flight: Option<Overlay>,
    /// The newest write, and the newest that a power cut cannot take back.
    latest: SeqNo,
    durable: SeqNo,
    is_syncing: bool,
    sync_due: Duration,
}

impl Writer {
    /// A writer to `store`, which nobody else writes to.
    pub(crate) fn new(store: &Store) -> Self {
        Self {
            batch: WriteBatch::new(),
            in_flight: None,
            latest: store.db().latest_seqno(),
            durable: store.db().durable_seqno(),
            is_syncing: false,
            sync_due: Duration::ZERO,
        }
    }

    /// Whether a round waits for the engine: no other may be written until then.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether the newest write outlives a power cut.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable >= self.latest
    }

    /// Whether replies that tell of all that was written may go. Where `lasts`, not before a power cut can take none of it back.
    pub(crate) fn gate(&self, lasts: bool) -> Gate {
        if self.is_busy() && !drumlin_base::bug!("redis-reply-of-a-write-on-its-way") {
            Gate::Commit {
                lasts: lasts && !drumlin_base::bug!("redis-commit-forgets-the-sync"),
            }
        } else if lasts && !self.is_durable() && !drumlin_base::bug!("redis-reply-before-its-sync")
        {
            Gate::Durable(self.latest)
        } else {
            Gate::Open
        }
    }

    /// Writes a round's changes; what is left of them in memory, or none if they had to be given to the thread.
    ///
    /// # Errors
    /// Of the engine. Nothing is written then.
    pub(crate) fn write(
        &mut self,
        store: &Store,
        workers: &Workers,
        mut overlay: Overlay,
    ) -> Result<Option<Overlay>> {
        assert!(!self.is_busy(), "rounds are written one after the other");
        overlay.forget_reads();
        self.batch.clear();
        let options = WriteOptions {
            no_stall: true,
            ..WriteOptions::default()
        };
        store.prepare(&overlay, &mut self.batch)?;
        match store.write(&mut self.batch, &options) {
            Ok(seqno) => {
                store.settle(&mut overlay, seqno);
                self.latest = seqno;
                Ok(Some(overlay))
            }
            Err(error) if error.kind() == ErrorKind::Busy => {
                self.in_flight = Some(overlay);
                workers.give(Job::Write(std::mem::take(&mut self.batch)));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The thread has written, or failed to write, the round that it had; what is left of that in memory.
    ///
    /// # Errors
    /// The thread's.
    pub(crate) fn written(
        &mut self,
        store: &Store,
        batch: WriteBatch,
        outcome: Result<SeqNo>,
    ) -> Result<Option<Overlay>> {
        self.batch = batch;
        let mut in_flight = self.in_flight.take();
        let seqno = outcome?;
        if let Some(overlay) = &mut in_flight {
            store.settle(overlay, seqno);
        }
        self.latest = seqno;
        Ok(in_flight)
    }

    /// Has the WAL synced, unless that is under way.
    pub(crate) fn sync(&mut self, workers: &Workers) {
        if !self.is_syncing {
            self.is_syncing = true;
            workers.give(Job::Sync);
        }
    }

    /// Has it synced if a second has passed and there is something to sync.
    pub(crate) fn sync_if_due(&mut self, workers: &Workers, now: Duration) {
        if now >= self.sync_due && !self.is_durable() {
            self.sync_due = now + Duration::from_secs(1);
            self.sync(workers);
        }
    }

    /// A sync has ended; the newest write that is durable.
    ///
    /// # Errors
    /// The sync's.
    pub(crate) fn synced(&mut self, outcome: Result<SeqNo>) -> Result<SeqNo> {
        self.is_syncing = false;
        self.durable = self.durable.max(outcome?);
        Ok(self.durable)
    }
}
