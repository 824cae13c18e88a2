//! The socket of a client: what was read and not yet run, and what waits to be sent.

use std::time::Duration;

use drumlin_base::{Result, SeqNo};
use drumlin_fs::net::{Connection, Interest, Poller, Received, Sent, Token};
use drumlin_resp::{RequestLimits, RequestParser};
use drumlin_tls::Tls;

use crate::memory::crowd::{CLIENT_BYTES, Crowd, TLS_BYTES};

/// Bytes taken from a socket at a time, so that no client keeps the others waiting.
const READ_BYTES: usize = 64 << 10;
/// Bytes of commands that are read while the client's commands have to wait.
pub(crate) const HELD_BYTES_MAX: usize = 256 << 10;
/// A client with so many bytes to be sent runs no commands until it has taken some.
pub(crate) const OUT_BYTES_HIGH: usize = 1 << 20;

/// Why the commands of a client have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// They need not.
    None,
    /// Its next command, of so many bytes, needs the disk.
    Cold { bytes: usize },
    /// Its next command writes, and the engine has not taken an earlier round yet.
    Later,
    /// It waits for a key.
    Blocked,
    /// Its next command waits for the end of a pause.
    Paused,
}

/// Whether replies may be sent. While they may not, no more commands are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// They tell of a round that the engine has not taken yet; whether it has to outlive a power cut, too.
    Commit {
        lasts: bool,
    },
    /// They tell of writes up to here, which a power cut could still take back.
    Durable(SeqNo),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) connection: Box<dyn Connection>,
    pub(crate) parser: RequestParser,
    input: Vec<u8>,
    /// Bytes of `input` that were run.
    at: usize,
    consumed: u64,
    pub(crate) hold: Hold,
    pub(crate) gate: Gate,
    /// How often the next command was warmed up from the disk.
    pub(crate) warmed: u32,
    /// Replies of the present round, and where they begin in what is to be sent; and whether any tells of a write.
    pub(crate) round_replies: usize,
    pub(crate) round_from: usize,
    pub(crate) round_wrote: bool,
    /// Whether any of them may tell of what others wrote in the round.
    pub(crate) round_saw: bool,
    /// What was read ends within a command: there is nothing to run until more comes.
    pub(crate) is_incomplete: bool,
    /// The peer sends nothing more.
    pub(crate) has_ended: bool,
    pub(crate) heard: Duration,
    /// Bytes that the crowd has of it.
    pub(crate) counted: usize,
    /// Of these, what waits to be sent, as far as it was counted.
    unsent: usize,
    interest: Option<Interest>,
    /// Turns in a row in which it sent only what threads beside the loop answer, many at a time; and how many it takes to be lent
    /// to one.
    pub(crate) calm: u32,
    pub(crate) patience: u32,
    /// `None` of a plain connection.
    pub(crate) tls: Option<Box<Tls>>,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Bytes(usize),
    Nothing,
    /// The end, or an error: nothing more comes.
    Gone,
}

