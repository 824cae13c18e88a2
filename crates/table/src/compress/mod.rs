//! Compression of single blocks, as the two engines store them.
//!
//! A block is stored compressed only if that saves an eighth of it; the type byte in its trailer
//! names the codec. How a compressed block tells its original size depends on the file
//! ([`Framing`]). Byte tables: `docs/format/block-table.md`.
//!
//! Invariant: decompression allocates at most the caller's limit, and at most the bytes that the codec can
//! pack into the input. A claim far beyond the stored bytes is checked before anything is allocated for it.
//! Where the system has no memory, decompression fails. A block whose contents do not have exactly the size
//! it declares is damaged.
//!
//! Thread safety: functions may be called from any thread; each thread keeps its own codec
//! contexts (a zstd context costs more to make than a block costs to compress).
//!
//! - [`codec`]: the algorithms, their names and numbers, and a block's framing.
//! - [`dictionary`]: bytes that a table's blocks share, given to the codec beforehand.
//! - [`block`]: one block compressed, one block decompressed.

pub mod block;
pub mod codec;
mod coders;
pub mod dictionary;

pub(crate) use block::{check_claim, decompress_into, uncompressed_len};
pub use block::{compress, compress_always, decompress};
pub use codec::{Codec, Compression, Framing};
pub(crate) use coders::zeros;
pub use dictionary::{PreparedDict, train_dictionary};
