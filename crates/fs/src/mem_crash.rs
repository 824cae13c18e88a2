//! The in-memory disk after a power cut: a copy of its tree, with each unsynced change kept or lost.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use drumlin_base::rng::Rng;
use parking_lot::Mutex;

use crate::mem_disk::{DirData, DirNode, FileNode, NameChange, Names, Node};
use crate::mem_image::CrashPolicy;

/// A crash being worked out: copies the tree, deciding for each change whether it is kept.
struct Crash {
    policy: CrashPolicy,
    cut: u64,
    rng: Rng,
    /// By the old node's address: a file with two names stays one file.
    files: HashMap<usize, Arc<FileNode>>,
    dirs: HashMap<usize, Arc<DirNode>>,
    queue: VecDeque<(Arc<DirNode>, Arc<DirNode>)>,
    used_bytes: u64,
}

/// The tree below `root` after a power cut, and the bytes of its files together. `cut` is the last moment that
/// [`CrashPolicy::PrefixInTime`] keeps.
pub(crate) fn after_crash(
    root: &Arc<DirNode>,
    policy: CrashPolicy,
    cut: u64,
    rng: Rng,
) -> (Arc<DirNode>, u64) {
    let mut crash = Crash {
        policy,
        cut,
        rng,
        files: HashMap::new(),
        dirs: HashMap::new(),
        queue: VecDeque::new(),
        used_bytes: 0,
    };
    let copy = crash.dir(root);
    crash.run();
    (copy, crash.used_bytes)
}

impl Crash {
    fn run(&mut self) {
        while let Some((old, new)) = self.queue.pop_front() {
            let old = old.data.lock();
            let mut data = new.data.lock();
            let now = self.names(&old);
            data.now = self.copy_names(&now);
            for node in data.now.values() {
                if let Node::File(file) = node {
                    let mut file = file.data.lock();
                    file.links += 1;
                    if file.links == 1 {
                        self.used_bytes += file.now().size();
                    }
                }
            }
            if self.policy == CrashPolicy::KeepAll {
                data.durable = self.copy_names(&old.durable);
                data.changes = self.copy_changes(&old.changes);
            } else {
                data.durable = data.now.clone();
            }
        }
    }

    /// The names a directory has after the crash.
    fn names(&mut self, dir: &DirData) -> Names {
        if self.policy == CrashPolicy::KeepAll {
            return dir.now.clone();
        }
        let mut names = dir.durable.clone();
        for change in &dir.changes {
            let kept = match self.policy {
                CrashPolicy::KeepNothing => false,
                CrashPolicy::PrefixInTime => change.moment <= self.cut,
                _ => self.rng.one_in(2),
            };
            if kept {
                change.apply(&mut names);
            }
        }
        names
    }

    fn copy_names(&mut self, names: &Names) -> Names {
        let copied = names
            .iter()
            .map(|(name, node)| (name.clone(), self.copy(node)));
        copied.collect()
    }

    fn copy_changes(&mut self, changes: &[NameChange]) -> Vec<NameChange> {
        let mut copies = Vec::with_capacity(changes.len());
        for change in changes {
            let names = change.names.iter();
            let names =
                names.map(|(name, node)| (name.clone(), node.as_ref().map(|n| self.copy(n))));
            copies.push(NameChange {
                moment: change.moment,
                names: names.collect(),
            });
        }
        copies
    }

    fn copy(&mut self, node: &Node) -> Node {
        match node {
            Node::File(file) => Node::File(self.file(file)),
            Node::Dir(dir) => Node::Dir(self.dir(dir)),
        }
    }

    fn dir(&mut self, old: &Arc<DirNode>) -> Arc<DirNode> {
        let key = Arc::as_ptr(old) as usize;
        let queue = &mut self.queue;
        let new = self.dirs.entry(key).or_insert_with(|| {
            let new: Arc<DirNode> = Arc::default();
            queue.push_back((Arc::clone(old), Arc::clone(&new)));
            new
        });
        Arc::clone(new)
    }

    fn file(&mut self, old: &Arc<FileNode>) -> Arc<FileNode> {
        let key = Arc::as_ptr(old) as usize;
        let new = self.files.entry(key).or_insert_with(|| {
            let data = old.data.lock();
            let data = data.after_crash(self.policy, self.cut, &mut self.rng);
            Arc::new(FileNode {
                data: Mutex::new(data),
            })
        });
        Arc::clone(new)
    }
}
