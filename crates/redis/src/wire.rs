//! A connection that one thread reads and writes and waits for.

use core::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumlin::{Error, ErrorKind, Result};
use drumlin_fs::Clock;
use drumlin_fs::net::{
    Address, Connection, Events, Interest, Network, Poller, Received, Sent, Token,
};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Longest line of an answer.
const LINE_BYTES_MAX: usize = 4 << 10;
/// A thread that is to end sees it within this time.
const STEP: Duration = Duration::from_millis(100);

/// The conditions of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) clock: Arc<dyn Clock>,
    /// Set when the thread is to end.
    pub(crate) stops: Arc<AtomicBool>,
    /// The longest silence.
    pub(crate) timeout: Duration,
    /// Who is there, for errors.
    pub(crate) peer: &'static str,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Wire {
    connection: Box<dyn Connection>,
    poller: Box<dyn Poller>,
    events: Events,
    terms: Terms,
    buffer: Vec<u8>,
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io, message)
}

impl Wire {
    /// Connects to the first address of `host` that takes it.
    ///
    /// # Errors
    /// Of the network; when the time is over, or the thread is to end.
    pub(crate) fn connect(
        network: &dyn Network,
        (host, port): (&str, u16),
        terms: &Terms,
    ) -> Result<Self> {
        let mut outcome = Err(failed(format!("no host '{host}'")));
        let name = match host {
            "localhost" => "127.0.0.1",
            other => other,
        };
        for ip in network.resolve(name)? {
            let address = Address::Tcp(SocketAddr::new(ip, port));
            outcome = Self::connect_to(network, &address, terms.clone());
            if outcome.is_ok() || terms.stops.load(Ordering::Acquire) {
                break;
            }
        }
        outcome
    }

    fn connect_to(network: &dyn Network, address: &Address, terms: Terms) -> Result<Self> {
        let connection = network.connect(address)?;
        let poller = network.poller()?;
        poller.register(&*connection, Token(0), Interest::Write)?;
        let mut wire = Self {
            connection,
            poller,
            events: Events::with_capacity(1),
            terms,
            buffer: Vec::new(),
        };
        while !wire.connection.connected()? {
            wire.wait(Interest::Write)?;
        }
        // Without it the connection is as good, and slower.
        drop(wire.connection.set_nodelay(true));
        Ok(wire)
    }

    fn wait(&mut self, interest: Interest) -> Result<()> {
        self.poller
            .reregister(&*self.connection, Token(0), interest)?;
        let (clock, peer) = (&self.terms.clock, self.terms.peer);
        let until = clock.monotonic().saturating_add(self.terms.timeout);
        loop {
            if self.terms.stops.load(Ordering::Acquire) {
                let message = format!("the connection to the {peer} is given up");
                return Err(failed(message));
            }
            let step = STEP.min(self.terms.timeout);
            self.poller.wait(&mut self.events, Some(step))?;
            if self.events.iter().next().is_some() {
                return Ok(());
            }
            let now = clock.monotonic();
            if now >= until {
                let message = format!("the {peer} is silent");
                return Err(Error::new(ErrorKind::TimedOut, message));
            }
        }
    }

    /// Sends `bytes`.
    ///
    /// # Errors
    /// As those of [`Wire::connect`].
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match self.connection.write(bytes)? {
                Sent::Bytes(sent) => bytes = bytes.get(sent..).unwrap_or(&[]),
                Sent::NotNow => self.wait(Interest::Write)?,
            }
        }
        Ok(())
    }

    /// Reads what comes next behind what was read.
    ///
    /// # Errors
    /// As those of [`Wire::connect`]; when the peer has closed.
    pub(crate) fn fill(&mut self) -> Result<()> {
        let len = self.buffer.len();
        loop {
            self.buffer.resize(len + READ_BYTES, 0);
            let space = self.buffer.get_mut(len..).unwrap_or_default();
            let received = self.connection.read(space);
            let count = match &received {
                Ok(Received::Bytes(count)) => *count,
                _ => 0,
            };
            self.buffer.truncate(len + count);
            match received? {
                Received::Bytes(_) => return Ok(()),
                Received::End => {
                    let peer = self.terms.peer;
                    return Err(failed(format!("the {peer} has closed the connection")));
                }
                Received::NotNow => self.wait(Interest::Read)?,
            }
        }
    }

    /// What was read and not taken.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes the first `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let count = count.min(self.buffer.len());
        let rest = self.buffer.split_off(count);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// The next line that is not empty, without its end. Redis sends empty ones to show that it is there.
    ///
    /// # Errors
    /// As those of [`Wire::fill`]; for a line that is too long.
    pub(crate) fn line(&mut self) -> Result<String> {
        loop {
            if let Some(line) = take_line(&mut self.buffer) {
                return Ok(line);
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                let peer = self.terms.peer;
                return Err(failed(format!("the {peer}'s answer is no line")));
            }
            self.fill()?;
        }
    }

    /// The connection, and what was read and not taken.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn into_parts(self) -> Result<(Box<dyn Connection>, Vec<u8>)> {
        self.poller.deregister(&*self.connection)?;
        Ok((self.connection, self.buffer))
    }
}

/// Takes the first line that is not empty, without its end, and all empty ones before it at once: a peer may send them by the thousand.
fn take_line(buffer: &mut Vec<u8>) -> Option<String> {
    let is_blank = |byte: &&u8| byte.is_ascii_whitespace();
    let blank = buffer.iter().take_while(is_blank).count();
    drop(buffer.drain(..blank));
    let end = buffer.iter().position(|byte| *byte == b'\n')?;
    let line: Vec<u8> = buffer.drain(..=end).collect();
    Some(String::from_utf8_lossy(line.trim_ascii()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::take_line;

    #[test]
    fn lines_come_without_the_empty_ones_before_them() {
        let mut buffer = [&b"\n".repeat(100_000)[..], b" \r\n+OK \r\n\n-E"].concat();
        assert_eq!(take_line(&mut buffer).as_deref(), Some("+OK"));
        assert_eq!(take_line(&mut buffer), None);
        assert_eq!(buffer, b"-E");
        buffer.extend_from_slice(b"RR\n\n$5\r\n");
        assert_eq!(take_line(&mut buffer).as_deref(), Some("-ERR"));
        assert_eq!(buffer, b"\n$5\r\n");
        assert_eq!(take_line(&mut buffer).as_deref(), Some("$5"));
        assert_eq!(take_line(&mut b"\n \n".to_vec()), None);
    }
}
