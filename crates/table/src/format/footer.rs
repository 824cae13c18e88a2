//! Footers: the last bytes of a table, which identify its engine's rules and the place of its list
//! of blocks.

use drumlin_base::coding::{Reader, fixed32_at, put_fixed32, put_fixed64};
use drumlin_base::{Error, Result};

use super::handle::{BLOCK_HANDLE_BYTES_MAX, BlockHandle};
use super::trailer::{BLOCK_TRAILER_BYTES, ChecksumKind, context_modifier};

/// Bytes of a LevelDB footer.
pub const LEVELDB_FOOTER_BYTES: usize = 48;
/// Bytes of a RocksDB footer of `format_version` 1 and later.
pub const ROCKSDB_FOOTER_BYTES: usize = 53;
/// Bytes to read from the end of a file to be sure to hold its footer.
pub const FOOTER_BYTES_MAX: usize = ROCKSDB_FOOTER_BYTES;
/// The `format_version` this crate writes: every RocksDB since 6.6 reads it.
pub const FORMAT_VERSION_WRITTEN: u32 = 5;
/// The `format_version` written for readers older than that: RocksDB 5 and all after it.
pub const FORMAT_VERSION_OLD: u32 = 2;

/// On disk: the last eight bytes of a LevelDB table, and of RocksDB tables of version 0.
pub const LEVELDB_MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// On disk: the last eight bytes of a RocksDB block-based table.
pub const ROCKSDB_MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
/// On disk: RocksDB's other table kinds, recognized to refuse them by name.
const PLAIN_MAGIC: u64 = 0x8242_2296_63bf_9564;
const LEGACY_PLAIN_MAGIC: u64 = 0x4f34_18eb_7a8f_13b8;
const CUCKOO_MAGIC: u64 = 0x9267_89d0_c5f1_7873;

/// On disk: opens the second part of a footer of version 6 and later. Read as handles it would be
/// a metaindex of size zero, so older readers stop early.
const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0x00, 0x7a, 0x00];
/// The two handles of footers up to version 5, padded; the extended part of later ones.
const FOOTER_MIDDLE_BYTES: usize = 2 * BLOCK_HANDLE_BYTES_MAX;
const FOOTER_CHECKSUM_AT: usize = 5;
const FORMAT_VERSION_MAX: u32 = 7;

/// The engine whose rules a table follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TableStyle {
    /// RocksDB's block-based table.
    #[default]
    RocksDb,
    /// LevelDB's table.
    LevelDb,
}

/// The end of a table: its engine's rules and the place of its directory of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The engine whose rules the file follows.
    pub style: TableStyle,
    /// RocksDB's `format_version`; 0 for LevelDB tables.
    pub format_version: u32,
    /// How blocks are checked.
    pub checksum: ChecksumKind,
    /// The base of context checksums; `Some` (and not zero) from version 6 on.
    pub context: Option<u32>,
    /// The metaindex block.
    pub metaindex: BlockHandle,
    /// The (top-level) index block; `None` from version 6 on, where the metaindex names it
    /// `rocksdb.index`.
    pub index: Option<BlockHandle>,
}

impl Footer {
    /// Bytes this footer takes at the end of its file.
    pub fn len(&self) -> usize {
        match self.style {
            TableStyle::LevelDb => LEVELDB_FOOTER_BYTES,
            TableStyle::RocksDb => ROCKSDB_FOOTER_BYTES,
        }
    }

    /// Always false. Stands beside [`Footer::len`], as is usual.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Decodes the footer of a file of `file_bytes` from its last bytes, of which `tail` holds
    /// [`FOOTER_BYTES_MAX`], or the whole file when it is shorter.
    ///
    /// The handles are checked to be before the footer and to name blocks that are not empty.
    ///
    /// # Errors
    /// `Corruption` for damage or a file that is no table; `NotSupported`, naming the feature, for
    /// tables of kinds or versions this crate does not read.
    pub fn decode(tail: &[u8], file_bytes: u64) -> Result<Self> {
        let Some((_, magic)) = tail.split_last_chunk::<8>() else {
            return Err(Error::corruption(format!(
                "a file of {file_bytes} bytes is too short to be a table"
            )));
        };
        let footer = match u64::from_le_bytes(*magic) {
            LEVELDB_MAGIC => Self::decode_leveldb(tail)?,
            ROCKSDB_MAGIC => Self::decode_rocksdb(tail, file_bytes)?,
            PLAIN_MAGIC | LEGACY_PLAIN_MAGIC => {
                return Err(Error::not_supported("RocksDB plain tables"));
            }
            CUCKOO_MAGIC => return Err(Error::not_supported("RocksDB cuckoo tables")),
            other => {
                return Err(Error::corruption(format!(
                    "not a table: unknown magic number {other:#018x}"
                )));
            }
        };
        let limit = footer.offset_in(file_bytes)?;
        for handle in [Some(footer.metaindex), footer.index].into_iter().flatten() {
            handle.check_within(limit)?;
            // No block is empty. An extended footer looks like this, too, when damage has turned
            // its version into one below 6, which has no checksum of its own.
            if handle.size == 0 {
                return Err(Error::corruption("damaged footer: it names an empty block"));
            }
        }
        Ok(footer)
    }

