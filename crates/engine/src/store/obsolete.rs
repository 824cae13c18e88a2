//! Files that nothing needs any more: how they are found, and how they are removed.

use std::sync::atomic::Ordering;

use drumlin_base::{Error, Result};

use crate::files::names::{self, FileName};
use crate::store::state::State;
use crate::store::store::Store;
use crate::version::obsolete::{obsolete_files, remove_files};

/// WAL files kept to be recycled.
const SPARE_WALS_MAX: usize = 2;

impl Store {
    /// Gives up obsolete files and returns how many. Cheap when nothing left the versions. They
    /// are removed by the background, or at once where no thread works in it.
    pub(crate) fn remove_obsolete(&self, state: &mut State) -> usize {
        if state.closed {
            return 0;
        }
        if let Some(oldest) = state.oldest_wal() {
            self.oldest_unflushed_wal.store(oldest, Ordering::Release);
            // A WAL that the MANIFEST names stays too, or recovery would take it for lost.
            let oldest = match drumlin_base::bug!("wal-removed-early") {
                true => oldest + 1,
                false => oldest.min(state.versions.min_log_number()),
            };
            let before = self.oldest_wal.swap(oldest, Ordering::AcqRel);
            debug_assert!(before <= oldest, "a WAL that is in tables stays so");
        }
        if state.removal_pauses > 0 && !drumlin_base::bug!("removal-goes-on") {
            return 0;
        }
        let oldest_wal = self.oldest_wal.load(Ordering::Acquire);
        let mut given_up = 0;
        for number in state.versions.take_obsolete_tables() {
            self.caches.table_cache.evict(number);
            self.files.trash.put(names::table(&self.id.dir, number));
            given_up += 1;
        }
        for number in state.versions.take_obsolete_manifests() {
            self.files.trash.put(names::manifest(&self.id.dir, number));
            given_up += 1;
        }
        for number in state.versions.take_obsolete_blobs() {
            self.caches.blob_cache.evict(number);
            self.files.trash.put(names::blob(&self.id.dir, number));
            given_up += 1;
        }
        if given_up > 0 || self.caches.models.take_changed() {
            given_up += self.remove_unused_models(state);
        }
        if state.wal_pins == 0 {
            let archive = &self.files.archive;
            let unread = match archive.is_on() {
                true => oldest_wal,
                false => oldest_wal.min(archive.oldest_pin().unwrap_or(u64::MAX)),
            };
            let gone: Vec<u64> = state.wals.range(..unread).copied().collect();
            for number in gone {
                state.wals.remove(&number);
                if archive.is_on() {
                    self.archive_wal(number, state.wals.first().copied());
                } else if !self.id.leveldb && state.spare_wals.len() < SPARE_WALS_MAX {
                    state.spare_wals.push(number);
                } else {
                    self.files.trash.put(names::wal(&self.id.wal_dir, number));
                    given_up += 1;
                }
            }
        }
        if self.runs_inline() {
            self.settle_trash();
        }
        given_up
    }

    /// Keeps WAL `number` for those who follow changes, and removes what was kept long enough. `next` is the WAL after
    /// it. One that cannot be moved stays until the next open.
    fn archive_wal(&self, number: u64, next: Option<u64>) {
        let archive = &self.files.archive;
        let moved = archive.take(number).and_then(|()| archive.purge(next));
        if let Err(error) = moved {
            self.file_stays(&error);
        }
    }

    /// Removes the files that were given up, but for those kept for reuse, now and on this thread.
    pub(crate) fn settle_trash(&self) {
        if let Err(error) = self.files.trash.settle() {
            self.file_stays(&error);
        }
    }

    /// Gives up what nothing needs any more and removes it now, on this thread, but for files kept for reuse.
    pub(crate) fn finish_removal(&self) {
        self.remove_obsolete(&mut self.lock_state());
        self.settle_trash();
        // Through the lock: see `remove_trash`.
        drop(self.lock_state());
        self.changed.notify_all();
    }

    /// Has files kept for reuse removed too.
    pub(crate) fn release_trash(&self) {
        self.files.trash.release();
        if self.runs_inline() {
            self.settle_trash();
        }
    }

    /// Removes the files that were given up, now and on this thread.
    pub(crate) fn empty_trash(&self) {
        if let Err(error) = self.files.trash.empty() {
            self.file_stays(&error);
        }
    }

    pub(crate) fn file_stays(&self, error: &Error) {
        tracing::warn!(%error, "an obsolete file stays until the next open");
        self.watch.report_error(error);
    }

    /// The life of the thread that removes obsolete files.
    pub(crate) fn remove_trash(&self) {
        self.files.trash.work(|outcome| {
            if let Err(error) = outcome {
                self.file_stays(&error);
            }
            if self.files.trash.is_empty() {
                // Through the lock, so that a thread that has just looked and is about to wait is woken.
                drop(self.lock_state());
                self.changed.notify_all();
            }
        });
    }

    /// Lists the whole directory and removes files that an earlier run left behind.
    pub(crate) fn remove_leftovers(&self, state: &mut State) -> Result<usize> {
        let mut removed = self.remove_obsolete(state);
        self.empty_trash();
        let Some(mut needed) = state
            .versions
            .needed(state.spare_wals.iter().copied().collect())
        else {
            return Ok(removed);
        };
        needed.wals_from = needed
            .wals_from
            .min(self.oldest_wal.load(Ordering::Acquire));
        needed.models.extend(self.caches.models.ids()); // Those that are not needed were given up above.
        for dir in [&self.id.dir, &self.id.wal_dir] {
            let listing = self.id.env.files.list(dir)?;
            let mut names = obsolete_files(&listing, &needed);
            if self.files.archive.is_on() && !drumlin_base::bug!("recovered-changes-removed") {
                names.retain(|name| match FileName::parse(name) {
                    Some(FileName::Wal(number)) => {
                        self.archive_wal(number, None);
                        false
                    }
                    _ => true,
                });
            }
            removed += remove_files(&*self.id.env.files, dir, &names)?;
        }
        Ok(removed)
    }

    /// Removes the files of models that no table names any more; how many went.
    pub(crate) fn remove_unused_models(&self, state: &State) -> usize {
        if self.caches.models.is_empty() {
            return 0;
        }
        let Some(mut in_use) = state.versions.models_in_use() else {
            return 0;
        };
        if drumlin_base::bug!("models-in-use-removed") {
            in_use.clear();
        }
        self.caches
            .models
            .remove_unused(&in_use)
            .unwrap_or_else(|error| {
                self.file_stays(&error);
                0
            })
    }

    /// Ends the supply and removes what it made; after the thread's end.
    pub(crate) fn clear_supply(&self) {
        if let Some(unused) = self.files.preallocator.take() {
            let path = names::wal(&self.id.wal_dir, unused.number);
            drop(unused);
            self.files.trash.put(path);
        }
    }
}
