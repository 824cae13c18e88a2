//! All data of one moment on its way to a replica.
//!
//! A thread reads the moment and hands the bytes of an RDB file to the loop, some at a time. A replica that can not take data
//! of an unknown length gets it from a file, whose length is known.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin::{Error, ErrorKind, Result, View};
use drumlin_fs::net::Waker;
use drumlin_fs::{CreateOptions, Env, FileKind, JoinHandle, WritableFile};
use drumlin_rdb::Sink;
use drumlin_redis_store::Store;
use parking_lot::{Condvar, Mutex};

use crate::persist::export;

/// Bytes that wait for the loop.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Bytes of one read of the file.
const READ_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
    outcome: Option<Result<()>>,
    has_ended: bool,
    stops: bool,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    room: Condvar,
    waker: Arc<dyn Waker>,
}

impl Shared {
    fn push(&self, piece: Vec<u8>) -> Result<()> {
        let mut queue = self.queue.lock();
        while queue.bytes >= WAITING_BYTES_MAX && !queue.stops {
            self.room.wait(&mut queue);
        }
        if queue.stops {
            return Err(Error::new(ErrorKind::Aborted, "the replica is gone"));
        }
        queue.bytes += piece.len();
        queue.pieces.push_back(piece);
        drop(queue);
        // The loop looks at the queue after every wait.
        drop(self.waker.wake());
        Ok(())
    }
}

/// What is to be sent, and how.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) env: Env,
    pub(super) store: Arc<Store>,
    pub(super) view: View,
    /// The code of the libraries of functions.
    pub(super) libraries: Vec<Vec<u8>>,
    /// The database that the stream has selected, for a replica whose stream is that of another server.
    pub(super) stream_db: Option<u16>,
    pub(super) form: Form,
}

/// How the replica knows where the data ends.
#[derive(Debug)]
pub(super) enum Form {
    /// By this mark behind it, which it is told before.
    Mark(String),
    /// By its length; the file is for it.
    Length(PathBuf),
}

/// See the module.
pub(crate) struct Dump {
    shared: Arc<Shared>,
    thread: Option<Box<dyn JoinHandle>>,
    has_begun: bool,
}

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Dump").field(&self.has_begun).finish()
    }
}

impl Dump {
    /// Begins to read.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub(super) fn begin(order: Order, waker: Arc<dyn Waker>) -> Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::default()),
            room: Condvar::new(),
            waker,
        });
        let (own, spawner) = (Arc::clone(&shared), Arc::clone(&order.env.spawner));
        let run = move || {
            let outcome = order.carry_out(&own);
            let mut queue = own.queue.lock();
            queue.outcome = Some(outcome);
            queue.has_ended = true;
            drop(queue);
            drop(own.waker.wake());
        };
        let thread = spawner.spawn("redis-dump", Box::new(run))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            has_begun: false,
        })
    }

    /// Whether any of it was sent.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Has the thread end, and does not wait for that; whether it has ended.
    pub(super) fn stop(&self) -> bool {
        let mut queue = self.shared.queue.lock();
        queue.stops = true;
        self.shared.room.notify_all();
        queue.has_ended
    }

    /// Appends what is there to `out`; whether that is the end of it.
    ///
    /// # Errors
    /// Of the thread.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let mut queue = self.shared.queue.lock();
        if let Some(piece) = queue.pieces.pop_front() {
            queue.bytes -= piece.len();
            self.shared.room.notify_all();
            out.extend_from_slice(&piece);
            self.has_begun = true;
        }
        if !queue.pieces.is_empty() {
            return Ok(false);
        }
        match queue.outcome.take() {
            Some(outcome) => outcome.map(|()| true),
            None => Ok(false),
        }
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // It ends with its next piece. A panic in it has lost nothing but this data.
            drop(thread.join());
        }
    }
}

/// The bytes of an RDB file, straight to the loop.
struct ToLoop<'s>(&'s Shared);

impl Sink for ToLoop<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.push(bytes.to_vec())
    }
}

/// The same into a file, unless nobody waits for it any more.
struct ToFile<'s>(&'s Shared, Box<dyn WritableFile>);

impl Sink for ToFile<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match self.0.queue.lock().stops {
            true => Err(Error::new(ErrorKind::Aborted, "the replica is gone")),
            false => self.1.append(bytes),
        }
    }
}

impl Order {
    fn carry_out(&self, shared: &Shared) -> Result<()> {
        match &self.form {
            Form::Mark(mark) => {
                shared.push(format!("$EOF:{mark}\r\n").into_bytes())?;
                self.write(ToLoop(shared))?;
                shared.push(mark.clone().into_bytes())
            }
            Form::Length(path) => {
                let sent = self.by_file(shared, path);
                // Of no use any more. The next one replaces it.
                drop(self.env.files.remove(path));
                sent
            }
        }
    }

    fn write<S: Sink>(&self, sink: S) -> Result<S> {
        let moment = export::Source {
            store: &self.store,
            view: &self.view,
            libraries: &self.libraries,
            stream_db: self.stream_db,
        };
        export::write_to(&moment, &self.env, sink).map(|(sink, _)| sink)
    }

    fn by_file(&self, shared: &Shared, path: &std::path::Path) -> Result<()> {
        let files = &self.env.files;
        let file = files.create(path, CreateOptions::new(FileKind::Other))?;
        let ToFile(_, file) = self.write(ToFile(shared, file))?;
        file.close()?;
        let file = files.open(path)?;
        shared.push(format!("${}\r\n", file.size()).into_bytes())?;
        let (mut at, size) = (0, file.size());
        while at < size {
            let mut piece = vec![0; READ_BYTES];
            let read = file.read_at(at, &mut piece)?;
            if read == 0 {
                return Err(Error::new(ErrorKind::Io, "the file of the data was cut"));
            }
            piece.truncate(read);
            at += read as u64;
            shared.push(piece)?;
        }
        Ok(())
    }
}
