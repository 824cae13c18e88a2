//! How a database is opened: which families it has and which were named, and the texts of RocksDB where they do not agree.

use std::ffi::{CStr, c_int};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin::internals::info_log::Level;
use drumlin::{
    DEFAULT_FAMILY, Db, Error, ErrorKind, EventListener, FamilyOptions, Options, Result,
};
use drumlin_ffi::bytes::path_of;

use crate::family::Family;
use crate::listener::Hearers;
use crate::log_header;
use crate::options::OpenOptions;

/// What is done with the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    ReadWrite,
    ReadOnly {
        error_if_wal_file_exists: bool,
    },
    /// As [`Opening::open_by`] is told.
    Follow,
}

/// A family as a program names it, with its options.
pub(crate) struct Named<'a> {
    pub(crate) name: String,
    pub(crate) options: &'a OpenOptions,
    /// How long what is written lives.
    pub(crate) ttl: Option<Duration>,
}

/// A time to live as C has it: seconds, of which none and less is for ever.
pub(crate) fn time_to_live(seconds: c_int) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// One opening.
pub(crate) struct Opening<'a> {
    options: &'a OpenOptions,
    dir: PathBuf,
    mode: Mode,
}

impl<'a> Opening<'a> {
    pub(crate) fn new(options: &'a OpenOptions, name: &CStr, mode: Mode) -> Self {
        Self {
            options,
            dir: path_of(name),
            mode,
        }
    }

