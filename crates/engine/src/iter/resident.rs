//! A run whose tables a super version has laid out in memory, and walks within a prefix over it.
//!
//! The layout holds the tables open, and they have no range tombstones, so entering one takes a handle and
//! nothing else. A handle is counted where all threads count it; so a cursor keeps those of tables it was in
//! and left ([`Visited`]), and one that is used for walk after walk counts each table once. They keep
//! nothing in memory that the super version, which the cursor holds too, does not.
//!
//! A walk within a prefix ([`RunIter::ask_prefix`]) is begun in steps, each over all runs before the next, so
//! that they wait for memory together: ask for the line of the index, for the records, position.

use std::sync::Arc;

use drumlin_base::key::{compare_internal, user_key};
use drumlin_base::{InternalIterator, KeyOrder};
use drumlin_table::{KeyHint, PlainTable, TableIter};

use super::run::{RunFiles, RunIter};
use crate::family::super_version::SuperVersion;
use crate::resident_runs::ResidentRuns;
use crate::version::FileMeta;

/// One run of a super version's layout.
#[derive(Clone, Debug)]
pub struct ResidentFiles {
    view: Arc<SuperVersion>,
    level: usize,
    /// Its place among the runs of the layout, and in L0 that of its only table.
    run: usize,
}

impl ResidentFiles {
    /// The run at `run` of the layout of `view`, which is all of `level`, or one table of L0.
    pub fn new(view: &Arc<SuperVersion>, level: usize, run: usize) -> Self {
        let view = Arc::clone(view);
        Self { view, level, run }
    }

    #[inline]
    pub(super) fn files(&self) -> &[Arc<FileMeta>] {
        let files = self.view.version.level(self.level);
        match self.level {
            0 => files.get(self.run..=self.run).unwrap_or_default(),
            _ => files,
        }
    }

    /// Index of the first table whose largest key is at or after `target`.
    #[inline]
    pub(super) fn find(&self, order: &KeyOrder, target: &[u8]) -> Option<usize> {
        if self.level > 0 {
            return self.view.version.find_file(order, self.level, target);
        }
        let file = self.files().first()?;
        compare_internal(order, &file.largest, target)
            .is_ge()
            .then_some(0)
    }

    fn table(&self, index: usize) -> Option<&Arc<PlainTable>> {
        let layout: &ResidentRuns = self.view.laid_out()?;
        layout.table(self.run, index)
    }
}

/// Handles of tables that a cursor was in, each at its index in the run.
#[derive(Debug, Default)]
pub struct Visited {
    tables: Vec<Option<Arc<PlainTable>>>,
    /// The table that the walk about to begin was found to begin in.
    asked: Option<usize>,
}

/// The prefix that a walk stays within.
#[derive(Clone, Copy, Debug)]
pub struct WithinPrefix<'a> {
    /// The internal key sought, which begins with the prefix.
    pub target: &'a [u8],
    /// The prefix.
    pub prefix: &'a [u8],
    /// The hint of the prefix.
    pub hint: KeyHint,
}

impl RunIter {
    /// Opens the table at `index`, which is another than the present one.
    pub(super) fn enter_resident(&mut self, index: usize) -> Option<&mut TableIter> {
        let RunFiles::Resident(files) = &self.files else {
            return None;
        };
        let Some(TableIter::Plain(cursor)) = &mut self.table else {
            let table = files.table(index)?.iter(self.options.table);
            self.index = index;
            return Some(self.table.insert(TableIter::Plain(table)));
        };
        let visited = &mut self.visited.tables;
        if visited.is_empty() {
            visited.resize(files.files().len(), None);
        }
        let known = visited.get_mut(index).and_then(Option::take);
        let mut table = match known {
            Some(table) => table,
            None => Arc::clone(files.table(index)?),
        };
        cursor.switch(&mut table);
        if let Some(place) = visited.get_mut(self.index) {
            *place = Some(table);
        }
        self.index = index;
        self.table.as_mut()
    }

    /// The first step of a walk within a prefix: finds the table it begins in, and asks it for the line of
    /// its index.
    #[inline]
    pub fn ask_prefix(&mut self, within: &WithinPrefix<'_>) {
        let index = self.files.find(&self.options.order, within.target);
        self.visited.asked = index.filter(|&index| !self.begins_past_upper(index));
        if let (Some(index), RunFiles::Resident(_)) = (self.visited.asked, &self.files)
            && let Some(TableIter::Plain(table)) = self.enter(index)
        {
            table
                .table()
                .ask_prefix(user_key(within.target), within.hint);
        }
    }

    /// The second step: asks for the first records.
    #[inline]
    pub fn ask_prefix_records(&self, within: &WithinPrefix<'_>) {
        if let (Some(_), Some(TableIter::Plain(table))) = (self.visited.asked, &self.table) {
            table.table().ask_prefix_records(within.hint);
        }
    }

    /// The last step: as [`InternalIterator::seek`].
    ///
    /// Requires: [`RunIter::ask_prefix`] was called for the same walk.
    #[inline]
    pub fn seek_within(&mut self, within: &WithinPrefix<'_>) {
        self.error = None;
        let Some(index) = self.visited.asked.take() else {
            return self.leave();
        };
        let bounded = self.ends_at_a_key(index);
        if bounded && let Some(TableIter::Plain(table)) = self.enter(index) {
            // None of it here, and the table's last key is at or after `target`: nor is there in a later one.
            if table.seek_within(within.target, within.prefix, within.hint) && !self.valid() {
                self.skip_forward();
            }
            return;
        }
        self.seek(within.target);
    }
}
