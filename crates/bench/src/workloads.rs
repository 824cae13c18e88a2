//! The workloads: the operations of one thread between the start signal and its end.
//!
//! Each draws from its generator exactly when db_bench does (also the draw with which that chooses
//! among its databases, of which there is one), so that a seed gives the same keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::Clock;

use crate::entries::{EntryValues, Keys};
use crate::flags::Flags;
use crate::keygen::{KeyNumbers, KeyOrder, random_number};
use crate::mersenne::Mersenne64;
use crate::pace::WritePace;
use crate::records::Records;
use crate::stats::{Operation, ThreadStats};
use crate::store::{Cursor, Session, Store};

/// Keys drawn together where they come from a file.
const KEYS_AHEAD: usize = 64;

/// The work of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Write keys in an order.
    Fill(KeyOrder),
    /// Look up random keys, each `extra` bytes longer than those written.
    ReadRandom {
        /// Bytes too many; with one, no key is there.
        extra: usize,
    },
    /// Look up random keys among the lowest hundredth.
    ReadHot,
    /// Look up random keys, a batch at once.
    MultiReadRandom,
    /// Scan from the front.
    ReadForward,
    /// Scan from the back.
    ReadBackward,
    /// Seek to random keys.
    SeekRandom,
    /// Delete keys, in order or at random.
    Delete(KeyOrder),
    /// Delete a range of keys, look up a key.
    DeleteRange,
    /// Put at the tail, seek to the first, delete it.
    Queue,
    /// Thread 0 writes until the others have done `ReadRandom`.
    ReadWhileWriting,
    /// Thread 0 writes until the others have done `MultiReadRandom`.
    MultiReadWhileWriting,
    /// Thread 0 writes until the others have done `SeekRandom`.
    SeekWhileWriting,
    /// Compact everything.
    Compact,
    /// Measure a codec or checksum; the store is not touched.
    Block(crate::codecs::BlockWork),
}

/// State shared by the threads of a run.
#[derive(Debug)]
pub struct Shared {
    /// Threads that have not finished the measured part.
    pub running: AtomicUsize,
    /// The writers' schedule.
    pub write_limit: Option<WritePace>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Records to write and read instead of generated entries.
    pub records: Option<Arc<Records>>,
}

impl Shared {
    /// The keys that `flags` describe, `extra` bytes longer than the keys written.
    fn keys(&self, flags: &Flags, extra: usize) -> Keys<'_> {
        Keys::new(flags, self.records.as_deref(), extra)
    }

    fn values(&self, flags: &Flags) -> EntryValues<'_> {
        EntryValues::new(flags, self.records.as_deref())
    }
}

/// One thread of a run.
#[derive(Debug)]
pub struct Worker<'a, S> {
    /// The store under measurement.
    pub store: &'a S,
    /// The flags, as the workload adjusted them.
    pub flags: &'a Flags,
    /// State shared by the threads.
    pub shared: &'a Shared,
    /// This thread's draws.
    pub random: Mersenne64,
    /// This thread's counts.
    pub stats: ThreadStats,
    /// This thread's number, from 0.
    pub index: usize,
}

