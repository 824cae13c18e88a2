//! The commit pipeline: writers join a group, its leader logs it, and it is synced, applied and published.
//!
//! The leader admits and logs its group, so sequence numbers are assigned and logged in one order. It then hands the
//! lead over, and the next group is logged while this one is synced, applied and published. A thread that changes where
//! groups write to (a memtable, the WAL's file) holds the lead and waits for every group before it.
//!
//! Syncs have a queue and a lead of their own. Groups that are logged while a sync runs wait in it; the next sync
//! serves all of them. It begins as soon as the one before it has ended, beside the work of the groups that one served.
//!
//! A member of [`SHARE_BYTES_MIN`] or more applies its own batch, beside its leader. Such shares nest:
//!
//! ```text
//! sync leader        applies its own group, waits for the shares of the other groups it synced
//!   group leader       share: applies its group, waits for the shares of its members
//!     member             share: applies its batch
//! ```
//!
//! Invariants:
//! - Sequence numbers ascend in the order of the log, without gaps.
//! - A synced group is applied and published only after its sync. When that fails, nothing of it,
//!   nor of any group logged after it, is ever published, and the database is poisoned.
//! - A thread that holds a lead waits only for groups that no longer need that lead; else two groups could wait for
//!   each other.
//!
//! The pipeline knows the store as a [`CommitEnv`] only.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::perf::{Measure, timed};
use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicU64, Ordering};
use drumlin_base::{Error, ErrorKind, Result, SeqNo, limits};
use drumlin_fs::Clock;

use crate::options::settings::WriteOptions;
use crate::wal::log::{Wal, WalSync};
use crate::watch::events::Health;
use crate::watch::pressure::WriteThrottle;
use crate::watch::statistics::Statistics;
use crate::watch::waits::WaitCause;
use crate::write::batch::WriteBatch;
use crate::write::published::{Published, Span};
use crate::write::queue::{CommitQueue, Follower, Shares, Turn};
use crate::write::two_phase::{Phase, TwoPhase};

/// From how many bytes of its own on a member applies its batch itself: below, waking it takes
/// longer than the work it takes over.
const SHARE_BYTES_MIN: usize = 32 << 10;

type SyncFollower = (Logged, Arc<Follower<Logged>>);
/// The caller's own write, back in its hands, and the outcome.
type Written = (PendingWrite, Result<()>);

/// The store as the pipeline needs it. Tests have one without a database.
pub(crate) trait CommitEnv {
    /// Refuses a batch that would fail half-way.
    fn check(&self, batch: &WriteBatch) -> Result<()>;
    /// Admits the group led by `own`: returns when it may be logged. The caller has the lead.
    ///
    /// # Errors
    /// Why it may not be written; nothing of the group is.
    fn admit(&self, log: &mut LogState, own: &PendingWrite) -> Result<()>;
    /// Bytes that are known to fit on the disk.
    fn space_credit(&self) -> u64;
    /// Takes `bytes` of that.
    fn spend_space(&self, bytes: usize);
    /// Notes that the group just logged has `bytes`.
    fn note_logged(&self, log: &mut LogState, bytes: u64);
    /// Notes that a step of two-phase commit was logged in `wal`. The caller has the lead.
    fn note_step(&self, step: &TwoPhase, wal: u64);
    /// Notes that a group skipped the WAL.
    fn note_unlogged(&self);
    /// Puts every record of `batches` into its memtable.
    fn apply<'a>(&self, batches: impl IntoIterator<Item = &'a WriteBatch>) -> Result<()>;
    /// Worsens the store's health because of `error`.
    fn degrade(&self, to: Health, error: &Error);
    /// The error of a writer that is refused because of the store's health.
    fn refusal(&self) -> Error;
    /// The newest sequence number readers may see.
    fn published(&self) -> &Published;
    /// The sequence number up to which every write that went to the WAL is synced.
    fn durable(&self) -> &AtomicU64;
    /// Counters of groups and bytes.
    fn statistics(&self) -> &Statistics;
    /// The clock that syncs are timed by.
    fn clock(&self) -> &dyn Clock;
    /// Notes how long a sync of the WAL took.
    fn wal_synced(&self, took: Duration);
}

