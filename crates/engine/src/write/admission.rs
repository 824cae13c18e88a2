//! Admission control: which batches are refused, and how long a group waits before it may be logged.
//!
//! The usual group is admitted without a lock and without a system call; everything rarer is in `rotate`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, KeyOrder, MemoryUse, Result, ValueKind};

use crate::family::column_family::Family;
use crate::store::state::FamilyState;
use crate::watch::events::Health;
use crate::write::batch::{BatchRecord, WriteBatch};
use crate::write::commit::{LogState, PendingWrite};
use crate::write::env::WriteEnv;

/// A full memtable may take half of its size on top while another thread holds the state: that may be
/// a job that syncs the MANIFEST, and at a bad moment a sync takes a tenth of a second.
const OVERFILL_DIVISOR: usize = 2;

/// Bytes written between two updates of the write rate while writes are not throttled.
const RATE_UPDATE_BYTES: u64 = 256 << 10;

/// Time between two updates while they are.
const RATE_UPDATE_PAUSE: Duration = Duration::from_millis(10);

impl WriteEnv {
    /// Returns when the group may be logged. The usual case takes no lock and makes no system call.
    pub(super) fn admit_group(&self, log: &mut LogState, own: &PendingWrite) -> Result<()> {
        if self.store.closing.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::Shutdown,
                "the database is being closed",
            ));
        }
        if self.store.health() >= Health::WriteStopped || !log.wal.is_open() {
            self.try_resume(log)?;
        }
        self.check_space(own)?;
        self.throttle_writes(log, own.no_stall)?;
        self.bound_memtables();
        if !self.full.any() {
            // Log data fills no memtable, but it fills the WAL.
            if log.wal.is_size_check_due() {
                self.bound_wal(log, own.no_stall)?;
            }
            return Ok(());
        }
        // Earlier groups may still be filling memtables; after this every one they fill is in `full`.
        self.store.published.wait_settled(log.last_seqno);
        let mut state = self.store.state.try_lock();
        if state.is_none() && self.may_overfill() {
            return Ok(());
        }
        while let Some(id) = self.full.last() {
            let state = state.take().unwrap_or_else(|| self.store.lock_state());
            let rotated = self.rotate_locked(log, state, id, own.no_stall);
            if rotated
                .as_ref()
                .is_err_and(|error| error.kind() != ErrorKind::InvalidArgument)
            {
                return rotated; // `InvalidArgument`: the family was dropped, nothing is full.
            }
            self.full.remove(id);
        }
        drop(state);
        self.bound_wal(log, own.no_stall)
    }

    /// Whether no memtable has taken more than its size and some on top.
    fn may_overfill(&self) -> bool {
        self.store.families.load().values().all(|family| {
            let most = family.write_buffer() + family.write_buffer() / OVERFILL_DIVISOR;
            family.super_version.load().memtable.bytes() < most
        })
    }

    /// After a full disk: tries a fresh WAL. If there is space for one, writes go on.
    fn try_resume(&self, log: &mut LogState) -> Result<()> {
        self.store.published.wait_settled(log.last_seqno);
        let mut state = self.store.lock_state();
        if self.store.health() == Health::Poisoned {
            return Err(self.store.refusal(&state));
        }
        match self.switch_wal(log, &mut state) {
            Ok(()) => {
                self.store.recover_health(&mut state);
                Ok(())
            }
            Err(error) => {
                self.store.degrade(&mut state, Health::WriteStopped, &error);
                Err(error.context("writes are still refused"))
            }
        }
    }

    /// Refuses a write that would take the disk's reserve.
    fn check_space(&self, own: &PendingWrite) -> Result<()> {
        let only_deletes = || {
            let mut records = own.writes().iter();
            records.all(|record| record.is_ok_and(|record| is_deletion(record.kind)))
        };
        match self
            .store
            .files
            .space
            .reserve_bytes(own.writes().len(), only_deletes)
        {
            Err(error) if error.kind() != ErrorKind::NoSpace => {
                // If free space is unknown, write anyway.
                self.store.watch.report_error(&error);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Notes the family with the largest memtable as full when the memtables of all families are close to
    /// their share of the budget. The usual case is one load.
    pub(crate) fn bound_memtables(&self) {
        let used = self.store.caches.budget.used(MemoryUse::Memtables);
        if used <= self.store.caches.budget.limit_bytes() / 8 * 3 {
            return;
        }
        let share = self.store.memtables_share();
        if self.store.families.load().len() < 2 || used <= share / 4 * 3 {
            return;
        }
        let state = self.store.lock_state();
        let mutable = |family: &FamilyState| family.mutable.bytes();
        let all: usize = state.families.values().map(mutable).sum();
        // The rest is being flushed already.
        if all <= share / 2 {
            return;
        }
        let largest = state.families.iter().max_by_key(|(_, f)| mutable(f));
        if let Some((&id, _)) = largest {
            self.full.add(id);
        }
    }

    /// Notes that the group just written took `bytes`.
    pub(crate) fn note_bytes_written(&self, log: &mut LogState, bytes: u64) {
        self.store.watch.board.add_written(bytes);
        log.throttle.add(bytes);
    }

    /// Returns when all bytes written so far are paid for: at once, without reading the clock, while
    /// writes are not throttled.
    ///
    /// # Errors
    /// `Busy` instead of a wait where `no_stall`, `Shutdown`.
    pub(crate) fn throttle_writes(&self, log: &mut LogState, no_stall: bool) -> Result<()> {
        let unthrottled = self.store.watch.board.allowed().is_infinite();
        if unthrottled {
            log.throttle.lift();
            if log.throttle.owed_bytes() < RATE_UPDATE_BYTES {
                return Ok(());
            }
        }
        let begin = self.store.id.env.clock.monotonic();
        let mut now = begin;
        loop {
            if unthrottled || now.saturating_sub(log.rate_updated_at) >= RATE_UPDATE_PAUSE {
                log.rate_updated_at = now;
                self.store.update_write_rate(now);
            }
            let wait = log.throttle.wait(now, self.store.watch.board.allowed());
            if wait.is_zero() {
                break;
            }
            if no_stall {
                let cause = self.store.watch.board.cause().as_str();
                return Err(Error::new(ErrorKind::Busy, cause));
            }
            self.store.check_open()?;
            log.begin_stall(self.store.watch.board.cause());
            self.store.id.env.clock.sleep(wait);
            now = self.store.id.env.clock.monotonic();
        }
        if now > begin {
            self.store
                .watch
                .note_wait(now.saturating_sub(begin), self.store.watch.board.cause());
        }
        Ok(())
    }

    /// Refuses what would fail half-way: unknown or dropped families, keys over the limit, records that the
    /// directory's format cannot hold.
    pub(super) fn check_batch(&self, batch: &WriteBatch) -> Result<()> {
        self.store.check_writable()?;
        let families = self.store.families.load();
        let mut last: Option<&Arc<Family>> = None;
        for record in batch.iter() {
            let record = record?;
            let family = match last {
                Some(family) if family.id == record.family => family,
                _ => {
                    let Some(family) = families.get(&record.family) else {
                        let message = format!("there is no column family {}", record.family);
                        return Err(Error::invalid_argument(message));
                    };
                    family.check_alive()?;
                    last.insert(family)
                }
            };
            let limit = family.key_bytes_max;
            if record.key.len() > limit {
                let message = format!("the key has {} bytes, more than {limit}", record.key.len());
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            check_kind(record.kind, family, self.store.id.leveldb)?;
            check_timestamp(&record, &family.options.order)?;
            if record.kind == ValueKind::RangeDeletion
                && family
                    .options
                    .order
                    .compare(record.key, record.value)
                    .is_gt()
            {
                return Err(Error::invalid_argument(
                    "a range deletion ends before it begins",
                ));
            }
        }
        Ok(())
    }
}

fn check_kind(kind: ValueKind, family: &Family, leveldb: bool) -> Result<()> {
    if kind == ValueKind::Merge && family.options.merge_operator.is_none() {
        let message = format!("column family {:?} has no merge operator", family.name);
        return Err(Error::invalid_argument(message));
    }
    if leveldb && !matches!(kind, ValueKind::Value | ValueKind::Deletion) {
        return Err(Error::not_supported(format!(
            "{kind:?} in a LevelDB directory; open it with DirectoryFormat::RocksDb to convert it"
        )));
    }
    Ok(())
}

/// Refuses what a family whose keys end with timestamps cannot hold. The WAL may have such records of another engine.
///
/// # Errors
/// `NotSupported` for ranges and operands; `InvalidArgument` for a key that is too short for a timestamp.
pub(crate) fn check_timestamp(record: &BatchRecord<'_>, order: &KeyOrder) -> Result<()> {
    let timestamp_bytes = order.timestamp_bytes();
    if timestamp_bytes == 0 {
        return Ok(());
    }
    if let ValueKind::RangeDeletion | ValueKind::Merge = record.kind {
        let message = format!("{:?} of keys with timestamps", record.kind);
        return Err(Error::not_supported(message));
    }
    if record.key.len() < timestamp_bytes {
        let message = "a key is too short to end with a timestamp";
        return Err(Error::invalid_argument(message));
    }
    Ok(())
}

fn is_deletion(kind: ValueKind) -> bool {
    use ValueKind::{Deletion, RangeDeletion, SingleDeletion};
    matches!(kind, Deletion | SingleDeletion | RangeDeletion)
}
