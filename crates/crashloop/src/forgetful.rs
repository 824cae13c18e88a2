//! A real directory that receives only synced bytes and names: killing the process is a power cut.
//!
//! The process works on a disk in memory. Each sync that succeeded there is carried out on the real files
//! before its caller sees it succeed: content that became durable, names that did, names that went. A
//! file is written under another name first and renamed, and new names come before old ones go. So at any
//! moment of a kill the real directory is one that some power cut could have left.
//!
//! Thread safety: syncs are carried out one after the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use drumlin::{Env, Result};
use drumlin_fs::{
    CrashPolicy, CreateOptions, FaultFileSystem, FileKind, FileSystem, Observer, OpKind,
    StrictMemFileSystem,
};

/// Largest file that is read back.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The content of the real directory, by path.
type Known = BTreeMap<PathBuf, Vec<u8>>;

/// See the module.
#[derive(Debug)]
struct Mirror {
    memory: StrictMemFileSystem,
    real: Arc<dyn FileSystem>,
    /// Where a file is written before it gets its name.
    draft: PathBuf,
    known: Mutex<Known>,
}

/// A file system over `root` whose changes arrive there when they are synced.
///
/// # Errors
/// Those of reading `root`.
pub(crate) fn forgetful(root: &Path) -> Result<FaultFileSystem> {
    let real = Env::system().files;
    let memory = StrictMemFileSystem::new();
    memory.create_dir_all(root)?;
    let mut known = Known::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for name in real.list(&dir)? {
            let path = dir.join(name);
            if real.info(&path)?.is_dir {
                memory.create_dir_all(&path)?;
                dirs.push(path);
                continue;
            }
            let content = real.read_file(&path, FILE_BYTES_MAX)?;
            let mut file = memory.create(&path, CreateOptions::new(FileKind::Other))?;
            file.append(&content)?;
            file.close()?;
            known.insert(path, content);
        }
    }
    memory.sync_all();
    let files = FaultFileSystem::over_memory(&memory);
    files.set_observer(Some(Arc::new(Mirror {
        memory,
        real,
        draft: root.join("draft"),
        known: Mutex::new(known),
    })));
    Ok(files)
}

impl Mirror {
    fn carry_out(&self) -> Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let image = self.memory.crash_image(0, CrashPolicy::KeepNothing);
        let durable = image.snapshot_files();
        for (path, content) in &durable {
            if known.get(path) == Some(content) {
                continue;
            }
            let options = CreateOptions::new(FileKind::Other);
            let mut file = self.real.create(&self.draft, options)?;
            file.append(content)?;
            file.close()?;
            if let Some(dir) = path.parent() {
                self.real.create_dir_all(dir)?;
            }
            self.real.rename(&self.draft, path)?;
        }
        for path in known.keys().filter(|path| !durable.contains_key(*path)) {
            self.real.remove(path)?;
        }
        *known = durable;
        Ok(())
    }
}

impl Observer for Mirror {
    fn synced(&self, _op: OpKind, path: &Path) {
        if let Err(error) = self.carry_out() {
            // The judge's own disk failed: the parent must not take this for a death it asked for.
            let place = path.display();
            crate::say(&format!(
                "WRONG a sync of {place} did not arrive: {error:?}"
            ));
            std::process::exit(3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_synced_arrives() {
        let root = drumlin_testkit::memory_dir();
        let path = |name: &str| root.path().join(name);
        let real = Env::system().files;
        let names = || {
            let mut names = real.list(root.path()).unwrap();
            names.sort();
            names
        };
        let files = forgetful(root.path()).unwrap();
        let options = CreateOptions::new(FileKind::Other);
        let mut file = files.create(&path("one"), options).unwrap();
        file.append(b"first").unwrap();
        file.sync().unwrap();
        assert!(names().is_empty(), "its name was not synced");
        file.append(b" second").unwrap();
        files.sync_dir(root.path()).unwrap();
        assert_eq!(real.read_file(&path("one"), 99).unwrap(), b"first");
        file.syncer().sync().unwrap();
        assert_eq!(real.read_file(&path("one"), 99).unwrap(), b"first second");
        files.rename(&path("one"), &path("two")).unwrap();
        assert_eq!(names(), [PathBuf::from("one")]);
        files.sync_dir(root.path()).unwrap();
        assert_eq!(names(), [PathBuf::from("two")]);
        let again = forgetful(root.path()).unwrap();
        assert_eq!(again.read_file(&path("two"), 99).unwrap(), b"first second");
    }
}
