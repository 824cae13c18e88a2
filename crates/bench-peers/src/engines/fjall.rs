//! fjall: an LSM tree in Rust.

use std::fmt;
use std::ops::Bound;

use drumlin_base::{Error, Result};
use drumlin_bench::{Flags, Session, Store};
use drumlin_fs::Env;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    CompressionType, Database, Guard, Iter, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch,
    PersistMode, Slice,
};

use super::walk::{Ends, Piece, Ranges, Walk};
use super::{given, quiet, remove_store};

const JOURNAL_BYTES_MIN: u64 = 512 << 20;

fn failed(error: impl fmt::Display) -> Error {
    super::failed("fjall", error)
}

/// A database with one keyspace.
pub(crate) struct FjallStore {
    db: Database,
    keyspace: Keyspace,
}

impl Store for FjallStore {
    type Session<'a> = FjallSession<'a>;

    fn open(flags: &Flags, _: &Env) -> Result<Self> {
        if flags.compression_type != "none" {
            let message = "fjall is built without compression here; use --compression_type=none";
            return Err(Error::invalid_argument(message));
        }
        let memtable = flags.write_buffer_size.max(1 << 20);
        let mut builder = Database::builder(&flags.db)
            .cache_size(given(flags.cache_size, 32 << 20) as u64)
            .max_journaling_size((4 * memtable).max(JOURNAL_BYTES_MIN))
            .manual_journal_persist(flags.disable_wal);
        if flags.max_background_jobs > 0 {
            builder = builder.worker_threads(flags.max_background_jobs);
        }
        let db = builder.open().map_err(failed)?;
        let keyspace = db.keyspace("default", || options(flags)).map_err(failed)?;
        Ok(Self { db, keyspace })
    }

    fn destroy(flags: &Flags, _: &Env) -> Result<()> {
        remove_store(&flags.db, &["keyspaces", "version", "lock"])
    }

    fn close(self) -> Result<()> {
        self.db.persist(PersistMode::Buffer).map_err(failed)
    }

    fn session(&self, flags: &Flags) -> FjallSession<'_> {
        FjallSession {
            store: self,
            batch: self.db.batch(),
            sync: flags.sync,
        }
    }

    fn flush(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(failed)
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.keyspace.major_compact().map_err(failed)
    }

    fn wait_for_background(&self) -> Result<()> {
        quiet::wait_until_idle();
        Ok(())
    }

    fn version() -> String {
        "fjall:      3.1".to_owned()
    }
}

fn options(flags: &Flags) -> KeyspaceCreateOptions {
    let filter = if flags.bloom_bits > 0.0 {
        let bits = BloomConstructionPolicy::BitsPerKey(flags.bloom_bits as f32);
        FilterPolicy::all(FilterPolicyEntry::Bloom(bits))
    } else if flags.bloom_bits == 0.0 {
        FilterPolicy::disabled()
    } else {
        return sized(flags, KeyspaceCreateOptions::default());
    };
    sized(
        flags,
        KeyspaceCreateOptions::default().filter_policy(filter),
    )
}

fn sized(flags: &Flags, mut options: KeyspaceCreateOptions) -> KeyspaceCreateOptions {
    if flags.write_buffer_size > 0 {
        options = options.max_memtable_size(flags.write_buffer_size);
    }
    let block_bytes = u32::try_from(flags.block_size).unwrap_or(4096);
    options
        .data_block_size_policy(BlockSizePolicy::all(block_bytes))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
}

/// One thread's handle.
pub(crate) struct FjallSession<'s> {
    store: &'s FjallStore,
    batch: OwnedWriteBatch,
    sync: bool,
}

impl FjallSession<'_> {
    fn sync(&self) -> Result<()> {
        if self.sync {
            self.store
                .db
                .persist(PersistMode::SyncData)
                .map_err(failed)?;
        }
        Ok(())
    }
}

impl Session for FjallSession<'_> {
    type Cursor<'a>
        = Walk<Entries>
    where
        Self: 'a;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.keyspace.insert(key, value).map_err(failed)?;
        self.sync()
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(&self.store.keyspace, key, value);
        Ok(())
    }

    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.remove(&self.store.keyspace, key);
        Ok(())
    }

    fn batch_write(&mut self) -> Result<()> {
        let full = std::mem::replace(&mut self.batch, self.store.db.batch());
        full.commit().map_err(failed)?;
        self.sync()
    }

    #[inline]
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let value = self.store.keyspace.get(key).map_err(failed)?;
        Ok(value.map(|value| on_value(&value)).is_some())
    }

    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Walk<Entries>> {
        let entries = Entries(self.store.keyspace.clone());
        Ok(Walk::new(entries, lower, upper))
    }
}

/// The entries of a keyspace, as ranges.
pub(crate) struct Entries(Keyspace);

/// Turns a guard into the entry it stands for.
fn entry(guard: Guard) -> Result<(Slice, Slice)> {
    guard.into_inner().map_err(failed)
}

/// `ends` with bytes of its own, as fjall's signature wants them.
fn owned(ends: Ends<'_>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (ends.0.map(<[u8]>::to_vec), ends.1.map(<[u8]>::to_vec))
}

impl Piece for Slice {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Ranges for Entries {
    type Piece = Slice;
    type Up = std::iter::Map<Iter, fn(Guard) -> Result<(Slice, Slice)>>;
    type Down = std::iter::Map<std::iter::Rev<Iter>, fn(Guard) -> Result<(Slice, Slice)>>;

    fn up(&self, ends: Ends<'_>) -> Result<Self::Up> {
        Ok(self.0.range(owned(ends)).map(entry))
    }

    fn down(&self, ends: Ends<'_>) -> Result<Self::Down> {
        Ok(self.0.range(owned(ends)).rev().map(entry))
    }
}
