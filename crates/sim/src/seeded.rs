//! The catalogue of deliberate bugs, and how soon the simulation sees each.

/// Every place that can be broken on purpose, `drumlin_base::bug!("name")` in the sources.
pub const BUGS: &[&str] = &[
    "checkpoint-without-wal",
    "compaction-reorders-operands",
    "current-dir-unsynced",
    "current-unsynced",
    "failed-group-forgotten",
    "failed-sync-acknowledged",
    "file-number-reused",
    "files-removed-under-readers",
    "filter-false-negative",
    "flush-before-wal-sync",
    "given-up-wal-has-no-length",
    "manifest-edit-unsynced",
    "manual-waits-for-ever",
    "memtable-freed-though-flush-failed",
    "new-manifest-unsynced",
    "older-wals-unsynced",
    "range-tombstone-dropped-early",
    "range-tombstone-unseen",
    "reads-reorder-operands",
    "removed-wal-poisons",
    "replayed-over-a-gap",
    "snapshots-ignored",
    "sync-lost-in-group",
    "table-names-unsynced",
    "tombstone-dropped-early",
    "torn-tail-kept",
    "wake-up-lost",
    "wal-name-unsynced",
    "wal-removed-early",
    "wal-sync-skipped",
];

/// A bug nobody can miss: that it is caught shows that failures are told. Made by the simulator.
pub const CANARY: &str = "canary";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_sorted_and_names_no_bug_twice() {
        assert!(BUGS.is_sorted_by(|one, other| one < other));
        assert!(BUGS.len() >= 30, "{}", BUGS.len());
    }
}
