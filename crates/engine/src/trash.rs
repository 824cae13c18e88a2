//! Files nobody needs any more, on their way off the disk.
//!
//! Freeing the blocks of a large file takes a file system long: up to a tenth of a second for a
//! table of 64 MiB, in which its journal may hold up everybody who writes. So who finds that a file
//! is obsolete only puts it here, and one thread removes it, a very large one in steps from its end
//! and with pauses between. With more than [`PAUSES_MAX_BYTES`] waiting there are no pauses, and where
//! that does not help writers are slowed, so that the disk never fills with it. Steps are large,
//! because each costs as much as freeing some megabytes: where the file system tells the disk what it
//! freed (`discard`), 256 MiB went in 0.25 to 0.32 s whole and in 0.38 to 0.56 s by steps of 8 MiB.
//!
//! Invariants:
//! - A file that is removed in steps has the name `NNNNNN.sst.trash` before the first: after a crash
//!   the name tells, and opening (RocksDB's too) removes it.
//! - A file with a second name, one in a checkpoint, is never cut: only its name here goes. Nor is a
//!   table that is read where it lies, mapped: a value of it may be held for long.
//! - What cannot be removed is reported and left to the next open.
//!
//! Any thread may put; one thread at a time removes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::sync::{Condvar, Mutex};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::FileSystem;
use drumlin_table::TableFormat;

use crate::names;

/// Freed at a time. Larger files go in several steps.
const STEP_BYTES: u64 = 96 << 20;
/// The pace while little waits, in bytes a second.
const PACE: u64 = 512 << 20;
/// With more than this waiting there is no time for pauses: with them, overwrites that keep the disk
/// busy went at half the speed.
const PAUSES_MAX_BYTES: u64 = 1 << 30;

/// See the module.
#[derive(Debug)]
pub(crate) struct Trash {
    files: Arc<dyn FileSystem>,
    queue: Mutex<Queue>,
    /// Notified when a file comes, or when there is no more time for pauses.
    wake: Condvar,
    /// Bytes of the files that were looked at and are not removed yet.
    bytes: AtomicU64,
    /// Bytes that were removed.
    freed: AtomicU64,
    step_bytes: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// Not looked at yet.
    arrived: Vec<PathBuf>,
    waiting: VecDeque<Waste>,
    /// Whether the oldest of `waiting` is being removed outside the lock.
    removing: bool,
    /// Whether pauses are over: nothing else will be done with the disk.
    ending: bool,
    /// Whether the space is needed now.
    hurried: bool,
}

impl Queue {
    fn may_pause(&self) -> bool {
        !self.ending && !self.hurried
    }
}

/// A file to be removed.
#[derive(Debug)]
struct Waste {
    path: PathBuf,
    bytes: u64,
    /// Whether the file may be cut: it has this one name, and nobody can be reading it.
    may_cut: bool,
    /// Why it could not be looked at.
    trouble: Option<Error>,
}

impl Trash {
    /// Nothing yet.
    pub(crate) fn new(files: Arc<dyn FileSystem>) -> Self {
        Self {
            files,
            queue: Mutex::default(),
            wake: Condvar::default(),
            bytes: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            step_bytes: STEP_BYTES,
        }
    }

    /// Leaves `path` to be removed. Touches no file.
    ///
    /// Requires: nobody will give the file a further name or write to it. A table may lie under
    /// its other name, see [`names::leveldb_table`].
    pub(crate) fn put(&self, path: PathBuf) {
        self.queue.lock().arrived.push(path);
        self.wake.notify_all();
    }

