//! A family out of one database and into another.

use std::path::Path;

use drumlin_base::Result;

use crate::db::handle::Db;
use crate::db::reader;
use crate::family::column_family::ColumnFamily;
use crate::maintenance::{export, import};
use crate::options::settings::{FamilyOptions, Options};

/// How [`Db::import_family`] takes a family in.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The options of the new family. `None`: the defaults, with what the source's OPTIONS file names and is built in (key
    /// order, merge operator, prefix extractor).
    pub family: Option<FamilyOptions>,
    /// Removes the tables from the source afterwards, which is then no database any more. One that cannot be removed is
    /// reported to the listener.
    pub move_files: bool,
}

impl Db {
    /// Makes `target`, which must not exist, a database whose family `default` has what `family` has now, and which has no
    /// other. Tables are linked, or copied to another file system; those with values in blob files are written anew with the
    /// values in them. The family is flushed first. [`Db::import_family`] takes it into another database, or under another name into this one.
    ///
    /// Writers go on meanwhile. RocksDB reads the directory as it reads this one.
    ///
    /// # Errors
    /// `InvalidArgument` when `target` exists, or the family was dropped; `ReadOnly`, `NoSpace`, `Io`; `Corruption` of a table
    /// that is written anew; `Shutdown` when the database is closed meanwhile. A partial copy is removed again.
    pub fn export_family(&self, family: &ColumnFamily, target: impl AsRef<Path>) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        export::export(&self.engine, &family.0, target.as_ref())
    }

    /// Makes the family `name` of the tables that the database in `source`, ours or RocksDB's, has in its family
    /// `default`: an export, or a whole database all of whose writes are in tables. Tables keep their levels and their
    /// sequence numbers, and are linked where they can be; nothing is written anew. The family is there with all of them,
    /// or not at all.
    ///
    /// The next sequence number is above all of theirs: it may grow by more than was written. A snapshot that is older
    /// than the family sees of it what has numbers up to its own.
    ///
    /// Each table is opened, and not read whole; [`Db::verify`] does that.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is taken, another key order, or a source with writes in its WAL; `NotFound` where
    /// `source` has no database; `NotSupported` of values in blob files, of a source in LevelDB's format, in a
    /// directory of LevelDB, and where [`Options::keep_changes`] is on; `Corruption` naming the table; `NoSpace`, `Io`.
    pub fn import_family(
        &self,
        name: &str,
        source: impl AsRef<Path>,
        import: ImportOptions,
    ) -> Result<ColumnFamily> {
        let _call = self.engine.store.begin_call()?;
        let family = import.family.clone().unwrap_or_default();
        let options = Options {
            env: self.engine.store.id.env.clone(),
            family,
            ..Options::default()
        };
        let (opened, _held) = reader::open_read_only(source.as_ref(), &options, false)?;
        let source = Self::from_engine(opened)?;
        let family = source.default_family().0.options.clone();
        let times = family.ttl;
        let mut options = import.family.unwrap_or(family);
        // Its values have times behind them, whatever the caller says of the rest.
        options.ttl = options.ttl.or(times);
        import::import(
            &self.engine,
            name,
            options,
            &source.engine,
            import.move_files,
        )
        .map(ColumnFamily)
    }
}