/// See the module.
pub(crate) struct CommitPipeline<E> {
    pub(crate) env: E,
    queue: Arc<CommitQueue<Request>>,
    /// Never contended, as only the thread with the lead locks it: the mutex lends it out without `unsafe`.
    log: Mutex<LogState>,
    /// Groups that are logged and wait for a sync.
    syncs: CommitQueue<Logged>,
    /// Whether writes are synced that do not say.
    syncs_by_default: bool,
}

impl<E: CommitEnv> CommitPipeline<E> {
    /// A pipeline onto `wal`, whose newest sequence number is `last_seqno`.
    pub(crate) fn new(env: E, wal: Wal, last_seqno: SeqNo, syncs_by_default: bool) -> Self {
        let queue = Arc::new(CommitQueue::quick());
        let log = LogState::new(wal, last_seqno, Arc::clone(&queue));
        Self {
            env,
            queue,
            log: Mutex::new(log),
            syncs: CommitQueue::slow(),
            syncs_by_default,
        }
    }

    /// Writes `batch`, alone or in a group. The batch is whole when this returns, with its sequence number once it
    /// was logged.
    pub(crate) fn write(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        let sync = options.sync.unwrap_or(self.syncs_by_default);
        if sync && options.no_wal {
            return Err(Error::invalid_argument(
                "a write without WAL cannot be synced",
            ));
        }
        self.env.check(batch)?;
        self.submit(PendingWrite::new(batch, sync, options), batch)
    }

    /// Takes a step of two-phase commit, and applies `batch` with it. The batch is whole when this returns, with its
    /// sequence number once the step was logged.
    ///
    /// Requires: the batch can be applied; it is not checked.
    pub(crate) fn write_step(
        &self,
        step: TwoPhase,
        batch: &mut WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        if options.no_wal {
            return Err(Error::invalid_argument(
                "a step of two-phase commit is in the WAL",
            ));
        }
        let sync = options.sync.unwrap_or(self.syncs_by_default);
        let mut write = PendingWrite::new(batch, sync, options);
        write.step = Some(Box::new(step));
        self.submit(write, batch)
    }

    fn submit(&self, write: PendingWrite, batch: &mut WriteBatch) -> Result<()> {
        let may_stall = !write.no_stall;
        let request = Request::Write(write);
        let (own, outcome) = match self.queue.join(request, may_stall) {
            Turn::Served(Some(Request::Write(own)), outcome) => (own, outcome),
            Turn::Lead(Request::Write(own)) => self.lead_group(own),
            Turn::Share(Request::Write(own), share) => {
                let outcome = share.finish(self.apply_share([&own.batch]));
                (own, outcome)
            }
            Turn::Served(..) | Turn::Lead(_) | Turn::Share(..) => {
                unreachable!("a request comes back as it was handed in")
            }
        };
        *batch = own.batch;
        outcome
    }

    /// Makes every write logged so far outlive a power cut, beside writers that go on. Returns the sequence number
    /// up to which that holds; all of it is published.
    pub(crate) fn sync(&self) -> Result<SeqNo> {
        let turn = self.queue.join(Request::Exclusive, true);
        assert_promoted(&turn);
        let lead = self.queue.lead_guard();
        let log = self.log.lock();
        let last = log.last_seqno;
        let sync = log.wal.sync_handle();
        drop(log);
        drop(lead);
        let own = PendingWrite {
            batch: WriteBatch::new(),
            sync: true,
            no_wal: false,
            no_stall: false,
            step: None,
        };
        let group = Group {
            own,
            followers: Vec::new(),
            span: Span { before: last, last },
        };
        self.sync_then_publish(Logged { group, sync }).1?;
        Ok(last)
    }

    /// The sequence number up to which every write that went to the WAL is known to outlive a power cut.
    pub(crate) fn durable_seqno(&self) -> SeqNo {
        self.env.durable().load(Ordering::Acquire)
    }

    /// Notes that every logged write up to `seqno` outlives a power cut.
    pub(crate) fn note_durable(&self, seqno: SeqNo) {
        self.env.durable().fetch_max(seqno, Ordering::AcqRel);
    }

