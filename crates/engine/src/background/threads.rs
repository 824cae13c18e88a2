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
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| -> Result<()> {
            let handle = store.id.env.spawner.spawn(name, body)?;
            self.threads.lock().push(handle);
            Ok(())
        };
        let count = store.id.options.background_threads_count();
        if count > 0 {
            let body = Arc::clone(store);
            spawn("drumlin-trash", Box::new(move || body.remove_trash()))?;
            store.files.preallocator.set_has_thread(true);
            let body = Arc::clone(self);
            spawn("drumlin-wal", Box::new(move || body.supply_wals()))?;
        }
        for index in 0..count {
            let compacts = index > 0 || count == 1;
            let name = match compacts {
                true => format!("drumlin-{index}"),
                false => "drumlin-flush".to_owned(),
            };
            let body = Arc::clone(self);
            spawn(&name, Box::new(move || body.work(compacts)))?;
        }
        Ok(())
    }

    /// Waits until every thread has ended. `closing` is set and the threads are notified before.
    pub(crate) fn join(&self) -> Result<()> {
        let handles = std::mem::take(&mut *self.threads.lock());
        let joined = handles.into_iter().map(JoinHandle::join);
        joined.fold(Ok(()), Result::and)
    }
}

impl Background {
    /// The loop of a background thread.
    fn work(&self, compacts: bool) {
        loop {
            let job = {
                let mut state = self.store.lock_state();
                loop {
                    if self.store.closing.load(Ordering::Acquire) {
                        return;
                    }
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
