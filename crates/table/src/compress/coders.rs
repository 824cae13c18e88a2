//! The codecs' own libraries, and each thread's contexts for them.
//!
//! Encoders write to `out[body..]`, the room they need included, and return the bytes they used;
//! decoders fill `out`. `None` stands for every way to fail: it did not fit, or it was damaged.

use std::cell::RefCell;

use drumlin_base::{Error, Result};
use zstd::zstd_safe::{CCtx, DCtx, DParameter, InBuffer, OutBuffer};

use super::codec::ZSTD_LEVEL_DEFAULT;
use super::dictionary::PreparedDict;

/// Bytes that are decoded at a time where only their number matters.
const MEASURED_BYTES: usize = 128 << 10;
/// Buffers of at most this many bytes are allocated without asking whether the system has the memory.
pub(super) const UNCHECKED_BYTES_MAX: usize = 1 << 20;
/// The largest window that zstd supports.
const WINDOW_LOG_MAX: u32 = if usize::BITS == 32 { 30 } else { 31 };

/// zlib's level when none is asked for.
const ZLIB_LEVEL_DEFAULT: u32 = 6;
/// bzip2's block size in units of 100 kB; blocks here are far smaller than one.
const BZIP2_LEVEL_DEFAULT: u32 = 1;

thread_local! {
    pub(super) static CODERS: RefCell<Coders> = RefCell::new(Coders::default());
}

/// One thread's codec contexts, each made when first needed.
#[derive(Default)]
pub(super) struct Coders {
    zstd_encoder: Option<CCtx<'static>>,
    zstd_decoder: Option<DCtx<'static>>,
    snappy_encoder: Option<Box<snap::raw::Encoder>>,
    lz4_table: Option<lz4_flex::block::CompressTable>,
    deflater: Option<(u32, flate2::Compress)>,
    inflater: Option<flate2::Decompress>,
}

/// Makes `out[body..]` at least `bytes` long and returns it.
fn room(out: &mut Vec<u8>, body: usize, bytes: usize) -> Option<&mut [u8]> {
    out.resize(body.checked_add(bytes)?, 0);
    out.get_mut(body..)
}

impl Coders {
    pub(super) fn snappy(&mut self, input: &[u8], body: usize, out: &mut Vec<u8>) -> Option<usize> {
        let encoder = self
            .snappy_encoder
            .get_or_insert_with(|| Box::new(snap::raw::Encoder::new()));
        let bound = snap::raw::max_compress_len(input.len());
        encoder.compress(input, room(out, body, bound)?).ok()
    }

    pub(super) fn lz4(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        body: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let space = room(
            out,
            body,
            lz4_flex::block::get_maximum_output_size(input.len()),
        )?;
        match dict {
            Some(dict) => lz4_flex::block::compress_into_with_dict(input, space, &dict.raw).ok(),
            None => {
                let table = self.lz4_table.get_or_insert_default();
                lz4_flex::block::compress_into_with_table(input, space, table).ok()
            }
        }
    }

    pub(super) fn zstd(
        &mut self,
        level: Option<i32>,
        dict: Option<&PreparedDict>,
        input: &[u8],
        body: usize,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        if self.zstd_encoder.is_none() {
            self.zstd_encoder = CCtx::try_create();
        }
        let encoder = self.zstd_encoder.as_mut()?;
        let space = room(out, body, budget)?;
        match dict {
            Some(dict) => {
                let prepared = dict.encoder.as_ref()?;
                encoder
                    .compress_using_cdict(space, input, prepared.as_cdict())
                    .ok()
            }
            None => encoder
                .compress(space, input, level.unwrap_or(ZSTD_LEVEL_DEFAULT))
                .ok(),
        }
    }

    pub(super) fn deflate(
        &mut self,
        level: Option<i32>,
        input: &[u8],
        body: usize,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let level = level
            .and_then(|level| u32::try_from(level).ok())
            .map_or(ZLIB_LEVEL_DEFAULT, |level| level.min(9));
        if self.deflater.as_ref().is_none_or(|(has, _)| *has != level) {
            let coder = flate2::Compress::new(flate2::Compression::new(level), false);
            self.deflater = Some((level, coder));
        }
        let (_, coder) = self.deflater.as_mut()?;
        coder.reset();
        let space = room(out, body, budget)?;
        let status = coder
            .compress(input, space, flate2::FlushCompress::Finish)
            .ok()?;
        if status != flate2::Status::StreamEnd {
            return None; // It did not fit.
        }
        usize::try_from(coder.total_out()).ok()
    }

    /// `declared` bytes out of `input`, into a vector of their own.
    pub(super) fn inflate(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        declared: usize,
    ) -> Option<Vec<u8>> {
        let coder = self
            .inflater
            .get_or_insert_with(|| flate2::Decompress::new(false));
        coder.reset(false);
        // The coder takes no dictionary for raw deflate. A stored block with the dictionary in front of
        // the stream has the same effect: matches may reach back into it. Stored blocks end on a byte, so
        // the two streams simply follow each other.
        let preset = dict.map_or(&[][..], |dict| last_window(&dict.raw));
        let mut out = zeros(preset.len().checked_add(declared)?).ok()?;
        if !preset.is_empty() {
            let stored = stored_block(preset)?;
            let status = coder.decompress(&stored, &mut out, flate2::FlushDecompress::None);
            let taken = usize::try_from(coder.total_in()).ok()?;
            if status.ok()? != flate2::Status::Ok || taken != stored.len() {
                return None;
            }
        }
        let written = usize::try_from(coder.total_out()).ok()?;
        let space = out.get_mut(written..)?;
        let status = coder.decompress(input, space, flate2::FlushDecompress::Finish);
        if status.ok()? != flate2::Status::StreamEnd {
            return None;
        }
        out.truncate(usize::try_from(coder.total_out()).ok()?);
        out.drain(..preset.len());
        Some(out)
    }

