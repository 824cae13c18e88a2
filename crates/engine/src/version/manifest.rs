//! MANIFEST files and CURRENT: which one is live, how a new one is written, and the order of syncs by
//! which a power cut at any moment leaves a whole database.
//!
//! A new MANIFEST is written whole (a snapshot of everything) and synced, then its name, then a
//! temporary file with CURRENT's new content and its rename, then that name. Until the rename is
//! on disk the old MANIFEST is live and untouched.

use std::collections::BTreeMap;
use std::path::Path;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, FileKind, FileSystem};

use super::family_versions::FamilyVersions;
use super::{History, Profile, VersionEdit};
use crate::files::names::{self, FileName};
use crate::wal::record::RecordWriter;

/// Longest content of CURRENT that is looked at.
const CURRENT_BYTES_MAX: u64 = 4096;
/// Tables described in one record of a snapshot.
pub(super) const FILES_PER_RECORD: usize = 1024;
/// The number of the MANIFEST that creates a database.
pub(super) const FIRST_MANIFEST: u64 = 1;

/// The number of the live MANIFEST of `dir`; `None` when no database was ever there.
///
/// # Errors
/// `Corruption` when CURRENT is missing or senseless although `dir` holds files of a database, or
/// when the MANIFEST it names is missing; `Io`.
pub fn locate_manifest(files: &dyn FileSystem, dir: &Path) -> Result<Option<u64>> {
    let current = names::current(dir);
    let content = match files.read_file(&current, CURRENT_BYTES_MAX) {
        Ok(content) => content,
        Err(error) if error.is_not_found() => {
            return match holds_a_database(files, dir)? {
                false => Ok(None),
                true => Err(missing_current(files, dir)?),
            };
        }
        Err(error) if error.kind() == ErrorKind::TooLarge => {
            return Err(error.with_kind(ErrorKind::Corruption));
        }
        Err(error) => return Err(error),
    };
    let number = std::str::from_utf8(&content)
        .ok()
        .and_then(|text| text.strip_suffix('\n'))
        .and_then(|name| match FileName::parse(Path::new(name)) {
            Some(FileName::Manifest(number)) => Some(number),
            _ => None,
        });
    let Some(number) = number else {
        return Err(Error::corruption("CURRENT names no MANIFEST").with_file(&current));
    };
    let manifest = names::manifest(dir, number);
    match files.exists(&manifest)? {
        true => Ok(Some(number)),
        false => Err(Error::corruption("CURRENT names a missing MANIFEST").with_file(&manifest)),
    }
}

/// What to say of a directory that holds a database and no CURRENT.
fn missing_current(files: &dyn FileSystem, dir: &Path) -> Result<Error> {
    let message = match files.exists(&names::restoring(dir))? {
        true => "a backup was being restored here and is not whole yet: restore it again",
        false => "CURRENT is missing from a directory that holds a database",
    };
    Ok(Error::corruption(message).with_file(&names::current(dir)))
}

/// Whether `dir` holds data. The first MANIFEST alone does not count: creating a database was cut
/// short before CURRENT was written.
fn holds_a_database(files: &dyn FileSystem, dir: &Path) -> Result<bool> {
    let listing = match files.list(dir) {
        Ok(listing) => listing,
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut found = listing.iter().filter_map(|name| FileName::parse(name));
    Ok(found
        .any(|name| name.is_evidence_of_a_database() && name != FileName::Manifest(FIRST_MANIFEST)))
}

/// Everything a MANIFEST says at one moment.
#[derive(Debug)]
pub(super) struct Snapshot<'a> {
    pub(super) families: &'a BTreeMap<u32, FamilyVersions>,
    pub(super) db_id: Option<&'a str>,
    pub(super) wals: &'a BTreeMap<u64, Option<u64>>,
    pub(super) log_number: u64,
    pub(super) min_log_number_to_keep: u64,
    pub(super) next_file_number: u64,
    pub(super) last_seqno: u64,
    pub(super) max_family: u32,
    pub(super) change: Option<&'a Vec<u8>>,
    pub(super) section_wals: &'a [u64],
    pub(super) history: Option<&'a History>,
}

/// Writes `snapshot` as MANIFEST `number` and makes it the live one; a writer to go on with.
///
/// # Errors
/// `Io`, `NoSpace`: which MANIFEST is live after a power cut is then not known; both must stay.
pub(super) fn write_and_make_live(
    files: &dyn FileSystem,
    dir: &Path,
    number: u64,
    profile: Profile,
    snapshot: &Snapshot<'_>,
) -> Result<RecordWriter> {
    let records = snapshot
        .edits()
        .into_iter()
        .map(|edit| edit.encode(profile));
    write_records(files, dir, number, records)
}

