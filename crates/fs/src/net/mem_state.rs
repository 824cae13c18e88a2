//! The state of a network in memory, and the operations on it.
//!
//! Thread safety: one lock around all of it, [`Shared::state`], under which nothing blocks. Functions get the time
//! from their callers. Numbers of listeners, of ends of connections and of pollers come from one counter, and all maps are
//! ordered, so that what happens follows from the seed and the order of calls.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::sync::{Condvar, Mutex};

use super::fault::{NetFault, NetOp, NetRules};
use super::mem_end::{CutOff, End, Ready};
use super::{Address, Event, Events, Interest, Received, Sent, Token};
use crate::Clock;

/// The first port given to who does not choose one, as of Linux and IANA.
const FIRST_FREE_PORT: u16 = 49_152;

/// Nobody's number.
const NOBODY: u64 = 0;

/// State and clock, shared by all parts of one network.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) clock: Arc<dyn Clock>,
}

/// A listener or an end of a connection, owned by its user.
#[derive(Debug)]
pub(super) struct MemSource {
    pub(super) shared: Arc<Shared>,
    pub(super) id: u64,
}

impl Drop for MemSource {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let now = self.shared.clock.monotonic();
        state.close(self.id, now);
    }
}

#[derive(Debug)]
struct Listening {
    address: Address,
    unix_mode: u32,
    backlog: usize,
    /// Ends that wait to be accepted; those beyond the backlog are not connected yet.
    queue: VecDeque<u64>,
}

/// One registration with a poller.
#[derive(Debug)]
struct Slot {
    token: Token,
    interest: Interest,
    /// The time from which readiness is told, of reading and of writing, since it began.
    told_from: [Option<Duration>; 2],
}

#[derive(Debug, Default)]
struct Polling {
    slots: BTreeMap<u64, Slot>,
    woken: bool,
    /// The source of the last event told; those after it come first.
    last_told: u64,
    bell: Arc<Condvar>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) rules: NetRules,
    /// The most bytes on their way in each direction of a connection.
    pub(super) capacity: usize,
    rng: Rng,
    last_id: u64,
    next_port: u16,
    listeners: BTreeMap<u64, Listening>,
    ends: BTreeMap<u64, End>,
    pollers: BTreeMap<u64, Polling>,
    /// The poller of each registered source.
    registrations: BTreeMap<u64, u64>,
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

    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn new_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
        port
    }

    /// Has the poller of the source look again.
    fn notify(&self, source: u64) {
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

/// Whether two listeners cannot be at once.
fn collide(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Tcp(one), Address::Tcp(other)) => {
            let any = one.ip().is_unspecified() || other.ip().is_unspecified();
            let family = one.is_ipv4() == other.is_ipv4();
            one.port() == other.port() && family && (any || one.ip() == other.ip())
        }
        _ => one == other,
    }
}

/// The address of a machine that talks to `address`.
fn this_side(address: &SocketAddr, port: u16) -> Address {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Address::Tcp(SocketAddr::new(ip, port))
}

/// Listening, connecting, accepting.
impl State {
    /// A listener's number and its address; the system's code when it is refused.
    pub(super) fn listen(
        &mut self,
        address: &Address,
        backlog: usize,
        unix_mode: u32,
    ) -> Result<(u64, Address), i32> {
        if self.rules.judge(NetOp::Listen, address).fault == Some(NetFault::TooManyFiles) {
            return Err(libc::EMFILE);
        }
        let mut address = address.clone();
        if let Address::Tcp(at) = &mut address
            && at.port() == 0
        {
            at.set_port(self.new_port());
        }
        let mut listeners = self.listeners.values();
        if listeners.any(|listening| collide(&listening.address, &address)) {
            return Err(libc::EADDRINUSE);
        }
        let id = self.new_id();
        let listening = Listening {
            address: address.clone(),
            unix_mode: unix_mode & 0o777,
            backlog: backlog.max(1),
            queue: VecDeque::new(),
        };
        self.listeners.insert(id, listening);
        Ok((id, address))
    }

