//! What the memtables of all families may take together.
//!
//! A family alone keeps to its own line of memtables, which by default is half of the budget. Several
//! families share that half: when it gets tight, the largest memtable is flushed before it is full,
//! and a full one waits for flushes until there is room again. Memtables that readers hold on to are
//! charged but cannot be waited for.

use drumlin_base::MemoryUse;

use crate::db::engine::{Engine, FamilyState, State};

impl Engine {
    /// Notes the family with the largest memtable as full when all families together are close to
    /// their share. The usual case is one load.
    pub(crate) fn bound_memtables(&self) {
        let used = self.budget.used(MemoryUse::Memtables);
        if used <= self.budget.limit_bytes() / 8 * 3 {
            return;
        }
        let share = self.memtables_share();
        if self.families.load().len() < 2 || used <= share / 4 * 3 {
            return;
        }
        let state = self.lock_state();
        let mutable = |family: &FamilyState| family.mutable.bytes();
        let all: usize = state.families.values().map(mutable).sum();
        // The rest is being flushed already.
        if all <= share / 2 {
            return;
        }
        let largest = state.families.iter().max_by_key(|(_, f)| mutable(f));
        if let Some((&id, _)) = largest {
            self.full.add(id);
        }
    }

    /// Whether a full memtable has to wait for the flushes of others.
    pub(crate) fn memtables_wait(&self, state: &State) -> bool {
        state.families.len() > 1
            && self.budget.used(MemoryUse::Memtables) > self.memtables_share()
            && state.families.values().any(|f| !f.immutables.is_empty())
    }

    /// Half of the budget, or what the largest line of memtables was set to.
    pub(crate) fn memtables_share(&self) -> usize {
        let families = self.families.load();
        let lines = families.values().map(|family| {
            family
                .tuning
                .memtables_max
                .saturating_mul(family.write_buffer)
        });
        let longest = lines.max().unwrap_or(0);
        longest.max(self.budget.limit_bytes() / 2)
    }
}
