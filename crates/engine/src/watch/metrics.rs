//! Everything that is counted and measured of a store, in one structure.

use std::time::Duration;

use drumlin_base::Result;
use drumlin_base::histogram::Times;
use drumlin_base::limits::LEVELS;

use crate::db::handle::Db;
use crate::store::state::FamilyState;
use crate::watch::events::Health;
use crate::watch::level_work::LevelWork;
use crate::watch::prometheus::Text;
use crate::watch::waits::WaitCause;

/// The figures of a store at about one moment: [`Db::metrics`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Counters since the database was opened, under RocksDB's names where they mean the same.
    pub tickers: Vec<(&'static str, u64)>,
    /// Distributions of times, under the names of RocksDB's histograms. Those of calls are there under
    /// `Timings::Sampled` and `Timings::Calls` alone.
    pub times: Vec<(&'static str, Times)>,
    /// How often and how long writers waited, by cause.
    pub waits: Vec<(WaitCause, u64, Duration)>,
    /// The families, by id.
    pub families: Vec<FamilyMetrics>,
    /// What flushes and compactions wrote into each level, of all families, since the database was opened.
    pub levels_written: Vec<LevelWork>,
    /// Bytes in memory by use; the budget's names.
    pub memory: Vec<(&'static str, u64)>,
    /// Their limit.
    pub memory_limit: u64,
    /// Bytes that there is room for in the block cache.
    pub block_cache_capacity: u64,
    /// The health.
    pub health: Health,
    /// Bytes a second that writers are slowed to, and why; `None`: they are not.
    pub slowed: Option<(u64, WaitCause)>,
    /// Flushes and compactions under way.
    pub jobs: Vec<JobMetrics>,
    /// Snapshots that are held.
    pub snapshots: u64,
    /// Bytes of obsolete files that are not removed yet.
    pub trash_bytes: u64,
    /// Bytes free on the disk, where it tells.
    pub disk_free_bytes: Option<u64>,
    /// Writes are refused when less is free.
    pub disk_reserve_bytes: u64,
    /// The number of the newest write.
    pub newest_seqno: u64,
    /// That of the newest write that outlives a power cut.
    pub durable_seqno: u64,
}

/// The figures of a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyMetrics {
    /// Its name.
    pub name: String,
    /// Its levels from L0 on, all of them.
    pub levels: Vec<LevelMetrics>,
    /// Bytes of the memtable that is written.
    pub active_memtable_bytes: u64,
    /// Bytes of all its memtables.
    pub memtable_bytes: u64,
    /// Memtables that wait for a flush.
    pub immutable_memtables: u64,
    /// Bytes that compactions have to rewrite.
    pub pending_compaction_bytes: u64,
    /// Blob files.
    pub blob_files: u64,
    /// Their bytes.
    pub blob_bytes: u64,
    /// Bytes in them that nobody needs.
    pub blob_garbage_bytes: u64,
}

/// A level of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelMetrics {
    /// Tables in it.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that a compaction has as inputs.
    pub tables_compacting: u64,
}

/// A flush or a compaction under way.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobMetrics {
    /// The family.
    pub family: String,
    /// What it does, for people.
    pub what: String,
    /// How far it is, 0 to 1.
    pub share: f64,
    /// Bytes of its inputs.
    pub bytes: u64,
    /// How long it has run.
    pub took: Duration,
}

