//! The commit pipeline's environment over a store.

use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::sync::atomic::AtomicU64;
use drumlin_base::{Error, Result};
use drumlin_fs::Clock;

use crate::watch::events::Health;
use crate::watch::statistics::Statistics;
use crate::write::batch::WriteBatch;
use crate::write::commit::{CommitEnv, LogState, PendingWrite};
use crate::write::env::WriteEnv;
use crate::write::published::Published;
use crate::write::two_phase::TwoPhase;

impl CommitEnv for WriteEnv {
    fn check(&self, batch: &WriteBatch) -> Result<()> {
        self.check_batch(batch)
    }

    fn admit(&self, log: &mut LogState, own: &PendingWrite) -> Result<()> {
        self.admit_group(log, own)
    }

    fn space_credit(&self) -> u64 {
        self.store.files.space.credit()
    }

    fn spend_space(&self, bytes: usize) {
        self.store.files.space.spend(bytes);
    }

    fn note_logged(&self, log: &mut LogState, bytes: u64) {
        self.note_bytes_written(log, bytes);
    }

    fn note_step(&self, step: &TwoPhase, wal: u64) {
        self.store.prepared.note(step, wal);
    }

    fn note_unlogged(&self) {
        self.unlogged.store(true, Ordering::Release);
    }

    fn apply<'a>(&self, batches: impl IntoIterator<Item = &'a WriteBatch>) -> Result<()> {
        self.apply_or_fail(batches)
    }

    fn degrade(&self, to: Health, error: &Error) {
        self.store.degrade(&mut self.store.lock_state(), to, error);
    }

    fn refusal(&self) -> Error {
        self.store.refusal(&self.store.lock_state())
    }

    fn published(&self) -> &Published {
        &self.store.published
    }

    fn durable(&self) -> &AtomicU64 {
        &self.store.durable
    }

    fn statistics(&self) -> &Statistics {
        &self.store.watch.statistics
    }

    fn clock(&self) -> &dyn Clock {
        &*self.store.id.env.clock
    }

    fn wal_synced(&self, took: Duration) {
        self.store.watch.disk.wal_synced(took);
        self.store.watch.times.sync.record(took);
    }
}
