//! The stages of a write without a database: the line of the log, the line of the syncs, the work
//! of the members, and the order of publication. What a group writes is one flag a sequence number.

use std::sync::Arc;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use drumlin_base::{Error, ErrorKind, Result};

use crate::published::{Published, Span};
use crate::queue::{CommitQueue, Follower, Shares, Turn};

/// A write of one entry, or the wish for the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Unsynced,
    Synced,
    Exclusive,
}

/// The highest sequence number in these models.
const SEQNO_MAX: usize = 3;

/// A group in the log, with those who wait for it.
struct Logged {
    span: Span,
    followers: Vec<(Request, Arc<Follower<Request>>)>,
}

struct Pipeline {
    queue: CommitQueue<Request>,
    syncs: CommitQueue<Logged>,
    published: Published,
    /// The last sequence number logged. Only the leader uses it: the lead itself must hand it on, so that a
    /// leader that does not see its predecessor's writes takes the same numbers again.
    logged: AtomicU64,
    /// Up to where the log is synced, and whether a sync runs.
    synced: Mutex<(u64, bool)>,
    /// Times each entry was put in place.
    applied: Vec<AtomicUsize>,
    /// Whether followers do their own part.
    shares: bool,
    /// Whether syncs fail.
    fails: bool,
}

fn failure() -> Error {
    Error::new(ErrorKind::Io, "the disk is gone")
}

impl Pipeline {
    fn new(shares: bool, fails: bool) -> Arc<Self> {
        Arc::new(Self {
            queue: CommitQueue::quick(),
            syncs: CommitQueue::slow(),
            published: Published::new(0),
            logged: AtomicU64::new(0),
            synced: Mutex::new((0, false)),
            applied: (0..=SEQNO_MAX).map(|_| AtomicUsize::new(0)).collect(),
            shares,
            fails,
        })
    }

    fn write(&self, request: Request) -> Result<()> {
        match self.queue.join(request, true) {
            Turn::Served(_, outcome) => outcome,
            // Which entry is whose does not matter: its own leader counts one less.
            Turn::Share(_, share) => share.finish(Ok(())),
            Turn::Lead(Request::Exclusive) => {
                let _lead = self.queue.lead_guard();
                let logged = self.logged.load(Ordering::Relaxed);
                let whole = self.published.wait_for(logged);
                assert!(whole || self.fails);
                assert!(
                    !whole || self.published.load() == logged,
                    "all is published"
                );
                Ok(())
            }
            Turn::Lead(own) => self.lead(own),
        }
    }

    fn lead(&self, own: Request) -> Result<()> {
        let lead = self.queue.lead_guard();
        let before = self.logged.load(Ordering::Relaxed);
        let followers = self.queue.take_followers(|other| match other {
            Request::Exclusive => false,
            Request::Unsynced => true,
            Request::Synced => own == Request::Synced,
        });
        let last = before + 1 + followers.len() as u64;
        self.logged.store(last, Ordering::Relaxed);
        drop(lead);
        let group = Logged {
            span: Span { before, last },
            followers,
        };
        if own == Request::Synced {
            return self.sync(group);
        }
        self.apply(&group);
        let outcome = self.publish(group.span);
        complete(group, &outcome);
        outcome
    }

    fn sync(&self, group: Logged) -> Result<()> {
        match self.syncs.join(group, true) {
            Turn::Served(_, outcome) => outcome,
            Turn::Share(own, share) => {
                self.apply(&own);
                let outcome = share.finish(Ok(()));
                complete(own, &outcome);
                outcome
            }
            Turn::Lead(own) => self.lead_sync(own),
        }
    }

    fn lead_sync(&self, own: Logged) -> Result<()> {
        let lead = self.syncs.lead_guard();
        let others = self.syncs.take_followers(|_| true);
        let mut spans: Vec<_> = others.iter().map(|(other, _)| other.span).collect();
        spans.push(own.span);
        spans.sort_unstable();
        let synced = self.fsync(spans[spans.len() - 1].last);
        if synced.is_err() {
            self.published.fail_from(spans[0].before);
        }
        drop(lead);
        let shares = Shares::new(if self.shares { others.len() } else { 0 });
        let (mut taken, mut sharing) = (Vec::new(), Vec::new());
        for (other, follower) in others {
            if self.shares && synced.is_ok() {
                follower.share(other, &shares);
                sharing.push(follower);
            } else {
                taken.push((other, follower));
            }
        }
        let outcome = synced.and_then(|()| {
            self.apply(&own);
            taken.iter().for_each(|(other, _)| self.apply(other));
            assert!(shares.wait());
            spans.iter().try_for_each(|span| self.publish(*span))
        });
        for (other, follower) in taken {
            complete(other, &outcome);
            follower.complete(None, same(&outcome));
        }
        for follower in sharing {
            follower.complete(None, same(&outcome));
        }
        complete(own, &outcome);
        outcome
    }

