//! The memtable: point entries in order, range tombstones beside them.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::bytes::StripedPin;
use drumlin_base::key::{SEEK_KIND, pack_tag, tag_kind, tag_seqno};
use drumlin_base::perf::{self, Measure};
use drumlin_base::{
    KeyOrder, MemoryBudget, PinnedSlice, PrefixExtractor, RangeTombstone, SeqNo, ValueKind,
};

use crate::arena::Arena;
use crate::dead_spans::DeadSpans;
use crate::descent::LANES;
use crate::entry::Entry;
use crate::filter::{Filter, KeyHash, Mark};
use crate::iterator::MemtableIter;
use crate::pool::Pool;
use crate::range_tombstones::RangeTombstones;
use crate::step_function::CoveredSpan;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::tree::{Position, Tree};

/// An ordered set of entries that only grows, in memory.
///
/// Thread safety: any number of threads add and read at once. Reads take no lock and write nothing
/// shared. An entry added before a read began (in the happens-before sense) is seen by it; one
/// added meanwhile may or may not be. Readers skip entries that are too new by sequence number.
///
/// Entries never move and are never freed before the memtable is dropped, so values are handed out
/// in place, pinned together with the memory of all; short ones are copied.
pub struct Memtable {
    tree: Tree,
    /// The entries that `tree` leads to; readers pin it.
    memory: StripedPin<Arena>,
    range_tombstones: RangeTombstones,
    dead_spans: DeadSpans,
    order: KeyOrder,
    /// Over user keys, and prefixes if there is an extractor. None where equal keys may be
    /// different bytes.
    filter: Option<Filter>,
    prefix: Option<Arc<dyn PrefixExtractor>>,
    /// Whether keys end with timestamps.
    has_timestamps: bool,
    counts: Counts,
}

/// Figures every add changes, on a line of their own so that readers of the rest keep theirs.
#[repr(align(64))]
struct Counts {
    entries: AtomicUsize,
    deletions: AtomicUsize,
    dead_walked: AtomicUsize,
    /// The lowest sequence number; `SeqNo::MAX` before the first.
    first_seqno: AtomicU64,
}

impl Memtable {
    /// An empty memtable whose user keys are sorted by `order`.
    ///
    /// A user's own comparator that panics leaves the entry out, and every latch open.
    pub fn new(order: KeyOrder) -> Self {
        Self::within(order, None, None)
    }

    /// As [`Memtable::new`]; its memory is charged to `budget` until the last holder is gone,
    /// readers of its values included, by whole huge pages where it is in such. Of keys, it also remembers the prefixes that `prefix` cuts.
    pub fn charged(
        order: KeyOrder,
        prefix: Option<Arc<dyn PrefixExtractor>>,
        budget: Arc<MemoryBudget>,
    ) -> Self {
        Self::within(order, prefix, Some(budget))
    }

    /// Brings the charge up to date with the memory held; what [`Memtable::bytes`] has.
    pub fn account(&self) -> usize {
        self.memory.pool().account();
        self.bytes()
    }

    fn within(
        order: KeyOrder,
        prefix: Option<Arc<dyn PrefixExtractor>>,
        budget: Option<Arc<MemoryBudget>>,
    ) -> Self {
        let pool = Arc::new(Pool::new(budget));
        let is_filtered = order.equality_is_bytewise();
        Self {
            filter: is_filtered.then(|| Filter::new(&pool)),
            prefix,
            tree: Tree::new(order.clone(), &pool),
            memory: StripedPin::new(Arena::of(&pool, 1)),
            range_tombstones: RangeTombstones::new(&pool),
            dead_spans: DeadSpans::new(),
            has_timestamps: order.timestamp_bytes() > 0,
            order,
            counts: Counts {
                entries: AtomicUsize::new(0),
                deletions: AtomicUsize::new(0),
                dead_walked: AtomicUsize::new(0),
                first_seqno: AtomicU64::new(SeqNo::MAX),
            },
        }
    }

