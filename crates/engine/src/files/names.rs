//! Names of the files in a database directory, and their meaning.
//!
//! The names are RocksDB's and LevelDB's: `000012.log`, `000013.sst` (or `.ldb`), `MANIFEST-000005`
//! and so on. Numbers have at least six digits and come from one counter, so that no two files of a
//! database ever share one. Everything not listed in [`FileName`] belongs to somebody else and is
//! never touched.

use std::path::{Path, PathBuf};

/// File numbers stay below this: RocksDB keeps two bits beside them.
pub(crate) const FILE_NUMBER_MAX: u64 = (1 << 62) - 1;
/// The largest number in the name of a file of a store. As many again are left for new files.
const NAMED_NUMBER_MAX: u64 = FILE_NUMBER_MAX / 2;

/// The kind of a file in a database directory, from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// `CURRENT`: names the live MANIFEST.
    Current,
    /// `LOCK`: held while the database is open.
    Lock,
    /// `IDENTITY`: the database's id as text.
    Identity,
    /// `MANIFEST-NNNNNN`.
    Manifest(u64),
    /// `NNNNNN.log`, a WAL file.
    Wal(u64),
    /// `NNNNNN.sst`, or `NNNNNN.ldb` as LevelDB names it.
    Table(u64),
    /// `NNNNNN.blob`.
    Blob(u64),
    /// `0123456789abcdef.model`: the model with this id, which tables share. Not a file number.
    Model(u64),
    /// `NNNNNN.dbtmp` or `OPTIONS-NNNNNN.dbtmp`: on its way to another name.
    Temp(u64),
    /// `OPTIONS-NNNNNN`.
    Options(u64),
    /// `LOG`, `LOG.old.NNN`: the information log.
    InfoLog,
    /// `RESTORING`: a backup is being restored here, and until that is done the directory is no database.
    Restoring,
    /// `archive`, the directory of WAL files kept after their time.
    Archive,
    /// `NNNNNN.sst.trash` and the like: a file that was being removed, perhaps only in part there.
    Trash(u64),
}

impl FileName {
    /// The kind of file that `name` (without directories) names; `None` for a file that is not the database's.
    pub fn parse(name: &Path) -> Option<Self> {
        let name = name.to_str()?;
        match name {
            "CURRENT" => return Some(Self::Current),
            "LOCK" => return Some(Self::Lock),
            "IDENTITY" => return Some(Self::Identity),
            "LOG" => return Some(Self::InfoLog),
            "archive" => return Some(Self::Archive),
            RESTORING => return Some(Self::Restoring),
            _ => {}
        }
        if name.starts_with("LOG.old") {
            return Some(Self::InfoLog);
        }
        if let Some(digits) = name.strip_prefix("MANIFEST-") {
            return number(digits).map(Self::Manifest);
        }
        if let Some(rest) = name.strip_prefix("OPTIONS-") {
            return match rest.strip_suffix(".dbtmp") {
                Some(digits) => number(digits).map(Self::Temp),
                None => number(rest).map(Self::Options),
            };
        }
        let (digits, suffix) = name.split_once('.')?;
        if suffix == MODEL_EXTENSION {
            return model_id(digits).map(Self::Model);
        }
        let number = number(digits)?;
        match suffix {
            "log" => Some(Self::Wal(number)),
            "ldb" if drumlin_base::bug!("leveldb-tables-foreign") => None,
            "sst" | "ldb" => Some(Self::Table(number)),
            "blob" => Some(Self::Blob(number)),
            "dbtmp" => Some(Self::Temp(number)),
            suffix if suffix.ends_with(TRASH_SUFFIX) => Some(Self::Trash(number)),
            _ => None,
        }
    }

    /// The number in the name, if it has one.
    pub fn number(self) -> Option<u64> {
        match self {
            Self::Manifest(number)
            | Self::Wal(number)
            | Self::Table(number)
            | Self::Blob(number)
            | Self::Temp(number)
            | Self::Options(number)
            | Self::Trash(number) => Some(number),
            Self::Current
            | Self::Lock
            | Self::Identity
            | Self::InfoLog
            | Self::Archive
            | Self::Restoring
            | Self::Model(_) => None,
        }
    }

    /// Whether a directory that holds such a file holds (or held) a database: it must then not be
    /// taken for an empty one.
    pub fn is_evidence_of_a_database(self) -> bool {
        matches!(
            self,
            Self::Current
                | Self::Manifest(_)
                | Self::Wal(_)
                | Self::Table(_)
                | Self::Blob(_)
                | Self::Restoring
        )
    }
}

/// Decimal digits only: no sign, no blanks, and no number that no store reaches. The next number follows the largest
/// in the directory, so a file of somebody else's could otherwise use all of them up.
fn number(digits: &str) -> Option<u64> {
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !is_digits && !drumlin_base::bug!("signed-file-number") {
        return None;
    }
    digits
        .parse()
        .ok()
        .filter(|&number| number <= NAMED_NUMBER_MAX)
}

/// Sixteen lower-case hexadecimal digits.
fn model_id(digits: &str) -> Option<u64> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let sound = digits.len() == MODEL_DIGITS && digits.bytes().all(is_digit);
    u64::from_str_radix(digits, 16).ok().filter(|_| sound)
}

