//! A network under test, and the steps that most tests take on it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin_fs::net::{
    Address, Connection, Event, Events, Interest, ListenOptions, Listener, MemNetwork, Network,
    Poller, PosixNetwork, Received, Sent, Source, Token,
};
use drumlin_fs::{Clock, SystemClock};
use tempfile::TempDir;

/// Longer than anything takes that happens at all.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// Long enough to see that nothing happens.
pub(crate) const SHORT: Duration = Duration::from_millis(20);

pub(crate) struct World {
    pub(crate) network: Arc<dyn Network>,
    /// The directory of unix paths.
    dir: TempDir,
}

impl World {
    pub(crate) fn posix() -> Self {
        Self::of(Arc::new(PosixNetwork::new()))
    }

    pub(crate) fn memory() -> Self {
        Self::of(Arc::new(memory(1)))
    }

    pub(crate) fn of(network: Arc<dyn Network>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { network, dir }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    /// An address of each kind.
    pub(crate) fn addresses(&self) -> [Address; 3] {
        [tcp(), tcp_6(), Address::Unix(self.path())]
    }

    pub(crate) fn listen(&self, address: &Address) -> Box<dyn Listener> {
        self.network
            .listen(address, ListenOptions::default())
            .unwrap()
    }

    /// Both sides of a connection, the one that connected first.
    pub(crate) fn pair(&self, address: &Address) -> (Box<dyn Connection>, Box<dyn Connection>) {
        let mut listener = self.listen(address);
        let mut client = self.network.connect(listener.local_address()).unwrap();
        let server = self.accept(&mut *listener);
        self.finish(&mut *client).unwrap();
        (client, server)
    }

    /// Waits for a connection.
    pub(crate) fn accept(&self, listener: &mut dyn Listener) -> Box<dyn Connection> {
        loop {
            if let Some(connection) = listener.accept().unwrap() {
                return connection;
            }
            self.until(&*listener, Interest::Read);
        }
    }

    /// Waits for the outcome of an attempt to connect.
    pub(crate) fn finish(&self, connection: &mut dyn Connection) -> drumlin_base::Result<()> {
        while !connection.connected()? {
            self.until(&*connection, Interest::Write);
        }
        Ok(())
    }

    /// Waits until the source is ready, which nobody has registered.
    pub(crate) fn until(&self, source: &dyn Source, interest: Interest) -> Event {
        let mut poller = self.network.poller().unwrap();
        poller.register(source, Token(7), interest).unwrap();
        let event = one_event(&mut *poller).expect("it becomes ready");
        poller.deregister(source).unwrap();
        event
    }

    /// Reads until there are `count` bytes, or the end.
    pub(crate) fn read(&self, connection: &mut dyn Connection, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < count {
            let mut buffer = vec![0; (count - all.len()).min(10_000)];
            match connection.read(&mut buffer).unwrap() {
                Received::Bytes(count) => all.extend_from_slice(&buffer[..count]),
                Received::End => break,
                Received::NotNow => {
                    self.until(&*connection, Interest::Read);
                }
            }
        }
        all
    }

    pub(crate) fn write(&self, connection: &mut dyn Connection, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match connection.write(bytes).unwrap() {
                Sent::Bytes(count) => bytes = &bytes[count..],
                Sent::NotNow => {
                    self.until(&*connection, Interest::Write);
                }
            }
        }
    }

    /// Whether the end comes next.
    pub(crate) fn is_at_end(&self, connection: &mut dyn Connection) -> bool {
        self.read(connection, 1).is_empty()
    }
}

pub(crate) fn memory(seed: u64) -> MemNetwork {
    MemNetwork::new(Arc::new(SystemClock::new()), seed)
}

pub(crate) fn tcp() -> Address {
    Address::Tcp("127.0.0.1:0".parse().unwrap())
}

pub(crate) fn tcp_6() -> Address {
    Address::Tcp("[::1]:0".parse().unwrap())
}

/// The first event, waited for until nothing can come any more.
pub(crate) fn one_event(poller: &mut dyn Poller) -> Option<Event> {
    events(poller, LONG).first().copied()
}

/// The first events within `patience`, sorted by token.
pub(crate) fn events(poller: &mut dyn Poller, patience: Duration) -> Vec<Event> {
    let clock = SystemClock::new();
    let mut events = Events::with_capacity(16);
    loop {
        let left = patience.saturating_sub(clock.monotonic());
        poller.wait(&mut events, Some(left)).unwrap();
        if !events.is_empty() || events.is_woken() || clock.monotonic() >= patience {
            let mut list: Vec<_> = events.iter().collect();
            list.sort_by_key(|event| event.token);
            return list;
        }
    }
}

pub(crate) fn readable(token: u64) -> Event {
    Event {
        token: Token(token),
        readable: true,
        writable: false,
    }
}

pub(crate) fn writable(token: u64) -> Event {
    Event {
        token: Token(token),
        readable: false,
        writable: true,
    }
}