impl<S: Store> Worker<'_, S> {
    /// Does `work`.
    ///
    /// # Errors
    /// The first error the store reports.
    pub fn run(&mut self, work: Work) -> Result<()> {
        match work {
            Work::Fill(order) => self.fill(order),
            Work::ReadRandom { extra } => self.read_random(extra),
            Work::ReadHot => self.read_hot(),
            Work::MultiReadRandom => self.multi_read_random(),
            Work::ReadForward => self.read_forward(),
            Work::ReadBackward => self.read_backward(),
            Work::SeekRandom => self.seek_random(),
            Work::Delete(order) => self.delete(order),
            Work::DeleteRange => self.delete_range(),
            Work::Queue => self.queue(),
            Work::ReadWhileWriting if self.index > 0 => self.read_random(0),
            Work::MultiReadWhileWriting if self.index > 0 => self.multi_read_random(),
            Work::SeekWhileWriting if self.index > 0 => self.seek_random(),
            Work::ReadWhileWriting | Work::MultiReadWhileWriting | Work::SeekWhileWriting => {
                self.write_beside()
            }
            Work::Compact => {
                self.store.compact()?;
                self.stats.finished(Operation::Other, 1);
                Ok(())
            }
            Work::Block(block) => block.run(self.flags, &mut self.stats, &self.shared.clock),
        }
    }

    fn fill(&mut self, order: KeyOrder) -> Result<()> {
        let flags = self.flags;
        let writes = u64::try_from(flags.writes).unwrap_or(flags.num);
        let seconds = if order == KeyOrder::Random {
            flags.duration
        } else {
            0
        };
        let mut quota = Quota::new(&self.shared.clock, seconds, writes, flags);
        let mut numbers = KeyNumbers::new(order, flags.num, flags.seed);
        let mut values = self.shared.values(flags);
        let shape = self.shared.keys(flags, 0);
        let mut key = shape.buffer();
        let mut session = self.store.session(flags);
        let batch = flags.batch_size as u64;
        let mut bytes = 0;
        while !quota.done(batch) {
            if order != KeyOrder::Ascending {
                self.draw_database();
            }
            let mut batch_bytes = 0;
            for _ in 0..batch {
                let number = numbers.next(&mut self.random);
                shape.write(number, &mut key);
                let value = values.next(number);
                let entry_bytes = (key.len() + value.len()) as u64;
                batch_bytes += entry_bytes;
                if batch > 1 {
                    session.batch_put(&key, value)?;
                } else {
                    self.pace_write(entry_bytes);
                    session.put(&key, value)?;
                }
            }
            if batch > 1 {
                self.pace_write(batch_bytes);
                session.batch_write()?;
            }
            bytes += batch_bytes;
            self.stats.finished(Operation::Write, batch);
        }
        self.stats.bytes += bytes;
        Ok(())
    }

    /// Waits for the writers' schedule, outside the operation's time.
    #[inline]
    fn pace_write(&mut self, bytes: u64) {
        if let Some(limit) = &self.shared.write_limit {
            limit.request(bytes);
            self.stats.skip_pause();
        }
    }

    /// Draws as the peer does to choose among its databases.
    #[inline]
    fn draw_database(&mut self) {
        self.random.next_u64();
    }

    fn read_random(&mut self, extra: usize) -> Result<()> {
        let flags = self.flags;
        self.look_up(extra, |random| random_number(flags, random))
    }

    fn read_hot(&mut self) -> Result<()> {
        let range = self.flags.num.div_ceil(100);
        self.look_up(0, |random| random.next_u64() % range)
    }

    fn look_up(
        &mut self,
        extra: usize,
        mut number: impl FnMut(&mut Mersenne64) -> u64,
    ) -> Result<()> {
        let flags = self.flags;
        let mut quota = self.read_quota();
        let shape = self.shared.keys(flags, extra);
        // Records are scattered over memory: keys are fetched a few together, so that waiting for them,
        // which is not the store's work, is little of the measured time.
        let mut ahead = vec![
            shape.buffer();
            if self.shared.records.is_some() {
                KEYS_AHEAD
            } else {
                1
            }
        ];
        let mut drawn = ahead.len();
        let mut session = self.store.session(flags);
        let (mut asked, mut found, mut bytes) = (0u64, 0u64, 0u64);
        while !quota.done(1) {
            if drawn == ahead.len() {
                drawn = 0;
                for key in &mut ahead {
                    self.draw_database();
                    shape.write(number(&mut self.random), key);
                }
            }
            let Some(key) = ahead.get(drawn) else {
                break;
            };
            drawn += 1;
            asked += 1;
            let mut value_bytes = 0;
            if session.get(key, |value| value_bytes = read(value))? {
                found += 1;
                bytes += (key.len() + value_bytes) as u64;
            }
            self.stats.finished(Operation::Read, 1);
        }
        self.stats.bytes += bytes;
        self.stats.found = Some((found, asked));
        Ok(())
    }

    fn multi_read_random(&mut self) -> Result<()> {
        let flags = self.flags;
        let mut quota = self.read_quota();
        let shape = self.shared.keys(flags, 0);
        let mut keys = vec![shape.buffer(); flags.batch_size];
        let mut session = self.store.session(flags);
        let (mut asked, mut found, mut bytes) = (0u64, 0u64, 0u64);
        let batch = flags.batch_size as u64;
        while !quota.done(batch) {
            self.draw_database();
            self.draw_keys(&shape, &mut keys);
            asked += batch;
            found += session.multi_get(&keys, |at, value| {
                bytes += (keys.get(at).map_or(0, Vec::len) + read(value)) as u64;
            })? as u64;
            self.stats.finished(Operation::Read, batch);
        }
        self.stats.bytes += bytes;
        self.stats.found = Some((found, asked));
        Ok(())
    }

    fn draw_keys(&mut self, shape: &Keys<'_>, keys: &mut [Vec<u8>]) {
        let flags = self.flags;
        if flags.multiread_stride == 0 {
            let mut numbers = [0; KEYS_AHEAD];
            for keys in keys.chunks_mut(KEYS_AHEAD) {
                let numbers = numbers.get_mut(..keys.len()).unwrap_or_default();
                numbers.fill_with(|| random_number(flags, &mut self.random));
                shape.write_each(numbers, keys);
            }
            return;
        }
        let span = keys.len() as u64 * flags.multiread_stride;
        let mut number = random_number(flags, &mut self.random);
        if number + span - flags.multiread_stride >= flags.num {
            number = flags.num.saturating_sub(span);
        }
        for key in keys {
            shape.write(number, key);
            number += flags.multiread_stride;
        }
    }

    fn read_forward(&mut self) -> Result<()> {
        let reads = self.flags.reads_per_thread();
        let mut session = self.store.session(self.flags);
        let mut cursor = session.cursor(None, None)?;
        let (mut done, mut bytes) = (0u64, 0u64);
        cursor.seek_to_first();
        while done < reads && cursor.valid() {
            bytes += (cursor.key().len() + cursor.value().len()) as u64;
            self.stats.finished(Operation::Read, 1);
            done += 1;
            cursor.next();
        }
        self.stats.bytes += bytes;
        cursor.status()
    }

    fn read_backward(&mut self) -> Result<()> {
        let reads = self.flags.reads_per_thread();
        let mut session = self.store.session(self.flags);
        let mut cursor = session.cursor(None, None)?;
        let (mut done, mut bytes) = (0u64, 0u64);
        cursor.seek_to_last();
        while done < reads && cursor.valid() {
            bytes += (cursor.key().len() + cursor.value().len()) as u64;
            self.stats.finished(Operation::Read, 1);
            done += 1;
            cursor.prev();
        }
        self.stats.bytes += bytes;
        cursor.status()
    }

    fn seek_random(&mut self) -> Result<()> {
        let flags = self.flags;
        if flags.refresh_iterators && flags.max_scan_distance == 0 {
            return self.seek_refreshed();
        }
        let mut quota = self.read_quota();
        let shape = self.shared.keys(flags, 0);
        let (mut key, mut bound) = (shape.buffer(), shape.buffer());
        let mut session = self.store.session(flags);
        let (mut asked, mut found, mut bytes) = (0u64, 0u64, 0u64);
        while !quota.done(1) {
            let number = self.random.next_u64() % flags.num;
            shape.write(number, &mut key);
            let (mut lower, mut upper) = (None, None);
            if flags.max_scan_distance > 0 && flags.reverse_iterator {
                shape.write(number.saturating_sub(flags.max_scan_distance), &mut bound);
                lower = Some(bound.as_slice());
            } else if flags.max_scan_distance > 0 {
                let end = number.saturating_add(flags.max_scan_distance);
                shape.write(end.min(flags.num), &mut bound);
                upper = Some(bound.as_slice());
            }
            let mut cursor = session.cursor(lower, upper)?;
            let (is_found, walked) = seek_and_walk(&mut cursor, &key, flags)?;
            asked += 1;
            found += u64::from(is_found);
            bytes += walked;
            self.stats.finished(Operation::Seek, 1);
        }
        self.stats.bytes += bytes;
        self.stats.found = Some((found, asked));
        Ok(())
    }

    /// As [`Worker::seek_random`] without bounds, with one cursor that is refreshed before each seek.
    fn seek_refreshed(&mut self) -> Result<()> {
        let flags = self.flags;
        let mut quota = self.read_quota();
        let shape = self.shared.keys(flags, 0);
        let mut key = shape.buffer();
        let mut session = self.store.session(flags);
        let mut cursor = session.cursor(None, None)?;
        let (mut asked, mut found, mut bytes) = (0u64, 0u64, 0u64);
        while !quota.done(1) {
            shape.write(self.random.next_u64() % flags.num, &mut key);
            cursor.refresh()?;
            let (is_found, walked) = seek_and_walk(&mut cursor, &key, flags)?;
            asked += 1;
            found += u64::from(is_found);
            bytes += walked;
            self.stats.finished(Operation::Seek, 1);
        }
        self.stats.bytes += bytes;
        self.stats.found = Some((found, asked));
        Ok(())
    }

    /// A queue, filled by fillseq, through which `--writes` entries pass; an operation is a put at
    /// the tail, a seek to the first, and its deletion. The deleted keys sort before all keys that
    /// a seek finds.
    fn queue(&mut self) -> Result<()> {
        let flags = self.flags;
        let passing = u64::try_from(flags.writes).unwrap_or(flags.num);
        let mut values = self.shared.values(flags);
        let shape = self.shared.keys(flags, 0);
        let mut key = shape.buffer();
        let mut session = self.store.session(flags);
        let mut head = Vec::new();
        for number in flags.num..flags.num + passing {
            shape.write(number, &mut key);
            session.put(&key, values.next(number))?;
            let mut cursor = session.cursor(None, None)?;
            cursor.seek_to_first();
            cursor.status()?;
            head.clear();
            head.extend_from_slice(cursor.key());
            drop(cursor);
            session.batch_delete(&head)?;
            session.batch_write()?;
            self.stats.finished(Operation::Seek, 1);
        }
        Ok(())
    }

    fn delete(&mut self, order: KeyOrder) -> Result<()> {
        let flags = self.flags;
        let seconds = if order == KeyOrder::Random {
            flags.duration
        } else {
            0
        };
        let deletes = flags.deletes_per_thread();
        let mut quota = Quota::new(&self.shared.clock, seconds, deletes, flags);
        let mut numbers = KeyNumbers::new(order, flags.num, flags.seed);
        let shape = self.shared.keys(flags, 0);
        let mut key = shape.buffer();
        let mut session = self.store.session(flags);
        let batch = flags.batch_size as u64;
        while !quota.done(batch) {
            self.draw_database();
            for _ in 0..batch {
                shape.write(numbers.next(&mut self.random), &mut key);
                session.batch_delete(&key)?;
            }
            session.batch_write()?;
            self.stats.finished(Operation::Delete, batch);
        }
        Ok(())
    }

    fn delete_range(&mut self) -> Result<()> {
        let flags = self.flags;
        let mut quota = Quota::new(
            &self.shared.clock,
            flags.duration,
            flags.deletes_per_thread(),
            flags,
        );
        let mut numbers = KeyNumbers::new(KeyOrder::Random, flags.num, flags.seed);
        let shape = self.shared.keys(flags, 0);
        let (mut key, mut end) = (shape.buffer(), shape.buffer());
        let mut session = self.store.session(flags);
        let (mut done, mut found) = (0, 0);
        while !quota.done(1) {
            let number = numbers.next(&mut self.random);
            shape.write(number, &mut key);
            shape.write(number + flags.range_tombstone_width, &mut end);
            session.batch_delete_range(&key, &end)?;
            session.batch_write()?;
            shape.write(numbers.next(&mut self.random), &mut key);
            found += u64::from(session.get(&key, |value| {
                std::hint::black_box(value);
            })?);
            done += 1;
            self.stats.finished(Operation::Delete, 1);
        }
        self.stats.found = Some((found, done));
        Ok(())
    }

    /// Overwrites random keys until every other thread is done (or, asked for, a count is reached).
    fn write_beside(&mut self) -> Result<()> {
        let flags = self.flags;
        self.stats.companion = true;
        let mut values = self.shared.values(flags);
        let shape = self.shared.keys(flags, 0);
        let mut key = shape.buffer();
        let mut session = self.store.session(flags);
        let writes = u64::try_from(flags.writes).unwrap_or(flags.num);
        let mut written = 0;
        loop {
            self.draw_database();
            // Relaxed: only the number matters; joining the threads orders the rest.
            let alone = self.shared.running.load(Ordering::Relaxed) <= 1;
            let enough = if flags.finish_after_writes {
                written >= writes
            } else {
                alone
            };
            if enough {
                break;
            }
            let number = self.random.next_u64() % flags.num;
            shape.write(number, &mut key);
            let value = values.next(number);
            let entry_bytes = (key.len() + value.len()) as u64;
            session.put(&key, value)?;
            written += 1;
            self.stats.bytes += entry_bytes;
            self.stats.finished(Operation::Write, 1);
            self.pace_write(entry_bytes);
        }
        Ok(())
    }

    fn read_quota(&self) -> Quota {
        let reads = self.flags.reads_per_thread();
        Quota::new(&self.shared.clock, self.flags.duration, reads, self.flags)
    }
}

