//! The threads beside the tasks: readers, one that writes, and one for what blocks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use drumlin::{Db, ErrorKind, PinnedSlice, ReadOptions, Result, SeqNo, WriteBatch, WriteOptions};
use drumlin_base::sync::{Condvar, Mutex};

use crate::db::AsyncOptions;
use crate::family::Source;
use crate::slot::{Filling, Waiting, slot};

/// Most reads of one batch.
const READS_MAX: usize = 64;
/// A batch that other writes are joined to is smaller.
const JOINED_BYTES: usize = 1 << 20;

/// A key that a task waits for.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) source: Arc<Source>,
    pub(crate) key: Vec<u8>,
    pub(crate) filling: Filling<Result<Option<PinnedSlice>>>,
}

/// A batch that a task waits for.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) batch: WriteBatch,
    pub(crate) options: WriteOptions,
    pub(crate) filling: Filling<Result<SeqNo>>,
}

/// A call that blocks.
pub(crate) type Call = Box<dyn FnOnce(&Db) + Send>;

#[derive(Default)]
struct Queues {
    reads: VecDeque<Read>,
    /// Of walks.
    chunks: VecDeque<Call>,
    writes: VecDeque<Writing>,
    calls: VecDeque<Call>,
    ends: bool,
}

struct Shared {
    db: Db,
    readers: usize,
    queues: Mutex<Queues>,
    has_reads: Condvar,
    has_writes: Condvar,
    has_calls: Condvar,
}

/// What a reader does next.
enum Reading {
    Keys(Vec<Read>),
    Chunk(Call),
}

/// The tasks' end of the threads, which go when it does and their queues are empty.
pub(crate) struct Threads(Arc<Shared>);

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({:?})", self.0.db)
    }
}

impl Threads {
    /// # Errors
    /// When the system has no more threads.
    pub(crate) fn start(db: Db, options: &AsyncOptions) -> Result<Self> {
        let readers = options.readers.max(1);
        let threads = Self(Arc::new(Shared {
            db,
            readers,
            queues: Mutex::default(),
            has_reads: Condvar::new(),
            has_writes: Condvar::new(),
            has_calls: Condvar::new(),
        }));
        let spawn = |name, body: fn(&Shared)| {
            let shared = Arc::clone(&threads.0);
            let body = Box::new(move || body(&shared));
            options.env.spawner.spawn(name, body)
        };
        for _ in 0..readers {
            spawn("async-read", Shared::read)?;
        }
        spawn("async-write", Shared::write)?;
        spawn("async-call", Shared::call)?;
        Ok(threads)
    }

    pub(crate) fn db(&self) -> &Db {
        &self.0.db
    }

    pub(crate) fn give_reads(&self, reads: impl IntoIterator<Item = Read>) {
        let waiting = {
            let mut queues = self.0.queues.lock();
            queues.reads.extend(reads);
            queues.reads.len()
        };
        match waiting {
            1 => self.0.has_reads.notify_one(),
            _ => self.0.has_reads.notify_all(),
        }
    }

    pub(crate) fn give_write(
        &self,
        batch: WriteBatch,
        options: WriteOptions,
    ) -> Waiting<Result<SeqNo>> {
        let (filling, waiting) = slot();
        let writing = Writing {
            batch,
            options,
            filling,
        };
        self.0.queues.lock().writes.push_back(writing);
        self.0.has_writes.notify_one();
        waiting
    }

    /// A chunk of a walk.
    pub(crate) fn give_chunk(&self, call: Call) {
        self.0.queues.lock().chunks.push_back(call);
        self.0.has_reads.notify_one();
    }

    pub(crate) fn give_call(&self, call: Call) {
        self.0.queues.lock().calls.push_back(call);
        self.0.has_calls.notify_one();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.queues.lock().ends = true;
        for condition in [&self.0.has_reads, &self.0.has_writes, &self.0.has_calls] {
            condition.notify_all();
        }
    }
}

