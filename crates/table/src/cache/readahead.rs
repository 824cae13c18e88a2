//! Reading ahead of a scan, so that it does not pay one system call per block.

use std::sync::Arc;

use drumlin_base::perf::{Measure, count, timed};
use drumlin_base::{Error, Result};
use drumlin_fs::RandomAccessFile;

/// First window of a scan that turned out to be sequential.
const WINDOW_BYTES_MIN: usize = 16 << 10;
/// Largest window that grows by itself.
const WINDOW_BYTES_MAX: usize = 256 << 10;
/// Sequential reads before the window opens: a short scan reads only the bytes it needs.
const READS_BEFORE_WINDOW: u32 = 2;

/// The buffer of one scan. Not shared.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    buffer: Vec<u8>,
    /// File offset of the buffer's first byte.
    start: u64,
    /// Where the block read last ended: the next one begins there if the scan is sequential.
    expected: u64,
    sequential: u32,
    window: usize,
    /// The window the user asked for; 0 lets it grow.
    explicit: usize,
    /// Where windows are read from instead of the table's own file.
    through: Option<Arc<dyn RandomAccessFile>>,
}

impl ReadAhead {
    /// A buffer with a fixed window of `explicit` bytes, or one that grows when it is 0.
    pub(crate) fn new(explicit: usize) -> Self {
        Self {
            explicit,
            ..Self::default()
        }
    }

    /// Reads windows from `file`, another handle of the same file.
    pub(crate) fn through(&mut self, file: Arc<dyn RandomAccessFile>) {
        self.through = Some(file);
    }

    /// Tells that a block was found in the cache, so that the scan still counts as sequential.
    #[inline]
    pub(crate) fn skip(&mut self, offset: u64, len: u64) {
        if offset == self.expected {
            self.expected = offset.saturating_add(len);
        }
    }

    /// The `len` bytes at `offset`, from the buffer or through it. `None` when the read is not part
    /// of a scan: the caller then reads by itself.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn bytes(
        &mut self,
        file: &dyn RandomAccessFile,
        offset: u64,
        len: usize,
        limit: u64,
    ) -> Result<Option<&[u8]>> {
        let sequential = offset == self.expected;
        self.expected = offset.saturating_add(len as u64);
        self.sequential = if sequential { self.sequential + 1 } else { 0 };
        if !self.holds(offset, len) {
            if self.explicit == 0 && self.sequential < READS_BEFORE_WINDOW {
                self.window = 0;
                return Ok(None);
            }
            self.window = match self.explicit {
                0 => (self.window * 2).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX),
                explicit => explicit,
            };
            self.fill(file, offset, len, limit)?;
        }
        debug_assert!(self.start <= offset, "the window holds what was asked for");
        let from = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        Ok(self.buffer.get(from..from.saturating_add(len)))
    }

    fn holds(&self, offset: u64, len: usize) -> bool {
        let end = self.start + self.buffer.len() as u64;
        offset >= self.start && offset.saturating_add(len as u64) <= end
    }

    fn fill(
        &mut self,
        file: &dyn RandomAccessFile,
        offset: u64,
        len: usize,
        limit: u64,
    ) -> Result<()> {
        let through = self.through.as_ref().map(Arc::clone);
        let file = through.as_deref().unwrap_or(file);
        let left = usize::try_from(limit.saturating_sub(offset)).unwrap_or(usize::MAX);
        let want = self.window.max(len).min(left);
        let more = want.saturating_sub(self.buffer.len());
        self.buffer
            .try_reserve(more)
            .map_err(|_| Error::no_memory(want))?;
        self.buffer.resize(want, 0);
        self.start = offset;
        let read = timed(Measure::BlockReadNanos, || {
            file.read_at(offset, &mut self.buffer)
        });
        match read {
            Ok(read) => {
                count(Measure::BlockReads, 1);
                count(Measure::BlockReadBytes, read as u64);
                self.buffer.truncate(read);
                file.will_need(offset + want as u64, self.window as u64);
                Ok(())
            }
            Err(error) => {
                self.buffer.clear();
                Err(error)
            }
        }
    }
}