fn write_records(
    files: &dyn FileSystem,
    dir: &Path,
    number: u64,
    records: impl Iterator<Item = Result<Vec<u8>>>,
) -> Result<RecordWriter> {
    let path = names::manifest(dir, number);
    let file = files.create(&path, CreateOptions::new(FileKind::Manifest))?;
    let mut writer = RecordWriter::new(file);
    for record in records {
        let record = record?;
        if !record.is_empty() {
            writer.gather(&record)?;
        }
    }
    writer.hand_over()?;
    if !drumlin_base::bug!("new-manifest-unsynced") {
        writer.sync()?;
    }
    // The name must be on disk before CURRENT can be: a rename may be kept and this name lost.
    files.sync_dir(dir)?;
    set_current(files, dir, number)?;
    Ok(writer)
}

/// A MANIFEST of one moment, not written yet: taken under a lock, written without.
#[derive(Debug)]
pub struct ManifestCopy {
    number: u64,
    records: Vec<Vec<u8>>,
}

impl ManifestCopy {
    pub(super) fn take(number: u64, profile: Profile, snapshot: &Snapshot<'_>) -> Result<Self> {
        let records = snapshot
            .edits()
            .into_iter()
            .map(|edit| edit.encode(profile));
        let records = records.collect::<Result<_>>()?;
        Ok(Self { number, records })
    }

    /// Writes it to `dir`, a directory of its own, with its CURRENT.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn write(&self, files: &dyn FileSystem, dir: &Path) -> Result<()> {
        let records = self.records.iter().cloned().map(Ok);
        write_records(files, dir, self.number, records)?.close()
    }
}

fn set_current(files: &dyn FileSystem, dir: &Path, number: u64) -> Result<()> {
    let temp = names::temp(dir, number);
    let mut file = files.create(&temp, CreateOptions::new(FileKind::Other))?;
    file.append(names::current_content(number).as_bytes())?;
    if !drumlin_base::bug!("current-unsynced") {
        file.sync()?;
    }
    file.close()?;
    files.rename(&temp, &names::current(dir))?;
    if drumlin_base::bug!("current-dir-unsynced") {
        return Ok(());
    }
    files.sync_dir(dir)
}

impl Snapshot<'_> {
    /// The records, in order. The last one holds the numbers without which a reader refuses a
    /// MANIFEST, so that one that was cut is never taken for a whole one.
    fn edits(&self) -> Vec<VersionEdit> {
        let mut edits = Vec::new();
        if let Some(id) = self.db_id {
            edits.push(VersionEdit {
                db_id: Some(id.to_owned()),
                ..VersionEdit::default()
            });
        }
        if !self.wals.is_empty() {
            edits.push(VersionEdit {
                wal_additions: self.wals.iter().map(|(&n, &bytes)| (n, bytes)).collect(),
                ..VersionEdit::default()
            });
        }
        for family in self.families.values() {
            edits.push(VersionEdit {
                comparator: Some(family.order.name().to_owned()),
                add_family: (family.id != 0).then(|| family.name.clone()),
                log_number: Some(family.log_number),
                ..VersionEdit::of_family(family.id)
            });
            edits.extend(family_edits(family));
        }
        edits.push(VersionEdit {
            prev_log_number: Some(0),
            log_number: Some(self.log_number),
            min_log_number_to_keep: Some(self.min_log_number_to_keep),
            next_file_number: Some(self.next_file_number),
            last_seqno: Some(self.last_seqno),
            max_column_family: Some(self.max_family),
            change: self.change.cloned(),
            section_wals: (!self.section_wals.is_empty()).then(|| self.section_wals.to_vec()),
            history: self.history.cloned(),
            ..VersionEdit::default()
        });
        edits
    }
}

fn family_edits(family: &FamilyVersions) -> Vec<VersionEdit> {
    let mut edits = vec![VersionEdit::of_family(family.id)];
    let version = &family.current;
    if let Some(edit) = edits.last_mut() {
        edit.compact_cursors = family.compact_cursors();
        if !drumlin_base::bug!("lowest-timestamp-forgotten") {
            edit.full_history_ts_low
                .clone_from(&family.full_history_ts_low);
        }
        for blob in version.blobs().values() {
            edit.blob_additions.push((*blob.addition).clone());
            if blob.garbage_count > 0 {
                edit.blob_garbage.push(super::BlobFileGarbage {
                    number: blob.addition.number,
                    garbage_count: blob.garbage_count,
                    garbage_bytes: blob.garbage_bytes,
                });
            }
        }
    }
    for (level, file) in version.files() {
        if edits
            .last()
            .is_none_or(|edit| edit.new_files.len() >= FILES_PER_RECORD)
        {
            edits.push(VersionEdit::of_family(family.id));
        }
        if let Some(edit) = edits.last_mut() {
            edit.add_file(level as u32, file.described().clone());
        }
    }
    edits.retain(|edit| *edit != VersionEdit::of_family(family.id));
    edits
}
