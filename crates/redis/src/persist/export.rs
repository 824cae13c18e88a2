//! A store into an RDB file that Redis 7.0 loads.

use std::path::Path;

use drumlin::{Error, ErrorKind, Result, View};
use drumlin_fs::{CreateOptions, Env, FileKind, WritableFile};
use drumlin_rdb::{Encoding, FileWriter, KeyFacts, Sink, Value, Version};
use drumlin_redis_store::{DATABASES, Failure, Keyspace, Kind, Outcome, Overlay, ReadFrom, Store};

use super::values;

/// Collections of more items are written in the plain form, item by item, as they are read.
const ITEMS_WHOLE_MAX: u64 = 512;

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
    let mut writer = FileWriter::new(File(file), Encoding::compact(Version::V10));
    let seconds = env.clock.unix_time().as_secs();
    writer.aux(b"redis-ver", b"7.0.15")?;
    writer.aux(b"redis-bits", b"64")?;
    writer.aux(b"ctime", seconds.to_string().as_bytes())?;
    writer.aux(b"used-mem", store.memory_bytes().to_string().as_bytes())?;
    writer.aux(b"aof-base", b"0")?;
    let view = store.view();
    let clock_ms = env.clock.unix_time().as_millis();
    let now_ms = store.now_ms(u64::try_from(clock_ms).unwrap_or(u64::MAX));
    let mut keys = 0;
    for db in 0..DATABASES {
        let moment = Moment {
            store,
            view: &view,
            db,
            now_ms,
        };
        keys += moment.write(&mut writer).map_err(|failure| match failure {
            Failure::Engine(error) => error,
            other => Error::new(ErrorKind::Corruption, other.to_string()),
        })?;
    }
    let File(mut file) = writer.finish()?;
    file.sync()?;
    file.close()?;
    Ok(keys)
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

    fn write(&self, writer: &mut FileWriter<File>) -> Outcome<u64> {
        let (mut walked, mut read) = (Overlay::new(), Overlay::new());
        let (walked, read) = (self.keyspace(&mut walked), self.keyspace(&mut read));
        let (keys, expiring) = walked.count()?;
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

fn write_key(
    keys: &Keyspace<'_>,
    key: &[u8],
    kind: Kind,
    writer: &mut FileWriter<File>,
) -> Outcome<()> {
    let Some(record) = keys.lookup(key)? else {
        return Ok(());
    };
    let facts = KeyFacts {
        expire_ms: record.expire_ms().map(|ms| ms as i64),
        ..KeyFacts::default()
    };
    let items = values::items(keys, key, kind)?;
    if kind == Kind::String || items <= ITEMS_WHOLE_MAX {
        let value: Value = values::whole(keys, key, kind)?;
        writer.key(key, &facts, &value)?;
        return Ok(());
    }
    writer.begin(key, &facts, values::rdb_kind(kind), items)?;
    values::each_item(keys, key, kind, |item| Ok(writer.item(&item)?))
}
