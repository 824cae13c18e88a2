//! `rocksdb_t`: what the handle holds, and how it is opened.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::{
    CancelToken, ColumnFamily, Db, Follower, Result, TransactionDb, WriteBatch, WriteOptions,
};

use drumlin_base::sync::Mutex;

use crate::family::Family;
use crate::timestamps;

/// What the handle holds. Closed when it is dropped, whatever else still holds the engine: iterators, snapshots and
/// families go on reading.
pub(crate) struct Database {
    db: Db,
    /// Through which it is written, where transactions lock what they write.
    locks: Option<Arc<TransactionDb>>,
    /// What ends compactions by hand; `None` while they are off.
    by_hand: Arc<Mutex<Option<CancelToken>>>,
    /// Whether dropping this closes the database: not where it is the base of another handle.
    is_owner: bool,
    /// Which catches up, of a secondary.
    follower: Option<Follower>,
    /// Whether a family's keys have timestamps.
    has_timestamps: Arc<AtomicBool>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.db.fmt(f)
    }
}

impl Database {
    pub(crate) fn new(db: Db) -> Self {
        let has_timestamps = db.families().iter().any(is_timed);
        Self {
            db,
            locks: None,
            by_hand: by_hand(),
            is_owner: true,
            follower: None,
            has_timestamps: Arc::new(AtomicBool::new(has_timestamps)),
        }
    }

    /// What a listener is told an event of: it does not close it.
    pub(crate) fn of_event(db: Db) -> Self {
        let mut database = Self::new(db);
        database.is_owner = false;
        database
    }

    /// What `follower` shows.
    pub(crate) fn of_follower(db: Db, follower: Option<Follower>) -> Self {
        let mut database = Self::new(db);
        database.follower = follower;
        database
    }

    pub(crate) fn follower(&self) -> Option<&Follower> {
        self.follower.as_ref()
    }

    pub(crate) fn with_locks(db: Db, locks: Arc<TransactionDb>) -> Self {
        Self {
            db,
            locks: Some(locks),
            by_hand: by_hand(),
            is_owner: true,
            follower: None,
            has_timestamps: Arc::default(), // Refused there.
        }
    }

    /// Another handle of the same database, which does not close it.
    pub(crate) fn base(&self) -> Self {
        Self {
            db: self.db.clone(),
            locks: self.locks.clone(),
            by_hand: Arc::clone(&self.by_hand),
            is_owner: false,
            follower: None,
            has_timestamps: Arc::clone(&self.has_timestamps),
        }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// The family of a call.
    pub(crate) fn family<'a>(&'a self, family: Option<&'a Family>) -> &'a ColumnFamily {
        family.map_or_else(|| self.db.default_family(), |family| &family.0)
    }

    pub(crate) fn has_timestamps(&self) -> bool {
        self.has_timestamps.load(Ordering::Acquire)
    }

    /// Notes that `family` is new.
    pub(crate) fn note(&self, family: &ColumnFamily) {
        if is_timed(family) {
            self.has_timestamps.store(true, Ordering::Release);
        }
    }

    /// Compacts a range, unless compactions by hand are off.
    pub(crate) fn compact(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let cancel = self.by_hand.lock().clone();
        match cancel {
            Some(cancel) => {
                let begin = begin.map(|key| timestamps::first(family, key));
                let end = end.map(|key| timestamps::last(family, key));
                self.db
                    .compact_range_until(family, begin.as_deref(), end.as_deref(), &cancel)?;
                self.finish_removal();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits until the files that a call made superfluous are gone: programs look for them. A failure is none of the call's.
    pub(crate) fn finish_removal(&self) {
        // The next write has it.
        let _ = self.db.finish_removal();
    }

    /// Turns compactions by hand on or off; those that run end soon.
    pub(crate) fn let_compact(&self, on: bool) {
        let mut by_hand = self.by_hand.lock();
        match (on, &*by_hand) {
            (true, None) => *by_hand = Some(CancelToken::default()),
            (false, Some(cancel)) => {
                cancel.cancel();
                *by_hand = None;
            }
            _ => {}
        }
    }

    pub(crate) fn locks(&self) -> Option<&Arc<TransactionDb>> {
        self.locks.as_ref()
    }

    /// Writes `batch`, whose keys end with timestamps where the family's do.
    pub(crate) fn write_stamped(&self, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        self.db.write(batch, options)
    }

    /// Writes `batch`, which has no timestamps, as a transaction of its own where transactions lock what they write.
    pub(crate) fn write(&self, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        if self.has_timestamps() {
            let families = self.db.families();
            for record in batch.iter() {
                let id = record?.family;
                let family = families.iter().find(|family| family.id() == id);
                family.map_or(Ok(()), timestamps::refuse)?;
            }
        }
        match &self.locks {
            Some(locks) => locks.write(batch, options).map(drop),
            None => self.db.write(batch, options),
        }
    }
}

fn is_timed(family: &ColumnFamily) -> bool {
    family.order().timestamp_bytes() > 0
}

fn by_hand() -> Arc<Mutex<Option<CancelToken>>> {
    Arc::new(Mutex::new(Some(CancelToken::default())))
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.is_owner {
            if self.has_timestamps() {
                // RocksDB since 8.3 reads no keys with timestamps from a WAL without their sizes, which 7.8 does not know.
                for family in self.db.families().iter().filter(|family| is_timed(family)) {
                    let _ = self.db.flush_cf(family); // It stays in the WAL.
                }
            }
            // RocksDB's function has no place for an error; the database is closed all the same.
            let _ = self.db.clone().close();
        }
    }
}

pub(crate) mod calls {
    use std::ffi::{CStr, c_int};

    use drumlin::{DEFAULT_FAMILY, Db, Result};
    use drumlin_ffi::bytes::path_of;

    use super::Database;
    use crate::opening::{Mode, Named, Opening, time_to_live};
    use crate::options::OpenOptions;

    pub(crate) fn open(options: &OpenOptions, name: &CStr) -> Result<Database> {
        let opening = Opening::new(options, name, Mode::ReadWrite);
        opening.open(&[]).map(|(db, _)| Database::new(db))
    }

    /// Families that are created in it later have times behind their values, too.
    pub(crate) fn open_with_ttl(
        options: &OpenOptions,
        name: &CStr,
        ttl: c_int,
    ) -> Result<Database> {
        let default = Named {
            name: DEFAULT_FAMILY.to_owned(),
            options,
            ttl: Some(time_to_live(ttl)),
        };
        let opening = Opening::new(options, name, Mode::ReadWrite);
        let (db, _) = opening.open(&[default])?;
        Ok(Database::new(db))
    }

    pub(crate) fn open_for_read_only(
        options: &OpenOptions,
        name: &CStr,
        error_if_wal_file_exists: bool,
    ) -> Result<Database> {
        let mode = Mode::ReadOnly {
            error_if_wal_file_exists,
        };
        let opening = Opening::new(options, name, mode);
        opening.open(&[]).map(|(db, _)| Database::new(db))
    }

    pub(crate) fn destroy_db(options: &OpenOptions, name: &CStr) -> Result<()> {
        let opening = Opening::new(options, name, Mode::ReadWrite);
        let destroyed = Db::destroy(path_of(name), &options.to_engine(1)?);
        destroyed.map_err(|error| opening.reworded(error))
    }

    pub(crate) fn repair_db(options: &OpenOptions, name: &CStr) -> Result<()> {
        Db::repair(path_of(name), &options.to_engine(1)?).map(drop)
    }
}
