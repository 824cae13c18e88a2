//! Reading the records of all WAL files in their order, those in the archive first, while more are written.
//!
//! A file is left when a later one has a record, for then its own last record was written; and only if nothing lies
//! between the two, which the numbers of their batches show. A file that recovery gave up, because something before it
//! was lost, is passed over: a later one begins with the same number or a lower one.
//!
//! Files may move to the archive while they are read. One thread at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result, SeqNo};
use drumlin_fs::{FileSystem, RandomAccessFile};

use crate::files::names::{self, FileName};
use crate::wal::change::ChangeMark;
use crate::wal::log::WalMark;
use crate::wal::record::{Later, Mended, RecordReader, Verdict};
use crate::write::batch::BatchView;

/// The first record of a WAL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    /// The first sequence number in the file.
    pub(crate) first: SeqNo,
    /// The number that its first batch begins with: after [`Front::first`] where a change comes before it.
    batch: SeqNo,
    /// When the file was begun, in Unix seconds, where it says so.
    pub(crate) began: Option<u64>,
}

impl Front {
    /// The front of WAL `number` in `file`; `None` where it has no record.
    ///
    /// # Errors
    /// `Io`; `Corruption` of a sound record without a sound batch.
    pub(crate) fn read(file: Arc<dyn RandomAccessFile>, number: u64) -> Result<Option<Self>> {
        let mut reader = RecordReader::new(file, number);
        let Some(record) = reader.read()? else {
            return Ok(None);
        };
        let batch = BatchView::new(record.payload)?;
        let change = ChangeMark::of(&batch);
        let began = batch
            .log_data()
            .find_map(|data| match WalMark::parse(data) {
                Some(WalMark::Began { unix_seconds }) => Some(unix_seconds),
                _ => None,
            });
        Ok(Some(Self {
            first: change.map_or(batch.seqno(), |change| change.seqno),
            batch: batch.seqno(),
            began,
        }))
    }
}

/// A record, copied out.
#[derive(Debug)]
pub(crate) struct TailRecord {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) payload: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WalTail {
    files: Arc<dyn FileSystem>,
    wal_dir: PathBuf,
    /// Files below are about to be used again.
    begins_at: u64,
    /// Of files that have a record.
    fronts: BTreeMap<u64, Front>,
    open: Option<OpenWal>,
}

#[derive(Debug)]
struct OpenWal {
    number: u64,
    path: PathBuf,
    reader: RecordReader,
    /// A later file has a record, and this one was read to its end since that was seen.
    is_whole: bool,
    /// Whether its last record was given mended: a second time it would not help either.
    is_mended: bool,
}

impl WalTail {
    /// Of the WAL in `wal_dir`, at no place yet.
    pub(crate) fn new(files: Arc<dyn FileSystem>, wal_dir: &Path) -> Self {
        Self {
            files,
            wal_dir: wal_dir.to_path_buf(),
            begins_at: 0,
            fronts: BTreeMap::new(),
            open: None,
        }
    }

    /// Passes over the files below `wal`, which are about to be used again.
    pub(crate) fn begin_at(&mut self, wal: u64) {
        self.begins_at = wal;
    }

