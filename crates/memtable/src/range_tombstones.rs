//! Range tombstones of one memtable, apart from its point entries, with an index that is never out of date.
//!
//! A reader asks for the newest tombstone over a key that its snapshot sees. The tombstones are in groups, which
//! double in size with their age; each group knows the newest of its tombstones over every key, as steps
//! ([`super::step_function`]). The last few are in no group yet:
//!
//! ```text
//! newest ─► record ► record ► record      the tail: fewer than LEAF + 1, looked at one by one
//!              └► groups: [32] [64] [256] [512] …      one binary search each, newest first
//!                                   └► [128] [128]     the two it was made of
//! ```
//!
//! A group whose tombstones the snapshot sees all answers from its steps, one of which it sees none is passed over.
//! Only the group that the snapshot cuts is asked for the two it was made of; of these again one at most is
//! cut, as long as tombstones come in the order of their sequence numbers. Groups are right in whatever order
//! they come: concurrent writers only make more groups straddle.
//!
//! With n tombstones a reader does O(log² n) compares: for 16,000 about six searches. A new tombstone costs O(log n)
//! amortized, and not much more at the worst: groups are merged a piece with every LEAF tombstones, and the two that
//! are merged answer until then.
//!
//! Refused: fragments made anew at the first read after a write (O(n log n) each time; with 16,000 tombstones
//! 3 ms), as RocksDB does; a balanced tree whose paths are copied, which needs 1 KB a tombstone to keep the
//! past that snapshots ask for (groups need about 650 bytes of 16,000 tombstones each).
//!
//! Invariants:
//! - a record, its groups and their steps never change once `newest` leads to them, and live as long as the arena;
//! - every record is in the tail of the newest record, or in exactly one of its groups.
//!
//! Thread safety: writers take a lock. Readers take none: one load, and what it leads to is immutable.

use std::ptr::null_mut;
use std::sync::{Arc, PoisonError};

use drumlin_base::{KeyOrder, RangeTombstone, SeqNo};

use crate::arena::Arena;
use crate::pool::Pool;
use crate::step_function::{CoveredSpan, MadeSteps, Overlay, Steps};
use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering};

/// Tombstones of the smallest group. Few in checked builds, so that small tests have many groups.
const LEAF: usize = match (cfg!(loom), cfg!(debug_assertions)) {
    (true, _) => 2,
    (false, true) => 4,
    (false, false) => 32,
};

/// Keys by which a merge advances with each new group of LEAF: sixteen times what keeps up, so that groups wait
/// for their merge a small part of the time.
const MERGED_PER_LEAF: usize = 32 * LEAF;

/// One tombstone, and all that was added before it.
#[derive(Clone, Copy)]
struct Record<'a> {
    begin: &'a [u8],
    end: &'a [u8],
    seqno: SeqNo,
    before: Option<&'a Record<'a>>,
    /// Records from this one back that are in no group.
    tail: usize,
    /// Of the records before those, newest first.
    groups: &'a [&'a Group<'a>],
}

/// Some tombstones, at least one.
#[derive(Clone, Copy)]
struct Group<'a> {
    steps: Steps<'a, 'a>,
    oldest: SeqNo,
    newest: SeqNo,
    parts: Parts<'a>,
}

#[derive(Clone, Copy)]
enum Parts<'a> {
    /// This record and those before it, LEAF in all.
    Records(&'a Record<'a>),
    /// The newer one first.
    Groups([&'a Group<'a>; 2]),
}

/// The tombstones of a memtable.
pub(crate) struct RangeTombstones {
    count: AtomicUsize,
    /// Bytes of unfinished merges.
    merging_bytes: AtomicUsize,
    /// Null before the first. Points into `memory`.
    newest: AtomicPtr<Record<'static>>,
    /// References into `memory` that are called static: nothing outside this file sees them so.
    growth: Mutex<Growth<'static>>,
    memory: Arena,
}

