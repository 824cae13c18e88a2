//! From a block handle to the bytes of the block: read, check, decompress.
//!
//! A block whose checksum does not match is read once more, from the file and past every buffer,
//! before it is called corrupt: memory and cables fail too, and a second read tells.

use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::limits::BLOCK_BYTES_MAX;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::RandomAccessFile;

use crate::compress::{Framing, PreparedDict, decompress};
use crate::format::{
    BLOCK_TRAILER_BYTES, BlockHandle, ChecksumKind, trailer_compression, verify_block,
};
use crate::readahead::ReadAhead;

/// The blocks of one open file.
#[derive(Debug)]
pub(crate) struct BlockFile {
    pub(crate) file: Arc<dyn RandomAccessFile>,
    pub(crate) path: PathBuf,
    pub(crate) checksum: ChecksumKind,
    pub(crate) context: Option<u32>,
    pub(crate) framing: Framing,
    /// Where the footer begins: no block reaches past it.
    pub(crate) limit: u64,
    /// The dictionary of the data blocks.
    pub(crate) dict: Option<PreparedDict>,
}

impl BlockFile {
    /// The uncompressed contents of a data block.
    ///
    /// # Errors
    /// `Io`; `Corruption` naming file and offset.
    pub(crate) fn data_block(
        &self,
        handle: BlockHandle,
        verify: bool,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Vec<u8>> {
        self.read(handle, verify, self.dict.as_ref(), ahead)
            .map_err(|error| error.with_file(&self.path).with_offset(handle.offset))
    }

    /// The uncompressed contents of any other block; its checksum is always checked.
    ///
    /// # Errors
    /// As [`BlockFile::data_block`].
    pub(crate) fn meta_block(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        self.read(handle, true, None, None)
            .map_err(|error| error.with_file(&self.path).with_offset(handle.offset))
    }

    fn read(
        &self,
        handle: BlockHandle,
        verify: bool,
        dict: Option<&PreparedDict>,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Vec<u8>> {
        handle.check_within(self.limit)?;
        let stored_len = handle.size_with_trailer().unwrap_or(u64::MAX);
        let stored_len = usize::try_from(stored_len)
            .ok()
            .filter(|&len| len <= BLOCK_BYTES_MAX)
            .ok_or_else(|| Error::corruption("block is larger than 4 GiB"))?;
        if let Some(ahead) = ahead
            && let Some(stored) = ahead.bytes(&*self.file, handle.offset, stored_len, self.limit)?
            && let Ok(kind) = self.check(stored, handle, verify)
        {
            let body = stored.get(..stored_len - BLOCK_TRAILER_BYTES);
            return self.unpack(kind, body.unwrap_or_default(), dict);
        }
        let mut stored = self.read_stored(handle, stored_len)?;
        let kind = match self.check(&stored, handle, verify) {
            Ok(kind) => kind,
            Err(_) => {
                stored = self.read_stored(handle, stored_len)?;
                self.check(&stored, handle, verify)?
            }
        };
        stored.truncate(stored_len - BLOCK_TRAILER_BYTES);
        if kind == 0 {
            return Ok(stored);
        }
        self.unpack(kind, &stored, dict)
    }

    fn read_stored(&self, handle: BlockHandle, stored_len: usize) -> Result<Vec<u8>> {
        let mut stored = vec![0; stored_len];
        let read = self.file.read_at(handle.offset, &mut stored)?;
        if read < stored_len {
            return Err(Error::corruption(format!(
                "the file ends {} bytes inside a block",
                stored_len - read
            )));
        }
        Ok(stored)
    }

    fn check(&self, stored: &[u8], handle: BlockHandle, verify: bool) -> Result<u8> {
        if verify {
            verify_block(stored, self.checksum, self.context, handle.offset)
        } else {
            trailer_compression(stored, handle.offset)
        }
    }

    fn unpack(&self, kind: u8, body: &[u8], dict: Option<&PreparedDict>) -> Result<Vec<u8>> {
        decompress(kind, body, dict, self.framing, BLOCK_BYTES_MAX)
    }

    /// What a read that may not touch the file answers.
    #[cold]
    pub(crate) fn not_cached(&self) -> Error {
        Error::new(ErrorKind::Incomplete, "the block is not cached").with_file(&self.path)
    }
}
