//! Names in a backup directory, as RocksDB's backup engine has them; on disk, see `docs/format/backup.md`.
//!
//! ```text
//! meta/<id>              what backup <id> consists of
//! private/<id>/          its MANIFEST, CURRENT, OPTIONS, IDENTITY and WAL files
//! shared_checksum/       tables, models and blob files, of all backups
//! shared/                tables under their own names, in directories of old
//! ```

use std::path::{Path, PathBuf};

/// On disk: the directories.
pub(super) const META: &str = "meta";
pub(super) const PRIVATE: &str = "private";
pub(super) const SHARED: &str = "shared_checksum";
pub(super) const SHARED_OF_OLD: &str = "shared";

const TEMP_SUFFIX: &str = ".tmp";

/// The paths below a backup directory.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    dir: PathBuf,
}

impl Layout {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file that a meta file names so.
    pub(super) fn file(&self, relative: &str) -> PathBuf {
        self.dir.join(relative)
    }

    pub(super) fn meta_dir(&self) -> PathBuf {
        self.dir.join(META)
    }

    pub(super) fn meta(&self, id: u32) -> PathBuf {
        self.meta_dir().join(id.to_string())
    }

    /// Where a meta file is written before it has its name.
    pub(super) fn meta_temp(&self, id: u32) -> PathBuf {
        self.meta_dir().join(format!(".{id}{TEMP_SUFFIX}"))
    }

    pub(super) fn private_dir(&self) -> PathBuf {
        self.dir.join(PRIVATE)
    }

    pub(super) fn private(&self, id: u32) -> PathBuf {
        self.private_dir().join(id.to_string())
    }

    pub(super) fn shared_dir(&self) -> PathBuf {
        self.dir.join(SHARED)
    }

    /// Where the shared file `name` is written before it has its name.
    pub(super) fn shared_temp(&self, name: &str) -> PathBuf {
        self.shared_dir().join(format!(".{name}{TEMP_SUFFIX}"))
    }

    /// Held by whoever changes the directory. No file of RocksDB's, which passes it over.
    pub(super) fn lock(&self) -> PathBuf {
        self.dir.join("LOCK")
    }
}

/// A file named so was being written when its writer stopped.
pub(super) fn is_temp(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMP_SUFFIX)
}

/// The id that a name in `meta` or `private` stands for.
pub(super) fn id_of(name: &str) -> Option<u32> {
    let id: u32 = name.parse().ok()?;
    (id > 0 && id.to_string() == name).then_some(id)
}

/// The name of a shared file that the session `session` wrote: `000007_sSESSION_4096.sst`.
pub(super) fn named_by_session(name: &str, session: &str, size: u64) -> String {
    let size = match drumlin_base::bug!("backup-names-without-size") {
        true => 0,
        false => size,
    };
    with_middle(name, &format!("_s{session}_{size}"))
}

/// The name of a shared file of no known session: `000007_3735928559_4096.blob`.
pub(super) fn named_by_checksum(name: &str, crc32c: u32, size: u64) -> String {
    with_middle(name, &format!("_{crc32c}_{size}"))
}

fn with_middle(name: &str, middle: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}{middle}.{extension}"),
        None => format!("{name}{middle}"),
    }
}

/// What stands between the number and the extension of a shared file's name, and the name without it.
fn split_middle(name: &str) -> Option<(String, &str)> {
    let (stem, extension) = name.rsplit_once('.')?;
    let (number, middle) = stem.split_once('_')?;
    Some((format!("{number}.{extension}"), middle))
}

/// The name in a database of the file that a meta file calls `relative`; `None` if there can be no such file.
pub(super) fn name_in_store(relative: &str) -> Option<String> {
    let (dir, rest) = relative.split_once('/')?;
    let name = match dir {
        PRIVATE => rest
            .split_once('/')
            .filter(|(id, _)| id_of(id).is_some())?
            .1
            .to_owned(),
        SHARED_OF_OLD => rest.to_owned(),
        SHARED => split_middle(rest)?.0,
        _ => return None,
    };
    let is_plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    is_plain.then_some(name)
}

/// The backup whose own file `relative` is.
pub(super) fn private_owner(relative: &str) -> Option<u32> {
    let rest = relative.strip_prefix(PRIVATE)?.strip_prefix('/')?;
    id_of(rest.split_once('/')?.0)
}

/// The size that the name of a shared file tells.
pub(super) fn told_size(relative: &str) -> Option<u64> {
    let name = relative.strip_prefix(SHARED)?.strip_prefix('/')?;
    let (_, middle) = split_middle(name)?;
    let (_, size) = middle.split_once('_')?;
    size.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rocksdbs_and_lead_back() {
        let session = named_by_session("000007.sst", "2J5ATC0G1T2Y0RT7ZHQD", 4096);
        assert_eq!(session, "000007_s2J5ATC0G1T2Y0RT7ZHQD_4096.sst");
        let checksum = named_by_checksum("000009.blob", 4_294_967_295, 17);
        assert_eq!(checksum, "000009_4294967295_17.blob");
        for (shared, name, size) in [
            (&*session, "000007.sst", Some(4096)),
            (&checksum, "000009.blob", Some(17)),
            ("000007_s2J5ATC0G1T2Y0RT7ZHQD.sst", "000007.sst", None),
        ] {
            let relative = format!("{SHARED}/{shared}");
            assert_eq!(name_in_store(&relative).as_deref(), Some(name));
            assert_eq!(told_size(&relative), size, "{relative}");
        }
        assert_eq!(
            name_in_store("shared/000007.sst").as_deref(),
            Some("000007.sst")
        );
        assert_eq!(
            name_in_store("private/3/CURRENT").as_deref(),
            Some("CURRENT")
        );
        assert_eq!(private_owner("private/3/CURRENT"), Some(3));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for relative in [
            "",
            "CURRENT",
            "/etc/passwd",
            "private/CURRENT",
            "private/0/CURRENT",
            "private/x/CURRENT",
            "private/1/../../CURRENT",
            "private/1/.bashrc",
            "private/1/",
            "shared/../CURRENT",
            "shared_checksum/000007.sst",
            "shared_checksum/../x_1.sst",
            "elsewhere/1/CURRENT",
        ] {
            assert_eq!(name_in_store(relative), None, "{relative}");
        }
    }

    #[test]
    fn ids_are_plain_numbers() {
        assert_eq!(id_of("12"), Some(12));
        for name in ["0", "012", "+1", "1.tmp", "", "4294967296"] {
            assert_eq!(id_of(name), None, "{name}");
        }
    }
}
