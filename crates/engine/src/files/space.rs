//! Free space: writes are refused before it is gone, compactions that would not fit wait.
//!
//! A full disk stops everything at once: the flushes that must save memtables, the
//! compactions that would give space back, and other programs. So writers are refused while a
//! reserve is left. Then these still go on: reads, flushes, deletions (down to a quarter of the
//! reserve), and compactions as long as their output fits. The first write after space came back
//! is admitted again.
//!
//! Asking costs a system call (some microseconds), so a writer asks once for many writes: it then
//! has credit for a small part of the free space it saw. Other programs can fill the disk meanwhile; the
//! next query sees it.
//!
//! Obsolete files count as free: they are being removed. Those that are kept for reuse are removed as
//! soon as the rest alone would not do. The bytes that running compactions will still write count as taken.
//!
//! Credit is spent for the whole group of writers: followers join only as far as the leader left credit.
//!
//! Shared by all threads. Only the thread with the lead spends credit; a compaction that takes it away
//! meanwhile may be overlooked until it is used up.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::FileSystem;

use crate::files::trash::Trash;

/// The derived reserve is between these, and is at most this part of the most space ever seen
/// free, so that a small disk can be used.
const RESERVE_MIN: u64 = 64 << 20;
const RESERVE_MAX: u64 = 1 << 30;
const RESERVE_DIVISOR: u64 = 8;
/// A query gives credit for this part of the free space beyond the reserve, or of the reserve, up to a bound.
const CREDIT_DIVISOR: u64 = 64;
const CREDIT_MAX: u64 = 1 << 20;
/// The credit where the reserve is off.
const UNLIMITED: u64 = u64::MAX;
/// Deletions and compactions may use the reserve but for this part.
const CORE_DIVISOR: u64 = 4;

/// The largest memtable that is derived where `free` bytes are free: four, as many as there are by
/// default, take half of the derived reserve, so that opening can save what a full disk's logs hold.
/// No less than 1 MiB.
pub(crate) fn memtable_bytes_max(free: u64) -> u64 {
    (free / RESERVE_DIVISOR / 8).max(1 << 20)
}

