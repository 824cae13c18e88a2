//! Sorting, in memory as far as it goes and in files beyond it.

mod merge;
mod run;
mod scratch;

use drumlin_doc::{Code, Document, Refusal, Sort};
use drumlin_doc_store::{Failure, Outcome};

use crate::held::Held;
use crate::wire::limits::STAGE_BYTES_MAX;

use merge::Merge;
use run::{Record, Run};

pub(crate) use scratch::{Scratch, Workspace};

/// Runs of one level that are merged to one of the next, so that no merge has more than this many of a level.
const RUNS_MERGED: usize = 64;

/// The refusal of what takes too much memory.
pub(crate) fn too_much(what: &str) -> Refusal {
    let text = format!(
        "{what} needs more than {STAGE_BYTES_MAX} bytes, and this server keeps it in memory"
    );
    Refusal::new(Code::MemoryLimit, text)
}

/// Sorts documents; equal ones stay as they came, and so do all in an empty order. What memory has no room for is sorted and written to
/// a file; what comes out is merged from the files while it is read.
#[derive(Debug)]
pub(crate) struct Sorter {
    sort: Sort,
    most: usize,
    kept: Vec<Record>,
    bytes: usize,
    held: Held,
    workspace: Workspace,
    /// Files by their level: those of a higher one came before those of a lower one, and in one level they are as they came.
    levels: Vec<Vec<Run>>,
}

impl Sorter {
    /// Of which only the first `most` are asked for.
    pub(crate) fn new(sort: Sort, most: u64, workspace: &Workspace) -> Self {
        Self {
            sort,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            kept: Vec::new(),
            bytes: 0,
            held: workspace.scratch.hold(),
            workspace: workspace.clone(),
            levels: Vec::new(),
        }
    }

    /// The order.
    pub(crate) fn order(&self) -> &Sort {
        &self.sort
    }

    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed` where files are not allowed, `OutOfDiskSpace`, those of the files.
    pub(crate) fn push(&mut self, document: Vec<u8>) -> Outcome<()> {
        let key = self.sort.key_of(Document(&document));
        let record = Record { key, document };
        self.bytes += record.bytes();
        self.kept.push(record);
        self.held.set(self.bytes);
        let limit = self.workspace.scratch.limit();
        let is_full = self.kept.len() / 2 >= self.most.max(512);
        if is_full || self.bytes > limit {
            self.cut();
        }
        // What a cut leaves near the limit would be cut again with every document: it goes to a file early, where that is allowed.
        let is_early = is_full && self.workspace.may_spill;
        if self.bytes > limit || (is_early && self.bytes > limit / 2) {
            self.spill()?;
        }
        Ok(())
    }

    fn cut(&mut self) {
        self.kept.sort_by(|a, b| a.key.cmp(&b.key));
        self.kept.truncate(self.most);
        self.bytes = self.kept.iter().map(Record::bytes).sum();
    }

    /// Writes what is in memory, which is in order, to a file.
    fn spill(&mut self) -> Outcome<()> {
        let scratch = &self.workspace.scratch;
        if !self.workspace.may_spill {
            let limit = scratch.limit();
            let text = format!(
                "a sort needs more than {limit} bytes of memory, and allowDiskUse is false"
            );
            return Err(Refusal::new(Code::MemoryLimit, text).into());
        }
        scratch.check_room(self.bytes)?;
        let mut kept = std::mem::take(&mut self.kept).into_iter();
        let mut run = scratch.write_run(&mut || Ok(kept.next()))?;
        scratch.spilled.add(1);
        self.bytes = 0;
        for level in 0.. {
            match self.levels.get_mut(level) {
                Some(runs) if runs.len() + 1 == RUNS_MERGED => {
                    let mut runs = std::mem::take(runs);
                    runs.push(run);
                    scratch.check_room(runs.iter().map(Run::bytes).sum())?;
                    let mut merge = Merge::new(runs, self.most, scratch.hold())?;
                    run = scratch.write_run(&mut || merge.next())?;
                }
                Some(runs) => {
                    runs.push(run);
                    break;
                }
                None => {
                    self.levels.push(vec![run]);
                    break;
                }
            }
        }
        Ok(())
    }

    /// All documents, in order.
    ///
    /// # Errors
    /// As of [`Sorter::push`].
    pub(crate) fn finish(mut self) -> Outcome<Sorted> {
        self.cut();
        if self.levels.is_empty() {
            return Ok(Sorted::Memory {
                records: self.kept.into_iter(),
                _held: self.held,
            });
        }
        if !self.kept.is_empty() {
            self.spill()?;
        }
        let runs = self.levels.into_iter().rev().flatten().collect();
        let held = self.workspace.scratch.hold();
        Ok(Sorted::Files(Box::new(Merge::new(runs, self.most, held)?)))
    }
}

/// Documents in order.
#[derive(Debug)]
pub(crate) enum Sorted {
    Memory {
        records: std::vec::IntoIter<Record>,
        _held: Held,
    },
    Files(Box<Merge>),
}

impl Sorted {
    /// The next one.
    ///
    /// # Errors
    /// Of the files.
    pub(crate) fn next(&mut self) -> Outcome<Option<Vec<u8>>> {
        let record = match self {
            Self::Memory { records, .. } => records.next(),
            Self::Files(merge) => merge.next()?,
        };
        Ok(record.map(|record| record.document))
    }

    /// All of them, in memory.
    ///
    /// # Errors
    /// Of the files; `QueryExceededMemoryLimitNoDiskUseAllowed` for too many, called `what`.
    pub(crate) fn collect(mut self, what: &str) -> Outcome<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        let mut bytes = 0;
        while let Some(document) = self.next()? {
            bytes += document.len();
            all.push(document);
            if bytes > STAGE_BYTES_MAX {
                return Err(Failure::from(too_much(what)));
            }
        }
        Ok(all)
    }
}
