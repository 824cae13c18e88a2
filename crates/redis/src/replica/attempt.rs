//! The thread that connects to the primary and takes its data.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{Error, ErrorKind, Result};
use drumlin_fs::Env;
use drumlin_fs::net::Network;
use drumlin_redis_store::{DATABASES, Failure, Keyspace, Overlay, ReadFrom, Store};

use super::greeting::{Answer, Credentials, greet, psync, take_data};
use super::state::{Phase, Place, Primary, Shared, Stream, Verdict};
use crate::persist::load::{self, Loaded};
use crate::wire::{Terms, Wire};

/// Signs of life while the data is loaded.
const SIGN_EVERY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) env: Env,
    pub(super) network: Arc<dyn Network>,
    pub(super) store: Arc<Store>,
    pub(super) shared: Arc<Shared>,
    pub(super) primary: Primary,
    pub(super) credentials: Credentials,
    pub(super) timeout: Duration,
    /// Where the stream was lost.
    pub(super) place: Option<Place>,
    /// The other is to be the primary from here on.
    pub(super) hands_over: bool,
    /// The file for the data.
    pub(super) file: PathBuf,
}

impl Task {
    /// Makes a connection, and tells the loop.
    pub(super) fn run(self) {
        let outcome = self.connect();
        self.shared.letters.lock().outcome = Some(outcome);
        // The loop looks at the letters after every wait.
        drop(self.shared.waker.wake());
    }

    fn enter(&self, phase: Phase) {
        self.shared.letters.lock().phase = phase;
    }

    fn connect(&self) -> Result<Stream> {
        self.enter(Phase::Connecting);
        let terms = Terms {
            clock: Arc::clone(&self.env.clock),
            stops: Arc::clone(&self.shared.stops),
            timeout: self.timeout,
            peer: "primary",
        };
        let place = (self.primary.host.as_str(), self.primary.port);
        let mut wire = Wire::connect(&*self.network, place, &terms)?;
        self.enter(Phase::Handshake);
        greet(&mut wire, &self.credentials)?;
        let answer = self.ask_for_stream(&mut wire)?;
        let has_all_data = matches!(answer, Answer::AllData(_));
        let place = match (answer, &self.place) {
            (Answer::GoesOn(id), Some(place)) => Place {
                id: id.unwrap_or_else(|| place.id.clone()),
                ..place.clone()
            },
            (Answer::Refused(error), _) => return Err(error),
            (Answer::GoesOn(_), None) => {
                return Err(Error::new(
                    ErrorKind::Io,
                    "the primary goes on with nothing",
                ));
            }
            (Answer::AllData(mut place), _) => {
                self.enter(Phase::Sync);
                let taken = take_data(&mut wire, &self.env, &self.file);
                let loaded = taken.and_then(|()| self.load(&mut wire));
                // It is the primary's, and would be of no use later. The next one replaces it.
                drop(self.env.files.remove(&self.file));
                place.db = loaded?;
                place
            }
        };
        let (connection, read) = wire.into_parts()?;
        Ok(Stream {
            connection,
            read,
            place,
            has_all_data,
        })
    }

    fn ask_for_stream(&self, wire: &mut Wire) -> Result<Answer> {
        let (answer, verdict) = match psync(wire, self.place.as_ref(), self.hands_over)? {
            Answer::Refused(error) => (Err(error), Verdict::Refuses),
            answer => (Ok(answer), Verdict::TakesOver),
        };
        if self.hands_over {
            self.shared.letters.lock().verdict = Some(verdict);
            drop(self.shared.waker.wake());
        }
        answer
    }

    /// Replaces all keys by those of the file, once the loop has written its own changes. The database that the stream has
    /// selected.
    fn load(&self, wire: &mut Wire) -> Result<u16> {
        let mut letters = self.shared.letters.lock();
        letters.asks_to_load = true;
        drop(self.shared.waker.wake());
        while !letters.may_load {
            if self.shared.is_stopped() {
                return Err(Error::new(ErrorKind::Io, "the primary is given up"));
            }
            self.shared.answered.wait(&mut letters);
        }
        drop(letters);
        self.clear()?;
        let clock = &self.env.clock;
        let mut due = clock.monotonic();
        let mut sign = |_: &Loaded| {
            if clock.monotonic() >= due {
                due = clock.monotonic() + SIGN_EVERY;
                // The next read tells of a connection that is gone.
                drop(wire.send(b"\n"));
            }
        };
        // What has expired is for the primary to tell.
        let loaded = load::load_base(&self.store, &self.env, &self.file, &mut sign);
        loaded.map(|(it, _)| it.stream_db.unwrap_or(0))
    }

    fn clear(&self) -> Result<()> {
        let (view, mut overlay) = (self.store.view(), Overlay::new());
        let store = &self.store;
        for (name, _) in store.libraries()? {
            let mut keys = Keyspace::new(store, &view, &mut overlay, 0, 0, ReadFrom::Disk);
            keys.set_library(&name, None);
        }
        for db in 0..DATABASES {
            let mut keys = Keyspace::new(store, &view, &mut overlay, db, 0, ReadFrom::Disk);
            let is_empty = keys.is_empty().map_err(|failure| match failure {
                Failure::Engine(error) => error,
                other => Error::new(ErrorKind::Corruption, other.to_string()),
            })?;
            if !is_empty {
                keys.clear();
            }
        }
        if !overlay.is_empty() {
            store.commit(&mut overlay)?;
        }
        Ok(())
    }
}
