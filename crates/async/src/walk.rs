//! Walks of tasks.
//!
//! Entries are taken in chunks: from memory by the task itself, and from where memory ends by a thread, a chunk at a time.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use drumlin::{ColumnFamily, Db, DbIterator, ErrorKind, PinnedSlice, ReadOptions, Result};

use crate::slot::{Waiting, slot};
use crate::threads::{Threads, in_memory};

/// Most entries of a chunk, after the first of one, and bytes of keys and values that end it.
const ENTRIES_MAX: usize = 256;
const BYTES_MAX: usize = 64 << 10;

type Entry = (Vec<u8>, PinnedSlice);
/// A cursor that did its work, and what it found; none at the end.
type Filled = (Result<Option<VecDeque<Entry>>>, Box<Cursor>);

/// The entries of a range, as they were when the walk began. It is at no entry yet.
pub struct Walk {
    threads: Arc<Threads>,
    chunk: VecDeque<Entry>,
    most: usize,
    stage: Stage,
}

enum Stage {
    Here(Box<Cursor>),
    WithThread(Waiting<Filled>),
    /// At the end, or after an error.
    Over,
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Walk({:?})", self.threads)
    }
}

impl Walk {
    pub(crate) fn new(
        threads: Arc<Threads>,
        family: ColumnFamily,
        options: ReadOptions,
        backward: bool,
    ) -> Self {
        let cursor = Cursor {
            family,
            options,
            backward,
            cursor: None,
            is_on_disk: false,
            last: None,
            is_over: false,
        };
        Self {
            threads,
            chunk: VecDeque::new(),
            most: 1,
            stage: Stage::Here(Box::new(cursor)),
        }
    }

    /// The next entry; none at the end, and after an error.
    ///
    /// A call that is dropped loses no entry.
    ///
    /// # Errors
    /// `Io` and `Corruption`.
    pub async fn next(&mut self) -> Result<Option<Entry>> {
        if self.chunk.is_empty() {
            poll_fn(|context| self.poll_chunk(context)).await?;
        }
        Ok(self.chunk.pop_front())
    }

    /// Takes the next chunk; an empty one at the end.
    fn poll_chunk(&mut self, context: &Context<'_>) -> Poll<Result<()>> {
        let filled = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return Poll::Ready(Ok(())),
            Stage::Here(mut cursor) if !cursor.is_on_disk => {
                let filled = cursor.fill(self.threads.db(), self.most);
                if matches!(&filled, Err(error) if error.kind() == ErrorKind::Incomplete) {
                    cursor.goes_to_disk();
                    return self.poll_thread(cursor, context);
                }
                (filled, cursor)
            }
            Stage::Here(cursor) => return self.poll_thread(cursor, context),
            Stage::WithThread(waiting) => match waiting.poll(context) {
                Poll::Ready(filled) => filled?,
                Poll::Pending => {
                    self.stage = Stage::WithThread(waiting);
                    return Poll::Pending;
                }
            },
        };
        let (found, cursor) = filled;
        self.most = ENTRIES_MAX;
        if let Some(chunk) = found? {
            self.chunk = chunk;
            self.stage = Stage::Here(cursor);
        }
        Poll::Ready(Ok(()))
    }

    /// Has a thread fill the next chunk.
    fn poll_thread(&mut self, mut cursor: Box<Cursor>, context: &Context<'_>) -> Poll<Result<()>> {
        let (filling, waiting) = slot();
        let polled = waiting.poll(context);
        debug_assert!(polled.is_pending(), "nobody has filled it");
        let most = self.most;
        self.threads.give_chunk(Box::new(move |db| {
            if !filling.is_abandoned() {
                let found = cursor.fill(db, most);
                filling.fill((found, cursor));
            }
        }));
        self.stage = Stage::WithThread(waiting);
        Poll::Pending
    }
}

/// Where a walk is, on one thread at a time.
struct Cursor {
    family: ColumnFamily,
    options: ReadOptions,
    backward: bool,
    /// At the entry that was given last.
    cursor: Option<DbIterator>,
    is_on_disk: bool,
    /// The key that was given last, for a cursor that goes on from there.
    last: Option<Vec<u8>>,
    is_over: bool,
}

impl Cursor {
    /// From here on with all of the disk.
    fn goes_to_disk(&mut self) {
        self.is_on_disk = true;
        self.cursor = None;
    }

    /// The next entries; none at the end.
    ///
    /// # Errors
    /// `Incomplete`, if memory has not the first of them: the cursor stays where it is.
    fn fill(&mut self, db: &Db, most: usize) -> Result<Option<VecDeque<Entry>>> {
        let (mut chunk, mut bytes) = (VecDeque::new(), 0);
        while chunk.len() < most && bytes < BYTES_MAX && !self.is_over {
            match self.step(db) {
                Ok(None) => self.is_over = true,
                Ok(Some((key, value))) => {
                    bytes += key.len() + value.len();
                    self.last = Some(key.clone());
                    chunk.push_back((key, value));
                }
                Err(error) => {
                    self.cursor = None;
                    match error.kind() {
                        ErrorKind::Incomplete if !chunk.is_empty() => break,
                        _ => return Err(error),
                    }
                }
            }
        }
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    fn step(&mut self, db: &Db) -> Result<Option<Entry>> {
        let backward = self.backward;
        let cursor = match &mut self.cursor {
            Some(cursor) => {
                advance(cursor, backward);
                cursor
            }
            none => {
                let options = match self.is_on_disk {
                    true => self.options.clone(),
                    false => in_memory(&self.options),
                };
                let mut cursor = db.iter_cf(&self.family, options);
                match (&self.last, backward) {
                    (None, false) => cursor.seek_to_first(),
                    (None, true) => cursor.seek_to_last(),
                    (Some(key), false) => cursor.seek(key),
                    (Some(key), true) => cursor.seek_for_prev(key),
                }
                if cursor.valid() && self.last.as_deref() == Some(cursor.key()) {
                    advance(&mut cursor, backward);
                }
                none.insert(cursor)
            }
        };
        if !cursor.valid() {
            return cursor.status().map(|()| None);
        }
        let value = cursor.pin_value();
        // Of a value in a blob file.
        cursor.status()?;
        Ok(Some((cursor.key().to_vec(), value)))
    }
}

fn advance(cursor: &mut DbIterator, backward: bool) {
    match backward {
        false => cursor.next(),
        true => cursor.prev(),
    }
}
