//! RDB files into a store.

use std::path::Path;

use drumlin::{Error, ErrorKind, Result};
use drumlin_fs::Env;
use drumlin_rdb::{Collector, Event, Item, KeyHead, Kind, Limits, Reader};
use drumlin_redis_store::{DATABASES, Failure, Keyspace, Outcome, Overlay, ReadFrom, Store};

use super::values;

/// Bytes of one read of the file, and of one batch of changes, about.
const PIECE_BYTES: usize = 1 << 20;
const BATCH_BYTES: usize = 4 << 20;
/// Items that go into a collection at a time.
const ITEMS: usize = 1_024;
/// Memory of a value that is gathered whole.
const VALUE_BYTES_MAX: usize = 1 << 30;

/// The contents of a file that was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Keys that are there now.
    pub keys: u64,
    /// Keys that had expired, which are passed over.
    pub expired: u64,
    /// Libraries of functions, which are passed over.
    pub functions: u64,
    /// Bytes that were read.
    pub bytes: u64,
}

/// Loads the RDB file at `path` into `store`. A key that is there already is replaced. `tell` is told of what is loaded, now
/// and then, and of the size of the file.
///
/// # Errors
/// `Corruption`, `NotSupported` and others with the file, the offset and the key; `Io`. What came before in the file is loaded
/// then.
pub(crate) fn load(
    store: &Store,
    env: &Env,
    path: &Path,
    tell: &mut dyn FnMut(&Loaded, u64),
) -> Result<Loaded> {
    let file = env
        .files
        .open(path)
        .map_err(|error| error.with_file(path))?;
    let size = file.size();
    let limits = Limits {
        file_bytes: Some(size),
        ..Limits::default()
    };
    let mut reader = Reader::new(limits);
    let mut loader = Loader::new(store, env);
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
                tell(&loader.done, size);
            }
            Err(error) => break Err(error),
        }
    };
    let told = outcome.map_err(|error| loader.explain(&error, reader.offset(), path));
    loader.commit().map_err(engine_error)?;
    store.db().sync_wal()?;
    told?;
    tell(&loader.done, size);
    Ok(loader.done)
}

fn engine_error(failure: Failure) -> Error {
    match failure {
        Failure::Engine(error) => error,
        other => Error::new(ErrorKind::InvalidArgument, other.to_string()),
    }
}

/// The key that is being loaded.
struct Present {
    head: KeyHead,
    expired: bool,
    /// Items that are not in the keyspace yet.
    items: Collector,
    waiting: usize,
    has_any: bool,
}

struct Loader<'s> {
    store: &'s Store,
    now_ms: u64,
    overlay: Overlay,
    /// Bytes of the changes in it, about.
    bytes: usize,
    present: Option<Present>,
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
            Event::Function(_) => {
                self.done.functions += 1;
                Ok(())
            }
            Event::Begin(_) | Event::Aux(..) | Event::Size(..) | Event::Slot(..) | Event::End => {
                Ok(())
            }
        }
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
        let changed = change(&mut keys);
        self.overlay.keep();
        changed
    }

    fn begin(&mut self, head: KeyHead) -> Outcome<()> {
        // As a primary does: what has expired is not loaded. Times before 1970 are of the past too.
        let until = head.expire_ms.map(|ms| u64::try_from(ms).unwrap_or(0));
        let expired = until.is_some_and(|ms| ms < self.now_ms);
        if !expired {
            self.change(head.db, |keys| {
                if let Some(record) = keys.lookup(&head.key)? {
                    keys.remove(&head.key, &record);
                }
                Ok(())
            })?;
        }
        self.present = Some(Present {
            items: Collector::new(head.kind, VALUE_BYTES_MAX),
            head,
            expired,
            waiting: 0,
            has_any: false,
        });
        Ok(())
    }

    fn item(&mut self, item: Item) -> Outcome<()> {
        let Some(present) = &mut self.present else {
            return Ok(());
        };
        present.has_any = true;
        if present.expired {
            return Ok(());
        }
        self.bytes += match &item {
            Item::String(bytes) | Item::Element(bytes) | Item::Member(bytes) => bytes.len(),
            Item::Scored(member, _) => member.len(),
            Item::Field(field) => field.name.len() + field.value.len(),
            _ => 0,
        } + 64;
        present.items.push(item)?;
        present.waiting += 1;
        // A stream comes whole.
        if present.head.kind != Kind::Stream && present.waiting >= ITEMS {
            self.append()?;
            self.commit_if_large()?;
        }
        Ok(())
    }

    fn append(&mut self) -> Outcome<()> {
        let Some(present) = &mut self.present else {
            return Ok(());
        };
        let collected = Collector::new(present.head.kind, VALUE_BYTES_MAX);
        let collected = std::mem::replace(&mut present.items, collected);
        present.waiting = 0;
        let (db, key) = (present.head.db, present.head.key.clone());
        match collected.finish()? {
            Some(value) => self.change(db, |keys| values::append(keys, &key, &value)),
            None => Ok(()),
        }
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
        self.done.keys += u64::from(present.has_any);
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
