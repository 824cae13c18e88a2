//! The accounts of blob files, made anew from the tables that refer to them, when the MANIFEST that
//! kept them is lost.
//!
//! A file's footer gives its number of blobs, its size their bytes; blobs that no sound table
//! refers to are garbage. Two tables that refer to one blob are refused by name: one of them is the
//! input of a compaction and the other its output, and with both of them back the blob would be
//! counted as garbage twice, so that its file could go while it is still needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};
use drumlin_fs::FileSystem;
use drumlin_table::blob::{BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES, BlobIndex, BlobReader};

use crate::files::names::{self, FileName};
use crate::version::{BlobFileAddition, BlobFileGarbage};

/// One reference, as far as the accounts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reference {
    offset: u64,
    record_bytes: u64,
    table: u64,
}

/// All references found, by blob file. Memory: 24 bytes for each.
#[derive(Debug, Default)]
pub(crate) struct References {
    files: BTreeMap<u64, Vec<Reference>>,
}

impl References {
    /// Notes that `table` refers to the blob of `user_key` at `index`.
    pub(crate) fn add(&mut self, table: u64, user_key: &[u8], index: &BlobIndex) {
        self.files.entry(index.file).or_default().push(Reference {
            offset: index.offset,
            record_bytes: index.record_bytes(user_key),
            table,
        });
    }

    /// Takes over the notes of `other`.
    pub(crate) fn append(&mut self, other: Self) {
        for (file, mut references) in other.files {
            self.files.entry(file).or_default().append(&mut references);
        }
    }

    /// The lowest number of a file referred to; 0 for none.
    pub(crate) fn oldest(&self) -> u64 {
        self.files.keys().next().copied().unwrap_or(0)
    }

    /// Blobs of file `number` that are alive, and the bytes of their records.
    ///
    /// # Errors
    /// `Corruption` when two tables refer to one blob.
    fn alive(&mut self, number: u64) -> Result<(u64, u64)> {
        let Some(references) = self.files.get_mut(&number) else {
            return Ok((0, 0));
        };
        references.sort_unstable();
        for (a, b) in references.iter().zip(references.iter().skip(1)) {
            if a.offset == b.offset && !drumlin_base::bug!("shared-blobs-unnoticed") {
                return Err(Error::corruption(format!(
                    "tables {} and {} both refer to the value at {} of blob file {number}: one \
                     replaced the other; move the older one away and repair again",
                    a.table, b.table, a.offset
                )));
            }
        }
        let bytes = references.iter().map(|reference| reference.record_bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        Ok((references.len() as u64, bytes))
    }
}

/// Blob files and the garbage in each, by family.
pub(crate) type FamilyBlobs = BTreeMap<u32, Vec<(BlobFileAddition, BlobFileGarbage)>>;

/// The fate of the blob files of a directory.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// By family: the files that tables refer to, and the garbage in each.
    pub(crate) families: FamilyBlobs,
    /// Files that cannot be read or that nothing refers to, with the reason.
    pub(crate) lost: Vec<(PathBuf, Error)>,
}

/// Makes the accounts of the blob files in `listing`. Changes nothing.
///
/// # Errors
/// `Corruption` when two tables refer to one blob.
pub(crate) fn accounts(
    files: &dyn FileSystem,
    dir: &Path,
    listing: &[PathBuf],
    mut references: References,
) -> Result<Accounts> {
    let mut accounts = Accounts::default();
    for name in listing {
        let Some(FileName::Blob(number)) = FileName::parse(name) else {
            continue;
        };
        let alive = references.alive(number)?;
        let path = names::blob(dir, number);
        match account(files, &path, number, alive) {
            Ok((family, addition, garbage)) => {
                let files = accounts.families.entry(family).or_default();
                files.push((addition, garbage));
            }
            Err(error) => accounts.lost.push((path, error)),
        }
    }
    Ok(accounts)
}

fn account(
    files: &dyn FileSystem,
    path: &Path,
    number: u64,
    (live_count, live_bytes): (u64, u64),
) -> Result<(u32, BlobFileAddition, BlobFileGarbage)> {
    if live_count == 0 {
        let error = Error::corruption("no sound table refers to a value in this blob file");
        return Err(error.with_file(path));
    }
    let reader = BlobReader::open(files, path, number)?;
    let ends = (BLOB_HEADER_BYTES + BLOB_FOOTER_BYTES) as u64;
    let addition = BlobFileAddition {
        number,
        blob_count: reader.blob_count(),
        blob_bytes: match drumlin_base::bug!("garbage-after-repair-miscounted") {
            true => reader.file_bytes(),
            false => reader.file_bytes().saturating_sub(ends),
        },
        ..BlobFileAddition::default()
    };
    let left = (
        addition.blob_count.checked_sub(live_count),
        addition.blob_bytes.checked_sub(live_bytes),
    );
    let (Some(garbage_count), Some(garbage_bytes)) = left else {
        let error = Error::corruption("tables refer to more values than the blob file holds");
        return Err(error.with_file(path));
    };
    let garbage = BlobFileGarbage {
        number,
        garbage_count,
        garbage_bytes,
    };
    Ok((reader.header().family_id, addition, garbage))
}
