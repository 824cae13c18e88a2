//! The files of one moment, held open by a read-only store, while a writer beside it removes their names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::Result;
use drumlin_base::sync::Mutex;
use drumlin_fs::{CreateOptions, FileInfo, FileSystem, RandomAccessFile, WritableFile};

use crate::files::names::{self, FileName};
use crate::version::{RecoveredInfo, VersionSet};
use crate::wal::record::{BLOCK_BYTES, are_zeros};
use crate::wal::replay::{Beginning, beginning, begins_with_own};

/// How many bytes of WAL files an opening has in memory.
const COPIED_BYTES_MAX: u64 = 16 << 20;
/// Bytes read at once of a file that is copied. Whole blocks, which no fragment of a record goes past.
const COPIED_AT_ONCE_BYTES: usize = 8 * BLOCK_BYTES;

/// A file system that holds the files of one moment open, so that they can be read when their names are gone.
#[derive(Debug)]
pub(crate) struct HeldFiles {
    below: Arc<dyn FileSystem>,
    held: Mutex<HashMap<PathBuf, Arc<dyn RandomAccessFile>>>,
    held_max: usize,
    /// A directory, and the names in it as they were when its WAL files were held.
    listed: Mutex<Option<(PathBuf, Vec<PathBuf>)>>,
    /// The WAL files that had a record when they were held.
    begun: Mutex<Vec<u64>>,
    /// Those that had nothing.
    ahead: Mutex<Vec<u64>>,
    /// Whether something may be missing, if the directory was changed meanwhile.
    in_doubt: AtomicBool,
}

impl HeldFiles {
    /// Nothing yet, of `below`. With fewer files open than `open_max`.
    pub(crate) fn new(below: Arc<dyn FileSystem>, open_max: usize) -> Self {
        Self {
            below,
            held: Mutex::default(),
            held_max: open_max.min(drumlin_fs::machine::open_files_max()) / 2,
            listed: Mutex::default(),
            begun: Mutex::default(),
            ahead: Mutex::default(),
            in_doubt: AtomicBool::new(false),
        }
    }