    /// Adds one entry. Any thread, any number at once.
    ///
    /// A `RangeDeletion` reads `user_key` as the first key covered and `value` as the first key no
    /// longer covered, and is kept apart from the point entries. Where keys end with timestamps a deletion becomes
    /// a `DeletionWithTimestamp`.
    ///
    /// Requires: no other point entry has the same user key, `seqno` and `kind`; key and value
    /// are within the limits of `drumlin_base::limits`.
    pub fn add(&self, seqno: SeqNo, kind: ValueKind, user_key: &[u8], value: &[u8]) {
        // A load in most cases, of the line that is counted on below. Relaxed: a figure, as those.
        if seqno < self.counts.first_seqno.load(Ordering::Relaxed) {
            self.counts.first_seqno.fetch_min(seqno, Ordering::Relaxed);
        }
        if kind == ValueKind::RangeDeletion {
            self.range_tombstones
                .add(&self.order, user_key, value, seqno);
            return;
        }
        let kind = match kind {
            ValueKind::Deletion | ValueKind::SingleDeletion if self.has_timestamps => {
                ValueKind::DeletionWithTimestamp
            }
            kind => kind,
        };
        // Relaxed, both: figures, ordered with nothing.
        let nth = self.counts.entries.fetch_add(1, Ordering::Relaxed);
        let filtered = self.filter.as_ref();
        let marks = filtered.map(|filter| self.marks(filter, user_key, nth));
        let entry = Entry::write(&self.memory, user_key, pack_tag(seqno, kind as u8), value);
        // Before the entry: a reader that can meet the entry must not be told that it is absent.
        for mark in marks.into_iter().flatten().flatten() {
            mark.set();
        }
        debug_assert!(
            cfg!(loom) || self.may_contain(user_key),
            "the filter knows a key before the tree has it"
        );
        // SAFETY: the arena is dropped after the tree, or together with it; no entry is reached then.
        unsafe { self.tree.insert(entry) };
        let is_counted =
            kind == ValueKind::Deletion || !drumlin_base::bug!("single-deletions-uncounted");
        let deletions = [
            ValueKind::Deletion,
            ValueKind::SingleDeletion,
            ValueKind::DeletionWithTimestamp,
        ];
        if is_counted && deletions.contains(&kind) {
            self.counts.deletions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The places of the filter's bits for `user_key` and its prefix.
    #[inline]
    fn marks<'a>(&self, filter: &'a Filter, user_key: &[u8], nth: usize) -> [Option<Mark<'a>>; 2] {
        let Some(by) = &self.prefix else {
            return [Some(filter.mark(KeyHash::of(user_key), nth)), None];
        };
        let nth = 2 * nth;
        let prefix = by.prefix(user_key);
        let of_prefix = prefix.map(|prefix| filter.mark(KeyHash::of(prefix), nth));
        [Some(filter.mark(KeyHash::of(user_key), nth)), of_prefix]
    }

    /// False only when no entry of `user_key` was added before this call. A few words of memory.
    #[inline]
    fn may_contain(&self, user_key: &[u8]) -> bool {
        match &self.filter {
            Some(filter) => filter.may_contain(KeyHash::of(user_key)),
            None => true,
        }
    }

    /// Whether there may be an entry whose key has the prefix of `user_key`. True when that is not
    /// known: without an extractor, under a user's own order, or when `user_key` has no prefix.
    pub fn may_contain_prefix(&self, user_key: &[u8]) -> bool {
        let prefix = self.prefix.as_ref().and_then(|by| by.prefix(user_key));
        prefix.is_none_or(|prefix| self.may_contain(prefix))
    }

    /// Searches for `keys` keys, which an empty memtable does not have.
    #[inline]
    fn count_gets(&self, keys: usize) {
        if perf::is_on() && self.entries() > 0 {
            perf::count(Measure::MemtableGets, keys as u64);
        }
    }

    /// Visits the versions of `user_key` with a sequence number of at most `seqno`, newest first,
    /// until `visit` breaks. Range tombstones are not consulted.
    pub fn get(
        self: &Arc<Self>,
        user_key: &[u8],
        seqno: SeqNo,
        visit: impl FnMut(SeqNo, ValueKind, MemValue<'_>) -> ControlFlow<()>,
    ) {
        self.count_gets(1);
        if !self.may_contain(user_key) {
            return;
        }
        let at = self.tree.find(user_key, pack_tag(seqno, SEEK_KIND));
        self.visit_from(at, user_key, visit);
    }

    /// As [`Memtable::get`] for each of `keys` in turn, whose index `visit` gets; `visit` breaks off
    /// one key, not all. The searches wait for memory together.
    pub fn get_many(
        self: &Arc<Self>,
        keys: &[&[u8]],
        seqno: SeqNo,
        mut visit: impl FnMut(usize, SeqNo, ValueKind, MemValue<'_>) -> ControlFlow<()>,
    ) {
        self.count_gets(keys.len());
        let mut wanted = [(0, &[][..]); LANES];
        let mut count = 0;
        for (index, &user_key) in keys.iter().enumerate() {
            if self.may_contain(user_key) {
                wanted[count] = (index, user_key);
                count += 1;
            }
            let is_full = count == LANES || index + 1 == keys.len();
            if is_full && count > 0 {
                self.get_each(&wanted[..count], seqno, &mut visit);
                count = 0;
            }
        }
    }

    /// As [`Memtable::get_many`] for at most [`LANES`] keys beside their indices, without the filter.
    fn get_each(
        self: &Arc<Self>,
        wanted: &[(usize, &[u8])],
        seqno: SeqNo,
        visit: &mut impl FnMut(usize, SeqNo, ValueKind, MemValue<'_>) -> ControlFlow<()>,
    ) {
        let tag = pack_tag(seqno, SEEK_KIND);
        debug_assert!(wanted.len() <= LANES, "each key has a lane");
        let found = self.tree.find_each(wanted.iter().map(|(_, key)| *key), tag);
        for (at, (index, user_key)) in found.into_iter().zip(wanted) {
            self.visit_from(at, user_key, |seqno, kind, value| {
                visit(*index, seqno, kind, value)
            });
        }
    }

    #[inline]
    fn visit_from(
        self: &Arc<Self>,
        mut at: Position,
        user_key: &[u8],
        mut visit: impl FnMut(SeqNo, ValueKind, MemValue<'_>) -> ControlFlow<()>,
    ) {
        let mut newer = u64::MAX;
        while let Some(entry) = self.tree.entry(&at) {
            let (own_key, tag) = entry.user_key_and_tag();
            if self.order.compare(own_key, user_key).is_ne() {
                return;
            }
            debug_assert!(tag <= newer, "the newest version comes first");
            newer = tag;
            let value = MemValue {
                memtable: self,
                bytes: entry.value(),
            };
            let kind = ValueKind::from_byte(tag_kind(tag))
                .expect("`add` stores kinds of this very enumeration only");
            if visit(tag_seqno(tag), kind, value).is_break() {
                return;
            }
            at = self.tree.next(&at);
        }
    }

    /// A cursor over the point entries, not positioned. Sees entries added after it was made.
    pub fn iter(self: &Arc<Self>) -> MemtableIter {
        MemtableIter::new(Arc::clone(self))
    }

    /// The newest range tombstone over `user_key` that a reader at `read_seqno` sees; 0 when there is none.
    /// Costs O(log² n) compares of n tombstones, and one relaxed load when there are none.
    #[inline]
    pub fn covering_seqno(&self, user_key: &[u8], read_seqno: SeqNo) -> SeqNo {
        match self.range_tombstone_count() {
            0 => 0,
            _ => self
                .range_tombstones
                .covering_seqno(&self.order, user_key, read_seqno),
        }
    }

    /// As [`Memtable::covering_seqno`], with a span of keys around `user_key` of which the same is true.
    ///
    /// It stays true of readers at `read_seqno`, once all with sequence numbers up to that are added.
    pub fn covering(&self, user_key: &[u8], read_seqno: SeqNo) -> CoveredSpan<'_> {
        self.range_tombstones
            .covering(&self.order, user_key, read_seqno)
    }

    /// A copy of the range tombstones, in the order they were added.
    pub fn range_tombstones(&self) -> Vec<RangeTombstone> {
        self.range_tombstones.all()
    }

    /// How many range tombstones there are. One relaxed load.
    #[inline]
    pub fn range_tombstone_count(&self) -> usize {
        self.range_tombstones.count()
    }

    /// Bytes of memory held: whole chunks, whether filled or not, the filter, and range tombstones. What huge pages have
    /// left beside their chunks is charged, too.
    pub fn bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, Filter::bytes);
        self.memory.bytes() + self.tree.bytes() + filter + self.range_tombstones.bytes()
    }

    /// Point entries added, or about to be.
    pub fn entries(&self) -> usize {
        // Relaxed: see `add`.
        self.counts.entries.load(Ordering::Relaxed)
    }

    /// Point entries added that are deletions or single deletions.
    pub fn deletions(&self) -> usize {
        // Relaxed: see `add`.
        self.counts.deletions.load(Ordering::Relaxed)
    }

    /// The lowest sequence number added, or about to be; `None` where nothing was.
    pub fn first_seqno(&self) -> Option<SeqNo> {
        // Relaxed: see `add`.
        let first = self.counts.first_seqno.load(Ordering::Relaxed);
        (first != SeqNo::MAX).then_some(first)
    }

    /// What walks noted of dead keys, while this takes writes. Whoever adds an entry that is no deletion has to
    /// [`DeadSpans::cut`] before it can be seen.
    #[inline]
    pub fn dead_spans(&self) -> &DeadSpans {
        &self.dead_spans
    }

    /// Counts `entries` that a walk stepped over in vain.
    pub fn note_dead_walked(&self, entries: usize) {
        // Relaxed: a figure that nothing else depends on.
        self.counts
            .dead_walked
            .fetch_add(entries, Ordering::Relaxed);
    }

    /// Dead entries that walks stepped over in a row here. A flush would spare them these steps.
    pub fn dead_walked(&self) -> usize {
        self.counts.dead_walked.load(Ordering::Relaxed)
    }

    /// Whether there is neither a point entry nor a range tombstone.
    pub fn is_empty(&self) -> bool {
        self.entries() == 0 && self.range_tombstone_count() == 0
    }

    /// The order of user keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// The ordered structure, for the iterator.
    #[inline]
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// `bytes`, kept alive by this memtable, or copied if they are few.
    ///
    /// # Safety
    /// `bytes` must be in this memtable's arena, in an entry that was written whole.
    #[inline]
    pub(crate) unsafe fn pin(&self, bytes: &[u8]) -> PinnedSlice {
        // SAFETY: entries neither move nor change nor go before their arena is dropped.
        unsafe { self.memory.slice(bytes) }
    }
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memtable")
            .field("order", &self.order)
            .field("entries", &self.entries())
            .field("range_tombstones", &self.range_tombstone_count())
            .field("bytes", &self.bytes())
            .finish()
    }
}

/// A value in place in a memtable.
#[derive(Clone, Copy, Debug)]
pub struct MemValue<'a> {
    memtable: &'a Arc<Memtable>,
    /// Invariant: in an entry of `memtable`.
    bytes: &'a [u8],
}

impl<'a> MemValue<'a> {
    /// The value's bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The value, keeping the memtable alive; copied if it is small.
    #[inline]
    pub fn pin(&self) -> PinnedSlice {
        // SAFETY: the invariant of `bytes`.
        unsafe { self.memtable.pin(self.bytes) }
    }
}
