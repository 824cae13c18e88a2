//! One side of a connection in memory.

use std::time::Duration;

use super::Address;
use super::mem_stream::Stream;

/// The time for which bytes are sent again to a peer that does not answer: Linux's 15 repetitions.
pub(super) const RETRANSMISSION: Duration = Duration::from_secs(924);

/// The reason why a connection works no more.
#[derive(Clone, Copy, Debug)]
struct Failure {
    at: Duration,
    code: i32,
    told: bool,
}

/// A side that receives nothing from the other any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutOff {
    pub(super) since: Duration,
    /// The other side answers, but knows nothing of the connection.
    pub(super) forgotten: bool,
}

/// Whether an operation would do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    Now,
    /// Not before that time, as far as known.
    At(Duration),
    /// Not before some other call changes the state.
    Unknown,
}

impl Ready {
    /// Ready from `at` on.
    pub(super) fn from(at: Option<Duration>, now: Duration) -> Self {
        match at {
            Some(at) if at <= now => Self::Now,
            Some(at) => Self::At(at),
            None => Self::Unknown,
        }
    }

    /// Ready when either is.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::At(one), Self::At(other)) => Self::At(one.min(other)),
            (Self::Unknown, at) | (at, Self::Unknown) => at,
        }
    }
}

#[derive(Debug)]
pub(super) struct End {
    pub(super) local: Address,
    pub(super) remote: Address,
    /// The other side's number; it may be gone.
    pub(super) peer: u64,
    /// Bytes from the other side.
    pub(super) inbox: Stream,
    /// The time from which it is connected; none while the listener's queue is full, and when it never will be.
    pub(super) established: Option<Duration>,
    pub(super) wrote_end: bool,
    pub(super) cut_off: Option<CutOff>,
    /// Bytes written to nobody.
    pub(super) lost: usize,
    /// The time of the first of them.
    pub(super) lost_since: Option<Duration>,
    pub(super) keepalive: Option<Duration>,
    failure: Option<Failure>,
}

impl End {
    pub(super) fn new(local: Address, remote: Address, peer: u64, capacity: usize) -> Self {
        Self {
            local,
            remote,
            peer,
            inbox: Stream::new(capacity),
            established: None,
            wrote_end: false,
            cut_off: None,
            lost: 0,
            lost_since: None,
            keepalive: None,
            failure: None,
        }
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.remote, Address::Tcp(_))
    }

    /// It works no more from `at` on, unless it fails earlier for another reason.
    pub(super) fn fail(&mut self, at: Duration, code: i32) {
        if self.failure.is_none_or(|failure| at < failure.at) {
            let told = false;
            self.failure = Some(Failure { at, code, told });
        }
    }

    /// Fails if the other side has been silent for too long.
    pub(super) fn refresh(&mut self, now: Duration) {
        if let Some((at, code)) = self.gives_up()
            && at <= now
        {
            self.fail(at, code);
        }
    }

    /// The time at which silence becomes a failure, and its code.
    fn gives_up(&self) -> Option<(Duration, i32)> {
        let cut_off = self.cut_off?;
        if cut_off.forgotten {
            let asked = self.keepalive.map(|idle| cut_off.since + idle);
            return asked.map(|at| (at, libc::ECONNRESET));
        }
        let asked = self.keepalive.map(|idle| cut_off.since + idle * 2);
        let unheard = self.lost_since.map(|since| since + RETRANSMISSION);
        let first = asked.into_iter().chain(unheard).min();
        first.map(|at| (at, libc::ETIMEDOUT))
    }

    /// Whether it works no more.
    pub(super) fn has_failed(&self, now: Duration) -> bool {
        self.failure.is_some_and(|failure| failure.at <= now)
    }

    /// The code of its failure, reported once.
    pub(super) fn take_failure(&mut self, now: Duration) -> Option<i32> {
        let failure = self.failure.as_mut()?;
        let news = failure.at <= now && !failure.told;
        failure.told |= news;
        news.then_some(failure.code)
    }

    pub(super) fn is_connected(&self, now: Duration) -> bool {
        self.established.is_some_and(|at| at <= now)
    }

    /// The time at which a failure ends all waiting.
    fn fails(&self, now: Duration) -> Ready {
        let silence = self.gives_up().map(|(at, _)| at);
        let failure = self.failure.map(|failure| failure.at);
        Ready::from(failure, now).or(Ready::from(silence, now))
    }

    pub(super) fn readable(&self, now: Duration) -> Ready {
        Ready::from(self.inbox.next_arrival(), now).or(self.fails(now))
    }

    /// `room`: of the other side's inbox; none when it is gone.
    pub(super) fn writable(&self, room: Option<usize>, now: Duration) -> Ready {
        let taken = match self.cut_off {
            Some(_) => self.lost < self.inbox.capacity(),
            None => room != Some(0),
        };
        let writes = match self.established {
            Some(at) if at > now => Ready::At(at),
            Some(_) if taken || self.wrote_end => Ready::Now,
            _ => Ready::Unknown,
        };
        writes.or(self.fails(now))
    }
}
