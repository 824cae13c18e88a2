//! The database as tasks use it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use drumlin::{
    ColumnFamily, Db, Env, ErrorKind, ReadOptions, Result, SeqNo, WriteBatch, WriteOptions,
};

use crate::family::AsyncFamily;
use crate::slot::{Waiting, slot};
use crate::threads::Threads;

/// How an [`AsyncDb`] works.
#[derive(Clone, Debug)]
pub struct AsyncOptions {
    /// Threads that read from the disk, each many keys at a time. Default: one for each core.
    pub readers: usize,
    /// Where threads are started.
    pub env: Env,
}

impl Default for AsyncOptions {
    fn default() -> Self {
        Self {
            readers: drumlin::machine::cores_available(),
            env: Env::system(),
        }
    }
}

/// A database for tasks. Clones share everything; any task, of any runtime, may use them.
///
/// Its threads end after the last clone and the last family of it. The [`Db`] may be used beside it.
#[derive(Clone, Debug)]
pub struct AsyncDb {
    threads: Arc<Threads>,
}

impl AsyncDb {
    /// Serves `db` to tasks.
    ///
    /// # Errors
    /// `Io`, when the system has no more threads.
    pub fn over(db: Db) -> Result<Self> {
        Self::with_options(db, &AsyncOptions::default())
    }

    /// As [`AsyncDb::over`].
    ///
    /// # Errors
    /// As [`AsyncDb::over`].
    pub fn with_options(db: Db, options: &AsyncOptions) -> Result<Self> {
        let threads = Arc::new(Threads::start(db, options)?);
        Ok(Self { threads })
    }

    /// The database itself, whose calls block.
    pub fn db(&self) -> &Db {
        self.threads.db()
    }

    /// The default family.
    pub fn default_family(&self) -> AsyncFamily {
        self.family(self.db().default_family())
    }

    /// `family` for tasks.
    pub fn family(&self, family: &ColumnFamily) -> AsyncFamily {
        let threads = Arc::clone(&self.threads);
        AsyncFamily::new(threads, family.clone(), ReadOptions::default())
    }

    /// Writes `batch`, all or nothing. The future's errors are [`Db::write`]'s.
    ///
    /// With `sync` the future ends when the batch outlives a power cut; all that wait share one sync.
    pub fn write(&self, batch: WriteBatch, options: WriteOptions) -> Write<'_> {
        Write::new(&self.threads, Ok(batch), options)
    }

    /// Runs `call` on a thread where it may block, one call after the other: flushes, compactions, families, backups.
    ///
    /// The future ends with `Aborted` if the call panics.
    pub fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> Run<T> {
        Run {
            threads: Arc::clone(&self.threads),
            call: Some(Box::new(call)),
            waiting: None,
        }
    }

    /// Flushes what only memtables hold and releases the directory. Other clones are closed with it.
    pub fn close(self) -> Close {
        self.run(|db| db.clone().close())
    }
}

/// A write: [`AsyncDb::write`]. Gives the batch's last sequence number.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Write<'a> {
    threads: &'a Arc<Threads>,
    batch: Option<Result<WriteBatch>>,
    options: WriteOptions,
    waiting: Option<Waiting<Result<SeqNo>>>,
}

impl<'a> Write<'a> {
    pub(crate) fn new(
        threads: &'a Arc<Threads>,
        batch: Result<WriteBatch>,
        options: WriteOptions,
    ) -> Self {
        Self {
            threads,
            batch: Some(batch),
            options,
            waiting: None,
        }
    }

    /// The same write, ended when it outlives a power cut.
    pub fn synced(mut self) -> Self {
        self.options.sync = Some(true);
        self
    }
}

impl Future for Write<'_> {
    type Output = Result<SeqNo>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(batch) = self.batch.take() {
            let mut batch = batch?;
            let db = self.threads.db();
            let is_synced = self.options.sync.unwrap_or_else(|| db.syncs_writes());
            if !is_synced {
                let options = WriteOptions {
                    no_stall: true,
                    ..self.options
                };
                match db.commit(&mut batch, &options) {
                    Err(error) if error.kind() == ErrorKind::Busy && !self.options.no_stall => {}
                    written => return Poll::Ready(written),
                }
            }
            self.waiting = Some(self.threads.give_write(batch, self.options));
        }
        match &self.waiting {
            Some(waiting) => waiting.poll(context).map(Result::flatten),
            None => Poll::Pending,
        }
    }
}

type BoxedCall<T> = Box<dyn FnOnce(&Db) -> Result<T> + Send>;

/// A call on a thread where it may block: [`AsyncDb::run`].
#[must_use = "futures do nothing unless polled"]
pub struct Run<T> {
    threads: Arc<Threads>,
    call: Option<BoxedCall<T>>,
    waiting: Option<Waiting<Result<T>>>,
}

/// The end of a database: [`AsyncDb::close`].
pub type Close = Run<()>;

impl<T> std::fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Run({:?})", self.threads)
    }
}

impl<T: Send + 'static> Future for Run<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(call) = self.call.take() {
            let (filling, waiting) = slot();
            self.waiting = Some(waiting);
            self.threads
                .give_call(Box::new(move |db| filling.fill(call(db))));
        }
        match &self.waiting {
            Some(waiting) => waiting.poll(context).map(Result::flatten),
            None => Poll::Pending,
        }
    }
}
