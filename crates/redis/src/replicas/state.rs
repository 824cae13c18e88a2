//! What the loop knows of the servers that follow this one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_resp::{Args, OwnedArgs, encode_command};

use super::backlog::Backlog;
use super::dump::Dump;
use super::history::{History, new_id};
use super::member::{Greeting, Member, Request, Stage};
use super::unit::Unit;
use crate::config::{Config, OutLimits};

/// Counters of INFO.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Syncs {
    /// Replicas that got all data.
    pub(crate) full: u64,
    /// Those that went on where they were, and those that asked for that and could not.
    pub(crate) partial: u64,
    pub(crate) refused: u64,
}

/// A client that waits until so many replicas have run the stream up to an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) offset: u64,
    pub(crate) replicas: u64,
}

/// Commands that come by keys which nobody named.
const PASSES_ANY_KEY: [&[u8]; 2] = [b"randomkey", b"scan"];

/// The effects of a command, where they are not those of the command itself.
pub(crate) type Effects = Option<Vec<OwnedArgs>>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Replicas {
    /// Changes of commands go into the stream: there was a replica, and the server is none itself.
    pub(crate) collects: bool,
    /// There is a stream: its own, or that of its primary.
    pub(crate) is_active: bool,
    pub(crate) history: History,
    pub(crate) backlog: Backlog,
    /// Bytes of the stream that are not in the backlog, as the changes that they tell of are not written.
    pending: Vec<u8>,
    /// Of a transaction of the primary's stream that has not ended.
    partial: Vec<u8>,
    pub(crate) unit: Unit,
    /// The database that the stream has selected.
    pub(super) selected: Option<u16>,
    pub(crate) members: BTreeMap<u64, Member>,
    /// Threads that were told to end.
    pub(super) ending: Vec<Dump>,
    pub(crate) waiters: BTreeMap<u64, Waiter>,
    /// Somebody waits for replicas: they are asked how far they are.
    pub(super) asks_acks: bool,
    pub(crate) syncs: Syncs,
    /// `repl-backlog-size`, `min-replicas-to-write`, `min-replicas-max-lag`.
    pub(super) backlog_bytes: u64,
    needed: u64,
    lag_max_seconds: u64,
    pub(super) limits: OutLimits,
    /// By the monotonic clock: the next look, and the next sign of life; since when there is no replica.
    pub(super) look_due: Duration,
    pub(super) ping_due: Option<Duration>,
    pub(super) alone_since: Option<Duration>,
}

