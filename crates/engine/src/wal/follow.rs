//! Reading on in the WAL files of a writer elsewhere, each from where it was left.
//!
//! A file is read to its end when a later one had a record before it was looked at; what is behind one that is not is left
//! to the next time. Whether all files that were needed
//! were there, and still what they were, shows in the MANIFEST: whoever calls looks at it before and after.
//!
//! What cannot be told from this place alone (damage, a gap, numbers that go back) is [`Reading::Diverged`]: opening
//! anew judges it. One thread at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::{Error, Result, SeqNo};
use drumlin_fs::FileSystem;

use crate::files::names::{self, FileName};
use crate::version::RecoveredInfo;
use crate::wal::change::ChangeMark;
use crate::wal::log::WalMark;
use crate::wal::record::{End, EndReason, Later, RecordReader};
use crate::wal::replay::begins_with_own;
use crate::write::batch::BatchView;

/// How often an unreadable record at the end of the live file is looked at until it is judged.
const LOOKS_MAX: u32 = 64;

/// Bytes of records after which reading pauses, so that what was read can be shown: a writer may be as fast as this.
const PART_BYTES: usize = 1 << 20;

/// What reading on came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// All that was there was read.
    Whole,
    /// There is more.
    Part,
    /// A record is of a time after the MANIFEST that the reader knows.
    Early,
    /// What was read does not go on as it should.
    Diverged(&'static str),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WalFollow {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    wals: BTreeMap<u64, FollowedWal>,
    /// How many bytes of each the opening has read; it has judged the ends of all but the last.
    replayed: BTreeMap<u64, u64>,
    /// Of the last write that was read.
    last_write: SeqNo,
    /// Of the last write or change.
    last_seqno: SeqNo,
    /// An error came while a record was applied, of which a part may have been.
    is_broken: bool,
}

#[derive(Debug)]
struct FollowedWal {
    reader: RecordReader,
    /// What begins before was read by the opening.
    read_to: u64,
    /// A record that was too early.
    held_back: Option<(u64, Vec<u8>)>,
    /// Nothing comes behind its end.
    is_whole: bool,
    /// The opening has judged its end.
    is_judged: bool,
    /// Looks in a row that ended at one and the same record that is not whole.
    unreadable: (u32, Option<End>),
}

impl WalFollow {
    /// Of the WAL files in `dir`, of which an opening has read `replayed` (numbers, ascending, with bytes) and seen
    /// sequence numbers up to `last_seqno`.
    pub(crate) fn new(
        files: Arc<dyn FileSystem>,
        dir: PathBuf,
        replayed: &[(u64, u64)],
        last_seqno: SeqNo,
    ) -> Self {
        Self {
            files,
            dir,
            wals: BTreeMap::new(),
            replayed: replayed.iter().copied().collect(),
            last_write: 0,
            last_seqno,
            is_broken: false,
        }
    }

    /// The last sequence number that was read.
    pub(crate) fn last_seqno(&self) -> SeqNo {
        self.last_seqno
    }

