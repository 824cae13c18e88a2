//! What the commit pipeline needs of the store: room for a group, its way into the memtables, health.
//!
//! The usual write finds room with a few loads ([`CommitEnv::make_room`]); everything rarer is in `rotate`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, MemoryUse, Result, ValueKind};
use drumlin_fs::Clock;

use crate::family::column_family::Family;
use crate::store::state::FamilyState;
use crate::watch::events::Health;
use crate::watch::statistics::Statistics;
use crate::write::batch::WriteBatch;
use crate::write::commit::{CommitEnv, Leader, PendingWrite};
use crate::write::published::Published;
use crate::write::rotate::WriteEnv;

/// The share of itself that a full memtable may take on top while somebody holds the state: it may be
/// a job that syncs the MANIFEST, and at a bad moment a sync takes a tenth of a second.
const OVERFILL: usize = 2;

/// Bytes written between two looks at the store while writers are free.
const BYTES_PER_LOOK: u64 = 256 << 10;

/// Time between two looks while they are not.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

impl CommitEnv for WriteEnv {
    fn check(&self, batch: &WriteBatch) -> Result<()> {
        self.check_batch(batch)
    }

    fn make_room(&self, leader: &mut Leader, own: &PendingWrite) -> Result<()> {
        self.find_room(leader, own)
    }

    fn credit(&self) -> u64 {
        self.store.files.space.credit()
    }

    fn spend(&self, bytes: usize) {
        self.store.files.space.spend(bytes);
    }

