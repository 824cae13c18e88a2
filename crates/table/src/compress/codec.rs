//! The algorithms: their names, their numbers on disk, and how a block of theirs is framed.

use std::fmt;
use std::str::FromStr;

use drumlin_base::{Error, Result};

use crate::format::TableStyle;

/// zstd's level when none is asked for: RocksDB's default.
pub(super) const ZSTD_LEVEL_DEFAULT: i32 = 3;

/// A compression algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Blocks are stored as they are.
    None,
    /// Snappy.
    Snappy,
    /// Raw deflate.
    Zlib,
    /// bzip2.
    Bzip2,
    /// LZ4.
    #[default]
    Lz4,
    /// LZ4 under the name of its slower coder. Read like [`Codec::Lz4`]; written by the fast coder.
    Lz4Hc,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// Every codec once.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Snappy,
        Self::Zlib,
        Self::Bzip2,
        Self::Lz4,
        Self::Lz4Hc,
        Self::Zstd,
    ];

    /// The type byte in the trailer of blocks of a file of `style`; `None` when such files cannot
    /// hold this codec.
    pub fn id(self, style: TableStyle) -> Option<u8> {
        match (style, self) {
            (_, Self::None) => Some(0),
            (_, Self::Snappy) => Some(1),
            (TableStyle::LevelDb, Self::Zstd) => Some(2),
            (TableStyle::LevelDb, _) => None,
            (TableStyle::RocksDb, Self::Zlib) => Some(2),
            (TableStyle::RocksDb, Self::Bzip2) => Some(3),
            (TableStyle::RocksDb, Self::Lz4) => Some(4),
            (TableStyle::RocksDb, Self::Lz4Hc) => Some(5),
            (TableStyle::RocksDb, Self::Zstd) => Some(7),
        }
    }

    /// The codec behind type byte `id` in a file of `style`.
    ///
    /// # Errors
    /// `NotSupported` for Xpress, for custom codecs and for RocksDB's in a table of LevelDB's style;
    /// `Corruption` for a byte nobody writes.
    pub fn from_id(id: u8, style: TableStyle) -> Result<Self> {
        let found = Self::ALL
            .into_iter()
            .find(|codec| codec.id(style) == Some(id));
        match (found, style) {
            (Some(codec), _) => Ok(codec),
            (None, TableStyle::RocksDb) if id == 6 => {
                Err(Error::not_supported("blocks compressed with Xpress"))
            }
            (None, TableStyle::RocksDb) if id >= 0x80 => Err(Error::not_supported(format!(
                "blocks of a custom compression type, {id:#04x}"
            ))),
            // RocksDB's first format shares LevelDB's magic number, but has more codecs.
            (None, TableStyle::LevelDb) if (3..=7).contains(&id) => Err(Error::not_supported(
                format!("blocks of compression type {id} in tables of RocksDB's format_version 0"),
            )),
            _ => Err(Error::corruption(format!("unknown compression type {id}"))),
        }
    }

    /// Whether the codec is in this build: features of the crate leave some out.
    ///
    /// # Errors
    /// `NotSupported`, naming the feature.
    pub fn check_built(self) -> Result<()> {
        let is_built = match self {
            Self::None | Self::Snappy | Self::Lz4 | Self::Lz4Hc => true,
            Self::Zlib => cfg!(feature = "zlib"),
            Self::Bzip2 => cfg!(feature = "bzip2"),
            Self::Zstd => cfg!(feature = "zstd"),
        };
        match is_built {
            true => Ok(()),
            false => Err(Error::not_supported(format!(
                "compression by {self}: this build was made without the feature `{self}`"
            ))),
        }
    }

    /// RocksDB's name of the codec, the value of property `rocksdb.compression`.
    pub fn property_name(self) -> &'static str {
        match self {
            Self::None => "NoCompression",
            Self::Snappy => "Snappy",
            Self::Zlib => "Zlib",
            Self::Bzip2 => "BZip2",
            Self::Lz4 => "LZ4",
            Self::Lz4Hc => "LZ4HC",
            Self::Zstd => "ZSTD",
        }
    }

    /// Whether blocks of this codec can be written with a dictionary.
    pub fn takes_dictionary(self) -> bool {
        matches!(self, Self::Lz4 | Self::Lz4Hc | Self::Zstd)
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Lz4Hc => "lz4hc",
            Self::Zstd => "zstd",
        })
    }
}

impl FromStr for Codec {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|codec| codec.to_string() == name).ok_or_else(|| {
            Error::invalid_argument(format!(
                "unknown compression {name:?} (none, snappy, zlib, bzip2, lz4, lz4hc or zstd)"
            ))
        })
    }
}

/// How tables are to be compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// The algorithm.
    pub codec: Codec,
    /// Its level; `None` for the codec's default. Snappy and LZ4 have none.
    pub level: Option<i32>,
    /// Size of a dictionary shared by a table's data blocks; 0 for none. Only zstd and LZ4 use one.
    pub dictionary_bytes: u32,
}

impl Compression {
    /// `codec` at its default level, without a dictionary.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            ..Self::default()
        }
    }

    /// No compression.
    pub fn none() -> Self {
        Self::new(Codec::None)
    }
}

/// How a compressed block tells the size of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// LevelDB: each codec's own format tells it.
    LevelDb,
    /// RocksDB of version 2 and later: a varint32 before all codecs but Snappy.
    SizePrefix,
    /// RocksDB of version 1: eight bytes before LZ4; only that and Snappy are read.
    FixedPrefix,
}

impl Framing {
    /// The framing of a file of `style` and `format_version`.
    pub fn of(style: TableStyle, format_version: u32) -> Self {
        match style {
            TableStyle::LevelDb => Self::LevelDb,
            TableStyle::RocksDb if format_version >= 2 => Self::SizePrefix,
            TableStyle::RocksDb => Self::FixedPrefix,
        }
    }

    /// The style whose type bytes go with it.
    pub fn style(self) -> TableStyle {
        match self {
            Self::LevelDb => TableStyle::LevelDb,
            Self::SizePrefix | Self::FixedPrefix => TableStyle::RocksDb,
        }
    }
}
