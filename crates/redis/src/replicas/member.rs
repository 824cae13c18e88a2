//! One replica.

use std::time::Duration;

use super::backlog::Backlog;
use super::dump::Dump;

/// Bytes that wait for the socket of a replica.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// What a replica tells of itself before it asks for the stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greeting {
    pub(crate) port: u16,
    pub(crate) address: Option<String>,
    /// It takes data up to a mark.
    pub(crate) takes_mark: bool,
    /// It may be told of another name of the stream.
    pub(crate) takes_new_name: bool,
    pub(crate) only_data: bool,
}

/// What a replica asks for.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// All data, without a line that tells of the stream: SYNC.
    Old,
    /// All data.
    All,
    /// The stream `id` from behind its first `offset` bytes.
    From { id: String, offset: u64 },
}

/// How far a replica is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// It is answered once the present round is written.
    Asks(Request),
    /// It gets all data.
    Dump(Dump),
    /// It has the data, and says so when it is loaded.
    Loads,
    /// It gets the stream.
    Online,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) greeting: Greeting,
    pub(crate) stage: Stage,
    /// It is of the time before PSYNC: it tells of nothing.
    pub(crate) is_old: bool,
    /// Bytes of the stream that were sent to it.
    pub(crate) sent: u64,
    /// Bytes that it has run, when it said so.
    pub(crate) acked: u64,
    pub(crate) acked_seconds: u64,
    /// Since when more waits for it than the lower limit allows.
    pub(crate) behind_since: Option<Duration>,
}

/// What came of an attempt to fill a replica's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    Some,
    Nothing,
    /// It cannot be served.
    Failed,
}

impl Member {
    pub(crate) fn new(greeting: Greeting, request: Request, now_seconds: u64) -> Self {
        Self {
            greeting,
            is_old: matches!(request, Request::Old),
            stage: Stage::Asks(request),
            sent: 0,
            acked: 0,
            acked_seconds: now_seconds,
            behind_since: None,
        }
    }

    /// The word for its stage in INFO.
    pub(crate) fn state(&self) -> &'static str {
        match &self.stage {
            Stage::Asks(_) => "wait_bgsave",
            Stage::Dump(dump) if !dump.has_begun() => "wait_bgsave",
            Stage::Dump(_) | Stage::Loads => "send_bulk",
            Stage::Online => "online",
        }
    }

    pub(crate) fn is_online(&self) -> bool {
        matches!(self.stage, Stage::Online)
    }

    /// Seconds since it told how far it is.
    pub(crate) fn lag(&self, now_seconds: u64) -> u64 {
        now_seconds.saturating_sub(self.acked_seconds)
    }

    /// Whether the backlog is read for it, or will be.
    pub(crate) fn needs_stream(&self) -> bool {
        !matches!(self.stage, Stage::Asks(_)) && !self.greeting.only_data
    }

    /// It has run so many bytes.
    pub(crate) fn acknowledge(&mut self, offset: u64, now_seconds: u64) {
        self.acked = self.acked.max(offset);
        self.acked_seconds = now_seconds;
        if matches!(self.stage, Stage::Loads) {
            self.stage = Stage::Online;
        }
    }

    /// Appends what it gets next to `out`.
    pub(crate) fn fill(&mut self, backlog: &Backlog, out: &mut Vec<u8>) -> Filled {
        match &mut self.stage {
            Stage::Asks(_) | Stage::Loads => Filled::Nothing,
            Stage::Online => {
                let read = backlog.read(self.sent, PIECE_BYTES, out);
                self.sent += read as u64;
                if read > 0 {
                    Filled::Some
                } else {
                    Filled::Nothing
                }
            }
            Stage::Dump(dump) => {
                let len = out.len();
                match dump.take(out) {
                    Ok(false) if out.len() > len => Filled::Some,
                    Ok(false) => Filled::Nothing,
                    Ok(true) => {
                        // Nothing may follow the mark before the replica has seen it.
                        self.stage = match self.greeting.takes_mark {
                            true => Stage::Loads,
                            false => Stage::Online,
                        };
                        Filled::Some
                    }
                    Err(_) => Filled::Failed,
                }
            }
        }
    }
}