    /// Where this footer begins in a file of `file_bytes`.
    ///
    /// # Errors
    /// `Corruption` when the file is shorter than the footer.
    pub fn offset_in(&self, file_bytes: u64) -> Result<u64> {
        file_bytes
            .checked_sub(self.len() as u64)
            .ok_or_else(too_short_for_footer)
    }

    fn decode_leveldb(tail: &[u8]) -> Result<Self> {
        let footer = last_bytes::<LEVELDB_FOOTER_BYTES>(tail)?;
        let mut input = Reader::new(footer);
        let (metaindex, index) = read_two_handles(&mut input)?;
        Ok(Self {
            style: TableStyle::LevelDb,
            format_version: 0,
            checksum: ChecksumKind::Crc32c,
            context: None,
            metaindex,
            index: Some(index),
        })
    }

    fn decode_rocksdb(tail: &[u8], file_bytes: u64) -> Result<Self> {
        let footer = last_bytes::<ROCKSDB_FOOTER_BYTES>(tail)?;
        let mut input = Reader::new(footer);
        let kind = input.u8().ok_or_else(too_short_for_footer)?;
        let version =
            fixed32_at(footer, 1 + FOOTER_MIDDLE_BYTES).ok_or_else(too_short_for_footer)?;
        if version == 0 || version > FORMAT_VERSION_MAX {
            return Err(Error::not_supported(format!(
                "tables of format_version {version} (1 to {FORMAT_VERSION_MAX} are read)"
            )));
        }
        let checksum = ChecksumKind::from_byte(kind)?;
        if version >= 6 {
            return Self::decode_extended(footer, version, checksum, file_bytes);
        }
        let (metaindex, index) = read_two_handles(&mut input)?;
        Ok(Self {
            style: TableStyle::RocksDb,
            format_version: version,
            checksum,
            context: None,
            metaindex,
            index: Some(index),
        })
    }

    fn decode_extended(
        footer: &[u8; ROCKSDB_FOOTER_BYTES],
        version: u32,
        checksum: ChecksumKind,
        file_bytes: u64,
    ) -> Result<Self> {
        let mut input = Reader::new(footer);
        let fields = (|| {
            input.u8()?;
            let magic = input.bytes(EXTENDED_MAGIC.len())?;
            let stored = input.fixed32()?;
            let base = input.fixed32()?;
            let metaindex_bytes = input.fixed32()?;
            input.bytes(16)?; // Reserved, and free to hold anything.
            let reserved = input.fixed64()?;
            Some((magic, stored, base, metaindex_bytes, reserved))
        })();
        let Some((magic, stored, base, metaindex_bytes, reserved)) = fields else {
            return Err(too_short_for_footer());
        };
        if magic != EXTENDED_MAGIC {
            return Err(Error::corruption("damaged footer: wrong extended magic"));
        }
        if base == 0 {
            return Err(Error::corruption(
                "damaged footer: no base context checksum",
            ));
        }
        let offset = file_bytes
            .checked_sub(ROCKSDB_FOOTER_BYTES as u64)
            .ok_or_else(too_short_for_footer)?;
        let expected = footer_checksum(footer, checksum, base, offset);
        if stored != expected {
            return Err(Error::corruption(format!(
                "footer checksum does not match: stored {stored:#010x}, expected {expected:#010x}"
            ))
            .with_offset(offset));
        }
        if reserved != 0 {
            return Err(Error::not_supported("a footer feature of a later RocksDB"));
        }
        let size = u64::from(metaindex_bytes);
        let start = offset.checked_sub(size + BLOCK_TRAILER_BYTES as u64);
        let start = start.ok_or_else(|| Error::corruption("metaindex larger than its file"))?;
        Ok(Self {
            style: TableStyle::RocksDb,
            format_version: version,
            checksum,
            context: Some(base),
            metaindex: BlockHandle {
                offset: start,
                size,
            },
            index: None,
        })
    }

