//! Pinned sequence numbers: the versions a compaction must keep for readers of the past.
//!
//! Thread safety: every method may be called from any thread; one short lock guards the list. Reads
//! never take it, only taking and dropping snapshots and planning a flush or compaction do.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use drumlin_base::{SEQNO_MAX, SeqNo};
use drumlin_fs::process::Process;
use parking_lot::Mutex;

/// The sequence numbers some [`Snapshot`] pins, each with how many do.
///
/// In a forked child nothing is pinned or released: a thread that is not there may hold the lock.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotList {
    pins: Arc<Mutex<BTreeMap<SeqNo, usize>>>,
    process: Process,
}

impl Default for SnapshotList {
    fn default() -> Self {
        Self {
            pins: Arc::default(),
            process: Process::current(),
        }
    }
}

impl SnapshotList {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Pins the result of `current`, the last published sequence number.
    ///
    /// `current` is called under the list's lock. A compaction that listed the pins before this call
    /// therefore only saw entries at or below the pinned number, and it keeps the newest of those.
    pub(crate) fn take_current(&self, current: impl FnOnce() -> SeqNo) -> Snapshot {
        if !self.process.is_present() {
            return self.pinned(current());
        }
        let mut pins = self.pins.lock();
        let seqno = current();
        debug_assert!(seqno <= SEQNO_MAX);
        *pins.entry(seqno).or_insert(0) += 1;
        self.pinned(seqno)
    }

    /// The snapshot at `seqno`, which is in the list.
    fn pinned(&self, seqno: SeqNo) -> Snapshot {
        Snapshot {
            pin: Arc::new(SnapshotPin {
                seqno,
                pins: Arc::clone(&self.pins),
                process: self.process,
            }),
        }
    }

    /// Whether `snapshot` was taken here.
    #[inline]
    pub(crate) fn owns(&self, snapshot: &Snapshot) -> bool {
        Arc::ptr_eq(&self.pins, &snapshot.pin.pins)
    }

    /// The lowest pinned sequence number.
    pub(crate) fn oldest(&self) -> Option<SeqNo> {
        self.pins.lock().keys().next().copied()
    }

    /// Every pinned sequence number once, ascending.
    pub(crate) fn all(&self) -> Vec<SeqNo> {
        if drumlin_base::bug!("snapshots-ignored") {
            return Vec::new();
        }
        self.pins.lock().keys().copied().collect()
    }

    /// Pins `seqno`.
    ///
    /// Requires: something else pins `seqno` or a lower one, or no compaction runs; otherwise use
    /// [`SnapshotList::take_current`].
    pub(crate) fn take(&self, seqno: SeqNo) -> Snapshot {
        self.take_current(|| seqno)
    }

    #[cfg(test)]
    /// How many snapshots are held.
    pub(crate) fn count(&self) -> usize {
        self.pins.lock().values().sum()
    }

    #[cfg(test)]
    /// Whether no snapshot is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.pins.lock().is_empty()
    }
}

struct SnapshotPin {
    seqno: SeqNo,
    pins: Arc<Mutex<BTreeMap<SeqNo, usize>>>,
    process: Process,
}

impl Drop for SnapshotPin {
    fn drop(&mut self) {
        if !self.process.is_present() {
            return;
        }
        let mut pins = self.pins.lock();
        if let Some(count) = pins.get_mut(&self.seqno) {
            *count -= 1;
            if *count == 0 || drumlin_base::bug!("pin-ends-with-its-first-holder") {
                pins.remove(&self.seqno);
            }
        }
    }
}

/// The database as it was at one moment. Clones share the pin; dropping the last one releases it.
#[derive(Clone)]
pub struct Snapshot {
    pin: Arc<SnapshotPin>,
}

impl Snapshot {
    /// The newest sequence number its readers see.
    #[inline]
    pub fn seqno(&self) -> SeqNo {
        self.pin.seqno
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({})", self.seqno())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_lasts_until_its_last_holder_drops_it() {
        let list = SnapshotList::new();
        let (nine, five) = (list.take(9), list.take(5));
        let (five_again, five_clone) = (list.take(5), five.clone());
        assert_eq!(
            (list.all(), list.oldest(), list.count()),
            (vec![5, 9], Some(5), 3)
        );
        drop((five, five_again));
        assert_eq!(list.oldest(), Some(5));
        drop(five_clone);
        assert_eq!((list.all(), nine.seqno()), (vec![9], 9));
        drop(nine);
        assert!(list.is_empty() && list.oldest().is_none());
    }

    #[test]
    fn snapshots_outlive_their_list() {
        let list = SnapshotList::new();
        let snapshot = list.take_current(|| 7);
        drop(list);
        assert_eq!(snapshot.seqno(), 7);
    }
}
