//! The in-memory disk itself: its directories and files, the moments of its changes, and its lock.
//!
//! Invariant: a change is made with [`Global`] locked, and takes a new moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::mem_image::FileData;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    File(Arc<FileNode>),
    Dir(Arc<DirNode>),
}

#[derive(Debug)]
pub(crate) struct FileNode {
    pub(crate) data: Mutex<FileData>,
}

pub(crate) type Names = BTreeMap<OsString, Node>;

#[derive(Debug, Default)]
pub(crate) struct DirNode {
    pub(crate) data: Mutex<DirData>,
}

#[derive(Debug, Default)]
pub(crate) struct DirData {
    /// The names that programs see.
    pub(crate) now: Names,
    pub(crate) durable: Names,
    /// Changes since the last sync, in order.
    pub(crate) changes: Vec<NameChange>,
}

/// Names given (or taken, with `None`) at one moment, together.
#[derive(Debug)]
pub(crate) struct NameChange {
    pub(crate) moment: u64,
    pub(crate) names: Vec<(OsString, Option<Node>)>,
}

impl NameChange {
    pub(crate) fn apply(&self, names: &mut Names) {
        for (name, node) in &self.names {
            match node {
                Some(node) => names.insert(name.clone(), node.clone()),
                None => names.remove(name),
            };
        }
    }
}

#[derive(Debug)]
pub(crate) struct Global {
    pub(crate) moment: u64,
    pub(crate) used_bytes: u64,
    pub(crate) quota_bytes: u64,
    /// Files that are locked, by the address of their node.
    pub(crate) locked: BTreeSet<usize>,
}

impl Global {
    /// The next moment of the disk's life.
    pub(crate) fn tick(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Accounts for a file that grows or shrinks.
    pub(crate) fn resize(&mut self, path: &Path, old: u64, new: u64) -> Result<()> {
        let used = self.used_bytes.saturating_sub(old).saturating_add(new);
        if new > old && used > self.quota_bytes {
            return Err(os_error("write", path, libc::ENOSPC));
        }
        self.used_bytes = used;
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) global: Mutex<Global>,
    pub(crate) root: Arc<DirNode>,
    pub(crate) dead: AtomicBool,
    /// Whether it refuses to go past its cache.
    pub(crate) cached_only: AtomicBool,
}

impl Shared {
    /// The lock every change takes.
    pub(crate) fn change(&self) -> Result<MutexGuard<'_, Global>> {
        let global = self.global.lock();
        self.check_alive()?;
        Ok(global)
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.dead.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Io, "the machine lost power"));
        }
        Ok(())
    }
}

/// Gives and takes names in one directory at one moment.
pub(crate) fn change_names(
    global: &mut Global,
    dir: &DirNode,
    names: Vec<(OsString, Option<Node>)>,
) {
    let moment = global.tick();
    let change = NameChange { moment, names };
    let mut data = dir.data.lock();
    for (name, node) in &change.names {
        if let Some(Node::File(file)) = node {
            file.data.lock().links += 1;
        }
        if let Some(Node::File(file)) = data.now.get(name) {
            let mut data = file.data.lock();
            data.links = data.links.saturating_sub(1);
        }
    }
    for (name, _) in &change.names {
        if let Some(Node::File(file)) = data.now.get(name) {
            let data = file.data.lock();
            if data.links == 0 {
                let size = data.now().size();
                global.used_bytes = global.used_bytes.saturating_sub(size);
            }
        }
    }
    assert!(
        data.changes
            .last()
            .is_none_or(|last| last.moment < change.moment),
        "each change takes a new moment"
    );
    change.apply(&mut data.now);
    data.changes.push(change);
}

/// The error that the operating system would give.
pub(crate) fn os_error(op: &str, path: &Path, code: i32) -> Error {
    Error::io(op, path, io::Error::from_raw_os_error(code))
}
