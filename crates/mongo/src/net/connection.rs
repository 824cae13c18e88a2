//! The socket of a client: messages that come, replies that wait to be sent.

use drumlin_base::Result;
use drumlin_fs::net::{Connection, Interest, Poller, Received, Sent, Token};

use crate::wire::header::Header;

/// Bytes that are read from a socket at a time.
const READ_BYTES: usize = 64 << 10;
/// Buffers above this are given back when they are empty.
const KEPT_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Client {
    socket: Box<dyn Connection>,
    input: Vec<u8>,
    out: Vec<u8>,
    /// Whether a message of it is being answered: the next one waits.
    pub(crate) is_busy: bool,
    /// Whether the peer sends nothing more.
    has_ended: bool,
    interest: Option<Interest>,
}

/// What can be done for a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This whole message can be answered.
    Message(Vec<u8>),
    /// Nothing before more comes.
    Wait,
    /// The connection is over, for this reason where there is one.
    Close(Option<String>),
}

impl Client {
    /// Registers a connection that was accepted.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn new(
        mut socket: Box<dyn Connection>,
        poller: &dyn Poller,
        token: Token,
    ) -> Result<Self> {
        socket.set_nodelay(true)?;
        poller.register(&*socket, token, Interest::Read)?;
        Ok(Self {
            socket,
            input: Vec::new(),
            out: Vec::new(),
            is_busy: false,
            has_ended: false,
            interest: Some(Interest::Read),
        })
    }

    /// Reads what has come, up to a bound.
    pub(crate) fn read(&mut self) {
        let len = self.input.len();
        self.input.resize(len + READ_BYTES, 0);
        let received = match self.input.get_mut(len..) {
            Some(space) => self.socket.read(space),
            None => Ok(Received::NotNow),
        };
        let kept = match received {
            Ok(Received::Bytes(bytes)) => bytes,
            Ok(Received::NotNow) => 0,
            // A peer that is gone takes no replies either: the write tells it.
            Ok(Received::End) | Err(_) => {
                self.has_ended = true;
                0
            }
        };
        self.input.truncate(len + kept);
    }

    /// The next message, if it is whole, and nothing stands before it.
    pub(crate) fn next(&mut self) -> Next {
        if self.is_busy || !self.out.is_empty() {
            return Next::Wait;
        }
        match Header::read(&self.input) {
            Err(reason) => Next::Close(Some(reason)),
            Ok(Some(header)) if header.len <= self.input.len() => {
                let rest = self.input.split_off(header.len);
                self.is_busy = true;
                Next::Message(std::mem::replace(&mut self.input, rest))
            }
            Ok(_) if self.has_ended => Next::Close(None),
            Ok(_) => Next::Wait,
        }
    }

    /// Takes the reply to the message that is being answered.
    pub(crate) fn reply(&mut self, bytes: Vec<u8>) {
        self.is_busy = false;
        self.out = bytes;
    }

    /// Sends what it can.
    ///
    /// # Errors
    /// When the peer is gone.
    pub(crate) fn send(&mut self) -> Result<()> {
        let mut sent = 0;
        while let Some(rest) = self.out.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest)? {
                Sent::Bytes(bytes) => sent += bytes,
                Sent::NotNow => break,
            }
        }
        match sent == self.out.len() {
            true if self.out.capacity() > KEPT_BYTES => self.out = Vec::new(),
            true => self.out.clear(),
            false => drop(self.out.drain(..sent)),
        }
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = Vec::new();
        }
        Ok(())
    }

    /// Has the poller tell of what can be done now: nothing is read while a message is answered.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn update_interest(&mut self, poller: &dyn Poller, token: Token) -> Result<()> {
        let wanted = match (self.is_busy, self.out.is_empty()) {
            (true, _) => None,
            (false, false) => Some(Interest::Write),
            (false, true) if self.has_ended => None,
            (false, true) => Some(Interest::Read),
        };
        match (self.interest, wanted) {
            (now, wanted) if now == wanted => {}
            (None, Some(interest)) => poller.register(&*self.socket, token, interest)?,
            (Some(_), Some(interest)) => poller.reregister(&*self.socket, token, interest)?,
            (_, None) => poller.deregister(&*self.socket)?,
        }
        self.interest = wanted;
        Ok(())
    }
}
