//! One thread of a step.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::datasets::RecordIndex;
use drumlin_bench::histogram::Latencies;
use drumlin_bench::keygen::{KeyNumbers, KeyOrder};
use drumlin_bench::mersenne::Mersenne64;
use drumlin_bench::pace::Pace;
use drumlin_bench::{Cursor, Flags, Session, Store};
use drumlin_fs::Clock;
use drumlin_ycsb::distributions::ScrambledZipfian;

use super::source::{SEGMENT_RECORDS, Source};
use crate::protocol::{Act, Role, RoleDone};
use crate::records::RecordReader;

/// Operations between two looks at whether to stop, of acts that take nanoseconds.
const LOOK_EVERY: u64 = 64;

/// A thread's count and times, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Slot {
    /// Operations done.
    pub(super) operations: AtomicU64,
    /// Times by the second in which the operation returned, until they are taken.
    times: Mutex<Vec<(u64, Latencies)>>,
}

impl Slot {
    fn record(&self, second: u64, nanos: u64) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        match times.last_mut() {
            Some((open, latencies)) if *open == second => latencies.record(nanos),
            _ => {
                let mut latencies = Latencies::new();
                latencies.record(nanos);
                times.push((second, latencies));
            }
        }
    }

    /// Moves the times of second `last` and of those before to `sum`.
    pub(super) fn take(&self, last: u64, sum: &mut Latencies) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.retain(|(second, latencies)| {
            if *second <= last {
                sum.merge(latencies);
            }
            *second > last
        });
    }
}

/// State shared by the threads of a step.
pub(super) struct Board<'s> {
    pub(super) clock: &'s dyn Clock,
    pub(super) started: Duration,
    pub(super) stop: AtomicBool,
    /// Threads at work whose end is the step's: those of roles that lead, or all when none does.
    pub(super) leading: AtomicUsize,
    pub(super) all_lead: bool,
    /// Nanoseconds from the start to the end of the last thread whose end is the step's.
    pub(super) ended: AtomicU64,
    /// The keys to ask for. Grows while records are loaded.
    pub(super) source: &'s Source,
    /// How many keys of it are in the store, from the first on.
    pub(super) loaded: &'s AtomicU64,
}

/// One thread at its work.
pub(super) struct Worker<'s, S: Store> {
    pub(super) board: &'s Board<'s>,
    pub(super) slot: &'s Slot,
    pub(super) role: &'s Role,
    pub(super) store: &'s S,
    pub(super) flags: &'s Flags,
    pub(super) seed: u64,
    pub(super) records: Option<&'s Mutex<RecordReader>>,
    pub(super) done: RoleDone,
    pub(super) pace: Pace,
    pub(super) count: u64,
}

impl<'s, S: Store> Worker<'s, S> {
    /// Works until done or told to stop.
    pub(super) fn run(mut self) -> Result<RoleDone> {
        let began = self.board.clock.monotonic();
        let result = match self.role.act {
            Act::PutAscending => self.put(KeyOrder::Ascending),
            Act::PutRandom => self.put(KeyOrder::Random),
            Act::PutUnique => self.put(KeyOrder::UniqueRandom),
            Act::LoadRecords => self.load(),
            Act::GetUniform => self.get(None),
            Act::GetZipfian => {
                let last = self.board.loaded.load(Ordering::Relaxed).saturating_sub(1);
                self.get(Some(ScrambledZipfian::new(last)))
            }
            Act::MultiGet(batch) => self.multi_get(batch),
            Act::Seek(entries) => self.seek(entries),
            Act::Forward | Act::Backward => self.walk(),
            Act::Compact => match self.store.compact() {
                // An engine that cannot be asked has done nothing, which the report shows as a dash.
                Err(error) if error.kind() == ErrorKind::NotSupported => Ok(()),
                result => {
                    self.count(1);
                    result
                }
            },
        };
        let now = self.board.clock.monotonic();
        let took = now - began;
        if self.role.leads || self.board.all_lead {
            let nanos = u64::try_from((now - self.board.started).as_nanos()).unwrap_or(u64::MAX);
            // Relaxed: read after the thread was joined.
            self.board.ended.fetch_max(nanos, Ordering::Relaxed);
        }
        self.done.operations = self.count;
        self.done.thread_seconds = took.as_secs_f64();
        self.slot.operations.store(self.count, Ordering::Relaxed);
        result.map(|()| self.done)
    }

    /// Whether another operation shall be done.
    #[inline]
    fn goes_on(&self) -> bool {
        let is_left = self.role.operations == 0 || self.count < self.role.operations;
        // Relaxed: the flag publishes nothing.
        let looks = self.role.rate > 0.0 || self.count.is_multiple_of(LOOK_EVERY);
        is_left && !(looks && self.board.stop.load(Ordering::Relaxed))
    }

