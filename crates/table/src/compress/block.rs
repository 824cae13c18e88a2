//! One block compressed, one block decompressed.

use drumlin_base::coding::{Reader, put_varint32, varint_len};
use drumlin_base::limits::BLOCK_BYTES_MAX;
use drumlin_base::{Error, ErrorKind, Result};

use super::buffers::{UNCHECKED_BYTES_MAX, zeros};
use super::codec::{Codec, Framing};
use super::coders::{CODERS, bzip2_compress, lz4_decompress};
use super::dictionary::PreparedDict;
use super::{bzip2, zstd};

/// A block that claims at most this many times its stored bytes gets its memory at once.
const UNCHECKED_TIMES_MAX: usize = 255;

/// Appends `input` to `out`, compressed if that saves an eighth, else as it is. Gives the codec used, whose
/// id belongs into the block's trailer.
///
/// `level` is ignored with a `dict`, which was prepared with a level. A codec that files of `framing` cannot
/// hold stores the block as it is.
pub fn compress(
    codec: Codec,
    level: Option<i32>,
    dict: Option<&PreparedDict>,
    input: &[u8],
    framing: Framing,
    out: &mut Vec<u8>,
) -> Codec {
    let start = out.len();
    let budget = worthwhile_bytes(input.len());
    if try_compress(codec, level, dict, input, framing, budget, out).is_some() {
        return codec;
    }
    out.truncate(start);
    out.extend_from_slice(input);
    Codec::None
}

/// Appends `input` to `out`, compressed by `codec` even where that makes it longer, for files whose
/// header names the codec of everything inside: framed as RocksDB's tables are.
///
/// # Errors
/// `TooLarge` when the codec cannot take so much; `NotSupported` when this build is without it.
pub fn compress_always(
    codec: Codec,
    level: Option<i32>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    codec.check_built()?;
    if codec == Codec::None {
        out.extend_from_slice(input);
        return Ok(());
    }
    // bzip2 stretches most: by a hundredth and 600 bytes.
    let budget = input.len() + (input.len() >> 6) + 1024;
    let framing = Framing::SizePrefix;
    try_compress(codec, level, None, input, framing, budget, out).ok_or_else(|| {
        let message = format!("{codec} cannot compress {} bytes", input.len());
        Error::new(ErrorKind::TooLarge, message)
    })
}

/// Largest stored size worth it: RocksDB and LevelDB both ask for less than seven eighths.
fn worthwhile_bytes(input: usize) -> usize {
    (input - input / 8).saturating_sub(1)
}

/// Appends `input` compressed, if that takes at most `budget` bytes; else `out` is left untidy.
fn try_compress(
    codec: Codec,
    level: Option<i32>,
    dict: Option<&PreparedDict>,
    input: &[u8],
    framing: Framing,
    budget: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    codec.id(framing.style())?;
    if framing == Framing::FixedPrefix {
        return None; // Such files are only read.
    }
    let start = out.len();
    let input_len = u32::try_from(input.len()).ok()?;
    let prefix = match codec {
        Codec::None => return None,
        Codec::Snappy => 0,
        _ if framing == Framing::LevelDb => 0,
        _ => {
            put_varint32(out, input_len);
            varint_len(u64::from(input_len))
        }
    };
    let budget = budget.checked_sub(prefix)?;
    let body = start + prefix;
    let written = CODERS.with_borrow_mut(|coders| match codec {
        Codec::None => None,
        Codec::Snappy => coders.snappy(input, body, out),
        Codec::Zlib => coders.deflate(level, input, body, budget, out),
        Codec::Bzip2 => bzip2_compress(level, input, body, budget, out),
        Codec::Lz4 | Codec::Lz4Hc => coders.lz4(dict, input, body, out),
        Codec::Zstd => coders.zstd(level, dict, input, body, budget, out),
    })?;
    out.truncate(body + written);
    (written <= budget).then_some(())
}

