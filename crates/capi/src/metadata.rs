//! Descriptions of live files: `rocksdb_livefiles_t` and the metadata of families, levels and files.

use std::ffi::{CString, c_char, c_int};

use drumlin::{ColumnFamily, Db, KeyOrder, LiveTable};
use drumlin_ffi::handle::{self, Handle};

use crate::fields::ColumnFamilyMetadataOptions;

/// `rocksdb_livefile_t`: a table of a family, found here or described by the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFile {
    family: CString,
    /// Begins with a slash, as RocksDB's.
    name: CString,
    directory: CString,
    level: i32,
    bytes: usize,
    smallest: Vec<u8>,
    largest: Vec<u8>,
    smallest_seqno: u64,
    largest_seqno: u64,
    entries: u64,
    deletions: u64,
}

impl LiveFile {
    /// None where a name has a zero in it.
    fn of(family: &str, table: LiveTable) -> Option<Self> {
        Some(Self {
            family: CString::new(family).ok()?,
            name: CString::new(format!("/{}", name_of(&table))).ok()?,
            directory: CString::new(directory_of(&table)).ok()?,
            level: i32::try_from(table.level).unwrap_or(i32::MAX),
            bytes: usize::try_from(table.bytes).unwrap_or(usize::MAX),
            smallest: table.smallest,
            largest: table.largest,
            smallest_seqno: table.smallest_seqno,
            largest_seqno: table.largest_seqno,
            entries: table.entries.unwrap_or(0),
            deletions: table.deletions.unwrap_or(0),
        })
    }
}

/// `rocksdb_livefiles_t`.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFiles(Vec<LiveFile>);

/// `rocksdb_column_family_metadata_options_t`: which tables are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetadataOptions {
    pub(crate) fields: ColumnFamilyMetadataOptions,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

impl MetadataOptions {
    /// Whether `table` is in the level, and has keys from the start to the end, both included.
    fn asks_for(&self, table: &LiveTable, order: &KeyOrder) -> bool {
        let level = usize::try_from(self.fields.level());
        let ends_before = |start: &[u8]| order.compare(&table.largest, start).is_lt();
        let begins_after = |end: &[u8]| order.compare(&table.smallest, end).is_gt();
        level.is_ok_and(|level| level == table.level) | level.is_err()
            && !self.start.as_deref().is_some_and(ends_before)
            && !self.end.as_deref().is_some_and(begins_after)
    }
}

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
    let counted = db.count_tables(family);
    counted
        .and_then(|()| db.live_tables(family))
        .unwrap_or_default()
}

