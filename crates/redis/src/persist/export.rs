//! A store into an RDB file that Redis 7.0 loads, or 7.4 where fields of hashes expire.

use std::path::Path;

use drumlin::{Error, ErrorKind, Result, View};
use drumlin_fs::{CreateOptions, Env, FileKind, WritableFile};
use drumlin_rdb::{Encoding, FileWriter, KeyFacts, Sink, Value, Version};
use drumlin_redis_store::{DATABASES, Failure, Keyspace, Kind, Outcome, Overlay, ReadFrom, Store};

use super::{streams, values};

/// Collections of more items are written in the plain form, item by item, as they are read.
const ITEMS_WHOLE_MAX: u64 = 512;

/// Keys that are counted before they are written.
const KEYS_COUNTED: u64 = 100_000;

struct File(Box<dyn WritableFile>);

impl Sink for File {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes)
    }
}

/// Writes all keys of `store` as of now into the RDB file at `path`, which it replaces once it is whole and durable. Takes a
/// view: nobody waits for it. Returns the number of keys.
///
/// # Errors
/// `Io`, `NoSpace`; the engine's. A file that was at `path` is still there then.
pub(crate) fn export(store: &Store, env: &Env, path: &Path) -> Result<u64> {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let partial = Path::new(&name);
    let written = write(store, env, partial);
    let keys = match written {
        Ok(keys) => keys,
        Err(error) => {
            // The error of the write is the one to tell.
            drop(env.files.remove(partial));
            return Err(error);
        }
    };
    env.files.rename(partial, path)?;
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    env.files.sync_dir(parent.unwrap_or(Path::new(".")))?;
    Ok(keys)
}

fn write(store: &Store, env: &Env, path: &Path) -> Result<u64> {
    let file = env
        .files
        .create(path, CreateOptions::new(FileKind::Other))?;
    let libraries = store.libraries()?;
    let libraries: Vec<_> = libraries.into_iter().map(|(_, code)| code).collect();
    let source = Source {
        store,
        view: &store.view(),
        libraries: &libraries,
        stream_db: None,
    };
    let (File(mut file), keys) = write_to(&source, env, File(file))?;
    file.sync()?;
    file.close()?;
    Ok(keys)
}

/// A moment of a store.
pub(crate) struct Source<'s> {
    pub(crate) store: &'s Store,
    pub(crate) view: &'s View,
    /// The code of the libraries of functions then.
    pub(crate) libraries: &'s [Vec<u8>],
    /// The database that the stream of a primary has selected at the moment, if there is one.
    pub(crate) stream_db: Option<u16>,
}

/// Writes all keys of the moment as an RDB file into `sink`; that, and the number of keys.
///
/// # Errors
/// The sink's; the engine's.
pub(crate) fn write_to<S: Sink>(source: &Source<'_>, env: &Env, sink: S) -> Result<(S, u64)> {
    let Source { store, view, .. } = *source;
    let clock_ms = env.clock.unix_time().as_millis();
    let now_ms = store.now_ms(u64::try_from(clock_ms).unwrap_or(u64::MAX));
    let moment = |db| Moment {
        store,
        view,
        db,
        now_ms,
    };
    let mut version = (Version::V10, &b"7.0.15"[..]);
    for db in 0..DATABASES {
        if moment(db).times_fields().map_err(told)? {
            version = (Version::V12, b"7.4.0");
        }
    }
    let mut writer = FileWriter::new(sink, Encoding::compact(version.0));
    let seconds = env.clock.unix_time().as_secs();
    writer.aux(b"redis-ver", version.1)?;
    writer.aux(b"redis-bits", b"64")?;
    writer.aux(b"ctime", seconds.to_string().as_bytes())?;
    writer.aux(b"used-mem", store.memory_bytes().to_string().as_bytes())?;
    writer.aux(b"aof-base", b"0")?;
    for code in source.libraries {
        writer.function(code)?;
    }
    if let Some(db) = source.stream_db {
        writer.aux(b"repl-stream-db", db.to_string().as_bytes())?;
    }
    let mut keys = 0;
    for db in 0..DATABASES {
        keys += moment(db).write(&mut writer).map_err(told)?;
    }
    Ok((writer.finish()?, keys))
}

fn told(failure: Failure) -> Error {
    match failure {
        Failure::Engine(error) => error,
        other => Error::new(ErrorKind::Corruption, other.to_string()),
    }
}

/// A database as of one moment.
struct Moment<'s> {
    store: &'s Store,
    view: &'s View,
    db: u16,
    now_ms: u64,
}

impl Moment<'_> {
    fn keyspace<'k>(&'k self, overlay: &'k mut Overlay) -> Keyspace<'k> {
        let (store, view, from) = (self.store, self.view, ReadFrom::Disk);
        Keyspace::new(store, view, overlay, self.db, self.now_ms, from)
    }

    /// Whether any hash has a field with an expiry.
    fn times_fields(&self) -> Outcome<bool> {
        self.keyspace(&mut Overlay::new()).times_fields()
    }

    fn write<S: Sink>(&self, writer: &mut FileWriter<S>) -> Outcome<u64> {
        let (mut walked, mut read) = (Overlay::new(), Overlay::new());
        let (walked, read) = (self.keyspace(&mut walked), self.keyspace(&mut read));
        // Readers make room for so many. A walk over all keys would cost more than it is worth.
        let (keys, expiring) = walked.count_up_to(KEYS_COUNTED)?;
        if keys == 0 {
            return Ok(0);
        }
        writer.select(u64::from(self.db), keys, expiring)?;
        let mut written = 0;
        let mut outcome = Ok(());
        walked.for_each_key(|key, kind| {
            outcome = write_key(&read, key, kind, writer);
            written += 1;
            outcome.is_ok()
        })?;
        outcome.map(|()| written)
    }
}

fn write_key<S: Sink>(
    keys: &Keyspace<'_>,
    key: &[u8],
    kind: Kind,
    writer: &mut FileWriter<S>,
) -> Outcome<()> {
    let Some(record) = keys.lookup(key)? else {
        return Ok(());
    };
    let facts = KeyFacts {
        expire_ms: record.expire_ms().map(|ms| ms as i64),
        ..KeyFacts::default()
    };
    let items = values::items(keys, key, kind)?;
    if kind == Kind::Stream {
        return streams::export(keys, key, &facts, writer);
    }
    // The plain form of fields that expire begins with the first time of all.
    let is_whole = record.field_times().is_some() || kind == Kind::String;
    if is_whole || items <= ITEMS_WHOLE_MAX {
        let value: Value = values::whole(keys, key, kind)?;
        writer.key(key, &facts, &value)?;
        return Ok(());
    }
    writer.begin(key, &facts, values::rdb_kind(kind), items)?;
    values::each_item(keys, key, kind, |item| Ok(writer.item(&item)?))
}
