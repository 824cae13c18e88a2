//! A disk in memory that forgets unsynced bytes and names.
//!
//! Bytes are durable once their file was synced, names once their directory was. A crash may lose everything
//! else, in every way that the chosen [`CrashPolicy`] allows. So a test can cut the power at any moment and
//! open the result. Nothing unsynced is durable before the crash decides it.
//!
//! Names: a directory has its present names, the durable ones, and the changes between the two in order. The
//! names changed by a rename within one directory are one change. A rename across directories is two, and
//! syncing one directory keeps one of them. The root is durable; a directory made in it is durable once the
//! root was synced.
//!
//! Lock order: `Shared::global`, then a directory, then a file. Every change takes `global`, so a crash sees
//! all of them or none.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::rng::Rng;
use drumlin_base::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::file_system::{
    CreateOptions, FileInfo, FileLock, FileSystem, RandomAccessFile, WritableFile, has_second_name,
};
use crate::mem_crash::after_crash;
use crate::mem_disk::{DirNode, FileNode, Global, Node, Shared, change_names, os_error};
use crate::mem_file::{MemReader, MemWriter};
use crate::mem_image::{CrashPolicy, FileData};

/// See the module. Clones share one disk.
#[derive(Clone, Debug)]
pub struct StrictMemFileSystem {
    shared: Arc<Shared>,
}

impl Default for StrictMemFileSystem {
    fn default() -> Self {
        Self::new()
    }
}

impl StrictMemFileSystem {
    /// An empty disk without limit.
    pub fn new() -> Self {
        Self::of_root(Arc::default(), 0, u64::MAX)
    }

    fn of_root(root: Arc<DirNode>, used_bytes: u64, quota_bytes: u64) -> Self {
        let global = Global {
            moment: 0,
            used_bytes,
            quota_bytes,
            locked: BTreeSet::new(),
        };
        Self {
            shared: Arc::new(Shared {
                global: Mutex::new(global),
                root,
                dead: AtomicBool::new(false),
                cached_only: AtomicBool::new(false),
            }),
        }
    }

    /// Cuts the power: this disk and all its handles fail from now on. Returns the disk after the
    /// crash, which depends on history, seed and policy alone.
    pub fn crash(&self, seed: u64, policy: CrashPolicy) -> Self {
        let image = self.crash_image(seed, policy);
        self.shared.dead.store(true, Ordering::Release);
        image
    }

    /// The disk that [`Self::crash`] would return, while this disk goes on.
    pub fn crash_image(&self, seed: u64, policy: CrashPolicy) -> Self {
        let global = self.shared.global.lock();
        let mut rng = Rng::new(seed);
        let moments = self.unsynced_moments();
        // One past the end stands for before the first: nothing is kept.
        let cut = rng.below(moments.len() as u64 + 1) as usize;
        let cut = moments.get(cut).copied().unwrap_or(0);
        let (root, used_bytes) = after_crash(&self.shared.root, policy, cut, rng);
        let after = Self::of_root(root, used_bytes, global.quota_bytes);
        after.shared.global.lock().moment = global.moment;
        after
    }

    /// When each change that a power cut may lose was made, in no order.
    fn unsynced_moments(&self) -> Vec<u64> {
        let mut moments = Vec::new();
        let mut dirs = vec![Arc::clone(&self.shared.root)];
        while let Some(dir) = dirs.pop() {
            let data = dir.data.lock();
            moments.extend(data.changes.iter().map(|change| change.moment));
            for node in data.now.values() {
                match node {
                    Node::File(file) => moments.extend(file.data.lock().unsynced_moments()),
                    Node::Dir(dir) => dirs.push(Arc::clone(dir)),
                }
            }
        }
        moments
    }

    /// Limits the bytes of all files together. Bytes over the limit stay, growth is `NoSpace`.
    pub fn set_quota(&self, bytes: u64) {
        self.shared.global.lock().quota_bytes = bytes;
    }

    /// Whether requests to bypass the page cache are granted: true at first. Nothing else changes.
    pub fn set_takes_direct(&self, takes: bool) {
        self.shared.cached_only.store(!takes, Ordering::Relaxed);
    }

    /// Bytes of all files together, space reserved for logs included.
    pub fn used_bytes(&self) -> u64 {
        self.shared.global.lock().used_bytes
    }

