//! The RocksDB that must be able to read new files in a directory: the one that wrote it last.
//!
//! A directory's OPTIONS file names that version, and goes on to name it after we wrote there. Where
//! there is none, the MANIFEST's features decide: the oldest version that could have written it.

use std::fmt;

use drumlin_table::{ChecksumKind, Footer};

/// A version of RocksDB whose formats new files must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Vintage {
    major: u32,
    minor: u32,
    patch: u32,
}

/// Hash indexes in data blocks.
const DATA_BLOCK_HASH: Vintage = Vintage::new(5, 16);
/// `format_version` 5 with its filters, and records of the MANIFEST that may be passed over.
const FORMAT_5: Vintage = Vintage::new(6, 6);
/// XXH3 as a checksum, and blob files: 6.18 has some, but 6.20 was seen to leave garbage uncounted.
const EVERYTHING: Vintage = Vintage::new(6, 27);

impl Vintage {
    /// Nothing is too new for it: directories of ours and of LevelDB.
    pub(crate) const NEWEST: Self = Self::new(u32::MAX, 0);

    const fn new(major: u32, minor: u32) -> Self {
        Self {
            major,
            minor,
            patch: 0,
        }
    }

    /// The version that `text` names, as an OPTIONS file does.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('.').map(|part| part.parse().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        let patch = parts
            .next()
            .flatten()
            .filter(|_| !drumlin_base::bug!("patch-level-lost"));
        let patch = patch.unwrap_or(0);
        Some(Self {
            major,
            minor,
            patch,
        })
    }

    /// The oldest that could have left tables without an OPTIONS file in a directory: the database's
    /// id in the MANIFEST is new. Without tables nothing shows that another engine was there.
    pub(crate) fn of_manifest(has_db_id: bool, has_tables: bool) -> Self {
        match has_tables && !has_db_id {
            true => Self::new(5, 0),
            false => Self::NEWEST,
        }
    }

    /// Its name where new formats are kept from it, for an OPTIONS file.
    pub(crate) fn older_name(self) -> Option<String> {
        (!self.takes_all()).then(|| self.to_string())
    }

    /// Whether everything that is written is known to it.
    pub(crate) fn takes_all(self) -> bool {
        self >= EVERYTHING
    }

    /// Whether it skips records of the MANIFEST that it does not know; older ones refuse them.
    pub(crate) fn skips_unknown_records(self) -> bool {
        self >= FORMAT_5
    }

    /// The `format_version` of tables.
    pub(crate) fn format_version(self) -> u32 {
        match self >= FORMAT_5 {
            true => drumlin_table::FORMAT_VERSION_WRITTEN,
            false => drumlin_table::FORMAT_VERSION_OLD,
        }
    }

    /// Whether values may be stored in blob files.
    pub(crate) fn has_blob_files(self) -> bool {
        if drumlin_base::bug!("blob-files-for-rocksdb-6-6") {
            return self >= FORMAT_5;
        }
        self >= EVERYTHING
    }

    /// `wanted`, or the newest checksum before it that is known.
    pub(crate) fn checksum(self, wanted: ChecksumKind) -> ChecksumKind {
        match wanted {
            ChecksumKind::Xxh3 if self < EVERYTHING => ChecksumKind::Crc32c,
            ChecksumKind::Xxh64 if self < FORMAT_5 => ChecksumKind::Crc32c,
            wanted => wanted,
        }
    }
}

impl Vintage {
    /// The feature of a foreign table with the footer `footer` that this version does not support, for people;
    /// `None` if it reads the table.
    pub(crate) fn refuses(self, footer: &Footer) -> Option<String> {
        let needs = match footer.format_version {
            0..=2 => return self.refuses_checksum(footer.checksum),
            3 => Self::new(5, 15),
            4 => DATA_BLOCK_HASH,
            5 => FORMAT_5,
            // Where nothing else is kept back, the caller knows whom a newer one is for.
            _ => EVERYTHING,
        };
        match self < needs {
            true => Some(format!("format_version {}", footer.format_version)),
            false => self.refuses_checksum(footer.checksum),
        }
    }

    fn refuses_checksum(self, kind: ChecksumKind) -> Option<String> {
        (self.checksum(kind) != kind).then(|| format!("checksums of kind {kind:?}"))
    }
}

impl fmt::Display for Vintage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_gets_what_it_reads() {
        let of = |text| Vintage::parse(text).unwrap();
        for (text, format, blobs, checksum) in [
            ("5.0.1", 2, false, ChecksumKind::Crc32c),
            ("5.18.4", 2, false, ChecksumKind::Crc32c),
            ("6.6.4", 5, false, ChecksumKind::Crc32c),
            ("6.26.1", 5, false, ChecksumKind::Crc32c),
            ("6.27.3", 5, true, ChecksumKind::Xxh3),
            ("11.8.1", 5, true, ChecksumKind::Xxh3),
        ] {
            let vintage = of(text);
            assert_eq!(vintage.to_string(), text);
            assert_eq!(vintage.format_version(), format, "{text}");
            assert_eq!(vintage.has_blob_files(), blobs, "{text}");
            assert_eq!(vintage.checksum(ChecksumKind::Xxh3), checksum, "{text}");
        }
        assert_eq!(Vintage::parse("no version"), None);
        assert!(of("5.9.0") < of("5.10.0"));
    }
}
