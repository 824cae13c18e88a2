//! How the engine stands, and how many keys there are. Told by a thread beside the loop: some of it is behind a lock that is
//! held while the MANIFEST is written, and keys are counted on the disk.

use drumlin_redis_store::{DATABASES, Keyspace, Outcome, Overlay, ReadFrom, Store};

/// Keys that are counted in a database, as INFO does.
pub(crate) const KEYS_COUNTED: u64 = 100_000;

/// A number that the engine tells of a family: its property and its name here, and a help.
pub(crate) type Known = (&'static str, &'static str, &'static str);

/// Numbers of each family.
pub(crate) const OF_FAMILY: [Known; 10] = [
    (ENTRIES, "entries", "Entries, as the engine estimates them."),
    (
        "rocksdb.total-sst-files-size",
        "table_bytes",
        "Bytes of tables.",
    ),
    (
        "rocksdb.total-blob-file-size",
        "blob_bytes",
        "Bytes of blob files.",
    ),
    (
        "rocksdb.live-blob-file-garbage-size",
        "blob_garbage_bytes",
        "Bytes in blob files that nobody needs.",
    ),
    (
        "rocksdb.num-files-at-level0",
        "level0_tables",
        "Tables in L0.",
    ),
    (
        "rocksdb.cur-size-active-mem-table",
        "active_memtable_bytes",
        "Bytes of the memtable that is written.",
    ),
    (
        "rocksdb.cur-size-all-mem-tables",
        "memtable_bytes",
        "Bytes of all memtables.",
    ),
    (
        "rocksdb.num-immutable-mem-table",
        "immutable_memtables",
        "Memtables that wait for a flush.",
    ),
    (
        "rocksdb.estimate-pending-compaction-bytes",
        "pending_compaction_bytes",
        "Bytes that compactions have to rewrite.",
    ),
    (
        "rocksdb.estimate-live-data-size",
        "live_bytes",
        "Bytes of tables and of blobs that are needed.",
    ),
];

/// Numbers of the whole engine.
pub(crate) const OF_ENGINE: [Known; 12] = [
    (
        "rocksdb.block-cache-usage",
        "block_cache_bytes",
        "Bytes of cached blocks.",
    ),
    (
        "rocksdb.block-cache-capacity",
        "block_cache_capacity_bytes",
        "Bytes that there is room for in the block cache.",
    ),
    (
        "rocksdb.estimate-table-readers-mem",
        "table_reader_bytes",
        "Bytes of indexes and filters of open tables.",
    ),
    (
        "rocksdb.num-snapshots",
        "snapshots",
        "Snapshots that are held.",
    ),
    (
        "rocksdb.num-running-flushes",
        "running_flushes",
        "Flushes that run.",
    ),
    (
        "rocksdb.num-running-compactions",
        "running_compactions",
        "Compactions that run.",
    ),
    (
        "rocksdb.actual-delayed-write-rate",
        "delayed_write_bytes_per_second",
        "Bytes a second that writers are slowed to; 0 when they are not.",
    ),
    (
        "rocksdb.is-write-stopped",
        "write_stopped",
        "1 when writes are refused.",
    ),
    (
        "rocksdb.background-errors",
        "background_errors",
        "Background jobs that failed.",
    ),
    (
        "drumlin.trash-bytes",
        "trash_bytes",
        "Bytes of obsolete files that are not removed yet.",
    ),
    (
        "drumlin.disk-free-bytes",
        "disk_free_bytes",
        "Bytes that are free on the disk.",
    ),
    (
        "drumlin.disk-reserve-bytes",
        "disk_reserve_bytes",
        "Writes are refused when less is free.",
    ),
];

/// This is known once all tables were open.
const ENTRIES: &str = "rocksdb.estimate-num-keys";

/// What is counted, as it takes the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Entries of families.
    pub(crate) entries: bool,
    /// Keys of databases as of a time.
    pub(crate) keys_at_ms: Option<u64>,
}

/// Keys of a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyCount {
    pub(crate) db: u16,
    pub(crate) keys: u64,
    pub(crate) expiring: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// By name of the family: as many as [`OF_FAMILY`].
    pub(crate) families: Vec<(String, Vec<u64>)>,
    /// As many as [`OF_ENGINE`].
    pub(crate) engine: Vec<u64>,
    /// Every figure of the engine as Prometheus's text.
    pub(crate) engine_text: String,
    pub(crate) memory_bytes: u64,
    /// Entries were counted.
    pub(crate) has_entries: bool,
    /// Of databases with keys; `None` where they were not counted.
    pub(crate) keys: Option<Vec<KeyCount>>,
}

impl Figures {
    /// Asks the engine, and counts what `counts` says.
    pub(crate) fn of(store: &Store, counts: Counts) -> Self {
        let number = |text: Option<String>| text.and_then(|it| it.parse().ok()).unwrap_or(0);
        let families = store.db().families();
        let of_families = families.iter().map(|family| {
            let known = OF_FAMILY.iter();
            let numbers = known.map(|(name, ..)| match *name == ENTRIES && !counts.entries {
                true => 0,
                false => number(store.db().property(family, name)),
            });
            (family.name().to_owned(), numbers.collect())
        });
        let default = store.db().default_family();
        let known = OF_ENGINE.iter();
        let of_engine = known.map(|(name, ..)| number(store.db().property(default, name)));
        Self {
            families: of_families.collect(),
            engine: of_engine.collect(),
            // A store that is closed tells nothing.
            engine_text: store
                .db()
                .metrics()
                .map_or_else(|_| String::new(), |it| it.to_prometheus()),
            memory_bytes: store.db().budget().used_bytes() as u64,
            has_entries: counts.entries,
            // A database that cannot be read is told of by its commands.
            keys: counts.keys_at_ms.and_then(|at_ms| count(store, at_ms).ok()),
        }
    }

    /// A number of the whole engine, or the sum of those of its families.
    pub(crate) fn of_engine(&self, name: &str) -> u64 {
        let at = OF_ENGINE.iter().position(|(_, own, _)| *own == name);
        if let Some(at) = at {
            return self.engine.get(at).copied().unwrap_or(0);
        }
        let families = self.families.iter();
        families.map(|(_, numbers)| of_family(numbers, name)).sum()
    }
}

/// A number of a family.
pub(crate) fn of_family(numbers: &[u64], name: &str) -> u64 {
    let at = OF_FAMILY.iter().position(|(_, own, _)| *own == name);
    at.and_then(|at| numbers.get(at)).copied().unwrap_or(0)
}

fn count(store: &Store, clock_ms: u64) -> Outcome<Vec<KeyCount>> {
    let (view, mut overlay) = (store.view(), Overlay::new());
    let now_ms = store.now_ms(clock_ms);
    let mut counts = Vec::new();
    for db in 0..DATABASES {
        let keyspace = Keyspace::new(store, &view, &mut overlay, db, now_ms, ReadFrom::Disk);
        let (keys, expiring) = keyspace.count_up_to(KEYS_COUNTED)?;
        if keys > 0 {
            counts.push(KeyCount { db, keys, expiring });
        }
    }
    Ok(counts)
}
