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
//! - `zstd`, `zlib`, `bzip2`: the libraries of those names, which features of the crate leave out; what stands for
//!   them then is in `absent`.
//! - [`dictionary`]: bytes that a table's blocks share, given to the codec beforehand.
//! - [`block`]: one block compressed, one block decompressed.

pub mod block;
mod buffers;
#[cfg_attr(not(feature = "bzip2"), path = "absent/bzip2.rs")]
mod bzip2;
pub mod codec;
mod coders;
pub mod dictionary;
#[cfg_attr(not(feature = "zlib"), path = "absent/zlib.rs")]
mod zlib;
#[cfg_attr(not(feature = "zstd"), path = "absent/zstd.rs")]
mod zstd;

pub(crate) use block::{check_claim, decompress_into, uncompressed_len};
pub use block::{compress, compress_always, decompress};
pub(crate) use buffers::zeros;
pub use codec::{Codec, Compression, Framing};
pub use dictionary::{PreparedDict, train_dictionary};
