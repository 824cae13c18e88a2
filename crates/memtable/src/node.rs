//! One node of the tree: a sorted array under a versioned latch.
//!
//! The idea is a sequence lock. A reader takes nothing and writes nothing:
//!
//! ```text
//! read     note an even version · read · is the version still the same?   (no: forget it all, start over)
//! write    latch: make the version odd · change · unlatch: make it one never seen before
//! ```
//!
//! (Boehm, Can Seqlocks Get Along With Programming Language Memory Models, MSPC 2012; Leis et al., The ART of
//! Practical Synchronization, DaMoN 2016.) Values read in between may be torn, so they are read through
//! atomics, pointers always lead to something whole, and nothing read is trusted before the check.
//!
//! Trick 1: a search compares numbers. Each slot has a key prefix, eight bytes as a number, beside its entry,
//! and only slots whose key prefixes tie need a visit to the entry: that saves a cache miss in each step.
//!
//! Trick 2: key prefixes are taken behind the bytes that all keys of the node share, which its fences prove;
//! so they differ even if keys begin alike.
//!
//! Invariants, whenever the latch is open:
//! - the first `count` slots hold a key prefix and an entry each, ascending; in an inner node the entries
//!   are separators, and slot `i` also holds the child to the right of separator `i`;
//! - every key in or below the node is in `low <= key < high` (null is unbounded), and all user keys in that
//!   range agree in their first `shared` bytes; key prefixes are taken after those;
//! - a leaf with a low fence holds that very entry as its first. A leaf is empty only while it is the whole
//!   tree. Nodes are never freed, never merge or change level, and a node's low fence never changes.

use std::cmp::Ordering as Order;
use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};

use drumlin_base::bytes::{LINE_BYTES, prefetch};

use crate::arena::Arena;
use crate::entry::Entry;
use crate::probe::Probe;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence, pause, step};

/// Slots of a node. Measured; see the crate's documentation.
#[cfg(not(loom))]
pub(crate) const SLOTS: usize = 64;
/// Few enough that the model reaches splits of leaves and of inner nodes.
#[cfg(loom)]
pub(crate) const SLOTS: usize = 3;

/// The shared part is lengthened only when it grows by this much: key prefixes then still hold at least five
/// bytes that differ, and splits seldom need to visit the entries for new key prefixes.
const SHARED_STEP: usize = 4;

/// The part that leaves and inner nodes share. The header is one cache line, the key prefixes
/// follow.
#[repr(C, align(64))]
pub(crate) struct Node {
    version: AtomicU64,
    count: AtomicU32,
    shared: AtomicU32,
    low: AtomicPtr<u8>,
    high: AtomicPtr<u8>,
    /// Of a leaf: the leaf to its right. Of an inner node: the child left of all separators.
    link: AtomicPtr<Node>,
    /// Distance from the leaves; never changes.
    level: u32,
    prefixes: [AtomicU64; SLOTS],
    entries: [AtomicPtr<u8>; SLOTS],
}

/// A node with children, which is one of `level > 0`.
#[repr(C)]
struct Inner {
    node: Node,
    children: [AtomicPtr<Node>; SLOTS],
}

/// A node that is alive for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    at: NonNull<Node>,
    tree: PhantomData<&'a Node>,
}

impl Deref for NodeRef<'_> {
    type Target = Node;

    #[inline(always)]
    fn deref(&self) -> &Node {
        self.node()
    }
}

/// One slot's content.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    prefix: u64,
    entry: *mut u8,
    /// Null in leaves.
    child: *mut Node,
}

impl Slot {
    /// `probe`'s entry with its key prefix after `shared` bytes, and a child for inner nodes.
    #[inline]
    pub(crate) fn new(
        probe: &Probe<'_>,
        shared: usize,
        entry: Entry<'_>,
        child: *mut Node,
    ) -> Self {
        debug_assert!(
            probe.user_key.len() >= shared,
            "a key between the fences has the bytes that all of them share"
        );
        Self {
            prefix: probe.prefix(shared),
            entry: entry.pointer(),
            child,
        }
    }
}

impl<'a> NodeRef<'a> {
    /// An empty node without fences.
    pub(crate) fn allocate(arena: &'a Arena, level: u32) -> Self {
        let node = Node {
            version: AtomicU64::new(0),
            count: AtomicU32::new(0),
            shared: AtomicU32::new(0),
            low: AtomicPtr::new(null_mut()),
            high: AtomicPtr::new(null_mut()),
            link: AtomicPtr::new(null_mut()),
            level,
            prefixes: std::array::from_fn(|_| AtomicU64::new(0)),
            entries: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
        };
        let at = if level == 0 {
            let at = arena.allocate(size_of::<Node>()).cast::<Node>();
            // SAFETY: fresh memory of this size; the arena aligns to cache lines.
            unsafe { at.write(node) };
            at
        } else {
            let at = arena.allocate(size_of::<Inner>()).cast::<Inner>();
            let children = std::array::from_fn(|_| AtomicPtr::new(null_mut()));
            // SAFETY: as above.
            unsafe { at.write(Inner { node, children }) };
            at.cast::<Node>() // `repr(C)`: the node is the first field.
        };
        Self {
            at,
            tree: PhantomData,
        }
    }

