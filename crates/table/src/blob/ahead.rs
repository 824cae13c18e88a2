//! Several values of a blob file with one read: ahead of a scan, or all that a caller asks for.
//!
//! A flush writes values in key order, so the references that a scan meets have records that follow each
//! other in their file, with gaps where values were overwritten since. A scan that goes backward meets them
//! in reverse. After a few such steps in a row a window of the file is read at once, larger each time,
//! and values are handed out from the window itself. A value that is kept keeps its whole window.

use std::ops::Range;
use std::sync::Arc;

use drumlin_base::{PinnedSlice, Result};

use super::format::{BLOB_RECORD_HEADER_BYTES, BlobIndex};
use super::reader::{BlobReader, check_record, unpack};
use crate::compress::Codec;

/// Files read ahead of at a time: a scan merges the values of several.
const FILES_MAX: usize = 4;
/// First window of a scan that turned out to be sequential.
const WINDOW_BYTES_MIN: usize = 32 << 10;
/// Largest window that grows by itself, and the most that is read at once for a list of values.
const WINDOW_BYTES_MAX: usize = 256 << 10;
/// Neighbouring reads before the window opens: a short scan reads only the bytes it needs.
const READS_BEFORE_WINDOW: u32 = 2;
/// Garbage between two records that is read along with them. Reading this much from the page cache
/// costs about as much as the system call that is saved.
const GAP_BYTES_MAX: u64 = 8 << 10;

/// A piece of a file in memory.
#[derive(Debug)]
struct Window {
    bytes: Arc<Vec<u8>>,
    /// File offset of the first byte.
    start: u64,
}

impl Window {
    fn empty() -> Self {
        Self {
            bytes: Arc::default(),
            start: 0,
        }
    }

    /// Reads `place` of the file. Reuses the former window's memory if nobody holds it.
    fn fill(&mut self, reader: &BlobReader, place: Range<u64>) -> Result<()> {
        let former = std::mem::replace(self, Self::empty());
        let mut room = Arc::into_inner(former.bytes).unwrap_or_default();
        reader.read_place(&place, &mut room)?;
        self.bytes = Arc::new(room);
        self.start = place.start;
        Ok(())
    }

    /// Where `place` of the file is in the window, if it is there.
    fn within(&self, place: &Range<u64>) -> Option<Range<usize>> {
        let from = usize::try_from(place.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(place.end.checked_sub(self.start)?).ok()?;
        (to <= self.bytes.len()).then_some(from..to)
    }

    /// The value of a record that is in the window; `None` when it is not there, or not sound.
    fn value(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        place: &Range<u64>,
        verify: bool,
    ) -> Option<Result<PinnedSlice>> {
        let within = self.within(place)?;
        let record = self.bytes.get(within.clone())?;
        if verify && check_record(user_key, index, record).is_err() {
            return None;
        }
        let skipped = BLOB_RECORD_HEADER_BYTES + user_key.len();
        if index.codec == Codec::None {
            let value = within.start + skipped..within.end;
            return PinnedSlice::of_vector(&self.bytes, value).map(Ok);
        }
        let value = unpack(index.codec, record.get(skipped..)?);
        Some(value.map(PinnedSlice::owned))
    }
}

/// The bytes that one scan has read ahead in one file.
#[derive(Debug)]
struct Scan {
    file: u64,
    window: Window,
    /// The record read last.
    last: Range<u64>,
    /// Records in a row that were neighbours.
    in_a_row: u32,
    window_bytes: usize,
}

impl Scan {
    /// Notes a read of `place`. True when the scan goes backward.
    fn note(&mut self, place: &Range<u64>) -> bool {
        let near = |from: u64, to: u64| from <= to && to - from <= GAP_BYTES_MAX;
        let forward = near(self.last.end, place.start);
        let backward = !forward && near(place.end, self.last.start);
        self.in_a_row = if forward || backward {
            self.in_a_row.saturating_add(1)
        } else {
            0
        };
        self.last = place.clone();
        backward
    }
}

/// Reads values for one scan. One thread at a time.
#[derive(Debug, Default)]
pub struct BlobAhead {
    scans: Vec<Scan>,
    /// The scan that makes room for the next file.
    turn: usize,
    /// The window the user asked for; 0 lets it grow.
    explicit: usize,
}

impl BlobAhead {
    /// Reads ahead `explicit` bytes, or a window that grows with the scan when it is 0.
    pub fn new(explicit: usize) -> Self {
        Self {
            explicit,
            ..Self::default()
        }
    }

