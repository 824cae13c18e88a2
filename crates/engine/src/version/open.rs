//! Making and reading a version set: a new database's first MANIFEST, or the MANIFEST that CURRENT names.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, KeyOrder, Result};
use drumlin_fs::FileSystem;

use super::family_versions::FamilyVersions;
use super::left_files::Left;
use super::manifest::{FIRST_MANIFEST, locate_manifest};
use super::recover::{
    DEFAULT_FAMILY, RecordedNumbers, Recovered, check_tables, read_families, read_manifest,
};
use super::set::VersionSet;
use super::{FileNumbers, Profile};
use crate::files::names::FileName;
use crate::wal::record::Verdict;

/// How a set is opened.
#[derive(Clone, Debug)]
pub struct VersionSetOptions {
    /// The engine whose MANIFEST is written.
    pub profile: Profile,
    /// Every family to open, with its order. `default` must be among them.
    pub families: Vec<(String, KeyOrder)>,
    /// Nothing will be written; families that are not named stay closed.
    pub read_only: bool,
    /// Whether every table must be there with the right size before the set opens.
    pub check_tables: bool,
}

impl VersionSetOptions {
    /// The default family alone, bytewise.
    pub fn new() -> Self {
        Self {
            profile: Profile::RocksDb,
            families: vec![(DEFAULT_FAMILY.to_owned(), KeyOrder::Bytewise)],
            read_only: false,
            check_tables: true,
        }
    }
}

impl Default for VersionSetOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// The findings of recovery besides versions.
#[derive(Clone, Debug)]
pub struct RecoveredInfo {
    /// The MANIFEST that was read.
    pub manifest_number: u64,
    /// Whether its last record was torn, and then where and how much was dropped.
    pub manifest_end: Verdict,
    /// WAL files from this number on must be replayed.
    pub min_log_number: u64,
    /// Older ones from this number on may hold sections of two-phase commit that are needed as well; 0 where the
    /// MANIFEST does not say.
    pub sections_from: u64,
    /// Older ones that hold such sections for sure.
    pub section_wals: Vec<u64>,
    /// An older WAL to be replayed too; 0 for none (old LevelDB).
    pub prev_log_number: u64,
    /// WAL files the MANIFEST tracks: number, and bytes synced when the file was closed.
    pub tracked_wals: Vec<(u64, Option<u64>)>,
    /// Families on disk that were not named (reading only).
    pub unopened_families: Vec<String>,
}

impl VersionSet {
    /// Creates a database of empty families in the existing directory `dir`.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; `InvalidArgument` when `default` is not named or a name comes twice.
    ///
    /// Requires: [`locate_manifest`] says that no database is there.
    pub fn create(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        options: &VersionSetOptions,
    ) -> Result<Self> {
        check_names(&options.families)?;
        let mut families = BTreeMap::new();
        let default = options
            .families
            .iter()
            .filter(|(name, _)| name == DEFAULT_FAMILY);
        let others = options
            .families
            .iter()
            .filter(|(name, _)| name != DEFAULT_FAMILY);
        for (id, (name, order)) in (0..).zip(default.chain(others)) {
            families.insert(id, FamilyVersions::new(id, name, order.clone(), 0));
        }
        let recorded = RecordedNumbers {
            log_number: Some(0),
            last_seqno: Some(0),
            max_family: families.keys().copied().max().unwrap_or(0),
            ..RecordedNumbers::default()
        };
        let mut set = Self::assemble(files, dir, options, families, recorded);
        set.numbers.mark_used(FIRST_MANIFEST);
        set.mark_numbers_used()?;
        set.roll(FIRST_MANIFEST)?;
        Ok(set)
    }

    /// Reads the database in `dir`. Changes nothing on disk: the first edit does.
    ///
    /// # Errors
    /// `NotFound` when no database is there; `Corruption` when one is and cannot be read as it was
    /// written (a table missing included); `NotSupported`; `InvalidArgument` when a family on disk
    /// is not named, or has another order.
    pub fn recover(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        options: &VersionSetOptions,
    ) -> Result<(Self, RecoveredInfo)> {
        check_names(&options.families)?;
        let Some(manifest_number) = locate_manifest(&*files, dir)? else {
            let error = Error::new(ErrorKind::NotFound, "there is no database");
            return Err(error.with_file(dir));
        };
        let recovered = read_manifest(&*files, dir, manifest_number, &options.families)?;
        let Recovered {
            families,
            numbers: recorded,
            verdict,
            unopened,
            tail,
        } = recovered;
        check_families(options, &families, &unopened)?;
        if options.check_tables {
            check_tables(&*files, dir, &families)?;
        }
        let mut set = Self::assemble(files, dir, options, families, recorded);
        set.manifest_number = manifest_number;
        set.mark_numbers_used()?;
        set.tail = options.read_only.then_some(tail);
        let info = set.info(verdict, unopened);
        Ok((set, info))
    }