impl Shared {
    /// What `take` finds in the queues; none at the end.
    fn next<T>(&self, condition: &Condvar, take: impl Fn(&mut Queues) -> Option<T>) -> Option<T> {
        let mut queues = self.queues.lock();
        loop {
            if let Some(taken) = take(&mut queues) {
                return Some(taken);
            }
            if queues.ends {
                return None;
            }
            queues = condition.wait(queues);
        }
    }

    fn read(&self) {
        let next = |queues: &mut Queues| {
            if let Some(chunk) = queues.chunks.pop_front() {
                return Some(Reading::Chunk(chunk));
            }
            // A share for each reader, so that all have work.
            let share = queues.reads.len().div_ceil(self.readers).min(READS_MAX);
            (share > 0).then(|| Reading::Keys(queues.reads.drain(..share).collect()))
        };
        while let Some(reading) = self.next(&self.has_reads, next) {
            survive(|| match reading {
                Reading::Keys(reads) => self.read_keys(reads),
                Reading::Chunk(fill) => fill(&self.db),
            });
        }
    }

    fn read_keys(&self, mut reads: Vec<Read>) {
        reads.retain(|read| !read.filling.is_abandoned());
        let mut found = Vec::with_capacity(reads.len());
        // Those of one family and moment lie together mostly.
        for same in reads.chunk_by(|a, b| Arc::ptr_eq(&a.source, &b.source)) {
            let keys: Vec<_> = same.iter().map(|read| &read.key).collect();
            let source = &same[0].source;
            found.extend(
                self.db
                    .multi_get_cf(&source.family, &keys, &source.from_disk),
            );
        }
        for (read, found) in reads.into_iter().zip(found) {
            read.filling.fill(found);
        }
    }

    fn write(&self) {
        let joined = |queues: &mut Queues| {
            let mut taken = vec![queues.writes.pop_front()?];
            let mut bytes = taken[0].batch.len();
            while let Some(next) = queues.writes.front() {
                bytes += next.batch.len();
                if bytes > JOINED_BYTES || !can_join(taken[0].options, next.options) {
                    break;
                }
                taken.extend(queues.writes.pop_front());
            }
            Some(taken)
        };
        while let Some(writes) = self.next(&self.has_writes, joined) {
            survive(|| self.write_all(writes));
        }
    }

    /// Writes the batches, as one if that works.
    fn write_all(&self, writes: Vec<Writing>) {
        let last = match writes.len() {
            1 => None,
            _ => self.write_as_one(&writes).ok(),
        };
        let mut behind = 0;
        for mut writing in writes.into_iter().rev() {
            let entries = SeqNo::from(writing.batch.count());
            let written = match last {
                Some(last) => Ok(last - behind),
                // Each is told its own error.
                None => self.db.commit(&mut writing.batch, &writing.options),
            };
            behind += entries;
            writing.filling.fill(written);
        }
    }

    fn write_as_one(&self, writes: &[Writing]) -> Result<SeqNo> {
        let mut all = WriteBatch::new();
        for writing in writes {
            all.append(&writing.batch)?;
        }
        self.db.commit(&mut all, &writes[0].options)
    }

    fn call(&self) {
        while let Some(call) = self.next(&self.has_calls, |queues| queues.calls.pop_front()) {
            survive(|| call(&self.db));
        }
    }
}

/// Runs `work`. Who waits for it is told of a panic, of a merge operator say, by what `work` drops.
fn survive(work: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
}

fn can_join(a: WriteOptions, b: WriteOptions) -> bool {
    (a.sync, a.no_wal) == (b.sync, b.no_wal)
}

/// Whether memory alone could not answer.
pub(crate) fn is_on_disk<T>(found: &Result<T>) -> bool {
    matches!(found, Err(error) if error.kind() == ErrorKind::Incomplete)
}

/// `options`, for what memory has.
pub(crate) fn in_memory(options: &ReadOptions) -> ReadOptions {
    ReadOptions {
        tier: drumlin::ReadTier::BlockCache,
        ..options.clone()
    }
}
