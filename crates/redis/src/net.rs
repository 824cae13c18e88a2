//! The sockets of the server and of its clients, and who among them has something to be done.
//!
//! They are a part of the server's state, so that other clients can be answered while a command runs for long.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use drumlin_fs::net::{Acceptor, Poller};

use crate::io::Io;

/// See the module.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) poller: Box<dyn Poller>,
    pub(crate) acceptors: Vec<Acceptor>,
    /// By the client's id. That of a client whose commands are being run is apart.
    pub(crate) ios: HashMap<u64, Io>,
    pub(crate) next_id: u64,
    /// Those who ran something in the present round.
    pub(crate) participants: Vec<u64>,
    /// Those who have commands that were read and not run.
    pub(crate) runnable: BTreeSet<u64>,
    /// Those of them whose turn comes in the present round.
    pub(crate) turn: BTreeSet<u64>,
    /// Ends of waits for keys, by the monotonic clock.
    pub(crate) timers: BTreeSet<(Duration, u64)>,
}

impl Net {
    /// Without clients.
    pub(crate) fn new(poller: Box<dyn Poller>, acceptors: Vec<Acceptor>) -> Self {
        Self {
            poller,
            acceptors,
            ios: HashMap::new(),
            next_id: 1,
            participants: Vec::new(),
            runnable: BTreeSet::new(),
            turn: BTreeSet::new(),
            timers: BTreeSet::new(),
        }
    }
}
