//! One sorted run: tables that do not overlap, walked as one.
//!
//! The cursor enters a table when it comes to it, and never one past the bounds. [`RunTables`] say how:
//! [`OpenedTables`] go through the table cache; tables in memory that are held open need not
//! (`read/resident`).
//!
//! The range tombstones of a table count only within its bounds. So every tombstone that matters is known
//! once every table between the seek and the cursor is open. Not shared between threads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::key::{compare_internal, split_internal, tag_kind, user_key};
use drumlin_base::{
    Error, InternalIterator, KeyOrder, PinnedSlice, Result, SeqNo, ValueCode, ValueKind,
};
use drumlin_fs::FileSystem;
use drumlin_table::{TableIter, TableReadOptions};

use crate::caches::table_cache::TableCache;
use crate::iter::range_tombstone::{Fragment, FragmentCursor};
use crate::version::{FileMeta, Version};

/// The tables of a run, by smallest key.
#[derive(Clone, Debug)]
pub(crate) enum RunFiles {
    /// All tables of a level below L0.
    Level(Arc<Version>, usize),
    /// These tables: a compaction's input, or one table of L0.
    List(Vec<Arc<FileMeta>>),
}

impl RunFiles {
    #[inline]
    fn files(&self) -> &[Arc<FileMeta>] {
        match self {
            Self::Level(version, level) => version.level(*level),
            Self::List(files) => files,
        }
    }

    /// Index of the first table whose largest key is at or after `target`.
    fn find(&self, order: &KeyOrder, target: &[u8]) -> Option<usize> {
        match self {
            Self::Level(version, level) => version.find_file(order, *level, target),
            Self::List(files) => {
                let at = files
                    .partition_point(|file| compare_internal(order, &file.largest, target).is_lt());
                (at < files.len()).then_some(at)
            }
        }
    }
}

/// How a run is read.
#[derive(Clone, Debug)]
pub(crate) struct RunOptions {
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

/// The tables of a run, and how a cursor enters one of them.
pub(crate) trait RunTables {
    /// Walks one table.
    type Cursor: InternalIterator;

    /// The tables, by smallest key.
    fn files(&self) -> &[Arc<FileMeta>];

    /// Index of the first table whose largest key is at or after `target`.
    fn find(&self, order: &KeyOrder, target: &[u8]) -> Option<usize>;

    /// Puts `cursor` into the table at `index`, where it is not positioned yet.
    ///
    /// # Errors
    /// Why the table could not be opened; there is no cursor then.
    fn enter(
        &mut self,
        index: usize,
        cursor: &mut Option<Self::Cursor>,
        options: &RunOptions,
    ) -> Result<()>;

    /// Drops the handles that `cursor` holds; it is not valid any more.
    fn leave(&mut self, cursor: &mut Option<Self::Cursor>);

    /// Whether the table under `cursor` may hold a key with `key`'s prefix.
    ///
    /// # Errors
    /// `Corruption`, `Io` while loading a part of a filter.
    fn may_contain_prefix(cursor: &Self::Cursor, key: &[u8]) -> Result<bool>;

    /// The value under `cursor` without a copy.
    fn pin_value(cursor: &Self::Cursor) -> PinnedSlice;
}

/// Tables that are opened through the table cache.
#[derive(Debug)]
pub(crate) struct OpenedTables {
    files: RunFiles,
    /// Opens a second handle of each table, for this cursor alone to read ahead from.
    own_files: Option<Arc<dyn FileSystem>>,
    /// Whether a table with range tombstones was opened.
    has_tombstones: bool,
}

impl RunTables for OpenedTables {
    type Cursor = TableIter;

    #[inline]
    fn files(&self) -> &[Arc<FileMeta>] {
        self.files.files()
    }

    fn find(&self, order: &KeyOrder, target: &[u8]) -> Option<usize> {
        self.files.find(order, target)
    }

    fn enter(
        &mut self,
        index: usize,
        cursor: &mut Option<TableIter>,
        options: &RunOptions,
    ) -> Result<()> {
        *cursor = None;
        let file = &self.files.files()[index];
        let table = options.tables.find_for(file, &options.table)?;
        if file.fragments_of(&options.order, &table).is_some() {
            self.has_tombstones = true;
            // Read by the one thread that owns this cursor and its siblings.
            options.tombstones_seen.store(true, Ordering::Relaxed);
        }
        let mut table = table.iter(options.table);
        if let Some(files) = &self.own_files {
            table.read_through(files.open_direct(&options.tables.path(file.number))?);
        }
        *cursor = Some(table);
        Ok(())
    }

