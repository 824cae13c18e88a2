//! The kinds of operation, each with its name in op files and how often it is drawn.

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident $name:literal $full:literal $plain:literal;)*) => {
        /// A kind of operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Verb {
            $($(#[$doc])* $verb,)*
        }

        impl Verb {
            /// Every kind once.
            pub const ALL: &[Self] = &[$(Self::$verb,)*];

            /// Its name in op files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$verb => $name,)*
                }
            }

            /// How often it is drawn, beside the others: in any directory, and in one that takes puts
            /// and deletions only.
            pub(crate) fn weights(self) -> (u32, u32) {
                match self {
                    $(Self::$verb => ($full, $plain),)*
                }
            }
        }
    };
}

verbs! {
    /// Sets a key.
    Put "put" 160 200;
    /// Removes a key.
    Delete "delete" 50 60;
    /// Sets a key that is not there, among those that are removed by single deletions.
    SinglePut "single-put" 24 0;
    /// Removes a key that was put once.
    SingleDelete "single-delete" 18 0;
    /// Adds an operand.
    Merge "merge" 60 0;
    /// Removes a range.
    DeleteRange "delete-range" 16 0;
    /// Several changes over several families at once.
    Batch "batch" 50 40;
    /// The same, put together of two batches.
    BatchAppended "batch-appended" 8 8;
    /// The same, by way of the batch's bytes.
    BatchFromBytes "batch-from-bytes" 8 8;
    /// The same, with a note for the WAL in it.
    BatchWithLogData "batch-with-log-data" 6 0;
    /// A batch with nothing in it.
    BatchEmpty "batch-empty" 2 2;
    /// A synced put.
    PutSynced "put-synced" 14 14;
    /// A put past the WAL, then a flush.
    PutUnlogged "put-unlogged" 4 4;
    /// A put that would rather fail than wait; it is repeated if it does.
    PutImpatient "put-impatient" 6 6;
    /// Several threads write side by side, each its own keys.
    PutParallel "put-parallel" 4 4;
    /// A key longer than allowed.
    PutOversize "put-oversize" 2 2;
    /// A range whose end comes before its begin.
    DeleteRangeInverted "delete-range-inverted" 2 0;
    /// A merge in a family without an operator.
    MergeRefused "merge-refused" 2 0;
    /// A read.
    Get "get" 40 40;
    /// A read at a snapshot.
    GetAt "get-at" 16 16;
    /// A read that leaves no block in the cache.
    GetUncached "get-uncached" 6 6;
    /// A read that trusts checksums.
    GetUnverified "get-unverified" 6 6;
    /// A read of memory only: right, or incomplete.
    GetCached "get-cached" 6 6;
    /// A read whose value is kept and looked at again later.
    GetHeld "get-held" 6 6;
    /// Looks again at the values kept.
    CheckHeld "check-held" 4 4;
    /// Many reads at once.
    MultiGet "multi-get" 20 20;
    /// Many reads at once at a snapshot.
    MultiGetAt "multi-get-at" 8 8;
    /// Get, multi-get, iterator and snapshot say the same.
    GetEveryWay "get-every-way" 10 10;
    /// Makes an iterator, with or without bounds.
    IterNew "iter-new" 20 20;
    /// The same at a snapshot.
    IterNewAt "iter-new-at" 8 8;
    /// To the first key.
    IterFirst "iter-first" 12 12;
    /// To the last key.
    IterLast "iter-last" 12 12;
    /// To the first key at or after one.
    IterSeek "iter-seek" 20 20;
    /// To the last key at or before one.
    IterSeekForPrev "iter-seek-for-prev" 20 20;
    /// Forward by some keys.
    IterNext "iter-next" 24 24;
    /// Backward by some keys.
    IterPrev "iter-prev" 24 24;
    /// Back and forth by one key, several times.
    IterTurn "iter-turn" 8 8;
    /// The value in place, kept past the next move.
    IterPin "iter-pin" 6 6;
    /// Takes up the present state.
    IterRefresh "iter-refresh" 6 6;
    /// Lets go of an iterator.
    IterDrop "iter-drop" 4 4;
    /// Everything, forward.
    Scan "scan" 6 6;
    /// Everything, backward.
    ScanBackward "scan-backward" 6 6;
    /// The rows between two keys, both ways.
    ScanBounded "scan-bounded" 8 8;
    /// The rows with some prefix.
    ScanPrefix "scan-prefix" 8 8;
    /// Everything at a snapshot.
    ScanAt "scan-at" 4 4;
    /// Everything, a seek for each key.
    ScanBySeeks "scan-by-seeks" 2 2;
    /// Everything, reading ahead and past the cache.
    ScanReadahead "scan-readahead" 3 3;
    /// As much as memory has, forward: a front of everything.
    ScanCached "scan-cached" 3 3;
    /// Takes a snapshot.
    SnapshotTake "snapshot-take" 14 14;
    /// Lets go of a snapshot.
    SnapshotDrop "snapshot-drop" 10 10;
    /// Writes a family's memtables to a table.
    Flush "flush" 14 14;
    /// The same for every family.
    FlushAll "flush-all" 5 5;
    /// Puts the WAL on disk.
    SyncWal "sync-wal" 6 6;
    /// Waits until nothing runs.
    Wait "wait" 6 6;
    /// Compacts a family.
    Compact "compact" 3 3;
    /// Compacts a part of a family.
    CompactRange "compact-range" 6 6;
    /// Compacts, and is cancelled.
    CompactCancelled "compact-cancelled" 2 2;
    /// Reads while another thread compacts.
    CompactBeside "compact-beside" 2 2;
    /// Takes in a table made outside.
    Ingest "ingest" 3 0;
    /// Takes in two tables that overlap.
    IngestTwo "ingest-two" 2 0;
    /// Takes in a table of merges and deletions, and moves it.
    IngestMoved "ingest-moved" 2 0;
    /// Makes a copy and reads it.
    Checkpoint "checkpoint" 2 2;
    /// Makes a copy and writes to it: this database stays as it is.
    CheckpointWritten "checkpoint-written" 1 1;
    /// Makes a compacted copy, takes its MANIFEST away and repairs it.
    RepairCopy "repair-copy" 1 0;
    /// Makes a family.
    CreateFamily "create-family" 5 0;
    /// Makes a family that is there already.
    CreateFamilyTwice "create-family-twice" 1 0;
    /// Drops a family.
    DropFamily "drop-family" 3 0;
    /// Reads the family dropped last through its handle.
    ReadDropped "read-dropped" 3 0;
    /// The names of the families, open and on disk.
    ListFamilies "list-families" 2 2;
    /// Closes and opens.
    Reopen "reopen" 3 3;
    /// Closes and opens with other options.
    ReopenChanged "reopen-changed" 4 4;
    /// Drops the handle and opens.
    ReopenDropped "reopen-dropped" 2 2;
    /// The power is cut after a sync.
    Crash "crash" 2 2;
    /// The power is cut: a prefix survives, and the lost operations are written again.
    CrashLossy "crash-lossy" 4 4;
    /// The power is cut, and again while the database recovers.
    CrashTwice "crash-twice" 2 2;
    /// Reads a closed database without writing to it.
    OpenReadOnly "open-read-only" 2 2;
    /// Reads the open database through a second, read-only handle.
    OpenBeside "open-beside" 2 2;
    /// A second handle for writing is refused.
    OpenTwice "open-twice" 1 1;
    /// Opening an existing database is refused if the options ask for it.
    OpenExisting "open-existing" 1 1;
    /// A closed handle refuses writes.
    CloseRefuses "close-refuses" 1 1;
    /// Reads and checks every byte.
    Verify "verify" 2 2;
    /// The properties on snapshots and health.
    Properties "properties" 3 3;
    /// The text for people is there.
    Explain "explain" 1 1;
    /// Time passes.
    Advance "advance" 4 4;
    /// Sequence numbers only grow.
    Seqno "seqno" 2 2;
}

impl Verb {
    /// The kind called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verb| verb.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_more_than_fifty_kinds_and_names_tell_them_apart() {
        let drawn = |verb: &&Verb| verb.weights().0 > 0;
        assert!(Verb::ALL.iter().filter(drawn).count() >= 50);
        for verb in Verb::ALL {
            assert_eq!(Verb::from_name(verb.name()), Some(*verb));
        }
    }
}
