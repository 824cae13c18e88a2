//! Compression ratio and decoding speed of records, beside zstd with a dictionary.
//!
//! ```text
//! cargo run --release -p drumlin-succinct --example ratio -- FILE [sample MB]
//! ```
//!
//! The file has one record a line, or `key TAB record`, as `drumlin gen lineitem` and `drumlin scan` print
//! them. Models are trained on records from across the file and judged on others; the memory that takes is the
//! figure of Linux. Times are processor times of one thread; records are read in random order.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "measures and prints, outside the library"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use drumlin_base::rng::Rng;
use drumlin_succinct::{Effort, Encoder, Model};

/// Records that are judged by.
const JUDGED: usize = 20_000;
const ZSTD_DICTIONARY_BYTES: usize = 110 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("ratio FILE [sample MB]")?;
    let sample_mb: usize = arguments.next().map_or(Ok(32), |text| text.parse())?;
    let file = std::fs::read(&path)?;
    let records: Vec<Vec<u8>> = (file.split(|&byte| byte == b'\n'))
        .filter(|line| !line.is_empty())
        .map(record)
        .collect();
    let bytes: usize = records.iter().map(Vec::len).sum();
    println!(
        "{path}: {} records of {} bytes",
        records.len(),
        bytes / records.len().max(1)
    );
    let step = (records.len() / JUDGED).max(2);
    let judged: Vec<&[u8]> = records.iter().step_by(step).map(Vec::as_slice).collect();
    let others = records
        .iter()
        .enumerate()
        .filter(|(index, _)| index % step != 0);
    let others: Vec<&[u8]> = others.map(|(_, record)| record.as_slice()).collect();
    let sample_step = (bytes / (sample_mb << 20)).max(1);
    let sample: Vec<&[u8]> = others.iter().step_by(sample_step).copied().collect();
    for effort in [Effort::Fast, Effort::Small] {
        of_model(effort, &sample, &judged)?;
    }
    for level in [3, 19] {
        of_zstd(level, &sample, &judged)?;
    }
    Ok(())
}

/// The text behind the first tab of a line, with its escapes undone.
fn record(line: &[u8]) -> Vec<u8> {
    let tab = line.iter().position(|&byte| byte == b'\t');
    let text = line.get(tab.map_or(0, |tab| tab + 1)..).unwrap_or_default();
    let mut record = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        record.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                other => other.copied().unwrap_or(b'\\'),
            },
            other => other,
        });
    }
    record
}

/// Resets the system's record of peak memory, and returns the memory taken now, in units of 1024 bytes.
/// `None` on a system without such a record.
fn begin_peak() -> Option<usize> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status_kb("VmRSS:")
}

/// The figure under `name` in `/proc/self/status`.
fn status_kb(name: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The order records are read in.
fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut rng = Rng::new(1);
    for index in (1..count).rev() {
        order.swap(index, rng.below(index as u64 + 1) as usize);
    }
    order
}

fn of_model(effort: Effort, sample: &[&[u8]], judged: &[&[u8]]) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let before = begin_peak();
    let model = Arc::new(Model::train(sample, effort));
    let trained = begin.elapsed();
    let bytes: usize = sample.iter().map(|record| record.len()).sum();
    if let (Some(before), Some(peak)) = (before, status_kb("VmHWM:")) {
        println!(
            "-- {effort:?}: learned from {:.1} MB with {:.1} MB at most beside them",
            bytes as f64 / 1e6,
            peak.saturating_sub(before) as f64 * 1024.0 / 1e6
        );
    }
    let mut encoder = Encoder::new(Arc::clone(&model));
    let mut code = Vec::new();
    encoder.encode(b"tables are made when first asked for", &mut code);
    let mut codes = Vec::new();
    let mut encoding = f64::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        codes.clear();
        for record in judged {
            code.clear();
            encoder.encode(record, &mut code);
            codes.push(code.clone());
        }
        encoding = encoding.min(begin.elapsed().as_secs_f64());
    }
    let counts = encoder.counts();
    println!(
        "-- {effort:?}: trained in {trained:.2?}, model {} KB, memory {} KB, raw {}\n{}",
        model.to_bytes().len() >> 10,
        model.memory() >> 10,
        counts.raw,
        model.describe()
    );
    let order = shuffled(judged.len());
    let mut out = Vec::new();
    let mut best = f64::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        for &index in &order {
            out.clear();
            model.decode(&codes[index], &mut out)?;
            assert_eq!(out.len(), judged[index].len());
        }
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let mut best_batch = f64::MAX;
    let mut ends = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        for batch in order.chunks(16) {
            let codes: Vec<&[u8]> = batch.iter().map(|&index| codes[index].as_slice()).collect();
            out.clear();
            ends.clear();
            model.decode_batch(&codes, &mut out, &mut ends)?;
        }
        best_batch = best_batch.min(begin.elapsed().as_secs_f64());
    }
    let code_bytes: usize = codes.iter().map(Vec::len).sum();
    report(&format!("{effort:?}"), judged, code_bytes, encoding, best);
    println!(
        "   in batches of 16: {:.0} ns",
        best_batch * 1e9 / judged.len() as f64
    );
    Ok(())
}

fn report(name: &str, judged: &[&[u8]], code_bytes: usize, encoding: f64, decoding: f64) {
    let (bytes, count) = (
        judged.iter().map(|r| r.len()).sum::<usize>() as f64,
        judged.len() as f64,
    );
    println!(
        "{name}: {:.1} bytes a record, ratio {:.2}, encoded at {:.0} MB/s, {:.0} ns a record ({:.2} GB/s)",
        code_bytes as f64 / count,
        bytes / code_bytes as f64,
        bytes / encoding / 1e6,
        decoding * 1e9 / count,
        bytes / decoding / 1e9,
    );
}

fn of_zstd(level: i32, sample: &[&[u8]], judged: &[&[u8]]) -> Result<(), Box<dyn Error>> {
    let spread: Vec<&[u8]> = sample
        .iter()
        .step_by((sample.len() / 10_000).max(1))
        .copied()
        .collect();
    let dictionary = zstd::dict::from_samples(&spread, ZSTD_DICTIONARY_BYTES)?;
    let mut compressor = zstd::bulk::Compressor::with_dictionary(level, &dictionary)?;
    let mut decompressor = zstd::bulk::Decompressor::with_dictionary(&dictionary)?;
    let begin = Instant::now();
    let codes: Result<Vec<Vec<u8>>, _> = judged.iter().map(|r| compressor.compress(r)).collect();
    let (codes, encoding) = (codes?, begin.elapsed());
    let mut out = vec![0; judged.iter().map(|record| record.len()).max().unwrap_or(0)];
    let order = shuffled(judged.len());
    let begin = Instant::now();
    for &index in &order {
        decompressor.decompress_to_buffer(&codes[index], out.as_mut_slice())?;
    }
    let decoding = begin.elapsed();
    let code_bytes = codes.iter().map(Vec::len).sum();
    report(
        &format!("zstd-{level} with dictionary"),
        judged,
        code_bytes,
        encoding.as_secs_f64(),
        decoding.as_secs_f64(),
    );
    Ok(())
}
