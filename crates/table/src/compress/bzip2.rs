//! bzip2, by the crate of that name.

use super::buffers::MEASURED_BYTES;

/// The block size in units of 100 kB; blocks here are far smaller than one.
const LEVEL_DEFAULT: u32 = 1;

pub(super) fn compress(level: Option<i32>, input: &[u8], space: &mut [u8]) -> Option<usize> {
    let level = level
        .and_then(|level| u32::try_from(level).ok())
        .map_or(LEVEL_DEFAULT, |level| level.clamp(1, 9));
    let mut coder = bzip2::Compress::new(bzip2::Compression::new(level), 0);
    let status = coder.compress(input, space, bzip2::Action::Finish).ok()?;
    if status != bzip2::Status::StreamEnd {
        return None;
    }
    usize::try_from(coder.total_out()).ok()
}

pub(super) fn decompress(body: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut coder = bzip2::Decompress::new(false);
    let status = coder.decompress(body, out).ok()?;
    if status != bzip2::Status::StreamEnd {
        return None;
    }
    usize::try_from(coder.total_out()).ok()
}

/// The number of bytes in a block, if it is at most `most`.
pub(super) fn measure(body: &[u8], most: usize) -> Option<usize> {
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
