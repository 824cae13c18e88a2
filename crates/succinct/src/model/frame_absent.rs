//! In the place of zstd where it is left out: no record becomes a frame, and frames of other builds are refused by
//! name.

use drumlin_base::{Error, Result};

/// No record is long enough.
pub(super) const FRAME_BYTES_MIN: usize = usize::MAX;

pub(super) fn compress(_: &[u8], _: i32, _: &mut Vec<u8>) -> bool {
    false
}

/// # Errors
/// `NotSupported`.
pub(super) fn decompress(_: &[u8], _: usize, _: &mut Vec<u8>) -> Result<()> {
    Err(Error::not_supported(
        "a record or a model as a zstd frame: this build was made without the feature `zstd`",
    ))
}