    fn listener_at(&self, address: &Address) -> Option<u64> {
        let mut listeners = self.listeners.iter();
        let found = listeners.find(|(_, listening)| collide(&listening.address, address))?;
        Some(*found.0)
    }

    /// The number of this side of a connection; the system's code when it is refused at once.
    pub(super) fn connect(&mut self, address: &Address, now: Duration) -> Result<u64, i32> {
        let local = match address {
            Address::Tcp(at) => this_side(at, self.new_port()),
            Address::Unix(_) => Address::Unnamed,
            Address::Unnamed => return Err(libc::EINVAL),
        };
        let verdict = self.rules.judge(NetOp::Connect, &local);
        let decided = now + verdict.delay;
        let found = match verdict.fault {
            Some(NetFault::TooManyFiles) => return Err(libc::EMFILE),
            Some(NetFault::Refused) => None,
            _ => self.listener_at(address),
        };
        let (own, other) = (self.new_id(), self.new_id());
        let mut end = End::new(local.clone(), address.clone(), other, self.capacity);
        let Some(listener) = found else {
            if !end.is_tcp() {
                let refused = verdict.fault == Some(NetFault::Refused);
                return Err(if refused {
                    libc::ECONNREFUSED
                } else {
                    libc::ENOENT
                });
            }
            end.fail(decided, libc::ECONNREFUSED);
            self.ends.insert(own, end);
            return Ok(own);
        };
        let listening = self
            .listeners
            .get_mut(&listener)
            .ok_or(libc::ECONNREFUSED)?;
        let full = listening.queue.len() >= listening.backlog;
        if full && !end.is_tcp() {
            return Err(libc::EAGAIN);
        }
        listening.queue.push_back(other);
        let mut accepted = End::new(address.clone(), local, own, self.capacity);
        if !full {
            end.established = Some(decided);
            accepted.established = Some(decided);
        }
        self.ends.insert(own, end);
        self.ends.insert(other, accepted);
        self.notify(listener);
        Ok(own)
    }

    /// The number of the connection that waited longest; the system's code when it cannot be accepted now.
    pub(super) fn accept(&mut self, listener: u64, now: Duration) -> Result<Option<u64>, i32> {
        if self.acceptable(listener, now) != Ready::Now {
            return Ok(None);
        }
        let Some(listening) = self.listeners.get_mut(&listener) else {
            return Ok(None);
        };
        match self.rules.judge(NetOp::Accept, &listening.address).fault {
            Some(NetFault::TooManyFiles) => return Err(libc::EMFILE),
            Some(NetFault::NotNow) => return Ok(None),
            _ => {}
        }
        let accepted = listening.queue.pop_front();
        // The first client beyond the backlog has moved up and is connected now.
        let moved_up = listening.queue.get(listening.backlog - 1).copied();
        if let Some(end) = moved_up.and_then(|id| self.ends.get_mut(&id)) {
            let client = end.peer;
            end.established = Some(now);
            if let Some(client_end) = self.ends.get_mut(&client) {
                client_end.established = Some(now);
                self.notify(client);
            }
        }
        Ok(accepted)
    }

    fn acceptable(&self, listener: u64, now: Duration) -> Ready {
        let listening = self.listeners.get(&listener);
        let first = listening.and_then(|listening| listening.queue.front());
        let first = first.and_then(|id| self.ends.get(id));
        Ready::from(first.and_then(|end| end.established), now)
    }
}

/// Reading, writing, closing.
impl State {
    pub(super) fn end(&self, id: u64) -> Option<&End> {
        self.ends.get(&id)
    }

    /// Unix connections ask for no sign of life.
    pub(super) fn set_keepalive(&mut self, id: u64, idle: Option<Duration>) {
        if let Some(end) = self.ends.get_mut(&id).filter(|end| end.is_tcp()) {
            end.keepalive = idle;
            self.notify(id);
        }
    }

