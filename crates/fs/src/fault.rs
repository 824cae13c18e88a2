//! A file system that fails on command.
//!
//! It wraps another one, counts every operation, and injects a fault into those that its rules name. The count
//! depends on the caller alone, so a single-threaded run can be repeated with the fault one operation later
//! each time, until every operation has failed once. An operation with a fault never reaches the file system
//! below, except for torn appends, [`Fault::Slow`] and the faults of reads.
//!
//! Delays are slept on the calling thread, under no lock, so slow operations of several threads overlap.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::fault_rule::{Fault, FaultRule, OpKind, kind_of};
use crate::file_system::{
    CreateOptions, FileInfo, FileKind, FileLock, FileSyncer, FileSystem, RandomAccessFile,
    WritableFile,
};
use crate::mem::StrictMemFileSystem;
use crate::mem_disk::os_error;
use crate::read_queue::ReadQueue;
use crate::{Clock, SystemClock};

#[derive(Debug, Default)]
struct FaultState {
    operations: u64,
    injected: u64,
    /// The last operation that was struck.
    struck: Option<(OpKind, PathBuf)>,
    slowed: u64,
    rules: Vec<FaultRule>,
    history: Option<Vec<(OpKind, PathBuf)>>,
    /// Where delays are slept; the system's unless set.
    clock: Option<Arc<dyn Clock>>,
    observer: Option<Arc<dyn Observer>>,
}

impl FaultState {
    /// Counts the operation with every rule: its delay, and the fault that strikes it.
    fn judge(&mut self, op: OpKind, kind: FileKind, path: &Path) -> (Duration, Option<Fault>) {
        let (mut delay, mut struck) = (Duration::ZERO, None);
        for rule in &mut self.rules {
            if !rule.strikes(op, kind, path) {
                continue;
            }
            match rule.delay() {
                Some(more) => delay += more,
                None if struck.is_none() => struck = Some(rule.fault),
                None => {}
            }
        }
        (delay, struck)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        let clock = self.clock.as_ref().map(Arc::clone);
        clock.unwrap_or_else(|| Arc::new(SystemClock::new()))
    }
}

#[derive(Debug)]
struct Shared {
    below: Arc<dyn FileSystem>,
    /// The disk below, if it can be notified of failed syncs.
    memory: Option<StrictMemFileSystem>,
    state: Mutex<FaultState>,
    stopped: AtomicBool,
}

/// Is notified of every operation before it is done, until the machine is stopped, and of syncs that
/// succeeded.
pub trait Observer: Send + Sync + Debug {
    /// Operation `op` on `path` is about to be judged and done, on the thread that asks for it and under no
    /// lock of the file system. Work of this method on other file systems delays the operation and changes
    /// nothing else.
    fn before(&self, op: OpKind, path: &Path) {
        let _ = (op, path);
    }

    /// A sync, [`OpKind::Sync`], [`OpKind::SyncFile`] or [`OpKind::SyncDir`], of `path` has succeeded;
    /// the caller of the sync sees it succeed only after this returns.
    fn synced(&self, op: OpKind, path: &Path) {
        let _ = (op, path);
    }
}

/// A fault that the operation performs instead of failing at once.
type Oddity = Option<Fault>;

impl Shared {
    /// Counts an operation and decides: an error now, an oddity to perform, or nothing.
    fn step(&self, op: OpKind, kind: FileKind, path: &Path) -> Result<Oddity> {
        drumlin_base::sync::step();
        let observer = self.state.lock().observer.clone();
        if let (Some(observer), false) = (observer, self.stopped.load(Ordering::Acquire)) {
            observer.before(op, path);
        }
        let mut state = self.state.lock();
        if self.stopped.load(Ordering::Acquire) {
            return Err(stopped(path));
        }
        state.operations += 1;
        if let Some(history) = &mut state.history {
            history.push((op, path.to_path_buf()));
        }
        let (delay, struck) = state.judge(op, kind, path);
        if !delay.is_zero() {
            state.slowed += 1;
            let clock = state.clock();
            drop(state);
            clock.sleep(delay);
            if self.stopped.load(Ordering::Acquire) {
                return Err(stopped(path));
            }
            state = self.state.lock();
        }
        let Some(fault) = struck.filter(|&fault| applies(fault, op)) else {
            return Ok(None);
        };
        state.injected += 1;
        state.struck = Some((op, path.to_path_buf()));
        match fault {
            Fault::Io => {}
            Fault::NoSpace => return Err(os_error(name(op), path, libc::ENOSPC)),
            Fault::TooManyFiles => return Err(os_error(name(op), path, libc::EMFILE)),
            Fault::TornNoSpace if op != OpKind::Append => {
                return Err(os_error(name(op), path, libc::ENOSPC));
            }
            Fault::TornAppend if op != OpKind::Append => {}
            Fault::Stop => {
                self.stopped.store(true, Ordering::Release);
                return Err(stopped(path));
            }
            oddity => return Ok(Some(oddity)),
        }
        if let (OpKind::Sync | OpKind::SyncFile, Some(memory)) = (op, &self.memory) {
            // The file may be gone: then nothing of it can be lost.
            let _ = memory.forget_unsynced(path);
        }
        Err(os_error(name(op), path, libc::EIO))
    }

