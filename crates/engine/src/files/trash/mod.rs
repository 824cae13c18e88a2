//! Files nobody needs any more, on their way off the disk.
//!
//! Freeing the blocks of a large file takes a file system long: up to a tenth of a second for a
//! table of 64 MiB, in which its journal may hold up everybody who writes. So who finds that a file
//! is obsolete only puts it here. Large tables and blob files are kept for a while, within bounds, for
//! new ones to be written in their place ([`crate::files::reuse`]); under a steady load hardly any is removed.
//! The others one thread removes, a very large one in steps from its end and with pauses between. Where
//! much waits the pauses are shorter, and where that does not help writers are slowed, so that the disk
//! never fills with it. Steps are large, because each costs as much as
//! freeing some megabytes: where the file system tells the disk what it freed (`discard`), 256 MiB
//! went in 0.25 to 0.32 s whole and in 0.38 to 0.56 s by steps of 8 MiB.
//!
//! Invariants:
//! - A file that is removed in steps has the name `NNNNNN.sst.trash` before the first: after a crash
//!   the name marks it, and opening (RocksDB's too) removes it. One that may be reused has it too, on
//!   disk.
//! - A file with a second name, one in a checkpoint, is never cut nor reused, nor is one that another process
//!   has open: only its name here goes.
//!   Nor is a table that is read in place, mapped: a value of it may be held for long.
//! - What cannot be removed is reported and left to the next open.
//!
//! Any thread may put or take; one thread at a time removes.

mod queue;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::sync::{Condvar, Mutex, MutexGuard};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{Clock, Env, FileSystem};
use drumlin_table::TableFormat;

use self::queue::{Queue, Waste, kind_of};
use crate::files::names;

/// Freed at a time. Larger files go in several steps.
const STEP_BYTES: u64 = 96 << 20;
/// The pace while little waits, in bytes a second. Under a steady load waiting files are reused sooner.
const PACE: u64 = 128 << 20;
/// With as much waiting as this the pace is twice as fast, and so on.
const PACE_BYTES: u64 = 1 << 30;
/// How often to look whether the files kept for reuse are still wanted.
const KEPT_LOOK: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct Trash {
    files: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    /// Held by who removes, around the files' operations: others wait for it rather than look on.
    turn: Mutex<()>,
    state: Mutex<State>,
    /// Notified when a file comes, or when there is no more time for pauses.
    wake: Condvar,
    /// Bytes that were removed or taken.
    freed: AtomicU64,
    /// Smaller files are not kept for reuse.
    reuse_from_bytes: u64,
    step_bytes: u64,
}

#[derive(Debug)]
struct State {
    /// Not looked at yet.
    arrived: Vec<PathBuf>,
    queue: Queue,
    /// Bytes of files being looked at or removed outside the lock; `None` when nothing is.
    outside: Option<u64>,
    /// Whether pauses are over: nothing else will be done with the disk.
    ending: bool,
    /// Whether the space is needed now.
    hurried: bool,
}

impl State {
    fn may_pause(&self) -> bool {
        !self.ending && !self.hurried
    }

    fn has_work(&mut self, now: Duration) -> bool {
        !self.arrived.is_empty() || self.outside.is_some() || self.queue.has_work(now)
    }
}