    /// Whether the opened files are one moment only if nobody changed the directory meanwhile.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::Relaxed)
    }

    /// The WAL files that had nothing when they were taken.
    pub(crate) fn ahead(&self) -> Vec<u64> {
        self.ahead.lock().clone()
    }

    /// Something may be missing.
    pub(crate) fn doubt(&self) {
        self.in_doubt.store(true, Ordering::Relaxed);
    }

    /// Lists `wal_dir` and holds the WAL files there that the MANIFEST of `info` may need, in place of those held before.
    /// From here on only those are listed. Whether anything is in doubt is as it was found this time.
    ///
    /// # Errors
    /// `NotFound` of a file that is gone; `Io`.
    pub(crate) fn take_wals(&self, wal_dir: &Path, info: &RecoveredInfo) -> Result<()> {
        self.release_wals();
        self.in_doubt.store(false, Ordering::Relaxed);
        let needed = info.min_log_number;
        let mut names = match self.below.list(wal_dir) {
            // The later look for the WAL directory reports the error.
            Err(error) if error.is_not_found() => return Ok(()),
            names => names?,
        };
        names.retain(|name| match FileName::parse(name) {
            Some(FileName::Wal(number)) => {
                number >= needed.min(info.sections_from) || number == info.prev_log_number
            }
            _ => true,
        });
        let wals = names.iter().filter_map(|name| match FileName::parse(name) {
            Some(FileName::Wal(number)) => Some((number, wal_dir.join(name))),
            _ => None,
        });
        let mut wals: Vec<_> = wals.collect();
        wals.sort_unstable();
        let (mut begun, mut ahead) = (Vec::new(), Vec::new());
        // The newest first: where one has begun, those before it are complete when they are looked at.
        for (number, path) in wals.iter().rev() {
            self.hold(path)?;
            let found = beginning(self.open(path)?, *number)?;
            match found {
                Beginning::Own => begun.push(*number),
                Beginning::Nothing => ahead.push(*number),
                Beginning::Unreadable => {}
            }
            if found != Beginning::Own && !self.below.exists(path)? {
                self.doubt(); // Another may have been written over it.
            }
        }
        if !begun.contains(&needed) {
            self.doubt();
        }
        begun.reverse();
        *self.begun.lock() = begun;
        *self.ahead.lock() = ahead;
        *self.listed.lock() = Some((wal_dir.to_path_buf(), names));
        Ok(())
    }

    /// Has copies of the WAL files that were taken and had a record in place of them, the oldest first, as far as they are
    /// small: a writer with small memtables writes over one sooner than it is replayed.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn copy_wals(&self, wal_dir: &Path) -> Result<()> {
        let mut left = COPIED_BYTES_MAX;
        for &wal in &*self.begun.lock() {
            let path = names::wal(wal_dir, wal);
            let Some(file) = self.held(&path).filter(|file| file.size() <= left) else {
                return Ok(());
            };
            let bytes = without_zeros_ahead(&*file)?;
            left = left.saturating_sub(bytes.len() as u64);
            if !begins_with_own(file, wal)? {
                self.doubt(); // Another was written over it meanwhile.
            }
            self.held.lock().insert(path, Arc::new(Copied(bytes)));
        }
        Ok(())
    }

    /// Looks whether a WAL of which something was there when it was taken may have been written over before it
    /// was replayed; `replayed` are the WALs with the bytes that were. Those below `needed_from` that were not hold no section of
    /// two-phase commit, and nothing else is needed of them.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn check_replayed(
        &self,
        wal_dir: &Path,
        replayed: &[(u64, u64)],
        needed_from: u64,
    ) -> Result<()> {
        for &wal in &*self.begun.lock() {
            let file = self.open(&names::wal(wal_dir, wal))?;
            let is_in = replayed
                .iter()
                .any(|&(number, bytes)| number == wal && bytes > 0);
            if wal >= needed_from && !is_in || !begins_with_own(file, wal)? {
                self.doubt();
            }
        }
        Ok(())
    }

    /// Holds the models that `versions` refer to. Their tables and blob files are held since they were looked
    /// at.
    ///
    /// # Errors
    /// As [`HeldFiles::take_wals`].
    pub(crate) fn take_models(&self, dir: &Path, versions: &VersionSet) -> Result<()> {
        let families = versions.families().values();
        let files = families.flat_map(|family| family.current.files());
        files
            .filter_map(|(_, file)| file.model())
            .try_for_each(|model| self.hold(&names::model(dir, model)).map(drop))
    }

    /// Lets the tables and blob files go that `versions`, of `dir`, left: who has one open keeps it. Their numbers.
    pub(crate) fn release_obsolete(
        &self,
        dir: &Path,
        versions: &mut VersionSet,
    ) -> (Vec<u64>, Vec<u64>) {
        let mut tables = versions.take_obsolete_tables();
        tables.retain(|&table| !versions.has_table(table));
        let mut blobs = versions.take_obsolete_blobs();
        blobs.retain(|&blob| !versions.has_blob(blob));
        let mut held = self.held.lock();
        for &table in &tables {
            held.remove(&names::table(dir, table));
            held.remove(&names::leveldb_table(dir, table));
        }
        for &blob in &blobs {
            held.remove(&names::blob(dir, blob));
        }
        (tables, blobs)
    }

    /// Holds what `other` holds, too.
    pub(crate) fn take_over(&self, other: &Self) {
        let theirs = std::mem::take(&mut *other.held.lock());
        self.held.lock().extend(theirs);
    }

    /// Lets the WAL files go and lists what is there from now on: their reader follows the writer.
    pub(crate) fn release_wals(&self) {
        self.held.lock().retain(|path, _| {
            let name = path.file_name().map(Path::new).and_then(FileName::parse);
            !matches!(name, Some(FileName::Wal(_)))
        });
        *self.listed.lock() = None;
    }

    /// Opens and holds `path`, unless too many are held.
    fn hold(&self, path: &Path) -> Result<Option<Arc<dyn RandomAccessFile>>> {
        let mut held = self.held.lock();
        if let Some(file) = held.get(path) {
            return Ok(Some(Arc::clone(file)));
        }
        if held.len() >= self.held_max {
            return Ok(None);
        }
        let file = self.below.open(path)?;
        held.insert(path.to_path_buf(), Arc::clone(&file));
        Ok(Some(file))
    }

    fn held(&self, path: &Path) -> Option<Arc<dyn RandomAccessFile>> {
        self.held.lock().get(path).cloned()
    }
}

/// The bytes of the WAL `file`, but for blocks of zeros at its end: space that its writer made ahead, often most of the file.
fn without_zeros_ahead(file: &dyn RandomAccessFile) -> Result<Vec<u8>> {
    let (mut bytes, mut blocks) = (Vec::new(), vec![0; COPIED_AT_ONCE_BYTES]);
    let mut at = 0;
    loop {
        let read = fill(file, at, &mut blocks)?;
        let read_bytes = blocks.get(..read).unwrap_or_default();
        if !are_zeros(read_bytes) {
            bytes.resize(usize::try_from(at).unwrap_or(usize::MAX), 0);
            bytes.extend_from_slice(read_bytes);
        }
        at += read as u64;
        if read < blocks.len() || at >= file.size() {
            return Ok(bytes);
        }
    }
}

