//! Listening, connecting and accepting on a network in memory.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::VecDeque;
use std::time::Duration;

use super::Address;
use super::fault::{NetFault, NetOp};
use super::mem_end::{End, Ready};
use super::mem_state::{Listening, State};

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

    pub(super) fn acceptable(&self, listener: u64, now: Duration) -> Ready {
        let listening = self.listeners.get(&listener);
        let first = listening.and_then(|listening| listening.queue.front());
        let first = first.and_then(|id| self.ends.get(id));
        Ready::from(first.and_then(|end| end.established), now)
    }
}
