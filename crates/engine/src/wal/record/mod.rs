//! Records: how bytes are framed in WAL files and MANIFESTs.
//!
//! A file is a row of 32 KiB blocks; a record is one fragment, or several that never cross a block.
//! A fragment is a header (masked CRC-32C, length, type, and in recycled WAL files the log's
//! number) and its part of the payload. The rest of a block where no header fits is zeros.
//! Format page: `docs/format/record.md`.

mod bitflip;
mod fragment;
mod mend;
mod reader;
mod search;
mod synced;
#[cfg(test)]
mod tests;
mod writer;

pub use mend::Mended;
pub use reader::{End, EndReason, Later, Record, RecordReader, Verdict};
pub(crate) use search::are_zeros;
pub use synced::SyncedMark;
pub use writer::RecordWriter;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 32 << 10;
/// Bytes of a fragment's header: CRC, length, type.
pub const HEADER_BYTES: usize = 7;
/// Bytes of a fragment's header in a file that may be recycled: the log's number too.
pub const RECYCLABLE_HEADER_BYTES: usize = 11;

/// Added to a type byte for the recyclable fragment of the same type.
const RECYCLABLE_OFFSET: u8 = 4;
/// Where the bytes a CRC covers begin: at the type byte.
const COVERED_FROM: usize = 6;

const _: () = assert!(
    BLOCK_BYTES - HEADER_BYTES <= u16::MAX as usize,
    "a fragment's length has two bytes"
);
