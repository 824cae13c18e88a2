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
    DEFAULT_FAMILY, OrderOf, Orders, RecordedNumbers, check_tables, read_families, read_manifest,
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
    /// Whether every table must be there with the right size before the set opens.
    pub check_tables: bool,
}

impl VersionSetOptions {
    /// The default family alone, bytewise.
    pub fn new() -> Self {
        Self {
            profile: Profile::RocksDb,
            families: vec![(DEFAULT_FAMILY.to_owned(), KeyOrder::Bytewise)],
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
}

impl RecoveredInfo {
    /// The same, where no WAL older than those needed may hold sections that the MANIFEST does not tell of unless `there_may_be`.
    pub(crate) fn with_sections(mut self, there_may_be: bool) -> Self {
        if self.sections_from == 0 && !there_may_be {
            self.sections_from = u64::MAX;
        }
        self
    }
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
        let mut set = Self::assemble(files, dir, options.profile, families, recorded);
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
        let manifest_number = located(&*files, dir)?;
        let orders = Orders::Named(&options.families);
        let recovered = read_manifest(&*files, dir, manifest_number, orders)?;
        let families = recovered.families;
        check_families(&options.families, &families, &recovered.unopened)?;
        if options.check_tables {
            check_tables(&*files, dir, &families)?;
        }
        let mut set = Self::assemble(files, dir, options.profile, families, recovered.numbers);
        set.manifest_number = manifest_number;
        set.mark_numbers_used()?;
        let info = set.info(recovered.verdict);
        Ok((set, info))
    }

    /// As [`VersionSet::recover`], for reading: all families, in the orders that `order_of` gives by their names and those of
    /// the orders that they were written in. Which files are there is not looked at, and reading can go on behind a writer.
    ///
    /// # Errors
    /// As [`VersionSet::recover`]; those of `order_of`.
    pub fn recover_to_read(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        profile: Profile,
        order_of: OrderOf<'_>,
    ) -> Result<Self> {
        let manifest_number = located(&*files, dir)?;
        let orders = Orders::Found(order_of);
        let recovered = read_manifest(&*files, dir, manifest_number, orders)?;
        let families = recovered.families;
        let mut set = Self::assemble(files, dir, profile, families, recovered.numbers);
        set.manifest_number = manifest_number;
        set.read_only = true;
        set.mark_numbers_used()?;
        set.tail = Some(recovered.tail);
        Ok(set)
    }

    /// What recovery has to know of these versions.
    pub(super) fn info(&self, manifest_end: Verdict) -> RecoveredInfo {
        let tracked = self.recorded.wals.iter();
        RecoveredInfo {
            manifest_number: self.manifest_number,
            manifest_end,
            min_log_number: self.min_log_number(),
            sections_from: self.recorded.min_log_number_to_keep,
            section_wals: self.recorded.section_wals.clone(),
            prev_log_number: self.recorded.prev_log_number,
            tracked_wals: tracked.map(|(&n, &bytes)| (n, bytes)).collect(),
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

    /// Looks whether every table and blob file is there with the right size.
    ///
    /// # Errors
    /// `Corruption` naming the file; `NotSupported` where a family has none of its tables; `Io`.
    pub(crate) fn check_tables(&self) -> Result<()> {
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
        read_families(files, dir, located(files, dir)?)
    }

    fn assemble(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        profile: Profile,
        families: BTreeMap<u32, FamilyVersions>,
        recorded: RecordedNumbers,
    ) -> Self {
        Self {
            files,
            dir: dir.to_path_buf(),
            profile,
            read_only: false,
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

/// The number of the MANIFEST of the database in `dir`.
fn located(files: &dyn FileSystem, dir: &Path) -> Result<u64> {
    locate_manifest(files, dir)?.ok_or_else(|| {
        let error = Error::new(ErrorKind::NotFound, "there is no database");
        error.with_file(dir)
    })
}

fn check_families(
    named: &[(String, KeyOrder)],
    families: &BTreeMap<u32, FamilyVersions>,
    unopened: &[String],
) -> Result<()> {
    if !unopened.is_empty() {
        let message = format!("families not opened: {}", unopened.join(", "));
        return Err(Error::invalid_argument(message));
    }
    let there = |name: &str| families.values().any(|family| family.name == name);
    match named.iter().find(|(name, _)| !there(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::invalid_argument(format!(
            "there is no family {name:?}"
        ))),
    }
}
