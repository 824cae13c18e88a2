//! Bytes a key and nanoseconds a lookup of key indexes, for three kinds of keys.
//!
//! `cargo run --release -p drumlin-succinct --example keys [KEYS] [FILE]`: about KEYS lineitem keys
//! (`orderkey|partkey|suppkey|linenumber` at TPC-H's scale factor 150, a tenth of their range), as many
//! random keys of 16 bytes, and the lines of FILE (from `find /usr`, for example) if one is given.

#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::disallowed_methods, reason = "an example measures time")]

use std::hint::black_box;
use std::time::Instant;

use drumlin_base::rng::Rng;
use drumlin_succinct::{KeyIndex, KeyIndexBuilder};

type Error = Box<dyn std::error::Error>;

/// Lookups timed for each figure.
const LOOKUPS: usize = 1_000_000;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(Ok(2_000_000), |n| n.parse())?;
    measure("lineitem", lineitem(count))?;
    let mut rng = Rng::new(3);
    let random = |_| {
        let mut key = vec![0; 16];
        rng.fill(&mut key);
        key
    };
    measure("random 16 bytes", (0..count).map(random).collect())?;
    measure(
        "integers",
        (0..count)
            .map(|n| (n * 37).to_be_bytes().to_vec())
            .collect(),
    )?;
    if let Some(file) = arguments.next() {
        let text = std::fs::read(&file)?;
        let lines = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        measure(&file, lines.map(<[u8]>::to_vec).collect())?;
    }
    Ok(())
}

/// Lines of the orders whose numbers begin with 4 (nine digits and fewer), up to about `count`.
fn lineitem(count: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let mut keys = Vec::new();
    // A quarter of the numbers is used, with four lines each on average.
    let span = (count * 9 / 10).max(1);
    for digits in 0..=8 {
        let scale = 10u64.pow(digits);
        let orders = span / 10u64.pow(8 - digits);
        for order in 4 * scale..4 * scale + orders.min(scale).max(1) {
            if order % 32 >= 8 {
                continue;
            }
            for line in 1..=1 + rng.below(7) {
                let (part, supplier) = (1 + rng.below(30_000_000), 1 + rng.below(1_500_000));
                keys.push(format!("{order}|{part}|{supplier}|{line}").into_bytes());
            }
        }
    }
    keys
}

fn measure(name: &str, mut keys: Vec<Vec<u8>>) -> Result<(), Error> {
    keys.sort_unstable();
    keys.dedup();
    let raw: usize = keys.iter().map(Vec::len).sum();
    // One after the other, as a merge gives them: not where the sort left them.
    let text = keys.concat();
    let lens: Vec<usize> = keys.iter().map(Vec::len).collect();
    let start = Instant::now();
    let mut builder = KeyIndexBuilder::new();
    let mut blocks = Vec::new();
    let mut rest_of_text = text.as_slice();
    for &len in &lens {
        let (key, behind) = rest_of_text.split_at(len);
        rest_of_text = behind;
        builder.add(key)?;
        if builder.blocks_bytes() > 1 << 16 {
            blocks.append(&mut builder.blocks());
        }
    }
    let (mut rest, tail) = builder.finish()?;
    blocks.append(&mut rest);
    let build = start.elapsed().as_secs_f64();
    let stored = blocks.len() + tail.len();
    let start = Instant::now();
    let index = KeyIndex::open(blocks, &tail)?;
    let open = start.elapsed().as_secs_f64();
    let each = |bytes: usize| bytes as f64 / keys.len() as f64;
    println!(
        "{name}: {} keys of {:.1} bytes; {:.2} stored, {:.2} in memory; build {:.0} MB/s, open {:.1} ms",
        keys.len(),
        each(raw),
        each(stored),
        each(index.memory()),
        raw as f64 / build / 1e6,
        open * 1e3,
    );
    for line in index.describe() {
        println!("  {line}");
    }
    time_lookups(&index, &keys)
}

fn time_lookups(index: &KeyIndex, keys: &[Vec<u8>]) -> Result<(), Error> {
    let mut rng = Rng::new(2);
    let hits: Vec<Vec<u8>> = (0..LOOKUPS)
        .map(|_| {
            keys.get(rng.below(keys.len() as u64) as usize)
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    let misses: Vec<Vec<u8>> = hits
        .iter()
        .map(|key| {
            let mut key = key.clone();
            if let Some(last) = key.last_mut() {
                *last = last.wrapping_add(1);
            }
            key
        })
        .collect();
    let ns = |start: Instant| start.elapsed().as_nanos() as f64 / LOOKUPS as f64;
    let start = Instant::now();
    let found = hits.iter().filter(|key| index.get(key).is_some()).count();
    let hit = ns(start);
    let start = Instant::now();
    let strangers = misses.iter().filter(|key| index.get(key).is_some()).count();
    let miss = ns(start);
    let views: Vec<&[u8]> = hits.iter().map(Vec::as_slice).collect();
    let mut ranks = Vec::new();
    let start = Instant::now();
    for views in views.chunks(128) {
        index.get_batch(black_box(views), &mut ranks);
    }
    let batched = ns(start);
    let start = Instant::now();
    let sum = hits.iter().fold(0u64, |sum, key| sum ^ index.seek(key));
    let seek = ns(start);
    let start = Instant::now();
    let mut cursor = index.cursor();
    cursor.go_to(0);
    let mut walked = 0;
    while cursor.valid() {
        walked += cursor.key().len();
        cursor.next();
    }
    let step = start.elapsed().as_nanos() as f64 / index.len() as f64;
    println!(
        "  get {hit:.0} ns, absent {miss:.0}, batched {batched:.0}, seek {seek:.0}, next {step:.1} ({found} found, {strangers} strangers, {})",
        black_box(sum) as usize % 2 + black_box(walked) % 2,
    );
    Ok(())
}
