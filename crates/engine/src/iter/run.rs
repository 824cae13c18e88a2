//! One sorted run: tables that do not overlap, walked as one.
//!
//! A table is opened when the cursor comes to it, and not at all when it lies past the bounds. The
//! range tombstones of a table count only within its bounds, so once every table between the seek
//! and the cursor was opened, no tombstone that matters is unknown. Not shared between threads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::key::{compare_internal, split_internal, tag_kind, user_key};
use drumlin_base::{
    Error, InternalIterator, KeyOrder, PinnedSlice, Result, SeqNo, ValueCode, ValueKind,
};
use drumlin_fs::FileSystem;
use drumlin_table::{TableIter, TableReadOptions};

use super::resident::{ResidentFiles, Visited};
use crate::caches::table_cache::TableCache;
use crate::iter::range_tombstone::{Fragment, FragmentCursor};
use crate::version::{FileMeta, Version};

/// The tables of a run, by smallest key.
#[derive(Clone, Debug)]
pub enum RunFiles {
    /// All tables of a level below L0.
    Level(Arc<Version>, usize),
    /// These tables: a compaction's input, or one table of L0.
    List(Vec<Arc<FileMeta>>),
    /// One run of those that a super version has laid out in memory.
    Resident(ResidentFiles),
}

impl RunFiles {
    #[inline]
    pub(super) fn files(&self) -> &[Arc<FileMeta>] {
        match self {
            Self::Level(version, level) => version.level(*level),
            Self::List(files) => files,
            Self::Resident(files) => files.files(),
        }
    }

    /// Index of the first table whose largest key is at or after `target`.
    pub(super) fn find(&self, order: &KeyOrder, target: &[u8]) -> Option<usize> {
        match self {
            Self::Level(version, level) => version.find_file(order, *level, target),
            Self::Resident(files) => files.find(order, target),
            Self::List(files) => {
                let at = files
                    .partition_point(|file| compare_internal(order, &file.largest, target).is_lt());
                (at < files.len()).then_some(at)
            }
        }
    }
}

/// What a run is read with.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The family's order.
    pub order: KeyOrder,
    /// Where tables are opened.
    pub tables: Arc<TableCache>,
    /// How blocks are read.
    pub table: TableReadOptions,
    /// Tables that end before this user key are not opened on the way back.
    pub lower_bound: Option<Arc<[u8]>>,
    /// Tables that begin at or after this user key are not opened on the way forward.
    pub upper_bound: Option<Arc<[u8]>>,
    /// Set once a table with range tombstones is opened; shared by all runs of one iterator.
    pub tombstones_seen: Arc<AtomicBool>,
}

/// A cursor over one sorted run.
pub struct RunIter {
    pub(super) files: RunFiles,
    pub(super) options: Arc<RunOptions>,
    /// The table `table` reads, meaningless while that is `None`.
    pub(super) index: usize,
    pub(super) table: Option<TableIter>,
    pub(super) error: Option<Error>,
    has_tombstones: bool,
    /// The walk stays within the prefix of the key it seeks, so that a table whose prefix filter
    /// does not know that prefix ends it.
    within_prefix: bool,
    /// Where tables are opened once more, for this cursor alone to read ahead from.
    own_files: Option<Arc<dyn FileSystem>>,
    pub(super) visited: Visited,
}

impl RunIter {
    /// A cursor over `files`.
    pub fn new(files: RunFiles, options: Arc<RunOptions>) -> Self {
        Self {
            files,
            options,
            index: 0,
            table: None,
            error: None,
            has_tombstones: false,
            within_prefix: false,
            own_files: None,
            visited: Visited::default(),
        }
    }

    /// Reads with `options` from now on.
    ///
    /// Requires: they differ from the former in bounds alone; the cursor is positioned anew.
    pub fn set_options(&mut self, options: &Arc<RunOptions>) {
        self.options = Arc::clone(options);
    }

    /// The same, reading ahead from files of its own, past the page cache where `files` can.
    #[must_use]
    pub fn directly(mut self, files: Arc<dyn FileSystem>) -> Self {
        self.own_files = Some(files);
        self
    }

    /// From now on the walk stays within the prefix of the key it seeks, or again does not.
    #[inline]
    pub fn stay_within_prefix(&mut self, only: bool) {
        self.within_prefix = only;
    }

    /// The value under the cursor without a copy.
    ///
    /// Requires: `valid()`.
    pub fn pin_value(&self) -> PinnedSlice {
        match &self.table {
            Some(table) => table.pin_value(),
            None => PinnedSlice::owned(Vec::new()),
        }
    }

    /// Counts `entries` of the table under the cursor that a walk stepped over to no avail.
    pub fn note_dead_walked(&self, entries: u32) {
        if let Some(file) = self.files.files().get(self.index) {
            file.note_dead_walked(u64::from(entries));
        }
    }

