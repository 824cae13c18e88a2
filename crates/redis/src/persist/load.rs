//! RDB files into a store.

use std::path::Path;
use std::sync::Arc;

use drumlin::{Error, ErrorKind, Result};
use drumlin_fs::Env;
use drumlin_rdb::{Event, Item, KeyHead, Limits, Reader};
use drumlin_redis_store::{DATABASES, Failure, Keyspace, Outcome, Overlay, ReadFrom, Store};
use drumlin_resp::integer;

use super::parts::Parts;
use super::values;
use crate::script::library::Libraries;
use crate::script::scripts::Scripts;

/// Bytes of one read of the file, and of one batch of changes, about.
const PIECE_BYTES: usize = 1 << 20;
const BATCH_BYTES: usize = 4 << 20;
/// Items that go into a collection at a time.
const ITEMS: usize = 1_024;

/// The contents of a file that was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Keys that are there now.
    pub keys: u64,
    /// Keys that had expired, which are passed over.
    pub expired: u64,
    /// Libraries of functions.
    pub libraries: u64,
    /// Commands of an append-only file, and how many of them were answered with an error.
    pub commands: u64,
    /// See `commands`.
    pub failed: u64,
    /// Bytes at the end of an append-only file that are no whole command or transaction.
    pub cut: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// The database that the stream behind the file has selected, where the file is a primary's that has a primary itself.
    pub stream_db: Option<u16>,
}

/// Told of what is loaded, now and then, and of the bytes that there are.
pub(crate) type Tell<'t> = &'t mut dyn FnMut(&Loaded, u64);

/// Loads the RDB file at `path` into `store`. A key that is there already is replaced, one that has expired passed over.
///
/// # Errors
/// `Corruption`, `NotSupported` and others with the file, the offset and the key; `Io`. What came before in the file is loaded
/// then.
pub(crate) fn load(store: &Store, env: &Env, path: &Path, tell: Tell<'_>) -> Result<Loaded> {
    let size = env.files.info(path)?.size;
    let loader = Loader::new(store, env);
    let mut tell = |done: &Loaded| tell(done, size);
    load_by(loader, env, path, &mut tell).map(|(done, _)| done)
}

/// Loads the RDB file at `path`, which commands follow, and returns where it ends. Keys that have expired are loaded too, as
/// commands may change them.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_base(
    store: &Store,
    env: &Env,
    path: &Path,
    tell: &mut dyn FnMut(&Loaded),
) -> Result<(Loaded, u64)> {
    let mut loader = Loader::new(store, env);
    loader.keeps_expired = true;
    load_by(loader, env, path, tell)
}

fn load_by(
    mut loader: Loader<'_>,
    env: &Env,
    path: &Path,
    tell: &mut dyn FnMut(&Loaded),
) -> Result<(Loaded, u64)> {
    let store = loader.store;
    let file = env
        .files
        .open(path)
        .map_err(|error| error.with_file(path))?;
    let limits = Limits {
        file_bytes: Some(file.size()),
        ..Limits::default()
    };
    let mut reader = Reader::new(limits);
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    let outcome = loop {
        match reader.event() {
            Ok(Some(Event::End)) => break Ok(()),
            Ok(Some(event)) => {
                if let Err(failure) = loader.event(event) {
                    break Err(engine_error(failure));
                }
            }
            Ok(None) => {
                let read = file.read_at(at, &mut piece)?;
                if read == 0 {
                    break reader.finish();
                }
                at += read as u64;
                reader.push(piece.get(..read).unwrap_or(&[]));
                loader.done.bytes = at;
                tell(&loader.done);
            }
            Err(error) => break Err(error),
        }
    };
    let told = outcome.map_err(|error| loader.explain(&error, reader.offset(), path));
    loader.commit().map_err(engine_error)?;
    store.db().sync_wal()?;
    told?;
    tell(&loader.done);
    Ok((loader.done, reader.offset()))
}

fn engine_error(failure: Failure) -> Error {
    match failure {
        Failure::Engine(error) => error,
        other => Error::new(ErrorKind::InvalidArgument, other.to_string()),
    }
}

/// Bytes of a change, about.
fn bytes_of(item: &Item) -> usize {
    let own = match item {
        Item::String(bytes) | Item::Element(bytes) | Item::Member(bytes) => bytes.len(),
        Item::Scored(member, _) => member.len(),
        Item::Field(field) => field.name.len() + field.value.len(),
        Item::Entry(entry) => {
            let fields = entry.fields.iter();
            fields.map(|(name, value)| name.len() + value.len()).sum()
        }
        Item::Group(group) => group.name.len(),
        Item::Consumer(consumer) => consumer.name.len(),
        // The names of the group and of the consumer stand with each.
        Item::Pending(_) => 256,
        Item::Head(..) => 0,
    };
    own.saturating_add(64)
}

/// The key that is being loaded.
struct Present {
    head: KeyHead,
    expired: bool,
    parts: Parts,
}

struct Loader<'s> {
    store: &'s Store,
    now_ms: u64,
    overlay: Overlay,
    /// Bytes of the changes in it, about.
    bytes: usize,
    present: Option<Present>,
    /// Keys that have expired are loaded.
    keeps_expired: bool,
    scripts: Scripts,
    libraries: Libraries,
    done: Loaded,
}

