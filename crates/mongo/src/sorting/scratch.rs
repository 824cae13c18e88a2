//! The memory that queries keep documents in, and the directory for what sorts have beyond it.

use std::path::PathBuf;
use std::sync::Arc;

use drumlin::{Account, Budget, Db};
use drumlin_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use drumlin_doc::{Code, Refusal};
use drumlin_doc_store::Outcome;
use drumlin_fs::{CreateOptions, FileKind, FileSystem};

use crate::counters::Count;
use crate::held::Held;
use crate::wire::limits::STAGE_BYTES_MAX;

use super::run::{Record, Run, RunWriter};

/// The directory of the files, in that of the data.
const DIRECTORY: &str = "sorts";
/// The part of the memory budget that one sort may take, and what it may take of the smallest.
const BUDGET_SHARE: usize = 16;
const LIMIT_LEAST: usize = 256 << 10;
/// Disk space that is left to the data.
const FREE_BYTES_KEPT: u64 = 512 << 20;

/// See the module. Any thread may use it.
#[derive(Debug)]
pub(crate) struct Scratch {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    budget: Budget,
    account: Arc<Account>,
    limit: AtomicUsize,
    next: AtomicU64,
    /// Runs that were written because memory was full.
    pub(crate) spilled: Count,
}

impl Scratch {
    /// Beside the data of `db`. Removes what a server left that did not end by itself.
    pub(crate) fn new(db: &Db, files: Arc<dyn FileSystem>) -> Arc<Self> {
        let dir = db.path().join(DIRECTORY);
        // One that cannot be removed takes room, and is written over by a later one of its name.
        for left in files.list(&dir).unwrap_or_default() {
            drop(files.remove(&dir.join(left)));
        }
        let budget = db.budget();
        Arc::new(Self {
            files,
            dir,
            account: budget.account("queries"),
            budget,
            limit: AtomicUsize::new(STAGE_BYTES_MAX),
            next: AtomicU64::new(0),
            spilled: Count::default(),
        })
    }

    /// Bytes that one sort may have in memory.
    pub(crate) fn limit(&self) -> usize {
        let share = self.budget.limit_bytes() / BUDGET_SHARE;
        self.asked_limit().min(share.max(LIMIT_LEAST))
    }

    /// The limit that was asked for; a small budget may lower it.
    pub(crate) fn asked_limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Asks for another limit; what it was.
    pub(crate) fn set_limit(&self, bytes: usize) -> usize {
        self.limit.swap(bytes, Ordering::Relaxed)
    }

    /// Memory that is charged to the budget as long as it is held.
    pub(super) fn hold(&self) -> Held {
        Held::new(&self.account)
    }

    /// # Errors
    /// `OutOfDiskSpace` where the disk has no room for so many bytes more beside what the data may need.
    pub(super) fn check_room(&self, bytes: usize) -> Outcome<()> {
        self.files.create_dir_all(&self.dir)?;
        let free = self.files.free_space(&self.dir)?;
        if free >= FREE_BYTES_KEPT + bytes as u64 {
            return Ok(());
        }
        let text = format!(
            "a sort needs {bytes} bytes of disk space: {free} are free, and {FREE_BYTES_KEPT} of them are kept for the data"
        );
        Err(Refusal::new(Code::OutOfDiskSpace, text).into())
    }

    /// A file of what `next` gives. One that fails is removed.
    pub(super) fn write_run(
        &self,
        next: &mut dyn FnMut() -> Outcome<Option<Record>>,
    ) -> Outcome<Run> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{number}.run"));
        let options = CreateOptions::new(FileKind::Other);
        let file = self.files.create(&path, options)?;
        let mut writer = RunWriter::new(file, Arc::clone(&self.files), path);
        while let Some(record) = next()? {
            writer.push(&record)?;
        }
        Ok(writer.finish()?)
    }
}

/// What a command sorts with.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(super) scratch: Arc<Scratch>,
    pub(super) may_spill: bool,
}

impl Workspace {
    pub(crate) fn new(scratch: &Arc<Scratch>, may_spill: bool) -> Self {
        Self {
            scratch: Arc::clone(scratch),
            may_spill,
        }
    }

    /// Memory that is charged to the budget as long as it is held.
    pub(crate) fn hold(&self) -> Held {
        self.scratch.hold()
    }

    /// The same, for results: files are allowed.
    pub(crate) fn of_results(&self) -> Self {
        Self::new(&self.scratch, true)
    }
}
