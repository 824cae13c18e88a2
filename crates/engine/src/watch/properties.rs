//! Properties that a program may ask of a running database, under RocksDB's names.

use std::fmt::Write as _;

use drumlin_base::MemoryUse;
use drumlin_base::limits::LEVELS;

use crate::caches::table_cache::TableCache;
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::family::super_version::SuperVersion;
use crate::store::state::FamilyState;
use crate::store::state::State;
use crate::watch::events::Health;
use crate::watch::statistics::Statistics;

impl Db {
    /// Whether writes are synced that do not say: [`Options::sync`](crate::Options::sync).
    pub fn syncs_writes(&self) -> bool {
        self.engine.store.id.options.sync
    }

    /// The property `name` of `family` as text, or `None` when there is no such property.
    ///
    /// Known: `rocksdb.num-files-at-level<N>`, `rocksdb.num-immutable-mem-table`,
    /// `rocksdb.cur-size-active-mem-table`, `rocksdb.cur-size-all-mem-tables`,
    /// `rocksdb.num-entries-active-mem-table`, `rocksdb.estimate-num-keys`,
    /// `rocksdb.estimate-table-readers-mem`, `rocksdb.block-cache-usage`,
    /// `rocksdb.block-cache-capacity`, `rocksdb.total-sst-files-size`,
    /// `rocksdb.live-sst-files-size`, `rocksdb.estimate-live-data-size`, `rocksdb.num-snapshots`,
    /// `rocksdb.num-running-flushes`, `rocksdb.num-running-compactions`,
    /// `rocksdb.estimate-pending-compaction-bytes`, `rocksdb.background-errors`,
    /// `rocksdb.actual-delayed-write-rate` (0: writers are not slowed),
    /// `rocksdb.is-write-stopped`, `rocksdb.levelstats`, `rocksdb.stats`, `rocksdb.sstables`,
    /// `rocksdb.num-blob-files`, `rocksdb.blob-stats`, `rocksdb.total-blob-file-size`,
    /// `rocksdb.live-blob-file-size`, `rocksdb.live-blob-file-garbage-size`;
    /// `drumlin.disk-free-bytes`, `drumlin.disk-reserve-bytes` (writes are refused when less is
    /// free), `drumlin.trash-bytes` (of obsolete files not removed yet).
    ///
    /// Cost: `rocksdb.estimate-num-keys` opens each table that was not open since the database was, once.
    pub fn property(&self, family: &ColumnFamily, name: &str) -> Option<String> {
        let ours = name.strip_prefix("drumlin.");
        let name = ours.or_else(|| name.strip_prefix("rocksdb."))?;
        self.engine.store.check_own(&family.0).ok()?;
        let state = self.engine.store.lock_state();
        let family_state = state.families.get(&family.id())?;
        if let Some(level) = name.strip_prefix("num-files-at-level") {
            let level: usize = level.parse().ok().filter(|level| *level < LEVELS)?;
            let level = level + usize::from(drumlin_base::bug!("level-property-one-off"));
            return Some(family_state.version.level(level).len().to_string());
        }
        match name {
            "levelstats" => return Some(level_stats(family_state)),
            "sstables" => return Some(format!("{}", family_state.version)),
            "blob-stats" => return Some(blob_stats(family_state)),
            "stats" => {
                drop(state);
                return Some(self.stats_text(family));
            }
            "estimate-num-keys" => {
                // Tables may have to be opened, which nobody should wait for.
                drop(state);
                let super_version = family.0.super_version.load_full();
                return Some(estimate_keys(&super_version, &family.0.reads.tables).to_string());
            }
            _ => {}
        }
        self.number_property(&state, family_state, name)
            .map(|number| number.to_string())
    }

    fn number_property(&self, state: &State, family: &FamilyState, name: &str) -> Option<u64> {
        let engine = &self.engine;
        let immutable_bytes: usize = family.immutables.iter().map(|i| i.memtable.bytes()).sum();
        Some(match name {
            "num-immutable-mem-table" => family.immutables.len() as u64,
            "cur-size-active-mem-table" => family.mutable.bytes() as u64,
            "cur-size-all-mem-tables" => (family.mutable.bytes() + immutable_bytes) as u64,
            "num-entries-active-mem-table" => family.mutable.entries() as u64,
            "estimate-table-readers-mem" => {
                engine.store.caches.budget.used(MemoryUse::TableMeta) as u64
            }
            "block-cache-usage" => engine.store.caches.block_cache.used_bytes() as u64,
            "block-cache-capacity" => engine.store.caches.budget.available_for_blocks() as u64,
            "total-sst-files-size" | "live-sst-files-size" => family.version.bytes_total(),
            "estimate-live-data-size" => {
                let blobs = family.version.blob_totals();
                let live = blobs.blob_bytes.saturating_sub(blobs.garbage_bytes);
                family.version.bytes_total() + live
            }
            "num-blob-files" => family.version.blob_totals().files,
            "total-blob-file-size" | "live-blob-file-size" => {
                family.version.blob_totals().file_bytes
            }
            "live-blob-file-garbage-size" => family.version.blob_totals().garbage_bytes,
            "num-snapshots" => engine.store.snapshots.all().len() as u64,
            "num-running-flushes" => state.flushes_running as u64,
            "num-running-compactions" => state.compactions_running as u64,
            "estimate-pending-compaction-bytes" => engine.background.compaction_debt(family),
            "background-errors" => engine.store.watch.statistics.background_errors.get(),
            "actual-delayed-write-rate" => match engine.store.watch.board.allowed() {
                free if free.is_infinite() => 0,
                rate => (rate as u64).max(1),
            },
            "trash-bytes" => engine.store.files.trash.bytes(),
            "disk-free-bytes" => engine.store.files.space.free().ok()?,
            "disk-reserve-bytes" => engine.store.files.space.reserve(),
            "is-write-stopped" => u64::from(engine.store.health() >= Health::WriteStopped),
            _ => return None,
        })
    }