impl RangeTombstones {
    pub(crate) fn new(pool: &Arc<Pool>) -> Self {
        Self {
            count: AtomicUsize::new(0),
            merging_bytes: AtomicUsize::new(0),
            newest: AtomicPtr::new(null_mut()),
            growth: Mutex::new(Growth::default()),
            memory: Arena::of(pool, align_of::<Record<'_>>()),
        }
    }

    /// Adds one. Any thread, any number at once.
    ///
    /// A comparator that panics leaves the tombstone out, and all others in.
    pub(crate) fn add(&self, order: &KeyOrder, begin: &[u8], end: &[u8], seqno: SeqNo) {
        let memory = std::ptr::from_ref(&self.memory);
        // SAFETY: the memory is dropped together with all that refers to it, and readers borrow `self`.
        let memory = unsafe { &*memory };
        // A thread that died while it held the lock left groups that hold every record; see `Growth`.
        let mut growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.newest();
        if let Some(newest) = before
            && growth.tail == LEAF
        {
            growth.group(order, memory, newest);
            growth.advance(order, memory);
        }
        let record = memory.place(Record {
            begin: memory.place_slice(begin),
            end: memory.place_slice(end),
            seqno,
            before,
            tail: growth.tail + 1,
            groups: growth.groups,
        });
        growth.tail += 1;
        // Relaxed: a figure for budgets.
        self.merging_bytes.store(growth.bytes(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `newest`, so that the record is seen whole.
        self.newest
            .store((&raw const *record).cast_mut(), Ordering::Release);
        // Relaxed, both: the lock is held; and a reader that must see this tombstone learned its
        // sequence number from the writer, and that hand-over (the engine publishes by Release, readers take
        // by Acquire) orders this store before the reader's load.
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
    }

    #[inline]
    fn newest(&self) -> Option<&'static Record<'static>> {
        // Acquire: pairs with the Release in `add`.
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: null, or a record in `memory`, which never changes.
        unsafe { newest.as_ref() }
    }

    /// How many there are. One relaxed load.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        // Relaxed: see `add`.
        self.count.load(Ordering::Relaxed)
    }

    /// Bytes of memory held, those of the index included.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a figure for budgets.
        self.memory.bytes() + self.merging_bytes.load(Ordering::Relaxed)
    }

    /// A copy of all of them, in the order they were added.
    pub(crate) fn all(&self) -> Vec<RangeTombstone> {
        let records = std::iter::successors(self.newest(), |record| record.before);
        let mut all: Vec<_> = records
            .map(|record| RangeTombstone {
                begin: record.begin.to_vec(),
                end: record.end.to_vec(),
                seqno: record.seqno,
            })
            .collect();
        all.reverse();
        all
    }

    /// The newest tombstone over `user_key` that a reader at `read_seqno` sees; 0 when there is none.
    pub(crate) fn covering_seqno(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        read_seqno: SeqNo,
    ) -> SeqNo {
        self.search::<false>(order, user_key, read_seqno).seqno
    }

    /// The same, with a span of keys around `user_key` that it is true of.
    pub(crate) fn covering(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        read_seqno: SeqNo,
    ) -> CoveredSpan<'_> {
        self.search::<true>(order, user_key, read_seqno)
    }

    #[inline]
    fn search<const BOUNDED: bool>(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        read_seqno: SeqNo,
    ) -> CoveredSpan<'_> {
        let Some(newest) = self.newest() else {
            return CoveredSpan::default();
        };
        let mut search = Search::<BOUNDED> {
            order,
            user_key,
            read_seqno,
            found: CoveredSpan::default(),
        };
        search.records(newest, newest.tail);
        for group in newest.groups {
            search.group(group);
        }
        search.found
    }
}

/// The search for one key's newest tombstone.
struct Search<'a, 'b, const BOUNDED: bool> {
    order: &'b KeyOrder,
    user_key: &'b [u8],
    read_seqno: SeqNo,
    found: CoveredSpan<'a>,
}

