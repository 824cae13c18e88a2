//! A store in a map, for this crate's own tests.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Mutex;

use drumlin_base::{Error, Result};
use drumlin_fs::Env;

use crate::flags::Flags;
use crate::store::{Cursor, Session, Store};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything in one map behind one lock.
#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    map: Mutex<Map>,
    /// A file that goes in the background.
    obsolete: Option<(PathBuf, Env)>,
}

/// Its name.
pub(crate) const OBSOLETE: &str = "obsolete";

impl Store for MemoryStore {
    type Session<'a> = MemorySession<'a>;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        let path = PathBuf::from(&flags.db).join(OBSOLETE);
        Ok(Self {
            obsolete: env.files.exists(&path)?.then(|| (path, env.clone())),
            ..Self::default()
        })
    }
    fn destroy(_: &Flags, _: &Env) -> Result<()> {
        Ok(())
    }
    fn close(self) -> Result<()> {
        Ok(())
    }
    fn session(&self, flags: &Flags) -> Self::Session<'_> {
        MemorySession {
            store: self,
            batch: Vec::new(),
            broken: flags.wal_dir == "broken",
        }
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn compact(&self) -> Result<()> {
        Ok(())
    }
    fn wait_for_background(&self) -> Result<()> {
        match &self.obsolete {
            Some((path, env)) => env.files.remove(path),
            None => Ok(()),
        }
    }
    fn property(&self, name: &str) -> Option<String> {
        let entries = self.map.lock().expect("no panics here").len();
        (name == "rocksdb.stats").then(|| format!("{entries} entries"))
    }
    fn version() -> String {
        "Memory".to_owned()
    }
}

#[derive(Debug)]
pub(crate) struct MemorySession<'s> {
    store: &'s MemoryStore,
    batch: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    broken: bool,
}

impl Session for MemorySession<'_> {
    type Cursor<'a>
        = MemoryCursor
    where
        Self: 'a;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch_put(key, value)?;
        self.batch_write()
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push((key.to_vec(), Some(value.to_vec())));
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.push((key.to_vec(), None));
        Ok(())
    }
    fn batch_delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        let map = self.store.map.lock().expect("no panics here");
        let keys = map.range::<[u8], _>((Bound::Included(begin), Bound::Excluded(end)));
        self.batch.extend(keys.map(|(key, _)| (key.clone(), None)));
        Ok(())
    }
    fn batch_write(&mut self) -> Result<()> {
        if self.broken {
            return Err(Error::corruption("this store is broken"));
        }
        let mut map = self.store.map.lock().expect("no panics here");
        for (key, value) in self.batch.drain(..) {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let map = self.store.map.lock().expect("no panics here");
        Ok(map.get(key).map(|value| on_value(value)).is_some())
    }
    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<MemoryCursor> {
        let map = self.store.map.lock().expect("no panics here");
        let lower = lower.map_or(Bound::Unbounded, Bound::Included);
        let upper = upper.map_or(Bound::Unbounded, Bound::Excluded);
        let range = map.range::<[u8], _>((lower, upper));
        let entries = range.map(|(key, value)| (key.clone(), value.clone()));
        Ok(MemoryCursor {
            entries: entries.collect(),
            at: None,
        })
    }
}

#[derive(Debug)]
pub(crate) struct MemoryCursor {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: Option<usize>,
}

impl Cursor for MemoryCursor {
    fn seek_to_first(&mut self) {
        self.at = Some(0);
    }
    fn seek_to_last(&mut self) {
        self.at = self.entries.len().checked_sub(1);
    }
    fn seek(&mut self, key: &[u8]) {
        self.at = Some(
            self.entries
                .partition_point(|entry| entry.0.as_slice() < key),
        );
    }
    fn next(&mut self) {
        self.at = self.at.map(|at| at + 1);
    }
    fn prev(&mut self) {
        self.at = self.at.and_then(|at| at.checked_sub(1));
    }
    fn valid(&self) -> bool {
        self.at.is_some_and(|at| at < self.entries.len())
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at.expect("valid")].0
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at.expect("valid")].1
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}