    /// As a new one, in the same place.
    pub fn restart(&mut self, explicit: usize) {
        self.scans.clear();
        (self.turn, self.explicit) = (0, explicit);
    }

    /// As [`BlobReader::get`], reading ahead where the values asked for are neighbours.
    ///
    /// # Errors
    /// As [`BlobReader::get`].
    pub fn get(
        &mut self,
        reader: &BlobReader,
        user_key: &[u8],
        index: &BlobIndex,
        verify: bool,
    ) -> Result<PinnedSlice> {
        let place = reader.record_place(user_key, index)?;
        if place.end - place.start > WINDOW_BYTES_MAX as u64 {
            return reader.get(user_key, index, verify);
        }
        let explicit = self.explicit;
        let scan = self.scan_of(index.file);
        let backward = scan.note(&place);
        if scan.window.within(&place).is_none() {
            if explicit == 0 && scan.in_a_row < READS_BEFORE_WINDOW {
                scan.window_bytes = 0;
                return reader.get(user_key, index, verify);
            }
            scan.window_bytes = match explicit {
                0 => (scan.window_bytes * 2).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX),
                explicit => explicit,
            };
            let bytes = (scan.window_bytes as u64).max(place.end - place.start);
            let wanted = if backward {
                place.end.saturating_sub(bytes)..place.end
            } else {
                place.start..place.start.saturating_add(bytes).min(reader.data_end())
            };
            scan.window.fill(reader, wanted)?;
        }
        match scan.window.value(user_key, index, &place, verify) {
            Some(Ok(value)) => Ok(value),
            // Read again, by itself, before it is called corrupt.
            _ => reader.get(user_key, index, verify),
        }
    }

    fn scan_of(&mut self, file: u64) -> &mut Scan {
        let found = self.scans.iter().position(|scan| scan.file == file);
        let at = found.unwrap_or_else(|| {
            let fresh = Scan {
                file,
                window: Window::empty(),
                last: 0..0,
                in_a_row: 0,
                window_bytes: 0,
            };
            let at = self.turn % FILES_MAX;
            self.turn += 1;
            match self.scans.get_mut(at) {
                Some(oldest) => *oldest = fresh,
                None => self.scans.push(fresh),
            }
            at
        });
        let scan = self.scans.get_mut(at);
        scan.expect("it was found or put there")
    }
}

/// Gives `put` the value of each of `wanted`, in order; their references name `reader`'s file and
/// ascend by offset. Each fails alone. Neighbours are read together; the system is told of all the
/// places beforehand, so that a device that has them fetches them side by side.
pub fn get_sorted(
    reader: &BlobReader,
    wanted: &[(&[u8], BlobIndex)],
    verify: bool,
    mut put: impl FnMut(Result<PinnedSlice>),
) {
    if wanted.len() > 1 {
        announce(reader, wanted);
    }
    let mut window = Window::empty();
    for (at, (user_key, index)) in wanted.iter().enumerate() {
        let value = reader.record_place(user_key, index).and_then(|place| {
            if window.within(&place).is_none() {
                let rest = wanted.get(at + 1..).expect("one of those wanted");
                let end = end_of_run(reader, place.clone(), rest);
                if end == place.end {
                    return reader.get(user_key, index, verify);
                }
                window.fill(reader, place.start..end)?;
            }
            match window.value(user_key, index, &place, verify) {
                Some(Ok(value)) => Ok(value),
                _ => reader.get(user_key, index, verify),
            }
        });
        put(value);
    }
}

/// Tells the system which ranges will be read.
fn announce(reader: &BlobReader, wanted: &[(&[u8], BlobIndex)]) {
    let mut told = 0;
    for (at, (user_key, index)) in wanted.iter().enumerate() {
        let Ok(place) = reader.record_place(user_key, index) else {
            continue;
        };
        if place.end > told {
            let rest = wanted.get(at + 1..).expect("one of those wanted");
            told = end_of_run(reader, place.clone(), rest);
            reader.will_need(&(place.start..told));
        }
    }
}

/// Where the neighbours of the record at `first` among `rest` end, as far as one read goes.
fn end_of_run(reader: &BlobReader, first: Range<u64>, rest: &[(&[u8], BlobIndex)]) -> u64 {
    let mut end = first.end;
    for (user_key, index) in rest {
        match reader.record_place(user_key, index) {
            Ok(place)
                if place.start >= first.start
                    && place.start <= end.saturating_add(GAP_BYTES_MAX)
                    && place.end.max(end) - first.start <= WINDOW_BYTES_MAX as u64 =>
            {
                end = end.max(place.end);
            }
            _ => break,
        }
    }
    end
}
