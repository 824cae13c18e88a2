//! Locks on files, against other processes and against this one.
//!
//! A lock is two things: an entry in a registry of this process, by device and inode, because the classic
//! record locks of one process do not exclude each other; and a write lock on the whole file that belongs to
//! the open file. RocksDB and LevelDB take a classic record lock on the same file, which conflicts with ours
//! in both directions. The lock ends with its holder, even one that is killed: a leftover file locks
//! nothing.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use drumlin_base::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::file_system::FileLock;
use crate::process::Process;
use crate::syscalls;

/// How often a lock file may be replaced under our hands before we give up.
const ATTEMPTS_MAX: usize = 8;
/// The files this process has locked: device and inode.
static HELD: Mutex<Option<(Process, Ids)>> = Mutex::new(None);

type Ids = HashSet<(u64, u64)>;

#[derive(Debug)]
pub(crate) struct PosixLock {
    file: File,
    claim: ProcessClaim,
}

impl FileLock for PosixLock {}

impl Drop for PosixLock {
    fn drop(&mut self) {
        // The lock is the open file's, which a forked child has, too.
        if !self.claim.process.is_present() {
            return;
        }
        // Unlocks rather than leaving it to the close, which a forked child's copy would delay.
        // Nobody could handle an error, and the close that follows unlocks as well.
        let _ = self.file.set_len(0);
        let _ = syscalls::set_lock(&self.file, false);
    }
}

/// This process's claim on a file; the last field of a lock, so that it is given up last.
#[derive(Debug)]
struct ProcessClaim {
    id: (u64, u64),
    process: Process,
}

impl ProcessClaim {
    fn claim(id: (u64, u64)) -> Option<Self> {
        let process = Process::current();
        let mut held = HELD.lock();
        // A forked child does not hold its parent's locks.
        if held.as_ref().is_none_or(|(of, _)| *of != process) {
            *held = Some((process, Ids::new()));
        }
        let (_, ids) = held.as_mut()?;
        // Not `then_some`: a second claim would give up the first when it is dropped.
        ids.insert(id).then(|| Self { id, process })
    }
}

impl Drop for ProcessClaim {
    fn drop(&mut self) {
        if !self.process.is_present() {
            return;
        }
        if let Some((_, held)) = HELD.lock().as_mut() {
            held.remove(&self.id);
        }
    }
}

/// Locks `path`, creating it if needed.
pub(crate) fn lock(path: &Path) -> Result<PosixLock> {
    for _ in 0..ATTEMPTS_MAX {
        if let Some(lock) = try_lock(path)? {
            return Ok(lock);
        }
    }
    Err(locked(path, "it is being replaced by another process"))
}

/// `None` when `path` came to name another file meanwhile.
fn try_lock(path: &Path) -> Result<Option<PosixLock>> {
    let io = |op: &'static str| move |source| Error::io(op, path, source);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .open(path)
        .map_err(io("open the lock file"))?;
    let facts = file.metadata().map_err(io("look at the lock file"))?;
    let id = (facts.dev(), facts.ino());
    let Some(claim) = ProcessClaim::claim(id) else {
        let holder = format!("held by process {}, this one", std::process::id());
        return Err(locked(path, &holder));
    };
    if let Err(error) = syscalls::set_lock(&file, true) {
        return Err(match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => locked(path, &holder(&file)),
            _ => Error::io("lock", path, error),
        });
    }
    let lock = PosixLock { file, claim };
    match std::fs::metadata(path) {
        Ok(now) if (now.dev(), now.ino()) == id => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("look at the lock file")(error)),
    }
    write_holder(&lock.file);
    Ok(Some(lock))
}

/// For the error message of the next process that is refused. A full disk does not keep us from
/// locking.
fn write_holder(file: &File) {
    let text = format!("{}\n", std::process::id());
    let _ = file.set_len(0);
    let _ = file.write_all_at(text.as_bytes(), 0);
}

/// A sentence naming the lock's holder: from the kernel for classic locks, else from the file.
fn holder(file: &File) -> String {
    let mut text = [0; 16];
    let named = syscalls::lock_holder(file).or_else(|| {
        let n = file.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(text.get(..n)?)
            .ok()?
            .trim()
            .parse()
            .ok()
    });
    match named {
        Some(pid) => format!("held by process {pid}"),
        None => "held by another process".to_owned(),
    }
}

fn locked(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Locked, format!("the database is locked: {why}")).with_file(path)
}
