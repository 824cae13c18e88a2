//! A family as tasks use it.

use std::fmt;
use std::future::Future;
use std::ops::{Bound, RangeBounds};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use drumlin::{ColumnFamily, PinnedSlice, ReadOptions, Result, Snapshot, WriteBatch, WriteOptions};

use crate::db::Write;
use crate::slot::{Waiting, slot};
use crate::threads::{Read, Threads, in_memory, is_on_disk};
use crate::walk::Walk;

/// What is read, and as of when.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) family: ColumnFamily,
    pub(crate) in_memory: ReadOptions,
    pub(crate) from_disk: ReadOptions,
}

/// A family, read at the present or at a moment. Clones share everything; any task may use them.
#[derive(Clone)]
pub struct AsyncFamily {
    pub(crate) threads: Arc<Threads>,
    pub(crate) source: Arc<Source>,
}

impl fmt::Debug for AsyncFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsyncFamily({})", self.source.family.name())
    }
}

impl AsyncFamily {
    pub(crate) fn new(threads: Arc<Threads>, family: ColumnFamily, options: ReadOptions) -> Self {
        let source = Arc::new(Source {
            family,
            in_memory: in_memory(&options),
            from_disk: options,
        });
        Self { threads, source }
    }

    /// The family.
    pub fn family(&self) -> &ColumnFamily {
        &self.source.family
    }

    /// The family as of `snapshot`. Writes are of the present.
    pub fn as_of(&self, snapshot: Snapshot) -> Self {
        let options = ReadOptions {
            snapshot: Some(snapshot),
            ..self.source.from_disk.clone()
        };
        Self::new(
            Arc::clone(&self.threads),
            self.source.family.clone(),
            options,
        )
    }

    /// The value of `key`, pinned where it lies.
    ///
    /// The future's errors are [`drumlin::Db::get_cf`]'s.
    pub fn get<K: AsRef<[u8]> + Unpin>(&self, key: K) -> Get<'_, K> {
        Get {
            family: self,
            key,
            waiting: None,
        }
    }

    /// The values of `keys`, in their order. What memory does not have is read together.
    ///
    /// The future's errors are [`drumlin::Db::get_cf`]'s: the first one of a key.
    pub fn get_many<K: AsRef<[u8]> + Unpin>(&self, keys: Vec<K>) -> GetMany<'_, K> {
        GetMany {
            family: self,
            keys,
            found: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// The entries with keys in `range`, as they are now.
    pub fn walk<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Walk {
        self.walk_towards(range, false)
    }

    /// As [`AsyncFamily::walk`], from the last key to the first.
    pub fn walk_back<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Walk {
        self.walk_towards(range, true)
    }

    fn walk_towards<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>, backward: bool) -> Walk {
        let lower_bound = match range.start_bound() {
            Bound::Included(key) => Some(key.as_ref().to_vec()),
            Bound::Excluded(key) => Some(behind(key.as_ref())),
            Bound::Unbounded => None,
        };
        let upper_bound = match range.end_bound() {
            Bound::Included(key) => Some(behind(key.as_ref())),
            Bound::Excluded(key) => Some(key.as_ref().to_vec()),
            Bound::Unbounded => None,
        };
        let options = &self.source.from_disk;
        let snapshot = options.snapshot.clone();
        let snapshot = snapshot.unwrap_or_else(|| self.threads.db().snapshot());
        let options = ReadOptions {
            snapshot: Some(snapshot),
            lower_bound,
            upper_bound,
            ..options.clone()
        };
        let family = self.source.family.clone();
        Walk::new(Arc::clone(&self.threads), family, options, backward)
    }

    /// Sets `key` to `value`. It outlives the process; for a power cut, see [`AsyncFamily::write`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Write<'_> {
        let mut batch = WriteBatch::new();
        let made = batch.put_cf(self.family().id(), key.as_ref(), value.as_ref());
        Write::new(&self.threads, made.map(|()| batch), WriteOptions::default())
    }

    /// Removes `key`.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Write<'_> {
        let mut batch = WriteBatch::new();
        let made = batch.delete_cf(self.family().id(), key.as_ref());
        Write::new(&self.threads, made.map(|()| batch), WriteOptions::default())
    }

    /// Adds `operand` to `key` for the family's merge operator.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Write<'_> {
        let mut batch = WriteBatch::new();
        let made = batch.merge_cf(self.family().id(), key.as_ref(), operand.as_ref());
        Write::new(&self.threads, made.map(|()| batch), WriteOptions::default())
    }
}

/// The first key behind `key`.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// A read of one key: [`AsyncFamily::get`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Get<'a, K> {
    family: &'a AsyncFamily,
    key: K,
    waiting: Option<Waiting<Result<Option<PinnedSlice>>>>,
}

impl<K: AsRef<[u8]> + Unpin> Future for Get<'_, K> {
    type Output = Result<Option<PinnedSlice>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(waiting) = &self.waiting {
            return waiting.poll(context).map(Result::flatten);
        }
        let AsyncFamily { threads, source } = self.family;
        let key = self.key.as_ref();
        let found = threads.db().get_cf(&source.family, key, &source.in_memory);
        if !is_on_disk(&found) {
            return Poll::Ready(found);
        }
        let (read, waiting) = asked(source, key, context);
        threads.give_reads([read]);
        self.waiting = Some(waiting);
        Poll::Pending
    }
}

/// A read for the threads, and where the task waits for it.
fn asked(
    source: &Arc<Source>,
    key: &[u8],
    context: &Context<'_>,
) -> (Read, Waiting<Result<Option<PinnedSlice>>>) {
    let (filling, waiting) = slot();
    // Nothing is there yet: this leaves the waker.
    let polled = waiting.poll(context);
    debug_assert!(polled.is_pending(), "nobody has filled it");
    let read = Read {
        source: Arc::clone(source),
        key: key.to_vec(),
        filling,
    };
    (read, waiting)
}

/// A read of several keys: [`AsyncFamily::get_many`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct GetMany<'a, K> {
    family: &'a AsyncFamily,
    keys: Vec<K>,
    found: Vec<Option<PinnedSlice>>,
    /// Those that are not there yet, with their places in `found`.
    waiting: Vec<(usize, Waiting<Result<Option<PinnedSlice>>>)>,
}

impl<K: AsRef<[u8]> + Unpin> GetMany<'_, K> {
    /// Looks in memory for all, and asks for what is not there.
    fn begin(&mut self, context: &Context<'_>) -> Result<()> {
        let AsyncFamily { threads, source } = self.family;
        let keys = std::mem::take(&mut self.keys);
        let found = threads
            .db()
            .multi_get_cf(&source.family, &keys, &source.in_memory);
        let mut reads = Vec::new();
        for (place, (key, found)) in keys.iter().zip(found).enumerate() {
            if is_on_disk(&found) {
                let (read, waiting) = asked(source, key.as_ref(), context);
                reads.push(read);
                self.waiting.push((place, waiting));
                self.found.push(None);
            } else {
                self.found.push(found?);
            }
        }
        threads.give_reads(reads);
        Ok(())
    }
}

impl<K: AsRef<[u8]> + Unpin> Future for GetMany<'_, K> {
    type Output = Result<Vec<Option<PinnedSlice>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if !this.keys.is_empty() {
            this.begin(context)?;
        }
        while let Some((place, waiting)) = this.waiting.last() {
            let Poll::Ready(found) = waiting.poll(context) else {
                return Poll::Pending;
            };
            this.found[*place] = found.flatten()?;
            this.waiting.pop();
        }
        Poll::Ready(Ok(std::mem::take(&mut this.found)))
    }
}
