//! A place in a MANIFEST that another process writes, and what was read there.
//!
//! One thread at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use drumlin_base::{Error, Result};
use drumlin_fs::RandomAccessFile;

use super::VersionEdit;
use crate::wal::record::{EndReason, Later, RecordReader};

/// How often the end of a MANIFEST is looked at until what stands there, unreadable, is judged.
const LOOKS_MAX: u32 = 64;

/// A place in a MANIFEST, and what was read before it and not taken in.
#[derive(Debug)]
pub(super) struct ManifestTail {
    reader: RecordReader,
    /// Of an atomic group that is not complete yet.
    group: EditGroup,
    pub(super) pending: VecDeque<Vec<VersionEdit>>,
    /// Looks in a row that ended before a record that is not whole.
    unreadable: u32,
}

impl ManifestTail {
    /// Behind what `reader` has read, with the edits of an unfinished group.
    pub(super) fn new(reader: RecordReader, group: EditGroup) -> Self {
        Self {
            reader,
            group,
            pending: VecDeque::new(),
            unreadable: 0,
        }
    }
}

impl ManifestTail {
    /// Reads on in `file`, the same one opened again.
    ///
    /// # Errors
    /// `Corruption` with the offset; `Io`.
    pub(super) fn read(&mut self, file: Arc<dyn RandomAccessFile>) -> Result<()> {
        if !self.reader.go_on(file) {
            return self.judge();
        }
        while let Some(record) = self.reader.read()? {
            let offset = record.offset;
            let taken = VersionEdit::decode(record.payload).and_then(|edit| self.group.take(edit));
            self.pending
                .extend(taken.map_err(|error| error.with_offset(offset))?);
            self.unreadable = 0;
        }
        self.judge()
    }

    /// A record that is being written is whole soon.
    fn judge(&mut self) -> Result<()> {
        let end = self.reader.end();
        if !end.is_some_and(|end| matches!(end.reason, EndReason::Bad(_))) {
            return Ok(());
        }
        self.unreadable += 1;
        match self.unreadable == LOOKS_MAX {
            false => Ok(()),
            true => self
                .reader
                .judge(Later::Marks)?
                .refuse_corruption()
                .map(drop),
        }
    }
}

/// The edits of a group that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct EditGroup {
    pub(super) edits: Vec<VersionEdit>,
}

impl EditGroup {
    /// The edits that are complete with `edit`: itself where it is in no group.
    ///
    /// # Errors
    /// `Corruption` of a group that is interrupted.
    pub(super) fn take(&mut self, edit: VersionEdit) -> Result<Option<Vec<VersionEdit>>> {
        let expected = self.edits.last().map(|edit| edit.atomic_group_remaining);
        match (expected, edit.atomic_group_remaining) {
            (None, None) => return Ok(Some(vec![edit])),
            (None, Some(_)) => {}
            (Some(Some(before)), Some(remaining)) if before.checked_sub(1) == Some(remaining) => {}
            _ => return Err(Error::corruption("an atomic group of edits is interrupted")),
        }
        let is_complete = edit.atomic_group_remaining == Some(0);
        self.edits.push(edit);
        Ok(is_complete.then(|| std::mem::take(&mut self.edits)))
    }
}
