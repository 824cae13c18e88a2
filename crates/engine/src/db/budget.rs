//! The memory budget as a program sees it: its limit, its uses by name, and accounts for what the program holds itself.

use std::fmt;
use std::sync::Arc;

use drumlin_base::{Account, MemoryBudget, Result};

use crate::db::handle::Db;
use crate::options::settings::check_memory_budget;

/// The one memory budget of a database, [`crate::Options::memory_budget`]. A program that keeps memory of its own beside the
/// database, such as the buffers of its connections, charges it to an account: then cached blocks leave room for it.
///
/// ```
/// # fn main() -> drumlin::Result<()> {
/// # let env = drumlin::Env::system().with_files(std::sync::Arc::new(drumlin_fs::StrictMemFileSystem::new()));
/// # let options = drumlin::Options { env, create_if_missing: true, memory_budget: Some(64 << 20), ..Default::default() };
/// # let db = drumlin::Db::open("/db", options)?;
/// let budget = db.budget();
/// let buffers = budget.account("buffers");
/// buffers.charge(10 << 20);
/// budget.set_limit_bytes(128 << 20)?;
/// assert!(budget.used_by_name().contains(&("buffers", 10 << 20)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Budget {
    budget: Arc<MemoryBudget>,
}

impl Db {
    /// The memory budget. It may be kept, and used after the database is closed.
    pub fn budget(&self) -> Budget {
        Budget {
            budget: Arc::clone(&self.engine.store.caches.budget),
        }
    }
}

impl Budget {
    /// The limit in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.budget.limit_bytes()
    }

    /// Changes the limit while the database runs. A lower one has cached blocks and the holders of accounts give memory back
    /// before this returns; memtables beyond it are flushed by the next writes. Sizes that follow from the budget and are
    /// not set, such as that of a memtable, follow the new one; those of levels and of WAL files stay as they were at the
    /// opening. Cached blocks never take more than the machine had at the opening.
    ///
    /// # Errors
    /// `InvalidArgument` below 1 MiB.
    pub fn set_limit_bytes(&self, bytes: usize) -> Result<()> {
        check_memory_budget(bytes)?;
        self.budget.set_limit_bytes(bytes);
        Ok(())
    }

    /// Bytes in use, accounts included.
    pub fn used_bytes(&self) -> usize {
        self.budget.used_total()
    }

    /// Bytes in use by name: `memtables`, cached `blocks`, indexes and filters of open `tables`, buffers of `jobs`, `spare` pages that memtables
    /// and cached blocks gave back, then the accounts in the order in which they were opened. Takes a lock that opening an account takes, too.
    pub fn used_by_name(&self) -> Vec<(&'static str, usize)> {
        self.budget.used_by_name()
    }

    /// An account for memory of the program's own, told as `name`; accounts of one name are told together. Dropping it
    /// gives back what is charged to it. Nothing is refused: a program that can give memory back registers for it by
    /// [`Account::reclaim_from`].
    pub fn account(&self, name: &'static str) -> Arc<Account> {
        self.budget.account(name)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.budget.fmt(f)
    }
}
