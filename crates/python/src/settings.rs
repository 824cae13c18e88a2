//! Options from keyword arguments.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    Codec, Compression, DirectoryFormat, FamilyOptions, FixedPrefix, KeepChanges, Options,
    TableFormat, WriteOptions,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::OrRaise;
use crate::merge::Merge;

/// Options of a database that is to be opened.
pub(crate) struct Settings {
    pub(crate) options: Options,
    pub(crate) read_only: bool,
    /// Merge operators of families other than the default one.
    merges: BTreeMap<String, Merge>,
    pub(crate) calls_python: bool,
}

impl Settings {
    /// The options that `kwargs` name.
    ///
    /// # Errors
    /// `TypeError` for a name that is none, and for values of a wrong type; `ValueError`.
    pub(crate) fn of(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut settings = Self {
            options: Options::default(),
            read_only: false,
            merges: BTreeMap::new(),
            calls_python: false,
        };
        for (name, value) in kwargs.into_iter().flatten() {
            let name: String = name.extract()?;
            // `None` is to leave an option open.
            if !value.is_none() {
                settings.set(&name, &value)?;
            }
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let options = &mut self.options;
        match name {
            "create_if_missing" => options.create_if_missing = value.extract()?,
            "error_if_exists" => options.error_if_exists = value.extract()?,
            "read_only" => self.read_only = value.extract()?,
            "memory_budget" => options.memory_budget = Some(value.extract()?),
            "sync" => options.sync = value.extract()?,
            "background_threads" => options.background_threads = Some(value.extract()?),
            "max_open_files" => options.max_open_files = Some(value.extract()?),
            "wal_dir" => options.wal_dir = Some(value.extract::<PathBuf>()?),
            "compression" => options.compression = compression(value)?,
            "keep_changes_seconds" => keep_changes(options).age = Some(duration(value.extract()?)?),
            "keep_changes_bytes" => keep_changes(options).bytes = Some(value.extract()?),
            "format" => options.format = directory_format(value)?,
            "merges" => {
                for (family, merge) in value.cast::<PyDict>()? {
                    let merge = Merge::of(&merge)?;
                    self.calls_python |= merge.calls_python;
                    self.merges.insert(family.extract()?, merge);
                }
            }
            _ => {
                let family = &mut options.family;
                self.calls_python |= set_of_family(family, name, value)?;
            }
        }
        Ok(())
    }

    /// Gives the family `name` the merge operator that it was given.
    pub(crate) fn adapt(&self, name: &str, family: &mut FamilyOptions) {
        if let Some(merge) = self.merges.get(name) {
            family.merge_operator = Some(Arc::clone(&merge.operator));
        }
    }
}

fn keep_changes(options: &mut Options) -> &mut KeepChanges {
    options.keep_changes.get_or_insert_default()
}

/// `seconds` as the engine has them.
///
/// # Errors
/// `ValueError` for what is no length of time.
pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let text = format!("{seconds} is no number of seconds that one can wait");
        PyValueError::new_err(text)
    })
}

/// The options of a family that `kwargs` name, and whether they call Python.
///
/// # Errors
/// As [`Settings::of`].
pub(crate) fn of_family(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<(FamilyOptions, bool)> {
    let (mut family, mut calls_python) = (FamilyOptions::default(), false);
    for (name, value) in kwargs.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            _ if value.is_none() => {}
            "compression" => family.compression = Some(compression(&value)?),
            _ => calls_python |= set_of_family(&mut family, &name, &value)?,
        }
    }
    Ok((family, calls_python))
}

/// Sets an option of a family. Whether it calls Python.
fn set_of_family(
    family: &mut FamilyOptions,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    match name {
        "table_format" => family.table_format = Some(table_format(value)?),
        "prefix_length" => {
            family.prefix_extractor = Some(Arc::new(FixedPrefix::new(value.extract()?)))
        }
        "merge" => {
            let merge = Merge::of(value)?;
            family.merge_operator = Some(merge.operator);
            return Ok(merge.calls_python);
        }
        _ => return Err(PyTypeError::new_err(format!("there is no option {name:?}"))),
    }
    Ok(false)
}

fn compression(value: &Bound<'_, PyAny>) -> PyResult<Compression> {
    let name: String = value.extract()?;
    let codec: Codec = name.parse().or_raise(value.py())?;
    Ok(Compression::new(codec))
}

fn directory_format(value: &Bound<'_, PyAny>) -> PyResult<DirectoryFormat> {
    match value.cast::<PyString>()?.to_str()? {
        "auto" => Ok(DirectoryFormat::Auto),
        "rocksdb" => Ok(DirectoryFormat::RocksDb),
        "leveldb" => Ok(DirectoryFormat::LevelDb),
        other => {
            let text =
                format!("there is no format {other:?}: it is \"auto\", \"rocksdb\" or \"leveldb\"");
            Err(PyValueError::new_err(text))
        }
    }
}

fn table_format(value: &Bound<'_, PyAny>) -> PyResult<TableFormat> {
    match value.cast::<PyString>()?.to_str()? {
        "block" => Ok(TableFormat::Block),
        "plain" => Ok(TableFormat::Plain),
        "searchable" => Ok(TableFormat::Searchable),
        other => {
            let text = format!(
                "there is no table format {other:?}: it is \"block\", \"plain\" or \"searchable\""
            );
            Err(PyValueError::new_err(text))
        }
    }
}

/// Options of a write that is synced, is not, or is as the database was opened.
pub(crate) fn write_options(sync: Option<bool>) -> WriteOptions {
    WriteOptions {
        sync,
        ..WriteOptions::default()
    }
}