impl Db {
    /// The figures of the store now. Takes the state's lock for microseconds, and no disk but for the question of its
    /// free space; each figure is exact, and they are not of one instant.
    ///
    /// # Errors
    /// `InvalidArgument` in a forked child; `Shutdown`.
    pub fn metrics(&self) -> Result<Metrics> {
        let engine = &self.engine;
        let store = &engine.store;
        let _call = store.begin_call()?;
        let watch = &store.watch;
        let state = store.lock_state();
        let names = state.families.iter();
        let names: Vec<_> = names
            .map(|(id, it)| (*id, it.family.name.clone()))
            .collect();
        let families = state.families.values();
        let families = families
            .map(|family| family_metrics(family, engine.background.compaction_debt(family)))
            .collect();
        drop(state);
        let now = store.id.env.clock.monotonic();
        let jobs = watch.board.jobs();
        let jobs = jobs.iter().map(|job| JobMetrics {
            family: names
                .iter()
                .find(|(id, _)| *id == job.family)
                .map_or_else(String::new, |(_, name)| name.clone()),
            what: job.what.clone(),
            share: job.progress.share(),
            bytes: job.progress.bytes_total(),
            took: now.saturating_sub(job.since),
        });
        let mut tickers = watch.statistics.tickers();
        let cache = &store.caches.block_cache;
        tickers.push(("rocksdb.block.cache.hit", cache.hits()));
        tickers.push(("rocksdb.block.cache.miss", cache.misses()));
        let rate = watch.board.allowed();
        let used = self.budget().used_by_name().into_iter();
        Ok(Metrics {
            tickers,
            times: watch.times.read(),
            waits: watch
                .waits
                .iter()
                .map(|(cause, waits)| (cause, waits.count(), waits.total()))
                .collect(),
            families,
            levels_written: watch.levels.read(),
            memory: used.map(|(name, bytes)| (name, bytes as u64)).collect(),
            memory_limit: store.caches.budget.limit_bytes() as u64,
            block_cache_capacity: store.caches.budget.available_for_blocks() as u64,
            health: store.health(),
            slowed: rate
                .is_finite()
                .then(|| ((rate as u64).max(1), watch.board.cause())),
            jobs: jobs.collect(),
            snapshots: store.snapshots.all().len() as u64,
            trash_bytes: store.files.trash.bytes(),
            disk_free_bytes: store.files.space.free().ok(),
            disk_reserve_bytes: store.files.space.reserve(),
            newest_seqno: self.latest_seqno(),
            durable_seqno: self.durable_seqno(),
        })
    }
}

fn family_metrics(family: &FamilyState, debt: u64) -> FamilyMetrics {
    let immutable: usize = family.immutables.iter().map(|it| it.memtable.bytes()).sum();
    let blobs = family.version.blob_totals();
    let level = |level| {
        let files = family.version.level(level);
        LevelMetrics {
            tables: files.len() as u64,
            bytes: family.version.level_bytes(level),
            tables_compacting: files.iter().filter(|file| file.is_compacting()).count() as u64,
        }
    };
    FamilyMetrics {
        name: family.family.name.clone(),
        levels: (0..LEVELS).map(level).collect(),
        active_memtable_bytes: family.mutable.bytes() as u64,
        memtable_bytes: (family.mutable.bytes() + immutable) as u64,
        immutable_memtables: family.immutables.len() as u64,
        pending_compaction_bytes: debt,
        blob_files: blobs.files,
        blob_bytes: blobs.file_bytes,
        blob_garbage_bytes: blobs.garbage_bytes,
    }
}

impl Metrics {
    /// The ticker `name`, such as `rocksdb.wal.bytes`.
    pub fn ticker(&self, name: &str) -> Option<u64> {
        let ticker = self.tickers.iter().find(|(own, _)| *own == name);
        ticker.map(|(_, count)| *count)
    }

    /// All figures in Prometheus's text format, version 0.0.4, each name with `drumlin_engine_` before it: times in
    /// seconds, sizes in bytes, counters that end in `_total`.
    pub fn to_prometheus(&self) -> String {
        let mut text = Text::default();
        self.write_whole(&mut text);
        self.write_families(&mut text);
        self.write_counters(&mut text);
        for (name, times) in &self.times {
            text.times(name, times);
        }
        text.take()
    }

