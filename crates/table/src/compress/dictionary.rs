//! Dictionaries: bytes that every data block of a table is compressed against.
//!
//! Small blocks repeat each other more than themselves, so cutting a table into blocks costs compression. A
//! dictionary wins that back. It is made from sampled blocks and stored in the table.
//!
//! Thread safety: immutable once prepared, shared freely.

use std::fmt;

use super::codec::{Codec, Compression, ZSTD_LEVEL_DEFAULT};
use super::zstd;

/// A dictionary ready for use by many threads.
pub struct PreparedDict {
    pub(super) raw: Vec<u8>,
    pub(super) zstd: zstd::Tables,
}

impl PreparedDict {
    /// A dictionary to read blocks with: the contents of block `rocksdb.compression_dict`.
    ///
    /// Costs about the dictionary's size in memory once more.
    pub fn for_reading(raw: Vec<u8>) -> Self {
        let zstd = zstd::Tables::for_reading(&raw);
        Self { raw, zstd }
    }

    /// A dictionary to write blocks with. Reading works too.
    pub fn for_writing(raw: Vec<u8>, compression: &Compression) -> Self {
        let mut dict = Self::for_reading(raw);
        if compression.codec == Codec::Zstd {
            let level = compression.level.unwrap_or(ZSTD_LEVEL_DEFAULT);
            dict.zstd.add_writing(&dict.raw, level);
        }
        dict
    }

    /// The bytes to store in the table.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Memory it holds, about.
    pub fn resident_bytes(&self) -> usize {
        self.raw.len().saturating_mul(1 + self.zstd.copies())
    }
}

impl fmt::Debug for PreparedDict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedDict")
            .field("raw_bytes", &self.raw.len())
            .finish_non_exhaustive()
    }
}

/// A dictionary of at most `dictionary_bytes` for blocks like `samples`.
///
/// zstd's trainer is asked for [`Codec::Zstd`]; when it finds too little to learn from, and for
/// LZ4, the dictionary is the samples themselves, evenly chosen. Empty when there are no samples or
/// the codec takes none.
pub fn train_dictionary(compression: &Compression, samples: &[&[u8]]) -> Vec<u8> {
    let limit = compression.dictionary_bytes as usize;
    if limit == 0 || !compression.codec.takes_dictionary() {
        return Vec::new();
    }
    if compression.codec == Codec::Zstd
        && let Some(trained) = zstd::train(samples, limit)
    {
        return trained;
    }
    raw_dictionary(samples, limit)
}

/// Whole samples spread evenly over all of them until `limit` is reached; the last one is cut.
fn raw_dictionary(samples: &[&[u8]], limit: usize) -> Vec<u8> {
    let total: usize = samples.iter().map(|sample| sample.len()).sum();
    let step = (total / limit.max(1)).max(1);
    let mut dict = Vec::with_capacity(limit.min(total));
    for sample in samples.iter().step_by(step) {
        let room = limit - dict.len();
        dict.extend_from_slice(sample.get(..room).unwrap_or(sample));
        if dict.len() == limit {
            break;
        }
    }
    dict
}
