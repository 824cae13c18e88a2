//! Whether a table should be compacted for its content, seen while it is written.
//!
//! Over other tables, a table dense in tombstones should. A reader steps over a run of tombstones one by one, so what
//! counts is not how many there are in all but whether many are adjacent. At the bottom, a table should that keeps
//! entries only because of snapshots: tombstones, and values under newer ones. Tables of L0 go down soon by themselves.

use drumlin_base::ValueKind;
use drumlin_base::key::{split_internal, tag_kind};

/// Entries of one step of the window.
const STEP_ENTRIES: u32 = 128;
/// Steps in the window: 1,024 entries, some 20 microseconds of walking.
const STEPS: usize = 8;
/// Tombstones in the window that make the table dense: three in four.
const DENSE: u32 = STEP_ENTRIES * STEPS as u32 / 4 * 3;

/// Counts tombstones in a window over the last entries written.
#[derive(Clone, Debug, Default)]
pub(crate) struct DensityWindow {
    steps: [u32; STEPS],
    at: usize,
    entries: u32,
    tombstones: u32,
    dense: bool,
}

impl DensityWindow {
    /// Takes in the next entry.
    #[inline]
    pub(crate) fn add(&mut self, internal_key: &[u8]) {
        if is_tombstone(internal_key) {
            self.tombstones += 1;
        }
        self.entries += 1;
        if self.entries == STEP_ENTRIES {
            self.end_step();
        }
    }

    fn end_step(&mut self) {
        if let Some(step) = self.steps.get_mut(self.at) {
            *step = self.tombstones;
        }
        self.at = (self.at + 1) % STEPS;
        (self.entries, self.tombstones) = (0, 0);
        self.dense |= self.steps.iter().sum::<u32>() >= DENSE;
    }

    /// Whether the window ever was full of tombstones.
    pub(crate) fn is_dense(&self) -> bool {
        self.dense
    }
}

/// A table at the bottom is marked when more than this part of its entries is there only because of
/// snapshots.
const PROTECTED_PART: u64 = 64;

/// The property of a table that is watched while it is written.
#[derive(Clone, Debug, Default)]
pub(crate) enum Watch {
    /// Nothing.
    #[default]
    Nothing,
    /// Adjacent tombstones.
    Tombstones(DensityWindow),
    /// Entries that only a snapshot protects, so many so far.
    Protected(u64),
}

impl Watch {
    /// The watch for a table of `level`; `bottommost` when nothing is below it,
    /// `protects` when some snapshot is older than the newest entry. Where none is, marking a table
    /// at the bottom would have it rewritten for ever.
    pub(crate) fn new(level: usize, bottommost: bool, protects: bool) -> Self {
        match (level, bottommost, protects) {
            (0, _, _) | (_, true, false) => Self::Nothing,
            (_, true, true) => Self::Protected(0),
            (_, false, _) => Self::Tombstones(DensityWindow::default()),
        }
    }

    /// Takes in the next entry; `first` when it is the newest of its user key.
    #[inline]
    pub(crate) fn add(&mut self, internal_key: &[u8], first: bool) {
        match self {
            Self::Nothing => {}
            Self::Tombstones(window) => window.add(internal_key),
            Self::Protected(entries) => {
                *entries += u64::from(!first || is_tombstone(internal_key));
            }
        }
    }

    /// Whether the table, with `points` entries and `ranges` range tombstones, should be compacted.
    pub(crate) fn asks(&self, points: u64, ranges: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::Tombstones(window) => window.is_dense(),
            Self::Protected(entries) => *entries > points / PROTECTED_PART || ranges > 0,
        }
    }
}

/// Whether the entry deletes its key.
#[inline]
fn is_tombstone(internal_key: &[u8]) -> bool {
    let kind = split_internal(internal_key).map(|(_, tag)| tag_kind(tag));
    kind == Some(ValueKind::Deletion as u8) || kind == Some(ValueKind::SingleDeletion as u8)
}

#[cfg(test)]
mod tests {
    use drumlin_base::key::internal_key;

    use super::*;

    fn is_dense(entries: impl Iterator<Item = bool>) -> bool {
        let mut window = DensityWindow::default();
        for deletes in entries {
            let kind = match deletes {
                true => ValueKind::Deletion,
                false => ValueKind::Value,
            };
            window.add(&internal_key(b"key", 1, kind));
        }
        window.is_dense()
    }

    #[test]
    fn the_bottom_counts_what_only_snapshots_protect() {
        let asks = |protected: u64, ranges| {
            let mut watch = Watch::new(6, true, true);
            for at in 0..640 {
                let key = internal_key(b"key", 1, ValueKind::Value);
                watch.add(&key, at >= protected);
            }
            watch.asks(640, ranges)
        };
        assert!(!asks(10, 0) && asks(11, 0) && asks(0, 1));
        let mut l0 = Watch::new(0, true, true);
        l0.add(&internal_key(b"key", 1, ValueKind::Deletion), false);
        assert!(!l0.asks(1, 1));
        assert!(!Watch::new(6, true, false).asks(1, 1));
    }

    #[test]
    fn tombstones_count_where_they_lie_together() {
        assert!(!is_dense((0..100_000).map(|_| false)));
        assert!(!is_dense((0..100_000).map(|at| at % 2 == 0)));
        assert!(is_dense(
            (0..100_000).map(|at| (7_000..9_000).contains(&at))
        ));
        assert!(is_dense((0..100_000).map(|at| at % 8 != 0)));
        assert!(!is_dense((0..100_000).map(|at| at % 1000 < 300)));
        assert!(!is_dense((0..500).map(|_| true)), "short runs do no harm");
    }
}
