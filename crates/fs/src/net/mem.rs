//! A network in memory. Every random choice comes from its seed.
//!
//! Connections are two streams of bounded length. Nothing is lost, delayed or reordered but by the rules of
//! [`super::NetRule`], so seed, rules and order of calls determine a run. The simulator's scheduler decides that order,
//! so a run follows from its seed; real threads work as well, but their runs cannot be repeated.
//!
//! Every IP address exists, so several machines can be played: a listener at `10.0.0.1:6379` is reached there, and one
//! at `0.0.0.0:6379` at every address of its family.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::{Error, Result};

use super::error_kind::failed;
use super::fault::NetRule;
use super::mem_poll::MemPoller;
use super::mem_source::{MemSource, Shared};
use super::mem_state::State;
use super::network::{
    Connection, Handle, HandleKind, ListenOptions, Listener, Network, Poller, Source,
};
use super::posix::{KEEPALIVE_MIN, unnamed};
use super::transfer::taken_at_once;
use super::{Address, Received, Sent};
use crate::Clock;

/// Bytes that may be unread in each direction of a connection, unless set.
const CAPACITY: usize = 64 << 10;

/// See the module. Clones share it.
#[derive(Clone, Debug)]
pub struct MemNetwork {
    shared: Arc<Shared>,
}

impl MemNetwork {
    /// An empty network, which draws from `seed` and has the time of `clock`. The clock must go on while threads wait,
    /// as the system's and a simulation's do; one that is moved by hand does not.
    pub fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        let state = Mutex::new(State::new(seed, CAPACITY));
        Self {
            shared: Arc::new(Shared { state, clock }),
        }
    }

    /// Lets at most `bytes`, one at least, be unread in each direction of the connections made from now on.
    pub fn set_capacity(&self, bytes: usize) {
        self.shared.state.lock().capacity = bytes.max(1);
    }

    /// Adds a rule; earlier ones go first.
    pub fn add_rule(&self, rule: NetRule) {
        self.shared.state.lock().rules.rules.push(rule);
    }

    /// Forgets all rules. Broken connections stay broken.
    pub fn clear_rules(&self) {
        self.shared.state.lock().rules.rules.clear();
    }

    /// The number of times a rule has struck.
    pub fn injected(&self) -> u64 {
        self.shared.state.lock().rules.injected
    }

    /// Listeners and sides of connections that are open.
    pub fn open_sources(&self) -> usize {
        self.shared.state.lock().sources()
    }

    /// The mode of a unix path that somebody listens on.
    pub fn unix_mode(&self, path: &Path) -> Option<u32> {
        let address = Address::Unix(path.to_owned());
        self.shared.state.lock().unix_mode(&address)
    }

    fn source(&self, id: u64) -> MemSource {
        MemSource {
            shared: Arc::clone(&self.shared),
            id,
        }
    }
}

impl Network for MemNetwork {
    fn listen(&self, address: &Address, options: ListenOptions) -> Result<Box<dyn Listener>> {
        if *address == Address::Unnamed {
            return Err(unnamed());
        }
        let backlog = options.backlog as usize;
        let mut state = self.shared.state.lock();
        let outcome = state.listen(address, backlog, options.unix_mode);
        drop(state);
        let (id, local) = outcome.map_err(|code| failed("listen on", address, code))?;
        Ok(Box::new(MemListener {
            source: self.source(id),
            local,
        }))
    }

    fn connect(&self, address: &Address) -> Result<Box<dyn Connection>> {
        let mut state = self.shared.state.lock();
        let now = self.shared.clock.monotonic();
        let outcome = state.connect(address, now);
        drop(state);
        let id = outcome.map_err(|code| failed("connect to", address, code))?;
        Ok(Box::new(MemConnection {
            source: self.source(id),
            peer: address.clone(),
        }))
    }

    fn poller(&self) -> Result<Box<dyn Poller>> {
        Ok(Box::new(MemPoller::new(&self.shared)))
    }
}

#[derive(Debug)]
struct MemListener {
    source: MemSource,
    local: Address,
}

impl Source for MemListener {
    fn handle(&self) -> Handle<'_> {
        Handle(HandleKind::Memory(&self.source))
    }
}

impl Listener for MemListener {
    fn accept(&mut self) -> Result<Option<Box<dyn Connection>>> {
        let shared = &self.source.shared;
        let mut state = shared.state.lock();
        let outcome = state.accept(self.source.id, shared.clock.monotonic());
        let accepted = outcome.map_err(|code| failed("accept on", &self.local, code))?;
        Ok(accepted.map(|id| {
            let peer = state.end(id).map(|end| end.remote.clone());
            Box::new(MemConnection {
                source: MemSource {
                    shared: Arc::clone(shared),
                    id,
                },
                peer: peer.unwrap_or(Address::Unnamed),
            }) as _
        }))
    }

    fn local_address(&self) -> &Address {
        &self.local
    }
}

#[derive(Debug)]
struct MemConnection {
    source: MemSource,
    peer: Address,
}

impl MemConnection {
    /// Does `op` to the state; its code becomes an error.
    fn act<T>(
        &self,
        op: &str,
        action: impl FnOnce(&mut State, u64, Duration) -> Result<T, i32>,
    ) -> Result<T> {
        let shared = &self.source.shared;
        let mut state = shared.state.lock();
        let outcome = action(&mut state, self.source.id, shared.clock.monotonic());
        outcome.map_err(|code| failed(op, &self.peer, code))
    }
}

impl Source for MemConnection {
    fn handle(&self) -> Handle<'_> {
        Handle(HandleKind::Memory(&self.source))
    }
}

impl Connection for MemConnection {
    fn read(&mut self, buffer: &mut [u8]) -> Result<Received> {
        if buffer.is_empty() {
            return Ok(Received::Bytes(0));
        }
        self.act("read from", |state, id, now| state.read(id, buffer, now))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<Sent> {
        let (slices, len) = taken_at_once(slices);
        if len == 0 {
            return Ok(Sent::Bytes(0));
        }
        self.act("write to", |state, id, now| {
            state.write(id, (slices, len), now)
        })
    }

    fn connected(&mut self) -> Result<bool> {
        self.act("connect to", |state, id, now| state.connected(id, now))
    }

    fn shutdown_write(&mut self) -> Result<()> {
        self.act("end writing to", |state, id, now| {
            state.shutdown_write(id, now)
        })
    }

    fn local_address(&self) -> Result<Address> {
        let state = self.source.shared.state.lock();
        let end = state.end(self.source.id);
        Ok(end.map_or(Address::Unnamed, |end| end.local.clone()))
    }

    fn peer_address(&self) -> &Address {
        &self.peer
    }

    fn set_nodelay(&mut self, _nodelay: bool) -> Result<()> {
        // Here every write is sent at once.
        Ok(())
    }

    fn set_keepalive(&mut self, idle: Option<Duration>) -> Result<()> {
        if idle.is_some_and(|idle| idle < KEEPALIVE_MIN) {
            return Err(Error::invalid_argument("a keepalive below three seconds"));
        }
        self.act("set the options of", |state, id, _| {
            state.set_keepalive(id, idle);
            Ok(())
        })
    }
}
