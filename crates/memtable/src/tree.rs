//! A B+-tree over entries: latches for writers, version checks for readers.
//!
//! ```text
//! add    descend from the root, noting each node's version and checking the parent's again once
//!        the child's is noted (optimistic lock coupling); split a full node met on the way, under
//!        its parent's latch and its own, and start over; latch the leaf at its noted version;
//!        insert; open the latch
//! seek   descend the same way, find the slot in the leaf, check the leaf's version
//! next   the next slot, or the right neighbour's first, if the leaf's version is the old one;
//!        otherwise seek past the present entry
//! prev   the slot before; before a leaf's first, seek the entry before it
//! ```
//!
//! A failed check starts the operation over; it means that another operation made progress. Latches are held
//! while one array is shifted or one node is halved; a thread holds at most two, taken downwards and never
//! waited for, so there is no deadlock.
//!
//! Trick 1: full nodes are split on the way down, so that a split never has to go up again.
//!
//! Trick 2: ascending keys go straight to the rightmost leaf, and its split leaves it full instead of halving
//! it: a sequential load fills every node and descends nothing.
//!
//! Trick 3: no left links. Entries are never removed, so a tree only grows: right neighbours are reached by
//! links that always lead to the next leaf, left ones by a search (Lehman and Yao, Efficient Locking for
//! Concurrent Operations on B-Trees, 1981, keep only right links for the same reason).

use std::ptr::null_mut;
use std::sync::Arc;

use drumlin_base::KeyOrder;
use drumlin_base::bytes::{LINE_BYTES, prefetch};

use crate::arena::Arena;
use crate::entry::Entry;
use crate::node::{Node, NodeRef, Rank, SLOTS, Slot};
use crate::pool::Pool;
use crate::probe::Probe;
use crate::sync::{AtomicPtr, Ordering, retry};

/// How many entries ahead a scan prefetches: enough misses in flight to hide a DRAM access.
const AHEAD: usize = 8;
/// Lines prefetched of each: header, key, and the value's beginning.
const AHEAD_LINES: usize = 2;

/// Entries in internal-key order. Holds pointers only; the entries are in the memtable's arena.
///
/// Thread safety: any number of threads insert and read at once.
#[repr(align(64))] // Roots change seldom: keep them off the lines of counters that change always.
pub(crate) struct Tree {
    root: AtomicPtr<Node>,
    /// The rightmost leaf, or one that was rightmost a moment ago: ascending keys go there.
    tail: AtomicPtr<Node>,
    order: KeyOrder,
    nodes: Arena,
}

/// A position in the tree: an entry, and where it was seen. Past either end there is no entry.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    leaf: *mut Node,
    entry: *mut u8,
    version: u64,
    index: usize,
}

// SAFETY: a position is followed only through the tree it came from, whose nodes and entries may
// be reached from any thread.
unsafe impl Send for Position {}
// SAFETY: as above; a position by itself is plain data.
unsafe impl Sync for Position {}

impl Position {
    /// On no entry.
    pub(crate) const END: Self = Self {
        leaf: null_mut(),
        entry: null_mut(),
        version: 0,
        index: 0,
    };

    /// Whether it is past an end.
    #[inline]
    pub(crate) fn is_end(&self) -> bool {
        self.entry.is_null()
    }
}

/// A consistent look at the leaf a search ended in.
#[derive(Clone, Copy)]
struct Landing<'a> {
    leaf: NodeRef<'a>,
    version: u64,
    place: Rank,
}

/// The latches a split holds while it only looks. Dropped by a panic, it opens them.
struct Latches<'a> {
    node: (NodeRef<'a>, u64),
    parent: Option<(NodeRef<'a>, u64)>,
    only_looks: bool,
}

impl Latches<'_> {
    /// Leaves them held, for the changes that follow.
    fn keep(mut self) {
        self.only_looks = false;
    }
}

