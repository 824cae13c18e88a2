//! `rocksdb_backup_engine_t`, its options, and what it tells about backups.

use std::ffi::{c_char, c_uchar, c_void};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::{
    BackupInfo, BackupOptions, Backups, CancelToken, Env, Error, ErrorKind, LeavesOut,
    ProgressListener, RateLimit, Result, TransferOptions, TransferProgress,
};
use drumlin_ffi::bytes;
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{guard, set};
pub(crate) use crate::fields::BackupEngineOptions as BackupFields;
use crate::fields::CreateBackupOptions;
use crate::snapshot::ErrPtr;

/// `rocksdb_backup_engine_t`.
#[derive(Debug)]
pub(crate) struct BackupEngine {
    backups: Backups,
    fields: BackupFields,
    /// Ends backups that are made; for good, as RocksDB's.
    stop: CancelToken,
}

/// `rocksdb_backup_engine_options_t`.
pub(crate) struct BackupEngineOptions {
    pub(crate) fields: BackupFields,
    dir: PathBuf,
    env: Option<Env>,
}

type OnProgress = unsafe extern "C" fn(*mut c_void);
type IsLeftOut = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar;

/// A function of the program, and its state.
#[derive(Clone, Copy, Debug)]
struct Callback<F> {
    state: *mut c_void,
    function: F,
}

// SAFETY: `rocksdb/c.h` says that they are called by the threads that copy, which here is the caller's.
unsafe impl<F> Send for Callback<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for Callback<F> {}

/// `rocksdb_create_backup_options_t`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewBackup {
    pub(crate) fields: CreateBackupOptions,
    progress: Option<Callback<OnProgress>>,
    leaves_out: Option<Callback<IsLeftOut>>,
}

impl NewBackup {
    /// Calls the program's function each time that `interval` more bytes were read.
    fn progress(&self, interval: u64) -> Option<ProgressListener> {
        let callback = self.progress?;
        let told = AtomicU64::new(0);
        Some(Arc::new(move |at: TransferProgress| {
            let callback = callback;
            let steps = at.bytes / interval.max(1);
            for _ in told.swap(steps, Ordering::Relaxed)..steps {
                // SAFETY: the function is given its state, by the thread that asked for the backup.
                unsafe { (callback.function)(callback.state) };
            }
        }))
    }

