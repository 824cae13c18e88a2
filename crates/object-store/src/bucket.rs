//! What the file system, its files and its locks share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use drumlin_base::{Error, Result};
use drumlin_fs::Clock;
use object_store::ObjectStore;
use object_store::path::Path as Location;
use parking_lot::Mutex;

use crate::calls::Calls;
use crate::lock::Lease;
use crate::place::Limits;

/// A store below a prefix.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) calls: Arc<Calls>,
    pub(crate) root: PathBuf,
    pub(crate) prefix: Location,
    pub(crate) limits: Limits,
    pub(crate) clock: Arc<dyn Clock>,
    /// Directories that were made here; a store has none.
    pub(crate) made: Mutex<BTreeSet<PathBuf>>,
    /// Locks that are held. Who has lost one changes nothing.
    pub(crate) held: Mutex<Vec<Weak<Lease>>>,
}

impl Bucket {
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.calls.store)
    }

    /// # Errors
    /// `Locked` when a lock that was taken here is another's now.
    pub(crate) fn check_lock(&self) -> Result<()> {
        let held = self.held.lock();
        let live = held.iter().filter_map(Weak::upgrade);
        let mut live = live.map(|lease| lease.check());
        match drumlin_base::bug!("object-lock-lost-unseen") {
            true => Ok(()),
            false => live.find(Result::is_err).unwrap_or(Ok(())),
        }
    }

    /// # Errors
    /// `InvalidArgument` of a path elsewhere, or one that can be no object's name.
    pub(crate) fn location(&self, path: &Path) -> Result<Location> {
        let refuse = |why: &str| Error::invalid_argument(why.to_owned()).with_file(path);
        let below = path.strip_prefix(&self.root).map_err(|_| {
            let root = self.root.display();
            refuse(&format!("the path is not below {root}"))
        })?;
        let mut location = self.prefix.clone();
        for part in below {
            let part = part.to_str().filter(|part| *part != "..");
            let part = part.ok_or_else(|| refuse("no object is named so"))?;
            location = location.join(part);
        }
        Ok(location)
    }
}
