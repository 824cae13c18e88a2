//! From a block handle to the bytes of the block: read, check, decompress.
//!
//! A block whose checksum does not match is read once more, from the file and past every buffer,
//! before it is called corrupt: memory and cables fail too, and a second read tells.

use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::bytes::Draft;
use drumlin_base::limits::BLOCK_BYTES_MAX;
use drumlin_base::perf::{Measure, count, timed};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::RandomAccessFile;

use super::layout::BlockMeta;
use crate::cache::ReadAhead;
use crate::compress::{
    Framing, PreparedDict, check_claim, decompress, decompress_into, uncompressed_len, zeros,
};
use crate::format::{
    BLOCK_TRAILER_BYTES, BlockHandle, ChecksumKind, trailer_compression, verify_block,
};
use crate::options::{ReadTier, TableReadOptions};

/// The blocks of one open file.
#[derive(Debug)]
pub(crate) struct BlockFile {
    pub(crate) file: Arc<dyn RandomAccessFile>,
    pub(crate) path: PathBuf,
    pub(crate) checksum: ChecksumKind,
    /// The base of context checksums, see [`crate::format::Footer`]; `None` before version 6.
    pub(crate) context: Option<u32>,
    pub(crate) framing: Framing,
    /// Where the footer begins: no block reaches past it.
    pub(crate) limit: u64,
    /// Whether data blocks are expected to be compressed.
    pub(crate) compressed: bool,
    /// The dictionary of the data blocks.
    pub(crate) dict: Option<PreparedDict>,
}

impl BlockFile {
    /// The uncompressed contents of a data block, in a buffer that `room` makes of the length it is
    /// told.
    ///
    /// # Errors
    /// `Io`; `Corruption` naming file and offset.
    pub(crate) fn data_block(
        &self,
        handle: BlockHandle,
        verify: bool,
        ahead: Option<&mut ReadAhead>,
        room: impl Fn(usize) -> Result<Draft<BlockMeta>>,
    ) -> Result<Draft<BlockMeta>> {
        self.read_data(handle, verify, ahead, room)
            .map_err(|error| error.with_file(&self.path).with_offset(handle.offset))
    }

    /// The uncompressed contents of any other block; its checksum is always checked.
    ///
    /// # Errors
    /// As [`BlockFile::data_block`].
    pub(crate) fn meta_block(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        self.read_meta(handle)
            .map_err(|error| error.with_file(&self.path).with_offset(handle.offset))
    }

    fn read_meta(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let mut stored = zeros(self.stored_len(handle)?)?;
        let kind = self.read_stored(handle, true, &mut stored)?;
        stored.truncate(stored.len() - BLOCK_TRAILER_BYTES);
        match kind {
            0 => Ok(stored),
            _ => decompress(kind, &stored, None, self.framing, BLOCK_BYTES_MAX),
        }
    }

    fn read_data(
        &self,
        handle: BlockHandle,
        verify: bool,
        ahead: Option<&mut ReadAhead>,
        room: impl Fn(usize) -> Result<Draft<BlockMeta>>,
    ) -> Result<Draft<BlockMeta>> {
        let stored_len = self.stored_len(handle)?;
        let len = stored_len - BLOCK_TRAILER_BYTES;
        if let Some(ahead) = ahead
            && let Some(stored) = ahead.bytes(&*self.file, handle.offset, stored_len, self.limit)?
            && let Ok(kind) = self.check(stored, handle, verify)
        {
            return self.unpack(kind, body_of(stored), room);
        }
        if self.compressed {
            let mut stored = zeros(stored_len)?;
            let kind = self.read_stored(handle, verify, &mut stored)?;
            return self.unpack(kind, body_of(&stored), room);
        }
        // Read to where it stays; the trailer is cut off again.
        let mut draft = room(stored_len)?;
        let kind = self.read_stored(handle, verify, draft.bytes_mut())?;
        draft.truncate(len);
        match kind {
            0 => Ok(draft),
            _ => self.unpack(kind, draft.bytes(), room),
        }
    }

