//! The file system of a run, and the clock beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin::{Env, Options};
use drumlin_fs::{Clock, CrashPolicy, FileSystem, StrictMemFileSystem};
use drumlin_testkit::{TempDir, memory_dir, temp_dir};

use crate::choice::{Choice, Place};

/// A clock that runs as the system's does, but skips sleeps and jumps on request.
#[derive(Debug)]
struct JumpingClock {
    below: Arc<dyn Clock>,
    ahead_nanos: AtomicU64,
}

impl JumpingClock {
    fn ahead(&self) -> Duration {
        Duration::from_nanos(self.ahead_nanos.load(Ordering::Relaxed))
    }

    fn jump(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.ahead_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for JumpingClock {
    fn monotonic(&self) -> Duration {
        self.below.monotonic() + self.ahead()
    }

    fn unix_time(&self) -> Duration {
        self.below.unix_time() + self.ahead()
    }

    fn sleep(&self, duration: Duration) {
        // Other threads get a moment all the same: the sleeper may be waiting for them.
        self.below.sleep(Duration::from_micros(5).min(duration));
        self.jump(duration);
    }
}

enum Files {
    Memory(StrictMemFileSystem),
    Real(TempDir),
}

/// See the module.
pub(super) struct Disk {
    files: Files,
    clock: Arc<JumpingClock>,
    seed: u64,
    /// Copies and external tables made so far: each gets a name of its own.
    made: u32,
}

impl Disk {
    pub(super) fn new(place: Place, seed: u64) -> Self {
        let files = match place {
            Place::Strict => Files::Memory(StrictMemFileSystem::new()),
            Place::Tmpfs => Files::Real(memory_dir()),
            Place::Disk => Files::Real(temp_dir()),
        };
        let clock = JumpingClock {
            below: Env::system().clock,
            ahead_nanos: AtomicU64::new(0),
        };
        Self {
            files,
            clock: Arc::new(clock),
            seed,
            made: 0,
        }
    }

    fn root(&self) -> &Path {
        match &self.files {
            Files::Memory(_) => Path::new("/"),
            Files::Real(dir) => dir.path(),
        }
    }

    /// Where the database is.
    pub(super) fn dir(&self) -> PathBuf {
        self.root().join("db")
    }

    /// An unused path beside it.
    pub(super) fn fresh(&mut self, stem: &str) -> PathBuf {
        self.made += 1;
        self.root().join(format!("{stem}{}", self.made))
    }

    pub(super) fn file_system(&self) -> Arc<dyn FileSystem> {
        match &self.files {
            Files::Memory(files) => Arc::new(files.clone()),
            Files::Real(_) => Env::system().files,
        }
    }

    /// The options of `choice` on this disk.
    pub(super) fn options(&self, choice: &Choice) -> Options {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let env = Env::system().with_files(self.file_system());
        Options {
            env: env.with_clock(clock).with_seed(self.seed),
            wal_dir: choice.wal_apart.then(|| self.root().join("wal")),
            ..choice.options.clone()
        }
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.clock.jump(Duration::from_secs(seconds));
    }

    /// Cuts the power, if the disk allows it, and returns whether it did.
    pub(super) fn crash(&mut self, seed: u64) -> bool {
        let Files::Memory(files) = &self.files else {
            return false;
        };
        let policies = CrashPolicy::ALL;
        let policy = policies[(seed % policies.len() as u64) as usize];
        let after = files.crash(seed, policy);
        self.files = Files::Memory(after);
        true
    }

    /// Removes `dir`, which holds only files.
    pub(super) fn remove(&self, dir: &Path) -> drumlin::Result<()> {
        let files = self.file_system();
        for name in files.list(dir)? {
            let path = dir.join(name);
            match files.info(&path)?.is_dir {
                true => self.remove(&path)?, // `lost`, of a repair.
                false => files.remove(&path)?,
            }
        }
        files.remove_dir(dir)
    }
}
