//! The state of a network in memory; the operations on it are in `mem_listen`, `mem_transfer` and `mem_ready`.
//!
//! Thread safety: one lock around all of it, under which nothing blocks. Operations get the time from their callers.
//! Numbers of listeners, of ends of connections and of pollers come from one counter, and all maps are ordered, so a
//! run follows from the seed and the order of calls.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::sync::Condvar;

use super::fault::NetRules;
use super::mem_end::End;
use super::{Address, Interest, Token};

/// The first port for clients, and for listeners that choose none: the first of the dynamic ports of RFC 6335.
const FIRST_FREE_PORT: u16 = 49_152;

/// Nobody's number.
pub(super) const NOBODY: u64 = 0;

#[derive(Debug)]
pub(super) struct Listening {
    pub(super) address: Address,
    pub(super) unix_mode: u32,
    pub(super) backlog: usize,
    /// Ends that wait to be accepted; those beyond the backlog are not connected yet.
    pub(super) queue: VecDeque<u64>,
}

/// One registration with a poller.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) token: Token,
    pub(super) interest: Interest,
    /// The time from which waits report readiness of reading and of writing; set when it begins.
    pub(super) told_from: [Option<Duration>; 2],
}

#[derive(Debug, Default)]
pub(super) struct Polling {
    pub(super) slots: BTreeMap<u64, Slot>,
    pub(super) woken: bool,
    /// The source of the last event reported; those after it come first.
    pub(super) last_told: u64,
    pub(super) bell: Arc<Condvar>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) rules: NetRules,
    /// The most bytes on their way in each direction of a connection.
    pub(super) capacity: usize,
    pub(super) rng: Rng,
    pub(super) last_id: u64,
    pub(super) next_port: u16,
    pub(super) listeners: BTreeMap<u64, Listening>,
    pub(super) ends: BTreeMap<u64, End>,
    pub(super) pollers: BTreeMap<u64, Polling>,
    /// The poller of each registered source.
    pub(super) registrations: BTreeMap<u64, u64>,
}

impl State {
    pub(super) fn new(seed: u64, capacity: usize) -> Self {
        Self {
            rules: NetRules::default(),
            capacity,
            rng: Rng::new(seed),
            last_id: NOBODY,
            next_port: FIRST_FREE_PORT,
            listeners: BTreeMap::new(),
            ends: BTreeMap::new(),
            pollers: BTreeMap::new(),
            registrations: BTreeMap::new(),
        }
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn new_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
        port
    }

    /// Has the poller of the source look again.
    pub(super) fn notify(&self, source: u64) {
        let poller = self.registrations.get(&source);
        if let Some(polling) = poller.and_then(|poller| self.pollers.get(poller)) {
            polling.bell.notify_all();
        }
    }

    /// Listeners and ends that are open.
    pub(super) fn sources(&self) -> usize {
        self.listeners.len() + self.ends.len()
    }

    pub(super) fn unix_mode(&self, address: &Address) -> Option<u32> {
        let mut listeners = self.listeners.values();
        let found = listeners.find(|listening| listening.address == *address)?;
        Some(found.unix_mode)
    }
}