    fn leave(&mut self, cursor: &mut Option<TableIter>) {
        *cursor = None;
    }

    fn may_contain_prefix(cursor: &TableIter, key: &[u8]) -> Result<bool> {
        cursor.may_contain_prefix(key)
    }

    fn pin_value(cursor: &TableIter) -> PinnedSlice {
        cursor.pin_value()
    }
}

/// A cursor over one sorted run.
pub(crate) struct RunIter<T: RunTables = OpenedTables> {
    pub(crate) tables: T,
    pub(crate) options: Arc<RunOptions>,
    /// The table `cursor` is in, meaningless while that is `None`.
    index: usize,
    pub(crate) cursor: Option<T::Cursor>,
    pub(crate) error: Option<Error>,
    /// The walk stays within the prefix of the key it seeks, so that a table whose prefix filter
    /// does not know that prefix ends it.
    within_prefix: bool,
}

impl RunIter {
    /// A cursor over `files`.
    pub(crate) fn new(files: RunFiles, options: Arc<RunOptions>) -> Self {
        let tables = OpenedTables {
            files,
            own_files: None,
            has_tombstones: false,
        };
        Self::over(tables, options)
    }

    /// The same, reading ahead from files of its own, past the page cache where `files` can.
    #[must_use]
    pub(crate) fn directly(mut self, files: Arc<dyn FileSystem>) -> Self {
        self.tables.own_files = Some(files);
        self
    }

    /// The newest deletion of `user_key` by this run's range tombstones that a reader at `read_seqno`
    /// sees, and the fragment it belongs to.
    ///
    /// Requires: the cursor has walked over `user_key` since its last seek.
    pub(crate) fn covering(
        &self,
        cursor: &mut RunTombstoneCursor,
        user_key: &[u8],
        read_seqno: SeqNo,
    ) -> Option<(SeqNo, Fragment<'_>)> {
        if !self.tables.has_tombstones {
            return None;
        }
        let order = &self.options.order;
        let files = self.tables.files();
        cursor.move_to(order, files, user_key);
        let mut newest = None;
        // A user key may end one table and begin the next, so the tombstones of both count.
        for (offset, file) in files[cursor.file..].iter().enumerate() {
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
            let seqno = fragment.newest_at(read_seqno);
            if seqno > newest.map_or(0, |(newest, _)| newest) {
                newest = Some((seqno, fragment));
            }
        }
        newest
    }
}

impl<T: RunTables> RunIter<T> {
    /// A cursor over `tables`.
    pub(crate) fn over(tables: T, options: Arc<RunOptions>) -> Self {
        Self {
            tables,
            options,
            index: 0,
            cursor: None,
            error: None,
            within_prefix: false,
        }
    }

    /// Reads with `options` from now on.
    ///
    /// Requires: they differ from the former in bounds alone; the cursor is positioned anew.
    pub(crate) fn set_options(&mut self, options: &Arc<RunOptions>) {
        self.options = Arc::clone(options);
    }

    /// Sets whether the walk stays within the prefix of the key it seeks.
    #[inline]
    pub(crate) fn stay_within_prefix(&mut self, only: bool) {
        self.within_prefix = only;
    }

    /// The value under the cursor without a copy.
    ///
    /// Requires: `valid()`.
    pub(crate) fn pin_value(&self) -> PinnedSlice {
        T::pin_value(self.entered())
    }

    /// The cursor in the present table.
    ///
    /// Requires: `valid()`.
    #[inline]
    fn entered(&self) -> &T::Cursor {
        self.cursor.as_ref().expect("the caller found it valid")
    }

    /// Counts `entries` of the table under the cursor that a walk stepped over in vain.
    pub(crate) fn note_dead_walked(&self, entries: u32) {
        if let Some(file) = self.tables.files().get(self.index) {
            file.note_dead_walked(u64::from(entries));
        }
    }

    /// Charges `bytes` of lost reads to the table under the cursor.
    pub(crate) fn charge_reads(&self, bytes: u64) {
        if let Some(file) = self.tables.files().get(self.index) {
            file.charge_reads(bytes);
        }
    }