/// The most space reserved ahead in a WAL file where `free` bytes are free: the live one, those that
/// wait for flushes and the one made ahead leave most of a small disk to tables.
pub(crate) fn wal_bytes_max(free: u64) -> u64 {
    (free / 16).clamp(1 << 20, 64 << 20)
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Space {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    trash: Arc<Trash>,
    /// The reserve the user wants; `None` derives it.
    wanted: Option<u64>,
    /// Memory that memtables may take: a flush of all of them must fit.
    memtable_bytes: u64,
    /// The most space ever seen free.
    free_max: AtomicU64,
    /// Bytes that may be written before the next query.
    credit: AtomicU64,
    /// Bytes that running compactions are yet to write.
    promised: AtomicU64,
}

/// Space reserved for a compaction's output. Dropping it gives back the rest that was not written.
#[derive(Debug)]
pub(crate) struct Promise {
    space: Arc<Space>,
    left: AtomicU64,
}

impl Space {
    /// The free space of `dir`. A reserve of 0 never refuses and never asks.
    pub(crate) fn new(
        files: Arc<dyn FileSystem>,
        dir: PathBuf,
        trash: Arc<Trash>,
        wanted: Option<u64>,
        memtable_bytes: u64,
    ) -> Arc<Self> {
        let off = wanted == Some(0);
        Arc::new(Self {
            files,
            dir,
            trash,
            wanted,
            memtable_bytes,
            free_max: AtomicU64::new(0),
            credit: AtomicU64::new(if off { UNLIMITED } else { 0 }),
            promised: AtomicU64::new(0),
        })
    }

    /// Takes credit for `bytes`, or refuses them. `frees` says whether the write only deletes.
    ///
    /// # Errors
    /// `NoSpace` with the numbers. Errors of the query.
    #[inline]
    pub(crate) fn reserve_bytes(&self, bytes: usize, frees: impl FnOnce() -> bool) -> Result<()> {
        let credit = self.credit();
        if credit == UNLIMITED {
            return Ok(());
        }
        match credit.checked_sub(bytes as u64) {
            Some(left) => {
                self.credit.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => self.query_free_space(bytes as u64, frees),
        }
    }

    /// Bytes that may still be written before the next query.
    #[inline]
    pub(crate) fn credit(&self) -> u64 {
        self.credit.load(Ordering::Relaxed)
    }

    /// Spends credit for `bytes` that go with an admitted write.
    #[inline]
    pub(crate) fn spend(&self, bytes: usize) {
        let credit = self.credit();
        if credit != UNLIMITED {
            let left = credit.saturating_sub(bytes as u64);
            self.credit.store(left, Ordering::Relaxed);
        }
    }

    #[cold]
    fn query_free_space(&self, bytes: u64, frees: impl FnOnce() -> bool) -> Result<()> {
        let promised = self.promised.load(Ordering::Relaxed);
        let taken = promised.saturating_add(bytes);
        let free = self.free_beside(taken, 1)?;
        let reserve = self.reserve();
        if let Some(spare) = free.checked_sub(taken.saturating_add(reserve)) {
            // Were space gone right after this query, the credit would take little of the reserve.
            let credit = spare.min(reserve) / CREDIT_DIVISOR;
            let credit = credit.min(CREDIT_MAX);
            self.credit.store(credit, Ordering::Relaxed);
            return Ok(());
        }
        // Or writes that do not free could go along with one that does.
        self.credit.store(0, Ordering::Relaxed);
        let core = match drumlin_base::bug!("deletions-take-the-reserve") {
            true => 0,
            false => reserve / CORE_DIVISOR,
        };
        if frees() && free >= taken.saturating_add(core) {
            return Ok(());
        }
        let message = format!(
            "the disk has {free} bytes free; {reserve} are kept in reserve and {promised} are \
             for running compactions: writes other than deletions wait for space"
        );
        Err(Error::new(ErrorKind::NoSpace, message).with_file(&self.dir))
    }

    /// Reserves space for a compaction that writes about `bytes`.
    ///
    /// # Errors
    /// `NoSpace` with the numbers. Errors of the query.
    pub(crate) fn promise(self: &Arc<Self>, bytes: u64) -> Result<Promise> {
        let off = self.wanted == Some(0);
        if !off {
            let promised = self.promised.load(Ordering::Relaxed);
            let free = self.free_beside(promised.saturating_add(bytes), CORE_DIVISOR)?;
            let core = self.reserve() / CORE_DIVISOR;
            if free < promised.saturating_add(bytes).saturating_add(core) {
                let message = format!(
                    "the disk has {free} bytes free; a compaction that may write {bytes} does not \
                     fit beside {promised} for others and a reserve of {core}"
                );
                return Err(Error::new(ErrorKind::NoSpace, message).with_file(&self.dir));
            }
        }
        let kept = if off { 0 } else { bytes };
        if kept > 0 {
            // Two that ask at once may both get the last of it: then the disk gets full, as others
            // could make it anyhow, and one of them fails and is tried again.
            self.promised.fetch_add(kept, Ordering::Relaxed);
            self.credit.store(0, Ordering::Relaxed);
        }
        Ok(Promise {
            space: Arc::clone(self),
            left: AtomicU64::new(kept),
        })
    }

    /// Bytes free, those of files that are being removed included.
    ///
    /// # Errors
    /// Errors of the query.
    pub(crate) fn free(&self) -> Result<u64> {
        let (free, _) = self.ask()?;
        Ok(free)
    }

    /// As [`Space::free`]. Has obsolete files removed, also those that are kept for reuse, when what
    /// is free without them does not hold `taken` and this part of the reserve: logs cannot take
    /// their place.
    fn free_beside(&self, taken: u64, share: u64) -> Result<u64> {
        let (free, now) = self.ask()?;
        if now < taken.saturating_add(self.reserve() / share) {
            self.trash.hurry();
        }
        Ok(free)
    }

    /// Bytes free, with those of obsolete files and without.
    fn ask(&self) -> Result<(u64, u64)> {
        let now = self.files.free_space(&self.dir)?;
        let free = now.saturating_add(self.trash.bytes());
        self.free_max.fetch_max(free, Ordering::Relaxed);
        Ok((free, now))
    }

    /// Bytes kept in reserve now.
    pub(crate) fn reserve(&self) -> u64 {
        self.wanted.unwrap_or_else(|| {
            let wanted = self.memtable_bytes.clamp(RESERVE_MIN, RESERVE_MAX);
            wanted.min(self.free_max.load(Ordering::Relaxed) / RESERVE_DIVISOR)
        })
    }
}

impl Promise {
    /// Notes that `bytes` were written: the disk counts them from now on.
    pub(crate) fn written(&self, bytes: u64) {
        let mut taken = 0;
        // Relaxed: a number that other threads' sums may see a moment later.
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                taken = left.min(bytes);
                Some(left - taken)
            });
        self.space.promised.fetch_sub(taken, Ordering::Relaxed);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if drumlin_base::bug!("promised-room-kept") {
            return;
        }
        self.written(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use drumlin_fs::{CreateOptions, Env, FaultFileSystem, FileKind, StrictMemFileSystem};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn space(disk: &StrictMemFileSystem, wanted: Option<u64>) -> (FaultFileSystem, Arc<Space>) {
        let files = FaultFileSystem::over_memory(disk);
        let env = Env::system().with_files(Arc::new(files.clone()));
        let trash = Arc::new(Trash::new(&env, u64::MAX));
        let dir = PathBuf::from("/");
        let space = Space::new(Arc::new(files.clone()), dir, trash, wanted, 100 * MIB);
        (files, space)
    }

    fn disk(free: u64) -> StrictMemFileSystem {
        let disk = StrictMemFileSystem::new();
        disk.set_quota(free);
        disk
    }

    #[test]
    fn writes_are_refused_at_the_reserve_with_numbers_and_go_on_when_space_returns() {
        let disk = disk(100 * MIB);
        let (_, space) = space(&disk, Some(10 * MIB));
        space.reserve_bytes(1000, || false).unwrap();
        disk.set_quota(10 * MIB + 500);
        // Space seen before gives credit for a little more, not for much.
        let mut admitted = 0;
        while space.reserve_bytes(1000, || false).is_ok() {
            admitted += 1000;
        }
        assert!(admitted <= CREDIT_MAX, "{admitted}");
        let error = space.reserve_bytes(1000, || false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        let text = error.to_string();
        assert!(text.contains("10486260 bytes free; 10485760 are"), "{text}");
        space.reserve_bytes(100, || false).unwrap();
        disk.set_quota(20 * MIB);
        space.reserve_bytes(1000, || false).unwrap();
    }

    #[test]
    fn the_nearer_the_reserve_the_more_often_the_disk_is_asked() {
        let disk = disk(1 << 40);
        let (files, space) = space(&disk, Some(64 * MIB));
        for _ in 0..MIB / 100 {
            space.reserve_bytes(100, || false).unwrap();
        }
        assert!(files.operations() <= 2, "{}", files.operations());
        disk.set_quota(64 * MIB + 6400);
        while space.credit.load(Ordering::Relaxed) >= 100 {
            space.reserve_bytes(100, || false).unwrap();
        }
        let before = files.operations();
        for _ in 0..10 {
            space.reserve_bytes(100, || false).unwrap();
        }
        assert!(files.operations() - before >= 5);
    }

    #[test]
    fn deletions_may_use_the_reserve_but_not_all_of_it() {
        let disk = disk(5 * MIB);
        let (_, space) = space(&disk, Some(10 * MIB));
        assert!(space.reserve_bytes(1000, || false).is_err());
        space.reserve_bytes(1000, || true).unwrap();
        disk.set_quota(2 * MIB);
        assert!(space.reserve_bytes(1000, || true).is_err());
    }

    #[test]
    fn what_goes_along_with_an_admitted_write_is_bounded_by_the_credit_and_spends_it() {
        let disk = disk(1 << 40);
        let (_, space) = space(&disk, Some(64 * MIB));
        space.reserve_bytes(1000, || false).unwrap();
        assert_eq!(space.credit(), CREDIT_MAX);
        space.spend(3000);
        assert_eq!(space.credit(), CREDIT_MAX - 3000);
        space.spend(usize::MAX);
        assert_eq!(space.credit(), 0);
        // A deletion below the reserve gives no credit.
        space.reserve_bytes(1000, || false).unwrap();
        disk.set_quota(60 * MIB);
        space.reserve_bytes(2 * MIB as usize, || true).unwrap();
        assert_eq!(space.credit(), 0);
        let (_, off) = self::space(&disk, Some(0));
        off.spend(1000);
        assert_eq!(off.credit(), UNLIMITED);
    }

    #[test]
    fn running_compactions_keep_their_room_until_they_wrote_it() {
        let disk = disk(100 * MIB);
        let (_, space) = space(&disk, Some(10 * MIB));
        let promise = space.promise(85 * MIB).unwrap();
        assert!(space.promise(20 * MIB).is_err());
        assert!(space.reserve_bytes(6 * MIB as usize, || false).is_err());
        promise.written(30 * MIB);
        space.reserve_bytes(6 * MIB as usize, || false).unwrap();
        drop(promise);
        drop(space.promise(90 * MIB).unwrap());
        assert_eq!(space.promised.load(Ordering::Relaxed), 0);
        assert!(space.promise(98 * MIB).is_err());
    }

    #[test]
    fn the_derived_reserve_holds_the_memtables_and_leaves_small_disks_usable() {
        let large = disk(1 << 40);
        let (_, of_large) = space(&large, None);
        of_large.reserve_bytes(1, || false).unwrap();
        assert_eq!(of_large.reserve(), 100 * MIB);
        let small = disk(16 * MIB);
        let (_, of_small) = space(&small, None);
        of_small.reserve_bytes(1, || false).unwrap();
        assert_eq!(of_small.reserve(), 2 * MIB);
        assert_eq!(
            4 * memtable_bytes_max(64 * MIB),
            64 * MIB / RESERVE_DIVISOR / 2
        );
        assert!(wal_bytes_max(64 * MIB) <= 4 * MIB);
    }

    fn table_of_15_mib(disk: &StrictMemFileSystem) -> PathBuf {
        let path = PathBuf::from("/000001.sst");
        let mut file = disk
            .create(&path, CreateOptions::new(FileKind::Table))
            .unwrap();
        file.append(&vec![1; 15 * MIB as usize]).unwrap();
        file.close().unwrap();
        path
    }

    #[test]
    fn what_is_being_removed_counts_as_free() {
        let disk = disk(20 * MIB);
        let (_, space) = space(&disk, Some(10 * MIB));
        let path = table_of_15_mib(&disk);
        assert!(space.reserve_bytes(1, || false).is_err());
        space.trash.put(path);
        space.trash.look_at_arrived();
        space.reserve_bytes(1, || false).unwrap();
        space.trash.empty().unwrap();
        space.reserve_bytes(1, || false).unwrap();
    }

    #[test]
    fn what_is_kept_for_reuse_is_let_go_before_the_reserve_is_touched() {
        let disk = disk(40 * MIB);
        let files: Arc<dyn FileSystem> = Arc::new(disk.clone());
        let env = Env::system().with_files(Arc::clone(&files));
        let trash = Arc::new(Trash::new(&env, 1));
        let path = table_of_15_mib(&disk);
        let new = Path::new("/000002.blob");
        assert!(trash.take(new, 100 * MIB).is_none()); // Jobs are busy: it is kept for them.
        trash.put(path);
        trash.settle().unwrap();
        assert_eq!(trash.waste_bytes(), 0);
        let dir = PathBuf::from("/");
        let space = Space::new(files, dir, Arc::clone(&trash), Some(10 * MIB), 0);
        space.reserve_bytes(1, || false).unwrap();
        drop(space.promise(MIB).unwrap());
        assert_eq!(trash.waste_bytes(), 0);
        // A log takes the rest but for half of the reserve.
        disk.set_quota(20 * MIB);
        space.credit.store(0, Ordering::Relaxed);
        space.reserve_bytes(1, || false).unwrap();
        assert_eq!(trash.waste_bytes(), 15 * MIB);
        trash.settle().unwrap();
        assert_eq!(disk.free_space(Path::new("/")).unwrap(), 20 * MIB);
    }

    #[test]
    fn without_a_reserve_the_disk_is_never_asked() {
        let disk = disk(0);
        let (files, space) = space(&disk, Some(0));
        space.reserve_bytes(1 << 20, || false).unwrap();
        drop(space.promise(1 << 40).unwrap());
        space.reserve_bytes(1 << 20, || false).unwrap();
        assert_eq!(files.operations(), 0);
    }
}