    /// The uncompressed contents of a data block that is stored as `stored`, its trailer included.
    ///
    /// # Errors
    /// `Corruption`.
    pub(crate) fn unpack_stored(
        &self,
        handle: BlockHandle,
        verify: bool,
        stored: &[u8],
        room: impl Fn(usize) -> Result<Draft<BlockMeta>>,
    ) -> Result<Draft<BlockMeta>> {
        let kind = self.check(stored, handle, verify)?;
        self.unpack(kind, body_of(stored), room)
    }

    /// Bytes of a block with its trailer.
    pub(crate) fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        handle.check_within(self.limit)?;
        let stored_len = handle.size_with_trailer().unwrap_or(u64::MAX);
        usize::try_from(stored_len)
            .ok()
            .filter(|&len| len <= BLOCK_BYTES_MAX)
            .ok_or_else(|| Error::corruption("block is larger than 4 GiB"))
    }

    /// Fills `stored`, checks it, and says how it is compressed. Reads a second time if need be.
    fn read_stored(&self, handle: BlockHandle, verify: bool, stored: &mut [u8]) -> Result<u8> {
        self.read_once(handle, stored)?;
        if let Ok(kind) = self.check(stored, handle, verify) {
            return Ok(kind);
        }
        self.read_once(handle, stored)?;
        self.check(stored, handle, verify)
    }

    fn read_once(&self, handle: BlockHandle, stored: &mut [u8]) -> Result<()> {
        let read = timed(Measure::BlockReadNanos, || {
            self.file.read_at(handle.offset, stored)
        })?;
        count(Measure::BlockReads, 1);
        count(Measure::BlockReadBytes, stored.len() as u64);
        if read < stored.len() {
            return Err(Error::corruption(format!(
                "the file ends {} bytes inside a block",
                stored.len() - read
            )));
        }
        Ok(())
    }

    fn check(&self, stored: &[u8], handle: BlockHandle, verify: bool) -> Result<u8> {
        if verify {
            timed(Measure::ChecksumNanos, || {
                verify_block(stored, self.checksum, self.context, handle.offset)
            })
        } else {
            trailer_compression(stored, handle.offset)
        }
    }

    fn unpack(
        &self,
        kind: u8,
        body: &[u8],
        room: impl Fn(usize) -> Result<Draft<BlockMeta>>,
    ) -> Result<Draft<BlockMeta>> {
        let len = uncompressed_len(kind, body, self.framing, BLOCK_BYTES_MAX)?;
        check_claim(kind, body, self.dict.as_ref(), self.framing, len)?;
        let mut draft = room(len)?;
        let out = draft.bytes_mut();
        timed(Measure::DecompressNanos, || {
            decompress_into(kind, body, self.dict.as_ref(), self.framing, out)
        })?;
        Ok(draft)
    }

    /// Whether a read with `options` may have the block at `handle` from the file.
    ///
    /// # Errors
    /// `Incomplete`, if not.
    #[inline]
    pub(crate) fn admit(&self, handle: BlockHandle, options: &TableReadOptions) -> Result<()> {
        let stored = handle.size_with_trailer().unwrap_or(u64::MAX);
        let admitted = match options.tier {
            ReadTier::Disk => true,
            ReadTier::PageCache => self.file.is_in_page_cache(handle.offset, stored),
            ReadTier::BlockCache => false,
        };
        match admitted {
            true => Ok(()),
            false => {
                let error = Error::new(ErrorKind::Incomplete, "the block is not in memory");
                Err(error.with_file(&self.path))
            }
        }
    }
}

/// The bytes of a checked block before its trailer.
fn body_of(stored: &[u8]) -> &[u8] {
    let body = stored.split_last_chunk::<BLOCK_TRAILER_BYTES>();
    body.expect("a checked block has a trailer").0
}