    /// Runs `body` with the lead and no group: nothing is logged meanwhile, and every
    /// group before it is published, or will never be.
    pub(crate) fn run_exclusive<R>(&self, body: impl FnOnce(&mut LogState) -> R) -> R {
        let turn = self.queue.join(Request::Exclusive, true);
        assert_promoted(&turn);
        let _lead = self.queue.lead_guard();
        let mut log = self.log.lock();
        self.env.published().wait_settled(log.last_seqno);
        body(&mut log)
    }

    /// Logs a group. A group that need not be synced is then applied and published while the next
    /// is logged; one that must be goes on in [`CommitPipeline::sync_then_publish`].
    fn lead_group(&self, own: PendingWrite) -> Written {
        let lead = self.queue.lead_guard();
        let mut log = self.log.lock();
        if let Err(error) = self.env.admit(&mut log, &own) {
            return (own, Err(error));
        }
        let followers = self.gather(&own);
        self.env.statistics().write_groups.bump();
        if !followers.is_empty() {
            self.env
                .statistics()
                .write_followers
                .add(followers.len() as u64);
        }
        let span = Span { before: 0, last: 0 };
        let mut group = Group {
            own,
            followers,
            span,
        };
        let logged = self.number_and_append(&mut log, &mut group);
        drop(log);
        drop(lead);
        let outcome = match logged {
            Ok(Some(sync)) => return self.sync_then_publish(Logged { group, sync }),
            Ok(None) => self.apply_group(&mut group),
            Err(error) => Err(error),
        };
        let outcome = outcome.and_then(|()| self.publish(group.span));
        (group.complete(&outcome), outcome)
    }

    /// Takes the writers that may join `own`: same WAL use, no stronger durability, bounded bytes,
    /// which are known to fit on the disk.
    fn gather(&self, own: &PendingWrite) -> Vec<Member> {
        if own.step.is_some() {
            return Vec::new();
        }
        let bytes_max = limits::GROUP_BYTES_MAX.saturating_sub(own.batch.len());
        let credit = usize::try_from(self.env.space_credit()).unwrap_or(usize::MAX);
        let bytes_max = bytes_max.min(credit);
        let mut left = bytes_max;
        let taken = self.queue.take_followers(|request| match request {
            Request::Exclusive => false,
            Request::Write(other) => {
                let fits = other.no_wal == own.no_wal
                    && other.step.is_none()
                    && (own.sync || !other.sync || drumlin_base::bug!("sync-lost-in-group"))
                    && other.batch.len() <= left;
                if fits {
                    left -= other.batch.len();
                }
                fits
            }
        });
        if !taken.is_empty() {
            self.env.spend_space(bytes_max - left);
        }
        let member = |(request, follower)| match request {
            Request::Write(write) => Member {
                write: Some(write),
                follower,
            },
            Request::Exclusive => unreachable!("only writes are taken"),
        };
        taken.into_iter().map(member).collect()
    }

    /// Gives the group its sequence numbers and appends it to the WAL, unless its leader skips the WAL. Returns the
    /// sync to be run, if the leader asked for one.
    fn number_and_append(&self, log: &mut LogState, group: &mut Group) -> Result<Option<WalSync>> {
        group.number(log.last_seqno);
        assert!(
            group.span.before == log.last_seqno && group.span.last >= group.span.before,
            "a group follows the one logged before it"
        );
        if group.own.no_wal {
            self.env.note_unlogged();
        } else {
            self.append(log, group)?;
        }
        log.last_seqno = group.span.last;
        self.env.note_logged(log, group.bytes() as u64);
        Ok(group.own.sync.then(|| log.wal.sync_handle()))
    }

    fn append(&self, log: &mut LogState, group: &Group) -> Result<()> {
        let LogState { wal, scratch, .. } = log;
        let step = group.own.step.as_deref();
        let alone = group.followers.is_empty() && !wal.has_mark() && step.is_none();
        if !alone {
            scratch.clear();
            wal.put_mark(scratch)?;
            match step {
                Some(step) => scratch.append(&step.record)?,
                None => group
                    .batches()
                    .try_for_each(|batch| scratch.append(batch))?,
            }
            scratch.set_seqno(group.span.before + 1);
        }
        let batch = if alone { &group.own.batch } else { &*scratch };
        wal.note_synced(group.own.sync);
        let good_len = wal.len();
        if let Err(error) = timed(Measure::WalNanos, || wal.append(batch.bytes())) {
            return Err(self.wal_append_failed(wal, good_len, error));
        }
        self.env.statistics().wal_bytes.add(wal.len() - good_len);
        if let Some(step) = step {
            self.env.note_step(step, wal.number());
        }
        Ok(())
    }