    pub(super) fn unzstd(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        if self.zstd_decoder.is_none() {
            self.zstd_decoder = DCtx::try_create();
        }
        let decoder = self.zstd_decoder.as_mut()?;
        match dict {
            Some(dict) => {
                let prepared = dict.decoder.as_ref()?;
                decoder
                    .decompress_using_ddict(out, input, prepared.as_ddict())
                    .ok()
            }
            None => decoder.decompress(out, input).ok(),
        }
    }
}

/// The part of a dictionary that deflate can reach: the last 32 KiB.
fn last_window(dict: &[u8]) -> &[u8] {
    const WINDOW_BYTES: usize = 32 << 10;
    dict.get(dict.len().saturating_sub(WINDOW_BYTES)..)
        .unwrap_or(dict)
}

/// `bytes` as a deflate block that is stored, not compressed, and not the last.
fn stored_block(bytes: &[u8]) -> Option<Vec<u8>> {
    let len = u16::try_from(bytes.len()).ok()?;
    let mut block = Vec::with_capacity(5 + bytes.len());
    block.push(0);
    block.extend_from_slice(&len.to_le_bytes());
    block.extend_from_slice(&(!len).to_le_bytes());
    block.extend_from_slice(bytes);
    Some(block)
}

pub(super) fn bzip2_compress(
    level: Option<i32>,
    input: &[u8],
    body: usize,
    budget: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let level = level
        .and_then(|level| u32::try_from(level).ok())
        .map_or(BZIP2_LEVEL_DEFAULT, |level| level.clamp(1, 9));
    let mut coder = bzip2::Compress::new(bzip2::Compression::new(level), 0);
    let space = room(out, body, budget)?;
    let status = coder.compress(input, space, bzip2::Action::Finish).ok()?;
    if status != bzip2::Status::StreamEnd {
        return None;
    }
    usize::try_from(coder.total_out()).ok()
}

pub(super) fn lz4_decompress(
    dict: Option<&PreparedDict>,
    body: &[u8],
    out: &mut [u8],
) -> Option<usize> {
    match dict {
        Some(dict) => lz4_flex::block::decompress_into_with_dict(body, out, &dict.raw).ok(),
        None => lz4_flex::block::decompress_into(body, out).ok(),
    }
}

pub(super) fn bzip2_decompress(body: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut coder = bzip2::Decompress::new(false);
    let status = coder.decompress(body, out).ok()?;
    if status != bzip2::Status::StreamEnd {
        return None;
    }
    usize::try_from(coder.total_out()).ok()
}

/// The number of bytes in a zstd block, if it is at most `most`.
pub(super) fn measure_zstd(dict: Option<&PreparedDict>, body: &[u8], most: usize) -> Option<usize> {
    let mut decoder = DCtx::try_create()?;
    let window = DParameter::WindowLogMax(WINDOW_LOG_MAX);
    decoder.set_parameter(window).ok()?;
    if let Some(dict) = dict {
        decoder.ref_ddict(dict.decoder.as_ref()?.as_ddict()).ok()?;
    }
    let mut scratch = vec![0; MEASURED_BYTES];
    let (mut from, mut measured) = (InBuffer::around(body), 0usize);
    loop {
        let before = from.pos();
        let mut into = OutBuffer::around(scratch.as_mut_slice());
        let left = decoder.decompress_stream(&mut into, &mut from).ok()?;
        measured += into.pos();
        if left == 0 && from.pos() == body.len() {
            return Some(measured);
        }
        let is_stuck = into.pos() == 0 && from.pos() == before;
        if is_stuck || measured > most {
            return None;
        }
    }
}

/// The same for bzip2.
pub(super) fn measure_bzip2(body: &[u8], most: usize) -> Option<usize> {
    let mut coder = bzip2::Decompress::new(false);
    let mut scratch = vec![0; MEASURED_BYTES];
    loop {
        let before = (coder.total_in(), coder.total_out());
        let rest = body.get(usize::try_from(before.0).ok()?..)?;
        let status = coder.decompress(rest, &mut scratch).ok()?;
        let measured = usize::try_from(coder.total_out()).ok()?;
        if status == bzip2::Status::StreamEnd {
            return Some(measured);
        }
        if before == (coder.total_in(), coder.total_out()) || measured > most {
            return None;
        }
    }
}

/// A buffer of `len` zeros, where a file claims the length.
///
/// # Errors
/// `Io` when the system gives no memory.
pub(crate) fn zeros(len: usize) -> Result<Vec<u8>> {
    if len <= UNCHECKED_BYTES_MAX {
        return Ok(vec![0; len]);
    }
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| Error::no_memory(len))?;
    bytes.resize(len, 0);
    Ok(bytes)
}
