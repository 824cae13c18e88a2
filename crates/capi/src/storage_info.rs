//! `rocksdb_livefiles_storage_info_t`: the files of a copy of the database, for a program that makes it.

use std::ffi::{CString, c_char};
use std::path::Path;

use drumlin::{Db, LiveFileKind, MomentFile, Result};
use drumlin_ffi::handle::{self, Handle};

use crate::fields::LivefilesStorageInfoOptions;

/// One file, with the texts that C is lent.
#[derive(Debug)]
struct StoredFile {
    file: MomentFile,
    name: CString,
    directory: CString,
}

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct StorageInfo {
    files: Vec<StoredFile>,
    /// What is told of each file's checksum where that was asked for: RocksDB's name of none.
    checksum_name: CString,
}

impl StorageInfo {
    /// Flushes before, where the WAL has as many bytes as the options say.
    fn of(db: &Db, options: Option<&LivefilesStorageInfoOptions>) -> Result<Self> {
        let flushes_from = options.map_or(0, LivefilesStorageInfoOptions::wal_size_for_flush);
        let mut files = db.moment_files()?;
        let wals = files.iter().filter(|it| it.kind == LiveFileKind::Wal);
        if flushes_from != u64::MAX && wals.map(|it| it.bytes).sum::<u64>() >= flushes_from {
            db.flush()?;
            files = db.moment_files()?;
        }
        let tells_checksums =
            options.is_some_and(LivefilesStorageInfoOptions::include_checksum_info);
        let text = |path: Option<&Path>| {
            let bytes = path.map(|it| it.as_os_str().as_encoded_bytes().to_vec());
            CString::new(bytes.unwrap_or_default()).unwrap_or_default()
        };
        let stored = |file: MomentFile| StoredFile {
            name: text(file.path.file_name().map(Path::new)),
            directory: text(file.path.parent()),
            file,
        };
        Ok(Self {
            files: files.into_iter().map(stored).collect(),
            checksum_name: match tells_checksums {
                true => c"Unknown".to_owned(),
                false => CString::default(),
            },
        })
    }
}

/// A text of the file at `index` that stays as long as the list; null behind the last one.
///
/// # Safety
/// `info` is a handle, or null.
unsafe fn text_of(
    info: *const Handle<StorageInfo>,
    index: usize,
    function: &str,
    text: impl for<'a> FnOnce(&'a StorageInfo, &'a StoredFile) -> &'a CString,
) -> *const c_char {
    // SAFETY: the caller's promise.
    let info = unsafe { handle::get(info, function) };
    let file = info.files.get(index);
    file.map_or(std::ptr::null(), |file| text(info, file).as_ptr())
}

/// The functions that lend a text.
macro_rules! texts {
    ($($function:ident $text:expr;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $function(
            info: *const Handle<StorageInfo>,
            index: usize,
        ) -> *const c_char {
            // SAFETY: the C program's promise.
            unsafe { text_of(info, index, stringify!($function), $text) }
        })*
    };
}

texts! {
    rocksdb_livefiles_storage_info_relative_filename |_, file| &file.name;
    rocksdb_livefiles_storage_info_directory |_, file| &file.directory;
    rocksdb_livefiles_storage_info_file_checksum_func_name |info, _| &info.checksum_name;
}

/// No file has one: it is empty.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_livefiles_storage_info_file_checksum(
    info: *const Handle<StorageInfo>,
    index: usize,
) -> *const c_char {
    // SAFETY: the C program's promise.
    let info = unsafe { handle::get(info, "rocksdb_livefiles_storage_info_file_checksum") };
    let is_there = index < info.files.len();
    if is_there {
        c"".as_ptr()
    } else {
        std::ptr::null()
    }
}

pub(crate) mod calls {
    use drumlin::{LiveFileKind, MomentFile, Result};

    use super::StorageInfo;
    use crate::database::Database;
    use crate::fields::LivefilesStorageInfoOptions;

    pub(crate) fn get_livefiles_storage_info(
        db: &Database,
        options: Option<&LivefilesStorageInfoOptions>,
    ) -> Result<StorageInfo> {
        StorageInfo::of(db.db(), options)
    }

    fn at(info: &StorageInfo, index: usize) -> Option<&MomentFile> {
        info.files.get(index).map(|it| &it.file)
    }

    pub(crate) fn livefiles_storage_info_count(info: &StorageInfo) -> usize {
        info.files.len()
    }

    pub(crate) fn livefiles_storage_info_file_number(info: &StorageInfo, index: usize) -> u64 {
        at(info, index).map_or(0, |file| file.number)
    }

    /// RocksDB's number of the kind of a file; models, which it does not have, are told as temporary files.
    pub(crate) fn livefiles_storage_info_file_type(info: &StorageInfo, index: usize) -> i32 {
        at(info, index).map_or(5, |file| match file.kind {
            LiveFileKind::Wal => 0,
            LiveFileKind::Table => 2,
            LiveFileKind::Manifest => 3,
            LiveFileKind::Current => 4,
            LiveFileKind::Options => 9,
            LiveFileKind::Blob => 10,
            _ => 5,
        })
    }

    pub(crate) fn livefiles_storage_info_size(info: &StorageInfo, index: usize) -> u64 {
        at(info, index).map_or(0, |file| file.bytes)
    }

    /// Unknown: no file is kept warmer than another.
    pub(crate) fn livefiles_storage_info_temperature(_info: &StorageInfo, _index: usize) -> i32 {
        0
    }

    /// Empty where the file has its content.
    pub(crate) fn livefiles_storage_info_replacement_contents(
        info: &StorageInfo,
        index: usize,
    ) -> Option<&[u8]> {
        at(info, index).map(|file| file.contents.as_deref().unwrap_or_default())
    }

    pub(crate) fn livefiles_storage_info_trim_to_size(info: &StorageInfo, index: usize) -> bool {
        at(info, index).is_some_and(|file| file.may_be_longer)
    }
}
