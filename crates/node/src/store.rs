//! A database.

use std::path::PathBuf;

use drumlin::{
    ColumnFamily, Db, Error, ErrorKind, Options, ReadOptions, ReadTier, Result, WriteBatch,
    WriteOptions,
};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Buffer, BufferSlice};
use napi_derive::napi;

use crate::error::thrown;
use crate::frames::{self, Unpacked};
use crate::job::{Job, Reply, job};
use crate::moment::{Moment, Reads};
use crate::settings::Settings;
use crate::walk::{Course, Walk};

/// Larger batches are written by a thread: some 50 µs of work.
const BATCH_ON_LOOP: usize = 32 << 10;

/// There is no such key; it has to be looked for on the disk; the value does not fit.
const ABSENT: i32 = -1;
const ON_DISK: i32 = -2;
const TOO_LONG: i32 = -3;

/// An open database, of which the default family is used.
#[napi]
pub(crate) struct Store {
    open: Option<Open>,
}

#[derive(Clone)]
struct Open {
    db: Db,
    family: ColumnFamily,
    /// The present, as far as memory has it.
    in_memory: ReadOptions,
}

/// A database that a thread opened.
pub(crate) struct Opened(Open);

impl Reply for Opened {
    type Js = Store;

    fn reply(self) -> Store {
        Store { open: Some(self.0) }
    }
}

/// A range of keys: lower and upper bound, each with whether it is in the range.
#[napi(object)]
pub(crate) struct Range {
    pub gt: Option<Buffer>,
    pub gte: Option<Buffer>,
    pub lt: Option<Buffer>,
    pub lte: Option<Buffer>,
    pub reverse: bool,
    pub keys: bool,
    pub values: bool,
    /// Most entries; none: all.
    pub limit: Option<u32>,
}

impl Range {
    /// The first key, and the first key behind.
    fn bounds(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let lower = match (&self.gt, &self.gte) {
            (_, Some(key)) => Some(key.to_vec()),
            (Some(key), None) => Some(behind(key)),
            (None, None) => None,
        };
        let upper = match (&self.lt, &self.lte) {
            (_, Some(key)) => Some(behind(key)),
            (Some(key), None) => Some(key.to_vec()),
            (None, None) => None,
        };
        (lower, upper)
    }
}

/// The first key behind `key`.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Opens the database in `path`.
#[napi]
pub fn open(path: String, settings: Settings) -> AsyncTask<Job<Opened>> {
    job(move || {
        let options = settings.options()?;
        let path = PathBuf::from(path);
        let db = match settings.read_only {
            Some(true) => Db::open_read_only(&path, options)?,
            _ => match Db::open_all_families(&path, options.clone()) {
                // There is none, so there are no families either.
                Err(error) if error.kind() == ErrorKind::NotFound && options.create_if_missing => {
                    Db::open(&path, options)?
                }
                opened => opened?,
            },
        };
        let family = db.default_family().clone();
        let in_memory = Reads::new(None).in_memory;
        Ok(Opened(Open {
            db,
            family,
            in_memory,
        }))
    })
}

/// Removes the database in `path`, and nothing else that is there.
#[napi]
pub fn destroy(path: String) -> AsyncTask<Job<()>> {
    job(move || Db::destroy(PathBuf::from(path), &Options::default()))
}

/// Makes the database in `path` one that can be opened again, from the files that are there.
#[napi]
pub fn repair(path: String) -> AsyncTask<Job<()>> {
    job(move || Db::repair(PathBuf::from(path), &Options::default()).map(|_| ()))
}

impl Store {
    fn open(&self, env: Env) -> napi::Result<&Open> {
        self.open.as_ref().ok_or_else(|| {
            let closed = Error::new(ErrorKind::Shutdown, "the database is closed");
            thrown(env, &closed)
        })
    }
}

#[napi]
impl Store {
    /// Looks in memory for the key in the first `length` bytes of `buffer`, and puts its value there. Returns the value's
    /// length; -1 if there is no such key; -2 if the disk has to be read; -3 if the value does not fit.
    #[napi]
    pub fn get(
        &self,
        env: Env,
        mut buffer: BufferSlice<'_>,
        length: u32,
        moment: Option<&Moment>,
    ) -> napi::Result<i32> {
        let open = self.open(env)?;
        let key = buffer.get(..length as usize).unwrap_or_default();
        let found = match reads(moment) {
            None => open.db.get_cf(&open.family, key, &open.in_memory),
            Some(reads) => open.db.get_cf(&open.family, key, &reads.in_memory),
        };
        match found {
            Ok(None) => Ok(ABSENT),
            Ok(Some(value)) => match buffer.get_mut(..value.len()) {
                None => Ok(TOO_LONG),
                Some(place) => {
                    place.copy_from_slice(&value);
                    Ok(i32::try_from(value.len()).unwrap_or(TOO_LONG))
                }
            },
            Err(error) if error.kind() == ErrorKind::Incomplete => Ok(ON_DISK),
            Err(error) => Err(thrown(env, &error)),
        }
    }

