//! Sockets, as traits. The module above says when they are ready.

use core::net::IpAddr;
use std::fmt::Debug;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};

use super::mem_source::MemSource;
use super::{Address, Events, Interest, Received, Sent, Token};

/// Makes listeners, connections and pollers.
pub trait Network: Send + Sync + Debug {
    /// Listens at `address`.
    ///
    /// A TCP port that connections of an earlier listener still linger on can be had. IPv6 addresses take no IPv4
    /// connections. A unix path gets exactly the mode of `options` before the first client can come, and is removed
    /// with the listener. A socket at the path that nobody listens on, as a killed process leaves it, is replaced; any
    /// other file is not.
    ///
    /// # Errors
    /// `AddressInUse`, `AddressNotAvailable`, `PermissionDenied`, `NotFound` (no such directory), `OutOfResources`, as
    /// [`NetErrorKind`](super::NetErrorKind) names them; `InvalidArgument` for an unnamed address.
    fn listen(&self, address: &Address, options: ListenOptions) -> Result<Box<dyn Listener>>;

    /// Begins to connect. The connection becomes writable once [`Connection::connected`] knows the outcome; until then
    /// reads and writes say "not now".
    ///
    /// # Errors
    /// Those of [`Connection::connected`] that are known at once, and `OutOfResources`.
    fn connect(&self, address: &Address) -> Result<Box<dyn Connection>>;

    /// The addresses that `host` has, which is one itself or a name. It may wait for a long time, so that threads call it that may.
    /// A network that knows no names refuses them.
    ///
    /// # Errors
    /// `Io` for a name that has no address.
    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>> {
        let address = host
            .parse()
            .map_err(|_| unknown_host(host, "no names are known"))?;
        Ok(vec![address])
    }

    /// A poller with nothing registered.
    ///
    /// # Errors
    /// `OutOfResources`.
    fn poller(&self) -> Result<Box<dyn Poller>>;
}

/// The error of a host without an address.
pub(super) fn unknown_host(host: &str, reason: &str) -> Error {
    Error::new(
        ErrorKind::Io,
        format!("the host {host:?} is not found: {reason}"),
    )
}

/// Options of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// The most connections that wait to be accepted. The system may allow fewer (`net.core.somaxconn`).
    pub backlog: u32,
    /// The mode of a unix path, its lowest nine bits: permission to write is permission to connect.
    pub unix_mode: u32,
}

impl Default for ListenOptions {
    /// 511 waiting connections, and a path for its owner alone.
    fn default() -> Self {
        Self {
            backlog: 511,
            unix_mode: 0o600,
        }
    }
}

