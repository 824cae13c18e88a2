//! The obsolete files of a directory, and their removal.
//!
//! The choice is a pure function of a listing and of the needed files; only [`remove_files`] acts.
//! Invariant: a file that is not the database's own, or that may be needed, stays.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};
use drumlin_fs::FileSystem;

use crate::files::names::FileName;

/// OPTIONS files kept: the present one and the one before.
pub(crate) const OPTIONS_FILES_KEPT: usize = 2;

/// The files of a directory that are needed.
#[derive(Debug, Default)]
pub struct Needed {
    /// Tables of any version that anybody still holds.
    pub tables: HashSet<u64>,
    /// Blob files of the same.
    pub blobs: HashSet<u64>,
    /// Ids of the models of those tables, and of the models that jobs hold.
    pub models: HashSet<u64>,
    /// WAL files with this number or a higher one.
    pub wals_from: u64,
    /// WAL files below that all the same: kept for recycling.
    pub wals: HashSet<u64>,
    /// The live MANIFEST.
    pub manifest: u64,
    /// Tables, blob, MANIFEST and temporary files with this number or a higher one may be on their
    /// way into a version ([`super::FileNumbers::oldest_pending`]).
    pub pending_from: u64,
}

/// The names in `listing` that may be removed. LevelDB's and RocksDB's names alike.
pub fn obsolete_files(listing: &[PathBuf], needed: &Needed) -> Vec<PathBuf> {
    let newest_options = newest_options(listing);
    let is_obsolete = |name: &FileName| match *name {
        FileName::Table(number) => !needed.tables.contains(&number) && number < needed.pending_from,
        FileName::Blob(number) => !needed.blobs.contains(&number) && number < needed.pending_from,
        FileName::Model(id) => !needed.models.contains(&id),
        FileName::Wal(number) => number < needed.wals_from && !needed.wals.contains(&number),
        FileName::Manifest(number) => number != needed.manifest && number < needed.pending_from,
        FileName::Temp(number) => number < needed.pending_from,
        FileName::Trash(_) => true,
        FileName::Options(number) => !newest_options.contains(&number),
        FileName::Current
        | FileName::Lock
        | FileName::Identity
        | FileName::InfoLog
        | FileName::Archive
        | FileName::Restoring => false,
    };
    listing
        .iter()
        .filter(|name| FileName::parse(name).as_ref().is_some_and(is_obsolete))
        .cloned()
        .collect()
}

fn newest_options(listing: &[PathBuf]) -> Vec<u64> {
    let mut numbers: Vec<u64> = listing
        .iter()
        .filter_map(|name| match FileName::parse(name)? {
            FileName::Options(number) => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    let older = numbers.len().saturating_sub(OPTIONS_FILES_KEPT);
    numbers.split_off(older)
}

/// Removes the files `names` of `dir`; how many went. A file that is gone already is no error. The
/// others are tried even after a failure.
///
/// # Errors
/// The first failure. The next look at the directory finds the remaining files again.
pub fn remove_files(files: &dyn FileSystem, dir: &Path, names: &[PathBuf]) -> Result<usize> {
    let mut removed = 0;
    let mut failure: Option<Error> = None;
    for name in names {
        match files.remove(&dir.join(name)) {
            Ok(()) => removed += 1,
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    failure.map_or(Ok(removed), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn only_files_that_nothing_needs_are_obsolete() {
        let needed = Needed {
            tables: HashSet::from([7, 9]),
            blobs: HashSet::from([8]),
            models: HashSet::from([0xab]),
            wals_from: 20,
            wals: HashSet::from([11]),
            manifest: 15,
            pending_from: 30,
        };
        let kept = paths(&[
            "000007.sst",
            "000009.ldb",
            "000030.sst",
            "000031.blob",
            "000008.blob",
            "00000000000000ab.model",
            "ab.model",
            "000020.log",
            "000021.log",
            "000011.log",
            "MANIFEST-000015",
            "MANIFEST-000030",
            "000030.dbtmp",
            "CURRENT",
            "LOCK",
            "IDENTITY",
            "LOG",
            "LOG.old.1",
            "archive",
            "OPTIONS-000012",
            "OPTIONS-000013",
            "notes.txt",
            "000007.sst.bak",
            "lost+found",
            "x.log",
        ]);
        let gone = paths(&[
            "000006.sst",
            "000010.ldb",
            "000029.sst",
            "000012.blob",
            "00000000000000ac.model",
            "000019.log",
            "MANIFEST-000014",
            "MANIFEST-000016",
            "000029.dbtmp",
            "OPTIONS-000003.dbtmp",
            "OPTIONS-000011",
            "000007.sst.trash",
            "000031.blob.trash",
            "000021.log.trash",
        ]);
        let listing: Vec<_> = kept.iter().chain(&gone).cloned().collect();
        assert_eq!(obsolete_files(&listing, &needed), gone);
    }

    #[test]
    fn one_options_file_is_never_obsolete() {
        let listing = paths(&["OPTIONS-000001"]);
        assert!(obsolete_files(&listing, &Needed::default()).is_empty());
    }
}
