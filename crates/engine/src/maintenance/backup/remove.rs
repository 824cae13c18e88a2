//! Removing backups, and what belongs to none.
//!
//! A backup ceases to exist when the name of its meta file is gone, durably; only then its files go, those that no other
//! backup has.

use std::collections::BTreeSet;
use std::path::Path;

use drumlin_base::Result;
use drumlin_fs::FileSystem;

use super::catalog::{Catalog, names_in};
use super::create::remove_dir_with_files;
use super::layout::{self, Layout, PRIVATE, SHARED, SHARED_OF_OLD};

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedBackups {
    /// The backups, in order.
    pub ids: Vec<u32>,
    /// Files, of these and of runs that were cut short.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether shared files without a backup were left where they are, because a meta file cannot be understood that
    /// may need them.
    pub kept_for_damaged: bool,
}

/// Removes the backups `ids`.
///
/// # Errors
/// `Io`. Each backup is there or is not; the rest is removed by the next that changes the directory.
pub(super) fn remove(
    files: &dyn FileSystem,
    layout: &Layout,
    mut catalog: Catalog,
    ids: Vec<u32>,
) -> Result<RemovedBackups> {
    for id in &ids {
        files.remove(&layout.meta(*id))?;
        catalog.backups.remove(id);
    }
    if !ids.is_empty() && !drumlin_base::bug!("backup-removal-unsynced") {
        files.sync_dir(&layout.meta_dir())?;
    }
    let mut removed = collect(files, layout, &catalog)?;
    removed.ids = ids;
    Ok(removed)
}

/// Removes what belongs to no backup. Files that neither RocksDB nor we would have made there stay.
///
/// # Errors
/// `Io`.
pub(super) fn collect(
    files: &dyn FileSystem,
    layout: &Layout,
    catalog: &Catalog,
) -> Result<RemovedBackups> {
    let mut removed = RemovedBackups::default();
    collect_shared(files, layout, catalog, &mut removed)?;
    collect_private(files, layout, catalog, &mut removed)?;
    for name in names_in(files, &layout.meta_dir())?.unwrap_or_default() {
        if layout::is_temp(&name) {
            remove_file(files, &layout.meta_dir().join(name), 0, &mut removed)?;
        }
    }
    Ok(removed)
}

fn collect_shared(
    files: &dyn FileSystem,
    layout: &Layout,
    catalog: &Catalog,
    removed: &mut RemovedBackups,
) -> Result<()> {
    let metas = catalog
        .backups
        .values()
        .filter_map(|entry| entry.meta.as_ref());
    let needed: BTreeSet<&str> = metas
        .flat_map(|meta| &meta.files)
        .map(|file| &*file.path)
        .collect();
    let is_damaged = catalog.backups.values().any(|entry| entry.meta.is_none());
    for (path, &size) in &catalog.sizes {
        let Some((SHARED | SHARED_OF_OLD, name)) = path.split_once('/') else {
            continue;
        };
        if layout::is_temp(name) {
            remove_file(files, &layout.file(path), size, removed)?;
            continue;
        }
        if needed.contains(&**path) || layout::name_in_store(path).is_none() {
            continue;
        }
        match is_damaged && !drumlin_base::bug!("backup-garbage-of-damaged") {
            true => removed.kept_for_damaged = true,
            false => remove_file(files, &layout.file(path), size, removed)?,
        }
    }
    Ok(())
}

/// The directories of backups that have no meta file.
fn collect_private(
    files: &dyn FileSystem,
    layout: &Layout,
    catalog: &Catalog,
    removed: &mut RemovedBackups,
) -> Result<()> {
    for name in &catalog.private {
        // RocksDB once wrote them under another name first.
        let id = layout::id_of(name.strip_suffix(".tmp").unwrap_or(name));
        let is_left =
            id.is_some_and(|id| name.ends_with(".tmp") || !catalog.backups.contains_key(&id));
        if !is_left {
            continue;
        }
        let dir = format!("{PRIVATE}/{name}/");
        let inside = catalog.sizes.range(dir.clone()..);
        let inside = inside.take_while(|(path, _)| path.starts_with(&dir));
        for (_, size) in inside {
            removed.files += 1;
            removed.bytes += size;
        }
        remove_dir_with_files(files, &layout.private_dir().join(name))?;
    }
    Ok(())
}

fn remove_file(
    files: &dyn FileSystem,
    path: &Path,
    bytes: u64,
    removed: &mut RemovedBackups,
) -> Result<()> {
    match files.remove(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    }
    removed.files += 1;
    removed.bytes += bytes;
    Ok(())
}
