//! The live WAL file, and the older ones that are not yet safe from a power cut.
//!
//! Invariants:
//! - A synced write syncs every older WAL first, so that a prefix survives a power cut.
//! - The first record of each WAL after the first names the last WAL before it that holds records,
//!   and its length, so that recovery notices when the end of that one was lost.
//! - After each sync the next record carries how far the WAL is synced; recovery then knows damage
//!   before that point from a torn tail.
//! - A WAL on which anything failed is never written or synced again.

use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::coding::{Reader, put_fixed64};
use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, Ordering};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{Env, FileSyncer, FileSystem};

use crate::files::names;
use crate::wal::preallocator::{FreshWal, WalPreallocator};
use crate::wal::record::{RecordWriter, SyncedMark};
use crate::write::batch::WriteBatch;

/// A record's message to recovery, beside its batch, as log data that every reader skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalMark {
    /// This much of a WAL is on disk, and every WAL before it whole.
    Synced(SyncedMark),
    /// The WAL `number` has `bytes` bytes, and the one that says so follows it.
    After { number: u64, bytes: u64 },
    /// A recovery began this WAL with what it found in those from `from` on. Until the MANIFEST says that no older one is
    /// needed it has nothing that they have not.
    Again { from: u64 },
    /// When the WAL began, in Unix seconds. Only where changes are kept.
    Began { unix_seconds: u64 },
}

/// Reserved space is kept in at most this many files that are not live. There are more of them where families are
/// flushed one by one, and those hold little.
const WHOLE_MAX: usize = 4;
/// Fewest bytes between two checks of the size of all WAL files.
const SIZE_CHECK_BYTES: u64 = 64 << 10;

const AFTER_TAG: &[u8] = b"drumlin.after";
const BEGAN_TAG: &[u8] = b"drumlin.began";
const AGAIN_TAG: &[u8] = b"drumlin.again";

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
            Self::Again { from } => {
                let mut data = AGAIN_TAG.to_vec();
                put_fixed64(&mut data, from);
                data
            }
            Self::Began { unix_seconds } => {
                let mut data = BEGAN_TAG.to_vec();
                put_fixed64(&mut data, unix_seconds);
                data
            }
        }
    }

    /// The mark in `log_data`, if it is one.
    pub(crate) fn parse(log_data: &[u8]) -> Option<Self> {
        if let Some(rest) = log_data.strip_prefix(BEGAN_TAG) {
            let mut rest = Reader::new(rest);
            let unix_seconds = rest.fixed64()?;
            return rest.is_empty().then_some(Self::Began { unix_seconds });
        }
        if let Some(rest) = log_data.strip_prefix(AGAIN_TAG) {
            let mut rest = Reader::new(rest);
            let from = rest.fixed64()?;
            return rest.is_empty().then_some(Self::Again { from });
        }
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

/// WAL files closed for appending whose bytes may not have reached the disk. Syncs and flushes share it: a flush
/// must sync them without the lead, because the thread with the lead may be waiting for the flush.
#[derive(Debug, Default)]
pub(crate) struct UnsyncedWals {
    /// Held for a moment only: a writer that begins a new WAL adds to it.
    files: Mutex<Vec<(u64, Arc<dyn FileSyncer>)>>,
    /// Whether a sync of them ever failed. Held while they are synced.
    has_failed: Mutex<bool>,
    /// How far the last sync went, until a record carries it.
    synced_mark: Mutex<Option<SyncedMark>>,
    has_synced_mark: AtomicBool,
}

impl UnsyncedWals {
    /// Makes them outlive a power cut, oldest first.
    ///
    /// # Errors
    /// `Io`; the database must then be poisoned.
    pub(crate) fn sync(&self) -> Result<()> {
        // Also for those who find nothing to do: the records they follow are safe only when this is over.
        let mut has_failed = self.has_failed.lock();
        if *has_failed {
            let message = "an earlier sync of the WAL failed";
            return Err(Error::new(ErrorKind::Poisoned, message));
        }
        let files = self.files.lock().clone();
        for (number, syncer) in files {
            syncer.sync().inspect_err(|_| *has_failed = true)?;
            self.files.lock().retain(|(file, _)| *file != number);
        }
        Ok(())
    }

    /// Keeps `mark` for the next record.
    fn set_synced_mark(&self, mark: SyncedMark) {
        *self.synced_mark.lock() = Some(mark);
        self.has_synced_mark.store(true, Ordering::Release);
    }

    fn take_synced_mark(&self) -> Option<SyncedMark> {
        if !self.has_synced_mark() {
            return None;
        }
        self.has_synced_mark.store(false, Ordering::Relaxed);
        self.synced_mark.lock().take()
    }

    #[inline]
    fn has_synced_mark(&self) -> bool {
        // Acquire pairs with the release in `set_synced_mark`; the lock orders the rest.
        self.has_synced_mark.load(Ordering::Acquire)
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
        match self.files.sync_file(&self.path) {
            // It was removed or recycled: its records are in tables.
            Err(error) if error.is_not_found() && !drumlin_base::bug!("removed-wal-poisons") => {
                Ok(())
            }
            synced => synced,
        }
    }
}

/// A sync that makes the WAL up to a moment outlive a power cut, while others go on appending.
#[derive(Debug)]
pub(crate) struct WalSync {
    unsynced: Arc<UnsyncedWals>,
    /// The live file; `None` where it was given up after a failed append.
    live: Option<Arc<dyn FileSyncer>>,
    covers: SyncedMark,
}

impl WalSync {
    /// The end of what this syncs. It ascends in the order of the log, also over records without a sequence number.
    pub(crate) fn covers(&self) -> SyncedMark {
        self.covers
    }

    /// Syncs every older WAL, then the one that was live.
    ///
    /// # Errors
    /// `Io`; the database must then be poisoned.
    pub(crate) fn run(&self) -> Result<()> {
        if !drumlin_base::bug!("older-wals-unsynced") {
            self.unsynced.sync()?;
        }
        if let Some(live) = &self.live {
            if !drumlin_base::bug!("wal-sync-skipped") {
                live.sync()?;
            }
            self.unsynced.set_synced_mark(self.covers);
        }
        Ok(())
    }
}

/// The framing of WAL files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalFormat {
    /// Every fragment carries its log's number, so that a later WAL may take the file's place, and batches carry marks
    /// for recovery.
    RocksDb,
    /// Neither, as LevelDB reads neither. A file is synced before the next begins.
    LevelDb,
}