    /// Goes to the front of the file that holds `from`, or would go on with it; its number. `None` where no file
    /// reaches so far back.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub(crate) fn seek(&mut self, from: SeqNo) -> Result<Option<u64>> {
        let files = self.files_from(0)?;
        let holds = files.iter().rev().find(|(_, front)| front.first <= from);
        match holds {
            Some(&(number, _)) => self.go_to(number).map(|()| Some(number)),
            None => Ok(None),
        }
    }

    /// The first sequence number in any file; `None` where there is no record.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub(crate) fn oldest(&mut self) -> Result<Option<SeqNo>> {
        let files = self.files_from(0)?;
        Ok(files.first().map(|(_, front)| front.first))
    }

    /// The number of the file it is in.
    pub(crate) fn wal(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.number)
    }

    /// The next record, when all before `expected` was read; `None` where there is none yet.
    ///
    /// # Errors
    /// `Corruption` naming file and offset where records before a later file are damaged; `NotFound` where they are
    /// in no file; `Io`.
    pub(crate) fn read(&mut self, expected: SeqNo) -> Result<Option<TailRecord>> {
        loop {
            let Some((number, is_whole)) = self.open.as_ref().map(|it| (it.number, it.is_whole))
            else {
                return Ok(None);
            };
            if let Some(record) = self.read_here()? {
                return Ok(Some(record));
            }
            if !is_whole {
                self.look_again(false)?;
                if let Some(record) = self.read_here()? {
                    return Ok(Some(record));
                }
            }
            match self.files_from(number + 1)?.first().copied() {
                None => return Ok(None),
                // Records may have come between the last look at this file and the one at the next.
                Some(_) if !is_whole => self.look_again(true)?,
                Some((next, front)) if front.first <= expected => self.go_to(next)?,
                Some((_, front)) => return self.judge_gap(expected, front.first).map(Some),
            }
        }
    }

    /// The next record of the present file, as far as it is known.
    fn read_here(&mut self) -> Result<Option<TailRecord>> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let record = match open.reader.read() {
            Err(error) => return Err(error.with_file(&open.path)),
            Ok(record) => record,
        };
        Ok(record.map(|record| TailRecord {
            path: open.path.clone(),
            offset: record.offset,
            payload: record.payload.to_vec(),
        }))
    }

    fn look_again(&mut self, is_whole: bool) -> Result<()> {
        if let Some(open) = &mut self.open {
            // One that was purged since has all that it ever will.
            if let Some((_, file)) = open_wal(&*self.files, &self.wal_dir, open.number)? {
                open.reader.look_again(file);
            }
            open.is_whole = is_whole;
        }
        Ok(())
    }

    fn go_to(&mut self, number: u64) -> Result<()> {
        let Some((path, file)) = open_wal(&*self.files, &self.wal_dir, number)? else {
            let message = "the WAL was removed while changes were read from it";
            let path = names::wal(&self.wal_dir, number);
            return Err(Error::new(ErrorKind::NotFound, message).with_file(&path));
        };
        self.open = Some(OpenWal {
            number,
            path,
            reader: RecordReader::new(file, number),
            is_whole: false,
            is_mended: false,
        });
        self.fronts = self.fronts.split_off(&number);
        Ok(())
    }

    /// The files from `number` on that have records, ascending, but for those that were given up.
    fn files_from(&mut self, number: u64) -> Result<Vec<(u64, Front)>> {
        let mut found = Vec::new();
        let mut least = SeqNo::MAX;
        let wals = list_wals(&*self.files, &self.wal_dir)?;
        let least_number = number.max(self.begins_at);
        for number in wals.into_iter().rev().take_while(|it| *it >= least_number) {
            let Some(front) = self.front(number)? else {
                continue;
            };
            if front.first < least || drumlin_base::bug!("given-up-wal-told-as-changes") {
                found.push((number, front));
            }
            least = least.min(front.batch);
        }
        found.reverse();
        Ok(found)
    }

    fn front(&mut self, number: u64) -> Result<Option<Front>> {
        if let Some(front) = self.fronts.get(&number) {
            return Ok(Some(*front));
        }
        let Some((path, file)) = open_wal(&*self.files, &self.wal_dir, number)? else {
            return Ok(None);
        };
        let front = Front::read(file, number).map_err(|error| error.with_file(&path))?;
        self.fronts.extend(front.map(|front| (number, front)));
        Ok(front)
    }

    /// The record at the end of the present file that recovery mended, or why numbers from `expected` up to `next` are
    /// not to be had.
    fn judge_gap(&mut self, expected: SeqNo, next: SeqNo) -> Result<TailRecord> {
        let Some(open) = &mut self.open else {
            return Err(gap(expected, next));
        };
        let named = |error: Error| error.with_file(&open.path);
        let Some(end) = open.reader.end() else {
            return Err(named(gap(expected, next)));
        };
        match open.reader.judge(Later::Marks).map_err(named)? {
            Verdict::Corrupt {
                mended: Some(mended),
                ..
            } if !open.is_mended && fits(&mended, expected) => {
                open.is_mended = true;
                Ok(TailRecord {
                    path: open.path.clone(),
                    offset: mended.offset,
                    payload: mended.payload,
                })
            }
            Verdict::Corrupt { offset, reason, .. } => {
                let message = format!("changes from {expected} on cannot be read: {reason}");
                Err(named(Error::corruption(message).with_offset(offset)))
            }
            Verdict::Torn { offset, reason, .. } => {
                let message = format!(
                    "changes from {expected} on cannot be read: {reason}; those from {next} on can"
                );
                Err(named(Error::corruption(message).with_offset(offset)))
            }
            Verdict::Clean => Err(named(gap(expected, next).with_offset(end.offset))),
        }
    }
}

/// Whether `mended` is the record that comes next.
fn fits(mended: &Mended, expected: SeqNo) -> bool {
    BatchView::new(&mended.payload).is_ok_and(|batch| batch.seqno() == expected)
}

/// Changes that no WAL has.
pub(crate) fn gap(expected: SeqNo, next: SeqNo) -> Error {
    let message = format!(
        "changes {expected} to {} are in no WAL: they were written without it, or while changes were not \
         kept; those from {next} on are there",
        next - 1
    );
    Error::new(ErrorKind::NotFound, message)
}

/// The numbers of the WAL files of `wal_dir` and its archive, ascending.
///
/// # Errors
/// `Io`.
fn list_wals(files: &dyn FileSystem, wal_dir: &Path) -> Result<Vec<u64>> {
    let mut wals = Vec::new();
    // In this order: files go from the first to the second.
    for dir in [wal_dir, &names::archive(wal_dir)] {
        let listing = match files.list(dir) {
            Err(error) if error.is_not_found() => Vec::new(),
            listing => listing?,
        };
        wals.extend(
            listing
                .iter()
                .filter_map(|name| match FileName::parse(name) {
                    Some(FileName::Wal(number)) => Some(number),
                    _ => None,
                }),
        );
    }
    wals.sort_unstable();
    wals.dedup();
    Ok(wals)
}

/// The WAL `number`, where it is now; `None` where it is gone.
fn open_wal(
    files: &dyn FileSystem,
    wal_dir: &Path,
    number: u64,
) -> Result<Option<(PathBuf, Arc<dyn RandomAccessFile>)>> {
    for path in [
        names::wal(wal_dir, number),
        names::archived_wal(wal_dir, number),
    ] {
        match files.open(&path) {
            Err(error) if error.is_not_found() => {}
            opened => return opened.map(|file| Some((path, file))),
        }
    }
    Ok(None)
}
