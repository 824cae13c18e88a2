//! A sorted run of the layout, and walks within a prefix over it; see [`super`] for the idea.
//!
//! The layout holds its tables open, and they have no range tombstones, so entering one takes a handle and
//! nothing else. All threads count a table's handles in one place. So a cursor keeps those of tables it was in
//! and left: one that is used for walk after walk counts each table once. They keep nothing in memory that the
//! super version, which the cursor holds too, does not.
//!
//! ```text
//! walk within a prefix, each stage over all runs before the next:
//!     prefetch_prefix            find the table, enter it, prefetch the line of its prefix index
//!     prefetch_prefix_records    read that line, prefetch the first records
//!     seek_within                position
//! ```

use std::fmt;
use std::sync::Arc;

use drumlin_base::key::{compare_internal, user_key};
use drumlin_base::{InternalIterator, KeyOrder, PinnedSlice, Result};
use drumlin_table::{KeyHint, PlainTable, PlainTableIter};

use crate::family::super_version::SuperVersion;
use crate::iter::run::{RunIter, RunOptions, RunTables};
use crate::version::FileMeta;

/// The tables of one run of a super version's layout.
pub(crate) struct ResidentTables {
    super_version: Arc<SuperVersion>,
    level: usize,
    /// Its index among the runs of the layout; in L0 also that of its only table.
    run: usize,
    /// The table the cursor is in, meaningless before it entered one.
    entered: usize,
    /// Handles of tables that the cursor was in and left, each at its index in the run.
    left: Vec<Option<Arc<PlainTable>>>,
    /// The table in which the next walk begins, found by its first stage.
    begins_in: Option<usize>,
}

/// The prefix that a walk stays within.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithinPrefix<'a> {
    /// The internal key sought, which begins with the prefix.
    pub target: &'a [u8],
    /// The prefix.
    pub prefix: &'a [u8],
    /// The hint of the prefix.
    pub hint: KeyHint,
}

impl ResidentTables {
    /// The run at `run` of the layout of `super_version`, which is all of `level`, or one table of L0.
    ///
    /// Requires: the super version's tables are laid out.
    pub(crate) fn new(super_version: &Arc<SuperVersion>, level: usize, run: usize) -> Self {
        debug_assert!(super_version.laid_out().is_some());
        Self {
            super_version: Arc::clone(super_version),
            level,
            run,
            entered: 0,
            left: Vec::new(),
            begins_in: None,
        }
    }

    fn table(&self, index: usize) -> &Arc<PlainTable> {
        let layout = self.super_version.laid_out();
        let layout = layout.expect("a super_version that is laid out stays so");
        layout.table(self.run, index)
    }
}

impl RunTables for ResidentTables {
    type Cursor = PlainTableIter;

    #[inline]
    fn files(&self) -> &[Arc<FileMeta>] {
        let files = self.super_version.version.level(self.level);
        match self.level {
            0 => &files[self.run..=self.run],
            _ => files,
        }
    }

    #[inline]
    fn find(&self, order: &KeyOrder, target: &[u8]) -> Option<usize> {
        if self.level > 0 {
            return self
                .super_version
                .version
                .find_file(order, self.level, target);
        }
        let [file] = self.files() else {
            unreachable!("a run of L0 is one table");
        };
        compare_internal(order, &file.largest, target)
            .is_ge()
            .then_some(0)
    }

    fn enter(
        &mut self,
        index: usize,
        cursor: &mut Option<PlainTableIter>,
        options: &RunOptions,
    ) -> Result<()> {
        match cursor {
            None => *cursor = Some(self.table(index).iter(options.table)),
            Some(cursor) => {
                if self.left.is_empty() {
                    self.left.resize(self.files().len(), None);
                }
                let mut table = match self.left[index].take() {
                    Some(table) => table,
                    None => Arc::clone(self.table(index)),
                };
                cursor.switch(&mut table);
                self.left[self.entered] = Some(table);
            }
        }
        self.entered = index;
        Ok(())
    }

    /// The handle stays: it keeps nothing in memory that the super version does not.
    #[inline]
    fn leave(&mut self, cursor: &mut Option<PlainTableIter>) {
        if let Some(cursor) = cursor {
            cursor.leave();
        }
    }

    fn may_contain_prefix(cursor: &PlainTableIter, key: &[u8]) -> Result<bool> {
        Ok(cursor.table().may_contain_prefix(key))
    }

    fn pin_value(cursor: &PlainTableIter) -> PinnedSlice {
        cursor.pin_value()
    }
}

impl RunIter<ResidentTables> {
    /// The first stage of a walk within a prefix: enters the table it begins in, and prefetches the line of its
    /// prefix index.
    #[inline]
    pub(crate) fn prefetch_prefix(&mut self, within: &WithinPrefix<'_>) {
        let index = self.tables.find(&self.options.order, within.target);
        let index = index.filter(|&index| !self.begins_past_upper(index));
        self.tables.begins_in = index;
        if let Some(index) = index
            && let Some(cursor) = self.enter(index)
        {
            cursor.prefetch_prefix(user_key(within.target), within.hint);
        }
    }

    /// The second stage: prefetches the first records.
    #[inline]
    pub(crate) fn prefetch_prefix_records(&self, within: &WithinPrefix<'_>) {
        if let (Some(_), Some(cursor)) = (self.tables.begins_in, &self.cursor) {
            cursor.prefetch_prefix_records(within.hint);
        }
    }

    /// The last stage: as [`InternalIterator::seek`].
    ///
    /// Requires: [`RunIter::prefetch_prefix`] was called for the same walk.
    #[inline]
    pub(crate) fn seek_within(&mut self, within: &WithinPrefix<'_>) {
        self.error = None;
        let Some(index) = self.tables.begins_in.take() else {
            return self.leave();
        };
        if !self.ends_at_a_key(index) {
            return self.seek(within.target);
        }
        let cursor = self.enter(index).expect("tables in memory are open");
        // A table without the prefix ends the walk: its last key is at or after the target, so no later table
        // has any of the prefix.
        let may_follow = cursor.seek_within(within.target, within.prefix, within.hint);
        if may_follow && !self.valid() {
            self.skip_forward();
        }
    }
}

impl fmt::Debug for ResidentTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResidentTables(L{}, run {})", self.level, self.run)
    }
}
