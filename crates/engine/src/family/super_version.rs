//! Everything a reader of one family needs, pinned together.
//!
//! A [`SuperVersion`] is immutable but for its caches. Writers of the tree (rotate, flush,
//! compaction) install a new one; readers take the present one without a lock and without touching
//! a shared counter.
//!
//! A reader without a snapshot takes the super version first and the published sequence number
//! second. The other way round, a flush and a compaction in between could drop the very versions
//! that the older number still needs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use drumlin_base::bytes::{HazardGuard, HazardPtr, Retired};
use drumlin_base::{KeyOrder, SeqNo};
use drumlin_memtable::Memtable;

use crate::caches::table_cache::TableCache;
use crate::read::resident::layout::ResidentRuns;
use crate::version::Version;

/// The memtables and the tables of one family at one moment.
pub struct SuperVersion {
    /// Takes writes.
    pub memtable: Arc<Memtable>,
    /// Full and waiting for their flush, newest first.
    pub immutables: Vec<Arc<Memtable>>,
    /// The tables.
    pub version: Arc<Version>,
    /// Counts up with every install.
    pub number: u64,
    /// Made when first asked for.
    resident_runs: OnceLock<Option<ResidentRuns>>,
}

impl SuperVersion {
    /// Pins these together.
    pub fn new(
        memtable: Arc<Memtable>,
        immutables: Vec<Arc<Memtable>>,
        version: Arc<Version>,
        number: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            resident_runs: OnceLock::new(),
            memtable,
            immutables,
            version,
            number,
        })
    }

    /// One without an entry, for readers of a family of which nothing is known yet.
    pub(crate) fn empty(order: KeyOrder) -> Arc<Self> {
        let memtable = Arc::new(Memtable::new(order));
        Self::new(memtable, Vec::new(), Arc::new(Version::empty()), 0)
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.memtable).chain(&self.immutables)
    }

    /// The tables laid out for lookups in memory, if they can be: all of them must be open. That is
    /// found out once, by the first that asks, or by several at a time.
    #[inline]
    pub fn resident_runs(&self, order: &KeyOrder, tables: &TableCache) -> Option<&ResidentRuns> {
        match self.resident_runs.get() {
            Some(known) => known.as_ref(),
            None => self.lay_out(order, tables),
        }
    }

    /// The layout that [`SuperVersion::resident_runs`] made; `None` also where it was never called.
    #[inline]
    pub fn laid_out(&self) -> Option<&ResidentRuns> {
        self.resident_runs.get()?.as_ref()
    }

    #[cold]
    fn lay_out(&self, order: &KeyOrder, tables: &TableCache) -> Option<&ResidentRuns> {
        // Before the cell is touched: this takes locks, and others must not wait in the cell meanwhile.
        let open = |file: &_| tables.find_open(file);
        let made = ResidentRuns::of(&self.version, order, tables.laid_out_bytes_max(), open);
        // Somebody else may have been faster; either will do.
        let _ = self.resident_runs.set(made);
        self.resident_runs.get()?.as_ref()
    }

    /// The newest range tombstone in the memtable at `index` of [`SuperVersion::memtables`] that covers
    /// `user_key` and that a reader at `read_seqno` sees; 0 when there is none.
    #[inline]
    pub fn covering_seqno(&self, index: usize, user_key: &[u8], read_seqno: SeqNo) -> SeqNo {
        self.memtable_at(index)
            .map_or(0, |memtable| memtable.covering_seqno(user_key, read_seqno))
    }

    #[inline]
    fn memtable_at(&self, index: usize) -> Option<&Arc<Memtable>> {
        match index.checked_sub(1) {
            None => Some(&self.memtable),
            Some(index) => {
                let index = index
                    + usize::from(drumlin_base::bug!("range-tombstones-of-the-next-memtable"));
                self.immutables.get(index)
            }
        }
    }
}

impl fmt::Debug for SuperVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuperVersion")
            .field("number", &self.number)
            .field("immutables", &self.immutables.len())
            .finish_non_exhaustive()
    }
}

/// The super versions of all families, by id.
pub(crate) type SuperVersions = Box<[(u32, Arc<SuperVersion>)]>;

/// Where a family keeps its present super version.
#[derive(Debug)]
pub(crate) struct SuperVersionCell {
    /// Invariant: it holds one from its making on.
    current: HazardPtr<Arc<SuperVersion>>,
}

impl SuperVersionCell {
    /// A cell holding `first`.
    pub(crate) fn new(first: Arc<SuperVersion>) -> Self {
        Self {
            current: HazardPtr::new(Some(first)),
        }
    }

    /// The present super version under a guard, for a short read: no lock, no shared counter.
    #[inline]
    pub(crate) fn load(&self) -> HazardGuard<'_, Arc<SuperVersion>> {
        self.current
            .load()
            .expect("a family has a super version from its making on")
    }

    /// The present super version for as long as it is needed, as iterators do.
    pub(crate) fn load_full(&self) -> Arc<SuperVersion> {
        Arc::clone(&self.load())
    }

    /// Makes `next` the present one and gives back the former, whose last reader frees it.
    ///
    /// Requires: the state's lock is held, and `next` has a higher number than the former one.
    pub(crate) fn install(&self, next: Arc<SuperVersion>) -> Retired<Arc<SuperVersion>> {
        let number = next.number;
        let former = self.current.swap(Some(next));
        let former = former.expect("a family has a super version from its making on");
        debug_assert!(former.number < number);
        former
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::{SEQNO_MAX, ValueKind};

    fn numbered(number: u64) -> Arc<SuperVersion> {
        let memtable = || Arc::new(Memtable::new(KeyOrder::Bytewise));
        let version = Arc::new(Version::empty());
        SuperVersion::new(memtable(), vec![memtable()], version, number)
    }

    #[test]
    fn range_tombstones_cover_from_when_they_were_added() {
        let super_version = numbered(1);
        let covering = |index, at| super_version.covering_seqno(index, b"k", at);
        assert_eq!(covering(0, SEQNO_MAX), 0);
        super_version
            .memtable
            .add(5, ValueKind::RangeDeletion, b"a", b"z");
        assert_eq!((covering(0, 4), covering(0, SEQNO_MAX)), (0, 5));
        super_version
            .memtable
            .add(6, ValueKind::RangeDeletion, b"j", b"l");
        assert_eq!((covering(0, 5), covering(0, SEQNO_MAX)), (5, 6));
        assert_eq!((covering(1, SEQNO_MAX), covering(2, SEQNO_MAX)), (0, 0));
    }

    #[test]
    fn a_reader_keeps_the_super_version_it_took() {
        let cell = SuperVersionCell::new(numbered(1));
        let taken = cell.load_full();
        let borrowed = cell.load();
        let former = cell.install(numbered(2));
        assert_eq!((taken.number, borrowed.number, former.number), (1, 1, 1));
        assert_eq!(cell.load().number, 2);
    }
}