/// Touches both ends of a value that was found, in place, so that handing it out is not all that
/// is measured; its length.
#[inline]
fn read(value: &[u8]) -> usize {
    let ends = value.first().zip(value.last());
    std::hint::black_box(ends.map(|(first, last)| first ^ last));
    value.len()
}

/// Seeks `key` and reads on; whether it was there, and the bytes read.
fn seek_and_walk(cursor: &mut impl Cursor, key: &[u8], flags: &Flags) -> Result<(bool, u64)> {
    cursor.seek(key);
    let is_found = cursor.valid() && cursor.key() == key;
    let bytes = walk(cursor, flags);
    cursor.status()?;
    Ok((is_found, bytes))
}

/// Reads `--seek_nexts` entries on from where `cursor` is; returns their bytes.
fn walk(cursor: &mut impl Cursor, flags: &Flags) -> u64 {
    let mut copy = [0u8; 256];
    let mut bytes = 0;
    for _ in 0..flags.seek_nexts {
        if !cursor.valid() {
            break;
        }
        // The value is copied out, as in the peer, so that it is really read.
        let value = cursor.value();
        let len = value.len().min(copy.len());
        copy[..len].copy_from_slice(&value[..len]);
        bytes += (cursor.key().len() + value.len()) as u64;
        if flags.reverse_iterator {
            cursor.prev();
        } else {
            cursor.next();
        }
    }
    std::hint::black_box(&copy);
    bytes
}

