//! The super versions of all families at one moment, made once for as long as none of them changes.
//!
//! A reader of several families needs one moment of them: with super versions loaded one after the other, a rotation in
//! between would let it see the second half of a batch and not the first. So the first reader after a change collects
//! the super versions, and every later one takes the same collection, at the cost of one counted reference.
//!
//! Invariants:
//! - A family first installs its super version and then calls [`MomentCell::forget`], before anything is written to a
//!   memtable that only the new one has. So as long as a moment is present, it has every entry that is published.
//! - The cell keeps no moment that is not present: the memtables and files that only such a moment holds go with its
//!   last reader.
//!
//! Thread safety: every method may be called from any thread; readers take no lock.

use std::sync::Arc;

use drumlin_base::bytes::HazardPtr;
use drumlin_base::sync::atomic::{AtomicU64, Ordering};

/// A collection, and which changes it has seen.
#[derive(Debug)]
pub(crate) struct Moment<T> {
    changes: u64,
    pub(crate) of: T,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MomentCell<T: Send + Sync + 'static> {
    /// Super versions installed, families added and dropped.
    changes: AtomicU64,
    current: HazardPtr<Arc<Moment<T>>>,
}

impl<T: Send + Sync + 'static> Default for MomentCell<T> {
    fn default() -> Self {
        Self {
            changes: AtomicU64::new(0),
            current: HazardPtr::new(None),
        }
    }
}

impl<T: Send + Sync + 'static> MomentCell<T> {
    /// The present moment; `collect` makes it where no reader did since the last change.
    ///
    /// A reader then takes its sequence number, and asks [`MomentCell::is_present`] whether the moment still was the
    /// present one.
    pub(crate) fn load(&self, collect: impl FnOnce() -> T) -> Arc<Moment<T>> {
        if let Some(moment) = self.current.load()
            && self.is_present(&moment)
        {
            return Arc::clone(&moment);
        }
        // Acquire pairs with the release in `forget`: super versions installed before are collected.
        let changes = self.changes.load(Ordering::Acquire);
        let of = collect();
        let moment = Arc::new(Moment { changes, of });
        self.current.store(Some(Arc::clone(&moment)));
        if !self.is_present(&moment) {
            // `forget` may have looked before this one was stored.
            self.current.store(None);
        }
        moment
    }

    /// Whether nothing changed since `moment` was made.
    #[inline]
    pub(crate) fn is_present(&self, moment: &Moment<T>) -> bool {
        self.changes.load(Ordering::Acquire) == moment.changes
    }

    /// Ends the present moment. Call after every install of a super version, and when a family comes or goes.
    pub(crate) fn forget(&self) {
        if drumlin_base::bug!("moments-never-end") {
            return;
        }
        self.changes.fetch_add(1, Ordering::Release);
        // Of this swap and the one in `load` the second sees all that was done before the first: either this takes the
        // stored moment out, or `load` sees the change and does.
        self.current.store(None);
    }
}
