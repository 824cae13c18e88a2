//! New tables and blob files written over old ones.
//!
//! Freeing the blocks of a large file and getting others for the next one is work for a file system,
//! and more so where it tells the disk what was freed: files of 64 MiB went to an ext4 of that kind
//! with 640 MB/s where each took the place of a removed one, and with 4,000 MB/s where each was the
//! removed one overwritten. So jobs create files through [`ReusingFileSystem`], which asks the
//! [`Trash`] for one of about the size.
//!
//! Invariants:
//! - The bytes of an old file are only changed under a `.trash` name that is on disk, and the new
//!   file gets its own name once all of it is. So a file named as a table or a blob file never holds
//!   something else's bytes, whatever a crash leaves, and opening removes files with the other name.
//! - The new file is cut to its length before it is synced.
//! - A file with a second name, one in a checkpoint, is not touched; nor one that somebody has open,
//!   a database opened for reading beside this one ([`FileSystem::reuse`] refuses both).
//! - A file that is given up half written goes back into the trash.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{ErrorKind, Result};
use drumlin_fs::{CreateOptions, FileKind, FileSyncer, FileSystem, RandomAccessFile, WritableFile};

use crate::files::names;
use crate::files::trash::Trash;

/// See the module. Everything but creating goes straight to the file system below.
#[derive(Clone, Debug)]
pub(crate) struct ReusingFileSystem {
    below: Arc<dyn FileSystem>,
    trash: Arc<Trash>,
}

impl ReusingFileSystem {
    /// `below`, with the files of `trash` for reuse.
    pub(crate) fn new(below: Arc<dyn FileSystem>, trash: Arc<Trash>) -> Self {
        Self { below, trash }
    }