impl<'a, const BOUNDED: bool> Search<'a, '_, BOUNDED> {
    /// Takes in `newest` and those before it, `count` in all.
    fn records(&mut self, newest: &'a Record<'a>, count: usize) {
        let all = std::iter::successors(Some(newest), |record| record.before);
        for record in all.take(count) {
            // Of one that is older than what was found it does not matter where it ends.
            if record.seqno <= self.read_seqno && record.seqno > self.found.seqno {
                self.record(record);
            }
        }
    }

    #[inline]
    fn record(&mut self, record: &'a Record<'a>) {
        let mut span = CoveredSpan::default();
        if self.order.compare(self.user_key, record.begin).is_lt() {
            span.end = Some(record.begin);
        } else if self.order.compare(self.user_key, record.end).is_ge() {
            span.begin = Some(record.end);
        } else {
            span.seqno = record.seqno;
            (span.begin, span.end) = (Some(record.begin), Some(record.end));
        }
        self.found(&span);
    }

    /// Takes in the tombstones of `group`. Calls itself no deeper than groups are in groups: each is half as large.
    fn group(&mut self, group: &'a Group<'a>) {
        if group.oldest > self.read_seqno || group.newest <= self.found.seqno {
            return;
        }
        if group.newest <= self.read_seqno || drumlin_base::bug!("range-tombstones-from-the-future")
        {
            let span = group.steps.look_up(self.order, self.user_key);
            return self.found(&span);
        }
        match group.parts {
            Parts::Records(newest) => self.records(newest, LEAF),
            Parts::Groups([newer, older]) => {
                self.group(newer);
                self.group(older);
            }
        }
    }

    #[inline]
    fn found(&mut self, span: &CoveredSpan<'a>) {
        match BOUNDED {
            true => self.found.meet(self.order, span),
            false => self.found.seqno = self.found.seqno.max(span.seqno),
        }
    }
}

/// The groups, as their writers know them.
///
/// Invariant, also after a comparator panicked: `groups` are those of `levels`, and hold every record but the last
/// `tail`.
#[derive(Default)]
struct Growth<'a> {
    tail: usize,
    groups: &'a [&'a Group<'a>],
    /// Groups of LEAF tombstones, of twice as many, and so on.
    levels: Vec<Level<'a>>,
}

#[derive(Default)]
struct Level<'a> {
    /// Oldest first; mostly none or one.
    groups: Vec<&'a Group<'a>>,
    /// The merge of the first two.
    merge: Option<Overlay<'a, 'a>>,
}

impl<'a> Growth<'a> {
    /// Makes the tail, which begins at `newest`, a group.
    fn group(&mut self, order: &KeyOrder, memory: &'a Arena, newest: &'a Record<'a>) {
        let records = std::iter::successors(Some(newest), |record| record.before).take(LEAF);
        let seqnos = records.clone().map(|record| record.seqno);
        let (oldest, latest) = seqnos.fold((SeqNo::MAX, 0), |(oldest, latest), seqno| {
            (oldest.min(seqno), latest.max(seqno))
        });
        let steps = steps_of(order, records);
        let group = memory.place(Group {
            steps: steps.steps().placed(memory),
            oldest,
            newest: latest,
            parts: Parts::Records(newest),
        });
        self.tail = 0;
        self.put(0, group, memory);
    }

    /// Advances every merge, and begins those that are due.
    fn advance(&mut self, order: &KeyOrder, memory: &'a Arena) {
        let mut index = 0;
        while let Some(level) = self.levels.get_mut(index) {
            if let &[older, newer, ..] = &level.groups[..] {
                let merge = || Overlay::new(order, newer.steps, older.steps);
                let merge = level.merge.get_or_insert_with(merge);
                if merge.advance(order, MERGED_PER_LEAF) {
                    let group = memory.place(Group {
                        steps: merge.steps().placed(memory),
                        oldest: newer.oldest.min(older.oldest),
                        newest: newer.newest.max(older.newest),
                        parts: Parts::Groups([newer, older]),
                    });
                    level.merge = None;
                    level.groups.drain(..2);
                    self.put(index + 1, group, memory);
                }
            }
            index += 1;
        }
    }

