//! Common parts of targets: files in memory, and the errors that foreign bytes may cause.

use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::RandomAccessFile;

/// Asserts that an error blames the bytes: a decoder that reports anything else about them sends
/// its user looking in the wrong place.
pub(crate) fn blames_the_bytes(error: &Error) {
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Corruption | ErrorKind::NotSupported | ErrorKind::InvalidArgument
        ),
        "an error of the wrong kind: {error:?}"
    );
    assert!(!error.to_string().is_empty());
}

/// The value of `result`, or `None` when it rightly blames the bytes.
pub(crate) fn or_blamed<T>(result: Result<T>) -> Option<T> {
    result.inspect_err(blames_the_bytes).ok()
}

/// A file of `bytes` in memory.
pub(crate) fn memory_file(bytes: Vec<u8>) -> Arc<dyn RandomAccessFile> {
    Arc::new(MemoryFile(bytes))
}

#[derive(Debug)]
struct MemoryFile(Vec<u8>);

impl RandomAccessFile for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(start..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }
}