impl Io {
    /// Takes a connection that was accepted, and registers it.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn new(
        connection: Box<dyn Connection>,
        poller: &dyn Poller,
        token: Token,
        limits: RequestLimits,
        now: Duration,
    ) -> Result<Self> {
        poller.register(&*connection, token, Interest::Read)?;
        Ok(Self {
            connection,
            parser: RequestParser::new(limits),
            input: Vec::new(),
            at: 0,
            consumed: 0,
            hold: Hold::None,
            gate: Gate::Open,
            warmed: 0,
            round_replies: 0,
            round_from: 0,
            round_wrote: false,
            round_saw: false,
            is_incomplete: false,
            has_ended: false,
            heard: now,
            counted: 0,
            unsent: 0,
            interest: Some(Interest::Read),
            calm: 0,
            patience: 1,
            tls: None,
        })
    }

    /// Ends its part in the present round; whether it has replies of it.
    pub(crate) fn leave_round(&mut self) -> bool {
        self.round_wrote = false;
        self.round_saw = false;
        std::mem::take(&mut self.round_replies) > 0
    }

    /// Whether the client's next command may run.
    pub(crate) fn may_run(&self) -> bool {
        self.hold == Hold::None && self.gate == Gate::Open
    }

    /// Reads what has come, a bounded part of it.
    pub(crate) fn read(&mut self, now: Duration) -> Heard {
        let wanted = self.parser.needed().clamp(READ_BYTES / 4, READ_BYTES);
        if self.tls.is_some() {
            return self.read_tls(wanted, now);
        }
        let len = self.input.len();
        self.input.resize(len + wanted, 0);
        let Some(space) = self.input.get_mut(len..) else {
            return Heard::Nothing;
        };
        let received = self.connection.read(space);
        let (kept, heard) = match received {
            Ok(Received::Bytes(bytes)) => (bytes, Heard::Bytes(bytes)),
            Ok(Received::NotNow) => (0, Heard::Nothing),
            Ok(Received::End) => {
                self.has_ended = true;
                (0, Heard::Gone)
            }
            Err(_) => {
                self.has_ended = true;
                (0, Heard::Gone)
            }
        };
        self.input.truncate(len + kept);
        self.is_incomplete &= kept == 0;
        self.heard = now;
        heard
    }

    fn read_tls(&mut self, wanted: usize, now: Duration) -> Heard {
        let Some(tls) = &mut self.tls else {
            return Heard::Nothing;
        };
        self.heard = now;
        match tls.read(&mut *self.connection, &mut self.input, wanted) {
            Ok(Received::Bytes(bytes)) => {
                self.is_incomplete = false;
                Heard::Bytes(bytes)
            }
            Ok(Received::NotNow) => Heard::Nothing,
            Ok(Received::End) | Err(_) => {
                self.has_ended = true;
                Heard::Gone
            }
        }
    }

    /// Whether its handshake is not over.
    pub(crate) fn is_greeting(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_greeting())
    }

    /// Whether the peer has said that it ends, which its socket may never tell.
    pub(crate) fn is_over(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_ended())
    }

    /// Whether something that was encrypted waits for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Tells the peer that nothing more comes, where there is a way to.
    pub(crate) fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.say_goodbye(&mut *self.connection);
        }
    }

    /// The parser and what it has not taken yet.
    pub(crate) fn pending(&mut self) -> (&mut RequestParser, &[u8]) {
        (&mut self.parser, self.input.get(self.at..).unwrap_or(&[]))
    }

    /// The bytes that were read and not run.
    pub(crate) fn received(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or(&[])
    }

    /// How many these are.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.input.len() - self.at
    }

    /// Whether there may be a whole command among them.
    pub(crate) fn has_commands(&self) -> bool {
        self.pending_bytes() > 0 && !self.is_incomplete
    }

    /// Forgets a command that was run.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.at += bytes;
        self.consumed += bytes as u64;
        self.warmed = 0;
    }

    /// Bytes that were run since the connection is a client's.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Takes bytes that were read from the connection before.
    pub(crate) fn give(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.is_incomplete = false;
    }

    /// Brings `crowd` up to date with what it holds.
    pub(crate) fn count(&mut self, crowd: &mut Crowd) {
        let tls = if self.tls.is_some() { TLS_BYTES } else { 0 };
        let now = CLIENT_BYTES + tls + self.input.capacity() + self.unsent;
        crowd.count(&mut self.counted, now);
    }

    /// The same, with what waits to be sent to it.
    pub(crate) fn count_with(&mut self, crowd: &mut Crowd, out: &Vec<u8>) {
        self.unsent = out.capacity();
        self.count(crowd);
    }

    /// Gives the memory of what was run back.
    pub(crate) fn compact(&mut self) {
        if self.at > 0 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        if self.input.is_empty() && self.input.capacity() > READ_BYTES {
            self.input = Vec::new();
        }
    }

    /// Gives an empty buffer back, that would be of use for the next command.
    pub(crate) fn slim(&mut self) {
        if self.input.is_empty() {
            self.input = Vec::new();
        }
    }

    /// Sends what it can of `out`, nothing while the gate is closed; how many bytes went.
    ///
    /// # Errors
    /// When the peer is gone.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) -> Result<usize> {
        let mut sent = 0;
        if let Some(tls) = &mut self.tls {
            let may_go: &[u8] = if self.gate == Gate::Open { out } else { &[] };
            sent = tls.send(&mut *self.connection, may_go)?;
        } else {
            while let Some(rest) = out.get(sent..).filter(|rest| !rest.is_empty()) {
                match self.connection.write(rest)? {
                    Sent::Bytes(bytes) => sent += bytes,
                    Sent::NotNow => break,
                }
            }
        }
        match sent == out.len() {
            true if out.capacity() > READ_BYTES => *out = Vec::new(),
            true => out.clear(),
            false => drop(out.drain(..sent)),
        }
        Ok(sent)
    }

    /// Leaves the poller that it is registered with.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn leave(&mut self, poller: &dyn Poller) -> Result<()> {
        if self.interest.take().is_some() {
            poller.deregister(&*self.connection)?;
        }
        Ok(())
    }

    /// Registers with a poller, to be read. Requires: it has left the one before.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn enter(&mut self, poller: &dyn Poller, token: Token) -> Result<()> {
        poller.register(&*self.connection, token, Interest::Read)?;
        self.interest = Some(Interest::Read);
        Ok(())
    }

    /// Has the poller tell of what the client can do now.
    ///
    /// # Errors
    /// Of the poller.
    pub(crate) fn update_interest(
        &mut self,
        poller: &dyn Poller,
        token: Token,
        to_send: usize,
    ) -> Result<()> {
        let held = !self.may_run() || to_send > OUT_BYTES_HIGH;
        let reads = !self.has_ended && (!held || self.pending_bytes() < HELD_BYTES_MAX);
        let writes = (to_send > 0 && self.gate == Gate::Open) || self.has_unsent();
        let wanted = match (reads, writes) {
            (true, true) => Some(Interest::ReadWrite),
            (true, false) => Some(Interest::Read),
            (false, true) => Some(Interest::Write),
            (false, false) => None,
        };
        if wanted == self.interest {
            return Ok(());
        }
        match (self.interest, wanted) {
            (None, Some(interest)) => poller.register(&*self.connection, token, interest)?,
            (Some(_), Some(interest)) => poller.reregister(&*self.connection, token, interest)?,
            (_, None) => poller.deregister(&*self.connection)?,
        }
        self.interest = wanted;
        Ok(())
    }
}
