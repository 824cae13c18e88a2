//! The background's threads: those that run jobs, the one that removes files, the one that makes WALs ahead.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::JoinHandle;

use crate::background::background::Background;
use crate::files::names;
use crate::store::store::RETRY_MAX;
use crate::wal::preallocator::Task;
use crate::watch::events::Health;

/// First pause after a failed job; doubles with each failure in a row.
const RETRY_FIRST: Duration = Duration::from_millis(50);

impl Background {
    /// Starts the threads. With two or more, the first is reserved for flushes, so that a long compaction never keeps
    /// a full memtable waiting.
    pub(crate) fn start(self: &Arc<Self>) -> Result<()> {
        let store = &self.store;
        let count = store.settings.threads();
        if count == 0 {
            return Ok(());
        }
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| -> Result<()> {
            let handle = store.id.env.spawner.spawn(name, body)?;
            self.helpers.lock().push(handle);
            Ok(())
        };
        let body = Arc::clone(store);
        spawn("drumlin-trash", Box::new(move || body.remove_trash()))?;
        store.files.preallocator.set_has_thread(true);
        let body = Arc::clone(self);
        spawn("drumlin-wal", Box::new(move || body.supply_wals()))?;
        self.set_threads(count)
    }

    /// Has `count` threads run jobs from now on: more are started, and those that are too many end after the job that
    /// they are at.
    ///
    /// Requires: `count` is not 0.
    ///
    /// # Errors
    /// `Io` where a thread cannot be had: there are as many as before. `Shutdown`.
    pub(crate) fn set_threads(self: &Arc<Self>, count: usize) -> Result<()> {
        assert!(count > 0, "a store with threads keeps some");
        let mut workers = self.workers.lock();
        self.store.check_open()?;
        let before = self.store.settings.threads();
        let missing: Vec<usize> = {
            let mut state = self.store.lock_state();
            self.store.settings.set_threads(count);
            (0..count)
                .filter(|index| state.threads.insert(*index))
                .collect()
        };
        for (at, &index) in missing.iter().enumerate() {
            if let Some(ended) = workers.remove(&index) {
                ended.join()?;
            }
            let name = match index == 0 && count > 1 {
                true => "drumlin-flush".to_owned(),
                false => format!("drumlin-{index}"),
            };
            let body = Arc::clone(self);
            match self
                .store
                .id
                .env
                .spawner
                .spawn(&name, Box::new(move || body.work(index)))
            {
                Ok(handle) => workers.insert(index, handle),
                Err(error) => {
                    let mut state = self.store.lock_state();
                    self.store.settings.set_threads(before);
                    for index in missing.iter().skip(at) {
                        state.threads.remove(index);
                    }
                    self.store.changed.notify_all();
                    return Err(error);
                }
            };
        }
        self.store.changed.notify_all();
        Ok(())
    }

    /// Waits until every thread has ended. `closing` is set and the threads are notified before.
    pub(crate) fn join(&self) -> Result<()> {
        let workers = std::mem::take(&mut *self.workers.lock()).into_values();
        let helpers = std::mem::take(&mut *self.helpers.lock());
        let joined = workers.chain(helpers).map(JoinHandle::join);
        joined.fold(Ok(()), Result::and)
    }
}

impl Background {
    /// The loop of background thread `index`.
    fn work(&self, index: usize) {
        loop {
            let job = {
                let mut state = self.store.lock_state();
                loop {
                    if self.store.closing.load(Ordering::Acquire) {
                        return;
                    }
                    let count = self.store.settings.threads();
                    if index >= count {
                        state.threads.remove(&index);
                        return;
                    }
                    let compacts = index > 0 || count == 1;
                    if let Some(job) = self.pick(&mut state, compacts) {
                        break job;
                    }
                    if compacts && self.store.health() == Health::Healthy {
                        // Files that readers kept when the last job ended: there may be no other job.
                        self.store.remove_obsolete(&mut state);
                    }
                    if self.store.watch.notices.are_waiting() {
                        drop(state);
                        self.store.watch.notices.deliver();
                        state = self.store.lock_state();
                        continue;
                    }
                    state.idle_threads += usize::from(compacts);
                    state = self.store.wait_for_background(state);
                    state.idle_threads -= usize::from(compacts);
                }
            };
            let failed = self.run(job, true).is_err();
            self.store.watch.notices.deliver();
            if failed {
                self.back_off();
            }
        }
    }

    /// Pauses after a failure, longer after each in a row. Other threads' work is no reason to end
    /// the pause: two that fail and wake each other would never rest.
    fn back_off(&self) {
        let failures = self.store.lock_state().failures_in_row.min(16);
        let pause = RETRY_FIRST
            .saturating_mul(1 << failures.saturating_sub(1))
            .min(RETRY_MAX);
        let state = self.store.lock_state();
        if !self.store.closing.load(Ordering::Acquire) {
            drop(self.store.retry.wait_for(state, pause));
        }
    }

    /// The loop of the thread that makes WALs ahead.
    pub(crate) fn supply_wals(&self) {
        loop {
            match self.store.files.preallocator.next_task() {
                Task::End => return,
                Task::Prepare(file) => file.prepare(),
                Task::Make => self.make_wal_ahead(),
            }
        }
    }

    /// Makes the next WAL. A failure is only reported: the writer that needs the file tries
    /// itself and handles the error.
    fn make_wal_ahead(&self) {
        let (number, spare) = {
            // Numbers are taken under this lock, see `switch_wal`.
            let mut state = self.store.lock_state();
            if !self.store.files.preallocator.start_making() {
                return;
            }
            (self.store.files.numbers.take(), state.spare_wals.pop())
        };
        match self.store.files.preallocator.make(number, spare) {
            Ok(fresh) => self.store.files.preallocator.finish_making(Some(fresh)),
            Err(error) => {
                // The unfinished file holds nothing and does no harm; the next open removes it.
                let _ = self
                    .store
                    .id
                    .env
                    .files
                    .remove(&names::wal(&self.store.id.wal_dir, number));
                // First: a writer may be waiting, and a listener may wait for that one.
                self.store.files.preallocator.finish_making(None);
                tracing::warn!(%error, "no WAL could be made ahead");
                self.store.watch.report_error(&error);
                self.store.watch.notices.deliver();
            }
        }
    }
}