    /// What recovery has to know of these versions.
    pub(super) fn info(
        &self,
        manifest_end: Verdict,
        unopened_families: Vec<String>,
    ) -> RecoveredInfo {
        let tracked = self.recorded.wals.iter();
        RecoveredInfo {
            manifest_number: self.manifest_number,
            manifest_end,
            min_log_number: self.min_log_number(),
            sections_from: self.recorded.min_log_number_to_keep,
            section_wals: self.recorded.section_wals.clone(),
            prev_log_number: self.recorded.prev_log_number,
            tracked_wals: tracked.map(|(&n, &bytes)| (n, bytes)).collect(),
            unopened_families,
        }
    }

    /// A set for reading of the same versions.
    pub(super) fn read_copy(&self) -> Self {
        Self {
            files: Arc::clone(&self.files),
            dir: self.dir.clone(),
            profile: self.profile,
            read_only: true,
            families: self.families.clone(),
            numbers: Arc::clone(&self.numbers),
            recorded: self.recorded.clone(),
            manifest: None,
            manifest_number: self.manifest_number,
            snapshot_bytes: 0,
            left: Left::default(),
            sections: Arc::default(),
            kept_from: u64::MAX,
            next_change: None,
            in_doubt: false,
            healed: None,
            poison: None,
            tail: None,
        }
    }

    /// Looks whether every table and blob file is there with the right size, where that was not asked of
    /// [`VersionSet::recover`].
    ///
    /// # Errors
    /// `Corruption` naming the file; `NotSupported` where a family has none of its tables; `Io`.
    pub fn check_tables(&self) -> Result<()> {
        check_tables(&*self.files, &self.dir, &self.families)
    }

    /// The names of the families of the database in `dir`.
    ///
    /// # Errors
    /// `NotFound` when no database is there; as [`VersionSet::recover`].
    pub fn list_families(files: &dyn FileSystem, dir: &Path) -> Result<Vec<String>> {
        let families = Self::list_family_orders(files, dir)?;
        Ok(families.into_iter().map(|(name, _)| name).collect())
    }

    /// The families of the database in `dir`, by id: each one's name and the name of the key order
    /// it was written in, where the MANIFEST gives one.
    ///
    /// # Errors
    /// As [`VersionSet::list_families`].
    pub fn list_family_orders(
        files: &dyn FileSystem,
        dir: &Path,
    ) -> Result<Vec<(String, Option<String>)>> {
        match locate_manifest(files, dir)? {
            Some(number) => read_families(files, dir, number),
            None => {
                let error = Error::new(ErrorKind::NotFound, "there is no database");
                Err(error.with_file(dir))
            }
        }
    }

    fn assemble(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        options: &VersionSetOptions,
        families: BTreeMap<u32, FamilyVersions>,
        recorded: RecordedNumbers,
    ) -> Self {
        Self {
            files,
            dir: dir.to_path_buf(),
            profile: options.profile,
            read_only: options.read_only,
            families,
            numbers: FileNumbers::new(recorded.next_file_number.unwrap_or(1)),
            recorded,
            manifest: None,
            manifest_number: 0,
            snapshot_bytes: 0,
            left: Left::default(),
            sections: Arc::default(),
            kept_from: u64::MAX,
            next_change: None,
            in_doubt: false,
            healed: None,
            poison: None,
            tail: None,
        }
    }

    /// No number of a file in the directory, wanted or not, is ever given again.
    fn mark_numbers_used(&self) -> Result<()> {
        for name in self.files.list(&self.dir)? {
            if let Some(number) = FileName::parse(&name).and_then(FileName::number) {
                self.numbers.mark_used(number);
            }
        }
        let logs = self.families.values().map(|family| family.log_number);
        logs.chain([self.recorded.prev_log_number, self.manifest_number])
            .for_each(|number| self.numbers.mark_used(number));
        Ok(())
    }
}

fn check_names(families: &[(String, KeyOrder)]) -> Result<()> {
    let mut seen = HashSet::new();
    if let Some((name, _)) = families.iter().find(|(name, _)| !seen.insert(name)) {
        return Err(Error::invalid_argument(format!(
            "family {name:?} is named twice"
        )));
    }
    match families.iter().any(|(name, _)| name == DEFAULT_FAMILY) {
        true => Ok(()),
        false => Err(Error::invalid_argument(
            "the family \"default\" must be named",
        )),
    }
}

fn check_families(
    options: &VersionSetOptions,
    families: &BTreeMap<u32, FamilyVersions>,
    unopened: &[String],
) -> Result<()> {
    if !unopened.is_empty() && !options.read_only {
        let message = format!("families not opened: {}", unopened.join(", "));
        return Err(Error::invalid_argument(message));
    }
    let there = |name: &str| families.values().any(|family| family.name == name);
    match options.families.iter().find(|(name, _)| !there(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::invalid_argument(format!(
            "there is no family {name:?}"
        ))),
    }
}
