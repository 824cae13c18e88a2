//! Followers: a database that is read while another process writes it, and that is never older than it says.
//!
//! Thread safety: any thread may read, ask and catch up; one at a time goes on (`db/follow.rs`), the others wait for it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::{Condvar, Mutex};
use drumlin_base::{Error, Result, SeqNo};
use drumlin_fs::{Clock, JoinHandle};

use crate::db::follow::Following;
use crate::db::handle::Db;
use crate::db::reader;
use crate::options::settings::Options;

/// Pause between two looks for what [`Follower::wait_for`] waits for.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// How a follower goes on.
#[derive(Clone, Copy, Debug)]
pub struct FollowOptions {
    /// Pause of the thread that catches up before it does so again; `None` for no thread: it goes on when
    /// [`Follower::catch_up`] is called. Default: 20 ms.
    pub interval: Option<Duration>,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            interval: Some(Duration::from_millis(20)),
        }
    }
}

/// How far a follower is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The newest sequence number that reads see at least. That of the writer is its [`Db::latest_seqno`].
    pub seqno: SeqNo,
    /// What was in the writer's files this long ago is seen.
    pub age: Duration,
}

/// A database that another process, or another handle of this one, is writing, open for reading: it goes on as the writer
/// does. See [`Db::open_follower`].
pub struct Follower {
    db: Db,
    shared: Arc<Shared>,
    thread: Option<Box<dyn JoinHandle>>,
}

struct Shared {
    following: Mutex<Following>,
    status: Mutex<Status>,
    /// Notified when the thread is to end.
    ending: Condvar,
    clock: Arc<dyn Clock>,
}

/// What the last time of catching up came to.
struct Status {
    /// When the last one that went well began, on the clock.
    as_of: Duration,
    failure: Option<Error>,
    is_ending: bool,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Follower({}, {:?})",
            self.db.path().display(),
            self.lag()
        )
    }
}

impl Db {
    /// Opens the database in `dir`, ours or RocksDB's, for reading, and goes on as its writer does: families that come and
    /// go included. Nothing in the directory is changed, and the writer knows nothing of it.
    ///
    /// Every family is opened, with `options.family`, as [`Db::open_read_only`] does. Its files are held open: the writer
    /// may remove or reuse what the follower still reads. Writes that no WAL has are seen once they are flushed.
    ///
    /// # Errors
    /// As [`Db::open_read_only`]; `Io` where there is no thread.
    pub fn open_follower(
        dir: impl AsRef<Path>,
        options: Options,
        follow: FollowOptions,
    ) -> Result<Follower> {
        let clock = Arc::clone(&options.env.clock);
        let spawner = Arc::clone(&options.env.spawner);
        let as_of = clock.monotonic();
        let (opened, held) = reader::open_read_only(dir.as_ref(), &options, true)?;
        let following = Following::new(&opened.engine, held, options)?;
        let db = Self::from_engine(opened)?;
        let shared = Arc::new(Shared {
            following: Mutex::new(following),
            status: Mutex::new(Status {
                as_of,
                failure: None,
                is_ending: false,
            }),
            ending: Condvar::new(),
            clock,
        });
        let thread = match follow.interval {
            None => None,
            Some(interval) => {
                let body = Arc::clone(&shared);
                let body = Box::new(move || body.run(interval));
                Some(spawner.spawn("drumlin-follow", body)?)
            }
        };
        Ok(Follower { db, shared, thread })
    }
}

impl Follower {
    /// The database, to be read. A clone that outlives the follower stays at the moment it is at then.
    ///
    /// Writes are refused, and so are checkpoints, backups and reads at a [`crate::Snapshot`]: the writer keeps nothing for
    /// a follower. A [`Db::view`] or an iterator holds a moment.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Goes on to a moment after this call began.
    ///
    /// # Errors
    /// `Corruption` naming file and offset, `Io`; `NotFound` where the database was removed; `Busy` where the writer was
    /// faster each time; `Aborted` where the directory has less than what was shown, an older copy for example. Reads go
    /// on at the moment before, and the next call tries again.
    pub fn catch_up(&self) -> Result<Lag> {
        self.shared.catch_up(&self.db)
    }

    /// How far it is.
    pub fn lag(&self) -> Lag {
        let seqno = self.db.latest_seqno();
        let status = self.shared.status.lock();
        Lag {
            seqno,
            age: self.shared.clock.monotonic().saturating_sub(status.as_of),
        }
    }

    /// Why the last try to catch up failed, where it did. While there is such an error, [`Lag::age`] grows.
    pub fn failure(&self) -> Option<Error> {
        let status = self.shared.status.lock();
        status.failure.as_ref().map(Error::duplicate)
    }

    /// Catches up until reads see the sequence number `seqno`, as a write to the writer gave it; false where they do not
    /// within `timeout`.
    ///
    /// # Errors
    /// As [`Follower::catch_up`].
    pub fn wait_for(&self, seqno: SeqNo, timeout: Duration) -> Result<bool> {
        let clock = &self.shared.clock;
        let begun = clock.monotonic();
        loop {
            if self.lag().seqno >= seqno || self.catch_up()?.seqno >= seqno {
                return Ok(true);
            }
            let waited = clock.monotonic().saturating_sub(begun);
            match timeout.checked_sub(waited) {
                None | Some(Duration::ZERO) => return Ok(false),
                Some(left) => clock.sleep(left.min(LOOK_PAUSE)),
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if !self.db.engine.store.id.process.is_present() {
            let _kept = std::mem::ManuallyDrop::new(thread); // A forked child does not have it.
            return;
        }
        self.shared.status.lock().is_ending = true;
        self.shared.ending.notify_all();
        if let Err(error) = thread.join() {
            tracing::error!(%error, "the thread of a follower ended with an error");
        }
    }
}

impl Shared {
    fn catch_up(&self, db: &Db) -> Result<Lag> {
        db.engine.store.id.process.check()?;
        self.go_on()
    }

    fn go_on(&self) -> Result<Lag> {
        let mut following = self.following.lock();
        let as_of = self.clock.monotonic();
        let done = following.catch_up();
        let mut status = self.status.lock();
        match &done {
            Ok(_) => {
                status.as_of = as_of;
                status.failure = None;
            }
            Err(error) => status.failure = Some(error.duplicate()),
        }
        let age = self.clock.monotonic().saturating_sub(as_of);
        done.map(|seqno| Lag { seqno, age })
    }

    /// The life of the thread.
    fn run(&self, interval: Duration) {
        loop {
            let began = self.clock.monotonic();
            let mut status = self.status.lock();
            while !status.is_ending {
                let waited = self.clock.monotonic().saturating_sub(began);
                let Some(left) = interval.checked_sub(waited).filter(|left| !left.is_zero()) else {
                    break;
                };
                status = self.ending.wait_for(status, left);
            }
            if status.is_ending {
                return;
            }
            drop(status);
            if let Err(error) = self.go_on() {
                tracing::warn!(%error, "a follower cannot catch up");
            }
        }
    }
}
