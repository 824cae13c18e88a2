//! Buffers for decoders, of lengths that files claim.

use drumlin_base::{Error, Result};

/// Bytes that are decoded at a time where only their number matters.
#[cfg(any(feature = "bzip2", feature = "zstd"))]
pub(super) const MEASURED_BYTES: usize = 128 << 10;
/// Buffers of at most this many bytes are allocated without asking whether the system has the memory.
pub(super) const UNCHECKED_BYTES_MAX: usize = 1 << 20;

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