    /// Opens with `families`, or with the default one only where none is named; gives their handles in the same order.
    pub(crate) fn open(&self, families: &[Named<'_>]) -> Result<(Db, Vec<Family>)> {
        self.open_by(families, |dir, options| Db::open_read_only(dir, options))
    }

    /// The same, with a way to open for reading.
    pub(crate) fn open_by(
        &self,
        families: &[Named<'_>],
        open_to_read: impl FnOnce(&Path, Options) -> Result<Db>,
    ) -> Result<(Db, Vec<Family>)> {
        let mut options = self.options.to_engine(families.len().max(1))?;
        self.options.check_paths(&self.dir)?;
        for family in families {
            family.options.check_family_paths(&self.dir)?;
        }
        let logger = match self.mode {
            Mode::ReadWrite => log_header::logger(self.options),
            _ => self.options.logger.clone(),
        };
        let hearers = Hearers::new(&logger, &self.options.listeners);
        options.listener = hearers
            .clone()
            .map(|hearers| hearers as Arc<dyn EventListener>);
        let there = self.families_there(&options)?;
        let mut named = Vec::with_capacity(families.len());
        for family in families {
            let mut options = family.options.to_family()?;
            options.ttl = family.ttl;
            if options.order.timestamp_bytes() > 0 && family.ttl.is_some() {
                let what = "a time to live of keys with timestamps";
                return Err(Error::not_supported(what));
            }
            named.push((family.name.clone(), options));
        }
        let db = match self.mode {
            Mode::ReadWrite => self.open_to_write(options, &named, there.as_deref())?,
            Mode::ReadOnly { .. } | Mode::Follow => {
                let error_if_wal_file_exists = Mode::ReadOnly {
                    error_if_wal_file_exists: true,
                };
                if self.mode == error_if_wal_file_exists {
                    refuse_wals(&options, &self.dir)?;
                }
                open_to_read(&self.dir, options).map_err(|error| self.reworded(error))?
            }
        };
        let found = named.iter().map(|(name, _)| {
            let missing = || Error::invalid_argument(format!("Column family not found: {name}"));
            let family = db.column_family(name).ok_or_else(missing)?;
            Ok(Family::new(&db, family))
        });
        let found = found.collect::<Result<_>>()?;
        self.options.opened(&db);
        if !db.recovery_report().leveldb {
            logger.begin(&db, || log_header::lines(self.options, families, &db));
        }
        let line = format!("opened {}", db.path().display());
        logger.line(Level::Info, &line);
        if let Some(hearers) = hearers {
            hearers.attach(&db);
        }
        Ok((db, found))
    }

    fn open_to_write(
        &self,
        options: Options,
        named: &[(String, FamilyOptions)],
        there: Option<&[String]>,
    ) -> Result<Db> {
        let is_there = |name: &str| there.is_some_and(|there| there.iter().any(|one| one == name));
        let is_new = |name: &str| name != DEFAULT_FAMILY && !is_there(name);
        if let Some(there) = there {
            let is_named = |name: &String| {
                name == DEFAULT_FAMILY || named.iter().any(|(named, _)| named == name)
            };
            let left: Vec<_> = there.iter().filter(|name| !is_named(name)).collect();
            if !left.is_empty() {
                let names = left.iter().map(|name| name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                self.refuse_if_locked(&options)?;
                let message = format!("Column families not opened: {names}");
                return Err(Error::invalid_argument(message));
            }
        }
        if let Some((name, _)) = named.iter().find(|(name, _)| is_new(name))
            && !self.options.fields.create_missing_column_families()
        {
            if there.is_some() {
                self.refuse_if_locked(&options)?;
            }
            let message = format!("Column family not found: {name}");
            return Err(Error::invalid_argument(message));
        }
        let mut present: Vec<_> = named
            .iter()
            .filter(|(name, _)| !is_new(name))
            .map(|(name, options)| (name.as_str(), options.clone()))
            .collect();
        if !present.iter().any(|(name, _)| *name == DEFAULT_FAMILY) {
            present.push((DEFAULT_FAMILY, options.family.clone()));
        }
        let db = Db::open_families(&self.dir, options, &present)
            .map_err(|error| self.reworded(error))?;
        for (name, options) in named.iter().filter(|(name, _)| is_new(name)) {
            db.create_family(name, options.clone())?;
        }
        Ok(db)
    }

    /// The names of the families; `None` where there is no database.
    fn families_there(&self, options: &Options) -> Result<Option<Vec<String>>> {
        match Db::list_families(&self.dir, &options.env) {
            Ok(_) if options.error_if_exists && self.mode == Mode::ReadWrite => {
                let message = format!("{}: exists (error_if_exists is true)", self.dir.display());
                Err(Error::invalid_argument(message))
            }
            Ok(names) => Ok(Some(names)),
            Err(error) if error.kind() == ErrorKind::NotFound => match self.mode {
                Mode::ReadWrite if options.create_if_missing => Ok(None),
                Mode::ReadWrite => Err(Error::invalid_argument(format!(
                    "{}/CURRENT: does not exist (create_if_missing is false)",
                    self.dir.display()
                ))),
                Mode::ReadOnly { .. } | Mode::Follow => Err(error.with_kind(ErrorKind::Io)),
            },
            // Opening says it better.
            Err(_) => Ok(None),
        }
    }

    /// A directory that is locked is told so, whatever else is wrong with the call.
    fn refuse_if_locked(&self, options: &Options) -> Result<()> {
        let lock = options.env.files.lock(&self.dir.join("LOCK"));
        lock.map(drop).map_err(|error| self.reworded(error))
    }

    /// The errors whose texts programs look for, in RocksDB's words.
    pub(crate) fn reworded(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Locked {
            return other_order(error);
        }
        let lock = self.dir.join("LOCK");
        let text = match error.to_string().contains("this one") {
            true => format!(
                "lock hold by current process: {}: No locks available",
                lock.display()
            ),
            false => format!(
                "While lock file: {}: Resource temporarily unavailable",
                lock.display()
            ),
        };
        error.context(text)
    }
}

/// The error of another order of keys than the one that is there, whose whole text programs compare.
fn other_order(error: Error) -> Error {
    let text = error.to_string();
    let orders = text
        .split_once(" was written in the order of ")
        .and_then(|(_, orders)| orders.split_once(", not of "));
    match orders {
        Some((there, given)) => {
            let given = given.split(" (").next().unwrap_or(given);
            let message = format!("{given}: does not match existing comparator {there}");
            Error::invalid_argument(message)
        }
        None => error,
    }
}

fn refuse_wals(options: &Options, dir: &Path) -> Result<()> {
    let dir = options.wal_dir.as_deref().unwrap_or(dir);
    let files = options.env.files.list(dir)?;
    let is_wal = |file: &PathBuf| file.extension().is_some_and(|end| end == "log");
    match files.into_iter().find(is_wal) {
        None => Ok(()),
        Some(wal) => {
            let message = "the database was opened to be read, and a WAL file exists";
            Err(Error::corruption(message).with_file(&wal))
        }
    }
}