    /// Tells the observer of a sync that went well.
    fn told(&self, op: OpKind, path: &Path, outcome: Result<()>) -> Result<()> {
        let observer = self.state.lock().observer.clone();
        if let (Some(observer), Ok(())) = (observer, &outcome) {
            observer.synced(op, path);
        }
        outcome
    }

    /// For operations without oddities.
    fn pass(&self, op: OpKind, path: &Path) -> Result<()> {
        self.step(op, kind_of(path), path).map(|_| ())
    }
}

/// Whether the fault means anything to the operation.
fn applies(fault: Fault, op: OpKind) -> bool {
    !matches!(fault, Fault::FlippedBit | Fault::ShortRead) || op == OpKind::Read
}

fn stopped(path: &Path) -> Error {
    Error::new(ErrorKind::Io, "the machine was stopped").with_file(path)
}

fn name(op: OpKind) -> &'static str {
    match op {
        OpKind::Create => "create",
        OpKind::Reuse => "open for reuse",
        OpKind::Append => "write",
        OpKind::Sync | OpKind::SyncFile => "sync",
        OpKind::Close => "close",
        OpKind::Open => "open",
        OpKind::Read => "read",
        OpKind::List => "list",
        OpKind::Info => "look at",
        OpKind::Rename => "rename",
        OpKind::Link => "link",
        OpKind::Remove => "remove",
        OpKind::CreateDir => "create the directory",
        OpKind::RemoveDir => "remove the directory",
        OpKind::SyncDir => "sync the directory",
        OpKind::Truncate => "truncate",
        OpKind::Lock => "lock",
        OpKind::FreeSpace => "ask for the free space of",
    }
}

/// See the module. Clones share their rules and counts.
#[derive(Clone, Debug)]
pub struct FaultFileSystem {
    shared: Arc<Shared>,
}

impl FaultFileSystem {
    /// Wraps `below`, striking nothing yet.
    pub fn new(below: Arc<dyn FileSystem>) -> Self {
        Self::wrap(below, None)
    }

    /// Wraps the in-memory disk, which learns of injected failures of syncs: a crash loses the
    /// bytes of a failed sync though later syncs succeed.
    pub fn over_memory(memory: &StrictMemFileSystem) -> Self {
        Self::wrap(Arc::new(memory.clone()), Some(memory.clone()))
    }

    fn wrap(below: Arc<dyn FileSystem>, memory: Option<StrictMemFileSystem>) -> Self {
        Self {
            shared: Arc::new(Shared {
                below,
                memory,
                state: Mutex::default(),
                stopped: AtomicBool::new(false),
            }),
        }
    }

    /// Adds a rule; earlier ones go first.
    pub fn add_rule(&self, rule: FaultRule) {
        self.shared.state.lock().rules.push(rule);
    }

    /// Forgets all rules: the disk is healthy again. A stopped machine stays stopped.
    pub fn clear_rules(&self) {
        self.shared.state.lock().rules.clear();
    }

    /// Operations begun so far, struck ones included, those after the stop not.
    pub fn operations(&self) -> u64 {
        self.shared.state.lock().operations
    }