    #[inline]
    fn count(&mut self, operations: u64) {
        self.count += operations;
        // Relaxed and not interlocked: only this thread writes it, and only the number matters.
        self.slot.operations.store(self.count, Ordering::Relaxed);
    }

    /// Does `operation`, at its time if there is a rate, and times it if it is its turn.
    #[inline]
    fn timed<T>(&mut self, operation: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let is_paced = self.role.rate > 0.0;
        let due = is_paced.then(|| self.pace.wait(self.board.clock));
        if !self
            .count
            .is_multiple_of(u64::from(self.role.time_every.max(1)))
        {
            return operation(self);
        }
        // An operation that waited for a slow one is late too: its time counts from when it was due.
        let began = due.unwrap_or_else(|| self.board.clock.monotonic());
        let value = operation(self)?;
        let ended = self.board.clock.monotonic();
        let nanos = u64::try_from(ended.saturating_sub(began).as_nanos()).unwrap_or(u64::MAX);
        self.slot
            .record(ended.saturating_sub(self.board.started).as_secs(), nanos);
        Ok(value)
    }

    fn put(&mut self, order: KeyOrder) -> Result<()> {
        let source = self.board.source;
        let Source::Numbers(values) = source else {
            return Err(Error::invalid_argument(
                "numbered keys are written only without records",
            ));
        };
        let mut order = KeyNumbers::new(order, values.len(), self.seed);
        let mut random = Mersenne64::new(self.seed);
        let mut session = self.store.session(self.flags);
        let mut key = Vec::new();
        // Entries of a batch, and those in the open one.
        let (batch, mut batched) = (self.flags.batch_size as u64, 0);
        while self.goes_on()
            && (self.role.operations == 0 || self.count + batched < self.role.operations)
        {
            let number = order.next(&mut random);
            source.write_key(number, &mut key);
            let value = values.value(number);
            self.done.written_bytes += (key.len() + value.len()) as u64;
            if batch > 1 {
                session.batch_put(&key, value)?;
                batched += 1;
                if batched == batch {
                    self.timed(|_| session.batch_write())?;
                    self.count(std::mem::take(&mut batched));
                }
                continue;
            }
            self.timed(|_| session.put(&key, value))?;
            self.count(1);
        }
        if batched > 0 {
            session.batch_write()?;
            self.count(batched);
        }
        // Every key is present only after a load of all keys without repetitions. Drawn keys may be
        // missing; the reading role's flags allow for that.
        self.board.loaded.fetch_max(values.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Writes the records of the file. Readers beside see each once it is in the store.
    fn load(&mut self) -> Result<()> {
        let records = self
            .records
            .ok_or_else(|| Error::invalid_argument("there is no file of records"))?;
        let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut session = self.store.session(self.flags);
        let mut fresh = RecordIndex::default();
        while self.goes_on() {
            let Some((key, value)) = records.next_record()? else {
                break;
            };
            self.done.written_bytes += (key.len() + value.len()) as u64;
            fresh.push(key, value);
            self.timed(|_| session.put(key, value))?;
            self.count(1);
            if fresh.len() >= SEGMENT_RECORDS {
                self.publish(&mut fresh)?;
            }
        }
        self.publish(&mut fresh)
    }

    /// Hands the records that were written to the readers.
    fn publish(&self, fresh: &mut RecordIndex) -> Result<()> {
        if fresh.is_empty() {
            return Ok(());
        }
        let Source::Records(loaded) = self.board.source else {
            return Err(Error::invalid_argument("there is no file of records"));
        };
        let first = self.board.loaded.load(Ordering::Relaxed);
        let records = std::mem::take(fresh);
        let count = records.len() as u64;
        if !loaded.publish(first, records) {
            let message = "the file has more records than were announced, or is loaded twice";
            return Err(Error::corruption(message));
        }
        // Release pairs with the load in `get`: a reader that sees the number sees the segment.
        self.board.loaded.store(first + count, Ordering::Release);
        Ok(())
    }

    fn get(&mut self, zipfian: Option<ScrambledZipfian>) -> Result<()> {
        let (board, store, flags) = (self.board, self.store, self.flags);
        let mut session = store.session(flags);
        let mut rng = Rng::new(self.seed);
        let source = board.source;
        let mut key = Vec::new();
        while self.goes_on() {
            // Acquire pairs with the store in `publish`.
            let loaded = board.loaded.load(Ordering::Acquire);
            if loaded == 0 {
                board.clock.sleep(Duration::from_millis(1));
                if board.stop.load(Ordering::Relaxed) {
                    break;
                }
                continue;
            }
            for _ in 0..LOOK_EVERY {
                let number = match &zipfian {
                    Some(zipfian) => zipfian.next(&mut rng) % loaded,
                    None => rng.below(loaded),
                };
                source.write_key(number, &mut key);
                let mut is_same = true;
                let found = self.timed(|_| {
                    session.get(&key, |value| is_same = source.is_value(number, value))
                })?;
                self.found(found, is_same, &key)?;
                self.count(1);
                if self.role.operations > 0 && self.count >= self.role.operations {
                    break;
                }
            }
        }
        Ok(())
    }

    fn multi_get(&mut self, batch: usize) -> Result<()> {
        let (board, store, flags) = (self.board, self.store, self.flags);
        let source = board.source;
        let loaded = board.loaded.load(Ordering::Acquire).max(1);
        let mut session = store.session(flags);
        let mut rng = Rng::new(self.seed);
        let mut keys = vec![Vec::new(); batch.max(1)];
        let mut asked = vec![0; keys.len()];
        while self.goes_on() {
            for (key, number) in keys.iter_mut().zip(&mut asked) {
                *number = rng.below(loaded);
                source.write_key(*number, key);
            }
            let mut is_same = true;
            let found = self.timed(|_| {
                session.multi_get(&keys, |index, value| {
                    let number = asked.get(index).copied().unwrap_or(u64::MAX);
                    is_same &= source.is_value(number, value);
                })
            })?;
            let missing = keys.len() - found;
            self.found(
                missing == 0,
                is_same,
                keys.first().map(Vec::as_slice).unwrap_or_default(),
            )?;
            self.count(keys.len() as u64);
        }
        Ok(())
    }

    fn seek(&mut self, entries: usize) -> Result<()> {
        let (board, store, flags) = (self.board, self.store, self.flags);
        let source = board.source;
        let loaded = board.loaded.load(Ordering::Acquire).max(1);
        let mut session = store.session(flags);
        let mut rng = Rng::new(self.seed);
        let mut key = Vec::new();
        // An engine may read on behind the prefix, or not: none is asked to.
        let prefix_bytes = match flags.prefix_same_as_start {
            true => flags.prefix_size,
            false => 0,
        };
        while self.goes_on() {
            let number = rng.below(loaded);
            source.write_key(number, &mut key);
            let (found, is_same) = self.timed(|_| {
                let mut cursor = session.cursor(None, None)?;
                cursor.seek(&key);
                let found = cursor.valid() && cursor.key() == key.as_slice();
                let is_same = !found || source.is_value(number, cursor.value());
                for _ in 0..entries {
                    if !cursor.valid()
                        || cursor.key().get(..prefix_bytes) != key.get(..prefix_bytes)
                    {
                        break;
                    }
                    cursor.next();
                }
                cursor.status()?;
                Ok((found, is_same))
            })?;
            self.found(found, is_same, &key)?;
            self.count(1);
        }
        Ok(())
    }

    /// Reads every entry once, from one end to the other; keys must be in order.
    fn walk(&mut self) -> Result<()> {
        let is_forward = self.role.act == Act::Forward;
        let mut session = self.store.session(self.flags);
        let mut cursor = session.cursor(None, None)?;
        if is_forward {
            cursor.seek_to_first();
        } else {
            cursor.seek_to_last();
        }
        let (mut bytes, mut before) = (0u64, Vec::new());
        while self.goes_on() && cursor.valid() {
            bytes += (cursor.key().len() + cursor.value().len()) as u64;
            // One comparison in many: the walk is measured, not the check.
            if self.count.is_multiple_of(LOOK_EVERY) {
                let is_ordered =
                    before.is_empty() || (before.as_slice() < cursor.key()) == is_forward;
                if !is_ordered {
                    return Err(Error::corruption("a walk went back"));
                }
                before.clear();
                before.extend_from_slice(cursor.key());
            }
            if is_forward {
                cursor.next();
            } else {
                cursor.prev();
            }
            self.count(1);
        }
        cursor.status()?;
        if bytes == 0 {
            return Err(Error::corruption("a walk over a filled store met no entry"));
        }
        self.done.found += self.count;
        Ok(())
    }

    /// Counts a look-up and fails on a wrong one.
    #[inline]
    fn found(&mut self, found: bool, is_same: bool, key: &[u8]) -> Result<()> {
        if found && is_same {
            self.done.found += 1;
            return Ok(());
        }
        self.done.missing += 1;
        if is_same && !self.role.must_find {
            return Ok(());
        }
        let what = if is_same {
            "was written and is not there"
        } else {
            "has another value than was written"
        };
        Err(Error::corruption(format!(
            "the key {} {what}",
            key.escape_ascii()
        )))
    }
}