    /// Enters the table at `index`, unless the cursor is in it already. `None` when it cannot be opened, or the
    /// run has no tables.
    pub(crate) fn enter(&mut self, index: usize) -> Option<&mut T::Cursor> {
        if self.index != index || self.cursor.is_none() {
            if self.tables.files().is_empty() {
                return None;
            }
            if let Err(error) = self.tables.enter(index, &mut self.cursor, &self.options) {
                self.error = Some(error);
                return None;
            }
            self.index = index;
        }
        self.cursor.as_mut()
    }

    /// Whether the table at `index`, or one after it, may hold a key at or after `target` with its prefix. True
    /// unless the walk stays within a prefix.
    fn may_hold_prefix(&mut self, index: usize, target: &[u8]) -> bool {
        if !self.within_prefix || !self.ends_at_a_key(index) {
            return true;
        }
        let answer = match self.enter(index) {
            Some(cursor) => T::may_contain_prefix(cursor, user_key(target)),
            None => return true,
        };
        answer.unwrap_or_else(|error| {
            self.error = Some(error);
            false
        })
    }

    /// Whether the table at `index` is bounded by its last key. Where a range tombstone ends the
    /// table, its last key is before that end, and the next table may begin with a key of its prefix.
    pub(crate) fn ends_at_a_key(&self, index: usize) -> bool {
        self.tables.files().get(index).is_some_and(|file| {
            let tag = split_internal(&file.largest).map_or(0, |(_, tag)| tag);
            tag_kind(tag) != ValueKind::RangeDeletion as u8
        })
    }

    /// Leaves the present table and stands nowhere.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.tables.leave(&mut self.cursor);
    }

    /// Goes on to the first entry of the tables that follow, while the present one has no more.
    #[cold]
    pub(crate) fn skip_forward(&mut self) {
        while self.is_exhausted() {
            let next = self.index + 1;
            let within = self.tables.files().get(next).is_some_and(|file| {
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
                self.tables.files().get(previous).is_some_and(|file| {
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
        self.cursor
            .as_ref()
            .is_some_and(|table| !table.valid() && table.status().is_ok())
    }
}

impl<T: RunTables> InternalIterator for RunIter<T> {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(T::Cursor::valid)
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
        let Some(last) = self.tables.files().len().checked_sub(1) else {
            return;
        };
        if let Some(table) = self.enter(last) {
            table.seek_to_last();
        }
        self.skip_backward();
    }

    fn seek(&mut self, target: &[u8]) {
        self.error = None;
        let index = self.tables.find(&self.options.order, target);
        let Some(index) = index.filter(|&index| !self.begins_past_upper(index)) else {
            self.leave();
            return;
        };
        let may_hold = self.may_hold_prefix(index, target);
        if let Some(table) = self.enter(index).filter(|_| may_hold) {
            table.seek(target);
        }
        if !may_hold {
            // The table ends at or after `target` and has none of its prefix, so no later table has any.
            self.leave();
        } else if !self.valid() {
            self.skip_forward();
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.error = None;
        let order = &self.options.order;
        let files = self.tables.files();
        let after = match self.tables.find(order, target) {
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
        if let Some(table) = &mut self.cursor {
            table.next();
            if !table.valid() {
                self.skip_forward();
            }
        }
    }

    #[inline]
    fn prev(&mut self) {
        if let Some(table) = &mut self.cursor {
            table.prev();
            if !table.valid() {
                self.skip_backward();
            }
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.entered().key()
    }

    #[inline]
    fn key_prefix(&self) -> u64 {
        self.entered().key_prefix()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.entered().value()
    }

    #[inline]
    fn code(&self) -> Option<ValueCode<'_>> {
        self.entered().code()
    }

    fn status(&self) -> Result<()> {
        match (&self.error, &self.cursor) {
            (Some(error), _) => Err(error.duplicate()),
            (None, Some(table)) => table.status(),
            (None, None) => Ok(()),
        }
    }
}

impl<T: RunTables> RunIter<T> {
    /// Whether the table at `index` holds nothing below the upper bound.
    pub(crate) fn begins_past_upper(&self, index: usize) -> bool {
        let (Some(file), Some(upper)) = (self.tables.files().get(index), &self.options.upper_bound)
        else {
            return false;
        };
        let order = &self.options.order;
        order.compare(user_key(&file.smallest), upper).is_ge()
    }
}

impl<T: RunTables> fmt::Debug for RunIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunIter")
            .field("files", &self.tables.files().len())
            .field("index", &self.index)
            .field("valid", &self.valid())
            .finish_non_exhaustive()
    }
}

/// Remembers where in a run's range tombstones the last key fell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTombstoneCursor {
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