impl Replicas {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let zero = Duration::ZERO;
        Self {
            collects: false,
            is_active: false,
            history: History {
                id: new_id(rng),
                before: None,
            },
            backlog: Backlog::default(),
            pending: Vec::new(),
            partial: Vec::new(),
            unit: Unit::default(),
            selected: None,
            members: BTreeMap::new(),
            ending: Vec::new(),
            waiters: BTreeMap::new(),
            asks_acks: false,
            syncs: Syncs::default(),
            backlog_bytes: 0,
            needed: 0,
            lag_max_seconds: 0,
            limits: Config::default().replica_limits(),
            look_due: zero,
            ping_due: None,
            alone_since: None,
        }
    }

    /// Takes over what the configuration says.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.backlog_bytes = config.number("repl-backlog-size").max(16 << 10);
        self.lag_max_seconds = config.number("min-replicas-max-lag");
        self.needed = match self.lag_max_seconds {
            0 => 0,
            _ => config.number("min-replicas-to-write"),
        };
        self.limits = config.replica_limits();
    }

    // Effects.

    /// Notes that a command has run on the database `db`, and that these keys had expired before. `has_changed` if it changed
    /// anything.
    pub(crate) fn ran(
        &mut self,
        (db, args): (u16, Args<'_>),
        effects: Effects,
        expired: &BTreeSet<(u16, Vec<u8>)>,
        has_changed: bool,
    ) {
        let is_first = self.unit.len() == 0;
        for (db, key) in expired {
            self.delete(*db, key);
        }
        let name = args.get(0).unwrap_or_default();
        let passes = |it: &&[u8]| it.eq_ignore_ascii_case(name);
        if is_first && !has_changed && PASSES_ANY_KEY.iter().any(passes) {
            self.unit.loosen();
        }
        match effects {
            Some(commands) => {
                for command in commands {
                    self.unit.push(db, command);
                }
            }
            None if has_changed => self.unit.push(db, args.iter().collect()),
            None => {}
        }
    }

    /// Notes that a key is gone.
    pub(crate) fn delete(&mut self, db: u16, key: &[u8]) {
        let args = [b"DEL".as_slice(), key].into_iter().collect();
        self.unit.push(db, args);
    }

    /// The unit cannot be taken back any more.
    pub(crate) fn keep_unit(&mut self) {
        self.unit.write(&mut self.selected, &mut self.pending);
    }

    /// Takes bytes of the primary's stream that were run; within a transaction `is_open`.
    pub(crate) fn feed(&mut self, bytes: &[u8], is_open: bool) {
        match (is_open, self.partial.is_empty()) {
            (false, true) => self.pending.extend_from_slice(bytes),
            (true, _) => self.partial.extend_from_slice(bytes),
            (false, false) => {
                self.pending.append(&mut self.partial);
                self.pending.extend_from_slice(bytes);
            }
        }
    }

    /// The present changes are written: the stream tells of them.
    pub(crate) fn commit(&mut self) {
        if !self.pending.is_empty() {
            self.backlog.push(&self.pending);
            self.pending.clear();
            self.pending.shrink_to(1 << 20);
        }
    }

    /// They never will be.
    pub(crate) fn drop_pending(&mut self) {
        self.pending.clear();
        // It may have had the last SELECT.
        self.selected = None;
    }

    /// Bytes of the stream, those that are not written yet too.
    pub(crate) fn offset(&self) -> u64 {
        self.backlog.end() + self.pending.len() as u64
    }

    /// Adds a command to the stream that changes nothing.
    pub(super) fn say(&mut self, words: &[&str]) {
        encode_command(&mut self.pending, words);
        self.commit();
    }

    // The stream.

    /// Begins a stream of its own: what was before is not in it.
    pub(super) fn begin_stream(&mut self, rng: &mut Rng, is_replica: bool) {
        if !self.is_active {
            self.history = History {
                id: new_id(rng),
                before: None,
            };
            self.selected = None;
        }
        self.is_active = true;
        self.collects = !is_replica;
    }

    /// The stream is that of a primary from here on, whose data is all here.
    pub(crate) fn adopt(&mut self, id: &str, offset: u64) {
        self.history = History {
            id: id.to_owned(),
            before: None,
        };
        self.pending.clear();
        self.partial.clear();
        self.backlog.restart(offset);
        self.is_active = true;
        self.collects = false;
    }

    /// The stream of the primary goes on, as `id`; whether that is another name.
    pub(crate) fn go_on(&mut self, id: &str) -> bool {
        self.partial.clear();
        let is_new = self.history.id != id;
        if is_new {
            let offset = self.offset();
            self.history.rename(id.to_owned(), offset);
        }
        is_new
    }

    /// The server is its own primary from here on.
    pub(crate) fn promote(&mut self, rng: &mut Rng) {
        if self.is_active {
            let offset = self.offset();
            self.history.rename(new_id(rng), offset);
        }
        self.partial.clear();
        self.selected = None;
        self.collects = self.is_active;
    }

    /// The server follows another one from here on; the place in its own stream, if it has one.
    pub(crate) fn demote(&mut self) -> Option<(String, u64, u16)> {
        self.collects = false;
        self.unit.clear();
        let place = (
            self.history.id.clone(),
            self.offset(),
            self.selected.unwrap_or(0),
        );
        self.is_active.then_some(place)
    }

    // Members.

    /// Takes a client as a replica.
    pub(crate) fn attach(&mut self, id: u64, greeting: Greeting, request: Request, seconds: u64) {
        let member = Member::new(greeting, request, seconds);
        self.members.insert(id, member);
    }

    /// A client is gone, or waits no more.
    pub(crate) fn forget(&mut self, id: u64) {
        self.waiters.remove(&id);
        if let Some(member) = self.members.remove(&id) {
            self.end_dump(member.stage);
        }
    }

    pub(super) fn end_dump(&mut self, stage: Stage) {
        if let Stage::Dump(dump) = stage {
            dump.stop();
            self.ending.push(dump);
        }
    }

    /// Ends the threads, and waits for that.
    pub(crate) fn end(&mut self) {
        self.members.clear();
        self.ending.clear();
    }

    /// A replica has shown that it is there.
    pub(crate) fn is_alive(&mut self, id: u64, now_seconds: u64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.acked_seconds = now_seconds;
        }
    }

    /// How many replicas have run the stream up to `offset`.
    pub(crate) fn acked(&self, offset: u64) -> u64 {
        let members = self.members.values();
        let acked = members.filter(|it| it.is_online() && it.acked >= offset);
        acked.count() as u64
    }

    /// Whether there are as many replicas as writes need.
    pub(crate) fn has_enough(&self, now_seconds: u64) -> bool {
        if self.needed == 0 {
            return true;
        }
        self.good(now_seconds) >= self.needed
    }

    /// Replicas that keep up; `None` where nobody asks.
    pub(crate) fn told_good(&self, now_seconds: u64) -> Option<u64> {
        (self.needed > 0).then(|| self.good(now_seconds))
    }

    fn good(&self, now_seconds: u64) -> u64 {
        let members = self.members.values();
        let good =
            members.filter(|it| it.is_online() && it.lag(now_seconds) <= self.lag_max_seconds);
        good.count() as u64
    }

    /// A client waits for replicas.
    pub(crate) fn wait(&mut self, client: u64, waiter: Waiter) {
        self.waiters.insert(client, waiter);
        self.ask_acks();
    }

    /// Replicas are asked how far they are.
    pub(crate) fn ask_acks(&mut self) {
        self.asks_acks = true;
    }

    /// Those whose wait is over.
    pub(crate) fn take_served(&mut self) -> Vec<u64> {
        let waiters = self.waiters.iter();
        let served = waiters.filter(|(_, it)| self.acked(it.offset) >= it.replicas);
        let served: Vec<u64> = served.map(|(id, _)| *id).collect();
        for id in &served {
            self.waiters.remove(id);
        }
        served
    }
}
