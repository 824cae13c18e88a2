//! Block handles: the place of a block in its file.

use drumlin_base::coding::{Reader, put_varint64};
use drumlin_base::{Error, Result};

use super::trailer::BLOCK_TRAILER_BYTES;

/// Longest encoded [`BlockHandle`].
pub const BLOCK_HANDLE_BYTES_MAX: usize = 20;

/// Where a block is: `size` bytes at `offset`, not counting the trailer that follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockHandle {
    /// First byte of the block in its file.
    pub offset: u64,
    /// Bytes of the block as stored, without its trailer.
    pub size: u64,
}

impl BlockHandle {
    /// Appends the handle: two varints, at most [`BLOCK_HANDLE_BYTES_MAX`] bytes.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
    }

    /// Reads a handle from the front of `input`; `None` when the varints are damaged.
    #[inline]
    pub fn read(input: &mut Reader<'_>) -> Option<Self> {
        let offset = input.varint64()?;
        let size = input.varint64()?;
        Some(Self { offset, size })
    }

    /// The handle that `bytes` begin with, and the rest.
    ///
    /// # Errors
    /// `Corruption` when the varints are damaged.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let mut input = Reader::new(bytes);
        match Self::read(&mut input) {
            Some(handle) => Ok((handle, input.rest())),
            None => Err(Error::corruption("damaged block handle")),
        }
    }

    /// The handle as stored alone in a value.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_HANDLE_BYTES_MAX);
        self.encode(&mut out);
        out
    }

    /// Bytes of block and trailer; `None` when the sum does not fit.
    #[inline]
    pub fn size_with_trailer(&self) -> Option<u64> {
        self.size.checked_add(BLOCK_TRAILER_BYTES as u64)
    }

    /// First byte past the block's trailer; `None` when the sum does not fit.
    #[inline]
    pub fn end_with_trailer(&self) -> Option<u64> {
        self.offset.checked_add(self.size_with_trailer()?)
    }

    /// Checks that block and trailer end at or before `limit`, the offset of the footer.
    ///
    /// # Errors
    /// `Corruption` naming the handle.
    #[inline]
    pub fn check_within(&self, limit: u64) -> Result<()> {
        match self.end_with_trailer() {
            Some(end) if end <= limit => Ok(()),
            _ => Err(self.outside(limit)),
        }
    }

    #[cold]
    fn outside(&self, limit: u64) -> Error {
        Error::corruption(format!(
            "block handle of {} bytes at {} points past the blocks, which end at {limit}",
            self.size, self.offset
        ))
        .with_offset(self.offset)
    }
}
