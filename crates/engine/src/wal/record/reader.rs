//! Reads records back, and judges the end of a log.
//!
//! Reading stops at the first thing that is not a sound fragment of this log; nothing past it is
//! ever replayed. Whether that place is where writing stopped or where bytes were damaged is a
//! question of its own, answered by [`RecordReader::judge`] from the bytes past it.

use std::ops::Range;
use std::sync::Arc;

use drumlin_base::coding::fixed32_at;
use drumlin_base::{Error, Result};
use drumlin_fs::RandomAccessFile;

use super::bitflip::{is_unwritten, single_bit};
use super::fragment::{Found, Header, Place, header_bytes, is_sound, parse};
use super::mend::{Mended, mend};
use super::search::{Sign, are_zeros, candidates};
use super::{BLOCK_BYTES, HEADER_BYTES, RECYCLABLE_HEADER_BYTES, SyncedMark};

/// Where a fragment's type is.
const TYPE_AT: usize = HEADER_BYTES - 1;
/// Blocks read from a file at once that is read through.
const WINDOW_BLOCKS: usize = 8;

/// One record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where its first fragment begins in the file.
    pub offset: u64,
    /// The appended bytes.
    pub payload: &'a [u8],
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The file ends after a whole record.
    Complete,
    /// Zeros are where the next record would be.
    Zeros,
    /// A record of the log that had the file before is where the next one would be.
    OtherLog,
    /// The next record is not whole; the sentence says what is wrong with it.
    Bad(&'static str),
}

/// Where and why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Past the last whole record: how much of the file is sound.
    pub offset: u64,
    /// The fragment that ended the reading; past `offset` when a record's first fragments are
    /// sound and a later one is not.
    pub fragment: u64,
    /// Why.
    pub reason: EndReason,
}

/// Evidence that the place where reading stopped was written and synced once.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// A later record with a [`SyncedMark`] past that place: for a WAL, any part of which may be
    /// synced before any other.
    Marks,
    /// Any later record: for a log whose every record is synced before the next begins.
    Any,
    /// A later record that was not written together with the one that cannot be read: for a
    /// MANIFEST. The function gives the offset from which the log was synced together with a record,
    /// `None` when that is the record's own.
    Batches(fn(&[u8]) -> Option<u64>),
}

/// The meaning of a log's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every record that was begun is whole.
    Clean,
    /// A write did not finish. Its content was never acknowledged to anybody.
    Torn {
        /// Where the sound part ends.
        offset: u64,
        /// Bytes past it.
        dropped_bytes: u64,
        /// The fault there.
        reason: &'static str,
        /// Whether sound records follow it: unsynced writes that reached the disk out of order,
        /// or damage in a log that carries no marks.
        later_records: bool,
    },
    /// Bytes that were once safe are damaged.
    Corrupt {
        /// Where the sound part ends.
        offset: u64,
        /// How that is known.
        reason: String,
        /// The record there with one bit turned back, where it is the last of a log that may be
        /// recycled: then it may as well be a torn write.
        mended: Option<Mended>,
    },
}

impl Verdict {
    /// Damage as an error, everything else as it is.
    ///
    /// # Errors
    /// `Corruption` at the offset.
    pub fn refuse_corruption(self) -> Result<Self> {
        match self {
            Self::Corrupt { offset, reason, .. } => {
                Err(Error::corruption(reason.clone()).with_offset(offset))
            }
            sound => Ok(sound),
        }
    }
}

/// Walks the records of one log.
#[derive(Debug)]
pub struct RecordReader {
    file: Arc<dyn RandomAccessFile>,
    log_number: u64,
    size: u64,
    window: Vec<u8>,
    window_start: u64,
    /// Blocks read from the file at once.
    window_blocks: usize,
    at: u64,
    scratch: Vec<u8>,
    /// Whether the log's fragments carry its number; unknown before the first.
    recyclable: Option<bool>,
    end: Option<End>,
}

enum Payload {
    Window(Range<usize>),
    Scratch,
}

impl RecordReader {
    /// Reads `file` from its front. `log_number` is the number in a WAL file's name, 0 for a
    /// MANIFEST.
    pub fn new(file: Arc<dyn RandomAccessFile>, log_number: u64) -> Self {
        Self {
            size: file.size(),
            file,
            log_number,
            window: Vec::new(),
            window_start: 0,
            window_blocks: WINDOW_BLOCKS,
            at: 0,
            scratch: Vec::new(),
            recyclable: None,
            end: None,
        }
    }

    /// As [`RecordReader::new`], for who reads the first record or few: little of the file is read at once.
    pub fn of_front(file: Arc<dyn RandomAccessFile>, log_number: u64) -> Self {
        Self {
            window_blocks: 1,
            ..Self::new(file, log_number)
        }
    }

