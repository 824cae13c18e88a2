//! A file system whose files are read past the page cache, for measurements on a machine whose memory
//! cannot be limited: blocks that a store does not cache itself come from the disk.
//!
//! Threads read side by side: a file is opened several times, since reads by one handle wait for each
//! other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drumlin_base::Result;
use drumlin_fs::{CreateOptions, FileSystem, RandomAccessFile, WritableFile, forward_files};

/// Handles of a file; as many reads of it go on at a time.
const HANDLES: usize = 4;

/// See the module.
#[derive(Debug)]
pub(crate) struct DirectReads {
    below: Arc<dyn FileSystem>,
}

impl DirectReads {
    /// Over `below`.
    pub(crate) fn new(below: Arc<dyn FileSystem>) -> Self {
        Self { below }
    }
}

impl FileSystem for DirectReads {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        self.below.create(path, options)
    }

    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        self.below.reuse(old, new, options)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        let handles: Result<Vec<_>> = (0..HANDLES).map(|_| self.below.open_direct(path)).collect();
        Ok(Arc::new(Handles {
            handles: handles?,
            next: AtomicUsize::new(0),
        }))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.below.open_direct(path)
    }

    forward_files!(below);
}

/// A file opened several times. Invariant: at least once.
#[derive(Debug)]
struct Handles {
    handles: Vec<Arc<dyn RandomAccessFile>>,
    /// Counts reads, which take the handles in turn.
    next: AtomicUsize,
}

impl Handles {
    fn handle(&self) -> &dyn RandomAccessFile {
        // Relaxed: any handle will do.
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.handles.len();
        &**self.handles.get(turn).expect("a remainder of their number")
    }
}

impl RandomAccessFile for Handles {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.handle().read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        self.handle().size()
    }
}

#[cfg(test)]
mod tests {
    use drumlin_fs::{FileKind, StrictMemFileSystem};

    use super::*;

    #[test]
    fn what_was_written_is_read_at_any_place_and_by_many() {
        let files = DirectReads::new(Arc::new(StrictMemFileSystem::new()));
        files.create_dir_all(Path::new("/d")).expect("a directory");
        let path = Path::new("/d/file");
        let bytes: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
        let mut file = files
            .create(path, CreateOptions::new(FileKind::Other))
            .expect("created");
        file.append(&bytes).expect("written");
        file.close().expect("closed");
        let file = files.open(path).expect("opened");
        assert_eq!(file.size(), bytes.len() as u64);
        std::thread::scope(|scope| {
            for thread in 0..2 * HANDLES {
                let (file, bytes) = (&file, &bytes);
                scope.spawn(move || {
                    for start in (thread..bytes.len()).step_by(4999) {
                        let mut read = vec![0; 700];
                        let len = file.read_at(start as u64, &mut read).expect("read");
                        assert_eq!(read.get(..len), bytes.get(start..start + len), "{start}");
                        assert_eq!(len, 700.min(bytes.len() - start));
                    }
                });
            }
        });
    }
}