    /// Adds `group`, newer than those there, to the level at `index`.
    fn put(&mut self, index: usize, group: &'a Group<'a>, memory: &'a Arena) {
        if self.levels.len() == index {
            self.levels.push(Level::default());
        }
        self.levels[index].groups.push(group);
        let newest_first = self.levels.iter();
        let newest_first = newest_first.flat_map(|level| level.groups.iter().rev());
        self.groups = memory.place_slice(&newest_first.copied().collect::<Vec<_>>());
    }

    /// Bytes of unfinished merges.
    fn bytes(&self) -> usize {
        let merges = self.levels.iter().filter_map(|level| level.merge.as_ref());
        merges.map(Overlay::bytes).sum()
    }
}

/// The steps of `records`. Those whose end is not after their begin cover nothing.
fn steps_of<'a>(order: &KeyOrder, records: impl Iterator<Item = &'a Record<'a>>) -> MadeSteps<'a> {
    let steps = |record: &Record<'a>| {
        let is_empty = order.compare(record.begin, record.end).is_ge();
        (!is_empty).then(|| MadeSteps::of_one(order, record.begin, record.end, record.seqno))
    };
    let mut made: Vec<_> = records.filter_map(steps).collect();
    while made.len() > 1 {
        let mut rest = made.into_iter();
        made = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(one) = rest.next() {
            made.push(match rest.next() {
                Some(other) => Overlay::new(order, one.steps(), other.steps()).complete(order),
                None => one,
            });
        }
    }
    made.pop().unwrap_or_default()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use drumlin_base::SEQNO_MAX;
    use drumlin_base::rng::Rng;

    fn key(number: u64) -> Vec<u8> {
        number.to_be_bytes()[4..].to_vec()
    }

    #[test]
    fn sixteen_thousand_tombstones_are_in_few_groups_of_bounded_size() {
        let order = KeyOrder::Bytewise;
        let list = RangeTombstones::new(&Arc::new(Pool::new(None)));
        assert_eq!((list.bytes(), list.count()), (0, 0));
        let mut rng = Rng::new(3);
        let count = 16_000;
        let mut groups_most = 0;
        for seqno in 1..=count {
            let begin = rng.below(1 << 20);
            list.add(&order, &key(begin), &key(begin + 1 + rng.below(90)), seqno);
            let newest = list.newest().expect("one was added");
            groups_most = groups_most.max(newest.groups.len());
            assert!((1..=LEAF).contains(&newest.tail));
        }
        let levels = (count as usize / LEAF).ilog2() as usize + 1;
        assert!(groups_most <= 2 * levels, "{groups_most}");
        let bytes = list.bytes() / count as usize;
        assert!(bytes < 1200, "{bytes} bytes a tombstone");
    }

    #[test]
    fn tombstones_of_one_range_leave_two_steps_at_every_snapshot() {
        let order = KeyOrder::Bytewise;
        let list = RangeTombstones::new(&Arc::new(Pool::new(None)));
        for seqno in 1..=500 {
            list.add(&order, b"a", b"z", seqno);
        }
        let newest = list.newest().expect("one was added");
        assert!(newest.groups.iter().all(|group| group.steps.len() == 2));
        for at in 0..=500 {
            assert_eq!(list.covering_seqno(&order, b"m", at), at);
        }
        assert_eq!(list.covering_seqno(&order, b"z", SEQNO_MAX), 0);
        let all: Vec<_> = list.all().iter().map(|at| at.seqno).collect();
        assert_eq!(all, (1..=500).collect::<Vec<_>>());
    }
}