/// The name of a table's file.
fn name_of(table: &LiveTable) -> String {
    let name = table.path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Where it is.
fn directory_of(table: &LiveTable) -> String {
    let directory = table.path.parent().map(|path| path.display().to_string());
    directory.unwrap_or_default()
}

impl LiveFiles {
    /// The tables of `family`. Files of which something cannot be told are left out: there is no place for an error.
    pub(crate) fn of(db: &Db, family: &ColumnFamily) -> Self {
        let tables = tables_of(db, family).into_iter();
        Self(
            tables
                .filter_map(|table| LiveFile::of(family.name(), table))
                .collect(),
        )
    }

    /// The folders that its files are in, each once.
    pub(crate) fn directories(&self) -> Vec<&CString> {
        let mut found: Vec<_> = self.0.iter().map(|file| &file.directory).collect();
        found.sort();
        found.dedup();
        found
    }

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

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_livefiles_directory(
    files: *const Handle<LiveFiles>,
    index: c_int,
) -> *const c_char {
    const NAME: &str = "rocksdb_livefiles_directory";
    // SAFETY: the C program's promise.
    unsafe { text_of(files, index, NAME, |file| &file.directory) }
}

pub(crate) mod calls {
    use std::ffi::CStr;

    use super::{
        FamilyMetadata, FileMetadata, LevelMetadata, LiveFile, LiveFiles, MetadataOptions,
        directory_of, name_of, tables_of,
    };
    use crate::database::Database;
    use crate::family::Family;

    /// RocksDB's number of levels.
    const LEVELS: usize = 7;

    pub(crate) fn livefiles(db: &Database) -> LiveFiles {
        let families = db.db().families();
        let each = families.iter().map(|family| LiveFiles::of(db.db(), family));
        LiveFiles(each.flat_map(|files| files.0).collect())
    }

    pub(crate) fn livefiles_count(files: &LiveFiles) -> i32 {
        i32::try_from(files.0.len()).unwrap_or(i32::MAX)
    }

    pub(crate) fn livefiles_level(files: &LiveFiles, index: i32) -> i32 {
        files.at(index).map_or(0, |file| file.level)
    }

    pub(crate) fn livefiles_size(files: &LiveFiles, index: i32) -> usize {
        files.at(index).map_or(0, |file| file.bytes)
    }

    pub(crate) fn livefiles_smallestkey(files: &LiveFiles, index: i32) -> Option<&[u8]> {
        files.at(index).map(|file| &file.smallest[..])
    }

    pub(crate) fn livefiles_largestkey(files: &LiveFiles, index: i32) -> Option<&[u8]> {
        files.at(index).map(|file| &file.largest[..])
    }

    pub(crate) fn livefiles_entries(files: &LiveFiles, index: i32) -> u64 {
        files.at(index).map_or(0, |file| file.entries)
    }

    pub(crate) fn livefiles_deletions(files: &LiveFiles, index: i32) -> u64 {
        files.at(index).map_or(0, |file| file.deletions)
    }

    pub(crate) fn livefiles_smallest_seqno(files: &LiveFiles, index: i32) -> u64 {
        files.at(index).map_or(0, |file| file.smallest_seqno)
    }

    pub(crate) fn livefiles_largest_seqno(files: &LiveFiles, index: i32) -> u64 {
        files.at(index).map_or(0, |file| file.largest_seqno)
    }

    pub(crate) fn livefiles_add(files: &mut LiveFiles, file: Option<LiveFile>) {
        files.0.extend(file);
    }

    pub(crate) fn livefile_set_column_family_name(file: &mut LiveFile, name: &CStr) {
        file.family = name.to_owned();
    }

    pub(crate) fn livefile_set_name(file: &mut LiveFile, name: &CStr) {
        file.name = name.to_owned();
    }

    pub(crate) fn livefile_set_directory(file: &mut LiveFile, directory: &CStr) {
        file.directory = directory.to_owned();
    }

    pub(crate) fn livefile_set_level(file: &mut LiveFile, level: i32) {
        file.level = level;
    }

    pub(crate) fn livefile_set_size(file: &mut LiveFile, bytes: usize) {
        file.bytes = bytes;
    }

    pub(crate) fn livefile_set_smallest_key(file: &mut LiveFile, key: &[u8]) {
        file.smallest = key.to_vec();
    }

    pub(crate) fn livefile_set_largest_key(file: &mut LiveFile, key: &[u8]) {
        file.largest = key.to_vec();
    }

    pub(crate) fn livefile_set_smallest_seqno(file: &mut LiveFile, seqno: u64) {
        file.smallest_seqno = seqno;
    }

    pub(crate) fn livefile_set_largest_seqno(file: &mut LiveFile, seqno: u64) {
        file.largest_seqno = seqno;
    }

    pub(crate) fn livefile_set_num_entries(file: &mut LiveFile, entries: u64) {
        file.entries = entries;
    }

    pub(crate) fn livefile_set_num_deletions(file: &mut LiveFile, deletions: u64) {
        file.deletions = deletions;
    }

    pub(crate) fn column_family_metadata_options_set_start_key(
        options: &mut MetadataOptions,
        key: Option<&[u8]>,
    ) {
        options.start = key.map(<[u8]>::to_vec);
    }

    pub(crate) fn column_family_metadata_options_set_end_key(
        options: &mut MetadataOptions,
        key: Option<&[u8]>,
    ) {
        options.end = key.map(<[u8]>::to_vec);
    }

    pub(crate) fn column_family_metadata_options_get_start_key(
        options: &MetadataOptions,
    ) -> Option<&[u8]> {
        options.start.as_deref()
    }

    pub(crate) fn column_family_metadata_options_get_end_key(
        options: &MetadataOptions,
    ) -> Option<&[u8]> {
        options.end.as_deref()
    }

    pub(crate) fn get_column_family_metadata_cf(
        db: &Database,
        family: Option<&Family>,
    ) -> FamilyMetadata {
        get_column_family_metadata_cf_with_options(db, family, None)
    }

    pub(crate) fn get_column_family_metadata_cf_with_options(
        db: &Database,
        family: Option<&Family>,
        options: Option<&MetadataOptions>,
    ) -> FamilyMetadata {
        let family = db.family(family);
        let mut tables = tables_of(db.db(), family);
        let order = family.order();
        tables.retain(|table| options.is_none_or(|options| options.asks_for(table, order)));
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

    pub(crate) fn sst_file_metadata_get_directory(file: &FileMetadata) -> Option<String> {
        Some(directory_of(&file.0))
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
