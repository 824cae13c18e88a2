//! The threads beside the loop: one that writes what the engine would not take at once, one that syncs, and some that
//! read from the disk.

use std::collections::VecDeque;
use std::sync::Arc;

use drumlin::{Result, SeqNo, WriteBatch, WriteOptions};
use drumlin_base::sync::{Condvar, Mutex};
use drumlin_fs::net::Waker;
use drumlin_fs::{Clock, Env, JoinHandle};
use drumlin_redis_store::Store;

use crate::cold::{ColdDone, ColdJob, ColdStage};
use crate::metrics::figures::{Counts, Figures};
use crate::table::Table;

/// Threads that read from the disk.
const READERS: usize = 4;
/// Most clients whose commands are run in one batch: as many reads as go to the disk together. The replies of a batch come
/// with its last one.
const BATCH_MAX: usize = 64;

/// Work for the threads.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write this batch, however long that takes.
    Write(WriteBatch),
    /// Compact all families.
    Compact,
    /// Sync the WAL.
    Sync,
    /// Run these commands, which read from the disk.
    Read(Vec<ColdJob>),
    /// Ask the engine how it stands.
    Look(Counts),
}

/// What the threads tell the loop.
#[derive(Debug)]
pub(crate) enum Done {
    Written(WriteBatch, Result<SeqNo>),
    Synced(Result<SeqNo>),
    Compacted(Result<()>),
    Read(Vec<ColdDone>),
    Looked(Figures),
}

/// Who does which work.
#[derive(Clone, Copy, Debug)]
enum Lane {
    Writer,
    Syncer,
    Reader,
    Compactor,
}

#[derive(Debug, Default)]
struct Queues {
    /// Of the lanes.
    jobs: [VecDeque<Job>; 4],
    /// Work of the readers which they share out among themselves.
    reads: VecDeque<ColdJob>,
    done: VecDeque<Done>,
    ends: bool,
}

impl Queues {
    fn next(&mut self, lane: Lane) -> Option<Job> {
        let job = self
            .jobs
            .get_mut(lane as usize)
            .and_then(VecDeque::pop_front);
        job.or_else(|| match lane {
            Lane::Reader if !self.reads.is_empty() => {
                let share = self.reads.len().div_ceil(READERS).min(BATCH_MAX);
                Some(Job::Read(self.reads.drain(..share).collect()))
            }
            _ => None,
        })
    }
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    store: Arc<Store>,
    table: Arc<Table>,
    queues: Mutex<Queues>,
    /// One for each lane.
    work: [Condvar; 4],
    waker: Arc<dyn Waker>,
}

/// See the module. The threads end after it.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads: Vec<Box<dyn JoinHandle>>,
}

impl Workers {
    /// Starts the threads; `waker` ends the loop's wait when there is something for it.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub(crate) fn start(
        env: &Env,
        store: Arc<Store>,
        table: Arc<Table>,
        waker: Arc<dyn Waker>,
    ) -> Result<Self> {
        let queues = Mutex::new(Queues::default());
        let work = std::array::from_fn(|_| Condvar::new());
        let shared = Arc::new(Shared {
            clock: Arc::clone(&env.clock),
            store,
            table,
            queues,
            work,
            waker,
        });
        let mut threads = Vec::new();
        let lanes = [
            (Lane::Writer, "redis-write"),
            (Lane::Syncer, "redis-sync"),
            (Lane::Compactor, "redis-compact"),
        ];
        let readers = std::iter::repeat_n((Lane::Reader, "redis-read"), READERS);
        for (lane, name) in lanes.into_iter().chain(readers) {
            let shared = Arc::clone(&shared);
            threads.push(
                env.spawner
                    .spawn(name, Box::new(move || shared.work(lane)))?,
            );
        }
        Ok(Self { shared, threads })
    }

    /// Gives the threads some work.
    pub(crate) fn give(&self, job: Job) {
        let mut queues = self.shared.queues.lock();
        let (lane, job) = match job {
            Job::Read(jobs) => {
                queues.reads.extend(jobs);
                (Lane::Reader, None)
            }
            Job::Write(_) => (Lane::Writer, Some(job)),
            Job::Sync => (Lane::Syncer, Some(job)),
            Job::Look(_) => (Lane::Reader, Some(job)),
            Job::Compact => (Lane::Compactor, Some(job)),
        };
        if let Some(queue) = queues.jobs.get_mut(lane as usize) {
            queue.extend(job);
        }
        drop(queues);
        self.shared.work_of(lane).notify_all();
    }

    /// What is done.
    pub(crate) fn take_done(&self) -> VecDeque<Done> {
        std::mem::take(&mut self.shared.queues.lock().done)
    }

    /// Ends the threads once their queues are empty.
    pub(crate) fn end(mut self) -> Result<()> {
        let threads = std::mem::take(&mut self.threads);
        drop(self);
        threads.into_iter().try_for_each(|thread| thread.join())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.queues.lock().ends = true;
        self.shared.work.iter().for_each(Condvar::notify_all);
    }
}

impl Shared {
    fn work_of(&self, lane: Lane) -> &Condvar {
        let [writer, syncer, reader, compactor] = &self.work;
        match lane {
            Lane::Writer => writer,
            Lane::Syncer => syncer,
            Lane::Reader => reader,
            Lane::Compactor => compactor,
        }
    }

    fn work(&self, lane: Lane) {
        loop {
            let mut queues = self.queues.lock();
            let job = loop {
                if let Some(job) = queues.next(lane) {
                    break job;
                }
                if queues.ends {
                    return;
                }
                queues = self.work_of(lane).wait(queues);
            };
            drop(queues);
            let done = self.carry_out(job);
            self.queues.lock().done.push_back(done);
            // The loop looks at the queue after every wait: a wake that fails costs it until the next one.
            drop(self.waker.wake());
        }
    }

    fn carry_out(&self, job: Job) -> Done {
        match job {
            Job::Write(mut batch) => {
                let outcome = self.store.write(&mut batch, &WriteOptions::default());
                Done::Written(batch, outcome)
            }
            Job::Sync => {
                let reserved = self.store.reserve_cids();
                Done::Synced(reserved.and_then(|()| self.store.db().sync_wal()))
            }
            Job::Compact => Done::Compacted(self.store.compact()),
            Job::Read(jobs) => {
                let stage = ColdStage {
                    clock: &*self.clock,
                    store: &self.store,
                    table: &self.table,
                };
                Done::Read(stage.run(jobs))
            }
            Job::Look(counts) => Done::Looked(Figures::of(&self.store, counts)),
        }
    }
}
