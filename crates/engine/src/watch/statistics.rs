//! Counters of the engine's work, under RocksDB's ticker names where they mean the same.

use drumlin_base::metrics::Counter;

macro_rules! tickers {
    ($($(#[$doc:meta])* $field:ident => $name:literal;)*) => {
        /// Counters since the database was opened. Recording costs one relaxed add on a
        /// striped counter.
        #[derive(Debug, Default)]
        pub struct Statistics {
            $($(#[$doc])* pub $field: Counter,)*
        }

        impl Statistics {
            /// Every ticker with its name, in a fixed order.
            pub fn tickers(&self) -> Vec<(&'static str, u64)> {
                let tickers = vec![$(($name, self.$field.get()),)*];
                match drumlin_base::bug!("tickers-one-off") {
                    // Each name with the count of the one before.
                    true => {
                        let counts: Vec<u64> = tickers.iter().map(|(_, count)| *count).collect();
                        let names = tickers.iter().map(|(name, _)| *name).skip(1);
                        names.zip(counts).collect()
                    }
                    false => tickers,
                }
            }
        }
    };
}

tickers! {
    /// Keys written, whatever the kind.
    keys_written => "rocksdb.number.keys.written";
    /// Bytes of write batches accepted.
    bytes_written => "rocksdb.bytes.written";
    /// Iterators made.
    iterators => "rocksdb.num.iterator.created";
    /// Bytes appended to the WAL.
    wal_bytes => "rocksdb.wal.bytes";
    /// WAL syncs.
    wal_syncs => "rocksdb.wal.synced";
    /// Write groups led by the writer itself.
    write_groups => "rocksdb.write.self";
    /// Writes committed by another writer's group.
    write_followers => "rocksdb.write.other";
    /// Microseconds writers waited.
    stall_micros => "rocksdb.stall.micros";
    /// Flushes done.
    flushes => "drumlin.flushes";
    /// Bytes flushes wrote.
    flush_bytes => "rocksdb.flush.write.bytes";
    /// Compactions done, trivial moves not counted.
    compactions => "drumlin.compactions";
    /// Compactions done because reads over several runs cost more.
    compactions_for_reads => "drumlin.compactions.for.reads";
    /// Those given up because writes wanted the background.
    compactions_for_reads_given_up => "drumlin.compactions.for.reads.given.up";
    /// Tables moved down without rewriting.
    trivial_moves => "drumlin.trivial.moves";
    /// Tables dropped with everything in them, by age or size.
    dropped_tables => "drumlin.dropped.tables";
    /// Bytes compactions read.
    compaction_read_bytes => "rocksdb.compact.read.bytes";
    /// Bytes compactions wrote.
    compaction_write_bytes => "rocksdb.compact.write.bytes";
    /// Bytes written to blob files, by flushes and compactions.
    blob_bytes_written => "rocksdb.blobdb.blob.file.bytes.written";
    /// Blobs that compactions moved out of files with much garbage.
    blobs_moved => "rocksdb.blobdb.gc.num.keys.relocated";
    /// Bytes of those.
    blob_bytes_moved => "rocksdb.blobdb.gc.bytes.relocated";
    /// Background jobs that failed.
    background_errors => "rocksdb.error.handler.bg.error.count";
    /// Times the database came back from a full disk by itself.
    resumes => "rocksdb.error.handler.autoresume.success.count";
}