    /// Charges the table under the cursor with `bytes` that reads lost to it.
    pub fn charge_reads(&self, bytes: u64) {
        if let Some(file) = self.files.files().get(self.index) {
            file.charge_reads(bytes);
        }
    }

    /// The newest deletion of `user_key` by this run's range tombstones that a reader at `snapshot`
    /// sees, and the fragment it belongs to.
    ///
    /// Requires: the cursor has walked over `user_key` since its last seek.
    pub fn covering(
        &self,
        cursor: &mut RunTombstoneCursor,
        user_key: &[u8],
        snapshot: SeqNo,
    ) -> Option<(SeqNo, Fragment<'_>)> {
        if !self.has_tombstones {
            return None;
        }
        let order = &self.options.order;
        let files = self.files.files();
        cursor.move_to(order, files, user_key);
        let mut newest = None;
        // A user key may end one table and begin the next: both have a say.
        for (offset, file) in files.get(cursor.file..)?.iter().enumerate() {
            if drumlin_base::bug!("next-table-has-no-say") && offset > 0 {
                break;
            }
            if order.compare(file.smallest_user_key(), user_key).is_gt() {
                break;
            }
            let Some(fragments) = file.fragments() else {
                continue;
            };
            let covering = match offset {
                0 => cursor.fragment.covering(order, fragments, user_key),
                _ => FragmentCursor::default().covering(order, fragments, user_key),
            };
            let Some(fragment) = covering else { continue };
            let seqno = fragment.newest_at(snapshot);
            if seqno > newest.map_or(0, |(newest, _)| newest) {
                newest = Some((seqno, fragment));
            }
        }
        newest
    }

    /// Opens the table at `index`, unless the cursor is in it already.
    pub(super) fn enter(&mut self, index: usize) -> Option<&mut TableIter> {
        if self.index != index || self.table.is_none() {
            if matches!(self.files, RunFiles::Resident(_)) {
                return self.enter_resident(index);
            }
            self.table = None;
            let file = self.files.files().get(index)?;
            let table = match self.options.tables.find(file) {
                Ok(table) => table,
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            };
            if file.fragments_of(&self.options.order, &table).is_some() {
                self.has_tombstones = true;
                // Read by the one thread that owns this cursor and its siblings.
                self.options.tombstones_seen.store(true, Ordering::Relaxed);
            }
            let mut table = table.iter(self.options.table);
            if let Some(files) = &self.own_files {
                match files.open_direct(&self.options.tables.path(file.number)) {
                    Ok(file) => table.read_through(file),
                    Err(error) => {
                        self.error = Some(error);
                        return None;
                    }
                }
            }
            self.table = Some(table);
            self.index = index;
        }
        self.table.as_mut()
    }

    /// Whether the table at `index`, or one after it, may hold a key of `target`'s prefix from `target`
    /// on; true when nobody asks.
    fn may_hold_prefix(&mut self, index: usize, target: &[u8]) -> bool {
        if !self.within_prefix || !self.ends_at_a_key(index) {
            return true;
        }
        let answer = match self.enter(index) {
            Some(table) => table.may_contain_prefix(user_key(target)),
            None => return true,
        };
        answer.unwrap_or_else(|error| {
            self.error = Some(error);
            false
        })
    }

    /// Whether the last key of the table at `index` is what bounds it. Where a range tombstone ends the
    /// table, its last key lies before that end, and the next table may begin with a key of its prefix.
    pub(super) fn ends_at_a_key(&self, index: usize) -> bool {
        self.files.files().get(index).is_some_and(|file| {
            let tag = split_internal(&file.largest).map_or(0, |(_, tag)| tag);
            tag_kind(tag) != ValueKind::RangeDeletion as u8
        })
    }

    /// Has no more entries, and stands nowhere.
    #[inline]
    pub(super) fn leave(&mut self) {
        match &mut self.table {
            // Holds nothing but a table that is open anyway.
            Some(TableIter::Plain(table)) if matches!(self.files, RunFiles::Resident(_)) => {
                table.leave();
            }
            table => *table = None,
        }
    }

    /// Goes on to the first entry of the tables that follow, while the present one has no more.
    #[cold]
    pub(super) fn skip_forward(&mut self) {
        while self.is_exhausted() {
            let next = self.index + 1;
            let within = self.files.files().get(next).is_some_and(|file| {
                self.options.upper_bound.as_ref().is_none_or(|upper| {
                    let order = &self.options.order;
                    order.compare(file.smallest_user_key(), upper).is_lt()
                })
            });
            if !within {
                self.leave();
                return;
            }
            if let Some(table) = self.enter(next) {
                table.seek_to_first();
            }
        }
    }