    /// The node at `pointer`; `None` for null.
    ///
    /// # Safety
    /// `pointer` must be null or come from [`NodeRef::pointer`], of a node alive for `'a` whose
    /// writing happens before this call.
    #[inline]
    pub(crate) unsafe fn from_pointer(pointer: *mut Node) -> Option<Self> {
        NonNull::new(pointer).map(|at| Self {
            at,
            tree: PhantomData,
        })
    }

    #[inline(always)]
    fn node(self) -> &'a Node {
        // SAFETY: made by `allocate` or `from_pointer`, whose callers promise a node that is whole
        // and alive for `'a`; it is changed through atomics only.
        unsafe { self.at.as_ref() }
    }

    /// The pointer to publish.
    #[inline]
    pub(crate) fn pointer(self) -> *mut Node {
        self.at.as_ptr()
    }

    #[inline]
    fn children(self) -> &'a [AtomicPtr<Node>; SLOTS] {
        assert!(!self.is_leaf(), "only inner nodes have children");
        // SAFETY: `level > 0` nodes were allocated as `Inner`, and `at` may reach all of it.
        let inner = unsafe { self.at.cast::<Inner>().as_ref() };
        &inner.children
    }

    /// The child that covers keys of this `rank`. `None` only if the node changed meanwhile.
    #[inline]
    pub(crate) fn child(self, rank: usize) -> Option<Self> {
        let link = match rank.checked_sub(1) {
            None => &self.node().link,
            Some(slot) => &self.children()[slot],
        };
        // Acquire: pairs with the Release in `put` and `set_link`, so that the node is seen whole.
        let pointer = link.load(Ordering::Acquire);
        // SAFETY: links are null or lead to nodes of the same arena.
        unsafe { Self::from_pointer(pointer) }
    }

    /// The leaf to the right.
    #[inline]
    pub(crate) fn right(self) -> Option<Self> {
        debug_assert!(self.is_leaf());
        // Acquire: pairs with the Release in `set_link`, so that the node is seen whole.
        let pointer = self.link.load(Ordering::Acquire);
        // SAFETY: links are null or lead to nodes of the same arena.
        unsafe { Self::from_pointer(pointer) }
    }

    #[inline]
    fn load_entry(pointer: &AtomicPtr<u8>) -> Option<Entry<'a>> {
        // Acquire: pairs with the Release in `put` and `set_fences`, so that the entry's bytes are
        // seen whole even before the version is checked.
        let pointer = pointer.load(Ordering::Acquire);
        // SAFETY: null or an entry whose arena lives as long as the tree, see `Tree::insert`.
        unsafe { Entry::from_pointer(pointer) }
    }

    /// The entry in slot `index`. `None` only if the slot was never used.
    #[inline]
    pub(crate) fn entry(self, index: usize) -> Option<Entry<'a>> {
        Self::load_entry(&self.node().entries[index])
    }

    /// As [`NodeRef::entry`], for any index.
    #[inline]
    pub(crate) fn entry_if_used(self, index: usize) -> Option<Entry<'a>> {
        Self::load_entry(self.node().entries.get(index)?)
    }

    /// The fence all keys are at or after.
    #[inline]
    pub(crate) fn low(self) -> Option<Entry<'a>> {
        Self::load_entry(&self.node().low)
    }

    /// The fence all keys are before.
    #[inline]
    pub(crate) fn high(self) -> Option<Entry<'a>> {
        Self::load_entry(&self.node().high)
    }

    /// How many of the node's entries are before the probe, or with `through`, at or before it.
    ///
    /// Two binary searches: one over the key prefixes, whose cache lines are prefetched already, and one that
    /// visits entries, over the slots whose key prefixes tie: usually none or one.
    #[inline]
    pub(crate) fn rank(self, probe: &Probe<'_>, through: bool) -> Rank {
        let count = self.count();
        let prefix = probe.prefix(self.shared());
        let from = partition(0, count, |index| self.prefix(index) < prefix);
        if from == count || self.prefix(from) != prefix {
            return Rank {
                rank: from,
                tied: false,
            };
        }
        let to = partition(from + 1, count, |index| self.prefix(index) == prefix);
        let rank = partition(from, to, |index| {
            let order = self
                .entry(index)
                .map_or(Order::Greater, |own| probe.order_of(own));
            order == Order::Less || (through && order == Order::Equal)
        });
        Rank {
            rank,
            tied: rank < to,
        }
    }

    /// Inserts at `index`, and shifts the slots behind it.
    ///
    /// Requires: the latch is held and the node is not full.
    pub(crate) fn insert(self, index: usize, slot: Slot) {
        let count = self.count();
        debug_assert!(index <= count, "no slot is left free");
        debug_assert!(count < SLOTS, "full nodes are split on the way down");
        debug_assert_eq!(
            self.is_leaf(),
            slot.child.is_null(),
            "only inner nodes have children"
        );
        for from in (index..count).rev() {
            self.put(from + 1, self.slot(from));
        }
        self.put(index, slot);
        // Relaxed: readers believe it only after the version check.
        self.count.store(count as u32 + 1, Ordering::Relaxed);
        debug_assert!(cfg!(loom) || self.ascends_at(index), "key prefixes ascend");
    }

    /// Whether the key prefix at `index` is between its neighbours'. Requires: as [`NodeRef::insert`].
    fn ascends_at(self, index: usize) -> bool {
        let from = index.saturating_sub(1);
        (from..=index).all(|at| at + 1 >= self.count() || self.prefix(at) <= self.prefix(at + 1))
    }

    #[inline]
    fn slot(self, index: usize) -> Slot {
        // Relaxed, all: only the holder of the latch calls this, and it wrote or acquired them.
        Slot {
            prefix: self.prefix(index),
            entry: self.entries[index].load(Ordering::Relaxed),
            child: if self.is_leaf() {
                null_mut()
            } else {
                self.children()[index].load(Ordering::Relaxed)
            },
        }
    }

    #[inline]
    fn put(self, index: usize, slot: Slot) {
        step();
        // Relaxed: readers believe a key prefix only after the version check.
        self.prefixes[index].store(slot.prefix, Ordering::Relaxed);
        // Release, both: readers follow pointers before the check; pairs with the Acquire in
        // `load_entry` and `child`.
        self.entries[index].store(slot.entry, Ordering::Release);
        if !self.is_leaf() {
            self.children()[index].store(slot.child, Ordering::Release);
        }
    }

    /// The entry that [`NodeRef::split_to`] makes the separator.
    pub(crate) fn middle(self) -> Entry<'a> {
        let middle = self.entry(self.count() / 2);
        middle.expect("slots below the count are used")
    }

    /// Moves the upper half to the fresh node `right`; the separator between them.
    ///
    /// Requires: the latch is held, the node is full, and `right` is not reachable yet.
    pub(crate) fn split_to(self, right: Self) -> Entry<'a> {
        let count = self.count();
        assert!(count == SLOTS, "only full nodes are split");
        assert!(cfg!(loom) || right.count() == 0, "the new node is empty");
        assert!(
            right.level() == self.level(),
            "halves have the level of the whole"
        );
        let middle = count / 2;
        let separator = self.middle();
        // A leaf keeps the separator as the right half's first entry; an inner node passes it up.
        let first = if self.is_leaf() {
            middle
        } else {
            right.set_link(self.slot(middle).child);
            middle + 1
        };
        // Relaxed, all: `right` is private, and this node's latch is held.
        right.shared.store(self.shared() as u32, Ordering::Relaxed);
        for from in first..count {
            right.put(from - first, self.slot(from));
        }
        right.count.store((count - first) as u32, Ordering::Relaxed);
        self.count.store(middle as u32, Ordering::Relaxed);
        let passed_up = usize::from(!self.is_leaf());
        assert!(
            cfg!(loom) || self.count() + right.count() + passed_up == SLOTS,
            "every entry is in one half, or goes up"
        );
        self.fence_off(right, separator);
        separator
    }

    /// Links the private leaf or inner node `right` in behind `separator`.
    ///
    /// Requires: the latch is held.
    pub(crate) fn fence_off(self, right: Self, separator: Entry<'a>) {
        assert!(
            cfg!(loom) || right.low().is_none(),
            "a node's low fence never changes"
        );
        // Release, all: pairs with the Acquire in `load_entry`.
        let high = self.node().high.load(Ordering::Relaxed);
        right.high.store(high, Ordering::Release);
        right.low.store(separator.pointer(), Ordering::Release);
        self.node()
            .high
            .store(separator.pointer(), Ordering::Release);
        if self.is_leaf() {
            right.set_link(self.link.load(Ordering::Relaxed));
            self.set_link(right.pointer());
        }
    }

    /// Takes the key prefixes anew if the fences now prove a longer shared part.
    ///
    /// Requires: the latch is held or the node is private.
    pub(crate) fn lengthen_prefix(self, order: &'a drumlin_base::KeyOrder) {
        let (Some(low), Some(high)) = (self.low(), self.high()) else {
            return;
        };
        let shared = Probe::of(order, low).shared_bytes(&Probe::of(order, high));
        if shared < self.shared() + SHARED_STEP {
            return;
        }
        for index in 0..self.count() {
            let entry = self.entry(index).expect("slots below the count are used");
            let prefix = Probe::of(order, entry).prefix(shared);
            // Relaxed, both: readers believe them only after the version check.
            self.prefixes[index].store(prefix, Ordering::Relaxed);
        }
        self.shared.store(shared as u32, Ordering::Relaxed);
    }

    /// Prefetches every cache line that a search of this node reads.
    #[inline]
    pub(crate) fn prefetch(self) {
        prefetch(self.at.as_ptr(), size_of::<Node>().div_ceil(LINE_BYTES));
    }
}

