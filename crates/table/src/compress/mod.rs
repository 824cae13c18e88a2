//! Compression of single blocks, as the two engines store them.
//!
//! A block is stored compressed only if that saves an eighth of it; the type byte in its trailer
//! says which codec was used. How a compressed block tells its original size depends on the file
//! ([`Framing`]). Byte tables: `docs/format/block-table.md`.
//!
//! Invariant: decompression allocates no more than the caller's limit, and never more than the
//! codec could possibly have packed into the input, nothing for a claim far beyond the stored bytes before
//! it was seen to be true, and fails where the system has no memory; a block whose contents do not have exactly the
//! size it declares is damaged.
//!
//! Thread safety: functions may be called from any thread; each thread keeps its own codec
//! contexts (a zstd context costs more to make than a block costs to compress).
//!
//! - [`codec`]: the algorithms, their names and numbers, and a block's framing.
//! - [`dictionary`]: what a table's blocks have in common, given to the codec beforehand.
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