    fn fsync(&self, last: u64) -> Result<()> {
        let mut state = self.synced.lock();
        assert!(!state.1, "two sync at once");
        if self.fails {
            return Err(failure());
        }
        state.1 = true;
        drop(state);
        let mut state = self.synced.lock();
        *state = (state.0.max(last), false);
        Ok(())
    }

    fn apply(&self, group: &Logged) {
        for seqno in group.span.before + 1..=group.span.last {
            self.applied[seqno as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn publish(&self, span: Span) -> Result<()> {
        match self.published.publish(span) {
            true => Ok(()),
            false => Err(failure()),
        }
    }

    /// Every entry a reader sees is in place, once.
    fn read(&self) -> u64 {
        let seen = self.published.load();
        for seqno in 1..=seen as usize {
            let times = self.applied[seqno].load(Ordering::Relaxed);
            assert_eq!(times, 1, "entry {seqno} is in place when {seen} is seen");
        }
        seen
    }
}

fn same(outcome: &Result<()>) -> Result<()> {
    outcome.as_ref().map_err(Error::duplicate).copied()
}

fn complete(group: Logged, outcome: &Result<()>) {
    for (_, follower) in group.followers {
        follower.complete(None, same(outcome));
    }
}

/// Runs every request on a thread of its own, the first on the model's; returns their outcomes.
fn model(
    requests: &'static [Request],
    (shares, fails): (bool, bool),
    check: impl Fn(&Pipeline, &[bool]) + Send + Sync + Copy + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let pipeline = Pipeline::new(shares, fails);
        let others: Vec<_> = requests[1..]
            .iter()
            .map(|&request| {
                let pipeline = Arc::clone(&pipeline);
                loom::thread::spawn(move || {
                    let done = pipeline.write(request).is_ok();
                    pipeline.read();
                    done
                })
            })
            .collect();
        let mut done = vec![pipeline.write(requests[0]).is_ok()];
        pipeline.read();
        done.extend(
            others
                .into_iter()
                .map(|other| other.join().expect("it came back")),
        );
        pipeline.read();
        check(&pipeline, &done);
    });
}

fn all_are_visible(pipeline: &Pipeline, done: &[bool]) {
    assert!(done.iter().all(|done| *done));
    let logged = pipeline.logged.load(Ordering::Relaxed);
    assert_eq!(pipeline.published.load(), logged);
}

#[test]
fn unsynced_groups_are_applied_side_by_side_and_seen_in_order() {
    use Request::Unsynced;
    model(&[Unsynced, Unsynced], (false, false), all_are_visible);
    model(
        &[Unsynced, Unsynced, Unsynced],
        (false, false),
        all_are_visible,
    );
}

#[test]
fn synced_groups_are_seen_after_their_sync() {
    use Request::{Synced, Unsynced};
    let check = |pipeline: &Pipeline, done: &[bool]| {
        all_are_visible(pipeline, done);
        assert!(pipeline.synced.lock().0 >= 1);
    };
    model(&[Synced, Synced], (false, false), check);
    model(&[Synced, Unsynced], (false, false), check);
    model(&[Synced, Synced, Synced], (false, false), check);
}

#[test]
fn members_that_do_their_part_are_waited_for() {
    use Request::Synced;
    model(&[Synced, Synced, Synced], (true, false), all_are_visible);
}

#[test]
fn the_lone_leader_waits_for_every_group_before_it() {
    use Request::{Exclusive, Synced, Unsynced};
    model(&[Exclusive, Synced], (false, false), all_are_visible);
    model(
        &[Unsynced, Exclusive, Synced],
        (false, false),
        all_are_visible,
    );
}

#[test]
fn nothing_after_a_failed_sync_is_ever_seen() {
    use Request::{Exclusive, Synced, Unsynced};
    let check = |pipeline: &Pipeline, done: &[bool]| {
        let acknowledged = done.iter().filter(|done| **done).count() as u64;
        assert!(!done[0], "its sync failed");
        assert_eq!(
            pipeline.published.load(),
            acknowledged,
            "what was told is what is seen"
        );
    };
    model(&[Synced, Unsynced], (false, true), check);
    model(&[Synced, Synced, Unsynced], (false, true), check);
    let check = |_: &Pipeline, done: &[bool]| assert!(!done[0]);
    model(&[Synced, Exclusive], (false, true), check);
}

/// Groups that end in any order, each on a thread of its own, and one that waits for all.
#[test]
fn finished_groups_are_published_by_those_before_them() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let published = Arc::new(Published::new(0));
        let spans = [(0, 1), (1, 3), (3, 4)];
        let threads: Vec<_> = spans[1..]
            .iter()
            .map(|&(before, last)| {
                let published = Arc::clone(&published);
                loom::thread::spawn(move || {
                    assert!(published.publish(Span { before, last }));
                    assert!(published.load() >= last, "it returns when it is seen");
                })
            })
            .collect();
        assert!(published.publish(Span { before: 0, last: 1 }));
        assert!(
            published.publish(Span { before: 1, last: 1 }),
            "an empty group"
        );
        assert!(published.wait_for(4));
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("it came back"));
        assert_eq!(published.load(), 4);
    });
}
