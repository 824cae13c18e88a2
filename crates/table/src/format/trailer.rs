//! Block trailers: five bytes after each block, its compression type and its checksum.

use drumlin_base::checksum::{crc32c, mask, xxh3_64, xxh32, xxh64};
use drumlin_base::coding::put_fixed32;
use drumlin_base::{Error, Result};

/// Bytes after each block: its compression type, then its checksum.
pub const BLOCK_TRAILER_BYTES: usize = 5;

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

/// The number added to a checksum at `offset` in a file of version 6 or later, so that a block moved
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
/// When `start` is past the end of `out`.
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
