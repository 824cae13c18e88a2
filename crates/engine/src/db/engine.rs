//! An open database: the store, its background, its write path, and the operations that need all three.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::{ErrorKind, Result, SeqNo};
use drumlin_fs::FileLock;
use drumlin_memtable::Memtable;

use crate::background::background::Background;
use crate::files::names;
use crate::store::state::State;
use crate::store::store::Store;
use crate::watch::events::Health;
use crate::write::commit::{CommitPipeline, LogState};
use crate::write::env::WriteEnv;

/// How often closing looks whether the last job has ended.
const JOB_END_PAUSE: Duration = Duration::from_millis(5);

/// See the module.
pub(crate) struct Engine {
    pub(crate) store: Arc<Store>,
    pub(crate) background: Arc<Background>,
    pub(crate) writes: CommitPipeline<WriteEnv>,
    /// Held until the database is closed: of its directory, and of one that its WAL has apart.
    pub(crate) locks: Mutex<Vec<Box<dyn FileLock>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.store.id.dir.display())
    }
}

impl Engine {
    /// Has the memtables of all families flushed, and waits until everything in them is in tables.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.store.check_writable()?;
        let ids: Vec<u32> = self.store.lock_state().families.keys().copied().collect();
        // One new WAL for all of them, instead of one for each.
        let (targets, left) = self.writes.run_exclusive(|log| -> Result<_> {
            self.store.check_open()?;
            self.writes.env.rotate_together(log, &ids)?;
            let state = self.store.lock_state();
            let (mut targets, mut left) = (Vec::new(), Vec::new());
            for (&id, family) in &state.families {
                match family.mutable.is_empty() {
                    true => targets.extend(
                        family
                            .immutables
                            .back()
                            .map(|i| (id, Arc::clone(&i.memtable))),
                    ),
                    // One more immutable memtable would have been too many.
                    false => left.push(id),
                }
            }
            Ok((targets, left))
        })?;
        for (id, target) in targets {
            self.background.wait_for_table_of(id, &target)?;
        }
        for id in left {
            match self.flush_family(id) {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => {} // Dropped meanwhile.
                flushed => flushed?,
            }
        }
        Ok(())
    }

    /// Rotates the family's memtable and waits until everything in it is in tables.
    pub(crate) fn flush_family(&self, id: u32) -> Result<()> {
        self.store.check_writable()?;
        match self.rotate_once(id)? {
            Some(newest) => self.background.wait_for_table_of(id, &newest),
            None => Ok(()),
        }
    }

    /// Rotates the memtable that the family has now, unless a writer does so first. The newest of its
    /// immutable memtables; `None` if it has none.
    fn rotate_once(&self, id: u32) -> Result<Option<Arc<Memtable>>> {
        let first = {
            let mut state = self.store.lock_state();
            Arc::clone(&state.family_mut(id)?.mutable)
        };
        let is_first = |state: &State| {
            let family = state.families.get(&id);
            family.is_some_and(|family| Arc::ptr_eq(&family.mutable, &first))
        };
        loop {
            // Without the lead: writers go on meanwhile, and one of them may do it.
            let state = self
                .background
                .wait_until(|state| !is_first(state) || self.writes.env.has_place(state, id))?;
            if !is_first(&state) {
                return Ok(Some(first));
            }
            drop(state);
            match self.writes.run_exclusive(|log| self.rotate_now(log, id)) {
                Err(error) if error.kind() == ErrorKind::Busy => {} // Another writer took the place.
                rotated => return rotated,
            }
        }
    }

    /// Rotates the family's memtable, for whoever has the lead. The newest immutable one.
    fn rotate_now(&self, log: &mut LogState, id: u32) -> Result<Option<Arc<Memtable>>> {
        self.store.check_open()?;
        self.writes.env.rotate(log, id, true)?;
        let state = self.store.lock_state();
        let family = state.families.get(&id);
        let newest = family.and_then(|family| family.immutables.back());
        Ok(newest.map(|newest| Arc::clone(&newest.memtable)))
    }

    /// Syncs the WAL as a synced write would; the sequence number up to which it is synced.
    pub(crate) fn sync_wal(&self) -> Result<SeqNo> {
        self.store.check_open()?;
        if self.store.health() == Health::Poisoned {
            return Err(self.store.refusal(&self.store.lock_state()));
        }
        self.writes.sync()
    }

    /// Stops writes and the background, saves what no WAL holds, and releases the directory. Only
    /// the first call does anything.
    pub(crate) fn close(&self) -> Result<()> {
        self.store.id.process.check()?;
        for family in self.store.lock_state().families.values() {
            family.family.reads.walks.close(); // Walks that wait there own the engine.
        }
        if self.store.id.read_only {
            return Ok(());
        }
        {
            let mut state = self.store.lock_state();
            (state.pauses, state.removal_pauses) = (0, 0);
        }
        let saved = self.save_unlogged();
        if self.store.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let joined = self.end_background();
        let closed = self.writes.run_exclusive(|log| {
            log.wal
                .forget_below(self.store.oldest_wal.load(Ordering::Acquire));
            log.wal.close()
        });
        self.remove_what_nobody_needs();
        self.locks.lock().clear();
        saved.and(joined).and(closed)
    }

    /// Flushes what no WAL holds, if there is such a thing and the database is not being closed already.
    fn save_unlogged(&self) -> Result<()> {
        if !self.writes.env.unlogged.load(Ordering::Acquire)
            || self.store.closing.load(Ordering::Acquire)
        {
            return Ok(());
        }
        let families = self.store.families.load();
        families.keys().try_for_each(|id| self.flush_family(*id))
    }

    /// Wakes the threads that look at `closing`, and waits for those of the background.
    fn end_background(&self) -> Result<()> {
        drop(self.store.lock_state()); // Whoever looked at `closing` before it was set waits by now.
        self.store.changed.notify_all();
        self.store.retry.notify_all();
        self.store.published.wake_all();
        self.store.files.trash.end();
        self.store.files.preallocator.set_has_thread(false);
        self.background.join()
    }

    /// Removes the files that no version and no later opening needs, once no job and no checkpoint of a
    /// caller's own thread uses any.
    fn remove_what_nobody_needs(&self) {
        let spare = {
            let mut state = self.store.lock_state();
            while self.store.files.numbers.has_pending() || state.wal_pins > 0 {
                // They look at `closing` often.
                state = self.store.changed.wait_for(state, JOB_END_PAUSE);
            }
            self.store.remove_obsolete(&mut state);
            state.closed = true;
            *self.store.files.options.lock() = None;
            std::mem::take(&mut state.spare_wals)
        };
        for number in spare {
            let wal = names::wal(&self.store.id.wal_dir, number);
            self.store.files.trash.put(wal);
        }
        self.store.clear_supply();
        self.store.empty_trash();
    }
}

/// An open database whose threads run. Dropping it closes the database.
#[derive(Debug)]
pub(crate) struct Running {
    engine: Arc<Engine>,
}

impl Running {
    /// Starts the background of `engine`; nothing where it only reads.
    pub(crate) fn start(engine: &Arc<Engine>) -> Result<Arc<Self>> {
        let running = Arc::new(Self {
            engine: Arc::clone(engine),
        });
        if !engine.store.id.read_only {
            engine.background.start()?;
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.engine.store.id.process.is_present() {
            // A forked child has neither the threads nor the lock. Nothing of the engine is ever dropped there.
            let _kept = std::mem::ManuallyDrop::new(Arc::clone(&self.engine));
            return;
        }
        let closed = self.engine.close();
        self.engine.store.watch.notices.deliver();
        if let Err(error) = closed {
            tracing::error!(%error, "closing the database met an error nobody waits for");
        }
    }
}