impl Trash {
    /// Nothing yet. Tables and blob files of `reuse_from_bytes` and more are kept for reuse.
    pub(crate) fn new(env: &Env, reuse_from_bytes: u64) -> Self {
        Self {
            files: Arc::clone(&env.files),
            clock: Arc::clone(&env.clock),
            turn: Mutex::new(()),
            state: Mutex::new(State {
                arrived: Vec::new(),
                queue: Queue::new(),
                outside: None,
                ending: false,
                hurried: false,
            }),
            wake: Condvar::default(),
            freed: AtomicU64::new(0),
            reuse_from_bytes,
            step_bytes: STEP_BYTES,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Learns the size of the store, which bounds the files kept for reuse.
    pub(crate) fn set_store_bytes(&self, bytes: u64) {
        self.lock().queue.set_store_bytes(bytes);
    }

    /// Leaves `path` to be removed. Touches no file.
    ///
    /// Requires: nobody will read the file, give it a further name or write to it. A table may be stored
    /// under its other name, see [`names::leveldb_table`].
    pub(crate) fn put(&self, path: PathBuf) {
        self.lock().arrived.push(path);
        self.wake.notify_all();
    }

    /// An old file in whose place the new one `path`, of about `expected_bytes`, may be written. It
    /// is the caller's from here on.
    pub(crate) fn take(&self, path: &Path, expected_bytes: u64) -> Option<PathBuf> {
        let now = self.now();
        let waste = self.lock().queue.take(path, expected_bytes, now)?;
        self.freed.fetch_add(waste.bytes, Ordering::Relaxed);
        Some(waste.path)
    }

    /// Bytes on the disk that will be free once everything here is removed. Follows what was put
    /// with a short delay.
    pub(crate) fn bytes(&self) -> u64 {
        let state = self.lock();
        state.queue.bytes() + state.outside.unwrap_or(0)
    }

    /// Of those, the bytes that are not kept for reuse.
    pub(crate) fn waste_bytes(&self) -> u64 {
        let now = self.now();
        let mut state = self.lock();
        state.queue.waste_bytes(now) + state.outside.unwrap_or(0)
    }

    /// Bytes removed, or taken for reuse, since this was made.
    pub(crate) fn freed(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    /// Whether everything put here is gone.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.arrived.is_empty() && state.queue.is_empty() && state.outside.is_none()
    }

    /// Has the files kept for reuse removed: nobody writes.
    pub(crate) fn release(&self) {
        self.lock().queue.release();
        self.wake.notify_all();
    }

    /// Removes at a pace until [`Trash::end`], then the rest at once. Tells `done` of every
    /// file that is gone, or why it is not.
    pub(crate) fn work(&self, done: impl Fn(Result<()>)) {
        while let Some(paced) = self.wait_for_work() {
            let before = self.freed();
            if let Some(outcome) = self.step(paced) {
                done(outcome);
            }
            let now = self.now();
            let mut state = self.lock();
            if paced && state.may_pause() && state.has_work(now) {
                let freed = self.freed() - before;
                let pause = pause(freed, state.queue.waste_bytes(now));
                drop(self.wake.wait_for(state, pause));
            }
        }
    }

    /// Waits until there is something to do; whether there is time for pauses. `None` at the end.
    fn wait_for_work(&self) -> Option<bool> {
        let mut state = self.lock();
        while !state.has_work(self.now()) {
            if state.ending {
                return None;
            }
            state.hurried = false;
            state = match state.queue.is_empty() {
                true => self.wake.wait(state),
                false => self.wake.wait_for(state, KEPT_LOOK),
            };
        }
        Some(state.may_pause())
    }

    /// Has everything that is here now removed without pauses: the disk is nearly full.
    pub(crate) fn hurry(&self) {
        let mut state = self.lock();
        state.hurried = true;
        state.queue.release();
        drop(state);
        self.wake.notify_all();
    }

    /// Has [`Trash::work`] come to its end.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ending = true;
        state.queue.release();
        drop(state);
        self.wake.notify_all();
    }

    /// Removes everything now, on this thread.
    ///
    /// # Errors
    /// The first failure; the others are tried all the same.
    pub(crate) fn empty(&self) -> Result<()> {
        let mut outcome = Ok(());
        while !self.is_empty() {
            self.lock().queue.release();
            outcome = outcome.and(self.settle());
        }
        outcome
    }

    /// Removes now all files not kept for reuse: on this thread, but for one that another thread is about.
    ///
    /// # Errors
    /// As [`Trash::empty`].
    pub(crate) fn settle(&self) -> Result<()> {
        let mut outcome = Ok(());
        while self.lock().has_work(self.now()) {
            if let Some(removed) = self.step(false) {
                outcome = outcome.and(removed);
            }
        }
        outcome
    }

    /// Does the next step; returns the outcome for a file whose last it was.
    fn step(&self, paced: bool) -> Option<Result<()>> {
        let _turn = self.turn.lock();
        self.look_at_arrived_in_turn();
        let now = self.now();
        let mut waste = {
            let mut state = self.lock();
            let next = state.queue.next(now)?;
            state.outside = Some(next.bytes);
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
        self.freed.fetch_add(before - left, Ordering::Relaxed);
        let mut state = self.lock();
        state.outside = None;
        if outcome.is_none() {
            state.queue.put(waste, true);
        }
        outcome
    }

    /// Takes the last step off the file.
    fn cut(&self, waste: &mut Waste) -> Result<()> {
        self.mark(waste)?;
        // Somebody may have linked it since it was looked at, for a copy of the directory: the copy keeps its
        // bytes. A process that reads beside us may have it open. Under the new name nobody looks for it any more.
        let is_shared =
            self.files.info(&waste.path)?.links > 1 && !drumlin_base::bug!("linked-file-cut");
        if is_shared || self.files.is_open_elsewhere(&waste.path)? {
            waste.may_cut = false;
            return Ok(());
        }
        let left = (waste.bytes - 1) / self.step_bytes * self.step_bytes;
        self.files.truncate(&waste.path, left)?;
        waste.bytes = left;
        Ok(())
    }

    /// Gives the file the name by which opening knows that nobody needs it.
    fn mark(&self, waste: &mut Waste) -> Result<()> {
        if !names::is_trash(&waste.path) && !drumlin_base::bug!("trash-unmarked") {
            let marked = names::trash(&waste.path);
            self.files.rename(&waste.path, &marked)?;
            waste.path = marked;
        }
        Ok(())
    }

    /// Finds out how large the files are that were put here since the last time.
    #[cfg(test)]
    pub(crate) fn look_at_arrived(&self) {
        let _turn = self.turn.lock();
        self.look_at_arrived_in_turn();
    }

    fn look_at_arrived_in_turn(&self) {
        let (arrived, reuses) = {
            let mut state = self.lock();
            if state.arrived.is_empty() {
                return;
            }
            state.outside = Some(0);
            (std::mem::take(&mut state.arrived), state.may_pause())
        };
        let mut found: Vec<_> = arrived
            .into_iter()
            .map(|path| self.size_check_at(path))
            .collect();
        if reuses {
            self.ready_for_reuse(&mut found);
        }
        let mut state = self.lock();
        for waste in found {
            state.queue.put(waste, false);
        }
        state.outside = None;
    }

    fn size_check_at(&self, path: PathBuf) -> Waste {
        let mut path = path;
        let mut facts = self.files.info(&path);
        if facts.as_ref().is_err_and(Error::is_not_found)
            && let Some(other) = other_name(&path)
            && let Ok(found) = self.files.info(&other)
        {
            (path, facts) = (other, Ok(found));
        }
        let (bytes, is_ours, trouble) = match facts {
            // A symbolic link goes, and the file that it leads to is left alone.
            Ok(facts) if facts.is_symlink => (0, false, None),
            Ok(facts) => (facts.size, facts.links == 1, None),
            Err(error) if error.is_not_found() => (0, false, None),
            // A file that cannot be looked at is removed without being cut.
            Err(error) => (0, false, Some(error)),
        };
        let mut waste = Waste {
            path,
            bytes,
            may_cut: is_ours,
            reusable: false,
            trouble,
        };
        if waste.may_cut && bytes >= self.step_bytes.min(self.reuse_from_bytes) {
            match self.is_read_in_place(&waste.path) {
                Ok(in_place) => waste.may_cut = !in_place,
                Err(error) => {
                    waste.may_cut = false;
                    waste.trouble = Some(error);
                }
            }
        }
        waste
    }

    /// Whether values of the table may still be held in place, mapped into memory:
    /// reading what was cut off would end the process.
    ///
    /// # Errors
    /// Errors of looking at it.
    fn is_read_in_place(&self, path: &Path) -> Result<bool> {
        if path.extension() != Some(names::TABLE_EXTENSION.as_ref()) {
            return Ok(false);
        }
        let file = self.files.open(path)?;
        match TableFormat::of(&*file) {
            Ok(format) => Ok(format.is_read_in_place()),
            // No table that was ever read.
            Err(error) => match error.kind() {
                ErrorKind::Corruption | ErrorKind::NotSupported => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Marks those of `found` that are worth it, on disk. Errors are reported when the file is
    /// removed.
    fn ready_for_reuse(&self, found: &mut [Waste]) {
        let mut dir = None;
        for waste in found.iter_mut() {
            let worth = waste.bytes >= self.reuse_from_bytes && kind_of(&waste.path).is_some();
            if worth && waste.may_cut {
                match self.mark(waste) {
                    Ok(()) => {
                        waste.reusable = true;
                        dir = waste.path.parent().map(Path::to_path_buf);
                    }
                    Err(error) => waste.trouble = Some(error),
                }
            }
        }
        let Some(dir) = dir else { return };
        if let Err(error) = self.files.sync_dir(&dir) {
            for waste in found.iter_mut() {
                waste.reusable = false;
            }
            if let Some(first) = found.first_mut() {
                first.trouble.get_or_insert(error);
            }
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
    let pace = PACE as f64 * (1.0 + waiting as f64 / PACE_BYTES as f64);
    Duration::from_secs_f64(freed as f64 / pace)
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
            ..Trash::new(&Env::system().with_files(files), u64::MAX)
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
    fn a_file_that_is_linked_while_it_waits_is_not_cut_any_more() {
        for steps in 0..3 {
            let disk = disk();
            let path = write(&disk, "000007.sst", 4 * STEP);
            let trash = trash_over(Arc::new(disk.clone()));
            trash.put(path.clone());
            trash.look_at_arrived();
            for _ in 0..steps {
                assert!(trash.step(true).is_none());
            }
            let now = if steps == 0 {
                path
            } else {
                names::trash(&path)
            };
            let copy = Path::new("/copy.sst");
            disk.link(&now, copy).unwrap();
            let bytes = disk.info(copy).unwrap().size;
            while trash.step(true).is_none() {}
            assert!(listing(&disk).is_empty());
            assert_eq!(disk.info(copy).unwrap().size, bytes, "after {steps} steps");
        }
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
    fn pauses_are_the_shorter_the_more_is_waiting() {
        let half_second = Duration::from_millis(500);
        assert_eq!(pause(64 << 20, 0), half_second);
        assert_eq!(pause(64 << 20, PACE_BYTES), half_second / 2);
        assert_eq!(pause(64 << 20, 3 * PACE_BYTES), half_second / 4);
    }
}
