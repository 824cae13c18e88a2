//! A consistent copy of the database in another directory, made of hard links.
//!
//! Tables, models and blob files are immutable, so they are linked; the WAL up to this moment is copied, so that
//! nothing has to be flushed; the MANIFEST and the OPTIONS file are written anew. The target appears under its name
//! only when it is complete and on disk.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, FileKind, RandomAccessFile, WritableFile};

use crate::db::engine::Engine;
use crate::files::names;
use crate::options::file as options_file;
use crate::options::file::OptionsFile;
use crate::options::stored as stored_options;
use crate::version::Version;
use crate::wal::replay as wal_replay;

/// The files of a checkpoint, as of one moment.
struct PinnedFiles {
    versions: Vec<std::sync::Arc<Version>>,
    wals: Vec<(u64, u64)>,
    /// With the number of their file; `None` where the directory has no such file.
    options: Option<(u64, OptionsFile)>,
}

/// A checkpoint under way: keeps WAL files from being removed, and the directory from being given back,
/// until it is dropped.
struct UnderWay<'a>(&'a Engine);

impl<'a> UnderWay<'a> {
    fn begin(engine: &'a Engine) -> Result<Self> {
        let mut state = engine.store.lock_state();
        // Under the lock, as a closing thread looks at the count under it.
        engine.store.check_open()?;
        state.wal_pins += 1;
        Ok(Self(engine))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.store.lock_state();
        state.wal_pins -= 1;
        if !self.0.store.id.read_only {
            // Files that became obsolete meanwhile.
            self.0.store.remove_obsolete(&mut state);
        }
        self.0.store.changed.notify_all();
    }
}

/// Unfinished checkpoints of one target at a time.
const UNFINISHED_MAX: u32 = 1000;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Makes `target` a copy of the database as of now; of one opened for reading, as of its opening.
///
/// # Errors
/// `InvalidArgument` when `target` exists or names no directory that could be made; `NotSupported` where
/// it is on another file system; `NoSpace`, `Io`; `NotFound` where a writer has removed files since this
/// was opened for reading; `Shutdown` where it is closed meanwhile. A partial copy is removed again.
pub(crate) fn checkpoint(engine: &Engine, target: &Path) -> Result<()> {
    let files = &engine.store.id.env.files;
    // Without the slash that may end it, which would have names made inside.
    let Some(name) = target.file_name() else {
        let message = "the target of a checkpoint must be a new directory";
        return Err(Error::invalid_argument(message).with_file(target));
    };
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let target = parent.join(name);
    let refuse = || {
        let message = "the target of a checkpoint must not exist";
        Err(Error::invalid_argument(message).with_file(&target))
    };
    if files.exists(&target)? {
        return refuse();
    }
    let _under_way = UnderWay::begin(engine)?;
    let unfinished = make_unfinished(engine, &target)?;
    let pinned = pin_files(engine, &unfinished);
    let made = pinned.and_then(|files| fill_checkpoint(engine, &files, &unfinished));
    let made = made.and_then(|()| {
        // A directory only takes the place of an empty one, so a copy that somebody else made
        // meanwhile stays.
        if files.exists(&target)? {
            return refuse();
        }
        files.rename(&unfinished, &target)?;
        files.sync_dir(parent)
    });
    if made.is_err() {
        // The error that matters is the first.
        let _ = remove_dir_with_files(engine, &unfinished);
    }
    made
}

/// A new directory beside `target`, of this call alone.
fn make_unfinished(engine: &Engine, target: &Path) -> Result<PathBuf> {
    let files = &engine.store.id.env.files;
    if let Some(parent) = target.parent() {
        files.create_dir_all(parent)?;
    }
    for attempt in 0..UNFINISHED_MAX {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(
            ".{}-{attempt}.unfinished",
            engine.store.id.session_id
        ));
        let unfinished = PathBuf::from(name);
        if files.create_dir(&unfinished)? {
            return Ok(unfinished);
        }
    }
    let message = "too many unfinished checkpoints lie beside the target";
    Err(Error::invalid_argument(message).with_file(target))
}

/// Pins tables and WAL lengths at a moment between two write groups, and writes the MANIFEST
/// for it.
fn pin_files(engine: &Engine, dir: &Path) -> Result<PinnedFiles> {
    let stored = stored_options::read(&engine.store.id.dir, &engine.store.id.options)?;
    engine.writes.run_exclusive(|log| {
        engine.store.check_open()?;
        let state = engine.store.lock_state();
        let oldest = state.versions.min_log_number();
        // Where nothing may be written the WALs that were replayed, up to where they were.
        let mut wals = engine.store.id.recovered().wals.clone();
        for &number in state.wals.range(oldest..) {
            let len = match log.wal.len_of(number) {
                Some(len) => len,
                None => files_len(engine, number)?,
            };
            wals.push((number, len));
        }
        let versions = state.families.values().map(|f| f.version.clone()).collect();
        // Before the MANIFEST, which records the next number.
        let options = match engine.store.id.leveldb {
            true => None,
            false => Some((
                engine.store.files.numbers.take(),
                stored_options::options_of_copy(&engine.store, &state, stored),
            )),
        };
        state.versions.write_copy(dir)?;
        Ok(PinnedFiles {
            versions,
            wals,
            options,
        })
    })
}

