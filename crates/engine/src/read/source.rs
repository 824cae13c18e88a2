//! The concrete sources a reader merges, newest first: memtables, tables of L0, levels.

use std::sync::Arc;

use drumlin_base::limits::LEVELS;
use drumlin_base::{InternalIterator, KeyOrder, PinnedSlice, Result, SeqNo};
use drumlin_memtable::MemtableIter;

use super::resident::{ResidentTables, WithinPrefix};
use crate::family::super_version::SuperVersion;
use crate::iter::run::{RunFiles, RunIter, RunOptions, RunTombstoneCursor};
use crate::version::Version;

/// One source of a family's entries. Its cursors are not boxed: a handful are in one vector, and a box would cost
/// every step a cache miss.
#[derive(Debug)]
pub(super) enum Source {
    /// A memtable, and whether it had range tombstones when the cursor was made.
    Memtable(MemtableIter, bool),
    /// A level, or one table of L0.
    Run(RunIter),
    /// The same, of a layout in memory.
    Resident(RunIter<ResidentTables>),
}

/// Remembers where in a source's range tombstones the last key fell.
#[derive(Clone, Debug, Default)]
pub(super) struct TombstoneCursor {
    memtable: LastSpan,
    run: RunTombstoneCursor,
}

/// The last span that a memtable told of. It stays true: whoever walks at a snapshot has seen all that was
/// added up to there.
#[derive(Clone, Debug, Default)]
struct LastSpan {
    /// `None` before the first.
    seqno: Option<SeqNo>,
    begin: Bound,
    end: Bound,
}

/// A key, in a buffer that is used again; or no bound.
#[derive(Clone, Debug, Default)]
struct Bound {
    is_there: bool,
    key: Vec<u8>,
}

impl Bound {
    fn set(&mut self, key: Option<&[u8]>) {
        self.is_there = key.is_some();
        self.key.clear();
        self.key.extend_from_slice(key.unwrap_or_default());
    }
}

impl LastSpan {
    /// The tombstone over `user_key`, with the bounds of what is known; 0 when there is none.
    fn covering(
        &mut self,
        memtable: &MemtableIter,
        order: &KeyOrder,
        user_key: &[u8],
        read_seqno: SeqNo,
    ) -> SeqNo {
        if let Some(seqno) = self.seqno
            && self.holds(order, user_key)
        {
            return seqno;
        }
        let span = memtable.covering(user_key, read_seqno);
        self.begin.set(span.begin);
        self.end.set(span.end);
        *self.seqno.insert(span.seqno)
    }

    fn holds(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let (begin, end) = (&self.begin, &self.end);
        (!begin.is_there || order.compare(&begin.key, user_key).is_le())
            && (!end.is_there || order.compare(user_key, &end.key).is_lt())
    }
}

/// A deletion of a key by range tombstones of one source, and how far it is known to reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered<'a> {
    /// The newest deletion that the reader sees.
    pub seqno: SeqNo,
    /// First user key of the range, all of which was deleted then.
    pub begin: &'a [u8],
    /// First user key after the range.
    pub end: &'a [u8],
}

impl Source {
    /// Every source of `super_version`, newest first.
    pub(super) fn all(super_version: &SuperVersion, options: &Arc<RunOptions>) -> Vec<Self> {
        let memtables = super_version.memtables().enumerate();
        let filled = memtables.filter(|(_, memtable)| !memtable.is_empty());
        let mut sources = Vec::with_capacity(1 + super_version.immutables.len() + LEVELS);
        sources.extend(filled.filter_map(|(index, _)| Self::memtable(super_version, index)));
        sources.extend(Self::of_version(&super_version.version, options));
        sources
    }

    /// The same, of a super version whose tables are laid out in memory. Includes empty memtables, so that later writes
    /// to the super version show.
    pub(super) fn all_resident(
        super_version: &Arc<SuperVersion>,
        options: &Arc<RunOptions>,
    ) -> Vec<Self> {
        let memtables = 0..1 + super_version.immutables.len();
        let runs = runs_of(&super_version.version)
            .enumerate()
            .map(|(run, level)| {
                let tables = ResidentTables::new(super_version, level, run);
                Self::Resident(RunIter::over(tables, Arc::clone(options)))
            });
        let memtables = memtables.filter_map(|index| Self::memtable(super_version, index));
        memtables.chain(runs).collect()
    }

