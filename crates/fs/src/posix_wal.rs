//! A write-ahead log file written through memory.
//!
//! An append is a copy into a shared mapping of the page cache: no system call, and the bytes outlive the
//! process as those of a write call do. One window of the file is mapped at a time:
//!
//! ```text
//! append   copy into the window · full: reserve blocks if needed, map the next window, go on
//! prepare  (another thread) unmap the full window; zero, map and populate the next one ahead of the append
//! close    cut the file at its length
//! ```
//!
//! Large appends go by write calls: after a window's length of appends of [`CALL_BYTES_MIN`] on average the next
//! window's length is written so, and so on. A call costs little beside such a copy, and saves the zeroing, the faults and the unmapping,
//! which for such bytes want half a core (`docs/measurements/writes.md`).
//!
//! Invariants:
//! - A byte is stored only in a block that `fallocate` has reserved, so a full disk is an error of
//!   the reservation and never a signal at the store.
//! - `window.start` is a multiple of the window size; `len` is in the window or at its end.
//! - The file is as long as the windows that were mapped, and no longer, though more is reserved: who adds up lengths, or copies
//!   the directory, meets little that is not there. A window is inside the file before it is mapped. The bytes past `len` are
//!   zeros, or in a reused file its old bytes. `close` cuts them off; after a crash the log's reader must find the end.
//!
//! Another thread may prepare the next window before it is needed ([`FileSyncer::prepare`]): a page fault in a
//! log waits for the file system's work, such as a journal's commit or the throttling of writers that dirty
//! pages, so the appending thread should take none. If nobody prepares it, the appending thread maps the
//! window itself. Windows that are full, or of a log that was closed, are unmapped by that other thread, too, or with the last syncer: an
//! appending thread that maps or unmaps would wait for the lock of the address space, which populating holds. Where write calls are used, it only reserves blocks.
//!
//! Where the file system does not keep reserved blocks in place, or offers no `fallocate` or no mapping, write
//! calls do the same.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use drumlin_base::Result;
use memmap2::MmapMut;
use parking_lot::Mutex;

use crate::file_system::{FileSyncer, WritableFile};
use crate::shared_file::{SharedFile, is_unsupported};
use crate::syscalls;

/// Bytes mapped at a time: large enough that mapping is rare, small enough that the pages of a
/// log do not weigh in the process's resident memory. A multiple of every page size in use.
const WINDOW_BYTES: u64 = 4 << 20;
/// The same of a log that will be small: zeros behind its end are cleared by who writes it, and read by who opens the database.
const WINDOW_BYTES_MIN: u64 = 128 << 10;
/// Appends of so many bytes on average go by write calls.
const CALL_BYTES_MIN: u64 = 8 << 10;
/// The least that is reserved when the disk is nearly full.
const RESERVE_BYTES_MIN: u64 = 64 << 10;

const _: () = assert!(WINDOW_BYTES_MIN.is_multiple_of(RESERVE_BYTES_MIN));
const _: () = assert!(WINDOW_BYTES.is_multiple_of(WINDOW_BYTES_MIN));

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

/// The space behind the appended bytes: the reserved part, and the next window, if another thread
/// prepared it. Locked only at the end of a window, and to prepare the next one.
#[derive(Debug)]
struct SpacePlan {
    /// Every block below this is reserved.
    reserved: u64,
    /// Whether windows are used; else write calls.
    mapped: bool,
    /// Where the next window begins.
    next_start: u64,
    next: Next,
    /// Whether write calls are used up to `next_start`.
    by_calls: bool,
    /// Windows that nothing will be stored in any more, to be unmapped.
    full: Vec<Window>,
}

impl SpacePlan {
    /// The window got ready will not be used.
    fn drop_next(&mut self) {
        if let Next::Ready(window) = std::mem::replace(&mut self.next, Next::Missing) {
            self.full.push(window);
        }
    }
}

#[derive(Debug)]
enum Next {
    Missing,
    Underway,
    Ready(Window),
}

/// The state that the log's owner and its syncers share.
#[derive(Debug)]
struct Space {
    shared: Arc<SharedFile>,
    /// How much is mapped at a time.
    window_bytes: u64,
    /// How much to reserve at a time; a multiple of the window size.
    step_bytes: u64,
    plan: Mutex<SpacePlan>,
}

