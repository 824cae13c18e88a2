//! The threads that answer messages, and one that syncs the log ten times a second.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{ErrorKind, Result};
use drumlin_base::sync::atomic::Ordering;
use drumlin_base::sync::{Condvar, Mutex};
use drumlin_fs::JoinHandle;
use drumlin_fs::net::Waker;

use crate::answer::{Answer, answer, answer_waited};
use crate::shared::Shared;

use super::connection::Client;

/// Threads that answer. Each message may wait for the disk.
const THREADS: usize = 8;
/// How long a write may be only in the log's mapping, which outlives the process and not the machine.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// A message that is to be answered.
#[derive(Debug)]
pub(crate) struct Job {
    /// The number of its connection.
    pub(crate) connection: u64,
    /// Who takes the reply.
    pub(crate) client: Arc<Mutex<Client>>,
    /// It.
    pub(crate) message: Vec<u8>,
    /// Whether it has waited, and is not made to wait again.
    pub(crate) has_waited: bool,
}

/// What an answer leaves to the loop.
#[derive(Debug)]
pub(crate) enum Left {
    /// The client has its reply; not all of it is sent, or something else can be done for it.
    Rest,
    /// The message is to be answered again after a pause; the bytes are sent before it.
    Wait {
        reply: Vec<u8>,
        message: Vec<u8>,
        pause: Duration,
    },
    /// The connection is to be closed.
    Close,
}

#[derive(Debug, Default)]
struct Queues {
    jobs: VecDeque<Job>,
    done: VecDeque<(u64, Left)>,
    ends: bool,
    /// Why the log could not be synced.
    failed: Option<drumlin::Error>,
}

#[derive(Debug)]
struct Pool {
    shared: Arc<Shared>,
    queues: Mutex<Queues>,
    work: Condvar,
    /// Of the thread that syncs.
    ends: Condvar,
    waker: Arc<dyn Waker>,
}

/// See the module. The threads end after it.
#[derive(Debug)]
pub(crate) struct Workers {
    pool: Arc<Pool>,
    threads: Vec<Box<dyn JoinHandle>>,
}

impl Workers {
    /// Starts the threads; `waker` ends the loop's wait when an answer is there.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub(crate) fn start(shared: Arc<Shared>, waker: Arc<dyn Waker>) -> Result<Self> {
        let spawner = Arc::clone(&shared.env.spawner);
        let pool = Arc::new(Pool {
            shared,
            queues: Mutex::default(),
            work: Condvar::new(),
            ends: Condvar::new(),
            waker,
        });
        let mut workers = Self {
            pool: Arc::clone(&pool),
            threads: Vec::new(),
        };
        for _ in 0..THREADS {
            let pool = Arc::clone(&pool);
            workers
                .threads
                .push(spawner.spawn("mongo-answer", Box::new(move || pool.answer()))?);
        }
        workers
            .threads
            .push(spawner.spawn("mongo-sync", Box::new(move || pool.sync()))?);
        let pool = Arc::clone(&workers.pool);
        workers
            .threads
            .push(spawner.spawn("mongo-expiry", Box::new(move || pool.expire()))?);
        Ok(workers)
    }

    /// Has a message answered.
    pub(crate) fn give(&self, job: Job) {
        self.pool.queues.lock().jobs.push_back(job);
        self.pool.work.notify_one();
    }

    /// What the answers since then leave to do, and the failure that ends the server.
    pub(crate) fn take_done(&self) -> (VecDeque<(u64, Left)>, Option<drumlin::Error>) {
        let mut queues = self.pool.queues.lock();
        (std::mem::take(&mut queues.done), queues.failed.take())
    }

    /// Ends the threads once all messages are answered.
    ///
    /// # Errors
    /// A panic of one of them.
    pub(crate) fn end(mut self) -> Result<()> {
        let threads = std::mem::take(&mut self.threads);
        drop(self);
        threads.into_iter().try_for_each(|thread| thread.join())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.pool.queues.lock().ends = true;
        self.pool.work.notify_all();
        self.pool.ends.notify_all();
    }
}

impl Pool {
    fn answer(&self) {
        loop {
            let mut queues = self.queues.lock();
            let job = loop {
                if let Some(job) = queues.jobs.pop_front() {
                    break job;
                }
                if queues.ends {
                    return;
                }
                queues = self.work.wait(queues);
            };
            drop(queues);
            if let Some(left) = self.answer_one(&job) {
                self.queues.lock().done.push_back((job.connection, left));
                // The loop looks at the queue after every wait: a wake that fails costs it until the next one.
                drop(self.waker.wake());
            }
        }
    }

    /// Answers a message, and sends the reply: the loop is woken only where that leaves it something to do.
    fn answer_one(&self, job: &Job) -> Option<Left> {
        let answer = match job.has_waited {
            true => answer_waited(&self.shared, job.connection, &job.message),
            false => answer(&self.shared, job.connection, &job.message),
        };
        match answer {
            Answer::Send(reply) => {
                self.shared.counters.bytes_out.add(reply.len() as u64);
                let is_all = job.client.lock().reply(reply);
                (!is_all).then_some(Left::Rest)
            }
            Answer::Wait {
                reply,
                message,
                pause,
            } => Some(Left::Wait {
                reply,
                message,
                pause,
            }),
            Answer::Close(_) => Some(Left::Close),
        }
    }

    /// Removes documents whose time is over, again and again.
    fn expire(&self) {
        let mut last = self.shared.env.clock.monotonic();
        let mut queues = self.queues.lock();
        while !queues.ends {
            let now = self.shared.env.clock.monotonic();
            let pause = Duration::from_secs(self.shared.expiry_seconds.load(Ordering::Relaxed));
            if now.saturating_sub(last) >= pause {
                drop(queues);
                // What could not be removed now is there the next time; damage is told to who reads it.
                let removed = self.shared.store.expire(self.shared.now_ms()).unwrap_or(0);
                self.shared.expired.fetch_add(removed, Ordering::Relaxed);
                last = self.shared.env.clock.monotonic();
                queues = self.queues.lock();
            }
            if !queues.ends {
                queues = self
                    .ends
                    .wait_for(queues, Duration::from_secs(1).min(pause));
            }
        }
    }

    fn sync(&self) {
        let mut queues = self.queues.lock();
        while !queues.ends {
            drop(queues);
            let db = self.shared.store().db();
            let outcome = match db.durable_seqno() < db.latest_seqno() {
                true => db.sync_wal().map(|_| ()),
                false => Ok(()),
            };
            queues = self.queues.lock();
            match outcome {
                Ok(()) => {}
                // Without room nothing is lost: writes are refused, and it is tried again.
                Err(error) if error.kind() == ErrorKind::NoSpace => {}
                Err(error) => {
                    queues.failed = Some(error);
                    drop(self.waker.wake());
                    return;
                }
            }
            if !queues.ends {
                queues = self.ends.wait_for(queues, SYNC_EVERY);
            }
        }
    }
}