    /// The tree, the memory and the counters as a text for people.
    pub fn stats_text(&self, family: &ColumnFamily) -> String {
        let mut text = String::new();
        if let Err(error) = self.engine.store.check_own(&family.0) {
            return error.to_string();
        }
        {
            let state = self.engine.store.lock_state();
            if let Some(family) = state.families.get(&family.id()) {
                // RocksDB's heading, by which programs know the text.
                let _ = writeln!(text, "** Compaction Stats [{}] **", family.family.name);
                text.push_str(&level_stats(family));
                text.push_str(&blob_stats(family));
            }
        }
        text.push_str(&write_stats(&self.engine.store.watch.statistics));
        let budget = &self.engine.store.caches.budget;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "memory: {} of {} bytes (memtables {}, blocks {}, tables {}, jobs {}, spare {})",
            budget.used_total(),
            budget.limit_bytes(),
            budget.used(MemoryUse::Memtables),
            budget.used(MemoryUse::Blocks),
            budget.used(MemoryUse::TableMeta),
            budget.used(MemoryUse::Jobs),
            budget.used(MemoryUse::Spare),
        );
        let cache = &self.engine.store.caches.block_cache;
        let _ = writeln!(
            text,
            "block cache: {} hits, {} misses",
            cache.hits(),
            cache.misses()
        );
        for (name, value) in self.engine.store.watch.statistics.tickers() {
            let _ = writeln!(text, "{name} COUNT : {value}");
        }
        for (cause, waits) in self.waits().iter().filter(|(_, waits)| waits.count() > 0) {
            let _ = writeln!(text, "drumlin.wait.{} : {waits}", cause.name());
        }
        text
    }
}

/// Entries less the deletions and the entries these delete, as RocksDB reckons. A table that was never
/// open is opened for it once; one that cannot be read is taken to hold as much a byte as the others,
/// for reads report the damage.
fn estimate_keys(super_version: &SuperVersion, tables: &TableCache) -> u64 {
    let (mut entries, mut deletions) = (0u64, 0u64);
    let (mut bytes, mut unknown_bytes) = (0u64, 0u64);
    for (_, file) in super_version.version.files() {
        if file.counts().is_none() {
            // Opening it makes the counts known.
            let _ = tables.find(file);
        }
        match file.counts() {
            Some(counts) => {
                entries += counts.entries;
                deletions += counts.deletions;
                bytes += file.size;
            }
            None => unknown_bytes += file.size,
        }
    }
    if unknown_bytes > 0 && bytes > 0 {
        let share = unknown_bytes as f64 / bytes as f64;
        entries += (entries as f64 * share) as u64;
        deletions += (deletions as f64 * share) as u64;
    }
    for memtable in super_version.memtables() {
        entries += memtable.entries() as u64;
        deletions += memtable.deletions() as u64;
    }
    let taken_off = match drumlin_base::bug!("deletions-counted-as-keys") {
        true => 0,
        false => 2 * deletions,
    };
    entries.saturating_sub(taken_off)
}

/// Totals of all blob files, in the words of RocksDB's property of this name.
fn blob_stats(family: &FamilyState) -> String {
    let totals = family.version.blob_totals();
    let live = totals.blob_bytes.saturating_sub(totals.garbage_bytes);
    let amplification = match live {
        0 => 0.0,
        live => totals.file_bytes as f64 / live as f64,
    };
    format!(
        "Number of blob files: {}\nTotal size of blob files: {}\nTotal size of garbage in blob \
         files: {}\nBlob file space amplification: {amplification:.2}\n",
        totals.files, totals.file_bytes, totals.garbage_bytes,
    )
}

/// Writes since the database was opened, in RocksDB's words.
fn write_stats(statistics: &Statistics) -> String {
    const GB: f64 = (1 << 30) as f64;
    let groups = statistics.write_groups.get();
    let writes = groups + statistics.write_followers.get();
    let syncs = statistics.wal_syncs.get();
    let each = |count: u64| writes as f64 / count.max(1) as f64;
    format!(
        "** DB Stats **\nCumulative writes: {writes} writes, {} keys, {groups} commit groups, {:.1} writes per commit group, \
         ingest: {:.2} GB\nCumulative WAL: {writes} writes, {syncs} syncs, {:.2} writes per sync, written: {:.2} GB\n",
        statistics.keys_written.get(),
        each(groups),
        statistics.bytes_written.get() as f64 / GB,
        each(syncs),
        statistics.wal_bytes.get() as f64 / GB,
    )
}

fn level_stats(family: &FamilyState) -> String {
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for level in 0..LEVELS {
        let files = family.version.level(level).len();
        let megabytes = family.version.level_bytes(level) as f64 / f64::from(1 << 20);
        let _ = writeln!(text, "{level:>5} {files:>5} {megabytes:>8.0}");
    }
    text
}