impl Space {
    /// Reserves `step_bytes` more, or as much of it as the disk has, at least something. Clears
    /// `mapped` when the file system cannot reserve.
    fn reserve(&self, plan: &mut SpacePlan) -> io::Result<()> {
        let mut bytes = self.step_bytes;
        loop {
            match syscalls::fallocate(self.shared.file(), plan.reserved, bytes, false) {
                Ok(()) => {
                    plan.reserved += bytes;
                    return Ok(());
                }
                Err(error) if is_unsupported(&error) => {
                    plan.mapped = false;
                    return Ok(());
                }
                // Nothing was written yet, so asking for less is not a retry of a lost write.
                Err(error) if is_full(&error) && bytes > RESERVE_BYTES_MIN => {
                    bytes = (bytes / 2).next_multiple_of(RESERVE_BYTES_MIN);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The length of the window that begins at `start`, inside the `reserved` space.
    fn window_len(&self, start: u64, reserved: u64) -> usize {
        self.window_bytes.min(reserved - start) as usize
    }

    /// Maps the window that begins at `start`, inside the `reserved` space.
    ///
    /// Requires: the file reaches to its end.
    fn map(&self, start: u64, reserved: u64) -> io::Result<Window> {
        assert!(
            start.is_multiple_of(self.window_bytes),
            "windows begin at multiples of their size"
        );
        assert!(
            start < reserved,
            "a byte is stored only where a block is reserved"
        );
        let len = self.window_len(start, reserved);
        let memory = syscalls::map_shared(self.shared.file(), start, len)?;
        assert!(
            memory.len() == len,
            "the window is as long as was asked for"
        );
        Ok(Window { start, memory })
    }

    /// The window that holds `len` behind the `full` one, the one got ready or one made now; `None` from when on write
    /// calls are used.
    fn window_at(&self, len: u64, full: Option<Window>) -> Result<Option<Window>> {
        let start = len - len % self.window_bytes;
        let mut plan = self.plan.lock();
        plan.full.extend(full);
        plan.next_start = start + self.window_bytes;
        plan.by_calls = false;
        if let Next::Ready(window) = std::mem::replace(&mut plan.next, Next::Missing)
            && window.start == start
            && window.end() > len
        {
            return Ok(Some(window));
        }
        // More than once where write calls were faster than the other thread.
        while plan.mapped && len >= plan.reserved {
            let reserved = self.reserve(&mut plan);
            reserved.map_err(|error| self.shared.fail("reserve space", error))?;
            if drumlin_base::bug!("wal-space-reserved-once") {
                break;
            }
        }
        if plan.mapped {
            // Address space or mappings are used up, or none are offered: write calls will do.
            // Of reserved blocks this changes the file's length alone, and a longer file not at all.
            let len = self.window_len(start, plan.reserved) as u64;
            let inside = syscalls::fallocate(self.shared.file(), start, len, true);
            let mut window = inside.and_then(|()| self.map(start, plan.reserved));
            if window.is_err() && !plan.full.is_empty() {
                plan.full.clear();
                window = self.map(start, plan.reserved);
            }
            match window {
                Ok(window) => return Ok(Some(window)),
                Err(_) => plan.mapped = false,
            }
        }
        Ok(None)
    }

    /// Write calls are used up to `end`, behind the `full` window, if there was one.
    fn use_calls_until(&self, end: u64, full: Option<Window>) {
        let mut plan = self.plan.lock();
        if !drumlin_base::bug!("wal-zeroed-over-calls") {
            plan.by_calls = true;
            plan.next_start = end; // From now on no window below is zeroed.
        }
        plan.drop_next();
        plan.full.extend(full);
    }

    /// The next window's start and the reserved space, unless that window is ready, under way or not to come yet.
    fn begin_next(&self) -> Option<(u64, u64)> {
        let mut plan = self.plan.lock();
        if !plan.mapped || !matches!(plan.next, Next::Missing) {
            return None;
        }
        let start = plan.next_start;
        if start >= plan.reserved {
            // The append meets the full disk, and reports it.
            self.reserve(&mut plan).ok()?;
        }
        if !plan.mapped || plan.by_calls || start >= plan.reserved {
            return None;
        }
        plan.next = Next::Underway;
        Some((start, plan.reserved))
    }

    fn next_is_ready(&self, start: u64, window: Option<Window>) {
        let mut plan = self.plan.lock();
        // Else the owner was faster, and has mapped the window itself.
        if plan.next_start == start {
            plan.next = window.map_or(Next::Missing, Next::Ready);
        }
    }

    /// Writes zeros over the next window, a page at a time: a page written whole is not read first,
    /// and stays a page of its own in the kernel. Of larger pieces, every sync would write all.
    /// Fails when the owner comes to the window itself, and writes nothing from then on.
    fn zero(&self, start: u64, end: u64) -> io::Result<()> {
        let page = [0; 4096];
        let mut at = start;
        while at < end {
            let len = (page.len() as u64).min(end - at) as usize;
            let (zeros, _) = page.split_at(len);
            // Held for the write: the owner takes the window under it, and its bytes come after.
            let plan = self.plan.lock();
            if plan.next_start != start {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.shared.file().write_all_at(zeros, at)?;
            at += len as u64;
        }
        Ok(())
    }

    /// Gets the next window ready, as far as that works: no store there faults.
    fn prepare(&self) {
        let full = std::mem::take(&mut self.plan.lock().full);
        drop(full); // Not under the lock.
        let Some((start, reserved)) = self.begin_next() else {
            return;
        };
        let end = start + self.window_len(start, reserved) as u64;
        // After this the file reaches to its end.
        let zeroed = self.zero(start, end);
        let window = zeroed.and_then(|()| self.map(start, reserved)).ok();
        if let Some(window) = &window {
            syscalls::populate(&window.memory);
        }
        self.next_is_ready(start, window);
    }

    /// The file is about to be cut or given up: nothing is stored in `window` or beyond its end any more.
    fn give_up(&self, window: Option<Window>) {
        let mut plan = self.plan.lock();
        plan.mapped = false;
        plan.next_start = u64::MAX;
        plan.drop_next();
        if !drumlin_base::bug!("closed-wal-unmapped-by-its-writer") {
            plan.full.extend(window);
        }
    }
}

impl FileSyncer for Space {
    /// The kernel writes back pages dirtied through a mapping like any others.
    fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    fn prepare(&self) {
        Self::prepare(self);
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PosixWal {
    space: Arc<Space>,
    window: Option<Window>,
    len: u64,
    /// Whether windows are used; else write calls.
    mapped: bool,
    /// Write calls are used up to here, though windows could be.
    calls_end: u64,
    /// Where the stretch of the file began whose appends decide how the next one is written, and how many there were.
    stretch_start: u64,
    stretch_appends: u64,
}

impl PosixWal {
    /// A log written from the front of `shared`, reserving `preallocate_bytes` at once.
    pub(crate) fn new(shared: Arc<SharedFile>, preallocate_bytes: u64) -> Result<Self> {
        let plan = SpacePlan {
            reserved: 0,
            mapped: syscalls::reserved_blocks_are_kept(shared.file()),
            next_start: 0,
            next: Next::Missing,
            by_calls: false,
            full: Vec::new(),
        };
        let window_bytes = window_bytes_for(preallocate_bytes);
        let step_bytes = preallocate_bytes
            .max(1)
            .checked_next_multiple_of(window_bytes)
            .unwrap_or(window_bytes);
        let space = Space {
            shared,
            window_bytes,
            step_bytes,
            plan: Mutex::new(plan),
        };
        let mut plan = space.plan.lock();
        if preallocate_bytes > 0 && plan.mapped {
            let reserved = space.reserve(&mut plan);
            reserved.map_err(|error| space.shared.fail("reserve space", error))?;
        }
        let mapped = plan.mapped;
        drop(plan);
        Ok(Self {
            space: Arc::new(space),
            window: None,
            len: 0,
            mapped,
            calls_end: 0,
            stretch_start: 0,
            stretch_appends: 0,
        })
    }

    /// At the end of a stretch: whether the next one is written by calls.
    fn choose_calls(&mut self) -> bool {
        let bytes = self.len - self.stretch_start;
        let chosen = bytes >= self.stretch_appends * CALL_BYTES_MIN && bytes > 0;
        (self.stretch_start, self.stretch_appends) = (self.len, 0);
        if chosen {
            let window_bytes = self.space.window_bytes;
            self.calls_end = self.len - self.len % window_bytes + window_bytes;
            self.space
                .use_calls_until(self.calls_end, self.window.take());
        }
        chosen
    }

    /// Maps the window that holds `len`. Clears `mapped` when that cannot be.
    #[cold]
    fn advance(&mut self) -> Result<()> {
        let full = self.window.take();
        self.window = self.space.window_at(self.len, full)?;
        self.mapped = self.window.is_some();
        if let Some(window) = &self.window {
            assert!(
                window.start <= self.len,
                "the window holds the end of the log"
            );
            assert!(self.len < window.end(), "the window has room");
        }
        Ok(())
    }

    /// Copies the bytes that fit into the window, and returns their number.
    #[inline]
    fn copy(&mut self, bytes: &[u8]) -> usize {
        let Some(window) = &mut self.window else {
            return 0;
        };
        let mut at = (self.len - window.start) as usize;
        if drumlin_base::bug!("later-wal-windows-shifted") && window.start > 0 {
            at = at.saturating_sub(8);
        }
        let n = bytes.len().min((window.end() - self.len) as usize);
        let (now, _) = bytes.split_at(n);
        let room = window.memory.get_mut(at..at + n);
        room.expect("the end of the log is in its window")
            .copy_from_slice(now);
        self.len += n as u64;
        debug_assert!(self.len <= window.end());
        n
    }

    #[cold]
    fn append_slowly(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() && self.mapped {
            if self.len < self.calls_end || self.choose_calls() {
                break;
            }
            self.advance()?;
            let n = self.copy(bytes);
            assert!(
                n > 0 || !self.mapped,
                "a window that was just mapped has room"
            );
            bytes = bytes.split_at(n).1;
        }
        if !bytes.is_empty() {
            self.space.shared.write_at(bytes, self.len)?;
            self.len += bytes.len() as u64;
        }
        Ok(())
    }
}

impl WritableFile for PosixWal {
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.space.shared.check()?;
        self.stretch_appends += 1;
        let n = self.copy(bytes);
        if n == bytes.len() {
            return Ok(());
        }
        self.append_slowly(bytes.split_at(n).1)
    }

    fn sync(&mut self) -> Result<()> {
        self.space.shared.check()?;
        self.space.shared.sync()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        assert!(
            self.window
                .as_ref()
                .is_none_or(|window| self.len <= window.end()),
            "the log ends in its window"
        );
        // Before the cut: no store may ever reach a page past the file's end.
        self.space.give_up(self.window.take());
        self.space.shared.cut(self.len)?;
        let space = Arc::clone(&self.space);
        drop(self);
        match Arc::into_inner(space) {
            Some(space) => space.shared.close(),
            None => Ok(()), // The last syncer closes it.
        }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::clone(&self.space) as Arc<dyn FileSyncer>
    }
}

impl Drop for PosixWal {
    fn drop(&mut self) {
        self.space.give_up(self.window.take());
    }
}

/// The size of the windows of a log that is expected to have `preallocate_bytes`, or any length where that is 0. Most logs that
/// go beyond it, as those of several families do, end in their first window.
fn window_bytes_for(preallocate_bytes: u64) -> u64 {
    match preallocate_bytes {
        0 | WINDOW_BYTES.. => WINDOW_BYTES,
        bytes => (2 * bytes)
            .next_power_of_two()
            .clamp(WINDOW_BYTES_MIN, WINDOW_BYTES),
    }
}

fn is_full(error: &io::Error) -> bool {
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
        let reserved = |wal: &PosixWal| wal.space.plan.lock().reserved;
        assert_eq!(reserved(&wal), 2 * WINDOW_BYTES);
        append_small(&mut wal, WINDOW_BYTES);
        assert_eq!(wal.window.as_ref().map(Window::end), Some(WINDOW_BYTES));
        wal.append(b"x").unwrap();
        assert_eq!(
            wal.window.as_ref().map(|window| window.start),
            Some(WINDOW_BYTES)
        );
        append_small(&mut wal, WINDOW_BYTES);
        assert_eq!(reserved(&wal), 4 * WINDOW_BYTES);
        assert_eq!(wal.len(), 2 * WINDOW_BYTES + 1);
    }

    #[test]
    fn a_small_log_has_little_behind_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.log");
        let mut wal = Box::new(log(&path, 64 << 10));
        let mut expected = Vec::new();
        for piece in 0..9 {
            wal.syncer().prepare();
            expected.extend_from_slice(&[piece; 50_000]);
            for small in [piece; 50_000].chunks(1000) {
                wal.append(small).unwrap();
            }
            let ahead = std::fs::metadata(&path).unwrap().len() - wal.len();
            assert!(ahead <= 2 * WINDOW_BYTES_MIN, "{ahead}");
        }
        wal.close().unwrap();
        assert!(std::fs::read(&path).unwrap() == expected);
    }

    #[test]
    fn windows_are_as_large_as_a_log_needs() {
        let sizes = [0, 1, 100_000, 1 << 20, 3 << 20, u64::MAX].map(window_bytes_for);
        let (least, most) = (WINDOW_BYTES_MIN, WINDOW_BYTES);
        assert_eq!(sizes, [most, least, 256 << 10, 2 << 20, most, most]);
    }

    /// What is reserved is no part of the file's length, until it is mapped; a reused file keeps its length.
    #[test]
    fn the_file_is_as_long_as_its_windows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.log");
        let len = || std::fs::metadata(&path).unwrap().len();
        let mut wal = Box::new(log(&path, 16 * WINDOW_BYTES));
        assert_eq!(len(), 0);
        wal.append(b"x").unwrap();
        assert_eq!(len(), WINDOW_BYTES);
        append_small(&mut wal, WINDOW_BYTES);
        assert_eq!(len(), 2 * WINDOW_BYTES);
        wal.syncer().prepare();
        assert_eq!(len(), 3 * WINDOW_BYTES);
        let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap());
        let mapped = wal.space.plan.lock().mapped;
        assert!(
            !mapped || blocks * 512 >= 16 * WINDOW_BYTES,
            "{blocks} blocks"
        );
        let syncer = wal.syncer();
        wal.close().unwrap();
        syncer.prepare();
        assert_eq!(len(), WINDOW_BYTES + 1);
        // Longer than what is mapped of it.
        let file = File::options().read(true).write(true).open(&path).unwrap();
        file.set_len(3 * WINDOW_BYTES).unwrap();
        let mut again = PosixWal::new(SharedFile::new(file, &path), WINDOW_BYTES).unwrap();
        again.append(b"y").unwrap();
        assert_eq!(len(), 3 * WINDOW_BYTES);
    }

    /// Appends so many bytes in pieces of less than `CALL_BYTES_MIN`.
    fn append_small(wal: &mut PosixWal, bytes: u64) {
        for piece in vec![1; bytes as usize].chunks(CALL_BYTES_MIN as usize / 2) {
            wal.append(piece).unwrap();
        }
    }

    fn log(path: &std::path::Path, preallocate_bytes: u64) -> PosixWal {
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(path);
        PosixWal::new(SharedFile::new(file.unwrap(), path), preallocate_bytes).unwrap()
    }

    /// The file holds the appended bytes, no matter which thread prepares which window.
    #[test]
    fn windows_got_ready_ahead_change_nothing_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        for prepares in [false, true] {
            let path = dir.path().join(format!("{prepares}.log"));
            let mut wal = Box::new(log(&path, WINDOW_BYTES));
            let syncer = wal.syncer();
            let mut expected = Vec::new();
            for piece in 0..7u8 {
                if prepares {
                    syncer.prepare();
                    syncer.prepare(); // Once more changes nothing.
                }
                let bytes = vec![piece + 1; (WINDOW_BYTES / 2) as usize + 13];
                for small in bytes.chunks(1000) {
                    wal.append(small).unwrap();
                }
                expected.extend(bytes);
            }
            syncer.sync().unwrap();
            wal.close().unwrap();
            syncer.prepare();
            assert!(std::fs::read(&path).unwrap() == expected);
        }
    }

    #[test]
    fn a_window_got_ready_is_the_one_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.log");
        let mut wal = log(&path, 2 * WINDOW_BYTES);
        wal.syncer().prepare();
        let ready = match &wal.space.plan.lock().next {
            Next::Ready(window) => window.memory.as_ptr(),
            other => panic!("{other:?}"),
        };
        wal.append(b"x").unwrap();
        assert_eq!(wal.window.as_ref().map(|w| w.memory.as_ptr()), Some(ready));
        wal.syncer().prepare();
        assert!(matches!(&wal.space.plan.lock().next, Next::Ready(w) if w.start == WINDOW_BYTES));
    }

