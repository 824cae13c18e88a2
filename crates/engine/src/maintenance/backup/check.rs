//! Whether backups are whole: names, sizes and checksums.

use std::collections::BTreeSet;
use std::path::PathBuf;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Env;

use super::catalog::Catalog;
use super::layout::{self, Layout};
use super::meta::MetaFile;
use super::transfer::{Source, Transfer};

/// What a check reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckDepth {
    /// Names and sizes; each backup's own files also whole, which are few and whose sizes are written nowhere.
    #[default]
    Sizes,
    /// Every byte.
    Checksums,
}

/// What was checked, and what is wrong.
#[derive(Debug, Default)]
pub struct BackupCheck {
    /// Backups looked at.
    pub backups: u64,
    /// Files looked at, shared ones once.
    pub files: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Each damaged file, with its error; a meta file that cannot be understood is one.
    pub damaged: Vec<(PathBuf, Error)>,
}

/// Checks the backup `id`, or all.
///
/// # Errors
/// `NotFound`, `Aborted`; `Io` where nothing can be said. Damage is in the report.
pub(super) fn check(
    env: &Env,
    layout: &Layout,
    id: Option<u32>,
    depth: CheckDepth,
    transfer: &mut Transfer<'_>,
) -> Result<BackupCheck> {
    let catalog = Catalog::load(&*env.files, layout)?;
    if let Some(missing) = id.filter(|id| !catalog.backups.contains_key(id)) {
        return Err(catalog.not_found(layout, Some(missing)));
    }
    let mut report = BackupCheck::default();
    let mut files: Vec<&MetaFile> = Vec::new();
    let mut seen = BTreeSet::new();
    let wanted = catalog.backups.iter();
    for (number, entry) in wanted.filter(|(number, _)| id.is_none_or(|id| id == **number)) {
        report.backups += 1;
        let damage = entry.damage.as_ref();
        // Damage of files is found below, file by file.
        let of_meta = damage.filter(|damage| damage.file() == Some(&*layout.meta(*number)));
        report.note(
            of_meta.map_or(Ok(()), |damage| Err(damage.duplicate())),
            || layout.meta(*number),
        );
        let listed = entry.meta.iter().flat_map(|meta| &meta.files);
        files.extend(listed.filter(|file| seen.insert(&*file.path)));
    }
    files.retain(|file| {
        let told = file.size.or_else(|| layout::told_size(&file.path));
        let damage = catalog.damage_of_file(layout, &file.path, told);
        report.files += 1;
        report.note(damage.map_or(Ok(()), Err), || layout.file(&file.path))
    });
    let is_own = |file: &MetaFile| layout::private_owner(&file.path).is_some();
    files.retain(|file| depth == CheckDepth::Checksums || is_own(file));
    let sizes = files
        .iter()
        .filter_map(|file| catalog.sizes.get(&file.path));
    transfer.expect(sizes.sum());
    for file in files {
        let len = catalog.sizes.get(&file.path).copied().unwrap_or(0);
        let outcome = check_file(env, layout, file, len, transfer);
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::Aborted
        {
            return Err(error.duplicate());
        }
        report.bytes_read += len;
        report.note(outcome, || layout.file(&file.path));
    }
    Ok(report)
}

/// Compares a file's checksum with the recorded one.
fn check_file(
    env: &Env,
    layout: &Layout,
    file: &MetaFile,
    len: u64,
    transfer: &mut Transfer<'_>,
) -> Result<()> {
    let path = layout.file(&file.path);
    let found = transfer.checksum(Source {
        files: &*env.files,
        path: &path,
        len,
    })?;
    match file.crc32c {
        Some(told) if told != found && !drumlin_base::bug!("backup-checksums-uncompared") => {
            let message = format!("its checksum is {found}, the backup says {told}");
            Err(Error::corruption(message).with_file(&path))
        }
        _ => Ok(()),
    }
}

impl BackupCheck {
    /// Notes damage; whether there was none.
    fn note(&mut self, outcome: Result<()>, path: impl FnOnce() -> PathBuf) -> bool {
        let Err(error) = outcome else {
            return true;
        };
        self.damaged.push((path(), error));
        false
    }
}
