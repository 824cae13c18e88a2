//! WAL files that are kept when no family needs them any more, for those who follow changes, in RocksDB's folder
//! `archive`; with them, the tables that were taken in meanwhile.
//!
//! A file has its new name on disk before it loses the old one, so that a power cut leaves it under one of the two.
//! The oldest go first; what a reader stands in, and all after it, stays.
//!
//! Thread safety: any thread. The lock is a leaf, but for files that are read and removed under it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::{ErrorKind, Result};
use drumlin_fs::Env;

use crate::files::names::{self, FileName};
use crate::version::FileNumbers;
use crate::wal::tail::Front;

/// How long changes are kept after they are in tables. Without either bound they are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepChanges {
    /// At least this long: RocksDB's `WAL_ttl_seconds`. Whole seconds count, rounded up.
    pub age: Option<Duration>,
    /// As long as the archive has no more bytes than this: RocksDB's `WAL_size_limit_MB`, rounded up to whole MiB.
    /// Of the two bounds the one that is met first counts.
    pub bytes: Option<u64>,
}

impl KeepChanges {
    /// Whether anything is kept.
    pub(crate) fn is_on(&self) -> bool {
        self.age.is_some() || self.bytes.is_some()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WalArchive {
    env: Env,
    wal_dir: PathBuf,
    keep: KeepChanges,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Whether the folder was listed.
    is_listed: bool,
    /// By number, with the size of the file.
    wals: BTreeMap<u64, u64>,
    /// Tables: the WAL that tells of them, path and size.
    tables: Vec<(u64, PathBuf, u64)>,
    /// Readers, each with the WAL it stands in.
    pins: BTreeMap<u64, u64>,
    pins_given: u64,
}

impl Kept {
    fn bytes(&self) -> u64 {
        let tables = self.tables.iter().map(|(_, _, bytes)| bytes);
        self.wals.values().chain(tables).sum()
    }
}

impl WalArchive {
    /// The archive of the WAL in `wal_dir`.
    pub(crate) fn new(env: Env, wal_dir: PathBuf, keep: KeepChanges) -> Arc<Self> {
        Arc::new(Self {
            env,
            wal_dir,
            keep,
            kept: Mutex::default(),
        })
    }

    /// Whether changes are kept.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.keep.is_on()
    }

    /// Makes the folder, and has `numbers` give none of a WAL in it to another file.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub(crate) fn make(&self, numbers: &FileNumbers) -> Result<()> {
        let files = &self.env.files;
        files.create_dir_all(&names::archive(&self.wal_dir))?;
        files.sync_dir(&self.wal_dir)?;
        let mut kept = self.kept.lock();
        self.list(&mut kept)?;
        if let Some((&newest, _)) = kept.wals.last_key_value() {
            numbers.mark_used(newest);
        }
        Ok(())
    }

    /// Moves WAL `number` here. Doing it again after an error, or a crash, completes it.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; the file then still has its old name.
    pub(crate) fn take(&self, number: u64) -> Result<()> {
        let files = &self.env.files;
        let old = names::wal(&self.wal_dir, number);
        let new = names::archived_wal(&self.wal_dir, number);
        if !files.exists(&new)? {
            match files.link(&old, &new) {
                // There are no second names; a power cut may then take the file.
                Err(error) if error.kind() == ErrorKind::NotSupported => {
                    files.rename(&old, &new)?
                }
                linked => linked?,
            }
        }
        if !drumlin_base::bug!("archived-name-unsynced") {
            files.sync_dir(&names::archive(&self.wal_dir))?;
        }
        match files.remove(&old) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let bytes = files.info(&new)?.size;
        self.kept.lock().wals.insert(number, bytes);
        Ok(())
    }

