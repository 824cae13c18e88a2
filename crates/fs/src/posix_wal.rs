//! A write-ahead log file written through memory.
//!
//! An append is a copy into a shared mapping of the page cache: no system call, and the bytes
//! outlive the process as those of a write call do. A window of the file is mapped at a time; when
//! it is full the next one is mapped behind it.
//!
//! Invariants:
//! - A byte is stored only where `fallocate` has reserved the block, so a full disk is an error of
//!   the reservation and never a signal at the store.
//! - `window.start` is a multiple of the window size; `len` lies in the window or at its end.
//! - The file is as long as what is reserved; the bytes past `len` are zeros, or in a reused file
//!   what was there before. `close` cuts them off; after a crash the log's reader must tell.
//!
//! Where the file system does not keep reserved blocks in place, or offers no `fallocate` or no
//! mapping, the same is done by write calls.

use std::sync::Arc;

use drumlin_base::Result;
use memmap2::MmapMut;

use crate::file_system::{FileSyncer, WritableFile};
use crate::posix_file::{SharedFile, is_unsupported};
use crate::syscalls;

/// Bytes mapped at a time: large enough that mapping is rare, small enough that the pages of a
/// log do not weigh in the process's resident memory. A multiple of every page size in use.
const WINDOW_BYTES: u64 = 4 << 20;
/// The least that is reserved when the disk is nearly full.
const RESERVE_BYTES_MIN: u64 = 64 << 10;

const _: () = assert!(WINDOW_BYTES.is_multiple_of(RESERVE_BYTES_MIN));

#[derive(Debug)]
struct Window {
    start: u64,
    memory: MmapMut,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.memory.len() as u64
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PosixWal {
    shared: Arc<SharedFile>,
    window: Option<Window>,
    len: u64,
    /// Every block below this is reserved and inside the file.
    reserved: u64,
    /// How much to reserve at a time; a multiple of the window size.
    step_bytes: u64,
    /// Whether windows are used; else write calls.
    mapped: bool,
}

impl PosixWal {
    /// A log written from the front of `shared`, reserving `preallocate_bytes` at once.
    pub(crate) fn new(shared: Arc<SharedFile>, preallocate_bytes: u64) -> Result<Self> {
        let mapped = syscalls::reserved_blocks_are_kept(shared.file());
        let step_bytes = preallocate_bytes
            .max(1)
            .checked_next_multiple_of(WINDOW_BYTES)
            .unwrap_or(WINDOW_BYTES);
        let mut wal = Self {
            shared,
            window: None,
            len: 0,
            reserved: 0,
            step_bytes,
            mapped,
        };
        if preallocate_bytes > 0 && wal.mapped {
            wal.reserve(step_bytes)?;
        }
        Ok(wal)
    }

    /// Makes at least one more byte than `reserved` available, `step_bytes` if the disk has them.
    /// Clears `mapped` when the file system cannot reserve.
    fn reserve(&mut self, step_bytes: u64) -> Result<()> {
        let mut bytes = step_bytes;
        loop {
            match syscalls::fallocate(self.shared.file(), self.reserved, bytes, true) {
                Ok(()) => {
                    self.reserved += bytes;
                    return Ok(());
                }
                Err(error) if is_unsupported(&error) => {
                    self.mapped = false;
                    return Ok(());
                }
                // Nothing was written yet, so asking for less is not a retry of a lost write.
                Err(error) if is_full(&error) && bytes > RESERVE_BYTES_MIN => {
                    bytes = (bytes / 2).next_multiple_of(RESERVE_BYTES_MIN);
                }
                Err(error) => return Err(self.shared.fail("reserve space", error)),
            }
        }
    }