    /// Has delays slept on `clock` from now on.
    pub fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.shared.state.lock().clock = Some(clock);
    }

    /// Operations held up by a delay so far.
    pub fn slowed(&self) -> u64 {
        self.shared.state.lock().slowed
    }

    /// Operations struck so far, those that were only slow not counted.
    pub fn injected(&self) -> u64 {
        self.shared.state.lock().injected
    }

    /// The last operation struck, those that were only slow not counted.
    pub fn struck(&self) -> Option<(OpKind, PathBuf)> {
        self.shared.state.lock().struck.clone()
    }

    /// Stops the machine now.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
    }

    /// Whether the machine was stopped, by [`Fault::Stop`] or by hand.
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Acquire)
    }

    /// Has `observer` notified of every operation from now on; `None` removes the observer.
    pub fn set_observer(&self, observer: Option<Arc<dyn Observer>>) {
        self.shared.state.lock().observer = observer;
    }

    /// Begins to note every operation, from an empty list.
    pub fn record_history(&self) {
        self.shared.state.lock().history = Some(Vec::new());
    }

    /// The operations noted since [`Self::record_history`].
    pub fn history(&self) -> Vec<(OpKind, PathBuf)> {
        self.shared.state.lock().history.clone().unwrap_or_default()
    }

    fn reader(&self, file: Arc<dyn RandomAccessFile>, path: &Path) -> Arc<dyn RandomAccessFile> {
        Arc::new(FaultReader {
            file,
            shared: Arc::clone(&self.shared),
            path: path.to_path_buf(),
            kind: kind_of(path),
        })
    }

    fn writer(
        &self,
        file: Box<dyn WritableFile>,
        path: &Path,
        kind: FileKind,
    ) -> Box<dyn WritableFile> {
        let target = Arc::new(WrittenFile {
            shared: Arc::clone(&self.shared),
            path: path.to_path_buf(),
            kind,
            failure: Mutex::new(None),
            sync_failure: Mutex::new(None),
        });
        Box::new(FaultWriter { file, target })
    }
}

