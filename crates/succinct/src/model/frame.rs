//! Very large records: each a zstd frame of its own.
//!
//! A record of many kilobytes repeats itself, which tokens do not see; and it costs so much to read that
//! unpacking does not matter. Contexts are kept by thread, because making one costs more than a frame.

use std::cell::RefCell;

use drumlin_base::{Error, Result};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::get_frame_content_size;

/// Records of fewer bytes are not stored as frames.
pub(super) const FRAME_BYTES_MIN: usize = 8 << 10;

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
/// failure, `out` may be longer than it was.
///
/// # Errors
/// `Corruption` when it is no whole frame, or does not state its size, or states another one.
pub(super) fn decompress(frame: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Result<()> {
    let size = get_frame_content_size(frame).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|&size| size <= bytes_max).ok_or_else(damaged)?;
    let before = out.len();
    out.resize(before + size, 0);
    let room = out.get_mut(before..).ok_or_else(damaged)?;
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
}