    /// Maps the window that holds `len`. Clears `mapped` when that cannot be.
    #[cold]
    fn advance(&mut self) -> Result<()> {
        // Given back first, so that two windows never count at once.
        self.window = None;
        if self.len >= self.reserved {
            self.reserve(self.step_bytes)?;
            if !self.mapped {
                return Ok(());
            }
        }
        let start = self.len - self.len % WINDOW_BYTES;
        let len = WINDOW_BYTES.min(self.reserved - start) as usize;
        match syscalls::map_shared(self.shared.file(), start, len) {
            Ok(memory) => self.window = Some(Window { start, memory }),
            // Address space or mappings are used up, or none are offered: write calls will do.
            Err(_) => self.mapped = false,
        }
        Ok(())
    }

    /// Copies what fits into the window; how many bytes that was.
    #[inline]
    fn copy(&mut self, bytes: &[u8]) -> usize {
        let Some(window) = &mut self.window else {
            return 0;
        };
        let at = (self.len - window.start) as usize;
        let n = bytes.len().min((window.end() - self.len) as usize);
        let room = window.memory.get_mut(at..at + n);
        let (Some(room), Some(bytes)) = (room, bytes.get(..n)) else {
            debug_assert!(false, "the length lies outside its window");
            return 0;
        };
        room.copy_from_slice(bytes);
        self.len += n as u64;
        n
    }

    #[cold]
    fn append_slowly(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() && self.mapped {
            self.advance()?;
            let n = self.copy(bytes);
            bytes = bytes.get(n..).unwrap_or_default();
        }
        if !bytes.is_empty() {
            self.shared.write_at(bytes, self.len)?;
            self.len += bytes.len() as u64;
        }
        Ok(())
    }
}

impl WritableFile for PosixWal {
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.shared.check()?;
        let n = self.copy(bytes);
        if n == bytes.len() {
            return Ok(());
        }
        self.append_slowly(bytes.get(n..).unwrap_or_default())
    }

    /// The kernel writes back pages dirtied through a mapping like any others.
    fn sync(&mut self) -> Result<()> {
        self.shared.sync()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        // Before the cut: no store may ever reach a page past the file's end.
        self.window = None;
        self.shared.cut(self.len)?;
        self.shared.close()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::clone(&self.shared) as Arc<dyn FileSyncer>
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// The twin of the mapping is the write call: at any moment the one can take over.
    #[test]
    fn write_calls_take_over_where_mapping_ends() {
        let dir = tempfile::tempdir().unwrap();
        for switch_at in [0, 1, 1000, WINDOW_BYTES, WINDOW_BYTES + 4097] {
            let path = dir.path().join("1.log");
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .unwrap();
            let mut wal = Box::new(PosixWal::new(SharedFile::new(file, &path), 0).unwrap());
            wal.append(&vec![1; switch_at as usize]).unwrap();
            wal.mapped = false;
            wal.window = None;
            wal.append(&[2; 5000]).unwrap();
            wal.append(&[3; 5000]).unwrap();
            wal.sync().unwrap();
            wal.close().unwrap();
            let expected = [vec![1; switch_at as usize], vec![2; 5000], vec![3; 5000]];
            assert!(std::fs::read(&path).unwrap() == expected.concat());
        }
    }

    #[test]
    fn one_window_is_mapped_at_a_time_and_space_is_reserved_in_steps() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.log");
        let options = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .clone();
        let file = options.open(&path).unwrap();
        let mut wal = PosixWal::new(SharedFile::new(file, &path), WINDOW_BYTES + 1).unwrap();
        assert_eq!(wal.reserved, 2 * WINDOW_BYTES);
        wal.append(&vec![1; WINDOW_BYTES as usize]).unwrap();
        assert_eq!(wal.window.as_ref().map(Window::end), Some(WINDOW_BYTES));
        wal.append(b"x").unwrap();
        assert_eq!(
            wal.window.as_ref().map(|window| window.start),
            Some(WINDOW_BYTES)
        );
        wal.append(&vec![1; WINDOW_BYTES as usize]).unwrap();
        assert_eq!(wal.reserved, 4 * WINDOW_BYTES);
        assert_eq!(wal.len(), 2 * WINDOW_BYTES + 1);
    }
}
