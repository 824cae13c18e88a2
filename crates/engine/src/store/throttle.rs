//! The speed of writers and the memory of memtables: judged from running jobs, waiting work and memory held.
//!
//! The memtables of several families share half of the budget. A family alone keeps to its own line of memtables,
//! which by default is that half.

use std::time::Duration;

use drumlin_base::MemoryUse;

use crate::store::state::State;
use crate::store::store::Store;
use crate::watch::events::{PressureInfo, WritePressure};
use crate::watch::notices::Notice;
use crate::watch::pressure::Removal;

impl Store {
    /// Sets anew how fast writers may go.
    pub(crate) fn update_write_rate(&self, now: Duration) {
        if self.runs_inline() {
            return; // Waiting threads do the work: nothing drains while a writer sleeps.
        }
        let families = self.families.load();
        let removal = Removal {
            waiting: self.files.trash.waste_bytes(),
            freed: self.files.trash.freed(),
        };
        let tell = |id, from, to| self.note_pressure(id, from, to);
        let board = &self.watch.board;
        let needed = board.look(now, removal, families.values(), &tell);
        self.files.trash.set_store_bytes(needed);
    }

    /// Tells the listener of a change, unless the family is gone.
    pub(crate) fn note_pressure(&self, id: u32, from: WritePressure, to: WritePressure) {
        if let Some(family) = self.families.load().get(&id) {
            self.watch.notices.note(|| {
                Notice::PressureChanged(PressureInfo {
                    family: family.name.clone(),
                    from,
                    to,
                })
            });
        }
    }

    /// Whether a full memtable has to wait for the flushes of others.
    pub(crate) fn memtables_wait(&self, state: &State) -> bool {
        state.families.len() > 1
            && self.caches.budget.used(MemoryUse::Memtables) > self.memtables_share()
            && state.families.values().any(|f| !f.immutables.is_empty())
    }

    /// Half of the budget, or the size set for the largest line of memtables.
    pub(crate) fn memtables_share(&self) -> usize {
        let families = self.families.load();
        let lines = families.values().map(|family| {
            family
                .settings()
                .tuning
                .memtables_max
                .saturating_mul(family.write_buffer())
        });
        let longest = lines.max().unwrap_or(0);
        longest.max(self.caches.budget.limit_bytes() / 2)
    }
}
