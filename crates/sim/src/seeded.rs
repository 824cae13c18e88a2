//! The catalogue of deliberate bugs: where each is, and who sees it first.
//!
//! A suite is `sim` or `cuts`, with a colon and the seed to begin at where the first that shows the bug
//! comes late, or a program with tests, with a colon and the filter of its tests where one is enough. A
//! program is called as its file is, without the hash: `faults`, `drumlin_table`; the unit tests of the
//! engine are `drumlin`.

/// A place that can be broken on purpose, `drumlin_base::bug!("name")` in the sources.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// What the environment calls it.
    pub name: &'static str,
    /// The file or directory of `crates` that has it, without `src` and `.rs`.
    pub room: &'static str,
    /// Who sees it first.
    pub suite: &'static str,
}

const fn bug(name: &'static str, room: &'static str, suite: &'static str) -> Bug {
    Bug { name, room, suite }
}

/// Every such place.
#[rustfmt::skip]
pub const BUGS: &[Bug] = &[
    bug("checkpoint-without-wal", "engine/checkpoint", "sim"),
    bug("compaction-reorders-operands", "engine/compaction", "cuts"),
    bug("current-dir-unsynced", "engine/version", "cuts"),
    bug("current-unsynced", "engine/version", "sim"),
    bug("failed-group-forgotten", "engine/published", "sim"),
    bug("failed-sync-acknowledged", "engine/write", "sim"),
    bug("file-number-reused", "engine/version", "cuts"),
    bug("files-removed-under-readers", "engine/version", "sim"),
    bug("filter-false-negative", "table/filter", "sim"),
    bug("flush-before-wal-sync", "engine/jobs", "cuts"),
    bug("given-up-wal-has-no-length", "engine/wal", "sim:60"),
    bug("manifest-edit-unsynced", "engine/version", "sim"),
    bug("manual-waits-for-ever", "engine/manual", "sim:50"),
    bug("memtable-freed-though-flush-failed", "engine/background", "sim"),
    bug("new-manifest-unsynced", "engine/version", "cuts"),
    bug("older-wals-unsynced", "engine/wal", "cuts"),
    bug("range-tombstone-dropped-early", "engine/compaction", "sim"),
    bug("range-tombstone-unseen", "engine/range_tombstone", "sim"),
    bug("reads-reorder-operands", "engine/iter", "sim"),
    bug("removed-wal-poisons", "engine/wal", "faults:copies::a_wal_given_up"),
    bug("replayed-over-a-gap", "engine/wal_replay", "cuts"),
    bug("snapshots-ignored", "engine/snapshot", "sim"),
    bug("sync-lost-in-group", "engine/write", "cuts"),
    bug("table-names-unsynced", "engine", "cuts"),
    bug("tombstone-dropped-early", "engine/compaction", "sim"),
    bug("torn-tail-kept", "engine/wal", "faults:copies::what_a_torn_append_left"),
    bug("wake-up-lost", "engine/commit_queue", "sim"),
    bug("wal-name-unsynced", "engine/wal_supply", "cuts"),
    bug("wal-removed-early", "engine/jobs", "sim"),
    bug("wal-sync-skipped", "engine/wal", "sim"),
];

/// A bug nobody can miss: that it is caught shows that failures are told. Made by the simulator.
pub const CANARY: Bug = bug("canary", "sim/world", "sim");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_catalogue_is_sorted_and_names_no_bug_twice() {
        assert!(BUGS.is_sorted_by(|one, other| one.name < other.name));
        assert!(BUGS.len() >= 30, "{}", BUGS.len());
    }

    #[test]
    fn the_catalogue_has_what_the_sources_have_and_nothing_else() {
        let mut found = BTreeSet::new();
        let mut elsewhere = Vec::new();
        for source in drumlin_tidy::sources(&[".rs"]) {
            for after in source.text.split("drumlin_base::bug!(\"").skip(1) {
                let name = after.split('"').next().unwrap_or_default();
                // What the comment on top of a type says.
                if name == "name" {
                    continue;
                }
                let place = source.path.replacen("crates/", "", 1).replace("/src/", "/");
                let known = BUGS.iter().chain([&CANARY]).find(|bug| bug.name == name);
                let in_room = |bug: &&Bug| {
                    let inside = place.strip_prefix(bug.room);
                    inside.is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
                };
                if known.filter(in_room).is_none() {
                    elsewhere.push(format!("{name}: {place}"));
                }
                found.insert(name.to_owned());
            }
        }
        assert!(elsewhere.is_empty(), "not in their room: {elsewhere:?}");
        let gone = BUGS.iter().filter(|bug| !found.contains(bug.name));
        assert_eq!(gone.count(), 0, "in the catalogue alone");
    }
}