    fn charge(&self, leader: &mut Leader, bytes: u64) {
        self.charge_writers(leader, bytes);
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

    fn statistics(&self) -> &Statistics {
        &self.store.watch.statistics
    }

    fn clock(&self) -> &dyn Clock {
        &*self.store.id.env.clock
    }

    fn wal_synced(&self, took: Duration) {
        self.store.watch.disk.wal_synced(took);
    }
}

impl WriteEnv {
    /// Returns when the group may be written. The usual case touches two atomics.
    fn find_room(&self, leader: &mut Leader, own: &PendingWrite) -> Result<()> {
        if self.store.closing.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::Shutdown,
                "the database is being closed",
            ));
        }
        if self.store.health() >= Health::WriteStopped || !leader.wal.is_open() {
            self.try_resume(leader)?;
        }
        self.check_space(own)?;
        self.slow_down(leader, own.no_stall)?;
        self.bound_memtables();
        if !self.full.any() {
            // Log data fills no memtable, but it fills the WAL.
            return match leader.wal.is_due_for_look() {
                true => self.bound_wal(leader, own.no_stall),
                false => Ok(()),
            };
        }
        // Groups before this one still fill the memtables; what they find full is noted by then.
        self.store.published.wait_for(leader.last_seqno);
        let mut state = self.store.state.try_lock();
        if state.is_none() && self.may_overfill() {
            return Ok(());
        }
        while let Some(id) = self.full.last() {
            let state = state.take().unwrap_or_else(|| self.store.lock_state());
            let rotated = self.rotate_locked(leader, state, id, own.no_stall);
            if rotated
                .as_ref()
                .is_err_and(|error| error.kind() != ErrorKind::InvalidArgument)
            {
                return rotated; // `InvalidArgument`: the family was dropped, nothing is full.
            }
            self.full.remove(id);
        }
        drop(state);
        self.bound_wal(leader, own.no_stall)
    }

    /// Whether no memtable has taken more than its size and some on top.
    fn may_overfill(&self) -> bool {
        self.store.families.load().values().all(|family| {
            let most = family.write_buffer + family.write_buffer / OVERFILL;
            family.view.load().memtable.bytes() < most
        })
    }

    /// After a full disk: tries a fresh WAL, and if there is room for one, all is well again.
    fn try_resume(&self, leader: &mut Leader) -> Result<()> {
        self.store.published.wait_for(leader.last_seqno);
        let mut state = self.store.lock_state();
        if self.store.health() == Health::Poisoned {
            return Err(self.store.refusal(&state));
        }
        match self.switch_wal(leader, &mut state) {
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

    /// Refuses what would fill the disk.
    fn check_space(&self, own: &PendingWrite) -> Result<()> {
        let only_deletes = || {
            let mut records = own.batch.iter();
            records.all(|record| record.is_ok_and(|record| is_deletion(record.kind)))
        };
        match self.store.files.space.admit(own.batch.len(), only_deletes) {
            Err(error) if error.kind() != ErrorKind::NoSpace => {
                // Not to know how much is free is no reason to refuse.
                self.store.watch.tell(&error);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Notes the family with the largest memtable as full when all families together are close to
    /// their share. The usual case is one load.
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
    pub(crate) fn charge_writers(&self, leader: &mut Leader, bytes: u64) {
        self.store.watch.board.add_written(bytes);
        leader.toll.charge(bytes);
    }

    /// Returns when what was written so far is paid for: at once, without a look at the clock, while
    /// writers are free.
    ///
    /// # Errors
    /// `Busy` instead of a wait where `no_stall`, `Shutdown`.
    pub(crate) fn slow_down(&self, leader: &mut Leader, no_stall: bool) -> Result<()> {
        let free = self.store.watch.board.allowed().is_infinite();
        if free {
            leader.toll.free();
            if leader.toll.unpaid() < BYTES_PER_LOOK {
                return Ok(());
            }
        }
        let begin = self.store.id.env.clock.monotonic();
        let mut now = begin;
        loop {
            if free || now.saturating_sub(leader.looked_at) >= LOOK_PAUSE {
                leader.looked_at = now;
                self.store.look(now);
            }
            let wait = leader.toll.wait(now, self.store.watch.board.allowed());
            if wait.is_zero() {
                break;
            }
            if no_stall {
                let cause = self.store.watch.board.cause().as_str();
                return Err(Error::new(ErrorKind::Busy, cause));
            }
            self.store.check_open()?;
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

    /// Refuses what would fail half-way: unknown or dropped families, keys over the limit, what the
    /// directory's format cannot hold.
    fn check_batch(&self, batch: &WriteBatch) -> Result<()> {
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
            let limit = family.tuning.key_bytes_max;
            if record.key.len() > limit {
                let message = format!("the key has {} bytes, more than {limit}", record.key.len());
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            check_kind(record.kind, family, self.store.id.leveldb)?;
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

    /// Puts every record of `batches` into its memtable. A key order of the user's that panics fails the group:
    /// others wait for it, and what is logged after it may not be seen.
    fn apply_or_fail<'a>(&self, batches: impl IntoIterator<Item = &'a WriteBatch>) -> Result<()> {
        let apply = AssertUnwindSafe(|| self.apply_each(batches));
        catch_unwind(apply).unwrap_or_else(|cause| {
            let message = format!(
                "a key order or prefix extractor panicked while a write was applied: {}",
                said(&*cause)
            );
            Err(Error::new(ErrorKind::Aborted, message))
        })
    }

    fn apply_each<'a>(&self, batches: impl IntoIterator<Item = &'a WriteBatch>) -> Result<()> {
        let families = self.store.families.load();
        for batch in batches {
            let mut seqno = batch.seqno();
            let mut records = batch.iter().peekable();
            while let Some(record) = records.peek() {
                let id = record.as_ref().map_err(Error::duplicate)?.family;
                let family = families
                    .get(&id)
                    .filter(|family| family.check_alive().is_ok());
                // A family dropped since the check takes its writes with it.
                let view = family.map(|family| (family, family.view.load()));
                while let Some(record) =
                    records.next_if(|r| r.as_ref().is_ok_and(|r| r.family == id))
                {
                    let record = record?;
                    if let Some((_, view)) = &view {
                        view.memtable
                            .add(seqno, record.kind, record.key, record.value);
                    }
                    seqno += 1;
                }
                if let Some((family, view)) = view
                    && family.account(&view.memtable)
                {
                    self.full.add(id);
                }
            }
            debug_assert_eq!(seqno, batch.seqno() + u64::from(batch.count()));
            self.store
                .watch
                .statistics
                .bytes_written
                .add(batch.len() as u64);
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

fn is_deletion(kind: ValueKind) -> bool {
    use ValueKind::{Deletion, RangeDeletion, SingleDeletion};
    matches!(kind, Deletion | SingleDeletion | RangeDeletion)
}

/// The message of a panic.
fn said(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("it gave no reason")
}
