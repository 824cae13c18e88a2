//! The sockets of the server and of its clients, and who among them has something to be done.
//!
//! They are a part of the server's state, so that other clients can be answered while a command runs for long.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use drumlin_fs::net::{Acceptor, Address, Poller, Token};

use crate::io::Io;
use crate::memory::crowd::Crowd;
use crate::queue::Queue;
use drumlin_scrape::Scraper;

/// Who comes to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    Client,
    /// A client over TLS.
    Secure,
    Scraper,
}

/// A listener.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) acceptor: Acceptor,
    pub(crate) token: Token,
    /// Where it is, as the configuration says it: with a port of 0, which stands for any.
    pub(crate) asked: Address,
    pub(crate) guest: Guest,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) poller: Box<dyn Poller>,
    pub(crate) doors: Vec<Door>,
    /// By the client's id. That of a client whose commands are being run is apart.
    pub(crate) ios: HashMap<u64, Io>,
    pub(crate) scrapers: HashMap<u64, Scraper>,
    next_id: u64,
    /// Ends of handshakes under way, and of some that are over, by the monotonic clock; and how many may go on in this turn.
    pub(crate) greetings: VecDeque<(Duration, u64)>,
    pub(crate) greetings_left: usize,
    /// Ends of the time in which those who have to authenticate may do so, by the monotonic clock; also of some that are over.
    pub(crate) strangers: VecDeque<(Duration, u64)>,
    /// Those who have said that they send nothing more.
    pub(crate) over: Vec<u64>,
    /// Those who ran something in the present round.
    pub(crate) participants: Vec<u64>,
    /// Those who in the present turn, as in those before, sent only what hands answer.
    pub(crate) readers: Vec<u64>,
    /// Those who have commands that were read and not run, in the order in which these came.
    pub(crate) runnable: Queue,
    /// Those of them whose turn comes in the present round.
    pub(crate) turn: Queue,
    /// The memory of clients together.
    pub(crate) crowd: Crowd,
    /// Those for whom more waits than the soft limit of their class, and since when, by the monotonic clock; `None` until
    /// that was looked at.
    pub(crate) behind: HashMap<u64, Option<Duration>>,
    /// Ends of waits for keys, by the monotonic clock.
    pub(crate) timers: BTreeSet<(Duration, u64)>,
}

impl Net {
    /// Without clients.
    pub(crate) fn new(poller: Box<dyn Poller>, doors: Vec<Door>) -> Self {
        Self {
            poller,
            // Tokens below are those of the first listeners.
            next_id: doors.len().max(1) as u64,
            doors,
            ios: HashMap::new(),
            scrapers: HashMap::new(),
            greetings: VecDeque::new(),
            greetings_left: 0,
            strangers: VecDeque::new(),
            over: Vec::new(),
            participants: Vec::new(),
            readers: Vec::new(),
            runnable: Queue::default(),
            turn: Queue::default(),
            crowd: Crowd::default(),
            behind: HashMap::new(),
            timers: BTreeSet::new(),
        }
    }

    /// An id for a client or a scraper, which is its token.
    pub(crate) fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Whether the token is a listener's, and its place.
    pub(crate) fn door(&self, token: Token) -> Option<usize> {
        self.doors.iter().position(|door| door.token == token)
    }
}
