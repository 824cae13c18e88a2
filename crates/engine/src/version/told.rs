//! What a MANIFEST tells that may be damaged: record by record, without a check of the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use drumlin_base::Result;
use drumlin_fs::FileSystem;

use super::VersionEdit;
use super::manifest::locate_manifest;
use super::recover::{DEFAULT_FAMILY, read_families, refuse_all_missing};
use crate::files::names::{self, FileName};
use crate::wal::record::RecordReader;

/// A family of a MANIFEST.
#[derive(Debug, Default)]
pub(crate) struct ToldFamily {
    /// Its name; empty for that of the default one.
    pub(crate) name: String,
    /// The name of its key order.
    pub(crate) order: Option<String>,
    /// The numbers of its tables.
    pub(crate) tables: BTreeSet<u64>,
}

/// What the readable beginning of a MANIFEST says.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The families by id, without those that were dropped.
    pub(crate) families: BTreeMap<u32, ToldFamily>,
    /// Ids up to this one had been given out.
    pub(crate) max_family: u32,
}

impl Told {
    /// What the MANIFEST of `dir` tells: the live one, or the newest where CURRENT names none. Nothing where there is
    /// none, or where it cannot be read.
    ///
    /// # Errors
    /// `Io`, from looking into the directory.
    pub(crate) fn by_the_manifest(files: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let number = live_or_newest(files, dir)?;
        let told = number.and_then(|number| Self::read(files, &names::manifest(dir, number)).ok());
        Ok(told.unwrap_or_default())
    }

    fn read(files: &dyn FileSystem, path: &Path) -> Result<Self> {
        let mut told = Self::default();
        let mut reader = RecordReader::new(files.open(path)?, 0);
        while let Ok(Some(record)) = reader.read() {
            if let Ok(edit) = VersionEdit::decode(record.payload) {
                told.take(edit);
            }
        }
        Ok(told)
    }

    fn take(&mut self, edit: VersionEdit) {
        let id = edit.column_family;
        self.max_family = self
            .max_family
            .max(edit.max_column_family.unwrap_or(0))
            .max(id);
        if edit.drop_family {
            self.families.remove(&id);
            return;
        }
        let family = self.families.entry(id).or_default();
        if let Some(name) = edit.add_family {
            family.name = name;
        }
        family.order = edit.comparator.or(family.order.take());
        for (_, gone) in &edit.deleted_files {
            family.tables.remove(gone);
        }
        let added = edit.new_files.iter().map(|(_, table)| table.number);
        family.tables.extend(added);
    }
}

/// The live MANIFEST, or the newest where CURRENT names none: those before it name tables that are gone since.
fn live_or_newest(files: &dyn FileSystem, dir: &Path) -> Result<Option<u64>> {
    match locate_manifest(files, dir) {
        Err(error) if error.is_corruption() => {
            let listing = files.list(dir)?;
            let numbers = listing
                .iter()
                .filter_map(|name| match FileName::parse(name)? {
                    FileName::Manifest(number) => Some(number),
                    _ => None,
                });
            Ok(numbers.max())
        }
        located => located,
    }
}

/// Refuses a directory whose MANIFEST, the newest where CURRENT names none, names tables of a
/// family, none of which is there: they are in a data path elsewhere, which shows in nothing else. Tables
/// named by a damaged MANIFEST may be gone for good reason: it counts where no table at all is there.
///
/// # Errors
/// `NotSupported`; `Io`.
pub(crate) fn refuse_tables_elsewhere(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    let Some(number) = live_or_newest(files, dir)? else {
        return Ok(());
    };
    let is_table = |name: &PathBuf| matches!(FileName::parse(name), Some(FileName::Table(_)));
    if files.list(dir)?.iter().any(is_table) && read_families(files, dir, number).is_err() {
        return Ok(());
    }
    let told = Told::read(files, &names::manifest(dir, number))?;
    told.families.into_iter().try_for_each(|(id, family)| {
        let name = match id {
            0 => DEFAULT_FAMILY,
            _ => &family.name,
        };
        refuse_all_missing(files, dir, name, family.tables.into_iter())
    })
}
