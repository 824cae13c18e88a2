//! The engine's answers under one set of options.

mod copies;
mod disk;
mod iterate;
mod lives;
mod read;
mod write;

use drumlin::{ColumnFamily, Db, DbIterator, Error, PinnedSlice, Result, Snapshot};

use crate::choice::Choice;
use crate::digest;
use crate::expected::Trace;
use crate::generate::{ITERATORS, SNAPSHOTS};
use crate::op::Op;
use crate::verb::Verb;
use disk::Disk;

/// A snapshot with the families of its moment.
struct Pinned {
    snapshot: Snapshot,
    families: Vec<u32>,
}

struct HeldIterator {
    iterator: DbIterator,
    family: ColumnFamily,
    /// Whether it reads at a snapshot, so that a refresh is refused.
    pinned: bool,
}

/// A database under one set of options. Dropping it closes the database and removes its files.
pub(crate) struct World<'t> {
    // Before the disk, so that it is closed first.
    db: Option<Db>,
    iterators: [Option<HeldIterator>; ITERATORS],
    snapshots: [Option<Pinned>; SNAPSHOTS],
    held: Vec<Option<PinnedSlice>>,
    dropped: Option<ColumnFamily>,
    /// Whether ingested tables may overlap others.
    ingested: bool,
    choice: Choice,
    disk: Disk,
    ops: &'t [Op],
    trace: &'t Trace,
    /// The operation that is being performed.
    index: usize,
    /// States before that of this index are gone for good: a later one was synced. `None` before
    /// the first sync.
    durable: Option<usize>,
    seqno: u64,
}

impl<'t> World<'t> {
    /// A new database for `ops`, which must be legal and lead to `trace`.
    ///
    /// # Errors
    /// Those of opening.
    pub(crate) fn new(choice: &Choice, ops: &'t [Op], trace: &'t Trace) -> Result<Self> {
        let mut world = Self {
            db: None,
            iterators: Default::default(),
            snapshots: Default::default(),
            held: Vec::new(),
            dropped: None,
            ingested: false,
            choice: choice.clone(),
            disk: Disk::new(choice.place, ops.len() as u64),
            ops,
            trace,
            index: 0,
            durable: None,
            seqno: 0,
        };
        world.open()?;
        Ok(world)
    }

    /// Performs the operation at `index`, and returns its answer. Errors that are no answer are
    /// given in full.
    pub(crate) fn perform(&mut self, index: usize) -> String {
        self.index = index;
        let op = &self.ops[index];
        let said = self.answer(op);
        said.unwrap_or_else(|error| format!("error: {error:?}"))
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn family(&self, name: &str) -> Option<ColumnFamily> {
        self.db().column_family(name)
    }

    /// All operations so far outlive a power cut from here on.
    fn barrier(&mut self) -> Result<()> {
        self.db().sync_wal()?;
        self.durable = Some(self.index);
        Ok(())
    }

    fn answer(&mut self, op: &Op) -> Result<String> {
        match op.verb {
            Verb::CheckHeld => {
                let held = std::mem::take(&mut self.held);
                return Ok(digest::values(held.iter().map(Option::as_deref)));
            }
            Verb::SnapshotTake | Verb::SnapshotDrop => return Ok(self.snapshot(op)),
            Verb::CreateFamily => return self.create_family(op),
            Verb::ReadDropped => return self.read_dropped(op),
            Verb::IterFirst
            | Verb::IterLast
            | Verb::IterSeek
            | Verb::IterSeekForPrev
            | Verb::IterNext
            | Verb::IterPrev
            | Verb::IterTurn
            | Verb::IterPin
            | Verb::IterRefresh
            | Verb::IterDrop => return self.iterate(op),
            _ => {}
        }
        let missing = op.edits.iter().any(|e| self.family(&e.family).is_none());
        let Some(family) = self.family(&op.family).filter(|_| !missing) else {
            return Ok("no family".to_owned());
        };
        match op.verb {
            Verb::Put
            | Verb::Delete
            | Verb::SinglePut
            | Verb::SingleDelete
            | Verb::Merge
            | Verb::DeleteRange
            | Verb::Batch
            | Verb::BatchAppended
            | Verb::BatchFromBytes
            | Verb::BatchWithLogData
            | Verb::PutSynced
            | Verb::PutUnlogged
            | Verb::PutImpatient
            | Verb::PutParallel
            | Verb::BatchEmpty => self.write(op, &family),
            Verb::DeleteRangeInverted | Verb::MergeRefused | Verb::PutOversize => {
                self.write_refused(op, &family)
            }
            Verb::Ingest | Verb::IngestTwo | Verb::IngestMoved => self.ingest(op, &family),
            Verb::CreateFamilyTwice | Verb::DropFamily => self.change_family(op, &family),
            Verb::Checkpoint | Verb::CheckpointWritten | Verb::RepairCopy => self.copy(op),
            Verb::Reopen
            | Verb::ReopenChanged
            | Verb::ReopenDropped
            | Verb::Crash
            | Verb::CrashLossy
            | Verb::CrashTwice
            | Verb::OpenReadOnly
            | Verb::OpenBeside
            | Verb::OpenTwice
            | Verb::OpenExisting
            | Verb::CloseRefuses => self.live_again(op),
            Verb::Flush
            | Verb::FlushAll
            | Verb::SyncWal
            | Verb::Wait
            | Verb::Compact
            | Verb::CompactRange
            | Verb::CompactCancelled
            | Verb::Verify
            | Verb::Properties
            | Verb::Explain
            | Verb::Advance
            | Verb::Seqno => self.maintain(op, &family),
            _ => self.read(op, &family),
        }
    }

    fn snapshot(&mut self, op: &Op) -> String {
        let taken = (op.verb == Verb::SnapshotTake).then(|| Pinned {
            snapshot: self.db().snapshot(),
            families: self.db().families().iter().map(ColumnFamily::id).collect(),
        });
        let place = &mut self.snapshots[op.slot % SNAPSHOTS];
        let taking = taken.is_some();
        let before = std::mem::replace(place, taken);
        if taking || before.is_some() {
            "ok".to_owned()
        } else {
            "none".to_owned()
        }
    }
}

/// The refusal in `outcome`, of an operation that must be refused.
fn refusal<T>(outcome: Result<T>) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// `Ok` when `outcome` is, or is an allowed error.
fn unless(outcome: Result<()>, may_be: impl Fn(&Error) -> bool) -> Result<()> {
    match outcome {
        Err(error) if !may_be(&error) => Err(error),
        _ => Ok(()),
    }
}
