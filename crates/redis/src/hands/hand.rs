//! A hand: the thread, with its poller and the connections that it was lent.
//!
//! Invariant: a round reads its sockets first, and takes its moment of the store then. So a command that was sent after somebody was
//! told of a change sees that change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin_fs::Clock;
use drumlin_fs::net::{Events, Poller, Token};

use super::lent::Lent;
use super::post::{Asked, Post, Terms};
use super::quick::{Moment, Next, Quick};
use super::tally::Tally;
use crate::io::Heard;

/// Events of one wait.
const EVENTS_MAX: usize = 256;
/// A connection that says nothing for so long goes home: the loop alone knows how long it may.
const SILENCE: Duration = Duration::from_millis(100);
/// One with so many bytes of a command that is not whole does, too: they are counted there.
const PART_BYTES_MAX: usize = 16 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Hand {
    post: Arc<Post>,
    poller: Box<dyn Poller>,
    clock: Arc<dyn Clock>,
    quick: Quick,
    /// By the client's id.
    lent: BTreeMap<u64, Lent>,
    terms: Option<Terms>,
    tally: Tally,
    /// Replies of the connection that is served.
    out: Vec<u8>,
    /// When it last looked for connections that say nothing.
    looked: Duration,
}

/// Tells the loop of the end of a hand, whatever ended it.
struct Ends(Arc<Post>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl Hand {
    /// One without connections.
    pub(super) fn new(
        post: Arc<Post>,
        poller: Box<dyn Poller>,
        clock: Arc<dyn Clock>,
        quick: Quick,
    ) -> Self {
        Self {
            post,
            poller,
            clock,
            quick,
            lent: BTreeMap::new(),
            terms: None,
            tally: Tally::default(),
            out: Vec::new(),
            looked: Duration::ZERO,
        }
    }

    /// Serves until it is to end.
    pub(super) fn run(mut self) {
        let _ends = Ends(Arc::clone(&self.post));
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            match self.post.read() {
                Asked::End => return,
                Asked::GiveBack => self.give_back(),
                Asked::Serve(lent, terms) => {
                    self.terms = terms.or(self.terms);
                    self.take_in(lent);
                }
            }
            let early = drumlin_base::bug!("redis-hand-of-an-earlier-moment")
                .then(|| self.quick.moment(std::iter::empty()));
            let timeout = (!self.lent.is_empty()).then_some(SILENCE);
            if self.poller.wait(&mut events, timeout).is_err() {
                // The loop meets its clients, and ends with this one's thread.
                self.give_back();
                return;
            }
            self.round(&events, early);
        }
    }

    fn take_in(&mut self, lent: Vec<Lent>) {
        let mut refused = Vec::new();
        for mut one in lent {
            match one.io.enter(&*self.poller, Token(one.id)) {
                Ok(()) => drop(self.lent.insert(one.id, one)),
                Err(_) => refused.push(one),
            }
        }
        self.post.bring_home(refused);
    }

    /// Gives up everything.
    fn give_back(&mut self) {
        let ids: Vec<u64> = self.lent.keys().copied().collect();
        let home = ids.into_iter().filter_map(|id| self.let_go(id)).collect();
        self.post.give_back(home);
    }

    fn let_go(&mut self, id: u64) -> Option<Lent> {
        let mut lent = self.lent.remove(&id)?;
        // It is registered here, and one that cannot be taken out is met again by who registers it.
        drop(lent.io.leave(&*self.poller));
        Some(lent)
    }

    /// Reads what has come, answers it, and sends those home who are not for hands.
    fn round(&mut self, events: &Events, early: Option<Moment>) {
        let now = self.clock.monotonic();
        let (mut ready, mut goes) = (Vec::new(), Vec::new());
        for event in events.iter() {
            let id = event.token.0;
            let Some(lent) = self.lent.get_mut(&id) else {
                continue;
            };
            match lent.io.read(now) {
                Heard::Bytes(bytes) => {
                    self.tally.reads += 1;
                    self.tally.bytes_in += bytes as u64;
                    ready.push(id);
                }
                Heard::Nothing => {}
                Heard::Gone => goes.push(id),
            }
        }
        if let (false, Some(terms)) = (ready.is_empty(), self.terms) {
            let lent = ready.iter().filter_map(|id| self.lent.get(id));
            let mut moment = early.unwrap_or_else(|| self.quick.moment(lent));
            for id in ready {
                if self.post.is_called() {
                    // What was read and not run goes home with its connection.
                    break;
                }
                if self.serve(id, &mut moment, &terms) == Next::GoesHome {
                    goes.push(id);
                }
            }
            self.post.tell(&mut self.tally);
        }
        if now.saturating_sub(self.looked) >= SILENCE {
            self.looked = now;
            let silent = |lent: &Lent| now.saturating_sub(lent.io.heard) >= SILENCE;
            let lent = self.lent.values().filter(|lent| silent(lent));
            goes.extend(lent.map(|lent| lent.id));
        }
        let home = goes.into_iter().filter_map(|id| self.let_go(id)).collect();
        self.post.bring_home(home);
    }

    /// Runs what a connection has sent, and sends the replies.
    fn serve(&mut self, id: u64, moment: &mut Moment, terms: &Terms) -> Next {
        let Some(lent) = self.lent.get_mut(&id) else {
            return Next::Stays;
        };
        loop {
            let told = (&mut self.out, &mut self.tally);
            let next = self.quick.run(lent, moment, terms, told);
            let sent = lent.io.send(&mut self.out);
            if let Ok(sent) = sent {
                self.tally.bytes_out += sent as u64;
                self.tally.writes += u64::from(sent > 0);
            }
            lent.io.compact();
            lent.wants_loop = next == Next::GoesHome;
            if !self.out.is_empty() {
                // A socket that takes no more, or that failed, is the loop's.
                lent.out = std::mem::take(&mut self.out);
                return Next::GoesHome;
            }
            if lent.io.pending_bytes() > PART_BYTES_MAX && next == Next::Stays {
                return Next::GoesHome;
            }
            if next != Next::GoesOn || self.post.is_called() {
                return next;
            }
        }
    }
}
