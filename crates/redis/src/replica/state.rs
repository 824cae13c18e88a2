//! What the loop knows of the primary.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumlin::Result;
use drumlin_fs::net::{Connection, Network, Waker};
use drumlin_fs::{Env, JoinHandle};
use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;
use parking_lot::{Condvar, Mutex};

/// Where the primary is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Primary {
    /// As it was given.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Primary {
    /// That at `host`, which is an address or a name, and `port`.
    ///
    /// # Errors
    /// As a reply.
    pub(crate) fn parse(host: &[u8], port: &[u8]) -> Outcome<Self> {
        let port = integer(port).and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or(Failure::refused("ERR Invalid master port"))?;
        let host = String::from_utf8_lossy(host).into_owned();
        Ok(Self { host, port })
    }
}

/// A place in the stream of a primary's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The stream's name.
    pub(crate) id: String,
    /// Bytes of it that were run.
    pub(crate) offset: u64,
    /// The database that was selected there.
    pub(crate) db: u16,
}

/// How far the thread is, as ROLE calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A try is due.
    #[default]
    Connect,
    Connecting,
    Handshake,
    /// The data comes, or waits to be loaded.
    Sync,
    /// The data is being loaded: most commands are refused.
    Loading,
    Connected,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Connecting => "connecting",
            Self::Handshake => "handshake",
            Self::Sync | Self::Loading => "sync",
            Self::Connected => "connected",
        }
    }
}

/// A connection whose next bytes are the stream from `place` on.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) connection: Box<dyn Connection>,
    /// Bytes of the stream that were read already.
    pub(crate) read: Vec<u8>,
    pub(crate) place: Place,
    /// All data came before it.
    pub(crate) has_all_data: bool,
}

/// What a replica says that is asked to take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    TakesOver,
    Refuses,
}

/// The letters between the loop and the thread.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    pub(crate) phase: Phase,
    /// Once the other has answered.
    pub(crate) verdict: Option<Verdict>,
    /// The data is here, and is loaded once the loop has written all of its own.
    pub(crate) asks_to_load: bool,
    pub(crate) may_load: bool,
    /// How the thread ended.
    pub(crate) outcome: Option<Result<Stream>>,
}

/// The part that the thread has too.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) letters: Mutex<Letters>,
    pub(crate) answered: Condvar,
    pub(crate) stops: Arc<AtomicBool>,
    pub(crate) waker: Arc<dyn Waker>,
}

impl Shared {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }
}

/// A thread that makes a connection.
pub(crate) struct Attempt {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: Box<dyn JoinHandle>,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attempt").field(&self.shared).finish()
    }
}

/// The client that the primary is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) client: u64,
    /// The offset of its first byte.
    pub(crate) from: u64,
    pub(crate) ack_due: Duration,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Replication {
    pub(crate) env: Env,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) primary: Option<Primary>,
    pub(crate) attempt: Option<Attempt>,
    /// The thread replaces the stored libraries: they are loaded anew when it ends.
    pub(crate) replaces_libraries: bool,
    pub(crate) link: Option<Link>,
    /// How far the stream has been run; `None` where the next connection needs all data.
    pub(crate) place: Option<Place>,
    /// The next try, by the monotonic clock.
    pub(crate) due: Duration,
    pub(crate) down_since_seconds: u64,
    pub(crate) heard_seconds: u64,
    /// The primary asks how far we are.
    pub(crate) asks_ack: bool,
    pub(crate) last_error: Option<String>,
}

impl Replication {
    pub(crate) fn new(env: &Env, network: Arc<dyn Network>) -> Self {
        Self {
            env: env.clone(),
            network,
            primary: None,
            attempt: None,
            replaces_libraries: false,
            link: None,
            place: None,
            due: Duration::ZERO,
            down_since_seconds: 0,
            heard_seconds: 0,
            asks_ack: false,
            last_error: None,
        }
    }

    /// Whether there is a primary.
    pub(crate) fn is_replica(&self) -> bool {
        self.primary.is_some()
    }

    pub(crate) fn phase(&self) -> Phase {
        match &self.attempt {
            Some(attempt) => attempt.shared.letters.lock().phase,
            None if self.link.is_some() => Phase::Connected,
            None => Phase::Connect,
        }
    }

    /// Bytes of the stream that were run.
    pub(crate) fn offset(&self) -> u64 {
        self.place.as_ref().map_or(0, |place| place.offset)
    }

    /// Changes may be lost: the next connection begins with all data.
    pub(crate) fn forget_place(&mut self) {
        self.place = None;
    }

    /// Ends the thread, if there is one, and waits for that.
    ///
    /// # Errors
    /// A panic of the thread.
    pub(crate) fn end_attempt(&mut self) -> Result<()> {
        let Some(attempt) = self.attempt.take() else {
            return Ok(());
        };
        attempt.shared.stops.store(true, Ordering::Release);
        attempt.shared.answered.notify_all();
        attempt.thread.join()
    }
}