    /// Goes back to the last entry of the tables before, while the present one has no more.
    #[cold]
    fn skip_backward(&mut self) {
        while self.is_exhausted() {
            let previous = self.index.checked_sub(1).filter(|&previous| {
                self.files.files().get(previous).is_some_and(|file| {
                    self.options.lower_bound.as_ref().is_none_or(|lower| {
                        let order = &self.options.order;
                        order.compare(file.largest_user_key(), lower).is_ge()
                    })
                })
            });
            let Some(previous) = previous else {
                self.leave();
                return;
            };
            if let Some(table) = self.enter(previous) {
                table.seek_to_last();
            }
        }
    }

    /// Whether the present table was walked to its end without an error.
    fn is_exhausted(&self) -> bool {
        self.table
            .as_ref()
            .is_some_and(|table| !table.valid() && table.status().is_ok())
    }
}

impl InternalIterator for RunIter {
    #[inline]
    fn valid(&self) -> bool {
        self.table.as_ref().is_some_and(TableIter::valid)
    }

    fn seek_to_first(&mut self) {
        self.error = None;
        if let Some(table) = self.enter(0) {
            table.seek_to_first();
        }
        self.skip_forward();
    }

    fn seek_to_last(&mut self) {
        self.error = None;
        let Some(last) = self.files.files().len().checked_sub(1) else {
            return;
        };
        if let Some(table) = self.enter(last) {
            table.seek_to_last();
        }
        self.skip_backward();
    }

    fn seek(&mut self, target: &[u8]) {
        self.error = None;
        let index = self.files.find(&self.options.order, target);
        let Some(index) = index.filter(|&index| !self.begins_past_upper(index)) else {
            self.leave();
            return;
        };
        let may_hold = self.may_hold_prefix(index, target);
        if let Some(table) = self.enter(index).filter(|_| may_hold) {
            table.seek(target);
        }
        if !may_hold {
            // The table's last key is at or after `target`, and it has none of the prefix: nor has any
            // later.
            self.leave();
        } else if !self.valid() {
            self.skip_forward();
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.error = None;
        let order = &self.options.order;
        let files = self.files.files();
        let after = match self.files.find(order, target) {
            Some(index) => {
                let begins_at_or_before = files
                    .get(index)
                    .is_some_and(|file| compare_internal(order, &file.smallest, target).is_le());
                index + usize::from(begins_at_or_before)
            }
            None => files.len(),
        };
        let Some(index) = after.checked_sub(1) else {
            self.leave();
            return;
        };
        if let Some(table) = self.enter(index) {
            table.seek_for_prev(target);
        }
        if !self.valid() {
            self.skip_backward();
        }
    }

    #[inline]
    fn next(&mut self) {
        if let Some(table) = &mut self.table {
            table.next();
            if !table.valid() {
                self.skip_forward();
            }
        }
    }

    #[inline]
    fn prev(&mut self) {
        if let Some(table) = &mut self.table {
            table.prev();
            if !table.valid() {
                self.skip_backward();
            }
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableIter::key)
    }

    #[inline]
    fn key_prefix(&self) -> u64 {
        self.table.as_ref().map_or(0, TableIter::key_prefix)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableIter::value)
    }

    #[inline]
    fn code(&self) -> Option<ValueCode<'_>> {
        self.table.as_ref()?.code()
    }

    fn status(&self) -> Result<()> {
        match (&self.error, &self.table) {
            (Some(error), _) => Err(error.duplicate()),
            (None, Some(table)) => table.status(),
            (None, None) => Ok(()),
        }
    }
}

impl RunIter {
    /// Whether the table at `index` holds nothing below the upper bound.
    pub(super) fn begins_past_upper(&self, index: usize) -> bool {
        let (Some(file), Some(upper)) = (self.files.files().get(index), &self.options.upper_bound)
        else {
            return false;
        };
        let order = &self.options.order;
        order.compare(user_key(&file.smallest), upper).is_ge()
    }
}

impl fmt::Debug for RunIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunIter")
            .field("files", &self.files.files().len())
            .field("index", &self.index)
            .field("valid", &self.valid())
            .finish_non_exhaustive()
    }
}

/// Remembers where in a run's range tombstones the last key fell.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTombstoneCursor {
    file: usize,
    fragment: FragmentCursor,
}

impl RunTombstoneCursor {
    /// Stands on the first table that ends at or after `user_key`.
    fn move_to(&mut self, order: &KeyOrder, files: &[Arc<FileMeta>], user_key: &[u8]) {
        let ends_before =
            |file: &Arc<FileMeta>| order.compare(file.largest_user_key(), user_key).is_lt();
        let fits = files.get(self.file).is_some_and(|file| !ends_before(file))
            && self
                .file
                .checked_sub(1)
                .and_then(|before| files.get(before))
                .is_none_or(ends_before);
        if !fits {
            self.file = files.partition_point(ends_before);
            self.fragment = FragmentCursor::default();
        }
    }
}