    /// The values of packed keys, packed; nothing where one of them is not in memory.
    #[napi]
    pub fn get_many(
        &self,
        env: Env,
        keys: &[u8],
        moment: Option<&Moment>,
    ) -> napi::Result<Option<Buffer>> {
        let open = self.open(env)?;
        let options = reads(moment).map_or(&open.in_memory, |reads| &reads.in_memory);
        match find(open, keys, options) {
            Ok(found) => Ok(Some(found.into())),
            Err(error) if error.kind() == ErrorKind::Incomplete => Ok(None),
            Err(error) => Err(thrown(env, &error)),
        }
    }

    /// The values of packed keys, packed, wherever they are.
    #[napi]
    pub fn fetch(
        &self,
        env: Env,
        keys: &[u8],
        moment: Option<&Moment>,
    ) -> napi::Result<AsyncTask<Job<Vec<u8>>>> {
        let (open, keys) = (self.open(env)?.clone(), keys.to_vec());
        let options = options_of(moment);
        Ok(job(move || find(&open, &keys, &options)))
    }

    /// As `fetch`, and waits.
    #[napi]
    pub fn fetch_now(
        &self,
        env: Env,
        keys: &[u8],
        moment: Option<&Moment>,
    ) -> napi::Result<Buffer> {
        let open = self.open(env)?;
        let found = find(open, keys, &options_of(moment));
        found.map(Buffer::from).map_err(|error| thrown(env, &error))
    }

    /// Writes packed changes, all or none. A promise where it has to wait for the disk or for others.
    #[napi]
    pub fn write(
        &self,
        env: Env,
        changes: &[u8],
        sync: bool,
    ) -> napi::Result<Option<AsyncTask<Job<()>>>> {
        let open = self.open(env)?;
        let written = Unpacked::new(changes).batch();
        let mut batch = written.map_err(|error| thrown(env, &error))?;
        if !sync && changes.len() <= BATCH_ON_LOOP {
            let options = WriteOptions {
                no_stall: true,
                ..WriteOptions::default()
            };
            match open.db.commit(&mut batch, &options) {
                Ok(_) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Busy => {}
                Err(error) => return Err(thrown(env, &error)),
            }
        }
        let open = open.clone();
        let options = WriteOptions {
            sync: Some(sync),
            ..WriteOptions::default()
        };
        Ok(Some(job(move || open.db.write(batch, &options))))
    }

    /// A walk over `range`, as of now or as of `moment`.
    #[napi]
    pub fn walk(&self, env: Env, range: Range, moment: Option<&Moment>) -> napi::Result<Walk> {
        let open = self.open(env)?;
        let (lower_bound, upper_bound) = range.bounds();
        let snapshot = reads(moment).and_then(|reads| reads.from_disk.snapshot.clone());
        Ok(Walk::new(Course {
            options: ReadOptions {
                snapshot: snapshot.or_else(|| Some(open.db.snapshot())),
                lower_bound,
                upper_bound,
                tier: ReadTier::BlockCache,
                ..ReadOptions::default()
            },
            db: open.db.clone(),
            family: open.family.clone(),
            backward: range.reverse,
            keys: range.keys,
            values: range.values,
        }))
    }

    /// Removes what is in `range`: all of it now, what `moment` has of it, or the first `limit` in its direction.
    #[napi]
    pub fn clear(
        &self,
        env: Env,
        range: Range,
        moment: Option<&Moment>,
    ) -> napi::Result<AsyncTask<Job<()>>> {
        let open = self.open(env)?.clone();
        let is_all = range.limit.is_none() && moment.is_none();
        let (lower_bound, upper_bound) = range.bounds();
        let options = ReadOptions {
            lower_bound,
            upper_bound,
            ..options_of(moment)
        };
        let (limit, backward) = (range.limit.unwrap_or(u32::MAX), range.reverse);
        Ok(job(move || match is_all {
            true => match clear_all(&open, &options) {
                // LevelDB's format has no range deletions.
                Err(error) if error.kind() == ErrorKind::NotSupported => {
                    clear_each(&open, options, u32::MAX, false)
                }
                cleared => cleared,
            },
            false => clear_each(&open, options, limit, backward),
        }))
    }