    /// Judges a read or a write that could move `len` bytes: how many it may move, and how much later they arrive.
    ///
    /// Requires: `len` is not 0.
    fn strike(&mut self, op: NetOp, id: u64, len: usize, now: Duration) -> (usize, Duration) {
        let Some(end) = self.ends.get(&id) else {
            return (0, Duration::ZERO);
        };
        let verdict = self.rules.judge(op, &end.local);
        let mut most = len;
        match verdict.fault {
            Some(NetFault::Short) => most = 1 + self.rng.below(len as u64 - 1) as usize,
            Some(NetFault::NotNow) => most = 0,
            Some(NetFault::Reset) => self.reset(id, now),
            Some(NetFault::Vanish) => self.cut_off(id, false, now),
            Some(NetFault::HalfOpen) => self.cut_off(id, true, now),
            _ => {}
        }
        if let Some(end) = self.ends.get_mut(&id) {
            end.refresh(now);
        }
        (most, verdict.delay)
    }

    /// Requires: `buffer` is not empty.
    pub(super) fn read(
        &mut self,
        id: u64,
        buffer: &mut [u8],
        now: Duration,
    ) -> Result<Received, i32> {
        let arrived = self.ends.get(&id).map_or(0, |end| end.inbox.arrived(now));
        let len = buffer.len().min(arrived.max(1));
        let (most, _) = self.strike(NetOp::Read, id, len, now);
        let Some(end) = self.ends.get_mut(&id).filter(|_| most > 0) else {
            return Ok(Received::NotNow);
        };
        let count = end.inbox.pull(&mut buffer[..most], now);
        if count > 0 {
            let peer = end.peer;
            self.notify(peer);
            return Ok(Received::Bytes(count));
        }
        if let Some(code) = end.take_failure(now) {
            return Err(code);
        }
        match end.has_failed(now) || end.inbox.is_at_end(now) {
            true => Ok(Received::End),
            false => Ok(Received::NotNow),
        }
    }

