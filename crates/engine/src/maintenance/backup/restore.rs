//! Bringing a backup back as a database.
//!
//! The target's CURRENT goes first and comes last: in between the directory is no database, which opening it says. A
//! marker tells a later run that it may go on there. Files that have the right bytes are not copied again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, Env, FileKind, FileSystem};

use super::catalog::{Catalog, names_in};
use super::layout::{self, Layout};
use super::meta::{Meta, MetaFile};
use super::transfer::{Source, Transfer, TransferOptions};
use crate::files::names::{self, FileName};

/// How a backup is restored.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Where the database goes, if not to the file system of the backups: of backups in a store of objects, say.
    pub files: Option<Arc<dyn FileSystem>>,
    /// Where WAL files go, if not beside the tables.
    pub wal_dir: Option<PathBuf>,
    /// Whether a database that is there may be lost.
    pub replace: bool,
    /// How it is copied.
    pub transfer: TransferOptions,
}

/// A backup that was restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoredBackup {
    /// Its number.
    pub id: u32,
    /// Its files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The files of these that were there already, from a run that was cut short or from the database that is replaced.
    pub files_kept: u64,
}

/// A file to restore.
struct Wanted<'a> {
    file: &'a MetaFile,
    size: u64,
    to: PathBuf,
}

/// Restores the backup `id`, or the newest that is whole, to `target`.
///
/// # Errors
/// `NotFound`, `Corruption` of the backup, before anything is changed; `InvalidArgument` when a database is in the way;
/// `Locked` when it is open; `NoSpace`, `Io`, `Aborted`: the target is then no database, and the next run goes on.
pub(super) fn restore(
    env: &Env,
    layout: &Layout,
    id: Option<u32>,
    target: &Path,
    options: &RestoreOptions,
) -> Result<RestoredBackup> {
    let catalog = Catalog::load(&*env.files, layout)?;
    let (id, meta) = catalog.find(layout, id)?;
    let wal_dir = options.wal_dir.as_deref().unwrap_or(target);
    let (wanted, current) = plan(&catalog, layout, meta, target, wal_dir)?;
    if target == layout.dir() {
        let message = "a backup cannot be restored into its own directory";
        return Err(Error::invalid_argument(message).with_file(target));
    }
    let files = options.files.as_deref().unwrap_or(&*env.files);
    files.create_dir_all(target)?;
    files.create_dir_all(wal_dir)?;
    let _lock = files.lock(&names::lock(target))?;
    if !options.replace && !was_begun(files, target)? {
        refuse_database(files, target)?;
        refuse_database(files, wal_dir)?;
    }
    begin(files, target)?;
    let may_go_on = || Ok(());
    let mut restoring = Restoring {
        backups: &*env.files,
        files,
        layout,
        transfer: Transfer::new(&options.transfer, env, &may_go_on),
        restored: RestoredBackup {
            id,
            ..RestoredBackup::default()
        },
    };
    restoring.clear(&wanted, target)?;
    if wal_dir != target {
        restoring.clear(&wanted, wal_dir)?;
    }
    restoring
        .transfer
        .expect(wanted.values().map(|file| file.size).sum());
    for file in wanted.values() {
        restoring.bring(file)?;
    }
    files.sync_dir(wal_dir)?;
    files.sync_dir(target)?;
    restoring.bring_current(&current, target)?;
    files.remove(&names::restoring(target))?;
    files.sync_dir(target)?;
    Ok(restoring.restored)
}

/// The files of the backup but CURRENT, by path in the target; and CURRENT.
///
/// # Errors
/// `Corruption` of a backup that is no database.
fn plan<'a>(
    catalog: &Catalog,
    layout: &Layout,
    meta: &'a Meta,
    target: &Path,
    wal_dir: &Path,
) -> Result<(BTreeMap<PathBuf, Wanted<'a>>, Wanted<'a>)> {
    let damaged = |what: String| Error::corruption(what).with_file(layout.dir());
    let (mut wanted, mut current) = (BTreeMap::new(), None);
    for file in &meta.files {
        let name = layout::name_in_store(&file.path).unwrap_or_default();
        let dir = match FileName::parse(Path::new(&name)) {
            Some(FileName::Wal(_)) => wal_dir,
            Some(
                FileName::Current
                | FileName::Identity
                | FileName::Manifest(_)
                | FileName::Table(_)
                | FileName::Blob(_)
                | FileName::Model(_)
                | FileName::Options(_),
            ) => target,
            _ => return Err(damaged(format!("{} is no file of a database", file.path))),
        };
        let size = catalog.sizes.get(&file.path).copied().unwrap_or(0);
        let to = dir.join(&name);
        let one = Wanted { file, size, to };
        if name == "CURRENT" {
            current = Some(one);
        } else if wanted.insert(one.to.clone(), one).is_some() {
            return Err(damaged(format!("the backup has {name} twice")));
        }
    }
    let current = current.ok_or_else(|| damaged("the backup has no CURRENT".to_owned()))?;
    Ok((wanted, current))
}