    /// Makes all that was logged outlive a power cut, for whoever has the lead.
    pub(crate) fn sync_logged(&self, log: &LogState) -> Result<()> {
        let synced = log.wal.sync_handle().run();
        synced.inspect_err(|error| self.poison(error))?;
        self.note_durable(log.last_seqno);
        Ok(())
    }

    /// Logs a change that is no write, which takes the numbers up to `last`, and shows it to readers. The MANIFEST has
    /// it, so where it cannot be logged the store is poisoned, and recovery logs it.
    pub(crate) fn log_change(&self, log: &mut LogState, data: &[u8], last: SeqNo) -> Result<()> {
        let LogState { wal, scratch, .. } = log;
        scratch.clear();
        wal.put_mark(scratch)?;
        if !drumlin_base::bug!("change-not-logged") {
            scratch.put_log_data(data)?;
        }
        scratch.set_seqno(last + 1);
        let logged = wal.append(scratch.bytes());
        logged.inspect_err(|error| self.poison(error))?;
        log.last_seqno = last;
        self.env.published().set(last);
        Ok(())
    }

    /// Handles a failed append. After `NoSpace` only the reservation of space failed: every byte that was
    /// acknowledged is in the file, the tail after it is cut off, and a later write begins another WAL once there is
    /// space. After any other error the content of the file's pages is unknown, so the database is poisoned.
    fn wal_append_failed(&self, wal: &mut Wal, good_len: u64, error: Error) -> Error {
        let healable = error.kind() == ErrorKind::NoSpace && wal.abandon_tail(good_len).is_ok();
        let to = if healable {
            Health::WriteStopped
        } else {
            Health::Poisoned
        };
        self.env.degrade(to, &error);
        error.context("the write could not be logged")
    }

    /// Makes a logged group outlive a power cut, applies and publishes it: as the leader of a sync,
    /// or served by one.
    fn sync_then_publish(&self, logged: Logged) -> Written {
        match self.syncs.join(logged, true) {
            Turn::Served(Some(own), outcome) => (own.group.complete(&outcome), outcome),
            Turn::Served(None, _) => unreachable!("the leader of a sync gives the group back"),
            Turn::Lead(own) => self.lead_sync(own),
            Turn::Share(mut own, share) => {
                let applied = self.apply_members(&mut own.group);
                let outcome = share.finish(applied.inspect_err(|error| self.poison(error)));
                (own.group.complete(&outcome), outcome)
            }
        }
    }

    fn lead_sync(&self, own: Logged) -> Written {
        let lead = self.syncs.lead_guard();
        let others = self.syncs.take_followers(|_| true);
        let newest = others.iter().map(|(other, _)| other).chain([&own]);
        // Not by sequence number: log data has none of its own, so groups in two WALs may end with the same one.
        let newest = match drumlin_base::bug!("newest-sync-by-seqno") {
            true => newest.max_by_key(|logged| logged.group.span.last),
            false => newest.max_by_key(|logged| logged.sync.covers()),
        };
        self.env.statistics().wal_syncs.bump();
        let begin = self.env.clock().monotonic();
        let last = newest.map_or(0, |newest| newest.group.span.last);
        let synced = newest.map_or(Ok(()), |newest| newest.sync.run());
        let end = self.env.clock().monotonic();
        self.env.wal_synced(end.saturating_sub(begin));
        let synced = match drumlin_base::bug!("failed-sync-acknowledged") {
            true => Ok(()),
            false => synced,
        };
        if let Err(error) = &synced {
            // Before the next one leads: it must not acknowledge a write after a hole.
            let groups = others.iter().map(|(other, _)| other).chain([&own]);
            let first = groups.map(|logged| logged.group.span.before).min();
            self.poison_from(first.unwrap_or(0), error);
        } else {
            self.note_durable(last);
        }
        drop(lead);
        match synced {
            Ok(()) => self.apply_synced(own, others),
            Err(error) => {
                let error = error.context("the WAL could not be synced");
                let outcome = Err(error);
                complete_synced(others, &outcome);
                (own.group.complete(&outcome), outcome)
            }
        }
    }