    /// Requires: `slices` hold `len` bytes, at least one.
    pub(super) fn write(
        &mut self,
        id: u64,
        (slices, len): (&[IoSlice<'_>], usize),
        now: Duration,
    ) -> Result<Sent, i32> {
        let peer = self.ends.get(&id).map_or(NOBODY, |end| end.peer);
        let room = self.ends.get(&peer).map_or(len, |peer| peer.inbox.room());
        let (most, delay) = self.strike(NetOp::Write, id, len.min(room.max(1)), now);
        let Some(end) = self.ends.get_mut(&id) else {
            return Ok(Sent::NotNow);
        };
        if let Some(code) = end.take_failure(now) {
            return Err(code);
        }
        if end.has_failed(now) || end.wrote_end {
            return Err(libc::EPIPE);
        }
        if most == 0 || !end.is_connected(now) {
            return Ok(Sent::NotNow);
        }
        if let Some(cut_off) = end.cut_off {
            let count = most.min(end.inbox.capacity() - end.lost);
            end.lost += count;
            end.lost_since.get_or_insert(now);
            if cut_off.forgotten {
                end.fail(now + delay, libc::ECONNRESET);
            }
            return Ok(sent(count));
        }
        let is_tcp = end.is_tcp();
        let Some(other) = self.ends.get_mut(&peer) else {
            if !is_tcp {
                return Err(libc::EPIPE);
            }
            // It is told that nobody takes the bytes only after they were sent.
            if let Some(end) = self.ends.get_mut(&id) {
                end.fail(now + delay, libc::ECONNRESET);
            }
            return Ok(Sent::Bytes(most));
        };
        let room = other.inbox.room();
        let count = most.min(room);
        let pushed = match drumlin_base::bug!("short-write-sent-whole") {
            true => len.min(room),
            false => count,
        };
        if count > 0 {
            let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
            other.inbox.push(bytes.take(pushed), now + delay);
            self.notify(peer);
        }
        Ok(sent(count))
    }

    /// Nothing more is sent; the system's code when it cannot be told to the other side.
    pub(super) fn shutdown_write(&mut self, id: u64, now: Duration) -> Result<(), i32> {
        let end = self.ends.get_mut(&id).ok_or(libc::ENOTCONN)?;
        end.refresh(now);
        if !end.is_connected(now) || end.has_failed(now) {
            return Err(libc::ENOTCONN);
        }
        end.wrote_end = true;
        let (peer, silent) = (end.peer, end.cut_off.is_some());
        if let Some(other) = self.ends.get_mut(&peer).filter(|_| !silent) {
            other.inbox.finish(now);
        }
        self.notify(id);
        self.notify(peer);
        Ok(())
    }

    /// Whether it is connected; the system's code when it failed.
    pub(super) fn connected(&mut self, id: u64, now: Duration) -> Result<bool, i32> {
        let Some(end) = self.ends.get_mut(&id) else {
            return Ok(false);
        };
        let connected = end.is_connected(now);
        match end.take_failure(now).filter(|_| !connected) {
            Some(code) => Err(code),
            None => Ok(connected),
        }
    }

    /// Both sides learn that the connection is no more. Of what they have not read they keep a drawn part.
    fn reset(&mut self, id: u64, now: Duration) {
        let peer = self.ends.get(&id).map_or(NOBODY, |end| end.peer);
        self.break_off(id, now);
        // A side that hears nothing does not hear of this either.
        if self
            .ends
            .get(&peer)
            .is_some_and(|end| end.cut_off.is_none())
        {
            self.break_off(peer, now);
        }
    }

    fn break_off(&mut self, id: u64, now: Duration) {
        if let Some(end) = self.ends.get_mut(&id) {
            let unread = end.inbox.len() as u64;
            end.inbox.cut(self.rng.below(unread + 1) as usize);
            end.fail(now, libc::ECONNRESET);
            self.notify(id);
        }
    }

    /// `id` and its peer hear nothing of each other any more.
    fn cut_off(&mut self, id: u64, forgotten: bool, now: Duration) {
        let Some(end) = self.ends.get_mut(&id).filter(|end| end.cut_off.is_none()) else {
            return;
        };
        let since = now;
        let peer = end.peer;
        end.inbox.cut_late(now);
        end.cut_off = Some(CutOff { since, forgotten });
        if let Some(other) = self.ends.get_mut(&peer) {
            other.inbox.cut_late(now);
            let forgotten = false;
            other.cut_off = Some(CutOff { since, forgotten });
        }
        if forgotten {
            self.break_off(peer, now);
        }
        // A wait may end later than it thought, or with a failure at a time it did not know of.
        self.notify(id);
        self.notify(peer);
    }

    /// A listener or an end is dropped.
    fn close(&mut self, id: u64, now: Duration) {
        if let Some(poller) = self.registrations.remove(&id)
            && let Some(polling) = self.pollers.get_mut(&poller)
        {
            polling.slots.remove(&id);
        }
        if let Some(listening) = self.listeners.remove(&id) {
            for waiting in listening.queue {
                let client = self.ends.remove(&waiting).map_or(NOBODY, |end| end.peer);
                self.break_off(client, now);
            }
        }
        let Some(end) = self.ends.remove(&id) else {
            return;
        };
        if end.cut_off.is_some() {
            return;
        }
        if !end.inbox.is_empty() && !end.has_failed(now) {
            self.break_off(end.peer, now);
        } else if let Some(other) = self.ends.get_mut(&end.peer) {
            other.inbox.finish(now);
            self.notify(end.peer);
        }
    }
}

fn sent(count: usize) -> Sent {
    match count {
        0 => Sent::NotNow,
        count => Sent::Bytes(count),
    }
}

/// Polling.
impl State {
    pub(super) fn add_poller(&mut self) -> (u64, Arc<Condvar>) {
        let id = self.new_id();
        let polling = Polling::default();
        let bell = Arc::clone(&polling.bell);
        self.pollers.insert(id, polling);
        (id, bell)
    }

    pub(super) fn remove_poller(&mut self, id: u64) {
        self.pollers.remove(&id);
        self.registrations.retain(|_, poller| *poller != id);
    }

    /// Whether it could be done: a source is registered at most once.
    pub(super) fn register(
        &mut self,
        poller: u64,
        source: u64,
        (token, interest): (Token, Interest),
    ) -> bool {
        let Some(polling) = self.pollers.get_mut(&poller) else {
            return false;
        };
        if self.registrations.contains_key(&source) {
            return false;
        }
        self.registrations.insert(source, poller);
        let told_from = [None; 2];
        let slot = Slot {
            token,
            interest,
            told_from,
        };
        polling.slots.insert(source, slot);
        true
    }

    /// Whether it was registered there.
    pub(super) fn deregister(&mut self, poller: u64, source: u64) -> bool {
        let polling = self.pollers.get_mut(&poller);
        let removed = polling.and_then(|polling| polling.slots.remove(&source));
        if removed.is_some() {
            self.registrations.remove(&source);
        }
        removed.is_some()
    }

    pub(super) fn wake(&mut self, poller: u64) {
        if let Some(polling) = self.pollers.get_mut(&poller) {
            polling.woken = true;
            polling.bell.notify_all();
        }
    }

    /// A wait begins.
    pub(super) fn begin_wait(&mut self, poller: u64) {
        if drumlin_base::bug!("wake-before-wait-lost")
            && let Some(polling) = self.pollers.get_mut(&poller)
        {
            polling.woken = false;
        }
    }

    fn readiness(&self, source: u64, now: Duration) -> [Ready; 2] {
        let Some(end) = self.ends.get(&source) else {
            return [self.acceptable(source, now), Ready::Unknown];
        };
        let room = self.ends.get(&end.peer).map(|peer| peer.inbox.room());
        [end.readable(now), end.writable(room, now)]
    }

    fn address_of(&self, source: u64) -> Address {
        let end = self.ends.get(&source).map(|end| &end.local);
        let listening = self.listeners.get(&source);
        let address = end.or(listening.map(|listening| &listening.address));
        address.cloned().unwrap_or(Address::Unnamed)
    }

    /// The event of a slot, and the time at which it may have more.
    fn look_at(&mut self, source: u64, slot: &mut Slot, now: Duration) -> (Event, Ready) {
        let ready = self.readiness(source, now);
        let asked = [slot.interest.is_read(), slot.interest.is_write()];
        let (mut told, mut later) = ([false; 2], Ready::Unknown);
        for (direction, ready) in ready.into_iter().enumerate() {
            if !asked[direction] {
                continue;
            }
            let told_from = &mut slot.told_from[direction];
            if ready != Ready::Now {
                *told_from = None;
                later = later.or(ready);
                continue;
            }
            if told_from.is_none() {
                let address = self.address_of(source);
                let verdict = self.rules.judge(NetOp::Ready, &address);
                *told_from = Some(now + verdict.delay);
            }
            match Ready::from(*told_from, now) {
                Ready::Now => told[direction] = true,
                delayed => later = later.or(delayed),
            }
        }
        let event = Event {
            token: slot.token,
            readable: told[0],
            writable: told[1],
        };
        (event, later)
    }

    /// Collects the events of a poller. `Some` when there are none and the wait goes on, with the time of the next, if known.
    pub(super) fn collect(
        &mut self,
        poller: u64,
        events: &mut Events,
        now: Duration,
    ) -> Option<Ready> {
        let mut polling = self.pollers.remove(&poller).unwrap_or_default();
        let mut later = Ready::Unknown;
        let (before, after): (Vec<u64>, Vec<u64>) = polling
            .slots
            .keys()
            .partition(|source| **source <= polling.last_told);
        for source in after.into_iter().chain(before) {
            let Some(slot) = polling.slots.get_mut(&source) else {
                continue;
            };
            let (event, more) = self.look_at(source, slot, now);
            later = later.or(more);
            if event.readable || event.writable {
                events.push(event);
                polling.last_told = source;
                if events.is_full() {
                    break;
                }
            }
        }
        if std::mem::take(&mut polling.woken) {
            events.set_woken();
        }
        self.pollers.insert(poller, polling);
        if events.is_empty() && !events.is_woken() {
            return Some(later);
        }
        match self.rules.judge(NetOp::Wait, &Address::Unnamed).fault {
            Some(NetFault::Reorder) => events.shuffle(&mut self.rng),
            Some(NetFault::Interrupted) => events.clear_sources(),
            _ => {}
        }
        None
    }
}