impl Drop for Latches<'_> {
    fn drop(&mut self) {
        if !self.only_looks {
            return;
        }
        for (node, version) in self.parent.into_iter().chain([self.node]) {
            node.unlatch_unchanged(version);
        }
    }
}

/// The side of equal keys that a search stops on.
#[derive(Clone, Copy)]
enum Side {
    /// First entry at or after the probe.
    AtOrAfter,
    /// First entry after it.
    After,
    /// The entry after the last one at or before it.
    AtOrBefore,
    /// The entry after the last one before it.
    Before,
}

impl Tree {
    /// An empty tree: one leaf. It has its nodes from `pool`.
    pub(crate) fn new(order: KeyOrder, pool: &Arc<Pool>) -> Self {
        let nodes = Arena::of(pool, align_of::<Node>());
        let root = NodeRef::allocate(&nodes, 0).pointer();
        Self {
            root: AtomicPtr::new(root),
            tail: AtomicPtr::new(root),
            order,
            nodes,
        }
    }

    /// Bytes of memory held by nodes.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.bytes()
    }

    #[inline]
    fn follow(&self, link: &AtomicPtr<Node>) -> NodeRef<'_> {
        // Acquire: pairs with the Release stores in `new_root` and `split_tail`, so that the node
        // is seen whole.
        let pointer = link.load(Ordering::Acquire);
        // SAFETY: root and tail lead to nodes in `nodes`, which live as long as the tree.
        let node = unsafe { NodeRef::from_pointer(pointer) };
        node.expect("root and tail are never null")
    }

    /// Inserts an entry.
    ///
    /// # Safety
    /// The entry's arena must live as long as this tree is used.
    pub(crate) unsafe fn insert(&self, entry: Entry<'_>) {
        let probe = Probe::of(&self.order, entry);
        if self.try_append(&probe, entry) {
            return;
        }
        retry(|| self.try_insert(&probe, entry).then_some(()));
    }

    /// Inserts behind all other entries, if that is where the entry goes and there is room.
    fn try_append(&self, probe: &Probe<'_>, entry: Entry<'_>) -> bool {
        let leaf = self.follow(&self.tail);
        let version = leaf.read_version();
        let count = leaf.count();
        if count == 0 || count == SLOTS || leaf.right().is_some() {
            return false;
        }
        let is_behind = leaf
            .entry(count - 1)
            .is_some_and(|last| probe.order_of(last).is_lt());
        if !is_behind || !leaf.latch(version) {
            return false;
        }
        leaf.insert(count, Slot::new(probe, leaf.shared(), entry, null_mut()));
        leaf.unlatch(version);
        true
    }

    /// One attempt to insert; false when something changed or had to be split on the way.
    fn try_insert(&self, probe: &Probe<'_>, entry: Entry<'_>) -> bool {
        let Some((mut node, mut version)) = self.enter() else {
            return false;
        };
        let mut parent = None;
        loop {
            if node.is_full() {
                return self.split(parent, (node, version), probe, entry);
            }
            if node.is_leaf() {
                break;
            }
            let Some(child) = Self::descend(node, version, probe, true) else {
                return false;
            };
            parent = Some((node, version));
            (node, version) = child;
        }
        let index = node.rank(probe, false).rank;
        if !node.latch(version) {
            return false;
        }
        node.insert(index, Slot::new(probe, node.shared(), entry, null_mut()));
        node.unlatch(version);
        true
    }

    /// The root, and a version its node had while it was the root.
    #[inline]
    pub(crate) fn enter(&self) -> Option<(NodeRef<'_>, u64)> {
        let root = self.follow(&self.root);
        let version = root.read_version();
        // A root is replaced under its latch. If that happened before the version was noted, the
        // load below sees the new root; if later, the version check fails.
        (self.follow(&self.root).pointer() == root.pointer()).then_some((root, version))
    }

    /// The child of `node` where the probe belongs, with a version noted while `node` was still as
    /// it was at `version`. Keys equal to a separator are to its right if `through`.
    #[inline]
    fn descend<'a>(
        node: NodeRef<'a>,
        version: u64,
        probe: &Probe<'_>,
        through: bool,
    ) -> Option<(NodeRef<'a>, u64)> {
        let place = node.rank(probe, through);
        let child = node.child(place.rank)?;
        child.prefetch();
        if !node.unchanged(version) {
            return None;
        }
        let child_version = child.read_version();
        node.unchanged(version).then_some((child, child_version))
    }

    /// Splits a full node under its parent's latch and its own. True if `entry` got in with it.
    #[cold]
    fn split<'a>(
        &'a self,
        parent: Option<(NodeRef<'a>, u64)>,
        (node, version): (NodeRef<'a>, u64),
        probe: &Probe<'_>,
        entry: Entry<'_>,
    ) -> bool {
        if let Some((parent, parent_version)) = parent
            && !parent.latch(parent_version)
        {
            return false;
        }
        if !node.latch(version) {
            if let Some((parent, parent_version)) = parent {
                parent.unlatch_unchanged(parent_version);
            }
            return false;
        }
        // All compares come before the first change, so that a comparator that panics leaves both
        // nodes as they were, and their latches open.
        let latches = Latches {
            node: (node, version),
            parent,
            only_looks: true,
        };
        let is_tail = node.is_leaf() && node.right().is_none();
        let appends = is_tail && node.rank(probe, false).rank == SLOTS;
        let separator = if appends { entry } else { node.middle() };
        let place = parent.map_or(0, |(parent, _)| {
            let separator = Probe::of(&self.order, separator);
            parent.rank(&separator, false).rank
        });
        latches.keep();
        let right = NodeRef::allocate(&self.nodes, node.level());
        // SAFETY: the caller of `insert` promises that the entry lives as long as the tree.
        let entry = unsafe { Entry::from_pointer(entry.pointer()) }
            .expect("an entry's pointer is not null");
        let separator = if appends {
            // Ascending keys: leave the node full instead of halving it.
            right.insert(0, Slot::new(probe, right.shared(), entry, null_mut()));
            node.fence_off(right, entry);
            entry
        } else {
            node.split_to(right)
        };
        right.lengthen_prefix(&self.order);
        node.lengthen_prefix(&self.order);
        if is_tail {
            assert!(
                cfg!(loom) || right.right().is_none(),
                "nothing follows the tail"
            );
            // Release: pairs with the Acquire in `follow`.
            self.tail.store(right.pointer(), Ordering::Release);
        }
        match parent {
            Some((parent, parent_version)) => {
                self.put_separator((parent, place), separator, right);
                node.unlatch(version);
                parent.unlatch(parent_version);
            }
            None => {
                self.new_root(node, separator, right);
                node.unlatch(version);
            }
        }
        appends
    }

    /// Requires: the latch of `parent` is held; it is not full, for the descent splits full nodes;
    /// the separator's place in it is `index`.
    fn put_separator(
        &self,
        (parent, index): (NodeRef<'_>, usize),
        separator: Entry<'_>,
        right: NodeRef<'_>,
    ) {
        assert!(
            parent.level() == right.level() + 1,
            "a parent is one level above its children"
        );
        let probe = Probe::of(&self.order, separator);
        let slot = Slot::new(&probe, parent.shared(), separator, right.pointer());
        parent.insert(index, slot);
    }

    /// Grows the tree by a level. Requires: the latch of `left`, the present root, is held.
    fn new_root(&self, left: NodeRef<'_>, separator: Entry<'_>, right: NodeRef<'_>) {
        let root = NodeRef::allocate(&self.nodes, left.level() + 1);
        root.set_link(left.pointer());
        self.put_separator((root, 0), separator, right);
        assert!(
            cfg!(loom) || root.count() == 1,
            "a new root has two children and what divides them"
        );
        debug_assert!(
            cfg!(loom) || self.follow(&self.root).pointer() == left.pointer(),
            "a root is replaced under its latch"
        );
        // Release: pairs with the Acquire in `follow`.
        self.root.store(root.pointer(), Ordering::Release);
    }

    /// The leaf where the probe belongs and its place there, all of one moment.
    #[inline]
    fn try_land(&self, probe: &Probe<'_>, side: Side) -> Option<Landing<'_>> {
        let (mut node, mut version) = self.enter()?;
        while !node.is_leaf() {
            let through = !matches!(side, Side::Before);
            let above = node.level();
            (node, version) = Self::descend(node, version, probe, through)?;
            debug_assert_eq!(node.level() + 1, above, "a child is one level below");
        }
        let place = node.rank(probe, matches!(side, Side::After | Side::AtOrBefore));
        Some(Landing {
            leaf: node,
            version,
            place,
        })
    }

    /// The position of slot `index`, or of the right neighbour's first. `None` if the leaf is no
    /// longer as it was at `version`.
    #[inline]
    fn stand(leaf: NodeRef<'_>, version: u64, index: usize) -> Option<Position> {
        if index >= leaf.count() {
            let right = leaf.right();
            if !leaf.unchanged(version) {
                return None;
            }
            let Some(right) = right else {
                return Some(Position::END);
            };
            return Some(Self::stand_on_first(right));
        }
        let entry = leaf.entry(index);
        if !leaf.unchanged(version) {
            return None;
        }
        Some(Position {
            leaf: leaf.pointer(),
            entry: entry?.pointer(),
            version,
            index,
        })
    }

    /// The position of a leaf's first entry. Only the leaf of an empty tree has none.
    fn stand_on_first(leaf: NodeRef<'_>) -> Position {
        retry(|| {
            let version = leaf.read_version();
            if leaf.count() == 0 {
                return leaf.unchanged(version).then_some(Position::END);
            }
            if let Some(right) = leaf.right() {
                right.prefetch();
            }
            Self::stand(leaf, version, 0)
        })
    }

    /// The first position whose entry is at or after the probe, or strictly after it.
    #[inline]
    fn forward(&self, probe: &Probe<'_>, side: Side) -> Position {
        retry(|| {
            let landing = self.try_land(probe, side)?;
            Self::stand(landing.leaf, landing.version, landing.place.rank)
        })
    }

    /// The last position whose entry is at or before the probe, or strictly before it.
    fn backward(&self, probe: &Probe<'_>, side: Side) -> Position {
        retry(|| {
            let Landing {
                leaf,
                version,
                place,
            } = self.try_land(probe, side)?;
            let Some(index) = place.rank.checked_sub(1) else {
                // The leaf's first entry is its low fence, so this is the leftmost leaf.
                return leaf.unchanged(version).then_some(Position::END);
            };
            let position = Self::stand(leaf, version, index)?;
            Self::prefetch_entries(leaf, index.saturating_sub(AHEAD), index);
            Some(position)
        })
    }

    #[inline]
    pub(crate) fn probe<'a>(&'a self, user_key: &'a [u8], tag: u64) -> Probe<'a> {
        Probe {
            order: &self.order,
            user_key,
            tag,
        }
    }

    /// As [`Tree::at_or_after`], but may answer with the end when that entry has another user key:
    /// a key prefix that differs decides without a visit to the entry.
    #[inline]
    pub(crate) fn find(&self, user_key: &[u8], tag: u64) -> Position {
        let probe = self.probe(user_key, tag);
        retry(|| {
            let landing = self.try_land(&probe, Side::AtOrAfter)?;
            Self::found(landing.leaf, landing.version, landing.place)
        })
    }

    /// The answer of [`Tree::find`] from a look at the leaf; `None` when the leaf has changed
    /// since.
    #[inline]
    pub(crate) fn found(leaf: NodeRef<'_>, version: u64, place: Rank) -> Option<Position> {
        if !place.tied && place.rank < leaf.count() {
            return leaf.unchanged(version).then_some(Position::END);
        }
        Self::stand(leaf, version, place.rank)
    }

    /// The first entry at or after the key.
    pub(crate) fn at_or_after(&self, user_key: &[u8], tag: u64) -> Position {
        self.forward(&self.probe(user_key, tag), Side::AtOrAfter)
    }

    /// The last entry at or before the key.
    pub(crate) fn at_or_before(&self, user_key: &[u8], tag: u64) -> Position {
        self.backward(&self.probe(user_key, tag), Side::AtOrBefore)
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Position {
        let mut node = self.follow(&self.root);
        // The leftmost child never changes, and a former root's is the tree's, so no version is
        // needed on the way.
        while !node.is_leaf() {
            node = node.child(0).expect("an inner node has a leftmost child");
        }
        Self::stand_on_first(node)
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Position {
        retry(|| {
            let leaf = self.follow(&self.tail);
            let version = leaf.read_version();
            let (count, right) = (leaf.count(), leaf.right());
            if !leaf.unchanged(version) || right.is_some() {
                return None; // A split of the tail is about to move it.
            }
            match count.checked_sub(1) {
                Some(index) => Self::stand(leaf, version, index),
                None => Some(Position::END),
            }
        })
    }

    #[inline]
    fn leaf_of(&self, at: &Position) -> Option<NodeRef<'_>> {
        // SAFETY: positions come from this tree, whose nodes live as long as it does.
        unsafe { NodeRef::from_pointer(at.leaf) }
    }

    /// The entry at a position of this tree.
    #[inline]
    pub(crate) fn entry(&self, at: &Position) -> Option<Entry<'_>> {
        // SAFETY: positions come from this tree, whose entries live as long as it is used.
        unsafe { Entry::from_pointer(at.entry) }
    }

    /// The position after `at`.
    #[inline]
    pub(crate) fn next(&self, at: &Position) -> Position {
        let (Some(leaf), Some(entry)) = (self.leaf_of(at), self.entry(at)) else {
            return Position::END;
        };
        Self::prefetch_ahead(leaf, at.index + 1 + AHEAD);
        if let Some(position) = Self::stand(leaf, at.version, at.index + 1) {
            return position;
        }
        self.forward(&Probe::of(&self.order, entry), Side::After)
    }

    /// The position before `at`.
    pub(crate) fn prev(&self, at: &Position) -> Position {
        let (Some(leaf), Some(entry)) = (self.leaf_of(at), self.entry(at)) else {
            return Position::END;
        };
        if let Some(index) = at.index.checked_sub(1)
            && let Some(position) = Self::stand(leaf, at.version, index)
        {
            let ahead = index.saturating_sub(AHEAD);
            Self::prefetch_entries(leaf, ahead, ahead + 1);
            return position;
        }
        self.backward(&Probe::of(&self.order, entry), Side::Before)
    }

    /// Prefetches the entry `index` slots from the leaf's first, in this leaf or the next.
    #[inline]
    fn prefetch_ahead(leaf: NodeRef<'_>, index: usize) {
        let count = leaf.count();
        if index < count {
            Self::prefetch_entries(leaf, index, index + 1);
        } else if let Some(right) = leaf.right() {
            let index = (index - count).min(SLOTS - 1);
            Self::prefetch_entries(right, index, index + 1);
        }
    }

    #[inline]
    fn prefetch_entries(leaf: NodeRef<'_>, from: usize, to: usize) {
        for entry in (from..to).filter_map(|index| leaf.entry(index)) {
            prefetch(entry.pointer().cast_const(), AHEAD_LINES);
        }
    }
}

const _: () = assert!(size_of::<Node>().is_multiple_of(LINE_BYTES));