/// The contents of a block stored as `input` under type byte `compression` (0 included: a copy).
///
/// `dict` is the table's dictionary, if it has one and this is a data block. At most `limit` bytes
/// are allocated, and for zlib with a dictionary another 32 KiB twice.
///
/// # Errors
/// `Corruption` when the input is damaged, declares more than `limit` or more than its codec could
/// hold, or does not have exactly the size it declares. `NotSupported`, by name, for codecs that
/// this crate, or a build of it, does not read. `Io` when the system gives no memory.
pub fn decompress(
    compression: u8,
    input: &[u8],
    dict: Option<&PreparedDict>,
    framing: Framing,
    limit: usize,
) -> Result<Vec<u8>> {
    let len = uncompressed_len(compression, input, framing, limit)?;
    check_claim(compression, input, dict, framing, len)?;
    let mut out = zeros(len)?;
    decompress_into(compression, input, dict, framing, &mut out)?;
    Ok(out)
}

/// The size that a block claims for its contents, checked to be at most `limit` and plausible.
///
/// # Errors
/// As [`decompress`].
pub(crate) fn uncompressed_len(
    compression: u8,
    input: &[u8],
    framing: Framing,
    limit: usize,
) -> Result<usize> {
    let codec = Codec::from_id(compression, framing.style())?;
    codec.check_built()?;
    let (declared, body) = match codec {
        Codec::None => (input.len(), input),
        _ => declared_size(codec, input, framing)?,
    };
    check_size(codec, declared, body.len(), limit)?;
    Ok(declared)
}

/// Checks the claim of `len` bytes of a block that claims far more than it stores: decodes it once and keeps
/// nothing. So memory is taken only for a true claim. Sound blocks that repeat themselves so much are rare.
///
/// # Errors
/// As [`decompress`].
pub(crate) fn check_claim(
    compression: u8,
    input: &[u8],
    dict: Option<&PreparedDict>,
    framing: Framing,
    len: usize,
) -> Result<()> {
    if len <= UNCHECKED_BYTES_MAX.max(input.len().saturating_mul(UNCHECKED_TIMES_MAX)) {
        return Ok(());
    }
    let codec = Codec::from_id(compression, framing.style())?;
    let body = match codec {
        Codec::Zstd | Codec::Bzip2 => declared_size(codec, input, framing)?.1,
        // These can claim at most 1,032 times the bytes stored.
        _ => return Ok(()),
    };
    let found = match codec {
        Codec::Zstd => zstd::measure(dict.map(|dict| &dict.zstd), body, len),
        _ => bzip2::measure(body, len),
    };
    if found == Some(len) {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "{codec} block of {} bytes does not hold the {len} that it declares",
        input.len()
    )))
}

/// [`decompress`] into `out`.
///
/// Requires: `out` is as long as [`uncompressed_len`] says.
///
/// # Errors
/// As [`decompress`].
pub(crate) fn decompress_into(
    compression: u8,
    input: &[u8],
    dict: Option<&PreparedDict>,
    framing: Framing,
    out: &mut [u8],
) -> Result<()> {
    let codec = Codec::from_id(compression, framing.style())?;
    let body = match codec {
        Codec::None => input,
        _ => declared_size(codec, input, framing)?.1,
    };
    let written = match codec {
        Codec::None => copy(body, out),
        Codec::Snappy => snap::raw::Decoder::new().decompress(body, out).ok(),
        Codec::Zlib => CODERS.with_borrow_mut(|coders| {
            // The coder makes its own buffer, which holds the dictionary too.
            copy(&coders.inflate(dict, body, out.len())?, out)
        }),
        Codec::Bzip2 => bzip2::decompress(body, out),
        Codec::Lz4 | Codec::Lz4Hc => lz4_decompress(dict, body, out),
        Codec::Zstd => CODERS.with_borrow_mut(|coders| coders.unzstd(dict, body, out)),
    };
    match written {
        Some(written) if written == out.len() => Ok(()),
        Some(written) => Err(Error::corruption(format!(
            "{codec} block holds {written} bytes, but declares {}",
            out.len()
        ))),
        None => Err(Error::corruption(format!(
            "damaged {codec} block of {} bytes, declared to hold {}",
            input.len(),
            out.len()
        ))),
    }
}

/// Copies `bytes` to the front of `out` and gives their number. `None` when they do not fit.
fn copy(bytes: &[u8], out: &mut [u8]) -> Option<usize> {
    out.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(bytes.len())
}

