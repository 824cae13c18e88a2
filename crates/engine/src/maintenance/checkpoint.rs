//! A consistent copy of the database in another directory, made of hard links.
//!
//! Tables, models and blob files are immutable, so they are linked, or copied to another file system; the WAL up to this moment is copied, so that
//! nothing has to be flushed; the MANIFEST and the OPTIONS file are written anew. The target appears under its name
//! only when it is complete and on disk.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, FileKind, RandomAccessFile, WritableFile};

use crate::db::engine::Engine;
use crate::files::names;
use crate::maintenance::moment::{Moment, UnderWay, check_wal_is_there};

/// Unfinished copies of one target at a time.
const UNFINISHED_MAX: u32 = 1000;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Makes `target` a copy of the database as of now; of one opened for reading, as of its opening.
///
/// # Errors
/// `InvalidArgument` when `target` exists or names no directory that could be made; `NoSpace`, `Io`; `NotFound` where a writer has removed files since this
/// was opened for reading; `Shutdown` where it is closed meanwhile. A partial copy is removed again.
pub(crate) fn checkpoint(engine: &Engine, target: &Path) -> Result<()> {
    into_new_dir(engine, target, |unfinished| {
        fill_checkpoint(engine, Moment::pin(engine)?, unfinished)
    })
}

/// Has `fill` fill a directory that gets the name `target`, which must not exist, when it is complete and on disk. WAL files
/// are kept meanwhile.
///
/// # Errors
/// As [`checkpoint`].
pub(super) fn into_new_dir(
    engine: &Engine,
    target: &Path,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let files = &engine.store.id.env.files;
    // Without the slash that may end it, which would have names made inside.
    let Some(name) = target.file_name() else {
        let message = "the target of a copy must be a new directory";
        return Err(Error::invalid_argument(message).with_file(target));
    };
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let target = parent.join(name);
    let refuse = || {
        let message = "the target of a copy must not exist";
        Err(Error::invalid_argument(message).with_file(&target))
    };
    if files.exists(&target)? {
        return refuse();
    }
    let _under_way = UnderWay::begin(engine)?;
    let unfinished = make_unfinished(engine, &target)?;
    let made = fill(&unfinished).and_then(|()| {
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
    let message = "too many unfinished copies lie beside the target";
    Err(Error::invalid_argument(message).with_file(target))
}

fn fill_checkpoint(engine: &Engine, moment: Moment, dir: &Path) -> Result<()> {
    let files = &engine.store.id.env.files;
    moment.write_manifest(&**files, dir)?;
    for file in moment.immutable_files(engine)? {
        engine.store.check_open()?; // A closing thread waits for this.
        let name = file.path.file_name().expect("a file of a store has a name");
        link_or_copy(engine, &file.path, &dir.join(name))?;
    }
    for &(number, len) in moment.wals() {
        let from = names::wal(&engine.store.id.wal_dir, number);
        copy_file(engine, &from, &names::wal(dir, number), len)?;
        check_wal_is_there(engine, number, len)?;
    }
    moment.write_descriptions(engine, &**files, dir)?;
    match drumlin_base::bug!("checkpoint-names-unsynced") {
        true => Ok(()),
        false => files.sync_dir(dir),
    }
}

/// Gives the file `from` the second name `to`; copies it where no link can be made (another file system), and where a
/// writer beside a read-only store has removed the name of the held file.
pub(crate) fn link_or_copy(engine: &Engine, from: &Path, to: &Path) -> Result<()> {
    let files = &engine.store.id.env.files;
    let takes_copy = |error: &Error| match error.kind() {
        ErrorKind::NotSupported => !drumlin_base::bug!("checkpoint-only-links"),
        _ => engine.store.id.read_only && error.is_not_found(),
    };
    match files.link(from, to) {
        Err(error) if takes_copy(&error) => {
            let size = files.open(from)?.size();
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
