//! Opening the database of `--db` and the family of `--family`.

use std::path::Path;
use std::time::Duration;

use drumlin::internals::names;
use drumlin::{ColumnFamily, Db, Error, ErrorKind, FamilyOptions, Options};
use drumlin_fs::Env;

use crate::args::{Compressing, Place};
use crate::escape::Form;
use crate::failure::{Failure, Outcome};

impl Place {
    /// The directory.
    pub(crate) fn dir(&self) -> Outcome<&Path> {
        let missing = || {
            let text = "which database? Name its directory with --db, or with DRUMLIN_DB";
            Failure::Usage(text.to_owned())
        };
        self.db.as_deref().ok_or_else(missing)
    }

    /// Takes the directory from the environment where the command line names none.
    pub(crate) fn with_environment(mut self) -> Self {
        let named = std::env::var_os("DRUMLIN_DB").filter(|dir| !dir.is_empty());
        self.db = self.db.or_else(|| named.map(Into::into));
        self
    }

    /// Usual options for the database that is named.
    pub(crate) fn options(&self) -> Options {
        Options {
            wal_dir: self.wal_dir.clone(),
            ..Options::default()
        }
    }

    /// How keys and values are written.
    pub(crate) fn form(&self) -> Form {
        Form::new(self.hex)
    }

    /// The bytes an argument stands for.
    pub(crate) fn bytes(&self, argument: &str) -> Outcome<Vec<u8>> {
        let form = self.form();
        match form.read(argument.as_bytes()) {
            Ok(bytes) => Ok(bytes.into_owned()),
            Err(bad) => {
                let what = bad.what;
                Err(Failure::Usage(format!(
                    "'{argument}', at byte {}: {what}",
                    bad.at
                )))
            }
        }
    }

    /// The time to live of `--ttl`.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        self.ttl.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Gives the family of `--family` the time to live of `--ttl`.
    fn adapt(&self, name: &str, family: &mut FamilyOptions) {
        if name == self.family {
            family.ttl = self.ttl().or(family.ttl);
        }
    }

    /// The store of the shell, where there is one.
    fn held(&self) -> Outcome<Option<(Db, ColumnFamily)>> {
        let Some(db) = &self.held else {
            return Ok(None);
        };
        let family = self.family_of(db)?;
        if let Some(ttl) = self.ttl() {
            db.set_ttl(&family, ttl)?;
        }
        Ok(Some((db.clone(), family)))
    }

    /// Refuses what cannot be done while the shell has the store open.
    pub(crate) fn refuse_held(&self, why: &str) -> Outcome {
        match self.held {
            Some(_) => Err(Failure::Usage(format!("not in the shell: {why}"))),
            None => Ok(()),
        }
    }

    /// Closes a store that this command opened; that of the shell stays open.
    pub(crate) fn finish(&self, db: Db) -> Outcome {
        match self.held {
            Some(_) => Ok(()),
            None => Ok(db.close()?),
        }
    }

    /// Opens for reading. Takes no lock and changes nothing.
    pub(crate) fn open_to_read(&self) -> Outcome<(Db, ColumnFamily)> {
        if let Some(held) = self.held()? {
            return Ok(held);
        }
        // The command reads one family, so that it does not matter what the others have.
        let mut options = self.options();
        options.family.ttl = self.ttl();
        let opened = Db::open_read_only(self.dir()?, options);
        let db = opened.map_err(|error| self.explain(error))?;
        let family = self.family_of(&db)?;
        Ok((db, family))
    }

    /// Opens an existing database for maintenance.
    pub(crate) fn open_existing(&self) -> Outcome<(Db, ColumnFamily)> {
        let options = Options {
            create_if_missing: false,
            ..self.options()
        };
        self.open_as(options, None)
    }

    /// Opens for writing with `options`; a database or family that is not there is created.
    pub(crate) fn open_to_write(&self, options: Options) -> Outcome<(Db, ColumnFamily)> {
        let mut family_options = options.family.clone();
        self.adapt(&self.family, &mut family_options);
        let adapt = |name: &str, family: &mut FamilyOptions| self.adapt(name, family);
        let db = match &self.held {
            Some(db) => db.clone(),
            None => Db::open_all_families_as(self.dir()?, options, adapt)?,
        };
        let family = match db.column_family(&self.family) {
            Some(family) => family,
            None => db.create_family(&self.family, family_options)?,
        };
        Ok((db, family))
    }

    /// Opens the existing database with `options`, the family in another format if `compressing`
    /// names one.
    pub(crate) fn open_as(
        &self,
        options: Options,
        compressing: Option<Compressing>,
    ) -> Outcome<(Db, ColumnFamily)> {
        if compressing.is_some() {
            self.refuse_held("a family's format changes when the store is opened")?;
        }
        if let Some(held) = self.held()? {
            return Ok(held);
        }
        let opened = Db::open_all_families_as(self.dir()?, options, |name, family| {
            self.adapt(name, family);
            if let Some(compressing) = compressing.filter(|_| name == self.family) {
                family.table_format = Some(compressing.format());
            }
        });
        let db = opened.map_err(|error| self.explain(error))?;
        let family = self.family_of(&db)?;
        Ok((db, family))
    }

    /// Opens for writing, the family in another format if `compressing` names one; a database or
    /// family that is not there is created.
    pub(crate) fn open_to_load(
        &self,
        compressing: Option<Compressing>,
    ) -> Outcome<(Db, ColumnFamily)> {
        let format = compressing.map(Compressing::format);
        if format.is_some() {
            self.refuse_held("a family's format changes when the store is opened")?;
        }
        let adapt = |name: &str, family: &mut FamilyOptions| {
            self.adapt(name, family);
            if format.is_some() && name == self.family {
                family.table_format = format;
            }
        };
        let db = match &self.held {
            Some(db) => db.clone(),
            None => Db::open_all_families_as(self.dir()?, self.options(), adapt)?,
        };
        let family = match db.column_family(&self.family) {
            Some(family) => family,
            None => db.create_family(
                &self.family,
                FamilyOptions {
                    table_format: format,
                    ttl: self.ttl(),
                    ..FamilyOptions::default()
                },
            )?,
        };
        Ok((db, family))
    }

    /// Turns a missing file into the message that there is no database, if there is none. A file
    /// missing from a database is no answer to the command, and keeps its name.
    pub(crate) fn explain(&self, failure: impl Into<Failure>) -> Failure {
        match (failure.into(), &self.db) {
            (Failure::Engine(error), Some(dir)) if error.is_not_found() => {
                match Env::system().files.exists(&names::current(dir)) {
                    Ok(true) => {
                        let message = format!("a file of the database is missing: {error}");
                        Failure::Engine(Error::new(ErrorKind::Io, message))
                    }
                    Ok(false) => Failure::NoDatabase(dir.clone()),
                    Err(_) => Failure::Engine(error),
                }
            }
            (failure, _) => failure,
        }
    }

    /// The family of `--family`.
    pub(crate) fn family_of(&self, db: &Db) -> Outcome<ColumnFamily> {
        db.column_family(&self.family).ok_or_else(|| {
            let families = db.families();
            let known: Vec<&str> = families.iter().map(ColumnFamily::name).collect();
            Failure::NotFound(format!(
                "there is no column family '{}'; there are: {}",
                self.family,
                known.join(", ")
            ))
        })
    }
}
