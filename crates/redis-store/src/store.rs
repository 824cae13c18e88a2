//! The database behind the server.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::{Db, Error, ReadOptions, ReadTier, Result, SeqNo, View, WriteBatch, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_base::sync::Mutex;
use parking_lot::RwLock;

use crate::families::{self, Families, FamilyName, StoreOptions};
use crate::filters::Watermark;
use crate::keys::from_u48;
use crate::live::Live;
use crate::overlay::Overlay;

/// Databases of a store: what `SELECT` takes is below it.
pub const DATABASES: u16 = 16;

/// The version of the layout, under `format` in the default family.
const FORMAT: &[u8] = b"drumlin-redis 1";

/// Numbers of collections that are reserved at once.
const CIDS_RESERVED: u64 = 1 << 16;

/// Whether reads may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// No: a command that needs a block that is not in memory fails as [`crate::Failure::Cold`].
    Memory,
    /// Yes.
    Disk,
}

/// See the crate. Any number of threads may read; one at a time makes changes.
pub struct Store {
    db: Db,
    pub(crate) families: Families,
    pub(crate) live: Arc<Live>,
    pub(crate) watermark: Arc<Watermark>,
    /// Of the hashes in keys: an adversary who knows it makes keys that meet in one place.
    pub(crate) seed: u64,
    /// The physical number of each database; `SWAPDB` exchanges two.
    pub(crate) databases: RwLock<Arc<[u16]>>,
    next_cid: AtomicU64,
    cids_until: AtomicU64,
    reserving: Mutex<()>,
    from_memory: ReadOptions,
    from_disk: ReadOptions,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.db.path().display())
    }
}