/// Ends a workload after a count of operations or a number of seconds.
#[derive(Debug)]
pub struct Quota {
    clock: Arc<dyn Clock>,
    deadline: Option<Duration>,
    operations_max: u64,
    operations: u64,
    check_every: u64,
    /// How many operations are done when the clock is looked at next.
    next_check: u64,
}

impl Quota {
    /// Until `seconds` have passed, or, when that is 0, `operations` are done.
    pub fn new(clock: &Arc<dyn Clock>, seconds: u64, operations: u64, flags: &Flags) -> Self {
        Self {
            deadline: (seconds > 0).then(|| clock.monotonic() + Duration::from_secs(seconds)),
            clock: Arc::clone(clock),
            operations_max: operations,
            operations: 0,
            check_every: flags.ops_between_duration_checks.max(1),
            next_check: flags.ops_between_duration_checks.max(1),
        }
    }

    /// Whether to stop before doing `count` operations more. Looks at the clock about once in
    /// `--ops_between_duration_checks` operations, and only when there is a deadline.
    #[inline]
    pub fn done(&mut self, count: u64) -> bool {
        self.operations += count;
        match self.deadline {
            None => self.operations > self.operations_max,
            Some(_) if self.operations < self.next_check => false,
            Some(deadline) => {
                // No division for each operation: it would take as long as some operations.
                self.next_check = (self.operations / self.check_every + 1) * self.check_every;
                self.clock.monotonic() >= deadline
            }
        }
    }
}
