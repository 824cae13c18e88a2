//! A skiplist over entries: concurrent inserts by CAS, reads that take no lock.
//!
//! A node is a tower of links; its entry's pointer is the first word. Level 0 is a sorted list of
//! all nodes; a node is in the set from the moment its level-0 link is in place. Higher levels only
//! shorten the way. Nodes never leave, so a position stays good for ever.

use std::cmp::Ordering as Order;

use drumlin_base::KeyOrder;

use crate::arena::Arena;
use crate::entry::Entry;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

const HEIGHT_MAX: usize = 12;

#[repr(C)]
struct Node {
    entry: *mut u8,
    /// Only the first `height` links exist in memory.
    links: [AtomicPtr<Node>; HEIGHT_MAX],
}

/// Entries in internal-key order.
pub(crate) struct Tree {
    order: KeyOrder,
    nodes: Arena,
    head: [AtomicPtr<Node>; HEIGHT_MAX],
    height: AtomicU32,
    seed: AtomicU64,
}

/// A place in the list; null is past either end.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    node: *mut Node,
}

// SAFETY: nodes are never changed but through atomics, and whoever uses a position holds the list.
unsafe impl Send for Position {}

impl Position {
    pub(crate) const END: Self = Self {
        node: std::ptr::null_mut(),
    };
}

// SAFETY: nodes are reached through atomics only, and live as long as the list.
unsafe impl Send for Tree {}
// SAFETY: as above.
unsafe impl Sync for Tree {}

impl Tree {
    pub(crate) fn new(order: KeyOrder) -> Self {
        Self {
            order,
            nodes: Arena::new(8),
            head: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            height: AtomicU32::new(1),
            seed: AtomicU64::new(1),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.nodes.bytes()
    }

    #[inline]
    fn link(&self, node: *mut Node, level: usize) -> &AtomicPtr<Node> {
        if node.is_null() {
            return &self.head[level];
        }
        // SAFETY: a node that is not null came out of a link and lives as long as the list.
        let links = unsafe { &raw const (*node).links }.cast::<AtomicPtr<Node>>();
        // SAFETY: nodes found at `level` have more than `level` links.
        let link = unsafe { links.add(level) };
        // SAFETY: the link was initialized before the node was published.
        unsafe { &*link }
    }

    #[inline]
    pub(crate) fn entry(&self, at: Position) -> Option<Entry<'_>> {
        if at.node.is_null() {
            return None;
        }
        // SAFETY: the node is alive, and its entry pointer was written before it was published.
        let pointer = unsafe { (*at.node).entry };
        // SAFETY: written by `insert` from an entry whose arena outlives the list.
        unsafe { Entry::from_pointer(pointer) }
    }

    fn compare(&self, node: *mut Node, user_key: &[u8], tag: u64) -> Order {
        let Some(entry) = self.entry(Position { node }) else {
            return Order::Greater;
        };
        let (own_key, own_tag) = entry.user_key_and_tag();
        self.order
            .compare(own_key, user_key)
            .then(tag.cmp(&own_tag))
    }

    /// The nodes around the key at each level: `before` < key (or <= if `through`) <= `after`.
    fn find(
        &self,
        user_key: &[u8],
        tag: u64,
        through: bool,
        around: &mut [(*mut Node, *mut Node); HEIGHT_MAX],
    ) {
        let mut before = std::ptr::null_mut();
        for level in (0..HEIGHT_MAX).rev() {
            loop {
                let after = self.link(before, level).load(Ordering::Acquire);
                let order = self.compare(after, user_key, tag);
                if order == Order::Less || (through && order == Order::Equal) {
                    before = after;
                } else {
                    around[level] = (before, after);
                    break;
                }
            }
        }
    }

    pub(crate) fn insert(&self, entry: Entry<'_>) {
        let (user_key, tag) = entry.user_key_and_tag();
        let mut around = [(std::ptr::null_mut(), std::ptr::null_mut()); HEIGHT_MAX];
        self.find(user_key, tag, false, &mut around);
        let mut draw = drumlin_base::rng::Rng::new(self.seed.fetch_add(1, Ordering::Relaxed));
        let height = 1 + (0..HEIGHT_MAX - 1).take_while(|_| draw.one_in(4)).count();
        self.height.fetch_max(height as u32, Ordering::Relaxed);
        let bytes = size_of::<*mut u8>() + height * size_of::<AtomicPtr<Node>>();
        let node = self.nodes.allocate(bytes).cast::<Node>().as_ptr();
        // SAFETY: `repr(C)` puts the entry first; fresh memory, large enough for it and the links.
        unsafe { node.cast::<*mut u8>().write(entry.pointer()) };
        for level in 0..height {
            // SAFETY: as above.
            let links = unsafe { &raw mut (*node).links }.cast::<AtomicPtr<Node>>();
            // SAFETY: `level` is below `height`.
            let link = unsafe { links.add(level) };
            // SAFETY: as above.
            unsafe { link.write(AtomicPtr::new(std::ptr::null_mut())) };
        }
        for level in 0..height {
            loop {
                let (before, after) = around[level];
                self.link(node, level).store(after, Ordering::Relaxed);
                let link = self.link(before, level);
                if link
                    .compare_exchange(after, node, Ordering::Release, Ordering::Relaxed)
                    .is_ok()
                {
                    break;
                }
                self.find(user_key, tag, false, &mut around);
            }
        }
    }

    pub(crate) fn first(&self) -> Position {
        Position {
            node: self.head[0].load(Ordering::Acquire),
        }
    }

    pub(crate) fn last(&self) -> Position {
        let mut before = std::ptr::null_mut();
        for level in (0..HEIGHT_MAX).rev() {
            loop {
                let after = self.link(before, level).load(Ordering::Acquire);
                if after.is_null() {
                    break;
                }
                before = after;
            }
        }
        Position { node: before }
    }

    pub(crate) fn at_or_after(&self, user_key: &[u8], tag: u64) -> Position {
        let mut around = [(std::ptr::null_mut(), std::ptr::null_mut()); HEIGHT_MAX];
        self.find(user_key, tag, false, &mut around);
        Position { node: around[0].1 }
    }

    pub(crate) fn at_or_before(&self, user_key: &[u8], tag: u64) -> Position {
        let mut around = [(std::ptr::null_mut(), std::ptr::null_mut()); HEIGHT_MAX];
        self.find(user_key, tag, true, &mut around);
        Position { node: around[0].0 }
    }

    pub(crate) fn next(&self, at: Position) -> Position {
        Position {
            node: self.link(at.node, 0).load(Ordering::Acquire),
        }
    }

    pub(crate) fn prev(&self, at: Position) -> Position {
        let Some(entry) = self.entry(at) else {
            return Position::END;
        };
        let (user_key, tag) = entry.user_key_and_tag();
        let mut around = [(std::ptr::null_mut(), std::ptr::null_mut()); HEIGHT_MAX];
        self.find(user_key, tag, false, &mut around);
        Position { node: around[0].0 }
    }
}
