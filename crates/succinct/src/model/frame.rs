//! Very large records: each a zstd frame of its own.
//!
//! A record of many kilobytes repeats itself, and tokens do not use that; its read costs so much that
//! unpacking does not matter. Contexts are kept by thread, because making one costs more than a frame.

use std::cell::RefCell;

use drumlin_base::{Error, Result};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_frame_content_size};

/// Records of fewer bytes are not stored as frames.
pub(super) const FRAME_BYTES_MIN: usize = 8 << 10;
/// A claim of no more bytes, or of no more times the frame's length, gets its memory before anything is
/// decoded. Sound frames that claim more are rare.
const AT_ONCE_BYTES_MAX: usize = 1 << 20;
const AT_ONCE_TIMES_MAX: usize = 32;
/// Room that the first piece of a larger record gets.
const PIECE_BYTES: usize = 128 << 10;
/// The largest window that zstd knows: a record is its own window.
const WINDOW_LOG_MAX: u32 = if usize::BITS == 32 { 30 } else { 31 };

thread_local! {
    /// The level it was made for, and the context.
    static COMPRESSOR: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends `record` as a frame to `out`; whether that could be done.
pub(super) fn compress(record: &[u8], level: i32, out: &mut Vec<u8>) -> bool {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(of, _)| *of != level) {
            *kept = Compressor::new(level).ok().map(|made| (level, made));
        }
        let frame = kept
            .as_mut()
            .and_then(|(_, compressor)| compressor.compress(record).ok());
        frame.map(|frame| out.extend_from_slice(&frame)).is_some()
    })
}

/// Appends the record in `frame` to `out`, which may become at most `bytes_max` bytes longer. On
/// failure, `out` may be longer than it was. A size that a frame claims far beyond its length is
/// allocated only as that many bytes are decoded.
///
/// # Errors
/// `Corruption` when it is no whole frame, or does not state its size, or states another one; `Io` when the
/// system gives no memory.
pub(super) fn decompress(frame: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Result<()> {
    let size = get_frame_content_size(frame).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|&size| size <= bytes_max).ok_or_else(damaged)?;
    if size <= AT_ONCE_BYTES_MAX.max(frame.len().saturating_mul(AT_ONCE_TIMES_MAX)) {
        return at_once(frame, size, out);
    }
    in_pieces(frame, size, out)
}

fn at_once(frame: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
    let room = lengthen(out, size)?;
    let written = DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Decompressor::new().ok();
        }
        let decompressor = kept.as_mut();
        decompressor.and_then(|decompressor| decompressor.decompress_to_buffer(frame, room).ok())
    });
    if written == Some(size) {
        Ok(())
    } else {
        Err(damaged())
    }
}

/// The same, in pieces, each at most as long as the bytes decoded so far.
#[cold]
fn in_pieces(frame: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
    let mut decoder = DCtx::try_create().ok_or_else(|| Error::no_memory(PIECE_BYTES))?;
    let window = DParameter::WindowLogMax(WINDOW_LOG_MAX);
    decoder.set_parameter(window).map_err(|_| damaged())?;
    let mut from = InBuffer::around(frame);
    let (mut done, mut is_whole) = (0, false);
    while done < size {
        let piece = done.max(PIECE_BYTES).min(size - done);
        let mut into = OutBuffer::around(lengthen(out, piece)?);
        while into.pos() < piece {
            let before = (from.pos(), into.pos());
            let left = decoder.decompress_stream(&mut into, &mut from);
            is_whole = left.map_err(|_| damaged())? == 0;
            if is_whole || before == (from.pos(), into.pos()) {
                break;
            }
        }
        if into.pos() < piece {
            return Err(damaged());
        }
        done += piece;
    }
    if !is_whole {
        // The rest must be the frame's end, without content.
        let mut spare = [0];
        let mut into = OutBuffer::around(&mut spare[..]);
        let left = decoder.decompress_stream(&mut into, &mut from);
        is_whole = left.map_err(|_| damaged())? == 0 && into.pos() == 0;
    }
    if is_whole && from.pos() == frame.len() {
        return Ok(());
    }
    Err(damaged())
}

/// Makes `out` longer by `bytes`, and gives these.
fn lengthen(out: &mut Vec<u8>, bytes: usize) -> Result<&mut [u8]> {
    let before = out.len();
    out.try_reserve(bytes)
        .map_err(|_| Error::no_memory(bytes))?;
    out.resize(before + bytes, 0);
    out.get_mut(before..).ok_or_else(damaged)
}

#[cold]
fn damaged() -> Error {
    Error::corruption("a record's zstd frame is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    #[test]
    fn frames_come_back_and_damage_is_refused() {
        let record = b"kettle, kame and esker; ".repeat(1000);
        let mut frame = Vec::new();
        assert!(compress(&record, 3, &mut frame));
        let mut out = b"kept".to_vec();
        decompress(&frame, record.len(), &mut out).expect("sound");
        assert_eq!(out[4..], record);
        assert!(decompress(&frame, record.len() - 1, &mut out).is_err());
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            let mut damaged = frame.clone();
            let at = rng.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << rng.below(8);
            let mut out = Vec::new();
            let _either_way = decompress(&damaged, 1 << 16, &mut out);
            assert!(out.len() <= 1 << 16);
        }
    }

    /// Of a claim far beyond a frame's length, memory is taken as far as the frame decodes.
    #[test]
    fn what_a_frame_claims_is_not_allocated_before_it_is_decoded() {
        let record = vec![7; 40 << 20];
        let mut frame = Vec::new();
        assert!(compress(&record, 3, &mut frame));
        assert!(frame.len() * AT_ONCE_TIMES_MAX < record.len());
        let mut out = b"kept".to_vec();
        decompress(&frame, record.len(), &mut out).expect("sound");
        assert!(out[..4] == *b"kept" && out[4..] == record);
        for cut in [8, frame.len() / 4, frame.len() - 1] {
            let mut out = Vec::new();
            assert!(decompress(&frame[..cut], record.len(), &mut out).is_err());
        }
        let mut longer = frame.clone();
        longer.push(0);
        assert!(decompress(&longer, record.len(), &mut Vec::new()).is_err());
        // The size stands in four bytes behind the magic, the descriptor and the window.
        let mut forged = frame;
        assert_eq!(forged[4] >> 5, 0b100, "a window, four bytes of size");
        forged[6..10].copy_from_slice(&(1u32 << 30).to_le_bytes());
        let mut out = Vec::new();
        assert!(decompress(&forged, usize::MAX, &mut out).is_err());
        assert!(out.capacity() <= 4 * record.len(), "{}", out.capacity());
    }
}
