//! `rocksdb_wal_files_t`: the files of the write-ahead log that the database needs.

use std::ffi::{CString, c_char};

use drumlin::{Db, Error, LiveFileKind, Result};
use drumlin_ffi::handle::{self, Handle};

use crate::jobs::Lent;

/// `rocksdb_wal_file_t`.
#[derive(Clone, Debug)]
pub(crate) struct WalFile {
    /// Begins with a slash, as RocksDB's.
    name: CString,
    number: u64,
    bytes: u64,
    first_seqno: u64,
}

/// `rocksdb_wal_files_t`: oldest first.
#[derive(Debug)]
pub(crate) struct WalFiles(Vec<Lent<WalFile>>);

/// Those of `db`, oldest first.
fn wal_files(db: &Db) -> Result<Vec<WalFile>> {
    let files = db.live_files()?.into_iter();
    let wals = files.filter(|file| file.kind == LiveFileKind::Wal);
    let mut found = Vec::new();
    for file in wals {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.trim_end_matches(".log").parse();
        let wrong = |_| Error::corruption("a WAL file without a number").with_file(&file.path);
        found.push(WalFile {
            number: number.map_err(wrong)?,
            bytes: file.bytes.unwrap_or(0),
            first_seqno: file.first_seqno.unwrap_or(0),
            name: CString::new(format!("/{name}")).unwrap_or_default(),
        });
    }
    found.sort_by_key(|file| file.number);
    Ok(found)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_wal_file_path_name(file: *const Handle<WalFile>) -> *const c_char {
    // SAFETY: the C program's promise.
    let file = unsafe { handle::get(file, "rocksdb_wal_file_path_name") };
    file.name.as_ptr()
}

/// Null behind the last one, where RocksDB crashes.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_wal_files_get_wal_file(
    files: *const Handle<WalFiles>,
    index: usize,
) -> *const Handle<WalFile> {
    // SAFETY: the C program's promise.
    let files = unsafe { handle::get(files, "rocksdb_wal_files_get_wal_file") };
    let file = files.0.get(index);
    file.map_or(std::ptr::null(), |file| file.handle().cast_const())
}

pub(crate) mod calls {
    use drumlin::{Error, ErrorKind, Result};

    use super::{WalFile, WalFiles, wal_files};
    use crate::database::Database;
    use crate::jobs::Lent;

    /// RocksDB's number of a file that is still written, or waits for a flush.
    const ALIVE: i32 = 1;

    pub(crate) fn get_sorted_wal_files(db: &Database) -> Result<WalFiles> {
        let files = wal_files(db.db())?.into_iter();
        Ok(WalFiles(files.map(Lent::new).collect()))
    }

    pub(crate) fn get_current_wal_file(db: &Database) -> Result<WalFile> {
        let last = wal_files(db.db())?.pop();
        last.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no WAL file"))
    }

    pub(crate) fn wal_files_count(files: &WalFiles) -> usize {
        files.0.len()
    }

    pub(crate) fn wal_file_log_number(file: &WalFile) -> u64 {
        file.number
    }

    /// Files that are kept for a change feed are not told of.
    pub(crate) fn wal_file_type(_file: &WalFile) -> i32 {
        ALIVE
    }

    /// 0 of a file in which nothing was written yet.
    pub(crate) fn wal_file_start_sequence(file: &WalFile) -> u64 {
        file.first_seqno
    }

    pub(crate) fn wal_file_size_file_bytes(file: &WalFile) -> u64 {
        file.bytes
    }
}
