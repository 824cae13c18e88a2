//! Measures one table by itself: writing it, looking keys up, walking it.
//!
//! ```text
//! cargo run --release -p drumlin-table --example table -- [entries] [codec] [directory] [interval]
//! ```
//!
//! The codec may also be `plain`, for a plain table. One key of `interval` is stored whole in a block.
//!
//! Keys have 16 bytes, values 100; everything is read from a cache that holds the whole table,
//! except where a line says otherwise. Times are processor times.

#![expect(clippy::print_stdout, reason = "prints its measurements")]

use std::error::Error;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::key::append_internal;
use drumlin_base::rng::Rng;
use drumlin_base::{InternalIterator, MemoryBudget, SEQNO_MAX, ValueKind};
use drumlin_fs::{Clock, CreateOptions, FileKind, FileSystem, PosixFileSystem, SystemClock};
use drumlin_table::{
    BlockCache, Codec, Compression, FilterOptions, KeyHint, PlainProbe, PlainTable, Table,
    TableFormat, TableReadOptions, TableReaderOptions, TableWriter, TableWriterOptions,
};

const VALUE_BYTES: usize = 100;
const LOOKUPS: u64 = 2_000_000;

/// The table to measure, and its place.
struct Bench {
    clock: SystemClock,
    entries: u64,
    path: PathBuf,
    compression: Compression,
    format: TableFormat,
    restart_interval: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let entries = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let (format, codec) = match arguments.next().as_deref() {
        None => (TableFormat::Block, Codec::None),
        Some("plain") => (TableFormat::Plain, Codec::None),
        Some(codec) => (TableFormat::Block, codec.parse()?),
    };
    let directory = arguments.next().unwrap_or_else(|| "/tmp".to_owned());
    let restart_interval = arguments.next().map_or(Ok(16), |text| text.parse())?;
    let bench = Bench {
        clock: SystemClock::default(),
        entries,
        path: PathBuf::from(directory).join("drumlin-speed.sst"),
        compression: Compression::new(codec),
        format,
        restart_interval,
    };
    bench.write()?;
    bench.read()?;
    Ok(())
}