/// The live WAL.
#[derive(Debug)]
pub(crate) struct Wal {
    env: Env,
    dir: PathBuf,
    number: u64,
    writer: Option<RecordWriter>,
    /// Syncs the file of `writer`.
    syncer: Option<Arc<dyn FileSyncer>>,
    unsynced: Arc<UnsyncedWals>,
    /// Number and length of closed files that may still be needed.
    closed: Vec<(u64, u64)>,
    /// Marks for the next record, read by recovery: which file it follows, and how far it was synced.
    after: Option<WalMark>,
    synced: Option<WalMark>,
    began: Option<WalMark>,
    preallocator: Arc<WalPreallocator>,
    /// The live length past which the preallocator is asked for more.
    request_at: u64,
    /// The live length past which the size of all WAL files is checked.
    size_check_at: u64,
    /// Whether the last group asked for a sync.
    synced_writes: bool,
    format: WalFormat,
    /// Whether files are kept when nothing needs them any more, for those who follow changes.
    keeps: bool,
}

impl Wal {
    /// No live file yet; [`Wal::switch`] begins the first.
    pub(crate) fn new(
        env: Env,
        dir: PathBuf,
        preallocator: Arc<WalPreallocator>,
        format: WalFormat,
    ) -> Self {
        Self {
            env,
            dir,
            number: 0,
            writer: None,
            syncer: None,
            unsynced: Arc::default(),
            closed: Vec::new(),
            after: None,
            synced: None,
            began: None,
            preallocator,
            request_at: u64::MAX,
            size_check_at: 0,
            synced_writes: false,
            format,
            keeps: false,
        }
    }

    /// Has files made so that they can be kept: they say when they began, and have no reserved space once they are full.
    pub(crate) fn keep_files(&mut self) {
        self.keeps = true;
    }

    /// The live file's number; 0 before the first.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes in the live file.
    pub(crate) fn len(&self) -> u64 {
        self.writer.as_ref().map_or(0, RecordWriter::len)
    }

    /// Goes on in `fresh`; the file before stays unsynced until the next sync. Waits for no disk,
    /// but in LevelDB's format.
    ///
    /// # Errors
    /// `Io`; the live file is then unchanged.
    pub(crate) fn switch(&mut self, fresh: FreshWal) -> Result<()> {
        let FreshWal { number, file } = fresh;
        assert!(number > self.number, "numbers of WAL files ascend");
        let fresh = match self.format {
            WalFormat::RocksDb => RecordWriter::recyclable(file, number),
            WalFormat::LevelDb => RecordWriter::new(file),
        };
        let before = (self.number, self.len());
        if let (Some(old), WalFormat::LevelDb) = (&mut self.writer, self.format) {
            old.sync()?; // No mark will show whether its end was lost.
        }
        let syncer = self.syncer.replace(fresh.syncer());
        if let (Some(old), Some(syncer)) = (self.writer.replace(fresh), syncer) {
            self.unsynced.push(before.0, Arc::clone(&syncer));
            self.closed.push(before);
            let is_reused = self.format == WalFormat::RocksDb && !self.keeps;
            match is_reused && self.closed.len() <= WHOLE_MAX {
                // Its unused end is not cut off: the file's next use may need the space.
                true => drop(old),
                false => old.close()?,
            }
            self.preallocator.retire(syncer);
            if before.1 > 0 {
                // Else the next record follows what the empty file would have followed.
                self.after = Some(WalMark::After {
                    number: before.0,
                    bytes: before.1,
                });
            }
        }
        self.number = number;
        self.began = self.keeps.then(|| WalMark::Began {
            unix_seconds: self.env.clock.unix_seconds(),
        });
        self.request_at = self.preallocator.step_bytes();
        self.size_check_at = self.preallocator.preallocate_bytes().max(SIZE_CHECK_BYTES);
        Ok(())
    }

