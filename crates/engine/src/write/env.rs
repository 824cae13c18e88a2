//! The store as the commit pipeline sees it.

use std::sync::Arc;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, Ordering};

use crate::background::background::Background;
use crate::store::store::Store;

/// See the module. `admission`, `rotate` and `apply` are its methods, `commit_env` the pipeline's view of them.
pub(crate) struct WriteEnv {
    pub(crate) store: Arc<Store>,
    pub(crate) background: Arc<Background>,
    /// Families whose memtable the next leader rotates.
    pub(crate) full: FullFamilies,
    /// Whether some write skipped the WAL since the database was opened.
    pub(crate) unlogged: AtomicBool,
}

impl WriteEnv {
    /// The environment of `store`, whose full memtables `background` flushes.
    pub(crate) fn new(store: Arc<Store>, background: Arc<Background>) -> Self {
        Self {
            store,
            background,
            full: FullFamilies::default(),
            unlogged: AtomicBool::new(false),
        }
    }
}

/// Families whose memtable is full: noted by those who fill them, rotated by the next leader.
#[derive(Debug, Default)]
pub(crate) struct FullFamilies {
    any: AtomicBool,
    ids: Mutex<Vec<u32>>,
}

impl FullFamilies {
    /// Notes `id`, once.
    #[cold]
    pub(crate) fn add(&self, id: u32) {
        let mut ids = self.ids.lock();
        if !ids.contains(&id) {
            ids.push(id);
        }
        self.any.store(true, Ordering::Relaxed);
    }

    /// Whether one is noted. One relaxed load: the next leader sees one that it misses.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// One of them.
    pub(crate) fn last(&self) -> Option<u32> {
        self.ids.lock().last().copied()
    }

    /// Forgets `id`.
    pub(crate) fn remove(&self, id: u32) {
        let mut ids = self.ids.lock();
        ids.retain(|full| *full != id);
        self.any.store(!ids.is_empty(), Ordering::Relaxed);
    }
}
