//! A handle that keeps nothing open.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::db::engine::{Engine, Running};
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;

/// What a listener or a cache of the program may hold of a database without keeping it open. Any thread.
#[derive(Clone)]
pub struct WeakDb {
    engine: Weak<Engine>,
    running: Weak<Running>,
    default: ColumnFamily,
}

impl fmt::Debug for WeakDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakDb").finish_non_exhaustive()
    }
}

impl Db {
    /// A handle that keeps nothing open.
    pub fn downgrade(&self) -> WeakDb {
        WeakDb {
            engine: Arc::downgrade(&self.engine),
            running: Arc::downgrade(&self.running),
            default: self.default_family().clone(),
        }
    }
}

impl WeakDb {
    /// The database; `None` once its last handle is gone. A listener that upgrades in an event may find itself with the last
    /// handle, and dropping that closes the database: close it with [`Db::close`] before the other handles go.
    pub fn upgrade(&self) -> Option<Db> {
        Some(Db {
            engine: self.engine.upgrade()?,
            running: self.running.upgrade()?,
            default: self.default.clone(),
        })
    }
}