    /// A snapshot.
    #[napi]
    pub fn moment(&self, env: Env) -> napi::Result<Moment> {
        let snapshot = self.open(env)?.db.snapshot();
        Ok(Moment {
            reads: Some(Reads::new(Some(snapshot))),
        })
    }

    /// About how many bytes of tables the keys from `start` up to, not including, `end` take.
    #[napi]
    pub fn approximate_size(
        &self,
        env: Env,
        start: &[u8],
        end: &[u8],
    ) -> napi::Result<AsyncTask<Job<f64>>> {
        let open = self.open(env)?.clone();
        let (start, end) = (start.to_vec(), end.to_vec());
        Ok(job(move || {
            let ranges: [(&[u8], &[u8]); 1] = [(&start, &end)];
            let sizes = open.db.approximate_sizes(&open.family, &ranges)?;
            let bytes = sizes.first().copied().unwrap_or(0);
            #[expect(clippy::cast_precision_loss, reason = "it is about so many")]
            Ok(bytes as f64)
        }))
    }

    /// Compacts the keys from `start` to `end`.
    #[napi]
    pub fn compact(&self, env: Env, start: &[u8], end: &[u8]) -> napi::Result<AsyncTask<Job<()>>> {
        let open = self.open(env)?.clone();
        let (start, end) = (start.to_vec(), end.to_vec());
        Ok(job(move || {
            let (start, end) = (Some(start.as_slice()), Some(end.as_slice()));
            open.db.compact_range(&open.family, start, end)
        }))
    }

    /// A property by LevelDB's or RocksDB's name.
    #[napi]
    pub fn property(&self, env: Env, name: String) -> napi::Result<Option<String>> {
        let open = self.open(env)?;
        Ok(open.db.property(&open.family, &name))
    }

    /// Flushes, and releases the directory. Walks and snapshots can still be read.
    #[napi]
    pub fn close(&mut self, env: Env) -> napi::Result<AsyncTask<Job<()>>> {
        let open = self.open(env)?.clone();
        self.open = None;
        Ok(job(move || open.db.close()))
    }
}

fn reads(moment: Option<&Moment>) -> Option<&Reads> {
    moment.and_then(|moment| moment.reads.as_ref())
}

/// How a thread reads as of `moment`, or as of now.
fn options_of(moment: Option<&Moment>) -> ReadOptions {
    reads(moment).map_or_else(ReadOptions::default, |reads| reads.from_disk.clone())
}

/// The values of packed keys, packed.
fn find(open: &Open, keys: &[u8], options: &ReadOptions) -> Result<Vec<u8>> {
    let keys = Unpacked::new(keys).keys()?;
    let mut packed = Vec::new();
    for found in open.db.multi_get_cf(&open.family, &keys, options) {
        frames::push_value(&mut packed, found?.as_deref())?;
    }
    Ok(packed)
}

/// Removes a range by one range deletion, which ends at its last key.
fn clear_all(open: &Open, options: &ReadOptions) -> Result<()> {
    let mut cursor = open.db.iter_cf(&open.family, options.clone());
    cursor.seek_to_last();
    if !cursor.valid() {
        return cursor.status();
    }
    let last = cursor.key().to_vec();
    let mut batch = WriteBatch::new();
    let first = options.lower_bound.as_deref().unwrap_or_default();
    batch.delete_range(first, &last)?;
    batch.delete(&last)?;
    open.db.write(batch, &WriteOptions::default())
}

/// Removes entries one by one.
fn clear_each(open: &Open, options: ReadOptions, limit: u32, backward: bool) -> Result<()> {
    let mut cursor = open.db.iter_cf(&open.family, options);
    match backward {
        false => cursor.seek_to_first(),
        true => cursor.seek_to_last(),
    }
    let mut batch = WriteBatch::new();
    for _ in 0..limit {
        if !cursor.valid() {
            break;
        }
        batch.delete(cursor.key())?;
        if batch.len() >= BATCH_ON_LOOP {
            open.db.commit(&mut batch, &WriteOptions::default())?;
        }
        match backward {
            false => cursor.next(),
            true => cursor.prev(),
        }
    }
    cursor.status()?;
    open.db.write(batch, &WriteOptions::default())
}