    /// The writer leaves windows to the thread that prepares, those of a closed log too.
    #[test]
    fn windows_are_unmapped_by_who_prepares() {
        let dir = tempfile::tempdir().unwrap();
        for closes in [false, true] {
            let path = dir.path().join(format!("{closes}.log"));
            let mut wal = Box::new(log(&path, WINDOW_BYTES));
            let space = Arc::clone(&wal.space);
            let of_windows = || {
                let mut full: Vec<u64> = space.plan.lock().full.iter().map(|w| w.start).collect();
                full.sort_unstable();
                full
            };
            append_small(&mut wal, 3 * WINDOW_BYTES);
            assert_eq!(of_windows(), [0, WINDOW_BYTES]);
            space.prepare();
            assert!(of_windows().is_empty());
            match closes {
                true => wal.close().unwrap(),
                false => drop(wal),
            }
            let left = [2 * WINDOW_BYTES, 3 * WINDOW_BYTES];
            assert_eq!(of_windows(), left, "the open one, and the one got ready");
            space.prepare();
            assert!(of_windows().is_empty());
        }
    }

    /// Large appends go by write calls from the second window on, far past what is reserved, and small ones by windows again.
    #[test]
    fn large_appends_are_write_calls() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.log");
        let mut wal = Box::new(log(&path, WINDOW_BYTES));
        let (syncer, large) = (wal.syncer(), vec![2; WINDOW_BYTES as usize / 4]);
        syncer.prepare();
        for appended in 1..=40 {
            wal.append(&large).unwrap();
            assert_eq!(wal.window.is_some(), appended <= 4, "{appended}");
        }
        syncer.prepare();
        assert!(matches!(wal.space.plan.lock().next, Next::Missing));
        append_small(&mut wal, WINDOW_BYTES);
        assert_eq!(wal.calls_end, 11 * WINDOW_BYTES);
        append_small(&mut wal, WINDOW_BYTES);
        assert_eq!(
            wal.window.as_ref().map(Window::end),
            Some(12 * WINDOW_BYTES)
        );
        syncer.prepare();
        assert!(
            matches!(&wal.space.plan.lock().next, Next::Ready(w) if w.start == 12 * WINDOW_BYTES)
        );
        wal.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let (twos, ones) = bytes.split_at(40 * large.len());
        assert!(twos.iter().all(|byte| *byte == 2) && ones.iter().all(|byte| *byte == 1));
        assert_eq!(ones.len() as u64, 2 * WINDOW_BYTES);
    }

    /// A thread that prepares beside the one that appends never gets in its way, whether windows or calls are used.
    #[test]
    fn preparing_and_appending_side_by_side_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // Of so many pieces a window or some are written in small appends, then as many in large ones.
        for (preallocate_bytes, turn) in [(WINDOW_BYTES_MIN / 2, 1), (WINDOW_BYTES, 10)] {
            let path = dir.path().join(format!("{turn}.log"));
            let mut wal = Box::new(log(&path, preallocate_bytes));
            let syncer = wal.syncer();
            let stop = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        syncer.prepare();
                    }
                });
                for piece in 0..200u8 {
                    let step = if piece / turn % 2 == 0 {
                        5_003
                    } else {
                        100_001
                    };
                    for bytes in [piece; 400_003].chunks(step) {
                        wal.append(bytes).unwrap();
                    }
                }
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            wal.close().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes.len(), 200 * 400_003);
            let whole = |(index, piece): (usize, &[u8])| piece.iter().all(|b| *b == index as u8);
            assert!(bytes.chunks(400_003).enumerate().all(whole));
        }
    }
}