/// Key `n` of the table: even numbers only, so that odd ones miss.
fn user_key(n: u64) -> [u8; 16] {
    let mut key = *b"0000000000000000";
    let mut rest = n;
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Processor time of this process so far, as Linux tells it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanoseconds = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

impl Bench {
    /// Runs `body`; the processor time it took, so that a busy machine disturbs less. (Where the
    /// system does not tell, the time on the wall.)
    fn timed<T>(&self, body: impl FnOnce() -> T) -> (T, Duration) {
        let now = || processor_time().unwrap_or_else(|| self.clock.monotonic());
        let start = now();
        let result = body();
        (result, now().saturating_sub(start))
    }

    fn write(&self) -> Result<(), Box<dyn Error>> {
        let files = PosixFileSystem::new();
        for (name, filter) in [
            ("no filter", None),
            ("filter", Some(FilterOptions::default())),
        ] {
            // Tables are made anew: the one of the run before, if any, goes.
            if files.exists(&self.path)? {
                files.remove(&self.path)?;
            }
            let file = files.create(&self.path, CreateOptions::new(FileKind::Table))?;
            let options = TableWriterOptions {
                compression: self.compression,
                format: self.format,
                restart_interval: self.restart_interval,
                filter,
                ..TableWriterOptions::default()
            };
            let mut writer = TableWriter::new(file, options);
            let mut random = vec![0u8; 1 << 20];
            Rng::new(1).fill(&mut random);
            let (result, took) = self.timed(|| -> drumlin_base::Result<()> {
                let mut key = Vec::new();
                for n in 0..self.entries {
                    key.clear();
                    append_internal(&mut key, &user_key(n * 2), n + 1, ValueKind::Value as u8);
                    let at = (n as usize * VALUE_BYTES) % (random.len() - VALUE_BYTES);
                    let value = random.get(at..at + VALUE_BYTES).unwrap_or_default();
                    writer.add(&key, value)?;
                }
                Ok(())
            });
            result?;
            let (finished, sync) = self.timed(|| writer.finish());
            let raw = self.entries * (24 + VALUE_BYTES as u64);
            println!(
                "write, {name:9}  {:7.1} MB/s of entries   {:6.1} ns/entry   (finish and sync {} ms, {} bytes)",
                raw as f64 / 1e6 / took.as_secs_f64(),
                took.as_nanos() as f64 / self.entries as f64,
                sync.as_millis(),
                finished?.size,
            );
        }
        Ok(())
    }

    fn open(&self) -> Result<Arc<Table>, Box<dyn Error>> {
        let budget = MemoryBudget::new(4 << 30);
        let cache = BlockCache::new(Arc::clone(&budget));
        let file = PosixFileSystem::new().open(&self.path)?;
        let options = TableReaderOptions::new(self.path.clone(), 7, cache, budget);
        Ok(Table::open(file, options)?)
    }

    fn read(&self) -> Result<(), Box<dyn Error>> {
        let (table, took) = self.timed(|| self.open());
        let table = table?;
        println!(
            "open              {:7.2} ms, {} bytes resident",
            took.as_secs_f64() * 1e3,
            table.resident_bytes()
        );
        self.scan(&self.open()?, "uncached, kept", TableReadOptions::default())?;
        let once = TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        };
        self.scan(&self.open()?, "uncached, once", once)?;
        self.scan(&table, "fills", TableReadOptions::default())?;
        self.scan(&table, "cached", TableReadOptions::default())?;
        self.scan_back(&table)?;
        self.lookups(&table, "hit", 0, self.entries)?;
        self.lookups(&table, "hit, 10k keys", 0, 10_000)?;
        self.lookups(&table, "miss", 1, self.entries)?;
        if let Table::Plain(plain) = &*table {
            self.batches(plain, "hit", 0)?;
            self.batches(plain, "miss", 1)?;
        }
        self.seeks(&table)
    }

    /// Lookups of 32 keys at once, step by step.
    fn batches(&self, table: &PlainTable, name: &str, odd: u64) -> Result<(), Box<dyn Error>> {
        const BATCH: usize = 32;
        let mut rng = Rng::new(5);
        let (mut keys, mut found) = ([[0; 16]; BATCH], 0u64);
        let (result, took) = self.timed(|| -> drumlin_base::Result<()> {
            for _ in 0..LOOKUPS / BATCH as u64 {
                keys.fill_with(|| user_key(rng.below(self.entries) * 2 + odd));
                let hints = keys.map(|key| KeyHint::of(&key));
                let mut probes = hints.map(|hint| table.probe(hint));
                probes.iter().for_each(PlainProbe::prefetch_index);
                let there = probes.each_mut().map(PlainProbe::find_record);
                probes.iter().for_each(PlainProbe::prefetch_record);
                for ((key, probe), _) in keys
                    .iter()
                    .zip(probes)
                    .zip(there)
                    .filter(|(_, there)| *there)
                {
                    probe.get(key, SEQNO_MAX, |_, _, value| {
                        found += u64::from(black_box(value.bytes()).last().is_some());
                        ControlFlow::Break(())
                    })?;
                }
            }
            Ok(())
        });
        result?;
        println!(
            "get, {BATCH} at once, {name:6} {:6.1} ns   ({found} found)",
            took.as_nanos() as f64 / LOOKUPS as f64
        );
        Ok(())
    }

    fn scan(
        &self,
        table: &Arc<Table>,
        name: &str,
        options: TableReadOptions,
    ) -> Result<(), Box<dyn Error>> {
        let (sum, took) = self.timed(|| {
            let mut iter = table.iter(options);
            let (mut count, mut sum) = (0u64, 0usize);
            iter.seek_to_first();
            while iter.valid() {
                sum += black_box(iter.key()).len() + black_box(iter.value()).len();
                count += 1;
                iter.next();
            }
            iter.status().map(|()| (count, sum))
        });
        let (count, _) = sum?;
        println!(
            "scan, {name:15} {:6.1} ns/entry",
            took.as_nanos() as f64 / count as f64
        );
        Ok(())
    }

    fn scan_back(&self, table: &Arc<Table>) -> Result<(), Box<dyn Error>> {
        let (count, took) = self.timed(|| {
            let mut iter = table.iter(TableReadOptions::default());
            let mut count = 0u64;
            iter.seek_to_last();
            while iter.valid() {
                count += u64::from(!black_box(iter.key()).is_empty());
                iter.prev();
            }
            count
        });
        println!(
            "scan, backwards       {:6.1} ns/entry",
            took.as_nanos() as f64 / count as f64
        );
        Ok(())
    }

    fn lookups(
        &self,
        table: &Arc<Table>,
        name: &str,
        odd: u64,
        among: u64,
    ) -> Result<(), Box<dyn Error>> {
        let mut rng = Rng::new(9);
        let options = TableReadOptions::default();
        let (found, took) = self.timed(|| {
            let mut found = 0u64;
            for _ in 0..LOOKUPS {
                let key = user_key(rng.below(among.min(self.entries)) * 2 + odd);
                table.get(&key, SEQNO_MAX, &options, |_, _, value| {
                    found += u64::from(!black_box(value.bytes()).is_empty());
                    ControlFlow::Break(())
                })?;
            }
            drumlin_base::Result::<u64>::Ok(found)
        });
        println!(
            "get, {name:15}  {:6.1} ns   ({} found)",
            took.as_nanos() as f64 / LOOKUPS as f64,
            found?
        );
        Ok(())
    }

    fn seeks(&self, table: &Arc<Table>) -> Result<(), Box<dyn Error>> {
        let mut rng = Rng::new(9);
        let mut iter = table.iter(TableReadOptions::default());
        let mut key = Vec::new();
        let ((), took) = self.timed(|| {
            for _ in 0..LOOKUPS / 4 {
                key.clear();
                append_internal(
                    &mut key,
                    &user_key(rng.below(self.entries * 2)),
                    SEQNO_MAX,
                    0x7F,
                );
                iter.seek(&key);
                black_box(iter.valid());
            }
        });
        println!(
            "seek                  {:6.1} ns",
            took.as_nanos() as f64 / (LOOKUPS / 4) as f64
        );
        Ok(())
    }
}