/// The size that the block claims for its contents, and the bytes behind it.
fn declared_size(codec: Codec, input: &[u8], framing: Framing) -> Result<(usize, &[u8])> {
    let damaged = || Error::corruption(format!("{codec} block does not tell its size"));
    let mut reader = Reader::new(input);
    let declared = match (codec, framing) {
        (Codec::Snappy, _) => snap::raw::decompress_len(input).ok().map(|len| len as u64),
        (Codec::Zstd, Framing::LevelDb) => zstd::content_size(input),
        (_, Framing::SizePrefix) => reader.varint32().map(u64::from),
        (Codec::Lz4 | Codec::Lz4Hc, Framing::FixedPrefix) => reader.fixed64(),
        (_, Framing::FixedPrefix | Framing::LevelDb) => {
            return Err(Error::not_supported(format!(
                "{codec} blocks in tables of format_version 1"
            )));
        }
    };
    let declared = declared
        .and_then(|declared| usize::try_from(declared).ok())
        .ok_or_else(damaged)?;
    Ok((declared, reader.rest()))
}

/// Refuses sizes over `limit`, and sizes the codec cannot have packed into `stored` bytes.
fn check_size(codec: Codec, declared: usize, stored: usize, limit: usize) -> Result<()> {
    let plausible = match codec {
        Codec::None => stored,
        // The longest copies take three bytes for 64.
        Codec::Snappy => stored.saturating_mul(22),
        // A byte of a length adds at most 255.
        Codec::Lz4 | Codec::Lz4Hc => stored.saturating_mul(255).saturating_add(64),
        // zlib's technical note: 1032 to 1 at best.
        Codec::Zlib => stored.saturating_mul(1032).saturating_add(64),
        // A repeated byte takes four bytes for a block of 128 KiB.
        Codec::Zstd => stored.saturating_mul(32 << 10).saturating_add(128 << 10),
        // Runs are packed twice; an empty block of 900 kB takes some 40 bytes.
        Codec::Bzip2 => stored.saturating_mul(2 << 20),
    };
    let most = limit.min(plausible).min(BLOCK_BYTES_MAX);
    if declared > most {
        return Err(Error::corruption(format!(
            "{codec} block of {stored} bytes declares {declared}, more than the {most} it may hold"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeros are the blocks that repeat themselves most, and must come back.
    #[test]
    fn claims_far_beyond_what_is_stored_are_believed_when_they_are_true() {
        let zeros = vec![0; 20 << 20];
        for codec in [Codec::Zstd, Codec::Bzip2] {
            let mut stored = Vec::new();
            compress_always(codec, None, &zeros, &mut stored).expect("small enough");
            assert!(stored.len() * UNCHECKED_TIMES_MAX < zeros.len(), "{codec}");
            let id = codec.id(Framing::SizePrefix.style()).expect("RocksDB's");
            let open =
                |stored: &[u8]| decompress(id, stored, None, Framing::SizePrefix, BLOCK_BYTES_MAX);
            assert!(open(&stored).expect("sound") == zeros, "{codec}");
            let prefix = varint_len(zeros.len() as u64);
            for claim in [zeros.len() - 1, zeros.len() + 1, 40 << 20] {
                let mut forged = Vec::new();
                put_varint32(&mut forged, claim as u32);
                forged.extend_from_slice(&stored[prefix..]);
                let error = open(&forged).expect_err("it holds another number");
                assert!(error.is_corruption(), "{error}");
            }
        }
    }

    /// The claim of 3 GiB is plausible for so many stored bytes, but nothing is allocated for it.
    #[test]
    fn a_false_claim_is_seen_before_it_is_allocated() {
        let mut rng = drumlin_base::rng::Rng::new(1);
        let mut bytes = vec![0; 200_000];
        rng.fill(&mut bytes);
        let mut stored = Vec::new();
        compress_always(Codec::Zstd, None, &bytes, &mut stored).expect("small enough");
        let mut forged = Vec::new();
        put_varint32(&mut forged, 3 << 30);
        forged.extend_from_slice(&stored[varint_len(200_000)..]);
        let id = Codec::Zstd.id(Framing::SizePrefix.style());
        let id = id.expect("RocksDB's");
        let error = check_claim(id, &forged, None, Framing::SizePrefix, 3 << 30);
        let error = error.expect_err("the frame holds less");
        assert!(error.to_string().contains("does not hold"), "{error}");
    }
}