    fn memtable(super_version: &SuperVersion, index: usize) -> Option<Self> {
        let memtable = super_version.memtables().nth(index)?;
        let has_tombstones = memtable.range_tombstone_count() > 0;
        Some(Self::Memtable(memtable.iter(), has_tombstones))
    }

    /// The sorted runs of `version`, newest first.
    fn of_version(version: &Arc<Version>, options: &Arc<RunOptions>) -> impl Iterator<Item = Self> {
        let mut newest = version.level(0).iter();
        runs_of(version).map(move |level| {
            let files = match (level, newest.next()) {
                (0, Some(file)) => RunFiles::List(vec![Arc::clone(file)]),
                (level, _) => RunFiles::Level(Arc::clone(version), level),
            };
            Self::Run(RunIter::new(files, Arc::clone(options)))
        })
    }

    /// Reads with `options` from now on. See [`RunIter::set_options`] for the requirements.
    pub(super) fn set_options(&mut self, options: &Arc<RunOptions>) {
        match self {
            Self::Memtable(..) => {}
            Self::Run(iter) => iter.set_options(options),
            Self::Resident(iter) => iter.set_options(options),
        }
    }

    /// The first stage of a walk within a prefix over tables in memory, see [`super::resident`].
    #[inline]
    pub(super) fn prefetch_prefix(&mut self, within: &WithinPrefix<'_>) {
        if let Self::Resident(iter) = self {
            iter.prefetch_prefix(within);
        }
    }

    /// The second stage; a memtable is positioned while the lines that others prefetched arrive.
    #[inline]
    pub(super) fn prefetch_prefix_records(&mut self, within: &WithinPrefix<'_>) {
        match self {
            Self::Memtable(iter, _) => iter.seek(within.target),
            Self::Run(_) => {}
            Self::Resident(iter) => iter.prefetch_prefix_records(within),
        }
    }

    /// The last stage.
    #[inline]
    pub(super) fn seek_within(&mut self, within: &WithinPrefix<'_>) {
        match self {
            Self::Memtable(..) => {}
            Self::Run(iter) => iter.seek(within.target),
            Self::Resident(iter) => iter.seek_within(within),
        }
    }

    /// The value under the cursor without a copy.
    ///
    /// Requires: `valid()`.
    pub(super) fn pin_value(&self) -> PinnedSlice {
        match self {
            Self::Memtable(iter, _) => iter.pin_value(),
            Self::Run(iter) => iter.pin_value(),
            Self::Resident(iter) => iter.pin_value(),
        }
    }

    /// Counts `entries` of this source, around the cursor, that a walk stepped over in vain.
    pub(super) fn note_dead_walked(&self, entries: u32) {
        match self {
            Self::Memtable(iter, _) => iter.note_dead_walked(entries as usize),
            Self::Run(iter) => iter.note_dead_walked(entries),
            Self::Resident(iter) => iter.note_dead_walked(entries),
        }
    }

    /// Charges `bytes` of lost reads to the table under the cursor.
    pub(super) fn charge_reads(&self, bytes: u64) {
        match self {
            Self::Memtable(..) => {}
            Self::Run(iter) => iter.charge_reads(bytes),
            Self::Resident(iter) => iter.charge_reads(bytes),
        }
    }

    /// From now on the walk wants only entries of the prefix sought, or again all. With `only`, a seek may
    /// find nothing although other entries follow, where the source has none with that prefix.
    #[inline]
    pub(super) fn stay_within_prefix(&mut self, only: bool) {
        match self {
            Self::Memtable(iter, _) => iter.stay_within_prefix(only),
            Self::Run(iter) => iter.stay_within_prefix(only),
            Self::Resident(iter) => iter.stay_within_prefix(only),
        }
    }

    /// Whether it is a memtable.
    pub(super) fn is_memtable(&self) -> bool {
        matches!(self, Self::Memtable(..))
    }

