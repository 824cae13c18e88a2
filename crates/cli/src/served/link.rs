//! What clients of the laboratory's servers share.

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::net::{
    Address, Connection, Events, Interest, Network, Poller, PosixNetwork, Received, Sent, Token,
};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// What a server did not do.
pub(super) fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io, message)
}

/// They walk nothing.
pub(super) fn no_walks() -> Error {
    Error::not_supported("walking a server in order")
}

/// A connection that one thread waits on.
pub(super) struct Link {
    connection: Box<dyn Connection>,
    poller: Box<dyn Poller>,
    events: Events,
    /// What the poller tells of.
    interest: Interest,
    space: Vec<u8>,
}

impl Link {
    pub(super) fn connect(address: &Address) -> Result<Self> {
        let network = PosixNetwork::new();
        let poller = network.poller()?;
        let connection = network.connect(address)?;
        poller.register(&*connection, Token(0), Interest::Write)?;
        let mut link = Self {
            connection,
            poller,
            events: Events::with_capacity(1),
            interest: Interest::Write,
            space: vec![0; READ_BYTES],
        };
        while !link.connection.connected()? {
            link.wait(Interest::Write)?;
        }
        link.connection.set_nodelay(true)?;
        Ok(link)
    }

    fn wait(&mut self, interest: Interest) -> Result<()> {
        if self.interest != interest {
            let token = Token(0);
            self.poller.reregister(&*self.connection, token, interest)?;
            self.interest = interest;
        }
        self.poller.wait(&mut self.events, None)
    }

    /// Sends all of it.
    pub(super) fn send(&mut self, request: &[u8]) -> Result<()> {
        let mut sent = 0;
        while let Some(rest) = request.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.connection.write(rest)? {
                Sent::Bytes(bytes) => sent += bytes,
                Sent::NotNow => self.wait(Interest::Write)?,
            }
        }
        Ok(())
    }

    /// Waits for some bytes, and shows them.
    pub(super) fn receive(&mut self, show: impl FnOnce(&[u8])) -> Result<()> {
        loop {
            // A reply is hardly ever there before it is waited for.
            self.wait(Interest::Read)?;
            match self.connection.read(&mut self.space)? {
                Received::Bytes(bytes) => {
                    show(self.space.get(..bytes).unwrap_or_default());
                    return Ok(());
                }
                Received::NotNow => {}
                Received::End => return Err(failed("the server has closed the connection")),
            }
        }
    }
}