    fn leaves_out(&self) -> Option<LeavesOut> {
        let callback = self.leaves_out?;
        Some(Arc::new(move |path: &str| {
            let callback = callback;
            // SAFETY: as above, and a path that lives until it returns.
            let answer =
                unsafe { (callback.function)(callback.state, path.as_ptr().cast(), path.len()) };
            answer != 0
        }))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_backup_options_set_progress_callback(
    options: *mut Handle<NewBackup>,
    state: *mut c_void,
    callback: Option<OnProgress>,
) {
    const NAME: &str = "rocksdb_create_backup_options_set_progress_callback";
    // SAFETY: the C program's promise.
    let options = unsafe { handle::get_mut(options, NAME) };
    options.progress = callback.map(|function| Callback { state, function });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_backup_options_set_exclude_files_callback(
    options: *mut Handle<NewBackup>,
    state: *mut c_void,
    callback: Option<IsLeftOut>,
) {
    const NAME: &str = "rocksdb_create_backup_options_set_exclude_files_callback";
    // SAFETY: the C program's promise.
    let options = unsafe { handle::get_mut(options, NAME) };
    options.leaves_out = callback.map(|function| Callback { state, function });
}

/// `rocksdb_backup_engine_info_t`: the whole backups, oldest first.
#[derive(Debug)]
pub(crate) struct BackupInfos(Vec<BackupInfo>);

impl BackupEngine {
    fn open(dir: PathBuf, env: Env, fields: BackupFields) -> Result<Self> {
        env.files.create_dir_all(&dir)?;
        let backups = Backups::new(dir, env);
        // What is wrong with the directory shows now; an empty one is none of backups yet.
        match backups.list() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) if fields.destroy_old_data() => {
                backups.purge(0)?;
            }
            Ok(_) => {}
        }
        Ok(Self {
            backups,
            fields,
            stop: CancelToken::default(),
        })
    }

    /// Makes a backup and gives its number.
    fn create(&self, db: &Database, how: &NewBackup, note: &[u8]) -> Result<u32> {
        if how.leaves_out.is_some() && self.fields.schema_version() < 2 {
            let message = "exclude_files_callback requires schema_version >= 2";
            return Err(Error::invalid_argument(message));
        }
        if how.fields.flush_before_backup() {
            db.db().flush()?;
        }
        let mut transfer = transfer(self.fields.backup_rate_limit());
        transfer.cancel = Some(self.stop.clone());
        transfer.progress = how.progress(self.fields.callback_trigger_interval_size());
        let options = BackupOptions {
            note: note.to_vec(),
            transfer,
            leaves_out: how.leaves_out(),
        };
        let made = self.backups.create(db.db(), &options)?;
        Ok(made.id)
    }
}

fn transfer(bytes_a_second: u64) -> TransferOptions {
    TransferOptions {
        rate: match bytes_a_second {
            0 => RateLimit::Unlimited,
            bytes => RateLimit::Fixed(bytes),
        },
        ..TransferOptions::default()
    }
}

impl BackupInfos {
    fn at(&self, index: i32) -> Option<&BackupInfo> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.0.get(index))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_with_options(
    engine: *mut Handle<BackupEngine>,
    db: *mut Handle<Database>,
    options: *const Handle<NewBackup>,
    id: *mut u32,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_backup_engine_create_new_backup_with_options";
    // SAFETY: the C program's promise.
    unsafe { create_noted(NAME, (engine, db), options, &[], (id, errptr)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_backup_engine_create_new_backup_with_metadata(
    engine: *mut Handle<BackupEngine>,
    db: *mut Handle<Database>,
    options: *const Handle<NewBackup>,
    note: *const c_char,
    note_len: usize,
    id: *mut u32,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_backup_engine_create_new_backup_with_metadata";
    let note = match note.is_null() {
        true => &[],
        // SAFETY: the C program's promise.
        false => unsafe { bytes::slice(note, note_len, NAME) },
    };
    // SAFETY: as above.
    unsafe { create_noted(NAME, (engine, db), options, note, (id, errptr)) };
}

/// # Safety
/// The arguments are as `rocksdb/c.h` has them.
unsafe fn create_noted(
    name: &str,
    (engine, db): (*mut Handle<BackupEngine>, *mut Handle<Database>),
    options: *const Handle<NewBackup>,
    note: &[u8],
    (id, errptr): (*mut u32, ErrPtr),
) {
    // SAFETY: the caller's promise.
    let engine = unsafe { handle::get(engine, name) };
    // SAFETY: as above.
    let db = unsafe { handle::get(db, name) };
    let plain = NewBackup::default();
    let options = match options.is_null() {
        true => &plain,
        // SAFETY: as above.
        false => unsafe { handle::get(options, name) },
    };
    // SAFETY: as above.
    let made = unsafe { guard(name, errptr, || engine.create(db, options, note)) };
    if let Some(made) = made {
        // SAFETY: as above.
        unsafe { set(id, 0, made) };
    }
}

pub(crate) mod calls {
    use std::ffi::CStr;
    use std::os::unix::ffi::OsStrExt;

    use drumlin::{CheckDepth, Error, ErrorKind, RestoreOptions as Restore, Result};
    use drumlin_ffi::bytes::path_of;

    use super::{
        BackupEngine, BackupEngineOptions, BackupFields, BackupInfos, NewBackup, transfer,
    };
    use crate::database::Database;
    use crate::env::Environment;
    use crate::fields::RestoreOptions;
    use crate::misc::RateLimiter;
    use crate::options::OpenOptions;

    pub(crate) fn backup_engine_options_create(dir: &CStr) -> BackupEngineOptions {
        BackupEngineOptions {
            fields: BackupFields::default(),
            dir: path_of(dir),
            env: None,
        }
    }

    pub(crate) fn backup_engine_options_set_backup_dir(
        options: &mut BackupEngineOptions,
        dir: &CStr,
    ) {
        options.dir = path_of(dir);
    }

    pub(crate) fn backup_engine_options_get_backup_dir(
        options: &mut BackupEngineOptions,
    ) -> Option<&[u8]> {
        Some(options.dir.as_os_str().as_bytes())
    }

    pub(crate) fn backup_engine_options_set_backup_rate_limiter(
        options: &mut BackupEngineOptions,
        limiter: &RateLimiter,
    ) {
        options.fields.backup_rate_limit = Some(limiter.bytes_a_second);
    }

    pub(crate) fn backup_engine_options_set_restore_rate_limiter(
        options: &mut BackupEngineOptions,
        limiter: &RateLimiter,
    ) {
        options.fields.restore_rate_limit = Some(limiter.bytes_a_second);
    }

    pub(crate) fn backup_engine_options_set_env(
        options: &mut BackupEngineOptions,
        env: Option<&Environment>,
    ) {
        options.env = env.map(|env| env.env.clone());
    }

    pub(crate) fn backup_engine_open(options: &OpenOptions, dir: &CStr) -> Result<BackupEngine> {
        BackupEngine::open(path_of(dir), options.environment(), BackupFields::default())
    }

    pub(crate) fn backup_engine_open_opts(
        options: &BackupEngineOptions,
        env: Option<&Environment>,
    ) -> Result<BackupEngine> {
        let env = env.map(|env| env.env.clone()).or(options.env.clone());
        let env = env.unwrap_or_else(drumlin::Env::system);
        BackupEngine::open(options.dir.clone(), env, options.fields.clone())
    }

    pub(crate) fn backup_engine_create_new_backup(
        engine: &BackupEngine,
        db: &Database,
    ) -> Result<()> {
        engine.create(db, &NewBackup::default(), &[]).map(drop)
    }

    pub(crate) fn backup_engine_create_new_backup_flush(
        engine: &BackupEngine,
        db: &Database,
        flush: bool,
    ) -> Result<()> {
        let mut how = NewBackup::default();
        how.fields.flush_before_backup = Some(flush);
        engine.create(db, &how, &[]).map(drop)
    }

    pub(crate) fn backup_engine_purge_old_backups(engine: &BackupEngine, keep: u32) -> Result<()> {
        engine.backups.purge(keep as usize).map(drop)
    }

    /// As RocksDB does it: every file is there, in its size.
    pub(crate) fn backup_engine_verify_backup(engine: &BackupEngine, id: u32) -> Result<()> {
        let options = transfer(engine.fields.restore_rate_limit());
        let checked = engine.backups.verify(Some(id), CheckDepth::Sizes, &options);
        match checked.map_err(missing)?.damaged.into_iter().next() {
            Some((file, error)) => Err(error.with_kind(ErrorKind::Corruption).with_file(&file)),
            None => Ok(()),
        }
    }

    /// A backup that is not there, in RocksDB's words.
    fn missing(error: Error) -> Error {
        match error.kind() {
            ErrorKind::NotFound => {
                let message = format!("Backup not found: {error}");
                Error::new(ErrorKind::NotFound, message)
            }
            _ => error,
        }
    }

    fn restore(
        engine: &BackupEngine,
        id: Option<u32>,
        (dir, wal_dir): (&CStr, &CStr),
        options: Option<&RestoreOptions>,
    ) -> Result<()> {
        if options.is_some_and(|options| options.keep_log_files() != 0) {
            let message = "keep_log_files=1: a restored database has the backup's WAL only";
            return Err(Error::not_supported(message));
        }
        let options = Restore {
            files: None,
            wal_dir: (wal_dir != dir && !wal_dir.is_empty()).then(|| path_of(wal_dir)),
            replace: true,
            transfer: transfer(engine.fields.restore_rate_limit()),
        };
        let restored = engine.backups.restore(id, path_of(dir), &options);
        restored.map(drop).map_err(missing)
    }

    pub(crate) fn backup_engine_restore_db_from_latest_backup(
        engine: &BackupEngine,
        dir: &CStr,
        wal_dir: &CStr,
        options: Option<&RestoreOptions>,
    ) -> Result<()> {
        restore(engine, None, (dir, wal_dir), options)
    }

    pub(crate) fn backup_engine_restore_db_from_backup(
        engine: &BackupEngine,
        dir: &CStr,
        wal_dir: &CStr,
        options: Option<&RestoreOptions>,
        id: u32,
    ) -> Result<()> {
        restore(engine, Some(id), (dir, wal_dir), options)
    }

    /// None where the directory cannot be read: there is no place for an error.
    pub(crate) fn backup_engine_get_backup_info(engine: &BackupEngine) -> BackupInfos {
        let listed = engine.backups.list().unwrap_or_default();
        let is_as_made = |it: &super::BackupInfo| it.damage.is_none() || !it.left_out.is_empty();
        let whole = listed.into_iter().filter(is_as_made);
        let mut whole: Vec<_> = whole.collect();
        whole.sort_by_key(|info| info.id);
        BackupInfos(whole)
    }

    pub(crate) fn backup_engine_info_count(infos: &BackupInfos) -> i32 {
        i32::try_from(infos.0.len()).unwrap_or(i32::MAX)
    }

    pub(crate) fn backup_engine_info_timestamp(infos: &BackupInfos, index: i32) -> i64 {
        let seconds = infos.at(index).map_or(0, |info| info.unix_seconds);
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }

    pub(crate) fn backup_engine_info_backup_id(infos: &BackupInfos, index: i32) -> u32 {
        infos.at(index).map_or(0, |info| info.id)
    }

    pub(crate) fn backup_engine_info_size(infos: &BackupInfos, index: i32) -> u64 {
        infos.at(index).map_or(0, |info| info.bytes)
    }

    pub(crate) fn backup_engine_info_app_metadata(
        infos: &BackupInfos,
        index: i32,
    ) -> Option<&[u8]> {
        infos.at(index).map(|info| info.note.as_slice())
    }

    pub(crate) fn backup_engine_stop_backup(engine: &BackupEngine) {
        engine.stop.cancel();
    }

    pub(crate) fn backup_engine_info_number_files(infos: &BackupInfos, index: i32) -> u32 {
        let files = infos.at(index).map_or(0, |info| info.files);
        u32::try_from(files).unwrap_or(u32::MAX)
    }
}
