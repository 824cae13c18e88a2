//! Which WAL files hold sections of two-phase commit that a recovery would still need.
//!
//! Invariant: a section is needed until it is rolled back, or until its commit's WAL is needed by no family: then what it
//! wrote is in tables.
//!
//! Thread safety: any thread. The lock is a leaf. Sections are noted with the lead of the commit queue, before the WAL
//! that has them can be left.

use std::collections::BTreeMap;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, Ordering};

/// See the module.
#[derive(Debug, Default)]
pub struct SectionWals {
    /// Whether there ever was one since the database was opened.
    used: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Sections that wait for their commit, by their WAL: how many.
    open: BTreeMap<u64, usize>,
    /// The WAL files of a section and of its commit.
    committed: Vec<(u64, u64)>,
}

impl SectionWals {
    /// Notes a section in `wal`.
    pub fn prepared(&self, wal: u64) {
        *self.kept.lock().open.entry(wal).or_insert(0) += 1;
        // Release pairs with the acquire in `is_used`.
        self.used.store(true, Ordering::Release);
    }

    /// Notes that a section in `wal` was rolled back.
    pub fn rolled_back(&self, wal: u64) {
        self.kept.lock().close(wal);
    }

    /// Notes that a section in `wal` was committed in the WAL `commit`.
    pub fn committed(&self, wal: u64, commit: u64) {
        let mut kept = self.kept.lock();
        kept.close(wal);
        if !drumlin_base::bug!("committed-section-let-go") {
            kept.committed.push((wal, commit));
        }
    }

    /// Whether there ever was a section since the database was opened.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// The oldest WAL with a section that is needed, when families need WAL files from `needed` on.
    pub fn oldest(&self, needed: u64) -> Option<u64> {
        let kept = self.kept.lock();
        let open = kept.open.first_key_value().map(|(&wal, _)| wal);
        let committed = kept.committed.iter();
        let committed = committed.filter(|(_, commit)| *commit >= needed);
        committed.map(|(wal, _)| *wal).chain(open).min()
    }

    /// The WAL files below `needed` that are kept for sections, ascending, when families need WAL files from there on.
    pub fn below(&self, needed: u64) -> Vec<u64> {
        let kept = self.kept.lock();
        let committed = kept
            .committed
            .iter()
            .filter(|(_, commit)| *commit >= needed);
        let wals = committed.map(|(wal, _)| wal).chain(kept.open.keys());
        let mut below: Vec<u64> = wals.copied().filter(|wal| *wal < needed).collect();
        below.sort_unstable();
        below.dedup();
        below
    }

    /// Forgets the sections whose commit no family needs.
    ///
    /// Requires: the MANIFEST says that families need WAL files from `needed` on.
    pub fn forget_below(&self, needed: u64) {
        let mut kept = self.kept.lock();
        kept.committed.retain(|(_, commit)| *commit >= needed);
    }
}

impl Kept {
    fn close(&mut self, wal: u64) {
        if let Some(count) = self.open.get_mut(&wal) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&wal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_needed_until_its_commit_is_in_tables() {
        let wals = SectionWals::default();
        assert!(!wals.is_used());
        wals.prepared(5);
        wals.prepared(5);
        wals.prepared(7);
        assert_eq!(wals.oldest(9), Some(5));
        wals.rolled_back(5);
        assert_eq!(wals.oldest(9), Some(5));
        wals.committed(5, 8);
        assert_eq!((wals.oldest(8), wals.oldest(9)), (Some(5), Some(7)));
        assert_eq!((wals.below(8), wals.below(9)), (vec![5, 7], vec![7]));
        wals.forget_below(9);
        assert_eq!(wals.oldest(8), Some(7));
        wals.rolled_back(7);
        assert_eq!(wals.oldest(0), None);
        assert!(wals.is_used());
    }
}
