//! The accounts of the server at the engine's budget. They are brought up to date once a turn of the loop, and while a
//! script runs.

use std::sync::Arc;

use drumlin::{Account, Budget, Db};

use super::bounds::Bounds;

/// See the module.
#[derive(Debug)]
pub(crate) struct Purse {
    pub(crate) budget: Budget,
    pub(super) clients: Arc<Account>,
    /// Shared with the Lua state, which grows within a command.
    pub(crate) scripts: Arc<Account>,
    pub(super) tracking: Arc<Account>,
    pub(super) replication: Arc<Account>,
    pub(super) nodes: Arc<Account>,
}

impl Purse {
    /// Accounts at the budget of `db`.
    pub(crate) fn new(db: &Db) -> Self {
        let budget = db.budget();
        Self {
            clients: budget.account("clients"),
            scripts: budget.account("scripts"),
            tracking: budget.account("tracking"),
            replication: budget.account("replication"),
            nodes: budget.account("nodes"),
            budget,
        }
    }

    /// Takes a new `maxmemory` over.
    pub(crate) fn configure(&self, bounds: &Bounds) {
        if self.budget.limit_bytes() != bounds.budget_bytes {
            let set = self.budget.set_limit_bytes(bounds.budget_bytes);
            set.expect("the least of the bounds is more than the engine's least");
        }
    }
}