    /// The file `path` in the place of an old one, if there is one for it.
    fn in_place_of_old(
        &self,
        path: &Path,
        options: CreateOptions,
    ) -> Result<Option<Box<dyn WritableFile>>> {
        let Some(old) = self.trash.take(path, options.expected_bytes) else {
            return Ok(None);
        };
        let passing = names::trash(path);
        match self.below.reuse(&old, &passing, options) {
            Ok(file) => Ok(Some(Box::new(ReusedFile {
                file,
                is_cut: false,
                passing: Passing {
                    name: passing,
                    trash: Arc::clone(&self.trash),
                    is_over: false,
                },
                path: path.to_path_buf(),
                files: Arc::clone(&self.below),
            }))),
            Err(error) => {
                // The file has one of the two names now, and which is unknown.
                self.trash.put(old);
                self.trash.put(passing);
                match error.kind() {
                    ErrorKind::NotSupported | ErrorKind::NotFound => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }
}

impl FileSystem for ReusingFileSystem {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        if matches!(options.kind, FileKind::Table | FileKind::Blob)
            && let Some(file) = self.in_place_of_old(path, options)?
        {
            return Ok(file);
        }
        self.below.create(path, options)
    }

    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        self.below.reuse(old, new, options)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.below.open(path)
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.below.open_direct(path)
    }

    drumlin_fs::forward_files!(below);
}

/// A file that is being written over an old one.
#[derive(Debug)]
struct ReusedFile {
    file: Box<dyn WritableFile>,
    /// Whether nothing of the old file is left past the end.
    is_cut: bool,
    passing: Passing,
    path: PathBuf,
    files: Arc<dyn FileSystem>,
}

/// The name of a file meanwhile. Goes into the trash unless the file got its own.
#[derive(Debug)]
struct Passing {
    name: PathBuf,
    trash: Arc<Trash>,
    is_over: bool,
}

impl ReusedFile {
    fn cut(&mut self) -> Result<()> {
        if !self.is_cut && !drumlin_base::bug!("reused-file-uncut") {
            self.files.truncate(&self.passing.name, self.file.len())?;
            self.is_cut = true;
        }
        Ok(())
    }
}

impl WritableFile for ReusedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        self.cut()?;
        self.file.sync()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.cut()?;
        self.file.close()?;
        self.files.rename(&self.passing.name, &self.path)?;
        self.passing.is_over = true;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        self.file.syncer()
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if !self.is_over && !drumlin_base::bug!("given-up-file-stays") {
            self.trash.put(std::mem::take(&mut self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use drumlin_fs::{
        CrashPolicy, Env, Fault, FaultFileSystem, FaultRule, OpKind, StrictMemFileSystem,
    };

    use super::*;

    const DIR: &str = "/db";
    const OLD_BYTES: usize = 9000;
    const NEW_BYTES: usize = 6000;

    struct Bench {
        trash: Arc<Trash>,
        files: ReusingFileSystem,
    }

    fn path(name: &str) -> PathBuf {
        Path::new(DIR).join(name)
    }

    fn write(files: &dyn FileSystem, name: &str, byte: u8, bytes: usize) -> Result<()> {
        let options = CreateOptions::new(FileKind::Table).expecting(NEW_BYTES as u64);
        let mut file = files.create(&path(name), options)?;
        for chunk in vec![byte; bytes].chunks(700) {
            file.append(chunk)?;
        }
        file.sync()?;
        file.close()?;
        files.sync_dir(Path::new(DIR))
    }

    fn read(files: &dyn FileSystem, name: &str) -> Vec<u8> {
        let file = files.open(&path(name)).unwrap();
        let mut bytes = vec![0; file.size() as usize];
        file.read_at(0, &mut bytes).unwrap();
        bytes
    }

    fn listing(files: &dyn FileSystem) -> Vec<PathBuf> {
        let mut names = files.list(Path::new(DIR)).unwrap();
        names.sort();
        names
    }

    /// A disk with the table 7, which nobody needs.
    fn disk() -> StrictMemFileSystem {
        let disk = StrictMemFileSystem::new();
        disk.create_dir_all(Path::new(DIR)).unwrap();
        disk.sync_all();
        write(&disk, "000007.sst", 7, OLD_BYTES).unwrap();
        disk
    }

    /// Jobs have asked for files before, so that some are kept.
    fn bench(below: Arc<dyn FileSystem>) -> Bench {
        let trash = Arc::new(Trash::new(&Env::system().with_files(Arc::clone(&below)), 1));
        assert!(trash.take(&path("000001.sst"), 1 << 20).is_none());
        let files = ReusingFileSystem::new(below, Arc::clone(&trash));
        Bench { trash, files }
    }

    #[test]
    fn the_new_file_takes_the_old_ones_place_and_its_name_only_when_it_is_whole() {
        let disk = disk();
        let bench = bench(Arc::new(disk.clone()));
        bench.trash.put(path("000007.sst"));
        bench.trash.settle().unwrap();
        assert_eq!(listing(&disk), [Path::new("000007.sst.trash")]);
        let options = CreateOptions::new(FileKind::Table).expecting(NEW_BYTES as u64);
        let mut file = bench.files.create(&path("000008.sst"), options).unwrap();
        file.append(&[8; NEW_BYTES]).unwrap();
        file.sync().unwrap();
        assert_eq!(listing(&disk), [Path::new("000008.sst.trash")]);
        file.close().unwrap();
        assert_eq!(listing(&disk), [Path::new("000008.sst")]);
        assert_eq!(read(&disk, "000008.sst"), [8; NEW_BYTES]);
        assert!(bench.trash.is_empty());
        assert_eq!(bench.trash.freed(), OLD_BYTES as u64);
    }

    #[test]
    fn a_file_with_a_second_name_is_left_as_it_is() {
        for linked_late in [false, true] {
            let disk = disk();
            let bench = bench(Arc::new(disk.clone()));
            let link = |from: &str| disk.link(&path(from), Path::new("/copy.sst")).unwrap();
            if !linked_late {
                link("000007.sst");
            }
            bench.trash.put(path("000007.sst"));
            bench.trash.settle().unwrap();
            if linked_late {
                link("000007.sst.trash"); // By somebody else, from outside.
            }
            write(&bench.files, "000008.sst", 8, NEW_BYTES).unwrap();
            assert_eq!(read(&disk, "../copy.sst"), [7; OLD_BYTES]);
            assert_eq!(read(&disk, "000008.sst"), [8; NEW_BYTES]);
            bench.trash.empty().unwrap();
            assert_eq!(listing(&disk), [Path::new("000008.sst")]);
        }
    }

    #[test]
    fn a_file_given_up_half_written_goes() {
        let disk = disk();
        let bench = bench(Arc::new(disk.clone()));
        bench.trash.put(path("000007.sst"));
        bench.trash.settle().unwrap();
        let options = CreateOptions::new(FileKind::Table).expecting(NEW_BYTES as u64);
        let file = bench.files.create(&path("000008.sst"), options).unwrap();
        drop(file);
        bench.trash.empty().unwrap();
        assert!(listing(&disk).is_empty());
    }

    #[test]
    fn wherever_it_fails_nothing_is_left_and_the_next_file_is_sound() {
        let kinds = [
            OpKind::Reuse,
            OpKind::Append,
            OpKind::Truncate,
            OpKind::Sync,
            OpKind::Close,
            OpKind::Rename,
            OpKind::SyncDir,
        ];
        for kind in kinds {
            for nth in 0..4 {
                let memory = disk();
                let faulty = FaultFileSystem::over_memory(&memory);
                let bench = bench(Arc::new(faulty.clone()));
                faulty.add_rule(FaultRule::once(nth, Fault::Io).on(kind));
                bench.trash.put(path("000007.sst"));
                drop(bench.trash.settle());
                drop(write(&bench.files, "000008.sst", 8, NEW_BYTES));
                faulty.clear_rules();
                write(&bench.files, "000009.sst", 9, NEW_BYTES).unwrap();
                assert_eq!(read(&memory, "000009.sst"), [9; NEW_BYTES]);
                drop(bench.trash.empty());
                let known = |name: &PathBuf| {
                    ["000007.sst", "000008.sst", "000009.sst"]
                        .map(PathBuf::from)
                        .contains(name)
                };
                assert!(listing(&memory).iter().all(known), "{:?}", listing(&memory));
            }
        }
    }

    #[test]
    fn after_a_crash_anywhere_every_table_holds_its_own_bytes() {
        for stop_at in 0..20 {
            for (policy, seed) in CrashPolicy::ALL.into_iter().zip(0..) {
                let memory = disk();
                let faulty = FaultFileSystem::over_memory(&memory);
                let bench = bench(Arc::new(faulty.clone()));
                faulty.add_rule(FaultRule::once(stop_at, Fault::Stop));
                bench.trash.put(path("000007.sst"));
                let done = bench.trash.settle().is_ok()
                    && write(&bench.files, "000008.sst", 8, NEW_BYTES).is_ok();
                let after = memory.crash(seed, policy);
                let names = listing(&after);
                if names.contains(&PathBuf::from("000007.sst")) {
                    assert_eq!(read(&after, "000007.sst"), [7; OLD_BYTES]);
                }
                if names.contains(&PathBuf::from("000008.sst")) {
                    assert_eq!(read(&after, "000008.sst"), [8; NEW_BYTES], "{policy:?}");
                } else {
                    assert!(!done, "lost after {stop_at} by {policy:?}");
                }
            }
        }
    }
}
