//! Every named maximum.

/// Longest user key accepted by default: 8 MiB, RocksDB's practical bound.
pub const KEY_BYTES_MAX: usize = 8 << 20;
/// Longest value: below 4 GiB, so that a length always fits 32 bits with its framing.
pub const VALUE_BYTES_MAX: usize = (u32::MAX as usize) - (64 << 10);
/// Longest write batch.
pub const BATCH_BYTES_MAX: usize = (u32::MAX as usize) - (64 << 10);
/// Levels of the tree: L0 to L6, as both peers have.
pub const LEVELS: usize = 7;
/// Largest block a reader will decompress. A block holds at least one entry, so it must fit the
/// largest value; memory is bounded because the declared size is checked against the file first.
pub const BLOCK_BYTES_MAX: usize = u32::MAX as usize;
/// Longest file name part or text field taken from a MANIFEST.
pub const NAME_BYTES_MAX: usize = 64 << 10;
/// Most bytes one write group puts in the WAL with one append.
pub const GROUP_BYTES_MAX: usize = 1 << 20;

const _: () = assert!(KEY_BYTES_MAX < VALUE_BYTES_MAX);
const _: () = assert!(
    LEVELS == 7,
    "RocksDB and LevelDB refuse other counts by default"
);