    /// Whether it is known to have range tombstones. A run learns of its own as it opens tables.
    pub(super) fn has_tombstones(&self) -> bool {
        matches!(self, Self::Memtable(_, true))
    }

    /// The newest deletion of `user_key` by this source's range tombstones that a reader at
    /// `read_seqno` sees. See [`RunIter::covering`] for the requirements.
    ///
    /// Requires: `cursor` is asked with one `read_seqno` only.
    pub(super) fn covering<'a>(
        &'a self,
        order: &KeyOrder,
        cursor: &'a mut TombstoneCursor,
        user_key: &[u8],
        read_seqno: SeqNo,
    ) -> Option<Covered<'a>> {
        match self {
            Self::Memtable(_, false) => None,
            Self::Memtable(iter, true) => {
                let last = &mut cursor.memtable;
                match last.covering(iter, order, user_key, read_seqno) {
                    0 => None,
                    seqno => Some(Covered {
                        seqno,
                        begin: &last.begin.key,
                        end: &last.end.key,
                    }),
                }
            }
            Self::Run(iter) => {
                let covering = iter.covering(&mut cursor.run, user_key, read_seqno);
                covering.map(|(seqno, fragment)| Covered {
                    seqno,
                    begin: fragment.begin,
                    end: fragment.end,
                })
            }
            // Tables with range tombstones are not laid out.
            Self::Resident(_) => None,
        }
    }
}

/// The level of each sorted run of `version`, newest first.
fn runs_of(version: &Version) -> impl Iterator<Item = usize> {
    let newest = version.level(0).iter().map(|_| 0);
    newest.chain((1..LEVELS).filter(|&level| !version.level(level).is_empty()))
}

impl InternalIterator for Source {
    #[inline]
    fn valid(&self) -> bool {
        match self {
            Self::Memtable(iter, _) => iter.valid(),
            Self::Run(iter) => iter.valid(),
            Self::Resident(iter) => iter.valid(),
        }
    }

    fn seek_to_first(&mut self) {
        match self {
            Self::Memtable(iter, _) => iter.seek_to_first(),
            Self::Run(iter) => iter.seek_to_first(),
            Self::Resident(iter) => iter.seek_to_first(),
        }
    }

    fn seek_to_last(&mut self) {
        match self {
            Self::Memtable(iter, _) => iter.seek_to_last(),
            Self::Run(iter) => iter.seek_to_last(),
            Self::Resident(iter) => iter.seek_to_last(),
        }
    }

    fn seek(&mut self, target: &[u8]) {
        match self {
            Self::Memtable(iter, _) => iter.seek(target),
            Self::Run(iter) => iter.seek(target),
            Self::Resident(iter) => iter.seek(target),
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        match self {
            Self::Memtable(iter, _) => iter.seek_for_prev(target),
            Self::Run(iter) => iter.seek_for_prev(target),
            Self::Resident(iter) => iter.seek_for_prev(target),
        }
    }

    #[inline]
    fn next(&mut self) {
        match self {
            Self::Memtable(iter, _) => iter.next(),
            Self::Run(iter) => iter.next(),
            Self::Resident(iter) => iter.next(),
        }
    }

    #[inline]
    fn prev(&mut self) {
        match self {
            Self::Memtable(iter, _) => iter.prev(),
            Self::Run(iter) => iter.prev(),
            Self::Resident(iter) => iter.prev(),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            Self::Memtable(iter, _) => iter.key(),
            Self::Run(iter) => iter.key(),
            Self::Resident(iter) => iter.key(),
        }
    }

    #[inline]
    fn key_prefix(&self) -> u64 {
        match self {
            Self::Memtable(iter, _) => iter.key_prefix(),
            Self::Run(iter) => iter.key_prefix(),
            Self::Resident(iter) => iter.key_prefix(),
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self {
            Self::Memtable(iter, _) => iter.value(),
            Self::Run(iter) => iter.value(),
            Self::Resident(iter) => iter.value(),
        }
    }

    fn status(&self) -> Result<()> {
        match self {
            Self::Memtable(iter, _) => iter.status(),
            Self::Run(iter) => iter.status(),
            Self::Resident(iter) => iter.status(),
        }
    }
}
