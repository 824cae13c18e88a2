//! How fast rows go from one searchable table to another: encoded from blocks, and copied as they are.
//! `cargo run --release -p drumlin-table --example verbatim [rows]`

#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::key::internal_key;
use drumlin_base::rng::Rng;
use drumlin_base::{InternalIterator, MemoryBudget, Result, ValueKind};
use drumlin_fs::{Clock, CreateOptions, FileKind, FileSystem, StrictMemFileSystem, SystemClock};
use drumlin_table::{
    BlockCache, Effort, Model, ModelSource, Table, TableFormat, TableReadOptions,
    TableReaderOptions, TableWriter, TableWriterOptions,
};

#[derive(Debug)]
struct One(Arc<Model>);

impl ModelSource for One {
    fn model(&self, _id: u64) -> Result<Arc<Model>> {
        Ok(Arc::clone(&self.0))
    }
}

/// Rows as lineitem's: numbers, flags, dates, and a comment cut from a pool.
fn row(rng: &mut Rng, pool: &[u8], number: u64) -> (Vec<u8>, Vec<u8>) {
    let key = format!("{}-{}-{}", number / 4, rng.below(20_000_000), number % 4);
    let mut value = format!(
        "{}|{}.{:02}|0.0{}|0.0{}|N|O|199{}-0{}-1{}|DELIVER IN PERSON|TRUCK|",
        1 + rng.below(50),
        1000 + rng.below(90_000),
        rng.below(100),
        rng.below(10),
        rng.below(9),
        rng.below(9),
        1 + rng.below(9),
        rng.below(10)
    )
    .into_bytes();
    let len = 205 + rng.below(615) as usize;
    let at = rng.below((pool.len() - len) as u64) as usize;
    value.extend_from_slice(&pool[at..at + len]);
    (key.into_bytes(), value)
}

fn main() -> Result<()> {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let count: u64 = count.unwrap_or(300_000);
    let mut rng = Rng::new(11);
    let words = [
        "carefully",
        "final",
        "deposits",
        "sleep",
        "quickly",
        "ironic",
        "requests",
    ];
    let mut pool = Vec::new();
    while pool.len() < 1 << 20 {
        pool.extend_from_slice(words[rng.below(7) as usize].as_bytes());
        pool.extend_from_slice(format!(" {} ", rng.below(1000)).as_bytes());
    }
    let mut rows: Vec<_> = (0..count).map(|n| row(&mut rng, &pool, n)).collect();
    rows.sort();
    let raw: usize = rows
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let step = (rows.len() / 40_000).max(1);
    let sample: Vec<&[u8]> = rows
        .iter()
        .step_by(step)
        .map(|(_, value)| &value[..])
        .collect();
    let clock = SystemClock::new();
    let say = |what: &str, since: std::time::Duration| {
        let seconds = clock.monotonic().saturating_sub(since).as_secs_f64();
        println!(
            "{what}: {:.0} MB/s of {} MB raw",
            raw as f64 / 1e6 / seconds,
            raw / 1_000_000
        );
    };
    let began = clock.monotonic();
    let model = Arc::new(Model::train(&sample, Effort::Small));
    println!(
        "training on {} rows: {:?}",
        sample.len(),
        clock.monotonic().saturating_sub(began)
    );
    let files = StrictMemFileSystem::new();
    let options = TableWriterOptions {
        format: TableFormat::Searchable,
        model: Some(Arc::clone(&model)),
        ..TableWriterOptions::default()
    };
    let first = Path::new("/first");
    let began = clock.monotonic();
    let file = files.create(first, CreateOptions::new(FileKind::Table))?;
    let mut writer = TableWriter::new(file, options.clone());
    for (key, value) in &rows {
        writer.add(&internal_key(key, 0, ValueKind::Value), value)?;
    }
    let finished = writer.finish()?;
    say("encoded", began);
    println!("1 : {:.2}", raw as f64 / finished.size as f64);

    let budget = MemoryBudget::new(64 << 20);
    let cache = BlockCache::new(Arc::clone(&budget));
    let mut reader = TableReaderOptions::new(PathBuf::from("first"), 1, cache, budget);
    reader.models = Some(Arc::new(One(Arc::clone(&model))));
    let table = Table::open(files.open(first)?, reader)?;
    for round in 0..3 {
        let second = PathBuf::from(format!("/copy-{round}"));
        let began = clock.monotonic();
        let file = files.create(&second, CreateOptions::new(FileKind::Table))?;
        let mut writer = TableWriter::new(file, options.clone());
        let mut cursor = table.iter(TableReadOptions {
            fill_cache: false,
            readahead_bytes: 512 << 10,
            codes_of: Some(model.id()),
            ..TableReadOptions::default()
        });
        cursor.seek_to_first();
        while cursor.valid() {
            match cursor.code() {
                Some(code) => writer.add_code(cursor.key(), &code)?,
                None => writer.add(cursor.key(), cursor.value())?,
            }
            cursor.next();
        }
        cursor.status()?;
        writer.finish()?;
        say("copied", began);
    }
    Ok(())
}
