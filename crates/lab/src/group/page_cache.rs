//! The system's page cache.

use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_fs::Env;
use rustix::fs::{Advice, FileType, Mode, OFlags};

/// Directories within directories; no engine's store is as deep.
const DEPTH_MAX: usize = 8;

/// Writes the files below `dir` to the disk and has the system forget them. A page that is in the page cache
/// already is charged to the group that had it read, and costs a later group nothing: without this a store
/// that another process wrote would be outside of the group's limit.
///
/// # Errors
/// `Io`.
pub(super) fn forget_files(dir: &Path, env: &Env) -> Result<()> {
    let mut dirs = vec![(dir.to_path_buf(), 0)];
    while let Some((dir, depth)) = dirs.pop() {
        let names = match env.files.list(&dir) {
            Ok(names) => names,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        for name in names {
            let path = dir.join(name);
            match env.files.info(&path) {
                Ok(info) if info.is_dir && depth < DEPTH_MAX => dirs.push((path, depth + 1)),
                Ok(info) if info.is_dir => {}
                Ok(_) => forget(&path)
                    .map_err(|error| Error::io("drop from memory", &path, error.into()))?,
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn forget(path: &Path) -> rustix::io::Result<()> {
    // Opening a pipe would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    if !FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_file() {
        return Ok(());
    }
    // Dirty pages cannot be dropped.
    rustix::fs::fsync(&file)?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)
}

#[cfg(test)]
mod tests {
    use drumlin_fs::{CreateOptions, FileKind};

    use super::*;

    #[test]
    fn files_in_directories_are_forgotten_and_keep_their_bytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let env = Env::system();
        let inner = dir.path().join("inner");
        env.files.create_dir_all(&inner).expect("a directory");
        let path = inner.join("file");
        let mut file = env
            .files
            .create(&path, CreateOptions::new(FileKind::Other))
            .expect("created");
        file.append(&[7; 100_000]).expect("written");
        file.close().expect("closed");
        forget_files(dir.path(), &env).expect("forgotten");
        assert_eq!(
            env.files.read_file(&path, 1 << 20).expect("read"),
            [7; 100_000]
        );
        forget_files(&dir.path().join("none"), &env).expect("nothing to forget");
    }
}
