//! Raw deflate, by flate2.

use super::buffers::zeros;

/// The level when none is asked for.
const LEVEL_DEFAULT: u32 = 6;
/// Bytes of a dictionary that deflate can reach back to.
const WINDOW_BYTES: usize = 32 << 10;

/// One thread's contexts, each made when first needed.
#[derive(Default)]
pub(super) struct Contexts {
    /// With its level.
    deflater: Option<(u32, flate2::Compress)>,
    inflater: Option<flate2::Decompress>,
}

impl Contexts {
    pub(super) fn compress(
        &mut self,
        level: Option<i32>,
        input: &[u8],
        space: &mut [u8],
    ) -> Option<usize> {
        let level = level
            .and_then(|level| u32::try_from(level).ok())
            .map_or(LEVEL_DEFAULT, |level| level.min(9));
        if self.deflater.as_ref().is_none_or(|(has, _)| *has != level) {
            let coder = flate2::Compress::new(flate2::Compression::new(level), false);
            self.deflater = Some((level, coder));
        }
        let (_, coder) = self.deflater.as_mut()?;
        coder.reset();
        let status = coder
            .compress(input, space, flate2::FlushCompress::Finish)
            .ok()?;
        if status != flate2::Status::StreamEnd {
            return None; // It did not fit.
        }
        usize::try_from(coder.total_out()).ok()
    }

    /// `declared` bytes out of `input`, into a vector of their own.
    pub(super) fn decompress(
        &mut self,
        dict: &[u8],
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
        let preset = last_window(dict);
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
}

/// The part of a dictionary that deflate can reach.
fn last_window(dict: &[u8]) -> &[u8] {
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
