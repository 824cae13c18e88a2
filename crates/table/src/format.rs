//! The frame of a table file: block handles, block trailers, and the footer that names them.
//!
//! A table is a run of blocks, each followed by a five-byte trailer, and a footer at the very end.
//! The footer's last eight bytes, the magic number, say which engine's rules the rest follows.
//! Byte tables: `docs/format/block-table.md`.
//!
//! Invariant: nothing decoded here is trusted further than its own arithmetic. A [`BlockHandle`]
//! may point anywhere; [`BlockHandle::check_within`] is asked before the file is read.

use drumlin_base::checksum::{crc32c, mask, xxh3_64, xxh32, xxh64};
use drumlin_base::coding::{Reader, fixed32_at, put_fixed32, put_fixed64, put_varint64};
use drumlin_base::{Error, Result};

/// Bytes after each block: its compression type, then its checksum.
pub const BLOCK_TRAILER_BYTES: usize = 5;
/// Longest encoded [`BlockHandle`].
pub const BLOCK_HANDLE_BYTES_MAX: usize = 20;
/// Bytes of a LevelDB footer.
pub const LEVELDB_FOOTER_BYTES: usize = 48;
/// Bytes of a RocksDB footer of `format_version` 1 and later.
pub const ROCKSDB_FOOTER_BYTES: usize = 53;
/// What to read from the end of a file to be sure to hold its footer.
pub const FOOTER_BYTES_MAX: usize = ROCKSDB_FOOTER_BYTES;
/// The `format_version` this crate writes: every RocksDB since 6.6 reads it.
pub const FORMAT_VERSION_WRITTEN: u32 = 5;

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

/// Whose rules a table follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TableStyle {
    /// RocksDB's block-based table.
    #[default]
    RocksDb,
    /// LevelDB's table.
    LevelDb,
}

/// Where a block lies: `size` bytes at `offset`, not counting the trailer that follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockHandle {
    /// First byte of the block in its file.
    pub offset: u64,
    /// Bytes of the block as stored, without its trailer.
    pub size: u64,
}

impl BlockHandle {
    /// Appends the handle: two varints, at most [`BLOCK_HANDLE_BYTES_MAX`] bytes.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
    }

    /// Reads a handle from the front of `input`; `None` when the varints are damaged.
    #[inline]
    pub fn read(input: &mut Reader<'_>) -> Option<Self> {
        let offset = input.varint64()?;
        let size = input.varint64()?;
        Some(Self { offset, size })
    }

    /// The handle that `bytes` begin with, and what follows it.
    ///
    /// # Errors
    /// `Corruption` when the varints are damaged.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let mut input = Reader::new(bytes);
        match Self::read(&mut input) {
            Some(handle) => Ok((handle, input.rest())),
            None => Err(Error::corruption("damaged block handle")),
        }
    }

    /// The handle as stored alone in a value.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_HANDLE_BYTES_MAX);
        self.encode(&mut out);
        out
    }

    /// Bytes of block and trailer; `None` when the sum does not fit.
    #[inline]
    pub fn size_with_trailer(&self) -> Option<u64> {
        self.size.checked_add(BLOCK_TRAILER_BYTES as u64)
    }

    /// First byte past the block's trailer; `None` when the sum does not fit.
    #[inline]
    pub fn end_with_trailer(&self) -> Option<u64> {
        self.offset.checked_add(self.size_with_trailer()?)
    }

    /// Checks that block and trailer end at or before `limit`, the offset of the footer.
    ///
    /// # Errors
    /// `Corruption` naming the handle.
    #[inline]
    pub fn check_within(&self, limit: u64) -> Result<()> {
        match self.end_with_trailer() {
            Some(end) if end <= limit => Ok(()),
            _ => Err(self.outside(limit)),
        }
    }

    #[cold]
    fn outside(&self, limit: u64) -> Error {
        Error::corruption(format!(
            "block handle of {} bytes at {} points past the blocks, which end at {limit}",
            self.size, self.offset
        ))
        .with_offset(self.offset)
    }
}

/// How blocks are checked. The numbers are on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChecksumKind {
    /// Not at all.
    None = 0,
    /// Masked CRC-32C; LevelDB's only kind.
    Crc32c = 1,
    /// XXH32.
    Xxh32 = 2,
    /// The low half of XXH64.
    Xxh64 = 3,
    /// The low half of XXH3 over the block, the type byte mixed in after. RocksDB's default since
    /// 7.8, readable since 6.27.
    #[default]
    Xxh3 = 4,
}

