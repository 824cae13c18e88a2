//! Reading batches in RocksDB's bytes: one validated walk for those of this process and for those from a log.
//!
//! A log also has the steps of two-phase commit: a prepared section, whose records wait for a commit of its name and
//! take no sequence numbers until then, and the markers that commit it or roll it back. [`BatchView::parts`] has all of
//! them; [`BatchIter`] walks plain batches and refuses these by name.
//!
//! Format page: `docs/format/write-batch.md`.

use drumlin_base::coding::{Reader, fixed32_at, fixed64_at};
use drumlin_base::limits::BATCH_BYTES_MAX;
use drumlin_base::{Error, ErrorKind, Result, SEQNO_MAX, SeqNo, ValueKind};

/// Bytes before the first record.
pub const BATCH_HEADER_BYTES: usize = 12;

/// Where the count of records is.
pub(super) const COUNT_AT: usize = 8;

/// Record tags, on disk.
pub(super) mod tag {
    pub(in crate::write) const DELETE: u8 = 0x0;
    pub(in crate::write) const PUT: u8 = 0x1;
    pub(in crate::write) const MERGE: u8 = 0x2;
    pub(in crate::write) const LOG_DATA: u8 = 0x3;
    pub(in crate::write) const FAMILY_DELETE: u8 = 0x4;
    pub(in crate::write) const FAMILY_PUT: u8 = 0x5;
    pub(in crate::write) const FAMILY_MERGE: u8 = 0x6;
    pub(in crate::write) const SINGLE_DELETE: u8 = 0x7;
    pub(in crate::write) const FAMILY_SINGLE_DELETE: u8 = 0x8;
    pub(in crate::write) const BEGIN_PREPARE: u8 = 0x9;
    pub(in crate::write) const END_PREPARE: u8 = 0xA;
    pub(in crate::write) const COMMIT: u8 = 0xB;
    pub(in crate::write) const ROLLBACK: u8 = 0xC;
    pub(in crate::write) const NOOP: u8 = 0xD;
    pub(in crate::write) const FAMILY_DELETE_RANGE: u8 = 0xE;
    pub(in crate::write) const DELETE_RANGE: u8 = 0xF;
    pub(in crate::write) const FAMILY_BLOB_INDEX: u8 = 0x10;
    pub(in crate::write) const BLOB_INDEX: u8 = 0x11;
    pub(in crate::write) const BEGIN_PERSISTED_PREPARE: u8 = 0x12;
    pub(in crate::write) const BEGIN_UNPREPARED: u8 = 0x13;
    pub(in crate::write) const DELETE_WITH_TIMESTAMP: u8 = 0x14;
    pub(in crate::write) const COMMIT_WITH_TIMESTAMP: u8 = 0x15;
    pub(in crate::write) const ENTITY: u8 = 0x16;
    pub(in crate::write) const FAMILY_ENTITY: u8 = 0x17;
    pub(in crate::write) const PREFERRED_SEQNO: u8 = 0x18;
    pub(in crate::write) const FAMILY_PREFERRED_SEQNO: u8 = 0x19;
}

/// One write of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRecord<'a> {
    /// The family's id; 0 is `default`.
    pub family: u32,
    /// The kind of the record.
    pub kind: ValueKind,
    /// The user key; for a range deletion the first key covered.
    pub key: &'a [u8],
    /// The value or operand; for a range deletion the first key no longer covered; else empty.
    pub value: &'a [u8],
}

/// The error of something past its limit.
#[cold]
pub(super) fn too_large(what: &str, len: usize, limit: usize) -> Error {
    let message = format!("the {what} has {len} bytes, more than {limit}");
    Error::new(ErrorKind::TooLarge, message)
}