/// Where a key belongs in a node.
#[derive(Clone, Copy)]
pub(crate) struct Rank {
    /// Entries before the key.
    pub(crate) rank: usize,
    /// Whether the entry at `rank` has the key's prefix: if not, its user key is another.
    pub(crate) tied: bool,
}

impl Node {
    /// An even version to read under; waits while a writer holds the latch, a few dozen
    /// nanoseconds unless it lost its processor.
    #[inline]
    pub(crate) fn read_version(&self) -> u64 {
        let mut turns = 0;
        loop {
            // Acquire: pairs with the Release in `unlatch`, so that the state it left is seen.
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 0 {
                step();
                return version;
            }
            pause(&mut turns);
        }
    }

    /// Whether everything read since `version` was noted is one consistent state.
    #[inline]
    pub(crate) fn unchanged(&self, version: u64) -> bool {
        step();
        // Pairs with the Release fence in `latch`: if any read so far saw a store made under a
        // latch, the load below sees that latch.
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }

    /// Takes the latch if nothing changed since `version` was noted.
    #[inline]
    pub(crate) fn latch(&self, version: u64) -> bool {
        // As in `unchanged`, for the reads before.
        fence(Ordering::Acquire);
        let taken = self
            .version
            // Acquire: pairs with the Release in `unlatch` of the thread that changed the node
            // last.
            .compare_exchange(version, version | 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        // Keeps the stores that follow behind the version's; pairs with `unchanged`.
        fence(Ordering::Release);
        taken
    }

    /// Opens the latch after a change. Requires: this thread took it at `version`.
    #[inline]
    pub(crate) fn unlatch(&self, version: u64) {
        debug_assert!(self.is_latched_at(version));
        step();
        // Release: pairs with `read_version` and `latch`.
        self.version.store(version + 2, Ordering::Release);
    }

    /// Opens the latch when nothing was changed. Requires: this thread took it at `version`.
    #[inline]
    pub(crate) fn unlatch_unchanged(&self, version: u64) {
        debug_assert!(self.is_latched_at(version));
        // Release: pairs with `read_version` and `latch`.
        self.version.store(version, Ordering::Release);
    }

    /// Whether the latch is held that was taken at `version`. For asserts: a loom model need not explore it.
    fn is_latched_at(&self, version: u64) -> bool {
        // Relaxed: the holder wrote it.
        cfg!(loom) || (version & 1 == 0 && self.version.load(Ordering::Relaxed) == version | 1)
    }

    /// Used slots.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        // Relaxed: believed only after the version check, or under the latch.
        self.count.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.count() == SLOTS
    }

    #[inline]
    pub(crate) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    #[inline]
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Bytes of user keys that key prefixes skip.
    #[inline]
    pub(crate) fn shared(&self) -> usize {
        // Relaxed: believed only after the version check, or under the latch.
        self.shared.load(Ordering::Relaxed) as usize
    }

    #[inline]
    fn prefix(&self, index: usize) -> u64 {
        // Relaxed: believed only after the version check, or under the latch.
        self.prefixes[index].load(Ordering::Relaxed)
    }

    /// Sets the right neighbour of a leaf, or the leftmost child of an inner node.
    #[inline]
    pub(crate) fn set_link(&self, pointer: *mut Node) {
        // Release: pairs with the Acquire in `child` and `right`.
        self.link.store(pointer, Ordering::Release);
    }
}

/// The first index in `from..to` for which `before` is false. Requires: it is true for a prefix of
/// the range and false for the rest.
#[inline(always)]
fn partition(from: usize, to: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut base, mut left) = (from, to.saturating_sub(from));
    while left > 0 {
        let half = left / 2;
        let holds = before(base + half);
        base = select_unpredictable(holds, base + half + 1, base);
        left = select_unpredictable(holds, left - half - 1, half);
    }
    base
}