    /// Reads on in the files that `needed` names, and gives each batch with the number of its WAL to `apply`: it says how
    /// many sequence numbers it took, or nothing of a batch that it did not take because it is too early.
    ///
    /// # Errors
    /// `NotFound` of a file that went; `Corruption` with file and offset; `Io`; those of `apply`.
    pub(crate) fn read_on(
        &mut self,
        needed: &RecoveredInfo,
        mut apply: impl FnMut(u64, &BatchView<'_>) -> Result<Option<u64>>,
    ) -> Result<Reading> {
        if self.is_broken {
            return Ok(Reading::Diverged("a record could not be applied"));
        }
        let wals = self.list(needed)?;
        self.wals.retain(|number, _| wals.contains(number));
        for (at, &number) in wals.iter().enumerate() {
            if self.wals.get(&number).is_some_and(|wal| wal.is_whole) {
                continue;
            }
            let mut is_last = true;
            for &later in wals.get(at + 1..).unwrap_or_default() {
                if self.has_begun(later)? {
                    is_last = false;
                    break;
                }
            }
            let path = names::wal(&self.dir, number);
            let reading = self
                .read_one(number, is_last, &mut apply)
                .map_err(|error| error.with_file(&path))?;
            // What begins from now on is of a later time than the end of this one.
            if reading != Reading::Whole || is_last {
                return Ok(reading);
            }
        }
        Ok(Reading::Whole)
    }

    /// The numbers of the files that `needed` names and that are there, ascending.
    fn list(&self, needed: &RecoveredInfo) -> Result<Vec<u64>> {
        let from = needed.min_log_number.min(needed.sections_from);
        let names = self.files.list(&self.dir)?;
        let mut wals: Vec<u64> = names
            .iter()
            .filter_map(|name| match FileName::parse(name) {
                Some(FileName::Wal(number)) => Some(number),
                _ => None,
            })
            .filter(|&number| number >= from || number == needed.prev_log_number)
            .collect();
        wals.sort_unstable();
        Ok(wals)
    }

    fn has_begun(&self, number: u64) -> Result<bool> {
        if let Some(wal) = self.wals.get(&number)
            && wal.end_offset() > 0
        {
            return Ok(true);
        }
        begins_with_own(self.files.open(&names::wal(&self.dir, number))?, number)
    }

    fn read_one(
        &mut self,
        number: u64,
        is_last: bool,
        apply: &mut impl FnMut(u64, &BatchView<'_>) -> Result<Option<u64>>,
    ) -> Result<Reading> {
        let file = self.files.open(&names::wal(&self.dir, number))?;
        let mut wal = match self.wals.remove(&number) {
            None => self.begin(number, RecordReader::new(file, number)),
            Some(mut wal) => {
                wal.reader.look_again(file);
                wal
            }
        };
        let reading = self.read_records(number, &mut wal, apply);
        self.is_broken = reading.is_err();
        if let Ok(Reading::Whole) = reading {
            wal.is_whole = !is_last;
            if is_last {
                wal.judge_unreadable()?;
            }
        }
        self.wals.insert(number, wal);
        reading
    }

    /// The WAL `number` at its front, of which the opening may have read some.
    fn begin(&self, number: u64, reader: RecordReader) -> FollowedWal {
        let read_to = self.replayed.get(&number).copied();
        let is_last = self.replayed.last_key_value().map(|(last, _)| *last) == Some(number);
        FollowedWal {
            reader,
            read_to: read_to.unwrap_or(0),
            held_back: None,
            is_whole: false,
            is_judged: read_to.is_some() && !is_last,
            unreadable: (0, None),
        }
    }

    fn read_records(
        &mut self,
        number: u64,
        wal: &mut FollowedWal,
        apply: &mut impl FnMut(u64, &BatchView<'_>) -> Result<Option<u64>>,
    ) -> Result<Reading> {
        let mut bytes = 0;
        while let Some((offset, payload)) = wal.next()? {
            let named = |error: Error| error.with_offset(offset);
            let batch = BatchView::new(&payload).map_err(named)?;
            let change = ChangeMark::of(&batch).map_or(0, |change| change.last());
            if offset < wal.read_to {
                // How many numbers it took is not known here: those after it are higher than the one before it.
                self.last_write = self.last_write.max(batch.seqno().saturating_sub(1));
                continue;
            }
            if offset == 0
                && let Some(reason) = self.gap_before(number, &batch)
            {
                return Ok(Reading::Diverged(reason));
            }
            if batch.count() > 0 && batch.seqno() <= self.last_write {
                return Ok(Reading::Diverged("sequence numbers go back"));
            }
            let Some(taken) = apply(number, &batch).map_err(named)? else {
                wal.held_back = Some((offset, payload));
                return Ok(Reading::Early);
            };
            self.note(&batch, taken, change);
            bytes += payload.len();
            if bytes >= PART_BYTES {
                return Ok(Reading::Part);
            }
        }
        Ok(Reading::Whole)
    }

    /// Counts `batch`, which took `taken` sequence numbers and tells of changes up to `change`.
    fn note(&mut self, batch: &BatchView<'_>, taken: u64, change: SeqNo) {
        if taken > 0 {
            self.last_write = self.last_write.max(batch.seqno() + taken - 1);
        }
        self.last_seqno = self.last_seqno.max(self.last_write).max(change);
    }

    /// Why the WAL `number`, which begins with `first`, does not follow those before it.
    fn gap_before(&self, number: u64, first: &BatchView<'_>) -> Option<&'static str> {
        let after = first
            .log_data()
            .find_map(|data| match WalMark::parse(data) {
                Some(WalMark::After { number, bytes }) => Some((number, bytes)),
                _ => None,
            });
        if let Some((before, bytes)) = after {
            let before = self.wals.get(&before);
            let is_short = |wal: &FollowedWal| !wal.is_judged && wal.end_offset() < bytes;
            return before
                .is_some_and(is_short)
                .then_some("the end of a WAL cannot be read");
        }
        let before = self.wals.range(..number).next_back();
        let is_torn = |wal: &FollowedWal| !wal.is_judged && wal.is_torn();
        (before.is_some_and(|(_, wal)| is_torn(wal)) && first.seqno() != self.last_seqno + 1)
            .then_some("the end of a WAL cannot be read, and the next one does not go on there")
    }
}

impl FollowedWal {
    /// The next record, copied out, with its offset.
    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        if let Some(record) = self.held_back.take() {
            return Ok(Some(record));
        }
        let record = self.reader.read()?;
        Ok(record.map(|record| (record.offset, record.payload.to_vec())))
    }

    fn end_offset(&self) -> u64 {
        self.reader.end().map_or(0, |end| end.offset)
    }

    fn is_torn(&self) -> bool {
        let end = self.reader.end();
        end.is_some_and(|end| matches!(end.reason, EndReason::Bad(_)))
    }

    /// A record that is being written is whole soon; what stays as it is may be damage.
    fn judge_unreadable(&mut self) -> Result<()> {
        let end = self.reader.end().filter(|_| self.is_torn());
        self.unreadable = match end.is_some() && end == self.unreadable.1 {
            true => (self.unreadable.0 + 1, end),
            false => (0, end),
        };
        match self.unreadable.0 == LOOKS_MAX {
            false => Ok(()),
            true => self
                .reader
                .judge(Later::Marks)?
                .refuse_corruption()
                .map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use drumlin_fs::{CreateOptions, FileKind, StrictMemFileSystem};

    use super::*;
    use crate::wal::record::{RecordWriter, Verdict};
    use crate::write::batch::WriteBatch;

    const DIR: &str = "/db";

    /// Appends writes of some KiB that take the sequence numbers `seqnos`.
    fn write(writer: &mut RecordWriter, seqnos: std::ops::RangeInclusive<SeqNo>) {
        for seqno in seqnos {
            let mut batch = WriteBatch::new();
            batch.put(&seqno.to_be_bytes(), &[7; 3 << 10]).unwrap();
            batch.set_seqno(seqno);
            writer.append(batch.bytes()).unwrap();
        }
    }

    #[test]
    fn what_is_written_while_reading_pauses_is_read_before_the_next_file() {
        let files: Arc<dyn FileSystem> = Arc::new(StrictMemFileSystem::new());
        files.create_dir_all(Path::new(DIR)).unwrap();
        let create = |number| {
            let path = names::wal(Path::new(DIR), number);
            let file = files
                .create(&path, CreateOptions::new(FileKind::Wal))
                .unwrap();
            RecordWriter::recyclable(file, number)
        };
        let needed = RecoveredInfo {
            manifest_number: 1,
            manifest_end: Verdict::Clean,
            min_log_number: 2,
            sections_from: u64::MAX,
            section_wals: Vec::new(),
            prev_log_number: 0,
            tracked_wals: Vec::new(),
        };
        let mut follow = WalFollow::new(Arc::clone(&files), DIR.into(), &[], 0);
        let mut met = Vec::new();
        let mut read_on = || {
            follow.read_on(&needed, |wal, batch| {
                met.push((wal, batch.seqno()));
                Ok(Some(1))
            })
        };
        let (mut first, mut second) = (create(2), create(3));
        write(&mut first, 1..=350);
        assert_eq!(read_on().unwrap(), Reading::Part);
        // The files do not say how long those before them are: RocksDB's do not.
        write(&mut first, 351..=400);
        write(&mut second, 401..=410);
        assert_eq!(read_on().unwrap(), Reading::Whole);
        let written = (1..=410).map(|seqno| (if seqno <= 400 { 2 } else { 3 }, seqno));
        assert_eq!(met, written.collect::<Vec<_>>());
    }
}