/// A batch in borrowed bytes, validated: the content of a WAL record.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    seqno: SeqNo,
    count: u32,
    two_phase: bool,
    records: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Walks `bytes` once to see that every record is whole and the count is right.
    ///
    /// # Errors
    /// As [`WriteBatch::from_bytes`].
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() > BATCH_BYTES_MAX {
            return Err(too_large("batch", bytes.len(), BATCH_BYTES_MAX));
        }
        let (Some(seqno), Some(count)) = (fixed64_at(bytes, 0), fixed32_at(bytes, COUNT_AT)) else {
            return Err(Error::corruption("the batch is shorter than its header"));
        };
        let (_, records) = bytes.split_at(BATCH_HEADER_BYTES);
        let mut found = 0u64;
        let mut two_phase = false;
        for part in BatchParts::new(records) {
            match part? {
                BatchPart::Record(_) => found += 1,
                BatchPart::Prepared(section) => {
                    found += u64::from(section.count);
                    two_phase = true;
                }
                BatchPart::Commit(_) | BatchPart::Rollback(_) => two_phase = true,
                BatchPart::LogData(_) => {}
            }
        }
        if found != u64::from(count) && !drumlin_base::bug!("batch-count-unchecked") {
            let message = format!("the batch holds {found} records, its header says {count}");
            return Err(Error::corruption(message));
        }
        if seqno > SEQNO_MAX || found > SEQNO_MAX - seqno {
            let message = format!("the batch's sequence number {seqno} is out of range");
            return Err(Error::corruption(message));
        }
        Ok(Self {
            seqno,
            count,
            two_phase,
            records,
        })
    }

    /// The sequence number of the first record.
    pub fn seqno(&self) -> SeqNo {
        self.seqno
    }

    /// Records that take a sequence number, now or, in a prepared section, once it is committed.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether it has a step of two-phase commit.
    pub fn is_two_phase(&self) -> bool {
        self.two_phase
    }

    /// Walks the records, the log data and the steps of two-phase commit.
    pub fn parts(&self) -> BatchParts<'a> {
        BatchParts::new(self.records)
    }

    /// Walks the records of a batch without steps of two-phase commit; these are refused by name.
    pub fn iter(&self) -> BatchIter<'a> {
        BatchIter::new(self.records)
    }

    /// Walks the log data (see [`WriteBatch::put_log_data`]) and nothing else.
    pub fn log_data(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = Reader::new(self.records);
        std::iter::from_fn(move || {
            while let Ok(Some(step)) = step(&mut rest) {
                if let Step::LogData(data) = step {
                    return Some(data);
                }
            }
            None
        })
    }
}

/// Walks the records of a batch: log data and no-ops are passed over. After an error it ends.
#[derive(Clone, Debug)]
pub struct BatchIter<'a> {
    rest: Reader<'a>,
}

impl<'a> BatchIter<'a> {
    /// Walks `records`, the bytes after a batch's header.
    pub fn new(records: &'a [u8]) -> Self {
        Self {
            rest: Reader::new(records),
        }
    }
}

impl<'a> Iterator for BatchIter<'a> {
    type Item = Result<BatchRecord<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match step(&mut self.rest) {
                Ok(Some(Step::Record(record))) => return Some(Ok(record)),
                Ok(Some(Step::LogData(_) | Step::Nothing)) => {}
                Ok(Some(Step::Marker(tag, _))) => {
                    self.rest = Reader::new(&[]);
                    return Some(Err(unreadable(tag)));
                }
                Ok(None) => return None,
                Err(error) => {
                    self.rest = Reader::new(&[]);
                    return Some(Err(error));
                }
            }
        }
    }
}

/// One piece of a batch from a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPart<'a> {
    /// A write, which takes the next sequence number.
    Record(BatchRecord<'a>),
    /// Writes that wait for the commit of their name.
    Prepared(PreparedSection<'a>),
    /// The writes prepared under this name are made here, from the next sequence number on.
    Commit(&'a [u8]),
    /// The writes prepared under this name are given up.
    Rollback(&'a [u8]),
    /// Data for the log alone.
    LogData(&'a [u8]),
}

/// The writes that a transaction prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedSection<'a> {
    /// The transaction's name.
    pub name: &'a [u8],
    /// The bytes of its records, each of them sound.
    pub records: &'a [u8],
    /// How many they are.
    pub count: u32,
}

/// Walks the parts of a batch: no-ops are passed over. After an error it ends.
#[derive(Clone, Debug)]
pub struct BatchParts<'a> {
    records: &'a [u8],
    rest: Reader<'a>,
}

impl<'a> BatchParts<'a> {
    /// Walks `records`, the bytes after a batch's header.
    pub fn new(records: &'a [u8]) -> Self {
        Self {
            records,
            rest: Reader::new(records),
        }
    }

    fn next_part(&mut self) -> Result<Option<BatchPart<'a>>> {
        loop {
            return match step(&mut self.rest)? {
                None => Ok(None),
                Some(Step::Nothing) => continue,
                Some(Step::LogData(data)) => Ok(Some(BatchPart::LogData(data))),
                Some(Step::Record(record)) => Ok(Some(BatchPart::Record(record))),
                Some(Step::Marker(tag::BEGIN_PREPARE, _)) => self.section().map(Some),
                Some(Step::Marker(tag::COMMIT, name)) => Ok(Some(BatchPart::Commit(name))),
                Some(Step::Marker(tag::ROLLBACK, name)) => Ok(Some(BatchPart::Rollback(name))),
                Some(Step::Marker(..)) => Err(Error::corruption(
                    "a prepared section of a batch ends without a beginning",
                )),
            };
        }
    }

    /// The section whose beginning was just read.
    fn section(&mut self) -> Result<BatchPart<'a>> {
        let begin = self.records.len() - self.rest.rest().len();
        let mut count = 0u32;
        loop {
            let end = self.records.len() - self.rest.rest().len();
            match step(&mut self.rest)? {
                Some(Step::Record(_)) => count = count.saturating_add(1),
                Some(Step::LogData(_) | Step::Nothing) => {}
                Some(Step::Marker(tag::END_PREPARE, name)) => {
                    let records = self.records.get(begin..end).unwrap_or_default();
                    return Ok(BatchPart::Prepared(PreparedSection {
                        name,
                        records,
                        count,
                    }));
                }
                Some(Step::Marker(tag, _)) => {
                    let message =
                        format!("a prepared section of a batch has a record of tag {tag:#x}");
                    return Err(Error::corruption(message));
                }
                None => {
                    let message = "a prepared section of a batch does not end in it";
                    return Err(Error::corruption(message));
                }
            }
        }
    }
}

