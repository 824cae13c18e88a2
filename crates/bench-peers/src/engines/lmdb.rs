//! LMDB: a copy-on-write B+ tree in a memory map, in C.
//!
//! Commits are not synced (`MDB_NOSYNC`), write through the map (`MDB_WRITEMAP`) and gather
//! [`PUTS_A_COMMIT`] puts. The page cache is the system's: no flag bounds it.

use std::fmt;
use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_bench::{Flags, Session, Store};
use drumlin_fs::Env;
use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, EnvFlags, EnvOpenOptions, RoRange, RoRevRange, RoTxn, WithTls,
};

use super::pending::{PUTS_A_COMMIT, Pending, READS_A_TRANSACTION};
use super::walk::{Ends, Ranges, Walk};
use super::{quiet, remove_store};

/// Address space the map may take: 256 GB. The file grows only as pages are written.
const MAP_BYTES: usize = 256 << 30;

type Table = Database<'static, Bytes, Bytes>;

fn failed(error: impl fmt::Display) -> Error {
    super::failed("LMDB", error)
}

/// An environment with its unnamed database.
pub(crate) struct LmdbStore {
    env: heed::Env,
    table: Table,
}

impl LmdbStore {
    fn commit(&self, pending: &Pending) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        for (key, value) in pending.iter() {
            match value {
                Some(value) => {
                    self.table
                        .put(&mut transaction, key, value)
                        .map_err(failed)?;
                }
                None => {
                    self.table.delete(&mut transaction, key).map_err(failed)?;
                }
            }
        }
        transaction.commit().map_err(failed)
    }
}

impl Store for LmdbStore {
    type Session<'a> = LmdbSession<'a>;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        let dir = Path::new(&flags.db);
        env.files.create_dir_all(dir)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES);
        let mut modes = EnvFlags::WRITE_MAP;
        if !flags.sync {
            modes |= EnvFlags::NO_SYNC;
        }
        // SAFETY: without syncs a crash of the machine may damage the file; it holds benchmark data
        // that is thrown away, and no other process opens it.
        unsafe { options.flags(modes) };
        // SAFETY: no other process changes the file while it is mapped, and this process opens the
        // directory once at a time: `close` comes before the next `open`.
        let env = unsafe { options.open(dir) }.map_err(failed)?;
        let transaction = env.write_txn().map_err(failed)?;
        let table = env
            .create_databases_and_commit(transaction, |opener, transaction| {
                let table = opener.create_database::<Bytes, Bytes>(transaction, None)?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(table))
            })
            .map_err(failed)?
            .unwrap_commit();
        Ok(Self { env, table })
    }

    fn destroy(flags: &Flags, _: &Env) -> Result<()> {
        remove_store(&flags.db, &["data.mdb"])
    }

    fn close(self) -> Result<()> {
        self.env.prepare_for_closing().wait();
        Ok(())
    }

    fn session(&self, flags: &Flags) -> LmdbSession<'_> {
        LmdbSession {
            store: self,
            pending: Pending::default(),
            transaction: None,
            reads_left: 0,
            puts_a_commit: if flags.sync { 1 } else { PUTS_A_COMMIT },
        }
    }

    fn flush(&self) -> Result<()> {
        self.env.force_sync().map_err(failed)
    }

    fn compact(&self) -> Result<()> {
        Err(Error::not_supported(
            "LMDB compacts only by copying its file",
        ))
    }

    fn wait_for_background(&self) -> Result<()> {
        quiet::wait_until_idle();
        Ok(())
    }

    fn version() -> String {
        let version = heed::lmdb_version();
        let (major, minor, patch) = (version.major, version.minor, version.patch);
        format!("LMDB:       {major}.{minor}.{patch} ({PUTS_A_COMMIT} puts a commit, not synced)")
    }
}

/// One thread's handle.
pub(crate) struct LmdbSession<'s> {
    store: &'s LmdbStore,
    pending: Pending,
    transaction: Option<RoTxn<'s, WithTls>>,
    reads_left: usize,
    puts_a_commit: usize,
}

impl<'s> LmdbSession<'s> {
    /// A moment at most [`READS_A_TRANSACTION`] reads ago, and after this session's writes.
    fn moment(&mut self) -> Result<&RoTxn<'s, WithTls>> {
        self.write_pending()?;
        if self.reads_left == 0 {
            self.transaction = None;
            self.reads_left = READS_A_TRANSACTION;
        }
        self.reads_left -= 1;
        match &mut self.transaction {
            Some(transaction) => Ok(transaction),
            slot => Ok(slot.insert(self.store.env.read_txn().map_err(failed)?)),
        }
    }

    fn write_pending(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.transaction = None;
        let result = self.store.commit(&self.pending);
        self.pending.clear();
        result
    }

    fn write_if_full(&mut self) -> Result<()> {
        if self.pending.len() < self.puts_a_commit {
            return Ok(());
        }
        self.write_pending()
    }
}

impl Drop for LmdbSession<'_> {
    fn drop(&mut self) {
        // A put that cannot be written at the end shows when its key is looked up.
        let _unreported = self.write_pending();
    }
}

impl Session for LmdbSession<'_> {
    type Cursor<'a>
        = Walk<Entries<'a>>
    where
        Self: 'a;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pending.put(key, value);
        self.write_if_full()
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pending.put(key, value);
        Ok(())
    }

    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.pending.delete(key);
        Ok(())
    }

    fn batch_write(&mut self) -> Result<()> {
        self.write_if_full()
    }

    #[inline]
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let table = self.store.table;
        let value = table.get(self.moment()?, key).map_err(failed)?;
        Ok(value.map(on_value).is_some())
    }

    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Walk<Entries<'_>>> {
        let table = self.store.table;
        let entries = Entries {
            table,
            moment: self.moment()?,
        };
        Ok(Walk::new(entries, lower, upper))
    }
}

/// The entries of one moment, as ranges.
pub(crate) struct Entries<'t> {
    table: Table,
    moment: &'t RoTxn<'t, WithTls>,
}

type LmdbEntry<'t> = heed::Result<(&'t [u8], &'t [u8])>;
type ToEntry<'t> = fn(LmdbEntry<'t>) -> Result<(&'t [u8], &'t [u8])>;

fn entry(entry: LmdbEntry<'_>) -> Result<(&[u8], &[u8])> {
    entry.map_err(failed)
}

impl<'t> Ranges for Entries<'t> {
    type Piece = &'t [u8];
    type Up = std::iter::Map<RoRange<'t, Bytes, Bytes>, ToEntry<'t>>;
    type Down = std::iter::Map<RoRevRange<'t, Bytes, Bytes>, ToEntry<'t>>;

    fn up(&self, ends: Ends<'_>) -> Result<Self::Up> {
        let range = self.table.range(self.moment, &ends).map_err(failed)?;
        Ok(range.map(entry as ToEntry<'t>))
    }

    fn down(&self, ends: Ends<'_>) -> Result<Self::Down> {
        let range = self.table.rev_range(self.moment, &ends).map_err(failed)?;
        Ok(range.map(entry as ToEntry<'t>))
    }
}
