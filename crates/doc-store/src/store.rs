//! The database behind the collections.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use drumlin::{Db, Error, ErrorKind, Options, ReadOptions, ReadTier, Result, WriteBatch};
use drumlin_base::rng::Rng;
use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::Ordering;

use crate::catalog::{Catalog, Collection, Name};
use crate::families::{self, Families};
use crate::layout::{BUILDING, ENTRY, Ident, MULTIKEY, count_keys, mark_key, range_of};
use crate::locks::Locks;
use crate::pace::{Pace, not_at_once};
use crate::reads::Reads;

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// Options of the engine: its budget, environment and so on. Its families' options are the store's own.
    pub engine: Options,
}

/// See the crate.
pub struct Store {
    pub(crate) db: Db,
    pub(crate) families: Families,
    pub(crate) locks: Locks,
    /// Held for as long as it takes to write a change of the catalog to the log, so that readers see both sides of it or none.
    pub(crate) catalog: Mutex<Arc<Catalog>>,
    pub(crate) random: Mutex<Rng>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.db.path().display())
    }
}

impl Store {
    /// Opens the store in `dir`, or makes one in an empty or missing directory. Reads the catalog: a record a collection.
    ///
    /// # Errors
    /// Of the engine; `InvalidArgument` where the directory has another program's data; `NotSupported` for a later version's.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self> {
        let random = Mutex::new(Rng::new(options.engine.env.seed));
        let (db, families) = families::open(dir, options.engine)?;
        let store = Self {
            db,
            families,
            locks: Locks::default(),
            catalog: Mutex::default(),
            random,
        };
        store.give_up_builds()?;
        let catalog = store.read_catalog()?;
        *store.catalog.lock() = Arc::new(catalog);
        Ok(store)
    }

    /// The engine.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The collections as they are now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.lock())
    }

    /// Catalog and data of one moment.
    pub fn reads(&self) -> Reads<'_> {
        self.reads_by(ReadTier::Disk)
    }

    /// As [`Store::reads`], but what is in no memory, not in the system's either, is an error, `Incomplete`: nothing waits for the disk.
    pub fn reads_in_memory(&self) -> Reads<'_> {
        match drumlin_base::bug!("mongo-lookups-wait-for-the-disk") {
            true => self.reads(),
            false => self.reads_by(ReadTier::PageCache),
        }
    }

    fn reads_by(&self, tier: ReadTier) -> Reads<'_> {
        let catalog = self.catalog.lock();
        Reads {
            db: &self.db,
            families: &self.families,
            catalog: Arc::clone(&catalog),
            view: self.db.view(),
            tier,
        }
    }

    /// The collection of that name.
    pub fn collection(&self, name: &Name) -> Option<Arc<Collection>> {
        self.catalog.lock().get(name).cloned()
    }

    /// Random bytes for names that nobody else has.
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.random.lock().fill(&mut bytes);
        bytes
    }

    /// Has all that is written outlive a power cut.
    ///
    /// # Errors
    /// Of the sync.
    pub fn sync(&self) -> Result<()> {
        self.db.sync_wal().map(|_| ())
    }

    pub(crate) fn commit(&self, batch: WriteBatch) -> Result<()> {
        self.commit_paced(batch, Pace::InTurn)
    }

    pub(crate) fn commit_paced(&self, batch: WriteBatch, pace: Pace) -> Result<()> {
        match self.db.write(batch, &pace.write_options()) {
            Err(error) if pace == Pace::AtOnce && error.kind() == ErrorKind::Busy => {
                Err(not_at_once())
            }
            written => written,
        }
    }

    /// Removes what builds of indexes and of capped collections left that a crash ended.
    fn give_up_builds(&self) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (key, _) in self.marked(BUILDING)? {
            let ident = ident_of(&key)?;
            self.remove_range(ident, &mut batch)?;
            batch.delete(&key)?;
        }
        if batch.is_empty() {
            Ok(())
        } else {
            self.commit(batch)
        }
    }

    /// Appends the deletion of all that lies under an ident.
    pub(crate) fn remove_range(&self, ident: Ident, batch: &mut WriteBatch) -> Result<()> {
        let (begin, end) = range_of(ident);
        for family in [&self.families.docs, &self.families.index] {
            batch.delete_range_cf(family.id(), &begin, &end)?;
        }
        Ok(())
    }

    /// The entries of the default family that begin with `mark`.
    fn marked(&self, mark: u8) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let options = ReadOptions {
            lower_bound: Some(vec![mark]),
            upper_bound: Some(vec![mark + 1]),
            ..ReadOptions::default()
        };
        let mut iter = self.db.iter(options);
        let mut found = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            found.push((iter.key().to_vec(), iter.value().to_vec()));
            iter.next();
        }
        iter.status()?;
        Ok(found)
    }

    fn read_catalog(&self) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        for (key, stored) in self.marked(ENTRY)? {
            let collection = Collection::decode(&key, &stored)?;
            let [documents, bytes] = count_keys(collection.ident).map(|key| self.db.get(key));
            let number = |stored: Option<drumlin::PinnedSlice>| {
                let damaged =
                    || Error::corruption(format!("a count of {} is not whole", collection.name));
                stored.map_or(Ok(0), |stored| {
                    stored
                        .as_ref()
                        .try_into()
                        .map(u64::from_le_bytes)
                        .map_err(|_| damaged())
                })
            };
            collection.counts.add(number(documents?)?, number(bytes?)?);
            if collection.bounds().is_some() {
                self.reads().find_places(&collection)?;
            }
            for index in &collection.indexes {
                let mark = self.db.get(mark_key(MULTIKEY, index.ident))?;
                index.multikey.store(mark.is_some(), Ordering::Release);
            }
            catalog = catalog.with(collection);
        }
        Ok(catalog)
    }
}

fn ident_of(mark: &[u8]) -> Result<Ident> {
    let bytes = mark.get(1..).and_then(|bytes| bytes.try_into().ok());
    let damaged = || Error::corruption("a mark of an index is not whole");
    bytes.map(Ident::from_be_bytes).ok_or_else(damaged)
}
