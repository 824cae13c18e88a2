//! redb: a copy-on-write B+ tree in Rust.
//!
//! Commits are not synced (`Durability::None`) and gather [`PUTS_A_COMMIT`] puts; flushing commits
//! durably.

use std::cell::Cell;
use std::fmt;
use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_bench::{Flags, Session, Store};
use drumlin_fs::Env;
use redb::{
    AccessGuard, Database, Durability, Range, ReadOnlyTable, ReadableDatabase, TableDefinition,
};

use super::pending::{PUTS_A_COMMIT, Pending, READS_A_TRANSACTION};
use super::walk::{Ends, Piece, Ranges, Walk};
use super::{given, quiet, remove_store};

type Bytes = &'static [u8];
type Guard = AccessGuard<'static, Bytes>;

const FILE: &str = "data.redb";
const TABLE: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("default");

fn failed(error: impl fmt::Display) -> Error {
    super::failed("redb", error)
}

/// A database with one table.
pub(crate) struct RedbStore {
    db: Database,
}

impl RedbStore {
    fn commit(&self, pending: &Pending, durability: Durability) -> Result<()> {
        let mut transaction = self.db.begin_write().map_err(failed)?;
        transaction.set_durability(durability).map_err(failed)?;
        {
            let mut table = transaction.open_table(TABLE).map_err(failed)?;
            for (key, value) in pending.iter() {
                match value {
                    Some(value) => table.insert(key, value).map(drop).map_err(failed)?,
                    None => table.remove(key).map(drop).map_err(failed)?,
                }
            }
        }
        transaction.commit().map_err(failed)
    }
}

impl Store for RedbStore {
    type Session<'a> = RedbSession<'a>;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        let dir = Path::new(&flags.db);
        env.files.create_dir_all(dir)?;
        let db = Database::builder()
            .set_cache_size(given(flags.cache_size, 32 << 20))
            .create(dir.join(FILE))
            .map_err(failed)?;
        let store = Self { db };
        // Makes the table, so that readers find it.
        store.commit(&Pending::default(), Durability::Immediate)?;
        Ok(store)
    }

    fn destroy(flags: &Flags, _: &Env) -> Result<()> {
        remove_store(&flags.db, &[FILE])
    }

    fn close(self) -> Result<()> {
        self.flush()
    }

    fn session(&self, flags: &Flags) -> RedbSession<'_> {
        RedbSession {
            store: self,
            pending: Pending::default(),
            table: None,
            reads_left: Cell::new(0),
            durability: if flags.sync {
                Durability::Immediate
            } else {
                Durability::None
            },
        }
    }

    fn flush(&self) -> Result<()> {
        self.commit(&Pending::default(), Durability::Immediate)
    }

    fn compact(&self) -> Result<()> {
        Err(Error::not_supported(
            "redb compacts only when it is not shared",
        ))
    }

    fn wait_for_background(&self) -> Result<()> {
        quiet::wait_until_idle();
        Ok(())
    }

    fn version() -> String {
        format!("redb:       4.5 ({PUTS_A_COMMIT} puts a commit, not synced)")
    }
}

/// One thread's handle.
pub(crate) struct RedbSession<'s> {
    store: &'s RedbStore,
    pending: Pending,
    table: Option<ReadOnlyTable<Bytes, Bytes>>,
    reads_left: Cell<usize>,
    durability: Durability,
}

impl RedbSession<'_> {
    /// The table as of at most [`READS_A_TRANSACTION`] reads ago, and after this session's writes.
    fn table(&mut self) -> Result<&ReadOnlyTable<Bytes, Bytes>> {
        self.write_pending()?;
        if self.reads_left.get() == 0 {
            self.table = None;
            self.reads_left.set(READS_A_TRANSACTION);
        }
        self.reads_left.set(self.reads_left.get() - 1);
        match &mut self.table {
            Some(table) => Ok(table),
            slot => {
                let transaction = self.store.db.begin_read().map_err(failed)?;
                Ok(slot.insert(transaction.open_table(TABLE).map_err(failed)?))
            }
        }
    }

    fn write_pending(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.table = None;
        let result = self.store.commit(&self.pending, self.durability);
        self.pending.clear();
        result
    }

    fn write_if_full(&mut self) -> Result<()> {
        let puts = if matches!(self.durability, Durability::None) {
            PUTS_A_COMMIT
        } else {
            1
        };
        if self.pending.len() < puts {
            return Ok(());
        }
        self.write_pending()
    }
}

impl Drop for RedbSession<'_> {
    fn drop(&mut self) {
        // A put that cannot be written at the end shows when its key is looked up.
        let _unreported = self.write_pending();
    }
}

impl Session for RedbSession<'_> {
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
        let value = self.table()?.get(key).map_err(failed)?;
        Ok(value.map(|value| on_value(value.value())).is_some())
    }

    fn cursor(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Walk<Entries<'_>>> {
        Ok(Walk::new(Entries(self.table()?), lower, upper))
    }
}

/// The entries of the table, as ranges.
pub(crate) struct Entries<'t>(&'t ReadOnlyTable<Bytes, Bytes>);

type RedbEntry = redb::Result<(Guard, Guard), redb::StorageError>;
type ToEntry = fn(RedbEntry) -> Result<(Guard, Guard)>;

fn entry(entry: RedbEntry) -> Result<(Guard, Guard)> {
    entry.map_err(failed)
}

impl Piece for Guard {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.value()
    }
}

impl Ranges for Entries<'_> {
    type Piece = Guard;
    type Up = std::iter::Map<Range<'static, Bytes, Bytes>, ToEntry>;
    type Down = std::iter::Map<std::iter::Rev<Range<'static, Bytes, Bytes>>, ToEntry>;

    fn up(&self, ends: Ends<'_>) -> Result<Self::Up> {
        Ok(self.0.range::<&[u8]>(ends).map_err(failed)?.map(entry))
    }

    fn down(&self, ends: Ends<'_>) -> Result<Self::Down> {
        Ok(self
            .0
            .range::<&[u8]>(ends)
            .map_err(failed)?
            .rev()
            .map(entry))
    }
}