    /// Acts as a failed sync does: the file's unsynced bytes count as clean. Reads see them, a
    /// later sync says `Ok`, a crash loses them.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn forget_unsynced(&self, path: &Path) -> Result<()> {
        self.file(path)?.data.lock().forget_changes();
        Ok(())
    }

    /// Makes everything durable, names and bytes: a starting point for tests.
    pub fn sync_all(&self) {
        let _global = self.shared.global.lock();
        let mut dirs = vec![Arc::clone(&self.shared.root)];
        while let Some(dir) = dirs.pop() {
            let mut data = dir.data.lock();
            data.changes.clear();
            data.durable = data.now.clone();
            for node in data.now.values() {
                match node {
                    Node::File(file) => file.data.lock().sync(),
                    Node::Dir(dir) => dirs.push(Arc::clone(dir)),
                }
            }
        }
    }

    /// Flips one bit of a file, on the disk and in memory.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` past the end.
    pub fn flip(&self, path: &Path, offset: u64, bit: u8) -> Result<()> {
        let file = self.file(path)?;
        let mut data = file.data.lock();
        let mut byte = [0];
        if data.now().read(offset, &mut byte) == 0 {
            return Err(Error::invalid_argument("the bit lies past the end").with_file(path));
        }
        let flipped = byte.map(|byte| byte ^ (1 << (bit % 8)));
        data.tamper(|image| image.write(offset, &flipped));
        Ok(())
    }

    /// Overwrites bytes of a file, on the disk and in memory; may make it longer.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
        let file = self.file(path)?;
        file.data.lock().tamper(|image| image.write(offset, bytes));
        Ok(())
    }

    /// Cuts or zero-extends a file, on the disk and in memory.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn resize(&self, path: &Path, size: u64) -> Result<()> {
        let file = self.file(path)?;
        file.data.lock().tamper(|image| image.resize(size));
        Ok(())
    }

    /// Every file's path and content as programs see them now.
    pub fn snapshot_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let _global = self.shared.global.lock();
        let mut files = BTreeMap::new();
        let mut dirs = vec![(PathBuf::from("/"), Arc::clone(&self.shared.root))];
        while let Some((path, dir)) = dirs.pop() {
            for (name, node) in &dir.data.lock().now {
                let path = path.join(name);
                match node {
                    Node::Dir(dir) => dirs.push((path, Arc::clone(dir))),
                    Node::File(file) => {
                        let content = file.data.lock().now().range(0, u64::MAX);
                        files.insert(path, content);
                    }
                }
            }
        }
        files
    }

    fn node(&self, path: &Path) -> Result<Node> {
        let mut node = Node::Dir(Arc::clone(&self.shared.root));
        for name in names(path) {
            let Node::Dir(dir) = node else {
                return Err(os_error("find", path, libc::ENOTDIR));
            };
            let next = dir.data.lock().now.get(&name).cloned();
            node = next.ok_or_else(|| os_error("find", path, libc::ENOENT))?;
        }
        Ok(node)
    }

    fn file(&self, path: &Path) -> Result<Arc<FileNode>> {
        match self.node(path)? {
            Node::File(file) => Ok(file),
            Node::Dir(_) => Err(os_error("open", path, libc::EISDIR)),
        }
    }

    fn dir(&self, path: &Path) -> Result<Arc<DirNode>> {
        match self.node(path)? {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(os_error("open", path, libc::ENOTDIR)),
        }
    }

    /// The directory that holds (or would hold) `path`, and its name there.
    fn place(&self, path: &Path) -> Result<(Arc<DirNode>, OsString)> {
        let mut parts = names(path);
        let name = parts.pop();
        let name = name.ok_or_else(|| os_error("name", path, libc::EISDIR))?;
        Ok((self.dir(&parts.iter().collect::<PathBuf>())?, name))
    }

    /// The file `path`, made if it is not there; with `made_once` it must not be there.
    fn file_or_new(
        &self,
        global: &mut Global,
        path: &Path,
        made_once: bool,
    ) -> Result<Arc<FileNode>> {
        let (dir, name) = self.place(path)?;
        let found = dir.data.lock().now.get(&name).cloned();
        match found {
            Some(Node::File(_)) if made_once => Err(os_error("create", path, libc::EEXIST)),
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(os_error("create", path, libc::EISDIR)),
            None => {
                let data = Mutex::new(FileData::default());
                let file = Arc::new(FileNode { data });
                let node = Node::File(Arc::clone(&file));
                change_names(global, &dir, vec![(name, Some(node))]);
                Ok(file)
            }
        }
    }

    fn rename_locked(&self, global: &mut Global, from: &Path, to: &Path) -> Result<()> {
        let node = self.node(from)?;
        let (from_dir, from_name) = self.place(from)?;
        let (to_dir, to_name) = self.place(to)?;
        if Arc::ptr_eq(&from_dir, &to_dir) {
            if from_name != to_name {
                let names = vec![(from_name, None), (to_name, Some(node))];
                change_names(global, &from_dir, names);
            }
        } else {
            change_names(global, &to_dir, vec![(to_name, Some(node))]);
            change_names(global, &from_dir, vec![(from_name, None)]);
        }
        Ok(())
    }
}

