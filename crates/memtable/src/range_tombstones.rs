//! Range tombstones of one memtable, apart from its point entries.
//!
//! They are few and read whole, so a vector behind a lock serves; a reader that finds the count
//! zero, the usual case, never touches the lock.

use std::sync::PoisonError;

use drumlin_base::RangeTombstone;

use crate::sync::{AtomicUsize, Mutex, Ordering};

/// The list, in the order the tombstones were added.
pub(crate) struct RangeTombstoneList {
    count: AtomicUsize,
    bytes: AtomicUsize,
    tombstones: Mutex<Vec<RangeTombstone>>,
}

impl RangeTombstoneList {
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            tombstones: Mutex::new(Vec::new()),
        }
    }

    /// Appends one.
    pub(crate) fn push(&self, tombstone: RangeTombstone) {
        let bytes = size_of::<RangeTombstone>() + tombstone.begin.len() + tombstone.end.len();
        // A thread that died while it held the lock left the vector whole: pushes are all it does.
        let mut tombstones = self
            .tombstones
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        debug_assert!(
            cfg!(loom) || self.count() == tombstones.len(),
            "the count is that of the list"
        );
        tombstones.push(tombstone);
        // Relaxed: a figure for budgets.
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // Relaxed: a reader that must see this tombstone learned its sequence number from the
        // writer, and that hand-over (the engine publishes by Release, readers take by Acquire)
        // orders this store before the reader's load.
        self.count.store(tombstones.len(), Ordering::Relaxed);
    }

    /// How many there are. One relaxed load.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        // Relaxed: see `push`.
        self.count.load(Ordering::Relaxed)
    }

    /// Heap bytes they take, about.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a figure for budgets.
        self.bytes.load(Ordering::Relaxed)
    }

    /// A copy of all of them.
    pub(crate) fn all(&self) -> Vec<RangeTombstone> {
        if self.count() == 0 {
            return Vec::new();
        }
        self.tombstones
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