/// Extensions of tables, LevelDB's, blob files, and files that are being removed (as RocksDB marks them).
pub(crate) const TABLE_EXTENSION: &str = "sst";
pub(crate) const LEVELDB_TABLE_EXTENSION: &str = "ldb";
pub(crate) const BLOB_EXTENSION: &str = "blob";
const MODEL_EXTENSION: &str = "model";
const MODEL_DIGITS: usize = 16;
const RESTORING: &str = "RESTORING";
const TRASH_SUFFIX: &str = ".trash";

/// The name `path` has while it is removed step by step.
pub(crate) fn trash(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TRASH_SUFFIX);
    name.into()
}

/// Whether [`trash`] made this name.
pub(crate) fn is_trash(path: &Path) -> bool {
    path.to_string_lossy().ends_with(TRASH_SUFFIX)
}

/// `dir/CURRENT`.
pub fn current(dir: &Path) -> PathBuf {
    dir.join("CURRENT")
}

/// `dir/LOCK`.
pub fn lock(dir: &Path) -> PathBuf {
    dir.join("LOCK")
}

/// `dir/IDENTITY`.
pub fn identity(dir: &Path) -> PathBuf {
    dir.join("IDENTITY")
}

/// `dir/RESTORING`.
pub fn restoring(dir: &Path) -> PathBuf {
    dir.join(RESTORING)
}

/// `dir/archive`.
pub fn archive(dir: &Path) -> PathBuf {
    dir.join("archive")
}

/// `dir/archive/NNNNNN.log`: a WAL file kept after its time.
pub fn archived_wal(dir: &Path, number: u64) -> PathBuf {
    wal(&archive(dir), number)
}

/// `dir/archive/WWWWWW-NNNNNN.sst`: the table NNNNNN as it was taken in, which the WAL WWWWWW tells of.
pub fn archived_table(dir: &Path, wal: u64, number: u64) -> PathBuf {
    archive(dir).join(format!("{wal:06}-{number:06}.{TABLE_EXTENSION}"))
}

/// The WAL in a name that [`archived_table`] made.
pub fn wal_of_archived_table(name: &Path) -> Option<u64> {
    let name = name.to_str()?.strip_suffix(TABLE_EXTENSION)?;
    let (wal, table) = name.strip_suffix('.')?.split_once('-')?;
    number(table)?;
    number(wal)
}

/// `dir/MANIFEST-NNNNNN`.
pub fn manifest(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("MANIFEST-{number:06}"))
}

/// The content of `CURRENT` that makes MANIFEST `number` the live one.
pub fn current_content(number: u64) -> String {
    format!("MANIFEST-{number:06}\n")
}

/// `dir/NNNNNN.log`.
pub fn wal(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.log"))
}

/// `dir/NNNNNN.sst`.
pub fn table(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.sst"))
}

/// `dir/NNNNNN.ldb`, the name LevelDB gives its tables. Readers try [`table`] first.
pub fn leveldb_table(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.ldb"))
}

/// `dir/NNNNNN.blob`.
pub fn blob(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.blob"))
}

/// `dir/0123456789abcdef.model`: the file of the model with this id.
pub fn model(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:016x}.{MODEL_EXTENSION}"))
}

/// `dir/NNNNNN.dbtmp`.
pub fn temp(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.dbtmp"))
}

/// `dir/OPTIONS-NNNNNN`.
pub fn options(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("OPTIONS-{number:06}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<FileName> {
        FileName::parse(Path::new(name))
    }

    #[test]
    fn every_name_parses_to_what_made_it() {
        let dir = Path::new("db");
        for number in [0, 1, 999_999, 1_000_000, NAMED_NUMBER_MAX] {
            let made = [
                (manifest(dir, number), FileName::Manifest(number)),
                (wal(dir, number), FileName::Wal(number)),
                (table(dir, number), FileName::Table(number)),
                (leveldb_table(dir, number), FileName::Table(number)),
                (blob(dir, number), FileName::Blob(number)),
                (temp(dir, number), FileName::Temp(number)),
                (options(dir, number), FileName::Options(number)),
            ];
            for (path, name) in made {
                let file = Path::new(path.file_name().unwrap());
                assert_eq!(FileName::parse(file), Some(name));
                assert_eq!(name.number(), Some(number));
            }
        }
        for id in [0, 17, u64::MAX] {
            let path = model(dir, id);
            let file = Path::new(path.file_name().unwrap());
            assert_eq!(FileName::parse(file), Some(FileName::Model(id)));
            assert_eq!(
                FileName::Model(id).number(),
                None,
                "an id is no file number"
            );
        }
        assert_eq!(parse("CURRENT"), Some(FileName::Current));
        let marker = restoring(dir);
        assert_eq!(
            FileName::parse(Path::new(marker.file_name().unwrap())),
            Some(FileName::Restoring)
        );
        assert_eq!(parse("LOG.old.1700000000"), Some(FileName::InfoLog));
        assert_eq!(parse("OPTIONS-000007.dbtmp"), Some(FileName::Temp(7)));
    }

    #[test]
    fn foreign_names_are_nobodys() {
        for name in [
            "",
            ".",
            "foo",
            "foo.sst",
            "12",
            "12.",
            ".sst",
            "12.sst.bak",
            "+12.sst",
            "-1.log",
            "MANIFEST-",
            "MANIFEST-x",
            "MANIFEST-5.bak",
            "OPTIONS-",
            "CURRENT.bak",
            "current",
            "2305843009213693952.log",
            "18446744073709551615.sst",
            "18446744073709551616.sst",
            "1 .log",
            "17.model",
            "0123456789ABCDEF.model",
            "00123456789abcdef.model",
        ] {
            assert_eq!(parse(name), None, "{name:?}");
        }
    }
}