    /// Whether the live file has grown so much since the last time that the size of all WAL files should be checked.
    #[inline]
    pub(crate) fn is_size_check_due(&mut self) -> bool {
        let is_due = self.len() >= self.size_check_at;
        if is_due {
            self.size_check_at =
                self.len() + self.preallocator.preallocate_bytes().max(SIZE_CHECK_BYTES);
        }
        is_due
    }

    /// Whether the next record carries a mark for recovery. Never in LevelDB's format, which
    /// has no log data.
    pub(crate) fn has_mark(&self) -> bool {
        self.format == WalFormat::RocksDb
            && (self.after.is_some() || self.began.is_some() || self.unsynced.has_synced_mark())
    }

    /// Adds the marks for recovery to `batch`, which is then the next to be appended.
    pub(crate) fn put_mark(&mut self, batch: &mut WriteBatch) -> Result<()> {
        if self.format == WalFormat::LevelDb {
            return Ok(());
        }
        if let Some(mark) = self.unsynced.take_synced_mark() {
            self.synced = Some(WalMark::Synced(mark));
        }
        let mut marks = self.after.iter().chain(&self.synced).chain(&self.began);
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
            None => return Err(no_live_file()),
        }
        (self.after, self.synced, self.began) = (None, None, None);
        if self.len() >= self.request_at {
            self.request_ahead();
        }
        Ok(())
    }

    #[cold]
    fn request_ahead(&mut self) {
        self.request_at = self.len() + self.preallocator.step_bytes();
        if let (Some(live), WalFormat::RocksDb) = (&self.syncer, self.format) {
            self.preallocator
                .request(live, self.len(), self.synced_writes);
        }
    }

    /// Notes whether the next record will be synced.
    pub(crate) fn note_synced(&mut self, synced: bool) {
        self.synced_writes = synced;
    }

    /// A sync that makes everything appended up to now outlive a power cut.
    pub(crate) fn sync_handle(&self) -> WalSync {
        WalSync {
            unsynced: Arc::clone(&self.unsynced),
            live: self.syncer.clone(),
            covers: SyncedMark {
                log_number: self.number,
                bytes: self.len(),
            },
        }
    }

    /// The files before the live one.
    pub(crate) fn unsynced(&self) -> Arc<UnsyncedWals> {
        Arc::clone(&self.unsynced)
    }

    /// Forgets files below `number`: their records are in tables.
    pub(crate) fn forget_below(&mut self, number: u64) {
        self.unsynced.forget_below(number);
        self.closed.retain(|(closed, _)| *closed >= number);
    }

    /// Bytes of WAL `number`, live or closed.
    pub(crate) fn len_of(&self, number: u64) -> Option<u64> {
        if number == self.number
            && (self.is_open() || drumlin_base::bug!("given-up-wal-has-no-length"))
        {
            return Some(self.len());
        }
        let closed = self.closed.iter().find(|(closed, _)| *closed == number);
        closed.map(|(_, len)| *len)
    }

    /// Bytes in files that may still be needed, from file `number` on.
    pub(crate) fn live_bytes_from(&self, number: u64) -> u64 {
        let closed = self.closed.iter();
        let closed = closed.filter(|(closed, _)| *closed >= number);
        self.len() + closed.map(|(_, len)| len).sum::<u64>()
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
        self.syncer = None;
        drop(broken); // Its handle can no longer be trusted; the file is synced by its name.
        let path = names::wal(&self.dir, self.number);
        if !drumlin_base::bug!("torn-tail-kept") {
            self.env.files.truncate(&path, good_len)?;
        }
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

    /// Has the next record, the first of this WAL, say that a recovery begins it with what is in those from `from` on.
    ///
    /// Requires: a record is logged before the MANIFEST says that no older WAL is needed.
    pub(crate) fn begin_again(&mut self, from: u64) {
        debug_assert!(self.len() == 0, "it is the first record that says so");
        if !drumlin_base::bug!("half-recovery-taken-for-a-wal") {
            self.after = Some(WalMark::Again { from });
        }
    }

    /// Whether there is a live file.
    pub(crate) fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// Closes the live file, cutting off reserved space, its own and that of files before it that
    /// are still needed.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.syncer = None;
        let mut outcome = self.writer.take().map_or(Ok(()), RecordWriter::close);
        for (number, len) in self
            .closed
            .drain(..)
            .filter(|_| self.format == WalFormat::RocksDb)
        {
            match self.env.files.truncate(&names::wal(&self.dir, number), len) {
                Err(error) if !error.is_not_found() => outcome = outcome.and(Err(error)),
                _ => {}
            }
        }
        outcome
    }
}

fn no_live_file() -> Error {
    Error::new(ErrorKind::Poisoned, "there is no WAL to write to")
}