fn fill_checkpoint(engine: &Engine, pinned: &PinnedFiles, dir: &Path) -> Result<()> {
    let files = &engine.store.id.env.files;
    for version in &pinned.versions {
        for (_, file) in version.files() {
            engine.store.check_open()?; // A closing thread waits for this.
            let from = engine.store.caches.table_cache.path(file.number);
            let name = from.file_name().expect("a table has a name");
            link_or_copy(engine, &from, &dir.join(name))?;
        }
        for id in version.files().filter_map(|(_, file)| file.model()) {
            let to = names::model(dir, id);
            if !files.exists(&to)? {
                link_or_copy(engine, &names::model(&engine.store.id.dir, id), &to)?;
            }
        }
        for &number in version.blobs().keys() {
            engine.store.check_open()?;
            let from = names::blob(&engine.store.id.dir, number);
            link_or_copy(engine, &from, &names::blob(dir, number))?;
        }
    }
    for &(number, len) in &pinned.wals {
        let from = names::wal(&engine.store.id.wal_dir, number);
        copy_file(engine, &from, &names::wal(dir, number), len)?;
        // A writer beside one that only reads may have begun to write another over it.
        let is_gone = || Ok(!wal_replay::begins_with_own(files.open(&from)?, number)?);
        if engine.store.id.read_only && len > 0 && is_gone()? {
            let message = "a writer has flushed the WAL since this was opened for reading";
            return Err(Error::new(ErrorKind::NotFound, message).with_file(&from));
        }
    }
    if let Some((number, options)) = &pinned.options {
        options_file::write(&**files, dir, *number, options)?;
    }
    // LevelDB's directories have none, which is how they are recognized.
    if engine.store.id.leveldb {
        return files.sync_dir(dir);
    }
    let identity = names::identity(dir);
    let mut file = files.create(&identity, CreateOptions::new(FileKind::Other))?;
    file.append(engine.store.id.db_id.as_bytes())?;
    file.sync()?;
    file.close()?;
    match drumlin_base::bug!("checkpoint-names-unsynced") {
        true => Ok(()),
        false => files.sync_dir(dir),
    }
}

/// Gives the file `from` the second name `to`; copies the held file where a writer beside a read-only store
/// has removed the name.
fn link_or_copy(engine: &Engine, from: &Path, to: &Path) -> Result<()> {
    match engine.store.id.env.files.link(from, to) {
        Err(error) if engine.store.id.read_only && error.is_not_found() => {
            let size = engine.store.id.env.files.open(from)?.size();
            copy_file(engine, from, to, size)
        }
        linked => linked,
    }
}

/// Copies the first `len` bytes of a file into the new one `to` and syncs the copy. One that fails is
/// removed.
pub(crate) fn copy_file(engine: &Engine, from: &Path, to: &Path, len: u64) -> Result<()> {
    let files = &engine.store.id.env.files;
    let source = files.open(from)?;
    // As a table: made once, and written in large pieces.
    let target = files.create(to, CreateOptions::new(FileKind::Table))?;
    copy(&*source, target, len).map_err(|error| {
        // The error of the copy is the one that matters.
        let _ = files.remove(to);
        error.with_file(from)
    })
}

fn remove_dir_with_files(engine: &Engine, dir: &Path) -> Result<()> {
    let files = &engine.store.id.env.files;
    let names = match files.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in names {
        files.remove(&dir.join(name))?;
    }
    files.remove_dir(dir)
}

/// Writes the first `len` bytes of `source` to `target`, synced.
fn copy(source: &dyn RandomAccessFile, mut target: Box<dyn WritableFile>, len: u64) -> Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    let len = match drumlin_base::bug!("checkpoint-without-wal") {
        true => len / 2,
        false => len,
    };
    while at < len {
        let wanted = usize::try_from(len - at)
            .unwrap_or(COPY_BYTES)
            .min(COPY_BYTES);
        let (chunk, _) = buffer.split_at_mut(wanted);
        let read = source.read_at(at, chunk)?;
        if read == 0 {
            let message = format!("the file ends at {at}, before {len}");
            return Err(Error::corruption(message));
        }
        target.append(
            chunk
                .get(..read)
                .expect("a read gives at most what was asked for"),
        )?;
        at += read as u64;
    }
    target.sync()?;
    target.close()
}

fn files_len(engine: &Engine, wal: u64) -> Result<u64> {
    engine
        .store
        .id
        .env
        .files
        .info(&names::wal(&engine.store.id.wal_dir, wal))
        .map(|info| info.size)
}