impl FileSystem for StrictMemFileSystem {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        let mut global = self.shared.change()?;
        let file = self.file_or_new(&mut global, path, options.kind.is_made_once())?;
        let moment = global.tick();
        let mut data = file.data.lock();
        global.resize(path, data.now().size(), 0)?;
        data.resize(moment, 0);
        drop(data);
        drop(global);
        let writer = MemWriter::new(Arc::clone(&self.shared), file, path, options)?;
        Ok(Box::new(writer))
    }

    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        let mut global = self.shared.change()?;
        let file = self.file(old)?;
        if file.data.lock().links > 1 {
            return Err(has_second_name(old));
        }
        self.rename_locked(&mut global, old, new)?;
        drop(global);
        let writer = MemWriter::new(Arc::clone(&self.shared), file, new, options)?;
        Ok(Box::new(writer))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        let _global = self.shared.change()?;
        let reader = MemReader::new(Arc::clone(&self.shared), self.file(path)?);
        Ok(Arc::new(reader))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.open(path)
    }

    fn takes_direct(&self, path: &Path) -> Result<bool> {
        let _global = self.shared.change()?;
        self.file(path)?;
        Ok(!self.shared.cached_only.load(Ordering::Relaxed))
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let _global = self.shared.change()?;
        let dir = self.dir(dir)?;
        let names = dir.data.lock().now.keys().map(PathBuf::from).collect();
        Ok(names)
    }

    fn info(&self, path: &Path) -> Result<FileInfo> {
        let _global = self.shared.change()?;
        Ok(match self.node(path)? {
            Node::Dir(_) => FileInfo {
                size: 0,
                is_dir: true,
                links: 1,
                is_symlink: false,
            },
            Node::File(file) => {
                let data = file.data.lock();
                FileInfo {
                    size: data.now().size(),
                    is_dir: false,
                    links: u64::from(data.links),
                    is_symlink: false,
                }
            }
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut global = self.shared.change()?;
        self.rename_locked(&mut global, from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut global = self.shared.change()?;
        let file = self.file(from)?;
        let (dir, name) = self.place(to)?;
        if dir.data.lock().now.contains_key(&name) {
            return Err(os_error("link", to, libc::EEXIST));
        }
        change_names(&mut global, &dir, vec![(name, Some(Node::File(file)))]);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut global = self.shared.change()?;
        self.file(path)?;
        let (dir, name) = self.place(path)?;
        change_names(&mut global, &dir, vec![(name, None)]);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut global = self.shared.change()?;
        let mut dir = Arc::clone(&self.shared.root);
        for name in names(path) {
            let found = dir.data.lock().now.get(&name).cloned();
            dir = match found {
                Some(Node::Dir(dir)) => dir,
                Some(Node::File(_)) => return Err(os_error("create", path, libc::ENOTDIR)),
                None => {
                    let made: Arc<DirNode> = Arc::default();
                    let node = Node::Dir(Arc::clone(&made));
                    change_names(&mut global, &dir, vec![(name, Some(node))]);
                    made
                }
            };
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<bool> {
        let mut global = self.shared.change()?;
        let (dir, name) = self.place(path)?;
        let is_new = !dir.data.lock().now.contains_key(&name);
        if is_new {
            let made = Node::Dir(Arc::default());
            change_names(&mut global, &dir, vec![(name, Some(made))]);
        }
        Ok(is_new)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut global = self.shared.change()?;
        if !self.dir(path)?.data.lock().now.is_empty() {
            return Err(os_error("remove the directory", path, libc::ENOTEMPTY));
        }
        let (dir, name) = self.place(path)?;
        change_names(&mut global, &dir, vec![(name, None)]);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let _global = self.shared.change()?;
        let dir = self.dir(path)?;
        let mut data = dir.data.lock();
        let data = &mut *data;
        for change in data.changes.drain(..) {
            change.apply(&mut data.durable);
        }
        Ok(())
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        let _global = self.shared.change()?;
        self.file(path)?.data.lock().sync();
        Ok(())
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        let mut global = self.shared.change()?;
        let file = self.file(path)?;
        let mut data = file.data.lock();
        global.resize(path, data.now().size(), size)?;
        data.resize(global.tick(), size);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let mut global = self.shared.change()?;
        let file = self.file_or_new(&mut global, path, false)?;
        if !global.locked.insert(Arc::as_ptr(&file) as usize) {
            let holder = format!("held by process {}, this one", std::process::id());
            let message = format!("the database is locked: {holder}");
            return Err(Error::new(ErrorKind::Locked, message).with_file(path));
        }
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(MemLock { shared, file }))
    }

    fn free_space(&self, _path: &Path) -> Result<u64> {
        let global = self.shared.change()?;
        Ok(global.quota_bytes.saturating_sub(global.used_bytes))
    }
}

#[derive(Debug)]
struct MemLock {
    shared: Arc<Shared>,
    file: Arc<FileNode>,
}

impl FileLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        let key = Arc::as_ptr(&self.file) as usize;
        self.shared.global.lock().locked.remove(&key);
    }
}

/// The names along a path, from the root.
fn names(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name.to_os_string()),
            Component::ParentDir => {
                names.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}