impl FileSystem for FaultFileSystem {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        self.shared.step(OpKind::Create, options.kind, path)?;
        let file = self.shared.below.create(path, options)?;
        Ok(self.writer(file, path, options.kind))
    }

    fn reuse(
        &self,
        old: &Path,
        new: &Path,
        options: CreateOptions,
    ) -> Result<Box<dyn WritableFile>> {
        self.shared.step(OpKind::Reuse, options.kind, new)?;
        let file = self.shared.below.reuse(old, new, options)?;
        Ok(self.writer(file, new, options.kind))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.shared.pass(OpKind::Open, path)?;
        let file = self.shared.below.open(path)?;
        Ok(self.reader(file, path))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.shared.pass(OpKind::Open, path)?;
        let file = self.shared.below.open_direct(path)?;
        Ok(self.reader(file, path))
    }

    fn takes_direct(&self, path: &Path) -> Result<bool> {
        self.shared.pass(OpKind::Info, path)?;
        self.shared.below.takes_direct(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.shared.pass(OpKind::List, dir)?;
        self.shared.below.list(dir)
    }

    fn info(&self, path: &Path) -> Result<FileInfo> {
        self.shared.pass(OpKind::Info, path)?;
        self.shared.below.info(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.shared.pass(OpKind::Rename, to)?;
        self.shared.below.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.shared.pass(OpKind::Link, to)?;
        self.shared.below.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.shared.pass(OpKind::Remove, path)?;
        self.shared.below.remove(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.shared.pass(OpKind::CreateDir, dir)?;
        self.shared.below.create_dir_all(dir)
    }

    fn create_dir(&self, dir: &Path) -> Result<bool> {
        self.shared.pass(OpKind::CreateDir, dir)?;
        self.shared.below.create_dir(dir)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.shared.pass(OpKind::RemoveDir, dir)?;
        self.shared.below.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.shared.pass(OpKind::SyncDir, dir)?;
        let outcome = self.shared.below.sync_dir(dir);
        self.shared.told(OpKind::SyncDir, dir, outcome)
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        self.shared.pass(OpKind::SyncFile, path)?;
        let outcome = self.shared.below.sync_file(path);
        self.shared.told(OpKind::SyncFile, path, outcome)
    }

    fn is_open_elsewhere(&self, path: &Path) -> Result<bool> {
        self.shared.below.is_open_elsewhere(path)
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        self.shared.pass(OpKind::Truncate, path)?;
        self.shared.below.truncate(path, size)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.shared.pass(OpKind::Lock, path)?;
        self.shared.below.lock(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.shared.pass(OpKind::FreeSpace, path)?;
        self.shared.below.free_space(path)
    }

    fn names_whole_files(&self) -> bool {
        self.shared.below.names_whole_files()
    }
}

/// A file being written, as its owner and its syncers see it.
#[derive(Debug)]
struct WrittenFile {
    shared: Arc<Shared>,
    path: PathBuf,
    kind: FileKind,
    /// The injected fault that broke the file.
    failure: Mutex<Option<Error>>,
    /// The injected fault that broke its syncs too.
    sync_failure: Mutex<Option<Error>>,
}

impl WrittenFile {
    fn step(&self, op: OpKind) -> Result<Oddity> {
        check(&self.failure)?;
        self.shared
            .step(op, self.kind, &self.path)
            .inspect_err(|error| self.fail(error))
    }

    fn sync(&self) -> Result<Oddity> {
        check(&self.sync_failure)?;
        let step = self.shared.step(OpKind::Sync, self.kind, &self.path);
        step.inspect_err(|error| {
            let mut failure = self.sync_failure.lock();
            failure.get_or_insert_with(|| error.duplicate());
            drop(failure);
            self.fail(error);
        })
    }

    fn told(&self, outcome: Result<()>) -> Result<()> {
        self.shared.told(OpKind::Sync, &self.path, outcome)
    }

    fn fail(&self, error: &Error) {
        self.failure.lock().get_or_insert_with(|| error.duplicate());
    }
}

fn check(failure: &Mutex<Option<Error>>) -> Result<()> {
    match &*failure.lock() {
        Some(failure) => Err(failure
            .duplicate()
            .context("an earlier call on this file failed")),
        None => Ok(()),
    }
}

#[derive(Debug)]
struct FaultWriter {
    file: Box<dyn WritableFile>,
    target: Arc<WrittenFile>,
}

impl WritableFile for FaultWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let code = match self.target.step(OpKind::Append)? {
            Some(Fault::TornAppend) => Some(libc::EIO),
            Some(Fault::TornNoSpace) => Some(libc::ENOSPC),
            _ => None,
        };
        if let Some(code) = code {
            let (front, _) = bytes.split_at(bytes.len() / 2);
            let error = os_error("write", &self.target.path, code);
            self.target.fail(&error);
            self.file.append(front)?;
            return Err(error);
        }
        self.file.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        check(&self.target.failure)?;
        self.target.sync()?;
        let outcome = self.file.sync();
        self.target.told(outcome)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.target.step(OpKind::Close)?;
        self.file.close()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::new(FaultSyncer {
            syncer: self.file.syncer(),
            target: Arc::clone(&self.target),
        })
    }
}

#[derive(Debug)]
struct FaultSyncer {
    syncer: Arc<dyn FileSyncer>,
    target: Arc<WrittenFile>,
}

impl FileSyncer for FaultSyncer {
    fn sync(&self) -> Result<()> {
        self.target.sync()?;
        let outcome = self.syncer.sync();
        self.target.told(outcome)
    }

    fn prepare(&self) {
        self.syncer.prepare();
    }
}

#[derive(Debug)]
struct FaultReader {
    file: Arc<dyn RandomAccessFile>,
    shared: Arc<Shared>,
    path: PathBuf,
    kind: FileKind,
}

impl FaultReader {
    fn read_oddly(&self, offset: u64, buffer: &mut [u8], oddity: Oddity) -> Result<usize> {
        let n = self.file.read_at(offset, buffer)?;
        match oddity {
            Some(Fault::ShortRead) => Ok(n / 2),
            Some(Fault::FlippedBit) => {
                if let Some(byte) = buffer.get_mut(n / 2).filter(|_| n > 0) {
                    *byte ^= 1 << (offset % 8);
                }
                Ok(n)
            }
            _ => Ok(n),
        }
    }
}

impl RandomAccessFile for FaultReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let oddity = self.shared.step(OpKind::Read, self.kind, &self.path)?;
        self.read_oddly(offset, buffer, oddity)
    }

    /// Each is an operation of its own; those not struck go to the disk together.
    fn queue_read<'a>(&'a self, offset: u64, buffer: &'a mut [u8], queue: &mut ReadQueue<'a>) {
        match self.shared.step(OpKind::Read, self.kind, &self.path) {
            Ok(None) => self.file.queue_read(offset, buffer, queue),
            Ok(oddity) => queue.push_done(self.read_oddly(offset, buffer, oddity)),
            Err(error) => queue.push_done(Err(error)),
        }
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn will_need(&self, offset: u64, len: u64) {
        self.file.will_need(offset, len);
    }
}
