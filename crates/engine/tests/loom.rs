//! Goal: in every interleaving each writer is served exactly once, by itself or by one leader, at
//! most one leads at a time, groups become visible in the order of the log and only when all of
//! them is in place, and nothing after a failed sync ever does. Method: loom runs the lines and the
//! order of publication themselves, with two and three writers, up to a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p drumlin --release --test loom`
#![cfg(loom)]

#[path = "../src/family/moment.rs"]
mod moment;
#[path = "loom/moments.rs"]
mod moments;
#[path = "loom/pipeline.rs"]
mod pipeline;
#[path = "../src/write/published.rs"]
mod published;
#[path = "../src/write/queue.rs"]
mod queue;

use std::sync::Arc;

use drumlin_base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use drumlin_base::sync::{Condvar, Mutex};
use drumlin_base::{Error, ErrorKind, Result};

use queue::{CommitQueue, Turn};

/// The leader's treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// May be served by another.
    Write(usize),
    /// Must lead itself.
    Exclusive(usize),
}

/// The queue, and a record of the leaders' work.
struct Shop {
    queue: CommitQueue<Request>,
    leads: AtomicBool,
    /// Times each request was served.
    served: Vec<AtomicUsize>,
    groups: AtomicUsize,
    fails: bool,
}

impl Shop {
    fn new(writers: usize, fails: bool) -> Arc<Self> {
        Arc::new(Self {
            queue: CommitQueue::quick(),
            leads: AtomicBool::new(false),
            served: (0..writers).map(|_| AtomicUsize::new(0)).collect(),
            groups: AtomicUsize::new(0),
            fails,
        })
    }

    fn serve(&self, request: Request) {
        let (Request::Write(index) | Request::Exclusive(index)) = request;
        self.served[index].fetch_add(1, Ordering::Relaxed);
    }

    /// `Engine::write` without a database.
    fn write(&self, request: Request) -> Result<()> {
        match self.queue.join(request, true) {
            Turn::Served(_, outcome) => {
                assert!(matches!(request, Request::Write(_)), "it wanted the lead");
                outcome
            }
            Turn::Share(..) => unreachable!("nothing is shared here"),
            Turn::Lead(own) => {
                assert_eq!(own, request, "the request comes back to its owner");
                let _lead = self.queue.lead_guard();
                self.lead(own)
            }
        }
    }

    fn lead(&self, own: Request) -> Result<()> {
        let before = self.leads.swap(true, Ordering::Acquire);
        assert!(!before, "two lead at once");
        self.groups.fetch_add(1, Ordering::Relaxed);
        let followers = match own {
            Request::Write(_) => self
                .queue
                .take_followers(|other| matches!(other, Request::Write(_))),
            Request::Exclusive(_) => Vec::new(),
        };
        self.serve(own);
        let outcome = || match self.fails {
            true => Err(Error::new(ErrorKind::Io, "the disk is gone")),
            false => Ok(()),
        };
        self.leads.store(false, Ordering::Release);
        for (request, follower) in followers {
            self.serve(request);
            follower.complete(Some(request), outcome());
        }
        outcome()
    }

    /// Once all came back: everybody was served once, and nobody is left to be promoted.
    fn check(&self) {
        for served in &self.served {
            assert_eq!(served.load(Ordering::Relaxed), 1);
        }
        let groups = self.groups.load(Ordering::Relaxed);
        assert!((1..=self.served.len()).contains(&groups), "{groups}");
        assert!(
            matches!(self.queue.join(Request::Exclusive(0), true), Turn::Lead(_)),
            "the line is empty and nobody leads"
        );
    }
}

/// Runs every request on a thread of its own, the first on the model's.
fn model(requests: &'static [Request], fails: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shop = Shop::new(requests.len(), fails);
        let others: Vec<_> = requests[1..]
            .iter()
            .map(|&request| {
                let shop = Arc::clone(&shop);
                loom::thread::spawn(move || shop.write(request).is_err())
            })
            .collect();
        assert_eq!(shop.write(requests[0]).is_err(), fails);
        for other in others {
            let failed = other.join().expect("the writer came back");
            assert_eq!(failed, fails, "the outcome of the group is everybody's");
        }
        shop.check();
    });
}

#[test]
fn two_writers_are_served_once_each() {
    model(&[Request::Write(0), Request::Write(1)], false);
}

#[test]
fn three_writers_are_served_once_each() {
    model(
        &[Request::Write(0), Request::Write(1), Request::Write(2)],
        false,
    );
}

#[test]
fn whoever_wants_the_lead_gets_it() {
    model(
        &[Request::Write(0), Request::Exclusive(1), Request::Write(2)],
        false,
    );
    model(&[Request::Exclusive(0), Request::Exclusive(1)], false);
}

/// The leader stalls until the other writer has come back, so one that waited for it would wait for ever.
#[test]
fn a_stall_keeps_nobody_who_may_not_wait() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let queue = Arc::new(CommitQueue::quick());
        let came_back = Arc::new((Mutex::new(false), Condvar::new()));
        let impatient = {
            let (queue, came_back) = (Arc::clone(&queue), Arc::clone(&came_back));
            loom::thread::spawn(move || {
                match queue.join(Request::Write(1), false) {
                    Turn::Lead(_) => drop(queue.lead_guard()),
                    Turn::Served(_, outcome) => {
                        let error = outcome.expect_err("nobody serves it");
                        assert_eq!(error.kind(), ErrorKind::Busy);
                    }
                    Turn::Share(..) => unreachable!("nothing is shared here"),
                }
                *came_back.0.lock() = true;
                came_back.1.notify_all();
            })
        };
        assert!(matches!(queue.join(Request::Write(0), true), Turn::Lead(_)));
        let lead = queue.lead_guard();
        queue.begin_stall("a stall");
        let mut is_back = came_back.0.lock();
        while !*is_back {
            is_back = came_back.1.wait(is_back);
        }
        drop(is_back);
        drop(lead);
        impatient.join().expect("it came back");
        assert!(matches!(
            queue.join(Request::Write(2), false),
            Turn::Lead(_)
        ));
    });
}

#[test]
fn a_failure_reaches_the_whole_group() {
    model(
        &[Request::Write(0), Request::Write(1), Request::Write(2)],
        true,
    );
}
