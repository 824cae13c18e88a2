//! `rocksdb_compact_files`: a compaction of tables that a program names.

use std::ffi::{CStr, c_char, c_int, c_uchar};
use std::path::Path;

use drumlin::internals::names;
use drumlin::{CancelToken, CompactFilesOptions, CompactionInfo, Error, ErrorKind, Result};
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle, Tagged};

use crate::database::Database;
use crate::error::{guard, set};
use crate::family::{Family, array_of, free_array};
use crate::fields::CompactionOptions;
use crate::jobs::CompactionJob;
use crate::options::codec;
use crate::set_options::texts;
use crate::snapshot::ErrPtr;

/// RocksDB's number of "as the family's options say".
const NO_COMPRESSION_IS_SET: i32 = 255;

/// `rocksdb_compaction_options_t`.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilesOptions {
    pub(crate) fields: CompactionOptions,
    cancel: Option<CancelToken>,
}

/// What C knows as an `unsigned char` that it may not look at: RocksDB's is an atomic flag. It may be destroyed before the options.
#[derive(Debug, Default)]
struct Canceled(CancelToken);

impl Tagged for Canceled {
    const TAG: u64 = 0x6361_6e63_656c_6564;
    const NAME: &'static str = "flag of rocksdb_compaction_options_canceled_create";
}

impl FilesOptions {
    fn to_engine(&self) -> Result<CompactFilesOptions> {
        let fields = &self.fields;
        Ok(CompactFilesOptions {
            file_bytes: Some(fields.output_file_size_limit()),
            compression: match fields.compression() {
                NO_COMPRESSION_IS_SET => None,
                number => Some(codec(number)?),
            },
            threads_max: match fields.max_subcompactions() {
                0 => None,
                most => usize::try_from(most).ok(),
            },
            may_move: fields.allow_trivial_move(),
            cancel: self.cancel.clone(),
        })
    }
}

/// The number of the table that `name` names, with or without a directory.
fn number_of(name: &CStr) -> Result<u64> {
    let text = name.to_string_lossy();
    let stem = Path::new(&*text).file_stem().and_then(|stem| stem.to_str());
    let number = stem.and_then(|stem| stem.parse().ok());
    number.ok_or_else(|| Error::invalid_argument(format!("{text} is no table's name")))
}

fn compact(
    db: &Database,
    family: Option<&Family>,
    options: &FilesOptions,
    names: &[&CStr],
    (level, path): (c_int, c_int),
) -> Result<CompactionInfo> {
    let Ok(level) = usize::try_from(level) else {
        return Err(Error::invalid_argument("Output level cannot be negative."));
    };
    if path > 0 {
        let message = format!("the path {path}: a database has one, 0");
        return Err(Error::invalid_argument(message));
    }
    let numbers = names.iter().map(|name| number_of(name));
    let numbers = numbers.collect::<Result<Vec<u64>>>()?;
    let how = options.to_engine()?;
    let done = db
        .db()
        .compact_files(db.family(family), &numbers, level, &how);
    db.finish_removal();
    done.map_err(|error| match &options.cancel {
        Some(cancel) if error.kind() == ErrorKind::Aborted && cancel.is_cancelled() => error
            .with_kind(ErrorKind::Incomplete)
            .context("Manual compaction paused"),
        _ => error,
    })
}

/// The paths of tables and blob files that were written.
fn outputs(db: &Database, info: &CompactionInfo) -> Vec<String> {
    let dir = db.db().path();
    let tables = info
        .output_tables
        .iter()
        .map(|it| names::table(dir, it.number));
    let blobs = info.blob_files.iter().map(|it| names::blob(dir, it.file));
    tables
        .chain(blobs)
        .map(|path| path.display().to_string())
        .collect()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_files(
    db: *mut Handle<Database>,
    options: *const Handle<FilesOptions>,
    input_names: *const *const c_char,
    input_count: usize,
    output_level: c_int,
    output_path: c_int,
    output_names: *mut *mut *mut c_char,
    output_count: *mut usize,
    info: *mut Handle<CompactionJob>,
    errptr: ErrPtr,
) {
    // SAFETY: the C program's promise.
    unsafe {
        rocksdb_compact_files_cf(
            db,
            std::ptr::null_mut(),
            options,
            input_names,
            input_count,
            output_level,
            output_path,
            output_names,
            output_count,
            info,
            errptr,
        );
    }
}

/// Options, family, the places of outputs and the information may be null. Where it fails the outputs stay as they are.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_files_cf(
    db: *mut Handle<Database>,
    family: *mut Handle<Family>,
    options: *const Handle<FilesOptions>,
    input_names: *const *const c_char,
    input_count: usize,
    output_level: c_int,
    output_path: c_int,
    output_names: *mut *mut *mut c_char,
    output_count: *mut usize,
    info: *mut Handle<CompactionJob>,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_compact_files_cf";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let family = (!family.is_null()).then(|| unsafe { handle::get(family, NAME) });
    let none = FilesOptions::default();
    let options = match options.is_null() {
        true => &none,
        // SAFETY: as above.
        false => unsafe { handle::get(options, NAME) },
    };
    // SAFETY: as above.
    let names = unsafe { texts(input_names, input_count, NAME) };
    let work = || compact(db, family, options, &names, (output_level, output_path));
    // SAFETY: as above.
    let Some(done) = (unsafe { guard(NAME, errptr, work) }) else {
        return;
    };
    let made = outputs(db, &done);
    // SAFETY: as above.
    unsafe { set(output_count, 0, made.len()) };
    if !output_names.is_null() {
        // SAFETY: as above.
        unsafe { set(output_names, 0, array_of(&made, NAME)) };
    }
    if !info.is_null() {
        // SAFETY: as above, and one thread at a time has what is filled.
        let info = unsafe { handle::get_mut(info, NAME) };
        *info = CompactionJob::new(&done, db.db());
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_files_output_file_names_destroy(
    names: *mut *mut c_char,
    count: usize,
) {
    // SAFETY: the C program says that the function above made it.
    unsafe { free_array(names, count) };
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_compaction_options_canceled_create() -> *mut c_uchar {
    handle::create(Canceled::default()).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compaction_options_canceled_destroy(canceled: *mut c_uchar) {
    const NAME: &str = "rocksdb_compaction_options_canceled_destroy";
    if !canceled.is_null() {
        let canceled: *mut Handle<Canceled> = canceled.cast();
        // SAFETY: the C program says that the function above made it.
        guard_infallible(NAME, || unsafe { handle::destroy(canceled, NAME) });
    }
}

/// Any thread, while a compaction runs.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compaction_options_canceled_set(
    canceled: *mut c_uchar,
    value: c_uchar,
) {
    const NAME: &str = "rocksdb_compaction_options_canceled_set";
    if canceled.is_null() {
        return;
    }
    let canceled: *const Handle<Canceled> = canceled.cast();
    // SAFETY: as above.
    let Canceled(token) = unsafe { handle::get(canceled, NAME) };
    match value {
        0 => token.reset(),
        _ => token.cancel(),
    }
}

/// Null takes the flag away.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compaction_options_set_canceled(
    options: *mut Handle<FilesOptions>,
    canceled: *mut c_uchar,
) {
    const NAME: &str = "rocksdb_compaction_options_set_canceled";
    // SAFETY: the C program's promise.
    let options = unsafe { handle::get_mut(options, NAME) };
    options.cancel = (!canceled.is_null()).then(|| {
        let canceled: *const Handle<Canceled> = canceled.cast();
        // SAFETY: as above.
        let Canceled(token) = unsafe { handle::get(canceled, NAME) };
        token.clone()
    });
}
