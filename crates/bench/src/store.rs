//! The operations that a workload needs of a store, and nothing more.
//!
//! A [`Store`] is shared by all threads; each thread opens a [`Session`] on it, which holds the
//! engine's state per thread (a batch, a read transaction, a buffer). Dispatch is static: the
//! workloads are compiled once per store and the engine's calls stay direct.

use drumlin_base::{Error, Result};
use drumlin_fs::Env;

use crate::flags::Flags;
use crate::sample::Sample;

/// A key-value store under measurement.
pub trait Store: Send + Sync + Sized + 'static {
    /// A thread's way in.
    type Session<'a>: Session
    where
        Self: 'a;

    /// Opens (creating it if need be) the store that `flags` describe, at `flags.db`.
    ///
    /// # Errors
    /// Those of opening.
    fn open(flags: &Flags, env: &Env) -> Result<Self>;

    /// Removes everything the store kept at `flags.db`; no error if nothing is there.
    ///
    /// # Errors
    /// `Io`.
    fn destroy(flags: &Flags, env: &Env) -> Result<()>;

    /// Closes the store and reports errors found while closing.
    ///
    /// # Errors
    /// Those of a last write.
    fn close(self) -> Result<()>;

    /// A session with the write options of `flags`. Called on the thread that will use it.
    fn session(&self, flags: &Flags) -> Self::Session<'_>;

    /// Flushes the entries in memory to tables and waits for it.
    ///
    /// # Errors
    /// Those of the writes.
    fn flush(&self) -> Result<()>;

    /// Compacts everything and waits for it.
    ///
    /// # Errors
    /// Those of the writes.
    fn compact(&self) -> Result<()>;

    /// Waits until no background work is left.
    ///
    /// # Errors
    /// The error of background work.
    fn wait_for_background(&self) -> Result<()>;

    /// The text of a property (`rocksdb.stats`, `rocksdb.levelstats`, ...), if the store has it.
    fn property(&self, _name: &str) -> Option<String> {
        None
    }

    /// The store's counters and times as text, for `--statistics`, if it has any.
    fn statistics(&self) -> Option<String> {
        None
    }

    /// Sizes and counters of this moment; by default the store reports none.
    fn sample(&self) -> Sample {
        Sample::default()
    }

    /// The name and version printed on top of a run.
    fn version() -> String;
}

fn no_batches() -> Error {
    Error::not_supported("batches in this store")
}

/// One thread's view of a store.
pub trait Session {
    /// An ordered walk.
    type Cursor<'a>: Cursor
    where
        Self: 'a;

    /// Writes one entry.
    ///
    /// # Errors
    /// Those of the write.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds an entry to the session's batch.
    ///
    /// # Errors
    /// `NotSupported` by stores without batches; when the entry is too large for one.
    fn batch_put(&mut self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Err(no_batches())
    }

    /// Adds a deletion to the session's batch.
    ///
    /// # Errors
    /// `NotSupported` by stores without batches; when the key is too large for one.
    fn batch_delete(&mut self, _key: &[u8]) -> Result<()> {
        Err(no_batches())
    }

    /// Adds a deletion of all keys from `begin` up to, not including, `end` to the session's batch.
    ///
    /// # Errors
    /// `NotSupported` by stores that cannot; when the keys are too large for a batch.
    fn batch_delete_range(&mut self, _begin: &[u8], _end: &[u8]) -> Result<()> {
        Err(Error::not_supported("deleting a range in this store"))
    }

    /// Writes the batch atomically and empties it.
    ///
    /// # Errors
    /// `NotSupported` by stores without batches; those of the write.
    fn batch_write(&mut self) -> Result<()> {
        Err(no_batches())
    }

    /// Looks up `key`, shows its value to `on_value` in place, and returns whether it was found.
    ///
    /// # Errors
    /// Those of the read.
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool>;

    /// Looks up all `keys`, shows each value found to `on_value` with the index of its
    /// key, and returns how many were found. One by one, unless the store can do better.
    ///
    /// # Errors
    /// Those of the first failing read.
    fn multi_get(
        &mut self,
        keys: &[Vec<u8>],
        mut on_value: impl FnMut(usize, &[u8]),
    ) -> Result<usize> {
        let mut found = 0;
        for (index, key) in keys.iter().enumerate() {
            found += usize::from(self.get(key, |value| on_value(index, value))?);
        }
        Ok(found)
    }

    /// A cursor over `lower..upper`, not yet positioned.
    ///
    /// # Errors
    /// Those of opening the cursor.
    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Self::Cursor<'_>>;
}

/// A position in key order.
pub trait Cursor {
    /// Takes up the present state of the store; the cursor must be positioned anew.
    ///
    /// # Errors
    /// `NotSupported` by stores whose cursors cannot.
    fn refresh(&mut self) -> Result<()> {
        Err(Error::not_supported("refreshing this store's cursors"))
    }
    /// Goes to the first entry.
    fn seek_to_first(&mut self);
    /// Goes to the last entry.
    fn seek_to_last(&mut self);
    /// Goes to the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]);
    /// Goes one entry on. Requires: valid.
    fn next(&mut self);
    /// Goes one entry back. Requires: valid.
    fn prev(&mut self);
    /// Whether the cursor is at an entry.
    fn valid(&self) -> bool;
    /// The key there. Requires: valid.
    fn key(&self) -> &[u8];
    /// The value there. Requires: valid.
    fn value(&self) -> &[u8];
    /// Why the cursor stopped, if not at the end.
    ///
    /// # Errors
    /// The error of the last move.
    fn status(&self) -> Result<()>;
}

/// The cursor of stores that are not walked: there is none.
#[derive(Debug)]
pub enum NoCursor {}

impl Cursor for NoCursor {
    fn seek_to_first(&mut self) {
        match *self {}
    }

    fn seek_to_last(&mut self) {
        match *self {}
    }

    fn seek(&mut self, _key: &[u8]) {
        match *self {}
    }

    fn next(&mut self) {
        match *self {}
    }

    fn prev(&mut self) {
        match *self {}
    }

    fn valid(&self) -> bool {
        match *self {}
    }

    fn key(&self) -> &[u8] {
        match *self {}
    }

    fn value(&self) -> &[u8] {
        match *self {}
    }

    fn status(&self) -> Result<()> {
        match *self {}
    }
}