    /// The next record; `None` once [`RecordReader::end`] says why. The payload lives until the
    /// next call.
    ///
    /// # Errors
    /// `Io`; `NotSupported` for a sound record of a type that cannot be served.
    pub fn read(&mut self) -> Result<Option<Record<'_>>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let Some((offset, payload)) = self.advance()? else {
            return Ok(None);
        };
        let payload = match payload {
            Payload::Window(range) => self
                .window
                .get(range)
                .expect("the range was found in the window"),
            Payload::Scratch => &self.scratch,
        };
        Ok(Some(Record { offset, payload }))
    }

    /// Goes on where reading stopped, in `file`, the same one opened again: its writer may have appended
    /// meanwhile. False where it is no longer than it was.
    pub fn go_on(&mut self, file: Arc<dyn RandomAccessFile>) -> bool {
        let Some(end) = self.end.filter(|_| file.size() > self.size) else {
            return false;
        };
        self.size = file.size();
        self.file = file;
        self.window.clear();
        self.at = end.offset;
        self.end = None;
        true
    }

    /// Goes on where reading stopped or paused, in `file`, the same one opened again: a record may have been written
    /// there meanwhile, and nothing that was read before that is looked at again. Reads little at a time from now on.
    pub fn look_again(&mut self, file: Arc<dyn RandomAccessFile>) {
        match self.end.take() {
            Some(end) => self.at = end.offset,
            None if drumlin_base::bug!("paused-wal-read-as-it-was") => return,
            None => {}
        }
        self.size = file.size();
        self.file = file;
        self.window.clear();
        self.window_blocks = 1;
    }

    /// Where and why reading stopped; `None` while it goes on.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether the fragments carry the log's number; false while that is unknown.
    pub fn is_recyclable(&self) -> bool {
        self.recyclable == Some(true)
    }

    fn advance(&mut self) -> Result<Option<(u64, Payload)>> {
        let mut begun = None;
        loop {
            let (range, file_ends) = self.block_rest()?;
            let rest = self
                .window
                .get(range.clone())
                .expect("the range was found in the window");
            if rest.is_empty() {
                return Ok(self.stop(begun, EndReason::Complete));
            }
            let (place, header, size) = match parse(rest, self.log_number as u32, file_ends) {
                Found::Fragment {
                    place,
                    recyclable,
                    header,
                    size,
                } => {
                    if let Some(reason) = self.out_of_style(recyclable) {
                        return Ok(self.stop(begun, reason));
                    }
                    (place, header, size)
                }
                Found::Trailer => {
                    self.at += rest.len() as u64;
                    continue;
                }
                Found::Ignorable { size } => {
                    self.at += size as u64;
                    continue;
                }
                Found::Zeros => return Ok(self.stop(begun, EndReason::Zeros)),
                Found::OtherLog => return Ok(self.stop(begun, EndReason::OtherLog)),
                Found::Bad(reason) => return Ok(self.stop(begun, EndReason::Bad(reason))),
                Found::NotSupported(error) => return Err(error.with_offset(self.at)),
            };
            if let Some(reason) = self.out_of_place(place, begun.is_some()) {
                return Ok(self.stop(begun, EndReason::Bad(reason)));
            }
            let payload = range.start + header..range.start + size;
            let offset = *begun.get_or_insert(self.at);
            self.at += size as u64;
            match place {
                // An empty first fragment may precede a full one: old writers did that.
                Place::Full => return Ok(Some((self.at - size as u64, Payload::Window(payload)))),
                Place::First => {
                    begun = Some(self.at - size as u64);
                    self.scratch.clear();
                    self.gather(payload);
                }
                Place::Middle => self.gather(payload),
                Place::Last => {
                    self.gather(payload);
                    return Ok(Some((offset, Payload::Scratch)));
                }
            }
        }
    }

    fn gather(&mut self, payload: Range<usize>) {
        self.scratch.extend_from_slice(
            self.window
                .get(payload)
                .expect("the range was found in the window"),
        );
    }

    /// Whether a sound fragment does not belong to this log because it does (or does not) carry a
    /// log number.
    fn out_of_style(&mut self, recyclable: bool) -> Option<EndReason> {
        match (*self.recyclable.get_or_insert(recyclable), recyclable) {
            (true, false) => Some(EndReason::OtherLog),
            (false, true) => Some(EndReason::Bad("a recyclable record in another log")),
            _ => None,
        }
    }

    /// The fault of a fragment of `place` here, if it has one.
    fn out_of_place(&self, place: Place, in_record: bool) -> Option<&'static str> {
        match place {
            Place::Full | Place::First if in_record && !self.scratch.is_empty() => {
                Some("a record lacks its end")
            }
            Place::Middle | Place::Last if !in_record => Some("a record lacks its beginning"),
            _ => None,
        }
    }

    fn stop<T>(&mut self, begun: Option<u64>, reason: EndReason) -> Option<T> {
        let reason = match (begun, reason) {
            (Some(_), EndReason::Complete | EndReason::Zeros | EndReason::OtherLog) => {
                EndReason::Bad("the log ends inside a record")
            }
            (_, reason) => reason,
        };
        self.end = Some(End {
            offset: begun.unwrap_or(self.at),
            fragment: self.at,
            reason,
        });
        None
    }

    /// The window's range with the rest of the present block, and whether the file ends with it.
    /// Empty at the end of the file.
    fn block_rest(&mut self) -> Result<(Range<usize>, bool)> {
        let block_start = self.at - self.at % BLOCK_BYTES as u64;
        self.load(block_start)?;
        let block_end = (block_start + BLOCK_BYTES as u64).min(self.size);
        let within = |offset: u64| (offset.saturating_sub(self.window_start)) as usize;
        let start = within(self.at.min(block_end));
        Ok((start..within(block_end), block_end == self.size))
    }

    /// Makes the window hold the block at `block_start`.
    fn load(&mut self, block_start: u64) -> Result<()> {
        let held = self.window_start..self.window_start + self.window.len() as u64;
        let last = block_start + (BLOCK_BYTES as u64).min(self.size.saturating_sub(block_start));
        if block_start >= self.size || (held.start <= block_start && last <= held.end) {
            return Ok(());
        }
        let wanted =
            (self.size - block_start).min((self.window_blocks * BLOCK_BYTES) as u64) as usize;
        self.window.resize(wanted, 0);
        self.window_start = block_start;
        let read = self.fill_window(block_start)?;
        if read < wanted {
            // The file is shorter than it was when it was opened.
            self.window.truncate(read);
            self.size = block_start + read as u64;
        }
        Ok(())
    }

    /// Reads the window from `offset` on until it is full or reads return nothing: one short read
    /// is no end of the file, and the bytes past it are not lost. How many bytes were read.
    fn fill_window(&mut self, offset: u64) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = self.window.get_mut(filled..).filter(|r| !r.is_empty()) {
            match self.file.read_at(offset + filled as u64, rest)? {
                0 => break,
                more => filled += more,
            }
        }
        Ok(filled)
    }

    /// The meaning of this log's end. Call it after the last record was read.
    ///
    /// Cost: looks through the rest of the file when the end is not a plain one.
    ///
    /// # Errors
    /// `Io`.
    pub fn judge(&mut self, later: Later) -> Result<Verdict> {
        let Some(end) = self.end else {
            debug_assert!(false, "the log was not read to its end");
            return Ok(Verdict::Clean);
        };
        if end.reason == EndReason::Complete {
            return Ok(Verdict::Clean);
        }
        let verdict = self.judge_unplain(end, later);
        self.end = Some(end);
        verdict
    }

    fn judge_unplain(&mut self, end: End, later: Later) -> Result<Verdict> {
        if let Some(at) = self.flipped_byte(end)? {
            return Ok(Verdict::Corrupt {
                offset: end.offset,
                reason: format!("one flipped bit in byte {at} made a record unreadable"),
                mended: self.mended(end)?,
            });
        }
        let mut later_records = false;
        let mut proof = None;
        let log_number = self.log_number;
        self.scan_after(end.fragment, |record| {
            later_records = true;
            proof = match later {
                Later::Batches(from) if from(record.payload).is_some_and(|at| at <= end.offset) => {
                    None
                }
                Later::Any | Later::Batches(_) => {
                    Some(format!("a sound record follows at {}", record.offset))
                }
                Later::Marks => SyncedMark::in_batch(record.payload)
                    .filter(|mark| {
                        mark.log_number == log_number
                            || drumlin_base::bug!("marks-of-other-logs-believed")
                    })
                    .filter(|mark| mark.bytes > end.offset)
                    .map(|mark| format!("{} bytes were synced", mark.bytes)),
            };
            proof.is_some()
        })?;
        if let Some(proof) = proof {
            let reason = format!("the log is damaged although {proof}");
            return Ok(Verdict::Corrupt {
                offset: end.offset,
                reason,
                mended: None,
            });
        }
        let reason = match end.reason {
            EndReason::Bad(reason) => reason,
            EndReason::Zeros if later_records || !self.is_zero_from(end.fragment)? => {
                "zeros lie between records"
            }
            EndReason::Complete | EndReason::Zeros | EndReason::OtherLog => {
                return Ok(Verdict::Clean);
            }
        };
        Ok(Verdict::Torn {
            offset: end.offset,
            dropped_bytes: self.size - end.offset,
            reason,
            later_records,
        })
    }

    /// The file offset of the byte in which one bit, turned back, would make the fragment at the
    /// end a sound one of this log; `None` also where a torn write leaves the same.
    fn flipped_byte(&mut self, end: End) -> Result<Option<u64>> {
        self.at = end.fragment;
        let (range, _) = self.block_rest()?;
        let rest = self
            .window
            .get(range)
            .expect("the range was found in the window");
        if matches!(end.reason, EndReason::Complete | EndReason::Zeros) {
            return Ok(None);
        }
        let Some(at) = single_bit(rest).filter(|at| !is_unwritten(rest, *at)) else {
            return Ok(None);
        };
        // A fragment of another log is ours only if the bit made it look like one: a bit of the
        // number, or the one that says that there is a number.
        let number = fixed32_at(rest, HEADER_BYTES).unwrap_or(0);
        let ours = match at {
            _ if end.reason != EndReason::OtherLog => true,
            TYPE_AT => !self.is_recyclable(),
            HEADER_BYTES..RECYCLABLE_HEADER_BYTES => {
                (number ^ self.log_number as u32).is_power_of_two()
            }
            _ => false,
        };
        Ok(ours.then_some(end.fragment + at as u64))
    }

    /// The record at the end with its flipped bit turned back, if it is one that can be mended and
    /// nothing sound follows it.
    fn mended(&mut self, end: End) -> Result<Option<Mended>> {
        if self.recyclable == Some(false) {
            return Ok(None);
        }
        self.at = end.fragment;
        let (range, _) = self.block_rest()?;
        let rest = self
            .window
            .get(range)
            .expect("the range was found in the window");
        let begun = (end.offset != end.fragment).then_some((end.offset, self.scratch.as_slice()));
        let Some(mended) = mend(rest, end.fragment, self.log_number as u32, begun) else {
            return Ok(None);
        };
        let mut followed = false;
        self.scan_after(end.fragment, |_| {
            followed = true;
            true
        })?;
        Ok((!followed).then_some(mended))
    }

    /// Shows `visit` the whole records past the bad fragment at `bad`, until it says enough.
    fn scan_after(&mut self, bad: u64, mut visit: impl FnMut(Record<'_>) -> bool) -> Result<()> {
        let mut from = bad + 1;
        while let Some((at, place, size)) = self.next_sound(from)? {
            from = at + size;
            if matches!(place, Place::Middle | Place::Last) {
                continue;
            }
            self.at = at;
            self.end = None;
            // A record that cannot be served ends this run of records, not the search.
            while let Ok(Some(record)) = self.read() {
                if visit(record) {
                    return Ok(());
                }
            }
            from = from.max(self.at);
        }
        Ok(())
    }

    /// The first sound fragment of this log at or after `from`: offset, place and size.
    fn next_sound(&mut self, from: u64) -> Result<Option<(u64, Place, u64)>> {
        let sign = match self.is_recyclable() {
            true => Sign::Number(self.log_number as u32),
            false => Sign::Type,
        };
        self.at = from;
        loop {
            let (range, _) = self.block_rest()?;
            let rest = self
                .window
                .get(range)
                .expect("the range was found in the window");
            if rest.is_empty() {
                return Ok(None);
            }
            for (skipped, tail) in candidates(rest, sign) {
                if let Some((place, size)) = self.sound_fragment(tail) {
                    return Ok(Some((self.at + skipped as u64, place, size)));
                }
            }
            self.at += rest.len() as u64;
        }
    }

    fn sound_fragment(&self, bytes: &[u8]) -> Option<(Place, u64)> {
        let kind = *bytes.get(TYPE_AT)?;
        let place = match (kind, self.recyclable) {
            (1, None | Some(false)) | (5, None | Some(true)) => Place::Full,
            (2, None | Some(false)) | (6, None | Some(true)) => Place::First,
            (3, None | Some(false)) | (7, None | Some(true)) => Place::Middle,
            (4, None | Some(false)) | (8, None | Some(true)) => Place::Last,
            _ => return None,
        };
        let header = Header::decode(bytes)?;
        if header_bytes(kind) == RECYCLABLE_HEADER_BYTES {
            let number = fixed32_at(bytes, HEADER_BYTES)?;
            if number != self.log_number as u32 {
                return None;
            }
        }
        let fragment = bytes.get(..header.size())?;
        is_sound(fragment).then_some((place, fragment.len() as u64))
    }

    fn is_zero_from(&mut self, from: u64) -> Result<bool> {
        self.at = from;
        loop {
            let (range, _) = self.block_rest()?;
            let rest = self
                .window
                .get(range)
                .expect("the range was found in the window");
            if rest.is_empty() {
                return Ok(true);
            }
            if !are_zeros(rest) {
                return Ok(false);
            }
            self.at += rest.len() as u64;
        }
    }
}
