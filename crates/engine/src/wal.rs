//! Which WAL file is live, and which older ones are not yet safe from a power cut.
//!
//! Invariants:
//! - A synced write syncs every older WAL first, so that what survives a power cut is a prefix.
//! - The first record of each WAL after the first names the last WAL before it that holds records,
//!   and its length, so that recovery notices when the end of that one was lost.
//! - After each sync the next record carries how far the WAL is synced; recovery then knows damage
//!   before that point from a torn tail.
//! - A WAL on which anything failed is never written or synced again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::coding::{Reader, put_fixed64};
use drumlin_base::sync::Mutex;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, Env, FileKind, FileSyncer, FileSystem, WritableFile};

use crate::batch::WriteBatch;
use crate::names;
use crate::record::{RecordWriter, SyncedMark};

/// What a record tells recovery, beside its batch, as log data that every reader skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalMark {
    /// This much of a WAL is on disk, and every WAL before it whole.
    Synced(SyncedMark),
    /// The WAL `number` has `bytes` bytes, and the one that says so follows it.
    After { number: u64, bytes: u64 },
}

const AFTER_TAG: &[u8] = b"drumlin.after";

impl WalMark {
    /// The mark as log data.
    pub(crate) fn encode(self) -> Vec<u8> {
        match self {
            Self::Synced(mark) => mark.data(),
            Self::After { number, bytes } => {
                let mut data = AFTER_TAG.to_vec();
                put_fixed64(&mut data, number);
                put_fixed64(&mut data, bytes);
                data
            }
        }
    }

    /// The mark in `log_data`, if it is one.
    pub(crate) fn parse(log_data: &[u8]) -> Option<Self> {
        let Some(rest) = log_data.strip_prefix(AFTER_TAG) else {
            return SyncedMark::parse(log_data).map(Self::Synced);
        };
        let mut rest = Reader::new(rest);
        let mark = Self::After {
            number: rest.fixed64()?,
            bytes: rest.fixed64()?,
        };
        rest.is_empty().then_some(mark)
    }
}

/// WAL files closed for appending whose bytes may not have reached the disk. Shared by the leader
/// and the flushes, which must sync them without the lead (a leader may be waiting for a flush).
#[derive(Debug, Default)]
pub(crate) struct UnsyncedWals {
    files: Mutex<Vec<(u64, Arc<dyn FileSyncer>)>>,
}

impl UnsyncedWals {
    /// Makes them outlive a power cut, oldest first.
    ///
    /// # Errors
    /// `Io`; the database must then be poisoned.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut files = self.files.lock();
        for (_, syncer) in &*files {
            syncer.sync()?;
        }
        files.clear();
        Ok(())
    }

    fn push(&self, number: u64, syncer: Arc<dyn FileSyncer>) {
        self.files.lock().push((number, syncer));
    }

    fn forget_below(&self, number: u64) {
        self.files.lock().retain(|(file, _)| *file >= number);
    }
}

/// Syncs a file that was given up, through a handle of its own.
#[derive(Debug)]
struct NamedFile {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl FileSyncer for NamedFile {
    fn sync(&self) -> Result<()> {
        self.files.sync_file(&self.path)
    }
}

/// The live WAL.
#[derive(Debug)]
pub(crate) struct Wal {
    env: Env,
    dir: PathBuf,
    number: u64,
    writer: Option<RecordWriter>,
    unsynced: Arc<UnsyncedWals>,
    /// Number and length of closed files that may still be needed.
    closed: Vec<(u64, u64)>,
    /// What the next record must tell recovery: which file it follows, and what was synced.
    after: Option<WalMark>,
    synced: Option<WalMark>,
    preallocate_bytes: u64,
    /// Whether files are written as RocksDB does: every fragment carries its log's number, so that a
    /// later file may take the place, and batches carry marks.
    recycles: bool,
}

impl Wal {
    /// A WAL room without a live file; [`Wal::switch`] makes the first.
    pub(crate) fn new(env: Env, dir: PathBuf, preallocate_bytes: u64, recycles: bool) -> Self {
        Self {
            env,
            dir,
            number: 0,
            writer: None,
            unsynced: Arc::default(),
            closed: Vec::new(),
            after: None,
            synced: None,
            preallocate_bytes,
            recycles,
        }
    }

    /// The live file's number; 0 before the first.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes in the live file.
    pub(crate) fn len(&self) -> u64 {
        self.writer.as_ref().map_or(0, RecordWriter::len)
    }