    /// Applies and publishes the groups one sync has served.
    fn apply_synced(&self, mut own: Logged, others: Vec<SyncFollower>) -> Written {
        let mut spans: Vec<Span> = others.iter().map(|(other, _)| other.group.span).collect();
        spans.push(own.group.span);
        spans.sort_unstable();

        let is_large = |(other, _): &SyncFollower| other.group.bytes() >= SHARE_BYTES_MIN;
        let (shared, mut others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_large);
        let shares = Shares::new(shared.len());
        let mut sharing = Vec::with_capacity(shared.len());
        for (logged, follower) in shared {
            follower.share(logged, &shares);
            sharing.push(follower);
        }
        let mut applied = self.apply_members(&mut own.group);
        for (other, _) in &mut others {
            applied = applied.and(self.apply_members(&mut other.group));
        }
        let outcome = self.after_shares(&shares, applied, spans.first().copied());
        let outcome = outcome.and_then(|()| spans.iter().try_for_each(|span| self.publish(*span)));
        for follower in sharing {
            follower.complete(None, outcome.as_ref().map_err(Error::duplicate).copied());
        }
        complete_synced(others, &outcome);
        (own.group.complete(&outcome), outcome)
    }

    /// Applies a group that needs no sync, large followers their own part.
    fn apply_group(&self, group: &mut Group) -> Result<()> {
        let applied = self.apply_members(group);
        applied.inspect_err(|error| self.poison_from(group.span.before, error))
    }

    /// Puts a group's batches into the memtables: large ones by the members that brought them.
    fn apply_members(&self, group: &mut Group) -> Result<()> {
        let large = group.followers.iter().filter(|member| member.is_large());
        let large = large.count();
        if large == 0 {
            return timed(Measure::MemtableWriteNanos, || {
                self.env.apply(group.batches())
            });
        }
        let shares = Shares::new(large);
        for member in group.followers.iter_mut().filter(|it| it.is_large()) {
            if let Some(write) = member.write.take() {
                member.follower.share(Request::Write(write), &shares);
            }
        }
        let applied = self.env.apply(group.batches());
        self.after_shares(&shares, applied, None)
    }

    /// Waits for the members' parts. A part that failed fails the group; `from` is then where what
    /// will never be published begins.
    fn after_shares(&self, shares: &Shares, applied: Result<()>, from: Option<Span>) -> Result<()> {
        let whole = shares.wait();
        let outcome = applied.and_then(|()| match whole {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Aborted,
                "a member of the group could not apply its part",
            )),
        });
        if let (Err(error), Some(from)) = (&outcome, from) {
            self.poison_from(from.before, error);
        }
        outcome
    }

    /// Shows a group to readers, after all before it.
    fn publish(&self, span: Span) -> Result<()> {
        if self.env.published().publish(span) {
            self.env
                .statistics()
                .keys_written
                .add(span.last - span.before);
            return Ok(());
        }
        Err(self.env.refusal())
    }

    /// Poisons the database; groups after `before` are never published.
    fn poison_from(&self, before: u64, error: &Error) {
        self.poison(error);
        self.env.published().fail_from(before);
    }

    fn poison(&self, error: &Error) {
        self.env.degrade(Health::Poisoned, error);
    }

    /// A member's part of a group. The leader only learns that it failed, so the cause is noted here.
    fn apply_share<'a>(&self, batches: impl IntoIterator<Item = &'a WriteBatch>) -> Result<()> {
        self.env
            .apply(batches)
            .inspect_err(|error| self.poison(error))
    }
}

/// Gives groups back to their leaders, which complete them.
fn complete_synced(groups: Vec<SyncFollower>, outcome: &Result<()>) {
    for (logged, follower) in groups {
        let outcome = outcome.as_ref().map_err(Error::duplicate).copied();
        follower.complete(Some(logged), outcome);
    }
}

fn assert_promoted(turn: &Turn<Request>) {
    assert!(
        matches!(turn, Turn::Lead(Request::Exclusive)),
        "no leader takes an exclusive request, so its owner is promoted"
    );
}

