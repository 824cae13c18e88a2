//! Checksums and codecs on their own: crc32c, snappycomp, zstduncomp and the like; memory itself, and the way
//! from core to core.
//!
//! Names are LevelDB's (`snappycomp`, `zstduncomp`) and RocksDB's (`compress`, `uncompress`, which
//! take `--compression_type`). Blocks have `--block_size` bytes and hold generated values.

use std::sync::Arc;

use drumlin_base::{Error, Result, checksum};
use drumlin_fs::Clock;
use drumlin_table::compress::{compress, decompress};
use drumlin_table::{Codec, Framing};

use crate::flags::Flags;
use crate::latency::{pass_a_line, read_memory};
use crate::stats::{Operation, ThreadStats};
use crate::values::Values;

/// Bytes a checksum workload reads, as in RocksDB's db_bench.
const CHECKSUM_BYTES: u64 = 5000 << 20;
/// Bytes a codec workload compresses or restores.
const CODEC_BYTES: u64 = 1 << 30;

/// The codecs are measured for files of this kind.
const FRAMING: Framing = Framing::SizePrefix;

/// A workload on blocks in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockWork {
    /// CRC-32C.
    Crc32c,
    /// XXH32.
    XxHash,
    /// XXH64.
    XxHash64,
    /// XXH3, 64 bits.
    Xxh3,
    /// Compress blocks.
    Compress(Codec),
    /// Restore compressed blocks.
    Uncompress(Codec),
    /// Read memory at random, each read waiting for the one before.
    Memory,
    /// Hand a cache line to another core and back.
    Cores,
}

impl BlockWork {
    /// The workload called `name`, if it is one of these. `compression_type` is the codec of
    /// `compress` and `uncompress`.
    pub fn parse(name: &str, compression_type: &str) -> Option<Self> {
        Some(match name {
            "crc32c" => Self::Crc32c,
            "xxhash" => Self::XxHash,
            "xxhash64" => Self::XxHash64,
            "xxh3" => Self::Xxh3,
            "memlatency" => Self::Memory,
            "corelatency" => Self::Cores,
            "compress" => Self::Compress(codec(compression_type)?),
            "uncompress" => Self::Uncompress(codec(compression_type)?),
            _ => match name.strip_suffix("uncomp") {
                Some(name) => Self::Uncompress(codec(name)?),
                None => Self::Compress(codec(name.strip_suffix("comp")?)?),
            },
        })
    }

    /// Runs it, counting into `stats`.
    ///
    /// # Errors
    /// `Corruption` when a codec does not restore the bytes it compressed.
    pub fn run(self, flags: &Flags, stats: &mut ThreadStats, clock: &Arc<dyn Clock>) -> Result<()> {
        match self {
            Self::Crc32c => sum_blocks(flags, stats, |block| u64::from(checksum::crc32c(block))),
            Self::XxHash => sum_blocks(flags, stats, |block| u64::from(checksum::xxh32(block))),
            Self::XxHash64 => sum_blocks(flags, stats, checksum::xxh64),
            Self::Xxh3 => sum_blocks(flags, stats, checksum::xxh3_64),
            Self::Compress(codec) => compress_blocks(codec, flags, stats),
            Self::Uncompress(codec) => return restore_blocks(codec, flags, stats),
            Self::Memory => return read_memory(stats, clock),
            Self::Cores => pass_a_line(stats),
        }
        Ok(())
    }
}

fn sum_blocks(flags: &Flags, stats: &mut ThreadStats, sum: impl Fn(&[u8]) -> u64) {
    let block = vec![b'x'; flags.block_size.max(1)];
    let mut total = 0u64;
    let rounds = CHECKSUM_BYTES.div_ceil(block.len() as u64);
    for _ in 0..rounds {
        total = total.wrapping_add(sum(std::hint::black_box(&block)));
        stats.finished(Operation::Checksum, 1);
    }
    std::hint::black_box(total);
    stats.bytes += rounds * block.len() as u64;
    stats.remark = format!("({} per op)", block.len());
}

fn sample_block(flags: &Flags) -> Vec<u8> {
    let block_bytes = flags.block_size.max(1);
    let mut values = Values::new(flags.compression_ratio, block_bytes);
    values.next(block_bytes).to_vec()
}

/// The codec called `name` in flags and workloads.
fn codec(name: &str) -> Option<Codec> {
    name.parse().ok()
}

fn compress_blocks(codec: Codec, flags: &Flags, stats: &mut ThreadStats) {
    let block = sample_block(flags);
    let level = flags.level();
    let rounds = CODEC_BYTES.div_ceil(block.len() as u64);
    let (mut produced, mut out) = (0u64, Vec::new());
    for _ in 0..rounds {
        out.clear();
        let input = std::hint::black_box(&block);
        compress(codec, level, None, input, FRAMING, &mut out);
        produced += out.len() as u64;
        stats.finished(Operation::Compress, 1);
    }
    let read = rounds * block.len() as u64;
    stats.bytes += read;
    stats.remark = format!("(output: {:.1}%)", produced as f64 * 100.0 / read as f64);
}

fn restore_blocks(codec: Codec, flags: &Flags, stats: &mut ThreadStats) -> Result<()> {
    let block = sample_block(flags);
    let mut compressed = Vec::new();
    let used = compress(codec, flags.level(), None, &block, FRAMING, &mut compressed);
    let id = used.id(FRAMING.style()).unwrap_or_default();
    let rounds = CODEC_BYTES.div_ceil(block.len() as u64);
    let mut same = true;
    for _ in 0..rounds {
        let input = std::hint::black_box(&compressed);
        let restored = decompress(id, input, None, FRAMING, block.len())?;
        same &= restored.len() == block.len();
        std::hint::black_box(restored);
        stats.finished(Operation::Uncompress, 1);
    }
    stats.bytes += rounds * block.len() as u64;
    if used != codec {
        stats.remark = "(not compressible: copied)".to_owned();
    }
    if !same || decompress(id, &compressed, None, FRAMING, block.len())? != block {
        return Err(Error::corruption("the codec restored other bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_named_as_in_leveldb_and_rocksdb() {
        let parse = |name| BlockWork::parse(name, "lz4");
        assert_eq!(
            parse("snappycomp"),
            Some(BlockWork::Compress(Codec::Snappy))
        );
        assert_eq!(
            parse("zstduncomp"),
            Some(BlockWork::Uncompress(Codec::Zstd))
        );
        assert_eq!(parse("compress"), Some(BlockWork::Compress(Codec::Lz4)));
        assert_eq!(parse("crc32c"), Some(BlockWork::Crc32c));
        assert_eq!(parse("quiccomp"), None);
        assert_eq!(parse("fillseq"), None);
    }
}