/// A poller's name for a source.
#[derive(Clone, Copy, Debug)]
pub struct Handle<'a>(pub(super) HandleKind<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum HandleKind<'a> {
    Descriptor(BorrowedFd<'a>),
    Memory(&'a MemSource),
}

/// Anything a poller can wait for.
pub trait Source: Send + Debug {
    /// Its name for pollers of the same network.
    fn handle(&self) -> Handle<'_>;
}

/// Takes connections. One thread at a time uses it. Dropping it resets the connections that nobody accepted.
pub trait Listener: Source {
    /// The next connection; `None` when there is none now.
    ///
    /// # Errors
    /// `OutOfResources` leaves the connection where it is and the listener ready: a loop that goes on waiting for it
    /// spins. [`Acceptor`](super::Acceptor) pauses instead.
    fn accept(&mut self) -> Result<Option<Box<dyn Connection>>>;

    /// Its address, with the port that it got.
    fn local_address(&self) -> &Address;
}

/// A stream of bytes each way. One thread at a time uses it, and it may go from one to another.
///
/// Dropping it closes it: the peer reads the sent bytes, then the end. If bytes were left unread, the connection is
/// reset instead, and the peer may lose bytes that were sent to it.
///
/// After an error of a read or a write it can only be dropped.
pub trait Connection: Source {
    /// Reads into the front of `buffer`; an empty one gets `Bytes(0)`.
    ///
    /// # Errors
    /// `Disconnected`, `TimedOut`, `Unreachable`; those of an attempt to connect that failed.
    fn read(&mut self, buffer: &mut [u8]) -> Result<Received>;

    /// Writes from the front of `slices`, of which at most the first 1,024 are looked at; no bytes give `Bytes(0)`.
    /// Bytes that were taken may still be lost with the connection.
    ///
    /// # Errors
    /// As of reading; `Disconnected` also after [`Connection::shutdown_write`], and once the peer has closed.
    /// The first write after that may still succeed. No signal is raised.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<Sent>;

    /// As [`Connection::write_vectored`] with one slice.
    ///
    /// # Errors
    /// The same.
    fn write(&mut self, bytes: &[u8]) -> Result<Sent> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    /// Whether it is connected; false while the attempt goes on. True at once for an accepted
    /// connection.
    ///
    /// # Errors
    /// The reason why the attempt failed: `Refused`, `NotFound`, `PermissionDenied`, `QueueFull`, `Unreachable`,
    /// `TimedOut`. Reported once.
    fn connected(&mut self) -> Result<bool>;

    /// Ends sending: the peer reads the sent bytes, then the end. Reading goes on.
    ///
    /// # Errors
    /// `Other` where it is not connected.
    fn shutdown_write(&mut self) -> Result<()>;

    /// This side's address.
    ///
    /// # Errors
    /// The system's refusal.
    fn local_address(&self) -> Result<Address>;

    /// The other side's address, also after it has gone.
    fn peer_address(&self) -> &Address;

    /// Whether small writes are sent at once instead of being gathered. Unix connections send at once anyway.
    ///
    /// # Errors
    /// The system's refusal.
    fn set_nodelay(&mut self, nodelay: bool) -> Result<()>;

    /// Has a silent peer asked for a sign of life after `idle` (whole seconds, at least three), and three times more
    /// at a third of it, as Redis does: the connection of a peer that has vanished fails with `TimedOut` after twice
    /// `idle`. `None`, as at first, never asks. Unix connections need none.
    ///
    /// # Errors
    /// `InvalidArgument` below three seconds; the system's refusal.
    fn set_keepalive(&mut self, idle: Option<Duration>) -> Result<()>;
}

/// Waits for many sources at once. One thread at a time uses it.
pub trait Poller: Send + Debug {
    /// Has waits report `source` from now on.
    ///
    /// # Errors
    /// `InvalidArgument` for a source that is registered here already, one of another network, and a token above
    /// [`Token::MAX`]; `OutOfResources`.
    fn register(&self, source: &dyn Source, token: Token, interest: Interest) -> Result<()>;

    /// Changes token and interest.
    ///
    /// # Errors
    /// As [`Poller::register`], and `InvalidArgument` for a source that is not registered here.
    fn reregister(&self, source: &dyn Source, token: Token, interest: Interest) -> Result<()>;

    /// Has waits no longer report `source`.
    ///
    /// # Errors
    /// `InvalidArgument` for a source that is not registered here.
    fn deregister(&self, source: &dyn Source) -> Result<()>;

    /// Waits until a source is ready, a waker is used, or `timeout` has passed (rounded up to milliseconds; `None`
    /// waits for ever, zero not at all). `events` then holds the outcome alone; its earlier content is gone.
    ///
    /// # Errors
    /// The system's refusal.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<()>;

    /// A handle that ends this poller's waits from any thread.
    fn waker(&self) -> Arc<dyn Waker>;
}

/// Ends a wait. May outlive its poller, and then does nothing.
pub trait Waker: Send + Sync + Debug {
    /// Ends the wait under way, or else the next one at its beginning. Any number of calls before a wait ends count as
    /// one. The woken thread sees everything that the caller did before.
    ///
    /// # Errors
    /// The system's refusal.
    fn wake(&self) -> Result<()>;
}
