//! Files that are written no faster than a limiter lets them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::Result;

use crate::file_system::{
    CreateOptions, FileInfo, FileLock, FileSyncer, FileSystem, RandomAccessFile, WritableFile,
};
use crate::rate::{IoPriority, RateLimiter};

/// How much is written between two questions to the limiter.
const PIECE_BYTES: u64 = 256 << 10;

/// A file system whose files, when written, ask a limiter first. Everything else, and reading,
/// goes straight to the one below.
#[derive(Clone, Debug)]
pub struct PacedFileSystem {
    below: Arc<dyn FileSystem>,
    limiter: Arc<RateLimiter>,
    priority: IoPriority,
}

impl PacedFileSystem {
    /// `below`, written with this priority.
    pub fn new(
        below: Arc<dyn FileSystem>,
        limiter: Arc<RateLimiter>,
        priority: IoPriority,
    ) -> Self {
        Self {
            below,
            limiter,
            priority,
        }
    }

    fn paced(&self, file: Box<dyn WritableFile>) -> Box<dyn WritableFile> {
        Box::new(PacedFile {
            file,
            limiter: Arc::clone(&self.limiter),
            priority: self.priority,
            unasked: 0,
        })
    }
}

impl FileSystem for PacedFileSystem {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        Ok(self.paced(self.below.create(path, options)?))
    }

    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        Ok(self.paced(self.below.reuse(old, new, options)?))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.below.open(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.below.list(dir)
    }

    fn info(&self, path: &Path) -> Result<FileInfo> {
        self.below.info(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.below.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.below.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.below.remove(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.below.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.below.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.below.sync_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        self.below.sync_file(path)
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        self.below.truncate(path, size)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.below.lock(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.below.free_space(path)
    }
}

#[derive(Debug)]
struct PacedFile {
    file: Box<dyn WritableFile>,
    limiter: Arc<RateLimiter>,
    priority: IoPriority,
    /// Appended, and the limiter not asked yet.
    unasked: u64,
}

impl WritableFile for PacedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.unasked += bytes.len() as u64;
        if self.unasked >= PIECE_BYTES {
            self.limiter.request(self.unasked, self.priority);
            self.unasked = 0;
        }
        self.file.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        // What is left is counted, so that many small files are not free.
        self.limiter.request(self.unasked, self.priority);
        self.unasked = 0;
        self.file.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.file.close()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        self.file.syncer()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Clock, FileKind, ManualClock, RateLimit, StrictMemFileSystem};

    #[test]
    fn files_are_written_at_the_limit_and_hold_what_was_written() {
        let clock = ManualClock::new(0);
        let limiter = RateLimiter::new(Arc::new(clock.clone()), RateLimit::Fixed(1 << 20));
        let disk = Arc::new(StrictMemFileSystem::new());
        let paced = PacedFileSystem::new(disk, Arc::new(limiter), IoPriority::Compaction);
        let path = Path::new("/1.sst");
        for _ in 0..2 {
            let mut file = paced
                .create(path, CreateOptions::new(FileKind::Table))
                .unwrap();
            for byte in 0..16 {
                file.append(&[byte; 100_000]).unwrap();
            }
            assert_eq!(file.len(), 1_600_000);
            file.sync().unwrap();
            file.close().unwrap();
        }
        let seconds = 2.0 * 1_600_000.0 / f64::from(1 << 20);
        let wanted = Duration::from_secs_f64(seconds);
        let took = clock.monotonic();
        assert!(took >= wanted - Duration::from_millis(200), "{took:?}");
        assert!(took <= wanted, "{took:?}");
        let read = paced.read_file(path, 2_000_000).unwrap();
        assert!(
            read.chunks(100_000)
                .zip(0..)
                .all(|(part, byte)| part == [byte; 100_000])
        );
    }
}