    fn write_whole(&self, text: &mut Text) {
        let health = self.health as u64;
        text.gauge(
            "health",
            "0 is healthy, 1 pauses in the background, 2 writes stopped, 3 reads only.",
            health,
        );
        text.gauge(
            "newest_seqno",
            "The number of the newest write.",
            self.newest_seqno,
        );
        text.gauge(
            "durable_seqno",
            "The newest write that outlives a power cut.",
            self.durable_seqno,
        );
        text.gauge(
            "memory_limit_bytes",
            "The budget of memory.",
            self.memory_limit,
        );
        text.family(
            "memory_bytes",
            "gauge",
            "Bytes charged to the budget, by use.",
        );
        for (name, bytes) in &self.memory {
            text.sample(&[("use", name)], *bytes);
        }
        text.gauge(
            "block_cache_capacity_bytes",
            "Bytes that there is room for in the block cache.",
            self.block_cache_capacity,
        );
        text.gauge("snapshots", "Snapshots that are held.", self.snapshots);
        text.gauge(
            "trash_bytes",
            "Bytes of obsolete files that are not removed yet.",
            self.trash_bytes,
        );
        if let Some(free) = self.disk_free_bytes {
            text.gauge("disk_free_bytes", "Bytes that are free on the disk.", free);
        }
        text.gauge(
            "disk_reserve_bytes",
            "Writes are refused when less is free.",
            self.disk_reserve_bytes,
        );
        let rate = self.slowed.map_or(0, |(rate, _)| rate);
        text.gauge(
            "delayed_write_bytes_per_second",
            "Bytes a second that writers are slowed to; 0 when they are not.",
            rate,
        );
        let is_stopped = u64::from(self.health >= Health::WriteStopped);
        text.gauge("write_stopped", "1 when writes are refused.", is_stopped);
        text.gauge(
            "running_jobs",
            "Flushes and compactions under way.",
            self.jobs.len() as u64,
        );
        text.family("job_share", "gauge", "How far a job under way is, 0 to 1.");
        for (number, job) in self.jobs.iter().enumerate() {
            let number = number.to_string();
            let labels = [
                ("job", &*number),
                ("family", &*job.family),
                ("what", &*job.what),
            ];
            text.sample(&labels, job.share);
        }
    }

    fn write_families(&self, text: &mut Text) {
        type Figure = fn(&FamilyMetrics) -> u64;
        let figures: [(&str, &str, Figure); 7] = [
            (
                "active_memtable_bytes",
                "Bytes of the memtable that is written.",
                |it| it.active_memtable_bytes,
            ),
            ("memtable_bytes", "Bytes of all memtables.", |it| {
                it.memtable_bytes
            }),
            (
                "immutable_memtables",
                "Memtables that wait for a flush.",
                |it| it.immutable_memtables,
            ),
            (
                "pending_compaction_bytes",
                "Bytes that compactions have to rewrite.",
                |it| it.pending_compaction_bytes,
            ),
            ("blob_files", "Blob files.", |it| it.blob_files),
            ("blob_bytes", "Bytes of blob files.", |it| it.blob_bytes),
            (
                "blob_garbage_bytes",
                "Bytes in blob files that nobody needs.",
                |it| it.blob_garbage_bytes,
            ),
        ];
        for (name, help, figure) in figures {
            text.family(name, "gauge", help);
            for family in &self.families {
                text.sample(&[("family", &family.name)], figure(family));
            }
        }
        type OfLevel = fn(&LevelMetrics) -> u64;
        let figures: [(&str, &str, OfLevel); 3] = [
            ("level_tables", "Tables by family and level.", |it| {
                it.tables
            }),
            (
                "level_bytes",
                "Bytes of tables by family and level.",
                |it| it.bytes,
            ),
            (
                "level_tables_compacting",
                "Tables that a compaction has as inputs.",
                |it| it.tables_compacting,
            ),
        ];
        for (name, help, figure) in figures {
            text.family(name, "gauge", help);
            for family in &self.families {
                for (number, level) in family.levels.iter().enumerate() {
                    let number = number.to_string();
                    let labels = [("family", &*family.name), ("level", &*number)];
                    text.sample(&labels, figure(level));
                }
            }
        }
    }

    fn write_counters(&self, text: &mut Text) {
        type OfWork = fn(&LevelWork) -> u64;
        let figures: [(&str, &str, OfWork); 3] = [
            (
                "level_jobs_total",
                "Flushes and compactions whose output went into a level.",
                |it| it.jobs,
            ),
            (
                "level_read_bytes_total",
                "Bytes that compactions read for a level.",
                |it| it.bytes_read,
            ),
            (
                "level_written_bytes_total",
                "Bytes written to a level.",
                |it| it.bytes_written,
            ),
        ];
        for (name, help, figure) in figures {
            text.family(name, "counter", help);
            for (number, work) in self.levels_written.iter().enumerate() {
                text.sample(&[("level", &number.to_string())], figure(work));
            }
        }
        for (ticker, count) in &self.tickers {
            text.ticker(ticker, *count);
        }
        text.family("waits_total", "counter", "Waits of writers by cause.");
        for (cause, count, _) in &self.waits {
            text.sample(&[("cause", cause.name())], *count);
        }
        text.family(
            "wait_seconds_total",
            "counter",
            "Time that writers waited by cause.",
        );
        for (cause, _, total) in &self.waits {
            text.sample(&[("cause", cause.name())], total.as_secs_f64());
        }
    }
}
