//! Descriptions of live files: `rocksdb_livefiles_t` and the metadata of families, levels and files.

use std::ffi::{CString, c_char, c_int};

use drumlin::{ColumnFamily, Db, LiveTable};
use drumlin_ffi::handle::{self, Handle};

/// A table of a family.
#[derive(Clone, Debug)]
struct LiveFile {
    family: CString,
    /// Begins with a slash, as RocksDB's.
    name: CString,
    table: LiveTable,
}

/// `rocksdb_livefiles_t`.
#[derive(Debug)]
pub(crate) struct LiveFiles(Vec<LiveFile>);

/// `rocksdb_column_family_metadata_t`.
#[derive(Debug)]
pub(crate) struct FamilyMetadata {
    name: String,
    levels: Vec<LevelMetadata>,
}

/// `rocksdb_level_metadata_t`.
#[derive(Clone, Debug)]
pub(crate) struct LevelMetadata {
    level: usize,
    files: Vec<LiveTable>,
}

/// `rocksdb_sst_file_metadata_t`.
#[derive(Clone, Debug)]
pub(crate) struct FileMetadata(LiveTable);

/// The tables of a family with their counts; none where that cannot be told, as there is no place for an error.
fn tables_of(db: &Db, family: &ColumnFamily) -> Vec<LiveTable> {
    let opened = db.open_tables(family);
    opened
        .and_then(|()| db.live_tables(family))
        .unwrap_or_default()
}

/// The name of a table's file.
fn name_of(table: &LiveTable) -> String {
    let name = table.path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl LiveFiles {
    fn at(&self, index: i32) -> Option<&LiveFile> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.0.get(index))
    }
}

impl LevelMetadata {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The text of a file that stays as long as the list.
///
/// # Safety
/// `files` is a handle, or null.
unsafe fn text_of(
    files: *const Handle<LiveFiles>,
    index: c_int,
    function: &str,
    text: impl FnOnce(&LiveFile) -> &CString,
) -> *const c_char {
    // SAFETY: the caller's promise.
    let files = unsafe { handle::get(files, function) };
    files
        .at(index)
        .map_or(std::ptr::null(), |file| text(file).as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_livefiles_column_family_name(
    files: *const Handle<LiveFiles>,
    index: c_int,
) -> *const c_char {
    const NAME: &str = "rocksdb_livefiles_column_family_name";
    // SAFETY: the C program's promise.
    unsafe { text_of(files, index, NAME, |file| &file.family) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_livefiles_name(
    files: *const Handle<LiveFiles>,
    index: c_int,
) -> *const c_char {
    const NAME: &str = "rocksdb_livefiles_name";
    // SAFETY: the C program's promise.
    unsafe { text_of(files, index, NAME, |file| &file.name) }
}

pub(crate) mod calls {
    use std::ffi::CString;

    use super::{
        FamilyMetadata, FileMetadata, LevelMetadata, LiveFile, LiveFiles, name_of, tables_of,
    };
    use crate::database::Database;
    use crate::family::Family;

    /// RocksDB's number of levels.
    const LEVELS: usize = 7;

    /// Files of which something cannot be told are left out: there is no place for an error.
    pub(crate) fn livefiles(db: &Database) -> LiveFiles {
        let mut files = Vec::new();
        for family in db.db().families() {
            let Ok(name) = CString::new(family.name()) else {
                continue;
            };
            for table in tables_of(db.db(), &family) {
                let Ok(file) = CString::new(format!("/{}", name_of(&table))) else {
                    continue;
                };
                files.push(LiveFile {
                    family: name.clone(),
                    name: file,
                    table,
                });
            }
        }
        LiveFiles(files)
    }

    pub(crate) fn livefiles_count(files: &LiveFiles) -> i32 {
        i32::try_from(files.0.len()).unwrap_or(i32::MAX)
    }

    pub(crate) fn livefiles_level(files: &LiveFiles, index: i32) -> i32 {
        let level = files.at(index).map_or(0, |file| file.table.level);
        i32::try_from(level).unwrap_or(i32::MAX)
    }

    pub(crate) fn livefiles_size(files: &LiveFiles, index: i32) -> usize {
        let bytes = files.at(index).map_or(0, |file| file.table.bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    pub(crate) fn livefiles_smallestkey(files: &LiveFiles, index: i32) -> Option<&[u8]> {
        files.at(index).map(|file| &file.table.smallest[..])
    }

    pub(crate) fn livefiles_largestkey(files: &LiveFiles, index: i32) -> Option<&[u8]> {
        files.at(index).map(|file| &file.table.largest[..])
    }

    pub(crate) fn livefiles_entries(files: &LiveFiles, index: i32) -> u64 {
        files
            .at(index)
            .map_or(0, |file| file.table.entries.unwrap_or(0))
    }

    pub(crate) fn livefiles_deletions(files: &LiveFiles, index: i32) -> u64 {
        files
            .at(index)
            .map_or(0, |file| file.table.deletions.unwrap_or(0))
    }

    pub(crate) fn get_column_family_metadata_cf(
        db: &Database,
        family: Option<&Family>,
    ) -> FamilyMetadata {
        let family = db.family(family);
        let tables = tables_of(db.db(), family);
        let levels = (0..LEVELS).map(|level| LevelMetadata {
            level,
            files: tables
                .iter()
                .filter(|table| table.level == level)
                .cloned()
                .collect(),
        });
        FamilyMetadata {
            name: family.name().to_owned(),
            levels: levels.collect(),
        }
    }

    pub(crate) fn column_family_metadata_get_size(family: &FamilyMetadata) -> u64 {
        family.levels.iter().map(LevelMetadata::bytes).sum()
    }

    pub(crate) fn column_family_metadata_get_file_count(family: &FamilyMetadata) -> usize {
        family.levels.iter().map(|level| level.files.len()).sum()
    }

    pub(crate) fn column_family_metadata_get_name(family: &FamilyMetadata) -> Option<String> {
        Some(family.name.clone())
    }

    pub(crate) fn column_family_metadata_get_level_count(family: &FamilyMetadata) -> usize {
        family.levels.len()
    }

    pub(crate) fn column_family_metadata_get_level_metadata(
        family: &FamilyMetadata,
        index: usize,
    ) -> Option<LevelMetadata> {
        family.levels.get(index).cloned()
    }

    pub(crate) fn level_metadata_get_level(level: &LevelMetadata) -> i32 {
        i32::try_from(level.level).unwrap_or(i32::MAX)
    }

    pub(crate) fn level_metadata_get_size(level: &LevelMetadata) -> u64 {
        level.bytes()
    }

    pub(crate) fn level_metadata_get_file_count(level: &LevelMetadata) -> usize {
        level.files.len()
    }

    pub(crate) fn level_metadata_get_sst_file_metadata(
        level: &LevelMetadata,
        index: usize,
    ) -> Option<FileMetadata> {
        level.files.get(index).cloned().map(FileMetadata)
    }

    pub(crate) fn sst_file_metadata_get_relative_filename(file: &FileMetadata) -> Option<String> {
        Some(name_of(&file.0))
    }

    pub(crate) fn sst_file_metadata_get_size(file: &FileMetadata) -> u64 {
        file.0.bytes
    }

    pub(crate) fn sst_file_metadata_get_smallestkey(file: &FileMetadata) -> Option<Vec<u8>> {
        Some(file.0.smallest.clone())
    }

    pub(crate) fn sst_file_metadata_get_largestkey(file: &FileMetadata) -> Option<Vec<u8>> {
        Some(file.0.largest.clone())
    }
}