impl<'s> Loader<'s> {
    fn new(store: &'s Store, env: &Env) -> Self {
        let clock = env.clock.unix_time().as_millis();
        Self {
            store,
            now_ms: store.now_ms(u64::try_from(clock).unwrap_or(u64::MAX)),
            overlay: Overlay::new(),
            bytes: 0,
            present: None,
            keeps_expired: false,
            scripts: Scripts::new(
                Arc::clone(&env.clock),
                store.db().budget().account("scripts"),
            ),
            libraries: Libraries::default(),
            done: Loaded::default(),
        }
    }

    fn explain(&self, error: &Error, offset: u64, path: &Path) -> Error {
        let key = self.present.as_ref().map_or_else(String::new, |present| {
            format!(", key {:?}", String::from_utf8_lossy(&present.head.key))
        });
        let keys = self.done.keys;
        let message =
            format!("{error}, at byte {offset}{key}; the {keys} keys before it are loaded");
        Error::new(error.kind(), message).with_file(path)
    }

    fn event(&mut self, event: Event) -> Outcome<()> {
        match event {
            Event::Key(head) => self.begin(head),
            Event::Item(item) => self.item(item),
            Event::KeyEnd => self.end(),
            Event::Function(code) => self.library(&code),
            Event::Aux(name, value) if name == b"repl-stream-db" => {
                let db = integer(&value).and_then(|db| u16::try_from(db).ok());
                self.done.stream_db = db.filter(|db| *db < DATABASES);
                Ok(())
            }
            Event::Begin(_) | Event::Aux(..) | Event::Size(..) | Event::Slot(..) | Event::End => {
                Ok(())
            }
        }
    }

    /// Takes a library in place of one with its name.
    fn library(&mut self, code: &[u8]) -> Outcome<()> {
        if self.done.libraries == 0 {
            // Those that are there may have functions of the same names.
            self.scripts.load_stored(self.store)?;
            self.libraries = Libraries::clone(&self.scripts.libraries);
        }
        let libraries = &mut self.libraries;
        let name = self.scripts.load_library(code, libraries, true, false);
        let name = name.map_err(|text| {
            let message = format!("a library of functions cannot be loaded: {text}");
            Failure::Engine(Error::corruption(message))
        })?;
        self.change(0, |keys| {
            keys.set_library(&name, Some(code));
            Ok(())
        })?;
        self.done.libraries += 1;
        Ok(())
    }

    /// Runs `change` on the database of the present key.
    fn change<T>(
        &mut self,
        db: u64,
        change: impl FnOnce(&mut Keyspace<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let db = u16::try_from(db).ok().filter(|db| *db < DATABASES);
        let db = db.ok_or_else(|| {
            let message = format!("the file has more than the {DATABASES} databases there are");
            Failure::Engine(Error::not_supported(message))
        })?;
        let view = self.store.view();
        let (overlay, now_ms) = (&mut self.overlay, self.now_ms);
        let mut keys = Keyspace::new(self.store, &view, overlay, db, now_ms, ReadFrom::Disk);
        if self.keeps_expired {
            keys.keep_expired();
        }
        let changed = change(&mut keys);
        self.overlay.keep();
        changed
    }

    fn begin(&mut self, head: KeyHead) -> Outcome<()> {
        // As a primary does: what has expired is not loaded. Times before 1970 are of the past too.
        let until = head.expire_ms.map(|ms| u64::try_from(ms).unwrap_or(0));
        let expired = !self.keeps_expired && until.is_some_and(|ms| ms < self.now_ms);
        if !expired {
            self.change(head.db, |keys| {
                if let Some(record) = keys.lookup(&head.key)? {
                    keys.remove(&head.key, &record);
                }
                Ok(())
            })?;
        }
        self.present = Some(Present {
            parts: Parts::new(head.kind),
            head,
            expired,
        });
        Ok(())
    }

    fn item(&mut self, item: Item) -> Outcome<()> {
        let Some(present) = &mut self.present else {
            return Ok(());
        };
        if present.expired {
            present.parts.skip();
            return Ok(());
        }
        self.bytes += bytes_of(&item);
        present.parts.push(item)?;
        if present.parts.waiting() >= ITEMS || self.bytes >= BATCH_BYTES {
            self.append()?;
            self.commit_if_large()?;
        }
        Ok(())
    }

    /// Has the items that wait go into the keyspace.
    fn append(&mut self) -> Outcome<()> {
        let Some(mut present) = self.present.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        if present.parts.waiting() > 0 {
            let key = &present.head.key;
            outcome = self.change(present.head.db, |keys| present.parts.flush(keys, key));
        }
        self.present = Some(present);
        outcome
    }

    fn end(&mut self) -> Outcome<()> {
        self.append()?;
        let Some(present) = self.present.take() else {
            return Ok(());
        };
        if present.expired {
            self.done.expired += 1;
            return Ok(());
        }
        let KeyHead { db, key, .. } = &present.head;
        if let Some(ms) = present.head.expire_ms {
            let ms = u64::try_from(ms).unwrap_or(0);
            self.change(*db, |keys| values::set_expiry(keys, key, ms))?;
        }
        self.bytes += key.len() + 64;
        self.done.keys += u64::from(present.parts.has_any());
        self.commit_if_large()
    }

    fn commit_if_large(&mut self) -> Outcome<()> {
        match self.bytes >= BATCH_BYTES {
            true => self.commit(),
            false => Ok(()),
        }
    }

    fn commit(&mut self) -> Outcome<()> {
        self.bytes = 0;
        if !self.overlay.is_empty() {
            self.store.commit(&mut self.overlay)?;
        }
        Ok(())
    }
}
