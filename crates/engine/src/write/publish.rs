//! What follows a group's append: its sync if it asked for one, its way into the memtables, and its
//! publication in the order of the log.
//!
//! Syncs have a lead of their own ([`Engine::syncs`]). Groups logged while a sync is under way stand
//! in its line; the next sync serves all of them. It begins as soon as the one before it has ended,
//! beside the work of the groups that one served.
//!
//! Invariants:
//! - A synced group is applied and published only after its sync. When that fails, nothing of it,
//!   nor of any group logged after it, is ever published, and the database is poisoned.
//! - Nobody waits for a group before it while he leads a line that group may need.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};

use crate::db::engine::Engine;
use crate::watch::events::Health;
use crate::write::batch::WriteBatch;
use crate::write::leader::{Group, Logged, Request};
use crate::write::published::Span;
use crate::write::queue::{Follower, Shares, Turn};

/// From how many bytes of its own on a member applies its batch itself: below, waking it takes
/// longer than the work it takes over.
const SHARE_BYTES_MIN: usize = 32 << 10;

type SyncFollower = (Logged, Arc<Follower<Logged>>);

impl Engine {
    /// Makes a logged group outlive a power cut, applies and publishes it: as the leader of a sync,
    /// or served by one.
    pub(crate) fn sync_then_publish(&self, logged: Logged) -> Result<()> {
        match self.syncs.join(logged) {
            Turn::Served(outcome) => outcome,
            Turn::Lead(own) => self.lead_sync(own),
            Turn::Share(mut own, share) => {
                let applied = self.apply_members(&mut own.group);
                let outcome = share.finish(applied.inspect_err(|error| self.poison(error)));
                own.group.complete(&outcome);
                outcome
            }
        }
    }

    fn lead_sync(&self, own: Logged) -> Result<()> {
        let lead = self.syncs.lead();
        let others = self.syncs.take_followers(|_| true);
        let newest = others.iter().map(|(other, _)| other).chain([&own]);
        let newest = newest.max_by_key(|logged| logged.group.span.last);
        self.statistics.wal_syncs.bump();
        let begin = self.env.clock.monotonic();
        let synced = newest.map_or(Ok(()), |newest| newest.sync.run());
        let end = self.env.clock.monotonic();
        self.disk.wal_synced(end.saturating_sub(begin));
        let synced = match drumlin_base::bug!("failed-sync-acknowledged") {
            true => Ok(()),
            false => synced,
        };
        if let Err(error) = &synced {
            // Before the next one leads: it must not acknowledge what follows a hole.
            let groups = others.iter().map(|(other, _)| other).chain([&own]);
            let first = groups.map(|logged| logged.group.span.before).min();
            self.poison_from(first.unwrap_or(0), error);
        }
        drop(lead);
        match synced {
            Ok(()) => self.apply_synced(own, others),
            Err(error) => {
                let error = error.context("the WAL could not be synced");
                let outcome = Err(error);
                complete_synced(others, &outcome);
                own.group.complete(&outcome);
                outcome
            }
        }
    }

    /// Applies and publishes the groups one sync has served.
    fn apply_synced(&self, mut own: Logged, others: Vec<SyncFollower>) -> Result<()> {
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
            follower.complete(outcome.as_ref().map_err(Error::duplicate).copied());
        }
        complete_synced(others, &outcome);
        own.group.complete(&outcome);
        outcome
    }

    /// Applies a group that needs no sync, large followers their own part.
    pub(crate) fn apply_group(&self, group: &mut Group) -> Result<()> {
        let applied = self.apply_members(group);
        applied.inspect_err(|error| self.poison_from(group.span.before, error))
    }

    /// Puts a group's batches into the memtables: large ones by the members that brought them.
    fn apply_members(&self, group: &mut Group) -> Result<()> {
        let is_large = |request: &Request| match request {
            Request::Write(write) => write.batch.len() >= SHARE_BYTES_MIN,
            Request::Lead => false,
        };
        let large = group
            .followers
            .iter()
            .filter(|(request, _)| is_large(request));
        let large = large.count();
        if large == 0 {
            return self.apply(group.batches());
        }
        let shares = Shares::new(large);
        for (request, follower) in &mut group.followers {
            if is_large(request) {
                follower.share(std::mem::replace(request, Request::Lead), &shares);
            }
        }
        let applied = self.apply(group.batches());
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
    pub(crate) fn publish(&self, span: Span) -> Result<()> {
        if self.published.publish(span) {
            self.statistics.keys_written.add(span.last - span.before);
            return Ok(());
        }
        Err(self.refusal(&self.lock_state()))
    }

    /// Poisons the database; groups after `before` are never published.
    fn poison_from(&self, before: u64, error: &Error) {
        self.poison(error);
        self.published.fail_from(before);
    }

    fn poison(&self, error: &Error) {
        self.degrade(&mut self.lock_state(), Health::Poisoned, error);
    }

    /// A member's part of a group. Whoever waits for it only learns that it failed, so the cause is noted here.
    pub(crate) fn apply_share<'a>(
        &self,
        batches: impl IntoIterator<Item = &'a WriteBatch>,
    ) -> Result<()> {
        self.apply(batches).inspect_err(|error| self.poison(error))
    }

    /// Puts every record of `batches` into its memtable. A key order of the user's that panics fails the group:
    /// others wait for it, and what is logged after it may not be seen.
    pub(crate) fn apply<'a>(
        &self,
        batches: impl IntoIterator<Item = &'a WriteBatch>,
    ) -> Result<()> {
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
        let families = self.families.load();
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
            self.statistics.bytes_written.add(batch.len() as u64);
        }
        Ok(())
    }
}

fn complete_synced(groups: Vec<SyncFollower>, outcome: &Result<()>) {
    for (logged, follower) in groups {
        logged.group.complete(outcome);
        follower.complete(outcome.as_ref().map_err(Error::duplicate).copied());
    }
}

/// What a panic said.
fn said(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("it gave no reason")
}
