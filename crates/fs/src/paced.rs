//! The files of background jobs: written no faster than a limiter lets them, and timed.
//!
//! Waits for the limiter are not counted as waits for the disk.

use std::path::Path;
use std::sync::Arc;

use drumlin_base::Result;
use drumlin_base::bytes::ResidentBytes;

use crate::Clock;
use crate::file_system::{CreateOptions, FileSyncer, FileSystem, RandomAccessFile, WritableFile};
use crate::io_times::{CallTimes, IoTimes};
use crate::rate::{IoPriority, RateLimiter};

/// How much is written between two questions to the limiter.
const PIECE_BYTES: u64 = 256 << 10;

/// A file system whose files, when written, ask a limiter first, and whose reads, writes and syncs
/// are timed. Everything else goes straight to the one below.
#[derive(Clone, Debug)]
pub struct PacedFileSystem {
    below: Arc<dyn FileSystem>,
    limiter: Arc<RateLimiter>,
    priority: IoPriority,
    watch: Stopwatch,
    direct: bool,
}

/// Times calls.
#[derive(Clone, Debug)]
struct Stopwatch {
    clock: Arc<dyn Clock>,
    times: Arc<IoTimes>,
}

impl Stopwatch {
    #[inline]
    fn time<R>(&self, of: impl Fn(&IoTimes) -> &CallTimes, call: impl FnOnce() -> R) -> R {
        let begin = self.clock.monotonic();
        let result = call();
        let took = self.clock.monotonic().saturating_sub(begin);
        of(&self.times).add(1, took);
        result
    }
}

impl PacedFileSystem {
    /// `below`, written with this priority. The time of its calls on `clock` is added to `times`.
    pub fn new(
        below: Arc<dyn FileSystem>,
        (limiter, priority): (Arc<RateLimiter>, IoPriority),
        (clock, times): (Arc<dyn Clock>, Arc<IoTimes>),
    ) -> Self {
        Self {
            below,
            limiter,
            priority,
            watch: Stopwatch { clock, times },
            direct: false,
        }
    }

    /// The same, with all files written past the page cache if `direct`. Reads past it are asked for
    /// at each open.
    #[must_use]
    pub fn directly(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// The options passed on for a file that is created with `options`.
    fn options(&self, options: CreateOptions) -> CreateOptions {
        CreateOptions {
            direct: options.direct || self.direct,
            ..options
        }
    }

    fn timed(&self, file: Arc<dyn RandomAccessFile>) -> Arc<dyn RandomAccessFile> {
        Arc::new(TimedReader {
            file,
            watch: self.watch.clone(),
        })
    }

    fn paced(&self, file: Box<dyn WritableFile>) -> Box<dyn WritableFile> {
        Box::new(PacedFile {
            file,
            limiter: Arc::clone(&self.limiter),
            priority: self.priority,
            unasked: 0,
            watch: self.watch.clone(),
        })
    }
}

impl FileSystem for PacedFileSystem {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        Ok(self.paced(self.below.create(path, self.options(options))?))
    }

    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        Ok(self.paced(self.below.reuse(old, new, self.options(options))?))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        Ok(self.timed(self.below.open(path)?))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        Ok(self.timed(self.below.open_direct(path)?))
    }

    crate::forward_files!(below);
}

#[derive(Debug)]
struct PacedFile {
    file: Box<dyn WritableFile>,
    limiter: Arc<RateLimiter>,
    priority: IoPriority,
    /// Appended, and the limiter not asked yet.
    unasked: u64,
    watch: Stopwatch,
}

impl WritableFile for PacedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.unasked += bytes.len() as u64;
        if self.unasked >= PIECE_BYTES {
            self.limiter.request(self.unasked, self.priority);
            self.unasked = 0;
        }
        debug_assert!(
            self.unasked < PIECE_BYTES,
            "the limiter hears of every piece"
        );
        let file = &mut self.file;
        self.watch
            .time(|times| &times.writes, || file.append(bytes))
    }

    fn sync(&mut self) -> Result<()> {
        // The remaining bytes are counted, so that many small files are not free.
        self.limiter.request(self.unasked, self.priority);
        self.unasked = 0;
        let file = &mut self.file;
        self.watch.time(|times| &times.syncs, || file.sync())
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

#[derive(Debug)]
struct TimedReader {
    file: Arc<dyn RandomAccessFile>,
    watch: Stopwatch,
}

impl RandomAccessFile for TimedReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let read = || self.file.read_at(offset, buffer);
        self.watch.time(|times| &times.reads, read)
    }

    fn is_in_page_cache(&self, offset: u64, len: u64) -> bool {
        self.file.is_in_page_cache(offset, len)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn will_need(&self, offset: u64, len: u64) {
        self.file.will_need(offset, len);
    }

    fn resident(&self) -> Result<ResidentBytes> {
        self.watch
            .time(|times| &times.reads, || self.file.resident())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        Fault, FaultFileSystem, FaultRule, FileKind, ManualClock, OpKind, RateLimit,
        StrictMemFileSystem,
    };

    #[test]
    fn files_are_written_at_the_limit_and_hold_what_was_written() {
        let clock = ManualClock::new(0);
        let limiter = RateLimiter::new(Arc::new(clock.clone()), RateLimit::Fixed(1 << 20));
        let disk = Arc::new(StrictMemFileSystem::new());
        let times = Arc::new(IoTimes::default());
        let paced = PacedFileSystem::new(
            disk,
            (Arc::new(limiter), IoPriority::Compaction),
            (Arc::new(clock.clone()), Arc::clone(&times)),
        );
        let path = Path::new("/1.sst");
        for _ in 0..2 {
            let mut file = paced
                .create(path, CreateOptions::new(FileKind::Other))
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
        assert_eq!((times.writes.calls(), times.syncs.calls()), (32, 2));
        assert_eq!(times.total(), Duration::ZERO); // All of it was the limiter's.
        let read = paced.read_file(path, 2_000_000).unwrap();
        assert!(
            read.chunks(100_000)
                .zip(0..)
                .all(|(part, byte)| part == [byte; 100_000])
        );
    }

    #[test]
    fn waits_for_the_disk_are_counted_by_kind() {
        let clock = ManualClock::new(0);
        let limiter = RateLimiter::new(Arc::new(clock.clone()), RateLimit::Unlimited);
        let disk = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        disk.set_clock(Arc::new(clock.clone()));
        let millis = Duration::from_millis;
        for (op, delay) in [(OpKind::Append, 2), (OpKind::Sync, 30), (OpKind::Read, 7)] {
            disk.add_rule(FaultRule::always(Fault::slow(millis(delay))).on(op));
        }
        let times = Arc::new(IoTimes::default());
        let paced = PacedFileSystem::new(
            Arc::new(disk),
            (Arc::new(limiter), IoPriority::Flush),
            (Arc::new(clock), Arc::clone(&times)),
        );
        let path = Path::new("/1.sst");
        let options = CreateOptions::new(FileKind::Table);
        let mut file = paced.create(path, options).unwrap();
        file.append(b"ab").unwrap();
        file.append(b"cd").unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        assert_eq!(paced.read_file(path, 10).unwrap(), b"abcd");
        assert_eq!(times.writes.mean(), Some(millis(2)));
        assert_eq!(times.syncs.longest(), millis(30));
        assert_eq!(times.reads.total(), millis(7));
        assert_eq!(times.total(), millis(41));
    }
}