/// A request in the queue of writers.
#[derive(Debug)]
pub(crate) enum Request {
    /// Write a batch.
    Write(PendingWrite),
    /// The lead itself, without a group.
    Exclusive,
}

/// A batch and its write mode.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    pub(crate) batch: WriteBatch,
    pub(crate) sync: bool,
    pub(crate) no_wal: bool,
    pub(crate) no_stall: bool,
    /// What is logged in place of the batch.
    pub(crate) step: Option<Box<TwoPhase>>,
}

impl PendingWrite {
    /// A write of what is in `batch`, which is left empty.
    fn new(batch: &mut WriteBatch, sync: bool, options: &WriteOptions) -> Self {
        Self {
            batch: batch.take(),
            sync,
            no_wal: options.no_wal,
            no_stall: options.no_stall,
            step: None,
        }
    }

    /// The writes that take space on the disk, now or later.
    pub(crate) fn writes(&self) -> &WriteBatch {
        match self.step.as_deref().map(|step| &step.phase) {
            Some(Phase::Prepare(writes)) => writes,
            _ => &self.batch,
        }
    }
}

/// Writers whose batches go into the log together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) own: PendingWrite,
    pub(crate) followers: Vec<Member>,
    pub(crate) span: Span,
}

/// A writer in another's group.
#[derive(Debug)]
pub(crate) struct Member {
    /// None once its owner has it back, to apply it.
    write: Option<PendingWrite>,
    follower: Arc<Follower<Request>>,
}

impl Member {
    /// Whether its owner applies it.
    fn is_large(&self) -> bool {
        let write = self.write.as_ref();
        write.is_some_and(|write| write.batch.len() >= SHARE_BYTES_MIN)
    }
}

impl Group {
    /// The batches, the leader's first.
    pub(crate) fn batches(&self) -> impl Iterator<Item = &WriteBatch> {
        let followers = self.followers.iter();
        let followers = followers.filter_map(|member| member.write.as_ref());
        std::iter::once(&self.own)
            .chain(followers)
            .map(|it| &it.batch)
    }

    /// Gives the batches the sequence numbers after `before`.
    pub(crate) fn number(&mut self, before: SeqNo) {
        let mut last = before;
        let followers = self.followers.iter_mut();
        let followers = followers.filter_map(|member| member.write.as_mut());
        for PendingWrite { batch, .. } in std::iter::once(&mut self.own).chain(followers) {
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

    /// Ends the followers' wait and gives their batches back; the leader's own is returned.
    pub(crate) fn complete(self, outcome: &Result<()>) -> PendingWrite {
        for Member { write, follower } in self.followers {
            let told = match drumlin_base::bug!("followers-told-of-success") {
                true => Ok(()),
                false => outcome.as_ref().map_err(Error::duplicate).copied(),
            };
            follower.complete(write.map(Request::Write), told);
        }
        self.own
    }
}

/// A group in the log that is not yet synced.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) group: Group,
    pub(crate) sync: WalSync,
}

/// The state of the log, which only the thread with the lead touches.
#[derive(Debug)]
pub(crate) struct LogState {
    pub(crate) wal: Wal,
    /// Where other writers wait for the one with the lead.
    queue: Arc<CommitQueue<Request>>,
    /// The end of the last group logged, which may not be published yet.
    pub(crate) last_seqno: SeqNo,
    /// Where groups of several batches are put together.
    pub(crate) scratch: WriteBatch,
    /// Bytes written that writers have not been throttled for yet.
    pub(crate) throttle: WriteThrottle,
    /// When the leader last looked whether writers must be slowed.
    pub(crate) rate_updated_at: Duration,
}

impl LogState {
    fn new(wal: Wal, last_seqno: SeqNo, queue: Arc<CommitQueue<Request>>) -> Self {
        Self {
            wal,
            queue,
            last_seqno,
            scratch: WriteBatch::new(),
            throttle: WriteThrottle::default(),
            rate_updated_at: Duration::ZERO,
        }
    }

    /// Announces that the thread with the lead is about to wait because of `cause`: writers behind it that may not
    /// wait for that get `Busy`.
    #[cold]
    pub(crate) fn begin_stall(&self, cause: WaitCause) {
        self.queue.begin_stall(cause.as_str());
    }
}