/// Reads from `offset` on until `buffer` is full or the file ends. How many bytes were read.
fn fill(file: &dyn RandomAccessFile, offset: u64, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset + filled as u64, rest)? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

/// What a file had.
#[derive(Debug)]
struct Copied(Vec<u8>);

impl RandomAccessFile for Copied {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(from..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Whether files of this name are held from the first look at them.
fn is_of_a_moment(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| FileName::parse(name.as_ref()));
    matches!(
        name,
        Some(FileName::Wal(_) | FileName::Table(_) | FileName::Blob(_))
    )
}

impl FileSystem for HeldFiles {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
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
        match self.held(path) {
            Some(file) => Ok(file),
            None => self.below.open(path),
        }
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        match self.held(path) {
            Some(file) => Ok(file),
            None => self.below.open_direct(path),
        }
    }

    fn takes_direct(&self, path: &Path) -> Result<bool> {
        self.below.takes_direct(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        match &*self.listed.lock() {
            Some((listed, names)) if listed == dir => Ok(names.clone()),
            _ => self.below.list(dir),
        }
    }

    fn info(&self, path: &Path) -> Result<FileInfo> {
        if !is_of_a_moment(path) {
            return self.below.info(path);
        }
        match self.hold(path)? {
            Some(file) => Ok(FileInfo {
                size: file.size(),
                is_dir: false,
                links: 1,
                is_symlink: false,
            }),
            None => self.below.info(path),
        }
    }

    drumlin_fs::forward_changes!(below);
}

#[cfg(test)]
mod tests {
    use drumlin_fs::{FileKind, StrictMemFileSystem};

    use super::*;
    use crate::version::RecoveredInfo;
    use crate::wal::record::{RecordReader, RecordWriter, Verdict};

    /// WAL files of one record each, the numbers of which are `wals`, with zeros ahead of the writer; held for who needs those
    /// from `min_log_number` on.
    fn held(wals: &[u64], payload: &[u8], min_log_number: u64) -> HeldFiles {
        let files = StrictMemFileSystem::new();
        files.create_dir_all(Path::new("/db")).unwrap();
        for &wal in wals {
            let create = |path: &Path| {
                let create = CreateOptions::new(FileKind::Wal);
                files.create(path, create).unwrap()
            };
            let apart = Path::new("/db").join(wal.to_string());
            let mut log = RecordWriter::recyclable(create(&apart), wal);
            log.append(payload).unwrap();
            let mut bytes = vec![0; usize::try_from(log.len()).unwrap() + (1 << 20)];
            fill(&*files.open(&apart).unwrap(), 0, &mut bytes).unwrap();
            let mut file = create(&names::wal(Path::new("/db"), wal));
            file.append(&bytes).unwrap();
        }
        let held = HeldFiles::new(Arc::new(files), usize::MAX);
        let info = RecoveredInfo {
            manifest_number: 1,
            manifest_end: Verdict::Clean,
            min_log_number,
            sections_from: 1,
            section_wals: Vec::new(),
            prev_log_number: 0,
            tracked_wals: Vec::new(),
        };
        held.take_wals(Path::new("/db"), &info).unwrap();
        assert!(!held.is_in_doubt());
        held.copy_wals(Path::new("/db")).unwrap();
        held
    }

    #[test]
    fn a_copy_has_every_record_and_not_the_space_made_ahead() {
        for bytes in [
            1,
            BLOCK_BYTES,
            COPIED_AT_ONCE_BYTES,
            3 * COPIED_AT_ONCE_BYTES + 5,
        ] {
            // A record may be zeros, or end in them.
            for payload in [vec![0; bytes], vec![b'x'; bytes]] {
                let held = held(&[7], &payload, 7);
                let copy = held.open(&names::wal(Path::new("/db"), 7)).unwrap();
                assert!(copy.size() < (bytes + COPIED_AT_ONCE_BYTES + BLOCK_BYTES) as u64);
                let mut reader = RecordReader::new(copy, 7);
                assert!(reader.read().unwrap().unwrap().payload == payload);
                assert!(reader.read().unwrap().is_none());
                let verdict = reader.judge(crate::wal::record::Later::Marks).unwrap();
                assert_eq!(verdict, Verdict::Clean);
            }
        }
    }

    #[test]
    fn a_wal_that_nobody_needs_and_was_not_replayed_leaves_no_doubt() {
        let held = held(&[3, 7], b"record", 7);
        let dir = Path::new("/db");
        held.check_replayed(dir, &[(7, 10)], 7).unwrap();
        assert!(!held.is_in_doubt());
        held.check_replayed(dir, &[(3, 10)], 7).unwrap();
        assert!(held.is_in_doubt());
    }
}
