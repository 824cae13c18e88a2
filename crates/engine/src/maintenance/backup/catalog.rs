//! What a backup directory holds: its backups, whole or not, and the files in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::FileSystem;

use super::layout::{self, Layout};
use super::meta::Meta;

/// The largest meta file read: a million files.
const META_BYTES_MAX: u64 = 256 << 20;

/// A backup that has a meta file.
#[derive(Debug)]
pub(super) struct Entry {
    /// What it consists of; `None` of a meta file that cannot be understood.
    pub(super) meta: Option<Meta>,
    /// Why it cannot be restored.
    pub(super) damage: Option<Error>,
}

impl Entry {
    /// Whether it leaves out files that lie elsewhere.
    pub(super) fn leaves_out(&self) -> bool {
        self.meta
            .as_ref()
            .is_some_and(|meta| !meta.excluded.is_empty())
    }
}

/// See the module. A picture of one moment.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) backups: BTreeMap<u32, Entry>,
    /// Every file below the directories of files, by its relative path, with its size.
    pub(super) sizes: BTreeMap<String, u64>,
    /// The directories in `private`.
    pub(super) private: BTreeSet<String>,
    /// The checksums that backups have of files.
    pub(super) checksums: BTreeMap<String, u32>,
}

impl Catalog {
    /// Reads the directory.
    ///
    /// # Errors
    /// `NotFound` where there is none, or one that holds no backups' directories; `Io`.
    pub(super) fn load(files: &dyn FileSystem, layout: &Layout) -> Result<Self> {
        let names = names_in(files, &layout.meta_dir())?;
        let Some(names) = names else {
            let message = "the directory holds no backups";
            return Err(Error::new(ErrorKind::NotFound, message).with_file(layout.dir()));
        };
        let mut catalog = Self::default();
        catalog.find_files(files, layout)?;
        for id in names.iter().filter_map(|name| layout::id_of(name)) {
            let entry = catalog.read_entry(files, layout, id)?;
            for file in entry.meta.iter().flat_map(|meta| &meta.files) {
                let checksum = file.crc32c.map(|crc32c| (file.path.clone(), crc32c));
                catalog.checksums.extend(checksum);
            }
            catalog.backups.insert(id, entry);
        }
        Ok(catalog)
    }

    fn find_files(&mut self, files: &dyn FileSystem, layout: &Layout) -> Result<()> {
        for dir in [layout::SHARED, layout::SHARED_OF_OLD] {
            self.find_files_in(files, layout, dir)?;
        }
        let private = names_in(files, &layout.private_dir())?;
        for name in private.unwrap_or_default() {
            let relative = format!("{}/{name}", layout::PRIVATE);
            self.find_files_in(files, layout, &relative)?;
            self.private.insert(name);
        }
        Ok(())
    }

    fn find_files_in(
        &mut self,
        files: &dyn FileSystem,
        layout: &Layout,
        relative: &str,
    ) -> Result<()> {
        let found = match files.list_with_infos(&layout.file(relative)) {
            Err(error) if error.is_not_found() => return Ok(()),
            found => found?,
        };
        let found = found.iter().filter(|(_, info)| !info.is_dir);
        for (name, info) in found {
            if let Some(name) = name.to_str() {
                self.sizes.insert(format!("{relative}/{name}"), info.size);
            }
        }
        Ok(())
    }

    /// # Errors
    /// `Io`. Damage is in the entry.
    fn read_entry(&self, files: &dyn FileSystem, layout: &Layout, id: u32) -> Result<Entry> {
        let path = layout.meta(id);
        let read = files.read_file(&path, META_BYTES_MAX);
        let read = read.and_then(|bytes| Meta::decode(&bytes));
        let meta = match read {
            Ok(meta) => meta,
            Err(error) if is_damage(&error) => {
                let damage = Some(error.with_file(&path));
                return Ok(Entry { meta: None, damage });
            }
            Err(error) => return Err(error),
        };
        let damage = self.damage_of(layout, id, &meta);
        let meta = Some(meta);
        Ok(Entry { meta, damage })
    }

    /// What keeps a backup from being restored, as far as names and sizes tell.
    fn damage_of(&self, layout: &Layout, id: u32, meta: &Meta) -> Option<Error> {
        if let Some(left_out) = meta.excluded.first() {
            let message = format!("the backup leaves out {left_out}, which lies elsewhere");
            return Some(Error::not_supported(message).with_file(&layout.meta(id)));
        }
        let mut files = meta.files.iter();
        files.find_map(|file| {
            let owner = layout::private_owner(&file.path);
            if owner.is_some_and(|owner| owner != id) {
                let message = format!("a file of another backup: {}", file.path);
                return Some(Error::corruption(message).with_file(&layout.meta(id)));
            }
            let told = file.size.or_else(|| layout::told_size(&file.path));
            self.damage_of_file(layout, &file.path, told)
        })
    }

    /// Whether the file is there, and as large as it should be.
    pub(super) fn damage_of_file(
        &self,
        layout: &Layout,
        path: &str,
        told: Option<u64>,
    ) -> Option<Error> {
        let message = match (self.sizes.get(path), told) {
            (None, _) => "a file of the backup is missing".to_owned(),
            (Some(&found), Some(told)) if found != told => {
                format!("a file of the backup has {found} bytes in place of {told}")
            }
            _ => return None,
        };
        Some(Error::corruption(message).with_file(&layout.file(path)))
    }

    /// The backup `id`, or the newest that is whole.
    ///
    /// # Errors
    /// `NotFound`; the damage of the one that was asked for, or of the newest where none is whole.
    pub(super) fn find(&self, layout: &Layout, id: Option<u32>) -> Result<(u32, &Meta)> {
        let mut newest_first = self.backups.iter().rev();
        let found = match id {
            Some(id) => self.backups.get_key_value(&id),
            None => newest_first
                .clone()
                .find(|(_, entry)| entry.damage.is_none()),
        };
        let found = match found {
            None if id.is_none() => newest_first.next(),
            found => found,
        };
        let Some((&id, entry)) = found else {
            return Err(self.not_found(layout, id));
        };
        match (&entry.damage, &entry.meta) {
            (Some(damage), _) => Err(damage.duplicate().context(format!("backup {id}"))),
            (None, Some(meta)) => Ok((id, meta)),
            (None, None) => Err(self.not_found(layout, Some(id))),
        }
    }

    pub(super) fn not_found(&self, layout: &Layout, id: Option<u32>) -> Error {
        let known: Vec<String> = self.backups.keys().map(u32::to_string).collect();
        let message = match id {
            Some(id) if known.is_empty() => format!("there is no backup {id}, nor another"),
            Some(id) => format!("there is no backup {id}; there are: {}", known.join(", ")),
            None => "there is no backup".to_owned(),
        };
        Error::new(ErrorKind::NotFound, message).with_file(layout.dir())
    }
}

/// Damage of a file, which is no failure of the disk.
fn is_damage(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Corruption | ErrorKind::NotSupported | ErrorKind::TooLarge
    )
}

/// The names in a directory that are text, in order; `None` where there is no such directory.
pub(super) fn names_in(files: &dyn FileSystem, dir: &Path) -> Result<Option<Vec<String>>> {
    let names = match files.list(dir) {
        Err(error) if error.is_not_found() => return Ok(None),
        other => other?,
    };
    let text = names.iter().filter_map(|name| name.to_str());
    let mut text: Vec<String> = text.map(ToOwned::to_owned).collect();
    text.sort();
    Ok(Some(text))
}
