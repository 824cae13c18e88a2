//! The directory that holds the WAL, and its owner.
//!
//! The MANIFEST says which WAL files are needed, and not where they are. RocksDB keeps the place in the OPTIONS
//! file, and so do we. Where that file and the caller differ, or neither knows, the wrong place looks like an
//! empty WAL: nothing would be replayed, and the next open by the right one would remove what was not. So
//! files that may be needed are also looked for elsewhere, and refuse the open. Nothing is taken from the
//! OPTIONS file alone: a copy of the directory has it too, and the files there are the original's.
//!
//! A directory apart is claimed by a lock: two stores that share one would write over each other's files. Limit:
//! the files of a closed store do not show whose they are.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};
use drumlin_fs::{Env, FileLock};

use crate::files::names::{self, FileName};
use crate::options::file as options_file;
use crate::options::file::OptionsFile;
use crate::version::RecoveredInfo;
use crate::wal::replay;

/// The WAL directory of the database in `dir`, whose OPTIONS file is `stored`: where the caller
/// says (`given`), else beside the tables.
///
/// # Errors
/// `InvalidArgument` naming both places where WAL files that may be needed, those from `needed_from` on, are
/// elsewhere; `Io`.
pub(crate) fn resolve(
    env: &Env,
    dir: &Path,
    given: Option<&Path>,
    stored: Option<&OptionsFile>,
    needed_from: u64,
) -> Result<PathBuf> {
    let chosen = given.unwrap_or(dir);
    let named = stored.and_then(|file| file.database.get(options_file::WAL_DIR));
    let named = named.map(Path::new).filter(|named| {
        let is_named = !named.as_os_str().is_empty();
        is_named && !is_same(named, dir)
    });
    for other in named.into_iter().chain([dir]) {
        if is_same(other, chosen) || holds_another_database(env, dir, other)? {
            continue;
        }
        if let Some(wal) = first_needed(env, other, needed_from)? {
            let message = format!(
                "{} holds what was written and is in no table yet, and the WAL directory of this open is {}; \
                 nothing was changed. Give wal_dir as it was when the database was written",
                names::wal(other, wal).display(),
                chosen.display()
            );
            return Err(Error::invalid_argument(message).with_file(dir));
        }
    }
    if let Some(named) = named
        && given.is_none()
        && !env.files.exists(named)?
        && !has_any(env, dir, needed_from)?
    {
        let message = format!(
            "the WAL directory {}, which the OPTIONS file names, is not there; nothing was changed. Give \
             wal_dir: where it is now, or {} to go on without it",
            named.display(),
            dir.display()
        );
        return Err(Error::invalid_argument(message).with_file(dir));
    }
    if given.is_some() && !env.files.exists(chosen)? {
        let message = "there is no such WAL directory";
        return Err(Error::invalid_argument(message).with_file(chosen));
    }
    Ok(chosen.to_path_buf())
}

/// The same path, but for slashes and dots. Two names of one directory count as two: the refusal says
/// which name to give.
fn is_same(a: &Path, b: &Path) -> bool {
    a.components().eq(b.components())
}

/// Whether `other` is the directory of a database, and not `dir`: the files there are that one's, as where a
/// copy's OPTIONS name the place that the original has its tables and its WAL in.
pub(crate) fn holds_another_database(env: &Env, dir: &Path, other: &Path) -> Result<bool> {
    Ok(!is_same(dir, other) && env.files.exists(&names::current(other))?)
}

fn wals_from(env: &Env, dir: &Path, needed_from: u64) -> Result<Vec<u64>> {
    let listing = match env.files.list(dir) {
        Err(error) if error.is_not_found() => Vec::new(),
        listing => listing?,
    };
    let wals = listing
        .iter()
        .filter_map(|name| match FileName::parse(name) {
            Some(FileName::Wal(number)) if number >= needed_from => Some(number),
            _ => None,
        });
    Ok(wals.collect())
}

fn has_any(env: &Env, dir: &Path, needed_from: u64) -> Result<bool> {
    Ok(!wals_from(env, dir, needed_from)?.is_empty())
}

/// The first WAL in `dir` from `needed_from` on that is not empty.
fn first_needed(env: &Env, dir: &Path, needed_from: u64) -> Result<Option<u64>> {
    let mut found = None;
    for wal in wals_from(env, dir, needed_from)? {
        let size = env.files.info(&names::wal(dir, wal))?.size;
        if size > 0 && !drumlin_base::bug!("wal-elsewhere-unseen") {
            found = Some(found.map_or(wal, |first: u64| first.min(wal)));
        }
    }
    Ok(found)
}

/// Checks that the WAL files that the MANIFEST tracks are in `wal_dir`, and as long as they were when they were
/// last synced.
///
/// # Errors
/// `Corruption` naming the file; `Io`.
pub(crate) fn check_tracked(env: &Env, wal_dir: &Path, info: &RecoveredInfo) -> Result<()> {
    for &(number, synced) in &info.tracked_wals {
        if number < info.min_log_number {
            continue;
        }
        let path = names::wal(wal_dir, number);
        let size = match env.files.info(&path) {
            Err(error) if error.is_not_found() => {
                let message = "a WAL that the MANIFEST says is there is missing; nothing was changed. Restore \
                               it, or open with point_in_time_recovery to give up what was in it";
                return Err(Error::corruption(message).with_file(&path));
            }
            info => info?.size,
        };
        if let Some(synced) = synced.filter(|&synced| size < synced) {
            let message = format!("the WAL has {size} bytes, and {synced} of it were synced");
            return Err(Error::corruption(message).with_file(&path));
        }
    }
    Ok(())
}

/// Checks that the WAL files that only prepared transactions need are in `wal_dir`.
///
/// # Errors
/// `Corruption` naming the file; `Io`.
pub(crate) fn check_sections(env: &Env, wal_dir: &Path, info: &RecoveredInfo) -> Result<()> {
    for &number in &info.section_wals {
        let path = names::wal(wal_dir, number);
        let found = match env.files.open(&path) {
            Err(error) if error.is_not_found() => false,
            file => replay::has_two_phase(file?, number)?,
        };
        if !found && !drumlin_base::bug!("lost-section-unnoticed") {
            let message = "what transactions prepared is missing from this WAL; nothing was changed. Restore it, or \
                           open with point_in_time_recovery to give up what was in it";
            return Err(Error::corruption(message).with_file(&path));
        }
    }
    Ok(())
}

/// Claims the WAL directory `wal_dir` of the database in `dir`, for as long as the lock is held; `None` where it
/// is beside the tables, which have a lock.
///
/// # Errors
/// `Locked` while another store has it; `InvalidArgument` where it is the directory of another database.
pub(crate) fn claim(env: &Env, dir: &Path, wal_dir: &Path) -> Result<Option<Box<dyn FileLock>>> {
    if is_same(dir, wal_dir) || drumlin_base::bug!("wal-dir-unclaimed") {
        return Ok(None);
    }
    if env.files.exists(&names::current(wal_dir))? {
        let message = "the WAL directory is that of another database";
        return Err(Error::invalid_argument(message).with_file(wal_dir));
    }
    env.files.lock(&names::lock(wal_dir)).map(Some)
}