impl Store {
    /// Opens the store in `dir`, or makes one in an empty or missing directory.
    ///
    /// # Errors
    /// Of the engine; `InvalidArgument` where the directory has another program's data; `NotSupported` for a later
    /// version's.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self> {
        let seed = Rng::new(options.engine.env.seed).next_u64();
        let (db, families, filters) = families::open(dir, options.engine)?;
        let seed = check_format(&db, seed)?;
        let databases = match db.get(b"databases")? {
            Some(stored) => stored
                .chunks_exact(2)
                .map(|pair| pair.try_into().map_or(0, u16::from_be_bytes))
                .collect(),
            None => (0..DATABASES).collect::<Vec<_>>(),
        };
        if databases.len() != usize::from(DATABASES) {
            return Err(Error::corruption("the map of databases is not whole"));
        }
        if let Some(ms) = number(&db, b"watermark")? {
            filters.watermark.opened(ms);
        }
        // Deaths of the last run that only the WAL knows count once they are synced.
        db.sync_wal()?;
        let live = Arc::new(Live::new(
            db.latest_seqno(),
            alive(&db, &families)?.into_iter(),
        ));
        assert!(filters.live.set(Arc::clone(&live)).is_ok(), "set once");
        let store = Self {
            db,
            families,
            live,
            watermark: filters.watermark,
            seed,
            databases: RwLock::new(databases.into()),
            next_cid: AtomicU64::new(0),
            cids_until: AtomicU64::new(0),
            reserving: Mutex::new(()),
            from_memory: ReadOptions {
                tier: ReadTier::PageCache,
                ..ReadOptions::default()
            },
            from_disk: ReadOptions::default(),
        };
        store.reserve_cids()?;
        Ok(store)
    }

    /// The engine.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The present moment, for the commands of one round.
    pub fn view(&self) -> View {
        self.db.view()
    }

    /// Compacts all families, so that what is dead or expired takes no room.
    ///
    /// # Errors
    /// Of the engine.
    pub fn compact(&self) -> Result<()> {
        self.db.sync_wal()?;
        for family in self.db.families() {
            self.db.compact_range(&family, None, None)?;
        }
        Ok(())
    }

    /// Bytes that the engine has in memory: memtables, blocks, filters, indexes.
    pub fn memory_bytes(&self) -> u64 {
        let number = |family: FamilyName, name: &str| -> u64 {
            let text = self.db.property(self.families.of(family), name);
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let memtables = FamilyName::ALL.map(|it| number(it, "rocksdb.cur-size-all-mem-tables"));
        let shared = [
            "rocksdb.block-cache-usage",
            "rocksdb.estimate-table-readers-mem",
        ];
        let shared = shared.map(|name| number(FamilyName::Keys, name));
        memtables.iter().chain(&shared).sum()
    }

    /// Collections that are alive.
    pub fn collections(&self) -> u64 {
        self.live.count()
    }

    pub(crate) fn reads(&self, from: ReadFrom) -> &ReadOptions {
        match from {
            ReadFrom::Memory => &self.from_memory,
            ReadFrom::Disk => &self.from_disk,
        }
    }

    /// The time of commands: `clock_ms`, or just past the watermark of expiry if the clock is behind it.
    pub fn now_ms(&self, clock_ms: u64) -> u64 {
        clock_ms.max(self.watermark.newest_ms().saturating_add(1))
    }

    /// Appends the overlay's changes to `batch`.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn prepare(&self, overlay: &Overlay, batch: &mut WriteBatch) -> Result<()> {
        overlay.write_to(batch, &self.families)?;
        if let Some(map) = overlay.databases() {
            let bytes: Vec<u8> = map.iter().flat_map(|db| db.to_be_bytes()).collect();
            batch.put(b"databases", &bytes)?;
        }
        if let Some(ms) = overlay.watermark_ms {
            batch.put(b"watermark", &ms.to_be_bytes())?;
        }
        Ok(())
    }

    /// Writes a prepared batch.
    ///
    /// # Errors
    /// Of [`Db::commit`]; the batch is whole then.
    pub fn write(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<SeqNo> {
        self.db.commit(batch, options)
    }

    /// After `overlay` was written by the batch that ended with `seqno`: takes its changes over and empties it.
    pub fn settle(&self, overlay: &mut Overlay, seqno: SeqNo) {
        self.live.apply(overlay.lives(), seqno);
        if let Some(map) = overlay.databases() {
            *self.databases.write() = Arc::clone(map);
        }
        if let Some(ms) = overlay.watermark_ms {
            self.watermark.wrote(seqno, ms);
        }
        overlay.clear();
    }

    /// Writes all changes of `overlay` at once and waits as long as the engine asks.
    ///
    /// # Errors
    /// Of [`Db::commit`]; the overlay is whole then.
    pub fn commit(&self, overlay: &mut Overlay) -> Result<SeqNo> {
        let mut batch = WriteBatch::new();
        self.prepare(overlay, &mut batch)?;
        let seqno = self.write(&mut batch, &WriteOptions::default())?;
        self.settle(overlay, seqno);
        Ok(seqno)
    }

    /// A number for a new collection, never used before.
    pub(crate) fn new_cid(&self) -> Result<u64> {
        loop {
            // Only one thread makes changes; the check is for those that reserve beside it.
            let cid = self.next_cid.load(Ordering::Acquire);
            if cid < self.cids_until.load(Ordering::Acquire) {
                let next = self.next_cid.compare_exchange(
                    cid,
                    cid + 1,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if next.is_ok() {
                    return Ok(cid);
                }
            } else {
                self.reserve_cids()?;
            }
        }
    }

    /// Reserves the next block of numbers if the present one is half used. Costs a synced write then; called from time
    /// to time by a thread that may wait, so that those who make collections need not.
    ///
    /// # Errors
    /// Of the write.
    pub fn reserve_cids(&self) -> Result<()> {
        let _reserving = self.reserving.lock();
        let until = self.cids_until.load(Ordering::Acquire);
        let left = until.saturating_sub(self.next_cid.load(Ordering::Acquire));
        if left > CIDS_RESERVED / 2 {
            return Ok(());
        }
        let stored = number(&self.db, b"cids")?.unwrap_or(1);
        let reserved = stored + CIDS_RESERVED;
        assert!(reserved < 1 << 48, "2^48 collections were made");
        let mut batch = WriteBatch::new();
        batch.put(b"cids", &reserved.to_be_bytes())?;
        self.db.write(batch, &WriteOptions::synced())?;
        // A block that was reserved by an earlier run is left alone: nobody knows how much of it is used.
        if until == 0 {
            self.next_cid.store(stored, Ordering::Release);
        }
        self.cids_until.store(reserved, Ordering::Release);
        Ok(())
    }
}

/// Checks the format that the default family names, or writes it to an empty database, and returns the stored seed.
fn check_format(db: &Db, new_seed: u64) -> Result<u64> {
    match db.get(b"format")? {
        Some(format) if *format == *FORMAT => {
            let missing = || Error::corruption("the seed of the keyspace is missing");
            number(db, b"seed")?.ok_or_else(missing)
        }
        Some(format) => Err(Error::not_supported(format!(
            "the keyspace has the format {:?}; this build knows {:?}",
            String::from_utf8_lossy(&format),
            String::from_utf8_lossy(FORMAT),
        ))),
        None => {
            let mut iter = db.iter(ReadOptions::default());
            iter.seek_to_first();
            iter.status()?;
            if iter.valid() {
                return Err(Error::invalid_argument(
                    "the directory holds a database that is not a keyspace of this server",
                ));
            }
            let mut batch = WriteBatch::new();
            batch.put(b"format", FORMAT)?;
            batch.put(b"seed", &new_seed.to_be_bytes())?;
            db.write(batch, &WriteOptions::synced())?;
            Ok(new_seed)
        }
    }
}

fn number(db: &Db, name: &[u8]) -> Result<Option<u64>> {
    let Some(stored) = db.get(name)? else {
        return Ok(None);
    };
    let bytes = stored.as_ref().try_into().map_err(|_| {
        let name = String::from_utf8_lossy(name);
        Error::corruption(format!("the number {name} of the keyspace is not whole"))
    })?;
    Ok(Some(u64::from_be_bytes(bytes)))
}

/// The collections in the `live` family: (db, cid, hash of the owner).
fn alive(db: &Db, families: &Families) -> Result<Vec<(u16, u64, u64)>> {
    let mut iter = db.iter_cf(&families.live, ReadOptions::default());
    let mut alive = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let damaged = || Error::corruption("an entry of the family live is not whole");
        let key: [u8; 8] = iter.key().try_into().map_err(|_| damaged())?;
        let [d0, d1, cid @ ..] = key;
        let hash = iter.value().first_chunk::<8>().ok_or_else(damaged)?;
        alive.push((
            u16::from_be_bytes([d0, d1]),
            from_u48(cid),
            u64::from_be_bytes(*hash),
        ));
        iter.next();
    }
    iter.status()?;
    Ok(alive)
}
