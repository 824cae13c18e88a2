//! Writes a file back to the disk while it is still being written.
//!
//! By itself the kernel keeps written pages in its cache until a sync, or until there are too many of them, and
//! then stalls everybody: the sync for all of the file at once, other writers for a share of its dirty pages.
//! Here writeback starts with every step written, and the writer waits for the step but one before:
//!
//! ```text
//! advance  a step written: start writeback of it · wait for the writeback of all but the last two steps
//! ```
//!
//! So the disk always has work, the writer runs at the disk's speed, and the dirty bytes of one file stay
//! below [`AHEAD_BYTES`] and a step. A page that is still being filled is left alone, so that it is not
//! written twice.

use drumlin_base::Result;

use crate::shared_file::{SharedFile, is_unsupported};
use crate::syscalls;

/// Bytes handed to the disk at a time.
const STEP_BYTES: u64 = 1 << 20;
/// Bytes that may be on their way to the disk while more are written.
const AHEAD_BYTES: u64 = 2 * STEP_BYTES;

/// Ranges handed over end at a multiple of this, which is a multiple of every page size.
const BLOCK_BYTES: u64 = 64 << 10;
const _: () = assert!(STEP_BYTES.is_multiple_of(BLOCK_BYTES));

/// How far a file that grows at its end is on its way to the disk.
#[derive(Debug)]
pub(crate) struct Writeback {
    /// Writing back was begun for everything before this. A multiple of [`BLOCK_BYTES`].
    begun: u64,
    /// Everything before this was waited for. Not a promise: only a sync makes one.
    settled: u64,
    /// Whether the file system can do it at all.
    works: bool,
}

impl Writeback {
    /// Of an empty file.
    pub(crate) fn new() -> Self {
        Self {
            begun: 0,
            settled: 0,
            works: true,
        }
    }

    /// Called after every write: the file's first `written` bytes are with the kernel.
    ///
    /// # Errors
    /// Those of writing back any earlier write; the file is then broken, because the kernel reports
    /// a lost page once.
    #[inline]
    pub(crate) fn advance(&mut self, shared: &SharedFile, written: u64) -> Result<()> {
        if !self.works || written - self.begun < STEP_BYTES {
            return Ok(());
        }
        self.step(shared, written)
    }

    #[cold]
    fn step(&mut self, shared: &SharedFile, written: u64) -> Result<()> {
        let end = written / BLOCK_BYTES * BLOCK_BYTES;
        assert!(self.begun < end, "a file only grows while it is written");
        match syscalls::start_writeback(shared.file(), self.begun, end - self.begun) {
            Ok(()) => self.begun = end,
            Err(error) if is_unsupported(&error) => {
                self.works = false;
                return Ok(());
            }
            Err(error) => return Err(shared.fail("write back", error)),
        }
        let settled = self.begun.saturating_sub(AHEAD_BYTES) / STEP_BYTES * STEP_BYTES;
        assert!(settled <= self.begun, "only what was begun is waited for");
        if settled > self.settled {
            syscalls::wait_for_writeback(shared.file(), self.settled, settled - self.settled)
                .map_err(|error| shared.fail("write back", error))?;
            self.settled = settled;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn never_more_than_a_few_steps_are_unsettled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.sst");
        let shared = SharedFile::new(File::create(&path).unwrap(), &path);
        let (mut writeback, mut written) = (Writeback::new(), 0);
        // Pieces of odd sizes, some larger than a step.
        for piece in [100, 300_000, 5000, 1 << 20, 3 << 20, 4095].repeat(6) {
            shared.write_at(&vec![7; piece], written).unwrap();
            written += piece as u64;
            writeback.advance(&shared, written).unwrap();
            assert!(written - writeback.begun < STEP_BYTES);
            assert!(writeback.begun - writeback.settled < AHEAD_BYTES + STEP_BYTES);
            assert!(writeback.settled <= writeback.begun);
            assert!(writeback.begun.is_multiple_of(BLOCK_BYTES));
        }
        shared.sync().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), written);
    }
}