impl<'a> Iterator for BatchParts<'a> {
    type Item = Result<BatchPart<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_part();
        if next.is_err() {
            self.rest = Reader::new(&[]);
        }
        next.transpose()
    }
}

enum Step<'a> {
    Record(BatchRecord<'a>),
    LogData(&'a [u8]),
    /// A tag of two-phase commit, with the name of the transaction where it has one.
    Marker(u8, &'a [u8]),
    Nothing,
}

/// One record of any tag; `None` at the end.
#[inline]
fn step<'a>(rest: &mut Reader<'a>) -> Result<Option<Step<'a>>> {
    let Some(tag) = rest.u8() else {
        return Ok(None);
    };
    let (kind, has_family) = match tag {
        tag::PUT => (ValueKind::Value, false),
        tag::FAMILY_PUT => (ValueKind::Value, true),
        tag::DELETE => (ValueKind::Deletion, false),
        tag::FAMILY_DELETE => (ValueKind::Deletion, true),
        tag::MERGE => (ValueKind::Merge, false),
        tag::FAMILY_MERGE => (ValueKind::Merge, true),
        tag::SINGLE_DELETE => (ValueKind::SingleDeletion, false),
        tag::FAMILY_SINGLE_DELETE => (ValueKind::SingleDeletion, true),
        tag::DELETE_RANGE => (ValueKind::RangeDeletion, false),
        tag::FAMILY_DELETE_RANGE => (ValueKind::RangeDeletion, true),
        tag::BLOB_INDEX => (ValueKind::BlobIndex, false),
        tag::FAMILY_BLOB_INDEX => (ValueKind::BlobIndex, true),
        tag::ENTITY => (ValueKind::WideColumnEntity, false),
        tag::FAMILY_ENTITY => (ValueKind::WideColumnEntity, true),
        tag::LOG_DATA => {
            let data = rest.slice().ok_or_else(|| cut(tag))?;
            return Ok(Some(Step::LogData(data)));
        }
        tag::NOOP => return Ok(Some(Step::Nothing)),
        tag::BEGIN_PREPARE => return Ok(Some(Step::Marker(tag, &[]))),
        tag::END_PREPARE | tag::COMMIT | tag::ROLLBACK => {
            let name = rest.slice().ok_or_else(|| cut(tag))?;
            return Ok(Some(Step::Marker(tag, name)));
        }
        _ => return Err(unreadable(tag)),
    };
    let family = if has_family {
        rest.varint32().ok_or_else(|| cut(tag))?
    } else {
        0
    };
    let key = rest.slice().ok_or_else(|| cut(tag))?;
    let value = match kind {
        ValueKind::Deletion | ValueKind::SingleDeletion => &[],
        _ => rest.slice().ok_or_else(|| cut(tag))?,
    };
    Ok(Some(Step::Record(BatchRecord {
        family,
        kind,
        key,
        value,
    })))
}

#[cold]
fn cut(tag: u8) -> Error {
    Error::corruption(format!("a batch record of tag {tag:#x} is cut short"))
}

#[cold]
fn unreadable(tag: u8) -> Error {
    let feature = match tag {
        tag::BEGIN_PREPARE => "two-phase commit (BeginPrepare)",
        tag::END_PREPARE => "two-phase commit (EndPrepare)",
        tag::COMMIT => "two-phase commit (Commit)",
        tag::ROLLBACK => "two-phase commit (Rollback)",
        tag::BEGIN_PERSISTED_PREPARE => "two-phase commit (BeginPersistedPrepare)",
        tag::BEGIN_UNPREPARED => "two-phase commit (BeginUnprepare)",
        tag::COMMIT_WITH_TIMESTAMP => "two-phase commit (CommitWithTimestamp)",
        tag::DELETE_WITH_TIMESTAMP => "user-defined timestamps (DeletionWithTimestamp)",
        tag::PREFERRED_SEQNO | tag::FAMILY_PREFERRED_SEQNO => "values with a preferred seqno",
        _ => return Error::corruption(format!("a batch record has the unknown tag {tag:#x}")),
    };
    Error::not_supported(format!("the batch uses {feature}, tag {tag:#x}"))
}
