//! The connection of a scraper: one request, one answer, then the end.

use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::net::{Connection, Received, Sent};

use crate::http::{Ask, REQUEST_BYTES_MAX, answer, asked};

/// Bytes that a scraper may send; all after the request is thrown away.
const BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// Where a scraper stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// For a page.
    Asks,
    /// For the numbers.
    Waits {
        /// Whether it wants the head alone.
        head_only: bool,
    },
    /// The answer is all that it gets.
    Answered,
}

/// See the module.
#[derive(Debug)]
pub struct Scraper {
    /// Its socket.
    pub connection: Box<dyn Connection>,
    input: Vec<u8>,
    /// Bytes that came.
    heard: usize,
    out: Vec<u8>,
    sent: usize,
    /// Where it stands.
    pub stage: Stage,
    /// When its time is over, by the monotonic clock.
    pub until: Duration,
}

impl Scraper {
    /// One that came, and has until `until`.
    pub fn new(connection: Box<dyn Connection>, until: Duration) -> Self {
        Self {
            connection,
            input: Vec::new(),
            heard: 0,
            out: Vec::new(),
            sent: 0,
            stage: Stage::Asks,
            until,
        }
    }

    /// Whether it has not taken all of its answer yet.
    pub fn is_behind(&self) -> bool {
        self.sent < self.out.len()
    }

    /// Reads what has come; whether the scraper is still there.
    pub fn hear(&mut self) -> bool {
        let mut buffer = [0; REQUEST_BYTES_MAX];
        let bytes = match self.connection.read(&mut buffer) {
            Ok(Received::Bytes(bytes)) => bytes,
            Ok(Received::NotNow) => return true,
            Ok(Received::End) | Err(_) => return false,
        };
        self.heard += bytes;
        if self.stage == Stage::Asks {
            self.input.extend(buffer.iter().take(bytes));
            match asked(&self.input) {
                Ask::More => {}
                Ask::Page { head_only } => self.stage = Stage::Waits { head_only },
                Ask::Refused(status) => self.give(answer(status, status, false)),
            }
        }
        self.heard <= BYTES_MAX
    }

    /// Gives it an answer.
    pub fn give(&mut self, out: Vec<u8>) {
        self.out = out;
        self.input = Vec::new();
        self.stage = Stage::Answered;
    }

    /// Sends what the socket takes. The other side closes once it has all: unread bytes of its would cut the answer.
    ///
    /// # Errors
    /// When it is gone.
    pub fn tell(&mut self) -> Result<()> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.connection.write(rest)? {
                Sent::Bytes(bytes) => self.sent += bytes,
                Sent::NotNow => return Ok(()),
            }
        }
        if !self.out.is_empty() {
            self.out = Vec::new();
            self.sent = 0;
            self.connection.shutdown_write()?;
        }
        Ok(())
    }
}