    /// Begins file `number`, recycling `recycled` when there is one; the file before stays unsynced
    /// until the next sync.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; the live file is then unchanged.
    pub(crate) fn switch(&mut self, number: u64, recycled: Option<u64>) -> Result<()> {
        let path = names::wal(&self.dir, number);
        let options = CreateOptions {
            kind: FileKind::Wal,
            preallocate_bytes: self.preallocate_bytes,
        };
        let file = self.begin_file(&path, recycled, options)?;
        self.env.files.sync_dir(&self.dir)?;
        let fresh = match self.recycles {
            true => RecordWriter::recyclable(file, number),
            false => RecordWriter::new(file),
        };
        let before = (self.number, self.len());
        if let (Some(old), false) = (&mut self.writer, self.recycles) {
            old.sync()?; // No mark will tell whether its end was lost.
        }
        if let Some(old) = self.writer.replace(fresh) {
            let syncer = old.syncer();
            self.unsynced.push(before.0, syncer);
            self.closed.push(before);
            old.close()?;
            if before.1 > 0 {
                // Else the next record follows what the empty file would have followed.
                self.after = Some(WalMark::After {
                    number: before.0,
                    bytes: before.1,
                });
            }
        }
        self.number = number;
        Ok(())
    }

    /// The file `path`, made of `recycled` where that can be.
    fn begin_file(
        &self,
        path: &Path,
        recycled: Option<u64>,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        if let Some(old) = recycled {
            let old = names::wal(&self.dir, old);
            match self.env.files.reuse(&old, path, options) {
                Err(error) if error.kind() == ErrorKind::NotSupported => {
                    // A second name shares its bytes, for one in a copy somebody made.
                    self.env.files.remove(&old)?;
                }
                reused => return reused,
            }
        }
        self.env.files.create(path, options)
    }

    /// Whether the next record has something to tell recovery. Never in LevelDB's format, which
    /// has no log data.
    pub(crate) fn has_mark(&self) -> bool {
        self.recycles && (self.after.is_some() || self.synced.is_some())
    }

    /// Adds what recovery must be told to `batch`, which is then the next to be appended.
    pub(crate) fn put_mark(&self, batch: &mut WriteBatch) -> Result<()> {
        let mut marks = self.after.iter().chain(&self.synced);
        marks.try_for_each(|mark| batch.put_log_data(&mark.encode()))
    }

    /// Appends one record, which holds the marks if there are any. When it returns, the record
    /// outlives this process.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; the live file must then be abandoned.
    #[inline]
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer.append(payload)?,
            None => {
                return Err(Error::new(
                    ErrorKind::Poisoned,
                    "there is no WAL to write to",
                ));
            }
        }
        if self.has_mark() {
            (self.after, self.synced) = (None, None);
        }
        Ok(())
    }

    /// Makes everything appended outlive a power cut, older files first.
    ///
    /// # Errors
    /// `Io`; the database must then be poisoned.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.unsynced.sync()?;
        if let Some(writer) = &mut self.writer {
            writer.sync()?;
            let (log_number, bytes) = (self.number, writer.len());
            self.synced = Some(WalMark::Synced(SyncedMark { log_number, bytes }));
        }
        Ok(())
    }

    /// The files before the live one.
    pub(crate) fn unsynced(&self) -> Arc<UnsyncedWals> {
        Arc::clone(&self.unsynced)
    }

    /// Forgets files below `number`: what they hold is in tables.
    pub(crate) fn forget_below(&mut self, number: u64) {
        self.unsynced.forget_below(number);
        self.closed.retain(|(closed, _)| *closed >= number);
    }

    /// Bytes in files that may still be needed.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.len() + self.closed.iter().map(|(_, len)| len).sum::<u64>()
    }

    /// Gives up the live file after a failed append, cutting off what the append left behind so
    /// that recovery finds a clean end.
    ///
    /// # Errors
    /// `Io` when the tail cannot be cut; the database must then be poisoned.
    pub(crate) fn abandon_tail(&mut self, good_len: u64) -> Result<()> {
        let Some(broken) = self.writer.take() else {
            return Ok(());
        };
        drop(broken); // Its handle is not to be trusted again; the file is synced by its name.
        let path = names::wal(&self.dir, self.number);
        self.env.files.truncate(&path, good_len)?;
        let files = Arc::clone(&self.env.files);
        self.unsynced
            .push(self.number, Arc::new(NamedFile { files, path }));
        self.closed.push((self.number, good_len));
        if good_len > 0 {
            self.after = Some(WalMark::After {
                number: self.number,
                bytes: good_len,
            });
        }
        Ok(())
    }

    /// Whether there is a live file.
    pub(crate) fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// Closes the live file, cutting off reserved space.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.writer.take().map_or(Ok(()), RecordWriter::close)
    }
}
