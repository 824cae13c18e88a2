//! The thread that makes WAL files ahead.

use drumlin_base::Result;

use crate::db::engine::Engine;
use crate::files::names;
use crate::wal::supply::{FreshWal, Task};

impl Engine {
    /// The thread's life.
    pub(crate) fn supply_wals(&self) {
        loop {
            match self.supply.next_task() {
                Task::End => return,
                Task::Prepare(file) => file.prepare(),
                Task::Make => self.make_wal_ahead(),
            }
        }
    }

    /// Makes the next WAL. A failure is told and left at that: the writer who needs the file tries
    /// for itself and knows what to make of it.
    fn make_wal_ahead(&self) {
        let (number, spare) = {
            // Numbers are taken under this lock, see `switch_wal`.
            let mut state = self.lock_state();
            if !self.supply.begin() {
                return;
            }
            (self.numbers.take(), state.spare_wals.pop())
        };
        match self.supply.make(number, spare) {
            Ok(fresh) => self.supply.deliver(Some(fresh)),
            Err(error) => {
                // What there is of it holds nothing and does no harm; the next open removes it.
                let _ = self.env.files.remove(&names::wal(&self.wal_dir, number));
                // First: a writer may be waiting, and a listener may wait for that one.
                self.supply.deliver(None);
                tracing::warn!(%error, "no WAL could be made ahead");
                self.tell(&error);
                self.notices.tell();
            }
        }
    }

    /// Ends the supply and removes what it made; after the thread's end.
    pub(crate) fn clear_supply(&self) {
        if let Some(unused) = self.supply.take() {
            let path = names::wal(&self.wal_dir, unused.number);
            drop(unused);
            self.trash.put(path);
        }
    }

    /// A WAL nothing was written to yet: the one made ahead, or one made now.
    ///
    /// Requires: the state's lock is held, under which numbers of WAL files are taken.
    pub(crate) fn fresh_wal(&self, spares: &mut Vec<u64>) -> Result<FreshWal> {
        match self.supply.take() {
            Some(fresh) => Ok(fresh),
            None => self.supply.make(self.numbers.take(), spares.pop()),
        }
    }
}