    /// Bytes on the disk that will be free once everything here is removed. Follows what was put
    /// with a short delay.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes removed since this was made.
    pub(crate) fn freed(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    /// Whether everything put here is gone.
    pub(crate) fn is_empty(&self) -> bool {
        let queue = self.queue.lock();
        queue.arrived.is_empty() && queue.waiting.is_empty() && !queue.removing
    }

    /// Removes at a pace until [`Trash::end`], then what is left at once. Tells `done` of every
    /// file that is gone, or why it is not.
    pub(crate) fn work(&self, done: impl Fn(Result<()>)) {
        while let Some(paced) = self.wait_for_work() {
            let before = self.freed();
            if let Some(outcome) = self.step(paced) {
                done(outcome);
            }
            let queue = self.queue.lock();
            if paced && queue.may_pause() && !queue.waiting.is_empty() {
                let freed = self.freed() - before;
                drop(self.wake.wait_for(queue, pause(freed, self.bytes())));
            }
        }
    }

    /// Waits until there is something to do; whether there is time for pauses. `None` at the end.
    fn wait_for_work(&self) -> Option<bool> {
        let mut queue = self.queue.lock();
        while queue.arrived.is_empty() && queue.waiting.is_empty() {
            if queue.ending {
                return None;
            }
            queue.hurried = false;
            queue = self.wake.wait(queue);
        }
        Some(queue.may_pause())
    }

    /// Has everything that is here now removed without pauses: the disk is nearly full.
    pub(crate) fn hurry(&self) {
        self.queue.lock().hurried = true;
        self.wake.notify_all();
    }

    /// Has [`Trash::work`] come to its end.
    pub(crate) fn end(&self) {
        self.queue.lock().ending = true;
        self.wake.notify_all();
    }

    /// Removes everything now, on this thread.
    ///
    /// # Errors
    /// The first failure; the others are tried all the same.
    pub(crate) fn empty(&self) -> Result<()> {
        let mut outcome = Ok(());
        while !self.is_empty() {
            if let Some(removed) = self.step(false) {
                outcome = outcome.and(removed);
            }
        }
        outcome
    }

    /// Does the next step; what became of a file whose last it was.
    fn step(&self, paced: bool) -> Option<Result<()>> {
        self.look_at_arrived();
        let mut waste = {
            let mut queue = self.queue.lock();
            let next = queue.waiting.pop_front()?;
            queue.removing = true;
            next
        };
        let before = waste.bytes;
        let outcome = if paced && waste.may_cut && waste.bytes > self.step_bytes {
            self.cut(&mut waste).map(|()| false)
        } else {
            self.files.remove(&waste.path).map(|()| true)
        };
        let outcome = match outcome {
            Ok(false) => None,
            Ok(true) => Some(waste.trouble.take().map_or(Ok(()), Err)),
            Err(error) if error.is_not_found() => Some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        let left = if outcome.is_none() { waste.bytes } else { 0 };
        self.bytes.fetch_sub(before - left, Ordering::Relaxed);
        self.freed.fetch_add(before - left, Ordering::Relaxed);
        let mut queue = self.queue.lock();
        queue.removing = false;
        if outcome.is_none() {
            queue.waiting.push_front(waste);
        }
        outcome
    }

    /// Takes the last step off the file.
    fn cut(&self, waste: &mut Waste) -> Result<()> {
        if !names::is_trash(&waste.path) {
            let marked = names::trash(&waste.path);
            self.files.rename(&waste.path, &marked)?;
            waste.path = marked;
        }
        let left = (waste.bytes - 1) / self.step_bytes * self.step_bytes;
        self.files.truncate(&waste.path, left)?;
        waste.bytes = left;
        Ok(())
    }

    /// Finds out how large the files are that were put here since the last time.
    pub(crate) fn look_at_arrived(&self) {
        let arrived = {
            let mut queue = self.queue.lock();
            queue.removing |= !queue.arrived.is_empty();
            std::mem::take(&mut queue.arrived)
        };
        if arrived.is_empty() {
            return;
        }
        let found: Vec<_> = arrived.into_iter().map(|path| self.look_at(path)).collect();
        let bytes = found.iter().map(|waste| waste.bytes).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut queue = self.queue.lock();
        queue.waiting.extend(found);
        queue.removing = false;
    }

    fn look_at(&self, path: PathBuf) -> Waste {
        let mut path = path;
        let mut facts = self.files.info(&path);
        if facts.as_ref().is_err_and(Error::is_not_found)
            && let Some(other) = other_name(&path)
            && let Ok(found) = self.files.info(&other)
        {
            (path, facts) = (other, Ok(found));
        }
        let (bytes, links, trouble) = match facts {
            Ok(facts) => (facts.size, facts.links, None),
            Err(error) if error.is_not_found() => (0, 0, None),
            // What cannot be looked at is removed without being cut.
            Err(error) => (0, 0, Some(error)),
        };
        Waste {
            may_cut: links == 1 && (bytes <= self.step_bytes || !self.is_read_in_place(&path)),
            path,
            bytes,
            trouble,
        }
    }

    /// Whether values of the table may still be held where they lie in it, mapped into memory:
    /// reading what was cut off would end the process. Yes for what cannot be looked at.
    fn is_read_in_place(&self, path: &Path) -> bool {
        if path.extension() != Some(names::TABLE_EXTENSION.as_ref()) {
            return false;
        }
        match self
            .files
            .open(path)
            .and_then(|file| TableFormat::of(&*file))
        {
            Ok(format) => format.is_read_in_place(),
            Err(error) => !matches!(
                error.kind(),
                ErrorKind::Corruption | ErrorKind::NotSupported
            ),
        }
    }
}

/// The name LevelDB may have given the table `path`.
fn other_name(path: &Path) -> Option<PathBuf> {
    let is_table = path
        .extension()
        .is_some_and(|extension| extension == names::TABLE_EXTENSION);
    is_table.then(|| path.with_extension(names::LEVELDB_TABLE_EXTENSION))
}

/// How long to let the disk work for others once `freed` bytes went and `waiting` are left.
fn pause(freed: u64, waiting: u64) -> Duration {
    if waiting > PAUSES_MAX_BYTES {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(freed as f64 / PACE as f64)
}

#[cfg(test)]
mod tests {
    use drumlin_fs::{
        CrashPolicy, CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, OpKind,
        StrictMemFileSystem,
    };

    use super::*;
    use crate::version::obsolete::{Needed, obsolete_files};

    const DIR: &str = "/db";
    const STEP: u64 = 4 << 20;

    fn trash_over(files: Arc<dyn FileSystem>) -> Trash {
        Trash {
            step_bytes: STEP,
            ..Trash::new(files)
        }
    }

    fn disk() -> StrictMemFileSystem {
        let disk = StrictMemFileSystem::new();
        disk.create_dir_all(Path::new(DIR)).unwrap();
        disk.sync_all();
        disk
    }

    fn write(disk: &dyn FileSystem, name: &str, bytes: u64) -> PathBuf {
        let path = Path::new(DIR).join(name);
        let mut file = disk
            .create(&path, CreateOptions::new(FileKind::Table))
            .unwrap();
        let chunk = vec![7; 1 << 20];
        for at in (0..bytes).step_by(chunk.len()) {
            let len = (bytes - at).min(chunk.len() as u64) as usize;
            file.append(&chunk[..len]).unwrap();
        }
        file.sync().unwrap();
        file.close().unwrap();
        disk.sync_dir(Path::new(DIR)).unwrap();
        path
    }

    fn listing(disk: &dyn FileSystem) -> Vec<PathBuf> {
        disk.list(Path::new(DIR)).unwrap()
    }

    #[test]
    fn a_large_file_goes_in_steps_and_what_is_left_is_known() {
        let disk = disk();
        let path = write(&disk, "000007.sst", 2 * STEP + 100);
        let trash = trash_over(Arc::new(disk.clone()));
        trash.put(path);
        assert!(!trash.is_empty());
        for left in [2 * STEP, STEP] {
            assert!(trash.step(true).is_none());
            assert_eq!((trash.bytes(), disk.used_bytes()), (left, left));
            assert_eq!(listing(&disk), [Path::new("000007.sst.trash")]);
        }
        trash.step(true).unwrap().unwrap();
        assert!(trash.is_empty() && listing(&disk).is_empty());
        assert_eq!(trash.bytes(), 0);
    }

    #[test]
    fn a_file_with_a_second_name_is_not_cut() {
        let disk = disk();
        let path = write(&disk, "000007.sst", 3 * STEP);
        let copy = Path::new("/copy.sst");
        disk.link(&path, copy).unwrap();
        let trash = trash_over(Arc::new(disk.clone()));
        trash.put(path);
        trash.step(true).unwrap().unwrap();
        assert!(listing(&disk).is_empty());
        assert_eq!(disk.info(copy).unwrap().size, 3 * STEP);
    }

    #[test]
    fn a_table_is_found_under_leveldbs_name_and_a_missing_file_is_gone() {
        let disk = disk();
        write(&disk, "000007.ldb", 10);
        let trash = trash_over(Arc::new(disk.clone()));
        trash.put(Path::new(DIR).join("000007.sst"));
        trash.put(Path::new(DIR).join("000008.sst"));
        trash.empty().unwrap();
        assert!(listing(&disk).is_empty());
    }

    #[test]
    fn wherever_a_crash_cuts_a_removal_off_opening_finishes_it() {
        for stop_at in 0..7 {
            for (policy, seed) in CrashPolicy::ALL.into_iter().zip(0..) {
                let memory = disk();
                let kept = write(&memory, "000009.sst", 10);
                let path = write(&memory, "000007.sst", 2 * STEP);
                let files = FaultFileSystem::over_memory(&memory);
                files.add_rule(FaultRule::once(stop_at, Fault::Stop));
                let trash = trash_over(Arc::new(files));
                trash.put(path);
                while !trash.is_empty() {
                    drop(trash.step(true));
                }
                let after = memory.crash(seed, policy);
                let needed = Needed {
                    tables: [9].into(),
                    pending_from: 100,
                    ..Needed::default()
                };
                for name in obsolete_files(&listing(&after), &needed) {
                    after.remove(&Path::new(DIR).join(name)).unwrap();
                }
                assert_eq!(listing(&after), [kept.file_name().unwrap()]);
            }
        }
    }

    #[test]
    fn what_cannot_be_removed_is_reported_and_the_rest_goes() {
        let memory = disk();
        let paths = [1, 2, 3].map(|n| write(&memory, &format!("00000{n}.sst"), 10));
        let files = FaultFileSystem::over_memory(&memory);
        files.add_rule(FaultRule::once(1, Fault::Io).on(OpKind::Remove));
        let trash = trash_over(Arc::new(files));
        for path in paths {
            trash.put(path);
        }
        let error = trash.empty().unwrap_err();
        assert!(error.to_string().contains("000002.sst"), "{error}");
        assert_eq!(listing(&memory), [Path::new("000002.sst")]);
        assert!(trash.is_empty());
        assert_eq!(trash.bytes(), 0);
    }

    #[test]
    fn the_end_is_not_paced() {
        let disk = disk();
        let path = write(&disk, "000007.sst", 3 * STEP);
        let trash = trash_over(Arc::new(disk.clone()));
        trash.put(path);
        trash.end();
        trash.work(|outcome| outcome.unwrap());
        assert!(listing(&disk).is_empty());
    }

    #[test]
    fn there_are_pauses_until_much_is_waiting() {
        let few = Duration::from_millis(125);
        assert_eq!(pause(64 << 20, 0), few);
        assert_eq!(pause(64 << 20, PAUSES_MAX_BYTES), few);
        assert_eq!(pause(64 << 20, PAUSES_MAX_BYTES + 1), Duration::ZERO);
    }
}
