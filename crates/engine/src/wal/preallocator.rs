//! The next WAL file, made before it is needed, and the space behind the live one.
//!
//! Beginning a WAL takes a file with reserved space and a directory on disk that names it; filling
//! one takes pages the kernel may be slow to give. A thread does both ahead, so that a writer waits
//! for neither. Where there is no such thread, or it is late, the writer does the work itself.
//!
//! Invariants:
//! - A file handed out is named in the directory on disk, so a synced write in it is not lost with
//!   its name.
//! - Numbers of WAL files ascend in the order they are handed out: no other thread makes a file while
//!   one is being made here.
//! - A file that was not handed out holds no record of its own number: zeros, or records of the WAL
//!   whose place it took. After a crash it reads as an empty WAL after the live one, for RocksDB and
//!   LevelDB too.
//!
//! Thread safety: every method may be called from any thread; `make` by one at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::sync::{Condvar, Mutex};
use drumlin_base::{ErrorKind, Result};
use drumlin_fs::{CreateOptions, Env, FileKind, FileSyncer, WritableFile};

use crate::files::names;

/// Most bytes that are appended before the thread looks after the live file again.
const STEP_BYTES_MAX: u64 = 1 << 20;

/// A WAL file nothing was written to yet.
#[derive(Debug)]
pub(crate) struct FreshWal {
    pub(crate) number: u64,
    pub(crate) file: Box<dyn WritableFile>,
}

