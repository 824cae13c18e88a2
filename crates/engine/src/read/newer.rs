//! Whether any key of a range was written to after a moment, for transactions that lock ranges.
//!
//! Only memtables and tables that have something newer are read, and of those the range alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drumlin_base::key::{SEEK_KIND, append_internal, split_internal, tag_seqno};
use drumlin_base::limits::LEVELS;
use drumlin_base::{Error, InternalIterator, KeyOrder, Result, SeqNo};
use drumlin_memtable::Memtable;
use drumlin_table::TableReadOptions;

use super::context::ReadView;
use crate::iter::run::{RunFiles, RunIter, RunOptions};
use crate::version::FileMeta;

/// Keys from `begin` up to, not including, `end`, in a family's order. `None` is unbounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyInterval<'a> {
    /// The first key.
    pub(crate) begin: Option<&'a [u8]>,
    /// The first key past it.
    pub(crate) end: Option<&'a [u8]>,
}

impl<'a> KeyInterval<'a> {
    fn ends_before(&self, order: &KeyOrder, key: &[u8]) -> bool {
        self.end.is_some_and(|end| order.compare(end, key).is_le())
    }

    fn begins_after(&self, order: &KeyOrder, key: &[u8]) -> bool {
        let begin = self.begin;
        begin.is_some_and(|begin| order.compare(key, begin).is_lt())
    }

    /// The first key of both this range and one that begins at `begin` and ends before `end`.
    fn meet(&self, order: &KeyOrder, begin: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
        let from = match self.begin {
            Some(own) if order.compare(own, begin).is_gt() => own,
            _ => begin,
        };
        let is_there = order.compare(from, end).is_lt() && !self.ends_before(order, from);
        is_there.then_some(from)
    }
}

/// A search for what is newer than `than` in `range`.
struct Search<'a> {
    read: ReadView<'a>,
    range: KeyInterval<'a>,
    than: SeqNo,
}

/// A key of `range` that has an entry, be it a deletion or a range deletion, newer than `than` among those that `read`
/// sees. `None` when there is none, or when a compaction dropped it together with all that the key had at `than`.
///
/// # Errors
/// As of a get.
pub(crate) fn newer_in_range(
    read: ReadView<'_>,
    range: KeyInterval<'_>,
    than: SeqNo,
    options: &TableReadOptions,
) -> Result<Option<Vec<u8>>> {
    let search = Search { read, range, than };
    for memtable in read.super_version.memtables() {
        if let Some(key) = search.in_memtable(memtable)? {
            return Ok(Some(key));
        }
    }
    let run = Arc::new(RunOptions {
        order: read.context.order.clone(),
        tables: Arc::clone(&read.context.tables),
        table: *options,
        lower_bound: range.begin.map(Arc::from),
        upper_bound: range.end.map(Arc::from),
        tombstones_seen: Arc::new(AtomicBool::new(false)),
    });
    for level in 0..LEVELS {
        for file in read.super_version.version.level(level) {
            if search.may_be_in(file)
                && let Some(key) = search.in_table(file, &run)?
            {
                return Ok(Some(key));
            }
        }
    }
    Ok(None)
}

impl Search<'_> {
    fn order(&self) -> &KeyOrder {
        &self.read.context.order
    }

    fn is_newer(&self, seqno: SeqNo) -> bool {
        seqno > self.than && seqno <= self.read.seqno
    }

    fn may_be_in(&self, file: &FileMeta) -> bool {
        let order = self.order();
        file.largest_seqno > self.than
            && !self.range.ends_before(order, file.smallest_user_key())
            && !self.range.begins_after(order, file.largest_user_key())
    }

    fn in_memtable(&self, memtable: &Arc<Memtable>) -> Result<Option<Vec<u8>>> {
        if memtable.range_tombstone_count() > 0
            && let Some(key) = self.deleted_in(memtable)
        {
            return Ok(Some(key));
        }
        self.in_entries(&mut memtable.iter())
    }

    /// A key of the range under one of the memtable's newer range deletions.
    fn deleted_in(&self, memtable: &Memtable) -> Option<Vec<u8>> {
        let order = self.order();
        let Some(begin) = self.range.begin else {
            // No key is the first, so no walk begins there.
            let all = memtable.range_tombstones().into_iter();
            let mut newer = all.filter(|tombstone| self.is_newer(tombstone.seqno));
            return newer.find_map(|tombstone| {
                let key = self.range.meet(order, &tombstone.begin, &tombstone.end);
                key.map(<[u8]>::to_vec)
            });
        };
        let mut at = begin;
        loop {
            let span = memtable.covering(at, self.read.seqno);
            if self.is_newer(span.seqno) {
                return Some(at.to_vec());
            }
            at = span.end.filter(|end| !self.range.ends_before(order, end))?;
        }
    }

    fn in_table(&self, file: &Arc<FileMeta>, run: &Arc<RunOptions>) -> Result<Option<Vec<u8>>> {
        let table = self.read.context.tables.find_for(file, &run.table)?;
        let order = self.order();
        if let Some(fragments) = file.fragments_of(order, &table) {
            let newer = |seqno| self.is_newer(seqno);
            let mut found = fragments.iter().filter_map(|fragment| {
                let key = self.range.meet(order, fragment.begin, fragment.end)?;
                newer(fragment.newest_at(self.read.seqno)).then_some(key)
            });
            if let Some(key) = found.next() {
                return Ok(Some(key.to_vec()));
            }
        }
        let files = RunFiles::List(vec![Arc::clone(file)]);
        self.in_entries(&mut RunIter::new(files, Arc::clone(run)))
    }

    /// The first key of the range with a newer entry under `cursor`.
    fn in_entries(&self, cursor: &mut impl InternalIterator) -> Result<Option<Vec<u8>>> {
        match self.range.begin {
            Some(begin) => {
                let mut target = Vec::new();
                append_internal(&mut target, begin, self.read.seqno, SEEK_KIND);
                cursor.seek(&target);
            }
            None => cursor.seek_to_first(),
        }
        while cursor.valid() {
            let short = || Error::corruption("internal key shorter than its tag");
            let (key, tag) = split_internal(cursor.key()).ok_or_else(short)?;
            if self.range.ends_before(self.order(), key) {
                break;
            }
            if self.is_newer(tag_seqno(tag)) {
                return Ok(Some(key.to_vec()));
            }
            cursor.next();
        }
        cursor.status()?;
        Ok(None)
    }
}