/// Refuses a directory that holds a database, or parts of one.
fn refuse_database(files: &dyn FileSystem, target: &Path) -> Result<()> {
    let names = names_in(files, target)?.unwrap_or_default();
    let evidence = |name: &&String| {
        let kind = FileName::parse(Path::new(name));
        kind.is_some_and(FileName::is_evidence_of_a_database)
    };
    let Some(name) = names.iter().find(evidence) else {
        return Ok(());
    };
    let message = format!("a database is there ({name}); it is replaced only if that is asked for");
    Err(Error::invalid_argument(message).with_file(target))
}

/// Whether a restore was cut short here. One that was done but for the marker has left a database.
fn was_begun(files: &dyn FileSystem, target: &Path) -> Result<bool> {
    let is_marked = files.exists(&names::restoring(target))?;
    Ok(is_marked && !files.exists(&names::current(target))?)
}

/// Makes the directory one that is no database, durably.
fn begin(files: &dyn FileSystem, target: &Path) -> Result<()> {
    let marker = names::restoring(target);
    let mut file = files.create(&marker, CreateOptions::new(FileKind::Other))?;
    file.append(b"A backup is being restored here; the next restore goes on.\n")?;
    file.sync()?;
    file.close()?;
    files.sync_dir(target)?;
    match files.remove(&names::current(target)) {
        Err(error) if !error.is_not_found() => Err(error),
        _ if drumlin_base::bug!("restore-keeps-current-for-a-while") => Ok(()),
        _ => files.sync_dir(target),
    }
}

struct Restoring<'a> {
    backups: &'a dyn FileSystem,
    /// The target's.
    files: &'a dyn FileSystem,
    layout: &'a Layout,
    transfer: Transfer<'a>,
    restored: RestoredBackup,
}

impl Restoring<'_> {
    /// Removes the files of a database that are not wanted, or have another size. Files of others stay.
    fn clear(&self, wanted: &BTreeMap<PathBuf, Wanted<'_>>, dir: &Path) -> Result<()> {
        for name in names_in(self.files, dir)?.unwrap_or_default() {
            let stays = match FileName::parse(Path::new(&name)) {
                None => true,
                Some(
                    FileName::Lock | FileName::InfoLog | FileName::Archive | FileName::Restoring,
                ) => true,
                Some(_) => false,
            };
            let path = dir.join(&name);
            let is_wanted = match wanted.get(&path) {
                Some(file) => self.files.info(&path)?.size == file.size,
                None => false,
            };
            if !stays && !is_wanted {
                self.files.remove(&path)?;
            }
        }
        Ok(())
    }

    /// Copies a file, unless it is there.
    fn bring(&mut self, wanted: &Wanted<'_>) -> Result<()> {
        self.restored.files += 1;
        self.restored.bytes += wanted.size;
        if self.is_there(wanted)? {
            self.restored.files_kept += 1;
            return Ok(());
        }
        self.copy(wanted, &wanted.to)
    }

    /// Whether the target has the file, with the right bytes, on disk.
    fn is_there(&mut self, wanted: &Wanted<'_>) -> Result<bool> {
        if wanted.file.crc32c.is_none() || !self.files.exists(&wanted.to)? {
            return Ok(false);
        }
        self.transfer.expect(wanted.size);
        let found = self.transfer.checksum(Source {
            files: self.files,
            path: &wanted.to,
            len: wanted.size,
        });
        match found {
            Err(error) if error.kind() == ErrorKind::Aborted => Err(error),
            Ok(crc32c) if Some(crc32c) == wanted.file.crc32c => {
                self.files.sync_file(&wanted.to)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn copy(&mut self, wanted: &Wanted<'_>, to: &Path) -> Result<()> {
        let path = self.layout.file(&wanted.file.path);
        let source = Source {
            files: self.backups,
            path: &path,
            len: wanted.size,
        };
        let found = self.transfer.copy(source, self.files, to, None)?;
        match wanted.file.crc32c {
            Some(told) if told != found && !drumlin_base::bug!("restore-takes-damage") => {
                let message = format!("its checksum is {found}, the backup says {told}");
                Err(Error::corruption(message).with_file(&path))
            }
            _ => Ok(()),
        }
    }

    /// Makes the directory a database.
    fn bring_current(&mut self, current: &Wanted<'_>, target: &Path) -> Result<()> {
        self.restored.files += 1;
        self.restored.bytes += current.size;
        let temp = names::temp(target, 0);
        self.transfer.expect(current.size);
        self.copy(current, &temp)?;
        self.files.rename(&temp, &current.to)?;
        self.files.sync_dir(target)
    }
}
