//! The threads beside the loop: one that writes what the engine would not take at once, one that syncs, and some that
//! read from the disk.

use std::collections::VecDeque;
use std::sync::Arc;

use drumlin::{Result, SeqNo, WriteBatch, WriteOptions};
use drumlin_base::sync::{Condvar, Mutex};
use drumlin_fs::net::Waker;
use drumlin_fs::{Clock, Env, JoinHandle};
use drumlin_redis_store::{Failure, ReadFrom, Store};
use drumlin_resp::{Protocol, ReplyWriter};

use crate::facts::Flags;
use crate::metrics::figures::{Counts, Figures};
use crate::round::{Round, Stage, run};
use crate::session::{Kept, Session};
use crate::state::Limits;
use crate::table::Table;

/// Threads that read from the disk.
const READERS: usize = 4;

/// Work for the threads.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write this batch, however long that takes.
    Write(WriteBatch),
    /// Compact all families.
    Compact,
    /// Sync the WAL.
    Sync,
    /// Read what these commands need.
    Read(ColdJob),
    /// Ask the engine how it stands.
    Look(Counts),
}

/// Commands of a client that need blocks from the disk.
#[derive(Debug)]
pub(crate) struct ColdJob {
    pub(crate) client: u64,
    pub(crate) kept: Vec<Kept>,
    pub(crate) db: u16,
    pub(crate) protocol: Protocol,
    pub(crate) limits: Limits,
    pub(crate) clock_ms: u64,
    /// Parts of an EXEC or of a script: it is run again whole.
    pub(crate) is_part: bool,
}

/// What the threads tell the loop.
#[derive(Debug)]
pub(crate) enum Done {
    Written(WriteBatch, Result<SeqNo>),
    Synced(Result<SeqNo>),
    Compacted(Result<()>),
    /// The client's command may run again; or its reply, where it only reads.
    Read(u64, Option<Answer>),
    Looked(Figures),
}

/// A command that was answered beside the loop.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) reply: Vec<u8>,
    pub(crate) kept: Kept,
    pub(crate) micros: u64,
    /// The error that the reply is.
    pub(crate) error: Option<String>,
}

#[derive(Debug, Default)]
struct Queues {
    /// Of the writer, the syncer, the readers and the compactor.
    jobs: [VecDeque<Job>; 4],
    done: VecDeque<Done>,
    ends: bool,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    store: Arc<Store>,
    table: Arc<Table>,
    queues: Mutex<Queues>,
    work: Condvar,
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
        let work = Condvar::new();
        let shared = Arc::new(Shared {
            clock: Arc::clone(&env.clock),
            store,
            table,
            queues,
            work,
            waker,
        });
        let mut threads = Vec::new();
        let lanes = [(0, "redis-write"), (1, "redis-sync"), (3, "redis-compact")];
        let readers = std::iter::repeat_n((2, "redis-read"), READERS);
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
        let lane = match &job {
            Job::Write(_) => 0,
            Job::Sync => 1,
            Job::Read(_) | Job::Look(_) => 2,
            Job::Compact => 3,
        };
        let mut queues = self.shared.queues.lock();
        if let Some(queue) = queues.jobs.get_mut(lane) {
            queue.push_back(job);
        }
        self.shared.work.notify_all();
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
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn work(&self, lane: usize) {
        loop {
            let mut queues = self.queues.lock();
            let job = loop {
                if let Some(job) = queues.jobs.get_mut(lane).and_then(VecDeque::pop_front) {
                    break job;
                }
                if queues.ends {
                    return;
                }
                queues = self.work.wait(queues);
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
            Job::Read(job) => Done::Read(job.client, self.read(job)),
            Job::Look(counts) => Done::Looked(Figures::of(&self.store, counts)),
        }
    }

    /// Runs commands beside the loop and throws their changes away: what they read is in memory after that. A single command
    /// that only reads is answered from here, as of a moment between its arrival and its reply.
    fn read(&self, job: ColdJob) -> Option<Answer> {
        let began = self.clock.monotonic();
        let mut error = None;
        let mut round = Round::new(&self.store, job.clock_ms);
        let mut session = Session {
            db: job.db,
            protocol: job.protocol,
            is_authenticated: true,
            ..Session::default()
        };
        let mut reply = ReplyWriter::new(job.protocol);
        for kept in &job.kept {
            let stage = Stage {
                store: &self.store,
                from: ReadFrom::Disk,
                limits: job.limits,
                may_wait: false,
                may_write: false,
                woken_by: None,
                server: None,
            };
            let (handler, args) = (self.table.get(&kept.facts).handler, kept.args.args());
            let outcome = run(handler, args, &mut session, &mut reply, &mut round, stage);
            if let Err(failure) = outcome {
                debug_assert!(!matches!(failure, Failure::Cold), "it may read");
                let text = failure.to_string();
                reply.error(text.as_bytes());
                error = Some(text);
            }
        }
        let only_reads = |kept: &Kept| {
            let flags = kept.facts.flags;
            flags.has(Flags::READONLY) && !flags.has(Flags::BLOCKING) && !flags.may_write()
                || drumlin_base::bug!("redis-write-answered-beside")
        };
        let took = self.clock.monotonic().saturating_sub(began);
        let mut kept = job.kept.into_iter().filter(only_reads);
        let kept = kept.next().filter(|_| !job.is_part)?;
        Some(Answer {
            reply: reply.take(),
            kept,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            error,
        })
    }
}