impl ChecksumKind {
    /// The kind stored as `byte`.
    ///
    /// # Errors
    /// `Corruption` for a number no engine writes.
    pub fn from_byte(byte: u8) -> Result<Self> {
        Ok(match byte {
            0 => Self::None,
            1 => Self::Crc32c,
            2 => Self::Xxh32,
            3 => Self::Xxh64,
            4 => Self::Xxh3,
            _ => return Err(Error::corruption(format!("unknown checksum kind {byte}"))),
        })
    }

    /// The checksum of `bytes`, whose last byte is a block's compression type (or the last byte of
    /// a footer). Zero for [`ChecksumKind::None`], as RocksDB stores it.
    #[inline]
    pub fn compute(self, bytes: &[u8]) -> u32 {
        match self {
            Self::None => 0,
            Self::Crc32c => mask(crc32c(bytes)),
            Self::Xxh32 => xxh32(bytes),
            Self::Xxh64 => xxh64(bytes) as u32,
            Self::Xxh3 => match bytes.split_last() {
                None => 0,
                Some((&last, body)) => xxh3_64(body) as u32 ^ mix_last_byte(last),
            },
        }
    }
}

/// XXH3 is slow to extend by one byte, so the last byte is mixed in by a multiplication instead.
#[inline]
fn mix_last_byte(last: u8) -> u32 {
    u32::from(last).wrapping_mul(0x6b90_83d9)
}

/// What is added to a checksum at `offset` in a file of version 6 or later, so that a block moved
/// within or between files fails its check. `None` adds nothing.
#[inline]
pub fn context_modifier(context: Option<u32>, offset: u64) -> u32 {
    match context {
        None | Some(0) => 0,
        Some(base) => base ^ (offset as u32).wrapping_add((offset >> 32) as u32),
    }
}

/// Appends the trailer of the block that fills `out` from `start` on: `compression`, then the
/// checksum over both. `offset` is where the block begins in its file; `context` the file's base
/// context checksum, if it has one.
///
/// # Panics
/// When `start` lies past the end of `out`.
pub fn append_trailer(
    out: &mut Vec<u8>,
    start: usize,
    compression: u8,
    kind: ChecksumKind,
    context: Option<u32>,
    offset: u64,
) {
    out.push(compression);
    let covered = out.get(start..).expect("a block starts before its trailer");
    let checksum = kind
        .compute(covered)
        .wrapping_add(context_modifier(context, offset));
    put_fixed32(out, checksum);
}

/// Checks a block read together with its trailer; its compression type.
///
/// `block_and_trailer` ends with the trailer. `offset` is where the block begins in its file.
/// With [`ChecksumKind::None`] the stored checksum must be zero, as RocksDB asks too.
///
/// # Errors
/// `Corruption` with both checksums and the offset, or when there is no room for a trailer.
#[inline]
pub fn verify_block(
    block_and_trailer: &[u8],
    kind: ChecksumKind,
    context: Option<u32>,
    offset: u64,
) -> Result<u8> {
    let Some((covered, stored)) = block_and_trailer.split_last_chunk::<4>() else {
        return Err(too_short(offset));
    };
    let Some(&compression) = covered.last() else {
        return Err(too_short(offset));
    };
    let stored = u32::from_le_bytes(*stored);
    let expected = kind
        .compute(covered)
        .wrapping_add(context_modifier(context, offset));
    if stored != expected {
        return Err(mismatch(stored, expected, offset));
    }
    Ok(compression)
}

/// The compression type in a block's trailer, without checking the checksum.
///
/// # Errors
/// `Corruption` when there is no room for a trailer.
#[inline]
pub fn trailer_compression(block_and_trailer: &[u8], offset: u64) -> Result<u8> {
    let body = block_and_trailer.split_last_chunk::<4>();
    body.and_then(|(covered, _)| covered.last().copied())
        .ok_or_else(|| too_short(offset))
}

#[cold]
fn too_short(offset: u64) -> Error {
    Error::corruption("block shorter than its trailer").with_offset(offset)
}

#[cold]
fn mismatch(stored: u32, expected: u32, offset: u64) -> Error {
    Error::corruption(format!(
        "block checksum does not match: stored {stored:#010x}, expected {expected:#010x}"
    ))
    .with_offset(offset)
}

/// The end of a table: whose rules it follows and where its directory of blocks lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Whose rules the file follows.
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

    /// Never: a footer has bytes. Here because [`Footer::len`] is.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Decodes the footer of a file of `file_bytes` from its last bytes, of which `tail` holds
    /// [`FOOTER_BYTES_MAX`], or the whole file when it is shorter.
    ///
    /// The handles are checked to lie before the footer and to name blocks that are not empty.
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
            // No block is empty. This is also what an extended footer looks like when damage has
            // turned its version into one below 6, which has no checksum of its own.
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
