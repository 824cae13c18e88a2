//! Removing a database, and nothing else, from its directory.
//!
//! CURRENT goes first, so that what is left of a removal that was cut off is never opened; the MANIFEST goes last but
//! for LOCK, so that the removal can be called again.

use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_fs::FileSystem;

use crate::db::foreign;
use crate::db::handle::Db;
use crate::files::names::{self, FileName};
use crate::options::settings::Options;
use crate::wal::dir as wal_dir;

impl Db {
    /// Removes the database in `dir`, its WAL in [`Options::wal_dir`] too, and then the directory if it is empty. Other
    /// files, and what [`Db::repair`] put aside, stay. Where there is no directory, or nothing of a database in
    /// it, nothing is done. RocksDB's `DestroyDB`.
    ///
    /// May be called again after it was cut off.
    ///
    /// # Errors
    /// `Locked` while the database is open; `InvalidArgument` where files look like a database's and neither CURRENT
    /// nor a MANIFEST is there, or where the WAL directory is another database's; `NotSupported` for what
    /// opening would refuse by name; nothing was removed then. `Io`, naming the file.
    pub fn destroy(dir: impl AsRef<Path>, options: &Options) -> Result<()> {
        destroy(dir.as_ref(), options)
    }
}

fn destroy(dir: &Path, options: &Options) -> Result<()> {
    let files = &*options.env.files;
    foreign::refuse(files, dir)?;
    let names = match files.list(dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        names => names?,
    };
    let mut own: Vec<_> = names
        .iter()
        .filter_map(|name| FileName::parse(name).map(|parsed| (name, parsed)))
        .collect();
    let is_database = |name: &FileName| matches!(name, FileName::Current | FileName::Manifest(_));
    if !own.iter().any(|(_, name)| is_database(name)) {
        return match own.iter().find(|(_, name)| name.is_evidence_of_a_database()) {
            None => Ok(()),
            Some((name, _)) => Err(Error::invalid_argument(
                "this may be of a database, but neither CURRENT nor a MANIFEST is here; nothing was removed",
            )
            .with_file(&dir.join(name))),
        };
    }
    let wal_dir = options.wal_dir.as_deref().filter(|wal_dir| *wal_dir != dir);
    if let Some(wal_dir) = wal_dir
        && wal_dir::holds_another_database(&options.env, dir, wal_dir)?
    {
        let message = "the WAL directory is another database's; nothing was removed";
        return Err(Error::invalid_argument(message).with_file(wal_dir));
    }
    let lock = files.lock(&names::lock(dir))?;
    if let Some(wal_dir) = wal_dir {
        remove_wals(files, wal_dir)?;
    }
    own.sort_by_key(|(_, name)| turn(*name));
    for files_of_a_turn in own.chunk_by(|(_, a), (_, b)| turn(*a) == turn(*b)) {
        for (name, parsed) in files_of_a_turn {
            match parsed {
                FileName::Lock => {}
                FileName::Archive => remove_archive(files, &dir.join(name))?,
                _ => remove(files, &dir.join(name))?,
            }
        }
        // After a power cut, too, no file is there longer than one of a later turn.
        files.sync_dir(dir)?;
    }
    remove(files, &names::lock(dir))?;
    drop(lock);
    // Somebody else's files keep the directory.
    let _ = files.remove_dir(dir);
    Ok(())
}

/// The order in which files go.
fn turn(name: FileName) -> u8 {
    match name {
        FileName::Current => 0,
        FileName::Manifest(_) => 2,
        _ => 1,
    }
}

fn remove(files: &dyn FileSystem, path: &Path) -> Result<()> {
    match files.remove(path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn remove_wals(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    let names = match files.list(dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        names => names?,
    };
    for name in names {
        let is_kept_table = names::wal_of_archived_table(&name).is_some();
        if is_kept_table || matches!(FileName::parse(&name), Some(FileName::Wal(_))) {
            remove(files, &dir.join(name))?;
        }
    }
    Ok(())
}

fn remove_archive(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    remove_wals(files, dir)?;
    let _ = files.remove_dir(dir);
    Ok(())
}
