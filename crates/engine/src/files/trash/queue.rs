//! The files waiting in the trash, and the order of their removal: plain data.
//!
//! Files for reuse are bounded twice: by the size of the store, so that files it no longer needs do not
//! keep it large, and by the demand of recent jobs, so that nothing is kept for nobody. The bounds
//! are wide: a kept file costs space for seconds, one removed at once costs writers time.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drumlin_base::Error;

use crate::files::names;

/// Jobs are expected to ask for as much again as they did over one to two of these.
const WINDOW: Duration = Duration::from_secs(8);
/// A file this many times as large as the new one is not worth its blocks: those past its end would
/// be freed.
const OVERSIZE: u64 = 2;

/// A file to be removed.
#[derive(Debug)]
pub(super) struct Waste {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// Whether the file may be cut: it has this one name, and nobody can be reading it.
    pub(super) may_cut: bool,
    /// Whether a new file may be written in its place: it may be cut, and its name on disk is that
    /// of a file nobody needs.
    pub(super) reusable: bool,
    /// Why it could not be looked at.
    pub(super) trouble: Option<Error>,
}

/// How many bytes new files were to have lately.
#[derive(Debug, Default)]
struct Demand {
    since: Duration,
    before: u64,
    now: u64,
}

impl Demand {
    fn turn(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.since);
        if passed >= WINDOW {
            self.before = if passed < 2 * WINDOW { self.now } else { 0 };
            self.now = 0;
            self.since = now;
        }
    }

    fn add(&mut self, bytes: u64) {
        self.now = self.now.saturating_add(bytes);
    }

    fn bytes(&self) -> u64 {
        self.before.saturating_add(self.now)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Queue {
    /// The oldest first.
    waiting: VecDeque<Waste>,
    bytes: u64,
    /// Of those, bytes of reusable files.
    reusable: u64,
    /// The size of the store.
    store_bytes: u64,
    demand: Demand,
    /// Whether nothing is kept until somebody asks again.
    released: bool,
}

impl Queue {
    /// Empty, of a store of unknown size.
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            reusable: 0,
            store_bytes: u64::MAX,
            demand: Demand::default(),
            released: false,
        }
    }

    /// Puts `waste` behind the others, or, if [`Queue::next`] took it out, before them.
    pub(super) fn put(&mut self, waste: Waste, first: bool) {
        self.bytes += waste.bytes;
        if waste.reusable {
            self.reusable += waste.bytes;
        }
        match first {
            true => self.waiting.push_front(waste),
            false => self.waiting.push_back(waste),
        }
    }

    fn remove(&mut self, at: usize) -> Option<Waste> {
        let waste = self.waiting.remove(at)?;
        self.bytes -= waste.bytes;
        if waste.reusable {
            self.reusable -= waste.bytes;
        }
        Some(waste)
    }

    /// The next to be removed at the time `now`: the oldest of those nobody is to reuse.
    pub(super) fn next(&mut self, now: Duration) -> Option<Waste> {
        let surplus = self.reusable > self.kept_max(now);
        let at = self
            .waiting
            .iter()
            .position(|waste| surplus || !waste.reusable)?;
        self.remove(at)
    }

    /// An old file for the new one `path`, of about `expected` bytes: the smallest that is large
    /// enough, or else the largest.
    pub(super) fn take(&mut self, path: &Path, expected: u64, now: Duration) -> Option<Waste> {
        self.released = false;
        self.demand.turn(now);
        self.demand.add(expected);
        let fits = |waste: &Waste| {
            waste.reusable
                && kind_of(&waste.path) == path.extension()
                && waste.bytes <= expected.saturating_mul(OVERSIZE)
        };
        let rank = |waste: &Waste| match waste.bytes.checked_sub(expected) {
            Some(over) => (0, over),
            None => (1, expected - waste.bytes),
        };
        let candidates = self.waiting.iter().enumerate();
        let (at, _) = candidates
            .filter(|(_, waste)| fits(waste))
            .min_by_key(|(_, waste)| rank(waste))?;
        self.remove(at)
    }

    /// The most that is kept for reuse at the time `now`.
    fn kept_max(&mut self, now: Duration) -> u64 {
        self.demand.turn(now);
        match self.released {
            true => 0,
            false => self.demand.bytes().min(self.store_bytes),
        }
    }

    /// Keeps nothing until somebody asks again.
    pub(super) fn release(&mut self) {
        self.released = true;
    }

    /// Learns the size of the store.
    pub(super) fn set_store_bytes(&mut self, bytes: u64) {
        self.store_bytes = bytes;
    }

    /// Whether there is something to remove.
    pub(super) fn has_work(&mut self, now: Duration) -> bool {
        self.waste_bytes(now) > 0 || self.waiting.iter().any(|waste| !waste.reusable)
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of those due for removal.
    pub(super) fn waste_bytes(&mut self, now: Duration) -> u64 {
        self.bytes - self.reusable.min(self.kept_max(now))
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The extension of a table or blob file, with or without the mark of the trash. `None` for others.
pub(super) fn kind_of(path: &Path) -> Option<&OsStr> {
    let unmarked = match names::is_trash(path) {
        true => Path::new(path.file_stem()?),
        false => path,
    };
    unmarked.extension().filter(|extension| {
        *extension == names::TABLE_EXTENSION || *extension == names::BLOB_EXTENSION
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn waste(name: &str, bytes: u64) -> Waste {
        Waste {
            path: Path::new(name).into(),
            bytes,
            may_cut: true,
            reusable: true,
            trouble: None,
        }
    }

    fn queue(files: &[(&str, u64)]) -> Queue {
        let mut queue = Queue::new();
        for (name, bytes) in files {
            queue.put(waste(name, *bytes), false);
        }
        queue
    }

    fn take(queue: &mut Queue, name: &str, expected: u64) -> Option<PathBuf> {
        let found = queue.take(Path::new(name), expected, Duration::ZERO);
        found.map(|waste| waste.path)
    }

    #[test]
    fn the_nearest_size_of_the_same_kind_is_taken() {
        let mut queue = queue(&[
            ("1.blob.trash", 50 * MIB),
            ("2.blob.trash", 70 * MIB),
            ("3.blob.trash", 65 * MIB),
            ("4.sst.trash", 64 * MIB),
            ("5.blob.trash", 200 * MIB),
        ]);
        let mut next = || take(&mut queue, "9.blob", 64 * MIB);
        assert_eq!(next(), Some("3.blob.trash".into()));
        assert_eq!(next(), Some("2.blob.trash".into()));
        assert_eq!(next(), Some("1.blob.trash".into()));
        assert_eq!(next(), None); // Most of 5 would have to be freed.
        assert_eq!(
            take(&mut queue, "9.sst", 64 * MIB),
            Some("4.sst.trash".into())
        );
        assert_eq!(queue.bytes(), 200 * MIB);
    }

    #[test]
    fn no_more_is_kept_than_the_store_holds_and_was_asked_for_lately() {
        let second = Duration::from_secs;
        let mut queue = queue(&[("1.blob.trash", 60), ("2.blob.trash", 60)]);
        assert_eq!(queue.waste_bytes(second(0)), 120); // Nobody asked yet.
        assert!(queue.take(Path::new("9.sst"), 100, second(1)).is_none());
        assert_eq!(queue.waste_bytes(second(2)), 20);
        assert!(queue.has_work(second(2)));
        assert_eq!(
            queue.next(second(2)).unwrap().path,
            Path::new("1.blob.trash")
        );
        assert!(queue.next(second(2)).is_none());
        assert!(!queue.has_work(second(9)));
        queue.set_store_bytes(50);
        assert_eq!(queue.waste_bytes(second(10)), 10);
        queue.set_store_bytes(1000);
        assert_eq!(queue.waste_bytes(second(12)), 0);
        assert_eq!(queue.waste_bytes(second(30)), 60); // It is long ago.
    }

    #[test]
    fn what_was_released_goes_until_somebody_asks_again() {
        let mut queue = queue(&[("1.blob.trash", 60)]);
        take(&mut queue, "9.sst", 100);
        assert!(!queue.has_work(Duration::ZERO));
        queue.release();
        assert!(queue.has_work(Duration::ZERO));
        assert_eq!(take(&mut queue, "9.blob", 40), Some("1.blob.trash".into()));
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn kinds_are_told_with_and_without_the_mark() {
        for (name, kind) in [
            ("000007.sst", Some("sst")),
            ("db/000007.sst.trash", Some("sst")),
            ("000007.blob.trash", Some("blob")),
            ("000007.log", None),
            ("000007.log.trash", None),
            ("000007", None),
        ] {
            assert_eq!(kind_of(Path::new(name)), kind.map(OsStr::new), "{name}");
        }
    }
}