    /// Notes that the table of WAL `wal` was put here at `path`.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub(crate) fn note_table(&self, wal: u64, path: PathBuf) -> Result<()> {
        let bytes = self.env.files.info(&path)?.size;
        self.kept.lock().tables.push((wal, path, bytes));
        let dir = names::archive(&self.wal_dir);
        self.env.files.sync_dir(&dir)
    }

    /// Removes what need not be kept any more. `live` has the number of a WAL that is not in the archive and may
    /// tell until when the newest one here was written.
    ///
    /// # Errors
    /// `Io`: the rest goes another time.
    pub(crate) fn purge(&self, live: Option<u64>) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let mut kept = self.kept.lock();
        self.list(&mut kept)?;
        let pinned = kept.pins.values().min().copied().unwrap_or(u64::MAX);
        while let Some((&oldest, _)) = kept.wals.first_key_value() {
            let is_large = self.keep.bytes.is_some_and(|most| kept.bytes() > most);
            if oldest >= pinned && !drumlin_base::bug!("read-change-purged") {
                break;
            }
            if !is_large && !self.is_old(&kept, oldest, live)? {
                break;
            }
            self.remove(&mut kept, oldest)?;
        }
        Ok(())
    }

    fn remove(&self, kept: &mut Kept, wal: u64) -> Result<()> {
        let remove = |path: &Path| match self.env.files.remove(path) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        };
        while let Some(at) = kept.tables.iter().position(|(of, ..)| *of <= wal) {
            remove(&kept.tables[at].1)?;
            kept.tables.swap_remove(at);
        }
        remove(&names::archived_wal(&self.wal_dir, wal))?;
        kept.wals.remove(&wal);
        Ok(())
    }

    /// Whether all in WAL `wal` is older than asked for: the one after it was begun so long ago.
    fn is_old(&self, kept: &Kept, wal: u64, live: Option<u64>) -> Result<bool> {
        let Some(age) = self.keep.age else {
            return Ok(false);
        };
        let age = age.as_secs() + u64::from(age.subsec_nanos() > 0);
        let now = self.env.clock.unix_seconds();
        let later = kept.wals.range(wal + 1..).map(|(number, _)| *number);
        for number in later.chain(live) {
            let paths = [names::archived_wal, names::wal].map(|path| path(&self.wal_dir, number));
            let opened = paths.iter().find_map(|path| self.env.files.open(path).ok());
            let front = opened.map(|file| Front::read(file, number)).transpose()?;
            // One of RocksDB's does not say when it was begun.
            if let Some(began) = front.flatten().and_then(|front| front.began) {
                return Ok(began.saturating_add(age) < now);
            }
        }
        Ok(false)
    }

    fn list(&self, kept: &mut Kept) -> Result<()> {
        if kept.is_listed {
            return Ok(());
        }
        let dir = names::archive(&self.wal_dir);
        for name in self.env.files.list(&dir)? {
            let path = dir.join(&name);
            if let Some(FileName::Wal(number)) = FileName::parse(&name) {
                kept.wals.insert(number, self.env.files.info(&path)?.size);
            } else if let Some(wal) = names::wal_of_archived_table(&name)
                && !kept.tables.iter().any(|(_, known, _)| *known == path)
            {
                let bytes = self.env.files.info(&path)?.size;
                kept.tables.push((wal, path, bytes));
            }
        }
        kept.is_listed = true;
        Ok(())
    }

    /// Keeps WAL files from `wal` on while the pin lives.
    pub(crate) fn pin(self: &Arc<Self>, wal: u64) -> WalPin {
        let mut kept = self.kept.lock();
        kept.pins_given += 1;
        let id = kept.pins_given;
        kept.pins.insert(id, wal);
        WalPin {
            archive: Arc::clone(self),
            id,
        }
    }

    /// The oldest WAL that a reader stands in.
    pub(crate) fn oldest_pin(&self) -> Option<u64> {
        self.kept.lock().pins.values().min().copied()
    }
}

/// The place of a reader: see [`WalArchive::pin`].
#[derive(Debug)]
pub(crate) struct WalPin {
    archive: Arc<WalArchive>,
    id: u64,
}

impl WalPin {
    /// Lets go of WAL files before `wal`.
    pub(crate) fn move_to(&self, wal: u64) {
        self.archive.kept.lock().pins.insert(self.id, wal);
    }
}

impl Drop for WalPin {
    fn drop(&mut self) {
        self.archive.kept.lock().pins.remove(&self.id);
    }
}