/// The next task of the thread.
#[derive(Debug)]
pub(crate) enum Task {
    /// Make the next file.
    Make,
    /// Prepare space behind the bytes appended to this one, or let go of what was prepared.
    Prepare(Arc<dyn FileSyncer>),
    /// End.
    End,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WalPreallocator {
    env: Env,
    dir: PathBuf,
    preallocate_bytes: u64,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Whether a thread works here.
    has_thread: bool,
    wants_file: bool,
    making: bool,
    ready: Option<FreshWal>,
    /// The live file, when space behind its end must be prepared.
    to_prepare: Option<Arc<dyn FileSyncer>>,
    /// Files that nothing is appended to any more, to be let go of.
    retired: Vec<Arc<dyn FileSyncer>>,
    /// Whether appends are synced one by one.
    synced: bool,
}

impl WalPreallocator {
    /// Makes files in `dir`, reserving `preallocate_bytes` in each.
    pub(crate) fn new(env: Env, dir: PathBuf, preallocate_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            env,
            dir,
            preallocate_bytes,
            queue: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Makes the file `number`, of `recycled` where that can be, and puts its name on disk.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; there may then be an empty file of that name.
    pub(crate) fn make(&self, number: u64, recycled: Option<u64>) -> Result<FreshWal> {
        let path = names::wal(&self.dir, number);
        let options = CreateOptions {
            preallocate_bytes: self.preallocate_bytes,
            ..CreateOptions::new(FileKind::Wal)
        };
        let file = self.begin_file(&path, recycled, options)?;
        if !drumlin_base::bug!("wal-name-unsynced") {
            self.env.files.sync_dir(&self.dir)?;
        }
        Ok(FreshWal { number, file })
    }

    /// The file `path`, made of `recycled` where that can be.
    fn begin_file(
        &self,
        path: &Path,
        recycled: Option<u64>,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        if let Some(old) = recycled {
            let old = names::wal(&self.dir, old);
            match self.env.files.reuse(&old, path, options) {
                Err(error)
                    if error.kind() == ErrorKind::NotSupported
                        && !drumlin_base::bug!("second-name-recycled") =>
                {
                    // A second name shares its bytes, in a copy somebody made, for example.
                    self.env.files.remove(&old)?;
                }
                reused => return reused,
            }
        }
        self.env.files.create(path, options)
    }

    /// Takes the file that was made, waiting for one that is being made; `None` when the caller has
    /// to make one itself.
    pub(crate) fn take(&self) -> Option<FreshWal> {
        let mut queue = self.queue.lock();
        while queue.making {
            queue = self.changed.wait(queue);
        }
        queue.ready.take()
    }

    /// Requests the space that the live file, `len` bytes long, will need soon: space behind its end, and the
    /// next file once it is half full. `synced` says that appends are synced one by one.
    pub(crate) fn request(&self, live: &Arc<dyn FileSyncer>, len: u64, synced: bool) {
        let mut queue = self.queue.lock();
        if queue.has_thread {
            // A sync would write the prepared space; it waits for the disk anyway.
            queue.to_prepare = (!synced).then(|| Arc::clone(live));
            queue.synced = synced;
            queue.wants_file |= len >= self.preallocate_bytes / 2;
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// Nothing is appended to the file any more: what was prepared of it is let go of, which a writer should not wait for.
    pub(crate) fn retire(&self, file: Arc<dyn FileSyncer>) {
        let mut queue = self.queue.lock();
        if queue.has_thread && !drumlin_base::bug!("closed-wal-stays-mapped") {
            queue.retired.push(file);
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// Bytes reserved in each file.
    pub(crate) fn preallocate_bytes(&self) -> u64 {
        self.preallocate_bytes
    }

    /// After how many more bytes to ask again: often enough that a thread that was late catches up,
    /// seldom enough to cost nothing.
    pub(crate) fn step_bytes(&self) -> u64 {
        (self.preallocate_bytes / 2).clamp(1, STEP_BYTES_MAX)
    }

    /// A thread begins, or ends, to work here.
    pub(crate) fn set_has_thread(&self, has_thread: bool) {
        self.queue.lock().has_thread = has_thread;
        self.changed.notify_all();
    }

    /// The next task of the thread. Waits until there is one.
    pub(crate) fn next_task(&self) -> Task {
        let mut queue = self.queue.lock();
        loop {
            if !queue.has_thread {
                return Task::End;
            }
            if let Some(file) = queue.to_prepare.take() {
                return Task::Prepare(file);
            }
            if queue.wants_file && queue.ready.is_none() {
                return Task::Make;
            }
            if let Some(file) = queue.retired.pop() {
                return Task::Prepare(file);
            }
            queue = self.changed.wait(queue);
        }
    }

    /// Announces that the thread makes a file, so that nobody takes a number after its own; false
    /// when none is wanted any more.
    ///
    /// Requires: the caller holds the lock under which numbers of WAL files are taken.
    pub(crate) fn start_making(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.making = queue.wants_file && queue.ready.is_none();
        queue.wants_file = false;
        queue.making
    }

    /// Ends what [`WalPreallocator::start_making`] announced, with a file or without.
    pub(crate) fn finish_making(&self, file: Option<FreshWal>) {
        if let Some(file) = &file
            && !self.queue.lock().synced
        {
            file.file.syncer().prepare();
        }
        let mut queue = self.queue.lock();
        queue.making = false;
        queue.ready = file;
        drop(queue);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use drumlin_fs::StrictMemFileSystem;

    use super::*;

    const DIR: &str = "/db";

    fn supply() -> Arc<WalPreallocator> {
        let files = StrictMemFileSystem::new();
        let env = Env::system().with_files(Arc::new(files));
        env.files.create_dir_all(Path::new(DIR)).unwrap();
        let supply = WalPreallocator::new(env, DIR.into(), 1000);
        supply.set_has_thread(true);
        supply
    }

    fn order(supply: &WalPreallocator, live: &FreshWal, len: u64) {
        supply.request(&live.file.syncer(), len, true);
    }

    #[test]
    fn the_next_file_is_made_once_the_live_one_is_half_full() {
        let supply = supply();
        let live = supply.make(1, None).unwrap();
        order(&supply, &live, 499);
        assert!(!supply.start_making());
        order(&supply, &live, 500);
        assert!(matches!(supply.next_task(), Task::Make));
        assert!(supply.start_making());
        supply.finish_making(Some(supply.make(2, None).unwrap()));
        assert!(!supply.start_making(), "one is enough");
        assert_eq!(supply.take().map(|fresh| fresh.number), Some(2));
        assert!(supply.take().is_none());
    }

    #[test]
    fn a_file_that_is_being_made_is_waited_for() {
        let supply = supply();
        let live = supply.make(1, None).unwrap();
        for fails in [false, true] {
            order(&supply, &live, 1000);
            assert!(supply.start_making());
            std::thread::scope(|scope| {
                let taken = scope.spawn(|| supply.take().map(|fresh| fresh.number));
                let made = (!fails).then(|| supply.make(2, None).unwrap());
                supply.finish_making(made);
                let taken = taken.join().unwrap();
                assert_eq!(taken, (!fails).then_some(2));
            });
        }
    }

    #[test]
    fn a_file_that_is_full_is_seen_to_after_the_live_one() {
        let supply = supply();
        let [full, live] = [1, 2].map(|number| supply.make(number, None).unwrap());
        let full = full.file.syncer();
        supply.retire(Arc::clone(&full));
        assert_eq!(supply.queue.lock().retired.len(), 1);
        order(&supply, &live, 1000);
        assert!(matches!(supply.next_task(), Task::Make));
        assert!(supply.start_making());
        supply.finish_making(None);
        match supply.next_task() {
            Task::Prepare(file) => assert!(Arc::ptr_eq(&file, &full)),
            other => panic!("{other:?}"),
        }
        supply.set_has_thread(false);
        supply.retire(full);
        assert!(supply.queue.lock().retired.is_empty(), "nobody would come");
    }

    #[test]
    fn without_a_thread_the_writer_makes_the_file() {
        let supply = supply();
        supply.set_has_thread(false);
        let live = supply.make(1, None).unwrap();
        order(&supply, &live, 1000);
        assert!(!supply.start_making() && supply.take().is_none());
        assert!(matches!(supply.next_task(), Task::End));
    }

    #[test]
    fn a_recycled_file_takes_its_new_name_and_one_in_a_copy_stays() {
        let supply = supply();
        drop(supply.make(1, None).unwrap());
        drop(supply.make(2, None).unwrap());
        let copy = Path::new("/copy");
        let files = &supply.env.files;
        files.link(&names::wal(&supply.dir, 2), copy).unwrap();
        drop(supply.make(3, Some(1)).unwrap());
        drop(supply.make(4, Some(2)).unwrap());
        let mut left = files.list(&supply.dir).unwrap();
        left.sort();
        assert_eq!(left, ["000003.log", "000004.log"].map(PathBuf::from));
        assert!(files.exists(copy).unwrap());
    }
}
