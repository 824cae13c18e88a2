//! The demo's second part: random reads, each checked byte for byte, beside a writer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drumlin::{Db, ReadOptions, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_base::{Error, Result};
use drumlin_bench::histogram::Latencies;
use drumlin_bench::lineitem::Row;
use drumlin_bench::pace::WritePace;
use drumlin_bench::text::CommentText;
use drumlin_fs::{Env, JoinHandle};

use super::load::Source;
use crate::args::Demo;
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;

/// Between two looks at the clock while the threads work.
const TICK: Duration = Duration::from_millis(100);

/// The result of reading and writing.
#[derive(Debug, Default)]
pub(crate) struct ReadSummary {
    pub(crate) threads: usize,
    pub(crate) took: Duration,
    pub(crate) reads: Latencies,
    pub(crate) writes: Latencies,
    pub(crate) written_bytes: u64,
}

/// The state that the threads share.
struct Course {
    db: Db,
    rows: Arc<Vec<Row>>,
    text: Arc<CommentText>,
    env: Env,
    stop: AtomicBool,
    sum: Mutex<Sum>,
}

#[derive(Default)]
struct Sum {
    summary: ReadSummary,
    failure: Option<Error>,
    first_wrong: Option<String>,
}

/// Reads on `demo.threads` threads for `demo.seconds`, while one more writes rows from `source`.
pub(crate) fn run(
    db: &Db,
    rows: Arc<Vec<Row>>,
    source: Source,
    demo: &Demo,
    env: &Env,
    progress: &mut Progress,
) -> Outcome<ReadSummary> {
    if rows.is_empty() {
        return Err(Failure::Usage(
            "--bytes is too small for a single row".to_owned(),
        ));
    }
    let course = Arc::new(Course {
        db: db.clone(),
        rows,
        text: source.text(),
        env: env.clone(),
        stop: AtomicBool::new(false),
        sum: Mutex::default(),
    });
    let began = env.clock.monotonic();
    let mut threads: Vec<Box<dyn JoinHandle>> = Vec::new();
    for index in 0..demo.threads {
        let course = Arc::clone(&course);
        let seed = demo.shape.seed.wrapping_add(index as u64 + 1);
        let body = Box::new(move || course.read(seed));
        threads.push(env.spawner.spawn(&format!("demo-read-{index}"), body)?);
    }
    let writer = Arc::clone(&course);
    let write_rate = demo.write_rate;
    let body = Box::new(move || writer.write(source, write_rate));
    threads.push(env.spawner.spawn("demo-write", body)?);
    let deadline = began + Duration::from_secs(demo.seconds);
    // Relaxed: the flag publishes nothing; joining the threads orders their counts.
    while env.clock.monotonic() < deadline && !course.stop.load(Ordering::Relaxed) {
        env.clock.sleep(TICK);
        progress.reach_second((env.clock.monotonic() - began).as_secs());
    }
    course.stop.store(true, Ordering::Relaxed);
    threads.into_iter().try_for_each(JoinHandle::join)?;
    let took = env.clock.monotonic() - began;
    let mut sum = course.sum.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = sum.failure.take() {
        return Err(error.into());
    }
    if let Some(wrong) = sum.first_wrong.take() {
        return Err(Failure::Check(wrong));
    }
    let summary = std::mem::take(&mut sum.summary);
    Ok(ReadSummary {
        threads: demo.threads,
        took,
        ..summary
    })
}

impl Course {
    /// The body of a reading thread.
    fn read(&self, seed: u64) {
        let mut latencies = Latencies::new();
        let result = self.read_rows(seed, &mut latencies);
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.summary.reads.merge(&latencies);
        match result {
            Ok(None) => return,
            Ok(Some(wrong)) => {
                sum.first_wrong.get_or_insert(wrong);
            }
            Err(error) => {
                sum.failure.get_or_insert(error);
            }
        }
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Reads until told to stop, or until a value differs from the one written. Returns the
    /// difference.
    fn read_rows(&self, seed: u64, latencies: &mut Latencies) -> Result<Option<String>> {
        let family = self.db.default_family();
        let (options, clock) = (ReadOptions::default(), &self.env.clock);
        let mut rng = Rng::new(seed);
        let (mut key, mut expected) = (Vec::new(), Vec::new());
        while !self.stop.load(Ordering::Relaxed) {
            let index = rng.below(self.rows.len() as u64) as usize;
            let Some(row) = self.rows.get(index) else {
                continue;
            };
            row.write_key(&mut key);
            let before = clock.monotonic();
            let value = self.db.get_cf(family, &key, &options)?;
            let nanos = (clock.monotonic() - before).as_nanos();
            latencies.record(u64::try_from(nanos).unwrap_or(u64::MAX));
            row.write_value(&self.text, &mut expected);
            if let Some(wrong) = compare(&key, value.as_deref(), &expected) {
                return Ok(Some(wrong));
            }
        }
        Ok(None)
    }

    /// The body of the writing thread.
    fn write(&self, source: Source, rows_per_second: u64) {
        let mut latencies = Latencies::new();
        let result = self.write_rows(source, rows_per_second, &mut latencies);
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.summary.writes.merge(&latencies);
        match result {
            Ok(bytes) => sum.summary.written_bytes += bytes,
            Err(error) => {
                sum.failure.get_or_insert(error);
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    fn write_rows(&self, mut source: Source, rate: u64, latencies: &mut Latencies) -> Result<u64> {
        let family = self.db.default_family();
        let (options, clock) = (WriteOptions::default(), &self.env.clock);
        let limit = WritePace::new(rate, Arc::clone(clock));
        let (mut key, mut value, mut bytes) = (Vec::new(), Vec::new(), 0);
        while !self.stop.load(Ordering::Relaxed) {
            let Some(row) = source.next(&mut key) else {
                break;
            };
            row.write_value(&self.text, &mut value);
            let before = clock.monotonic();
            self.db.put_cf(family, &key, &value, &options)?;
            let nanos = (clock.monotonic() - before).as_nanos();
            latencies.record(u64::try_from(nanos).unwrap_or(u64::MAX));
            bytes += (key.len() + value.len()) as u64;
            if let Some(limit) = &limit {
                limit.request(1);
            }
        }
        Ok(bytes)
    }
}

/// The fault of `value`; `None` when it is the value written.
fn compare(key: &[u8], value: Option<&[u8]>, expected: &[u8]) -> Option<String> {
    let key = || Form::Plain.show(key);
    let Some(value) = value else {
        return Some(format!("key {} was loaded and is not there", key()));
    };
    if value == expected {
        return None;
    }
    let same = value
        .iter()
        .zip(expected)
        .take_while(|(a, b)| a == b)
        .count();
    let (got, wrote) = (value.len(), expected.len());
    Some(format!(
        "key {}: {got} bytes were read, {wrote} written; they differ from byte {same} on",
        key()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_must_be_there_and_the_same() {
        assert_eq!(compare(b"k", Some(b"abc"), b"abc"), None);
        let wrong = compare(b"k", Some(b"abd"), b"abc").unwrap_or_default();
        assert!(wrong.contains("differ from byte 2"), "{wrong}");
        let wrong = compare(b"k", Some(b"ab"), b"abc").unwrap_or_default();
        assert!(wrong.contains("2 bytes were read, 3 written"), "{wrong}");
        let wrong = compare(b"k", None, b"abc").unwrap_or_default();
        assert!(wrong.contains("is not there"), "{wrong}");
    }
}