    /// Appends the footer of a file whose footer begins at `offset`.
    ///
    /// # Errors
    /// `InvalidArgument` when the fields do not fit the version: no index handle below 6, or from 6
    /// on a base context of zero or a metaindex that does not end where the footer begins.
    pub fn encode(&self, offset: u64, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        if self.style == TableStyle::RocksDb {
            out.push(self.checksum as u8);
        }
        if self.format_version >= 6 {
            self.encode_extended(offset, out)?;
        } else {
            self.encode_handles(out)?;
        }
        debug_assert_eq!(out.len() - start, self.len(), "footers have a fixed size");
        Ok(())
    }

    fn encode_handles(&self, out: &mut Vec<u8>) -> Result<()> {
        let Some(index) = self.index else {
            return Err(Error::invalid_argument(
                "footers below version 6 name the index block",
            ));
        };
        let end = out.len() + FOOTER_MIDDLE_BYTES;
        self.metaindex.encode(out);
        index.encode(out);
        out.resize(end, 0);
        match self.style {
            TableStyle::LevelDb => put_fixed64(out, LEVELDB_MAGIC),
            TableStyle::RocksDb => {
                put_fixed32(out, self.format_version);
                put_fixed64(out, ROCKSDB_MAGIC);
            }
        }
        Ok(())
    }

    fn encode_extended(&self, offset: u64, out: &mut Vec<u8>) -> Result<()> {
        let base = self.context.unwrap_or(0);
        let adjacent = self.metaindex.end_with_trailer() == Some(offset);
        let (Ok(metaindex_bytes), true, true) =
            (u32::try_from(self.metaindex.size), adjacent, base != 0)
        else {
            return Err(Error::invalid_argument(
                "footers from version 6 on follow their metaindex and have a context",
            ));
        };
        let mut footer = Vec::with_capacity(ROCKSDB_FOOTER_BYTES);
        footer.push(self.checksum as u8);
        footer.extend_from_slice(&EXTENDED_MAGIC);
        put_fixed32(&mut footer, 0); // The checksum, filled in below.
        put_fixed32(&mut footer, base);
        put_fixed32(&mut footer, metaindex_bytes);
        footer.resize(1 + FOOTER_MIDDLE_BYTES, 0);
        put_fixed32(&mut footer, self.format_version);
        put_fixed64(&mut footer, ROCKSDB_MAGIC);
        let whole: &mut [u8; ROCKSDB_FOOTER_BYTES] = footer
            .as_mut_slice()
            .try_into()
            .expect("the fields add up to a footer");
        let checksum = footer_checksum(whole, self.checksum, base, offset);
        if let Some(slot) = whole.get_mut(FOOTER_CHECKSUM_AT..FOOTER_CHECKSUM_AT + 4) {
            slot.copy_from_slice(&checksum.to_le_bytes());
        }
        out.pop(); // The checksum kind, written by the caller and part of `whole` again.
        out.extend_from_slice(whole);
        Ok(())
    }
}

/// Checksum of a footer of version 6 and later, its own field taken as zero.
fn footer_checksum(
    footer: &[u8; ROCKSDB_FOOTER_BYTES],
    kind: ChecksumKind,
    base: u32,
    offset: u64,
) -> u32 {
    let mut cleared = *footer;
    if let Some(slot) = cleared.get_mut(FOOTER_CHECKSUM_AT..FOOTER_CHECKSUM_AT + 4) {
        slot.fill(0);
    }
    kind.compute(&cleared)
        .wrapping_add(context_modifier(Some(base), offset))
}

fn last_bytes<const N: usize>(tail: &[u8]) -> Result<&[u8; N]> {
    tail.last_chunk::<N>().ok_or_else(too_short_for_footer)
}

fn read_two_handles(input: &mut Reader<'_>) -> Result<(BlockHandle, BlockHandle)> {
    let metaindex = BlockHandle::read(input);
    let index = BlockHandle::read(input);
    metaindex
        .zip(index)
        .ok_or_else(|| Error::corruption("damaged block handle in the footer"))
}

#[cold]
fn too_short_for_footer() -> Error {
    Error::corruption("file shorter than its footer")
}
