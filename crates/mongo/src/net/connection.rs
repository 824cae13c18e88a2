//! The socket of a client: messages that come, replies that wait to be sent.

use std::sync::Arc;
use std::time::Duration;

use drumlin::Account;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::net::{Connection, Interest, Poller, Received, Sent, Token};

use drumlin_tls::Tls;

use crate::held::Held;
use crate::wire::header::Header;

use super::tls::{Greeting, TlsMode, is_hello};

/// Bytes that are read from a socket at a time: the space that a read needs.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Buffers above this are given back when they are empty.
const KEPT_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Client {
    socket: Box<dyn Connection>,
    input: Vec<u8>,
    out: Vec<u8>,
    /// How much of it is sent.
    sent: usize,
    /// Whether a message of it is being answered: the next one waits.
    pub(crate) is_busy: bool,
    /// What it may be greeted with, until it is known whether it speaks TLS.
    greeting: Option<Greeting>,
    /// `None` of a plain connection.
    tls: Option<Box<Tls>>,
    /// Whether the peer sends nothing more.
    has_ended: bool,
    /// A message that is answered later, and when.
    waiting: Option<(Duration, Vec<u8>)>,
    interest: Option<Interest>,
    held: Held,
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
        greeting: Option<Greeting>,
        account: &Arc<Account>,
    ) -> Result<Self> {
        socket.set_nodelay(true)?;
        poller.register(&*socket, token, Interest::Read)?;
        Ok(Self {
            socket,
            input: Vec::new(),
            out: Vec::new(),
            sent: 0,
            is_busy: false,
            greeting,
            tls: None,
            has_ended: false,
            waiting: None,
            interest: Some(Interest::Read),
            held: Held::new(account),
        })
    }

    /// Reads what has come, through `space`, and no more than that has room for.
    ///
    /// # Errors
    /// Where the peer does not keep to TLS, or does not speak it and has to.
    pub(crate) fn read(&mut self, space: &mut [u8]) -> Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.read(&mut *self.socket, &mut self.input, space.len())?;
            self.has_ended |= tls.has_ended();
            return Ok(());
        }
        self.read_plain(space);
        let Some(greeting) = &self.greeting else {
            return Ok(());
        };
        let is_required = greeting.mode == TlsMode::Require;
        match is_hello(&self.input) {
            Some(true) => {
                let mut tls = Tls::new(Arc::clone(&greeting.settings))?;
                let hello = std::mem::take(&mut self.input);
                tls.feed(&mut *self.socket, &hello, &mut self.input)?;
                self.tls = Some(Box::new(tls));
                self.greeting = None;
            }
            Some(false) if is_required && !drumlin_base::bug!("mongo-tls-not-required") => {
                let text = "a connection without TLS, which is required";
                return Err(Error::new(ErrorKind::Io, text));
            }
            Some(false) => self.greeting = None,
            None => {}
        }
        Ok(())
    }

    fn read_plain(&mut self, space: &mut [u8]) {
        match self.socket.read(space) {
            Ok(Received::Bytes(bytes)) => {
                let received = space.get(..bytes).unwrap_or_default();
                self.input.extend_from_slice(received);
                self.count();
            }
            Ok(Received::NotNow) => {}
            // A peer that is gone takes no replies either: the write tells it.
            Ok(Received::End) | Err(_) => self.has_ended = true,
        }
    }

    /// Charges its buffers to the budget.
    fn count(&mut self) {
        self.held.set(self.input.capacity() + self.out.capacity());
    }

    /// The next message, if it is whole, and nothing stands before it.
    pub(crate) fn next(&mut self) -> Next {
        let is_unknown = self.greeting.is_some() && !self.has_ended;
        if self.waiting.is_some() && self.has_ended {
            return Next::Close(None);
        }
        if self.is_busy || self.waiting.is_some() || !self.out.is_empty() || is_unknown {
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

    /// Takes the reply to the message that is being answered, and sends it. Whether nothing is left to do: it is sent, the poller
    /// tells of the next message, and that has not come yet.
    pub(crate) fn reply(&mut self, bytes: Vec<u8>) -> bool {
        self.is_busy = false;
        self.out = bytes;
        self.sent = 0;
        let is_sent = self.send().is_ok() && self.is_sent();
        let is_listened_to =
            self.interest == Some(Interest::Read) || drumlin_base::bug!("mongo-unheard-forgotten");
        is_sent
            && is_listened_to
            && !self.has_ended
            && (!self.has_message() || drumlin_base::bug!("mongo-next-message-forgotten"))
    }

    /// Whether a whole message has come, or what is none.
    fn has_message(&self) -> bool {
        match Header::read(&self.input) {
            Ok(header) => header.is_some_and(|header| header.len <= self.input.len()),
            Err(_) => true,
        }
    }

    /// Takes a reply, and a message that is answered later.
    pub(crate) fn wait(&mut self, reply: Vec<u8>, message: Vec<u8>, until: Duration) {
        self.reply(reply);
        self.waiting = Some((until, message));
    }

    /// Has the poller tell nothing more: until its message is answered nothing can be done for it, whatever comes.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn ignore(&mut self, poller: &dyn Poller) -> Result<()> {
        match self.interest.take() {
            Some(_) => poller.deregister(&*self.socket),
            None => Ok(()),
        }
    }

    /// The message that has waited, which is being answered from now on. `None` while the reply before it is not sent: it waits
    /// until `later` then.
    pub(crate) fn take_waited(&mut self, later: Duration) -> Option<Vec<u8>> {
        if !self.is_sent() && !drumlin_base::bug!("mongo-waited-over-unsent") {
            let (until, _) = self.waiting.as_mut()?;
            *until = later;
            return None;
        }
        self.is_busy |= self.waiting.is_some();
        self.waiting.take().map(|(_, message)| message)
    }

    fn is_sent(&self) -> bool {
        self.out.is_empty() && self.tls.as_ref().is_none_or(|it| !it.has_unsent())
    }

    /// Has the message that waits, if any, answered at `now`; when it would have been.
    pub(crate) fn hurry(&mut self, now: Duration) -> Option<Duration> {
        let (until, _) = self.waiting.as_mut()?;
        Some(std::mem::replace(until, now))
    }

    /// When the message that waits is answered.
    pub(crate) fn waits_until(&self) -> Option<Duration> {
        self.waiting.as_ref().map(|(until, _)| *until)
    }

    /// Sends what it can.
    ///
    /// # Errors
    /// When the peer is gone.
    pub(crate) fn send(&mut self) -> Result<()> {
        let mut sent = self.sent;
        if let Some(tls) = &mut self.tls {
            let rest = self.out.get(sent..).unwrap_or_default();
            sent += tls.send(&mut *self.socket, rest)?;
        }
        while let Some(rest) = self.out.get(sent..).filter(|rest| !rest.is_empty()) {
            if self.tls.is_some() {
                break;
            }
            match self.socket.write(rest)? {
                Sent::Bytes(bytes) => sent += bytes,
                Sent::NotNow => break,
            }
        }
        self.sent = sent;
        if sent == self.out.len() {
            self.sent = 0;
            match self.out.capacity() > KEPT_BYTES {
                true => self.out = Vec::new(),
                false => self.out.clear(),
            }
        }
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = Vec::new();
        }
        self.count();
        Ok(())
    }

    /// Has the poller tell of what can be done now. While a message is answered nothing is read; that the poller would tell of more
    /// stays as it is, as hardly any client sends more.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn update_interest(&mut self, poller: &dyn Poller, token: Token) -> Result<()> {
        let wanted = match (self.is_busy, self.is_sent()) {
            (true, _) => self.interest.filter(|now| *now == Interest::Read),
            (false, false) => Some(Interest::Write),
            (false, true) if self.has_ended => None,
            // Who waits says nothing; what it says even so stays with it.
            (false, true) if self.waiting.is_some() && !self.input.is_empty() => None,
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

    /// Tells a peer that speaks TLS that this is the end, if its socket takes that.
    pub(crate) fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.say_goodbye(&mut *self.socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use drumlin_fs::net::{Address, ListenOptions, MemNetwork, Network};
    use drumlin_fs::{Clock, SystemClock};

    use super::*;

    #[test]
    fn a_message_waits_for_the_reply_before_it() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let network = MemNetwork::new(clock, 1);
        network.set_capacity(8);
        let address = Address::Tcp("127.0.0.1:27017".parse().expect("an address"));
        let mut listener = network
            .listen(&address, ListenOptions::default())
            .expect("listens");
        let mut peer = network.connect(&address).expect("connects");
        let accepted = listener.accept().expect("accepts").expect("there is one");
        let poller = network.poller().expect("a poller");
        let account = drumlin_base::MemoryBudget::new(1 << 20).account("connections");
        let mut client =
            Client::new(accepted, &*poller, Token(1), None, &account).expect("registers");
        let (at, later) = (Duration::from_secs(1), Duration::from_secs(2));
        client.wait(b"a reply of 21 bytes!!".to_vec(), b"hello".to_vec(), at);
        let mut heard = Vec::new();
        while heard.len() < 21 {
            client.send().expect("sends");
            if heard.len() + 8 < 21 {
                assert_eq!(
                    client.take_waited(later),
                    None,
                    "after {} bytes",
                    heard.len()
                );
                assert_eq!(client.waits_until(), Some(later));
            }
            let mut space = [0; 8];
            if let Received::Bytes(bytes) = peer.read(&mut space).expect("reads") {
                heard.extend_from_slice(&space[..bytes]);
            }
        }
        assert_eq!(heard, b"a reply of 21 bytes!!");
        client.send().expect("sends");
        assert_eq!(client.take_waited(later), Some(b"hello".to_vec()));
        assert_eq!((client.is_busy, client.waits_until()), (true, None));
    }
}
