//! The state of a walk: where it stands, its sources, and its bounds.
//!
//! Owns its super version, so flushes, compactions, drops and closing do not disturb it. One thread
//! at a time. Where the tables are laid out in memory it may be used for one walk after another
//! ([`crate::read::iterator`]).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::bytes::LocalPool;
use drumlin_base::key::{is_same_bytes, tag_kind};
use drumlin_base::{Error, InternalIterator, PinnedSlice, Result, SeqNo, ValueKind};
use drumlin_fs::process::Process;
use drumlin_table::TableReadOptions;
use drumlin_table::blob::BlobIndex;

use super::parts::{
    Covering, DEAD_STRETCH, DeadWalk, HIDDEN_STEPS_MAX, KEPT_BYTES_MAX, Place, SavedValue,
    checked_parts,
};
use crate::family::snapshot::Snapshot;
use crate::family::super_version::SuperVersion;
use crate::iter::merge_operands::MergeOperands;
use crate::iter::merging::MergingIterator;
use crate::iter::run::RunOptions;
use crate::read::context::ReadContext;
use crate::read::lazy_blob::LazyBlob;
use crate::read::sampling::WalkMeter;
use crate::read::source::{Source, TombstoneCursor};
use crate::watch::times::CallTimes;

/// Walks that wait for the next iterator, by super version.
pub(crate) type WalkPool = LocalPool<Walk>;

/// The reads of one family: the parts they use, and the walks that wait for its next iterators.
///
/// A walk owns it, so that the iterator finds the pool when it is dropped.
#[derive(Debug)]
pub struct FamilyReads {
    /// The fixed parts.
    pub context: ReadContext,
    /// Advanced with the super version, and closed with the family.
    pub walks: WalkPool,
}

impl Deref for FamilyReads {
    type Target = ReadContext;

    #[inline]
    fn deref(&self) -> &ReadContext {
        &self.context
    }
}

/// How to walk.
#[derive(Clone, Debug)]
pub struct IteratorOptions {
    /// The first user key that may be met.
    pub lower_bound: Option<Vec<u8>>,
    /// The first user key past the last that may be met.
    pub upper_bound: Option<Vec<u8>>,
    /// End the walk where the prefix of the key sought ends. Needs a prefix extractor.
    pub prefix_same_as_start: bool,
    /// How blocks are read.
    pub table: TableReadOptions,
}

/// Where an iterator finds the present state when it is refreshed.
pub trait RefreshSource: Send + Sync {
    /// The present super version and, taken after it, the published sequence number.
    fn present(&self) -> (Arc<SuperVersion>, SeqNo);

    /// The published sequence number, if `held` is still the present super version: writes nothing
    /// that other threads read.
    fn seqno_if_present(&self, held: &Arc<SuperVersion>) -> Option<SeqNo>;

    /// Where the times of calls are kept, if they are.
    fn call_times(&self) -> Option<&CallTimes> {
        None
    }
}

/// Entries that a walk passed over; for explaining why one is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IteratorCounters {
    /// Entries stepped over: older versions, newer than the snapshot, or under a tombstone.
    pub entries_hidden: u64,
    /// Point tombstones met.
    pub tombstones: u64,
    /// Entries met under a range tombstone.
    pub range_deleted: u64,
    /// Seeks made to leave hidden entries behind.
    pub seeks: u64,
}

/// The walk inside a [`crate::read::DbIterator`], whose methods are described here.
pub struct Walk {
    /// The process that made it. A forked child may not move it: threads that are not in the child may hold locks of
    /// its sources.
    process: Process,
    pub(in crate::read) context: Arc<FamilyReads>,
    pub(in crate::read) options: IteratorOptions,
    pub(in crate::read) source: Option<Arc<dyn RefreshSource>>,
    pub(in crate::read) snapshot: Option<Snapshot>,
    pub(in crate::read) super_version: Arc<SuperVersion>,
    pub(in crate::read) seqno: SeqNo,
    pub(in crate::read) cursor: MergingIterator<Source>,
    /// Whether any source was found to hold range tombstones; else no key is checked for them.
    pub(in crate::read) tombstones_seen: Arc<AtomicBool>,
    pub(in crate::read) tombstone_cursors: Vec<TombstoneCursor>,
    pub(in crate::read) place: Place,
    /// The user key of `Saved` and `Behind`; while skipping, the key whose versions are skipped.
    pub(in crate::read) key: Vec<u8>,
    pub(in crate::read) value: SavedValue,
    /// Whether what was saved going backward is a deletion with a timestamp.
    pub(in crate::read) is_behind_deletion: bool,
    pub(in crate::read) blob: LazyBlob,
    pub(in crate::read) operands: MergeOperands,
    /// The internal key sought last, kept for its capacity.
    pub(in crate::read) target: Vec<u8>,
    /// The prefix that the walk stays within, if it `is_within`; else kept for its capacity.
    pub(in crate::read) prefix: Vec<u8>,
    pub(in crate::read) is_within: bool,
    /// Whether the sources know that it `is_within`, or is not.
    pub(in crate::read) told_within: bool,
    /// Whether the super version's tables are laid out in memory.
    pub(in crate::read) is_resident: bool,
    pub(in crate::read) error: Option<Error>,
    /// The reason it shows nothing, for good.
    refused: Option<Error>,
    /// Entries met in a row under range tombstones and left by steps.
    pub(in crate::read) covered_in_a_row: u32,
    /// Keys found dead since the last that showed, or since the walk was positioned.
    pub(in crate::read) dead_in_a_row: u32,
    pub(in crate::read) dead: DeadWalk,
    pub(in crate::read) counters: IteratorCounters,
    pub(in crate::read) meter: WalkMeter,
}

impl Walk {
    /// A walk over `super_version` as a reader at `seqno` sees it. `snapshot`, if given, is held to keep
    /// `seqno` pinned through refreshes; `source` is asked by [`Walk::refresh`].
    pub fn new(
        context: Arc<FamilyReads>,
        super_version: Arc<SuperVersion>,
        seqno: SeqNo,
        options: IteratorOptions,
    ) -> Self {
        let tombstones_seen = Arc::new(AtomicBool::new(false));
        let is_resident = is_resident(&context, &super_version);
        let run = run_options(&context, &options, &tombstones_seen);
        let cursor = open_cursor(&super_version, is_resident, &run);
        Self {
            process: Process::current(),
            is_resident,
            tombstone_cursors: vec![TombstoneCursor::default(); cursor.children().len()],
            cursor,
            tombstones_seen,
            context,
            blob: LazyBlob::new(options.table.readahead_bytes),
            options,
            source: None,
            snapshot: None,
            super_version,
            seqno,
            place: Place::Nowhere,
            key: Vec::new(),
            value: SavedValue::default(),
            is_behind_deletion: false,
            operands: MergeOperands::default(),
            target: Vec::new(),
            prefix: Vec::new(),
            is_within: false,
            told_within: false,
            error: None,
            refused: None,
            covered_in_a_row: 0,
            dead_in_a_row: 0,
            dead: DeadWalk::default(),
            counters: IteratorCounters::default(),
            meter: WalkMeter::new(),
        }
    }

    /// Whether this is the process that made it.
    #[inline]
    pub(in crate::read) fn is_at_home(&self) -> bool {
        self.process.is_present()
    }

    /// Ends the walk in a forked child.
    #[cold]
    pub(in crate::read) fn refuse_child(&mut self) {
        if let Err(error) = self.process.check() {
            self.fail(error);
        }
    }

    /// Whether the walk stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// The user key; empty while the walk is not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.place {
            Place::Direct | Place::DirectBlob => checked_parts(&self.cursor).0,
            Place::Saved | Place::Behind | Place::BehindBlob => &self.key,
            Place::Nowhere => &[],
        }
    }

    /// Whether the walk stands on a deletion, as it does in a family whose keys end with timestamps.
    #[inline]
    pub fn is_deletion(&self) -> bool {
        match self.place {
            Place::Direct => {
                tag_kind(checked_parts(&self.cursor).1) == ValueKind::DeletionWithTimestamp as u8
            }
            Place::Behind => self.is_behind_deletion,
            _ => false,
        }
    }

    /// The value; empty while the walk is not valid.
    ///
    /// A value in a blob file is read by the first call. If that fails the value is empty, `status()`
    /// says why, and the next move ends the walk; [`Walk::try_value`] reports it at once.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.place {
            Place::Direct => self.cursor.value(),
            Place::Saved | Place::Behind => self.value.bytes(),
            _ if !self.is_at_home() => &[],
            Place::DirectBlob | Place::BehindBlob => self.blob().map_or(&[], |value| value),
            Place::Nowhere => &[],
        }
    }

    /// As [`Walk::value`], with the error where a value in a blob file cannot be read.
    ///
    /// # Errors
    /// `Corruption`, `Io`; `Incomplete` when only cached blocks may be read.
    pub fn try_value(&self) -> Result<&[u8]> {
        self.process.check()?;
        let value = self.value();
        match self.blob.error() {
            Some(error) => Err(error.duplicate()),
            None => Ok(value),
        }
    }

    /// The blob behind `reference` of `user_key`, that operands apply to.
    pub(in crate::read) fn read_blob(
        &self,
        user_key: &[u8],
        reference: &[u8],
    ) -> Result<PinnedSlice> {
        let index = BlobIndex::decode(reference)?;
        let (version, options) = (&self.super_version.version, &self.options.table);
        self.context.blobs.read(version, user_key, &index, options)
    }

    /// The blob that the entry stood on refers to.
    fn blob(&self) -> Result<&PinnedSlice, &Error> {
        let reference = match self.place {
            Place::DirectBlob => self.cursor.value(),
            _ => self.value.bytes(),
        };
        let (blobs, version) = (&self.context.blobs, &self.super_version.version);
        self.blob
            .get(blobs, version, &self.options.table, self.key(), reference)
    }

    /// The value, to be kept past the next move: pinned in its source, or a copy where the walk holds
    /// a copy, a merged value or a blob.
    pub fn pin_value(&self) -> PinnedSlice {
        match self.place {
            Place::Direct => self.cursor.current().pin_value(),
            _ => PinnedSlice::owned(self.value().to_vec()),
        }
    }

    /// The error that ended the walk, if one did.
    ///
    /// # Errors
    /// `Corruption` and `Io` from tables, `InvalidArgument` for merge operands without an operator,
    /// `NotSupported` for entries only another engine serves, `Incomplete` when only cached blocks
    /// may be read.
    pub fn status(&self) -> Result<()> {
        self.process.check()?;
        match self.error.as_ref().or(self.blob.error()) {
            Some(error) => Err(error.duplicate()),
            None => Ok(()),
        }
    }

    /// Entries passed over so far.
    pub fn counters(&self) -> IteratorCounters {
        self.counters
    }

    /// The sequence number whose state the walk shows.
    pub fn seqno(&self) -> SeqNo {
        self.seqno
    }

    /// The super version walked over.
    pub fn super_version(&self) -> &Arc<SuperVersion> {
        &self.super_version
    }

    /// Takes up the present state of the database; the walk must be positioned anew.
    ///
    /// As long as no memtable was filled and no table made or removed, this costs next to nothing.
    ///
    /// # Errors
    /// `NotSupported` when the walk was made without a source, or at a snapshot.
    pub fn refresh(&mut self) -> Result<()> {
        self.process.check()?;
        let source = self.source.as_ref();
        let Some(source) = source.filter(|_| self.snapshot.is_none()) else {
            return Err(Error::not_supported(
                "refreshing an iterator over a fixed view",
            ));
        };
        if let Some(seqno) = source
            .seqno_if_present(&self.super_version)
            .filter(|_| self.follows_super_version())
        {
            self.seqno = seqno;
            self.reset();
            return Ok(());
        }
        let (super_version, seqno) = source.present();
        self.seqno = seqno;
        self.is_resident = is_resident(&self.context, &super_version);
        self.super_version = super_version;
        // Sources that are made anew know of no prefix.
        self.told_within = false;
        self.tombstones_seen = Arc::new(AtomicBool::new(false));
        let run = run_options(&self.context, &self.options, &self.tombstones_seen);
        self.cursor = open_cursor(&self.super_version, self.is_resident, &run);
        self.tombstone_cursors = vec![TombstoneCursor::default(); self.cursor.children().len()];
        self.reset();
        Ok(())
    }

    /// Begins another walk as of `seqno` over the same super version, as `options` say.
    ///
    /// Requires: `is_resident`, and `follows_super_version()`. Cursors of tables in memory use none of the options
    /// for reading blocks, so the sources only get new bounds.
    pub(in crate::read) fn reuse(
        &mut self,
        seqno: SeqNo,
        options: IteratorOptions,
        snapshot: Option<Snapshot>,
    ) {
        let bounds = |options: &IteratorOptions| {
            options.lower_bound.is_some() || options.upper_bound.is_some()
        };
        if bounds(&self.options) || bounds(&options) {
            let run = run_options(&self.context, &options, &self.tombstones_seen);
            for source in self.cursor.children_mut() {
                source.set_options(&run);
            }
        }
        self.blob.restart(options.table.readahead_bytes);
        self.options = options;
        self.snapshot = snapshot;
        self.seqno = seqno;
        self.covered_in_a_row = 0;
        self.counters = IteratorCounters::default();
        self.meter = WalkMeter::new();
    }

    /// Drops everything that another walk over the same super version does not need. True when this may serve
    /// another walk.
    pub(in crate::read) fn prepare_for_reuse(&mut self) -> bool {
        if !self.is_resident || self.tombstones_seen.load(Ordering::Relaxed) {
            return false;
        }
        self.reset();
        self.snapshot = None;
        self.blob.restart(0);
        self.value.shrink();
        for buffer in [&mut self.key, &mut self.target, &mut self.prefix] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        true
    }

    /// Whether the cursor sees later writes to its memtables. It misses those to a memtable that was empty
    /// and left out, and the first range tombstone of a memtable.
    pub(in crate::read) fn follows_super_version(&self) -> bool {
        let mut memtables = self.super_version.memtables();
        memtables.all(|memtable| memtable.range_tombstone_count() == 0) && self.meets_all_writes()
    }

    /// Whether the cursor meets every entry of its memtables, later ones too: none of them was left out.
    pub(in crate::read) fn meets_all_writes(&self) -> bool {
        let sources = self.cursor.children().iter();
        let met = sources.filter(|source| source.is_memtable()).count();
        met == 1 + self.super_version.immutables.len()
    }
}

/// Bounds, tombstones, ends.
impl Walk {
    /// The newest source with a range tombstone over the key under the cursor (which is
    /// `self.key`, or the same in order) that is newer than `seqno`.
    pub(in crate::read) fn covering(&mut self, seqno: SeqNo) -> Option<Covering> {
        if !self.tombstones_seen.load(Ordering::Relaxed) {
            return None;
        }
        let sources = self
            .cursor
            .children()
            .iter()
            .zip(&mut self.tombstone_cursors);
        // Older sources hold only tombstones older than the entry.
        for (rank, (source, at)) in sources.enumerate().take(self.cursor.current_rank() + 1) {
            let covering = source.covering(&self.context.order, at, &self.key, self.seqno);
            if covering.is_some_and(|covered| covered.seqno > seqno) {
                return Some(Covering { rank });
            }
        }
        None
    }

    /// Whether to jump over the entries that `covering` hides rather than step: after `HIDDEN_STEPS_MAX` steps, and
    /// only where the entry under the cursor moves with the jump.
    pub(in crate::read) fn is_jump_due(&mut self, covering: Covering) -> bool {
        self.covered_in_a_row += 1;
        if self.covered_in_a_row <= HIDDEN_STEPS_MAX || self.cursor.current_rank() <= covering.rank
        {
            return false;
        }
        self.covered_in_a_row = 0;
        true
    }

    /// Counts the dead entry under the cursor. Long runs are reported to their table or memtable, a stretch at a
    /// time: a memtable that wastes much is flushed, a table is compacted.
    #[inline]
    pub(in crate::read) fn note_dead(&mut self) {
        self.dead_in_a_row += 1;
        if self.dead_in_a_row.is_multiple_of(DEAD_STRETCH) {
            self.cursor.current().note_dead_walked(DEAD_STRETCH);
        }
    }

    #[inline]
    pub(in crate::read) fn within_upper(&self, user_key: &[u8]) -> bool {
        let below = match &self.options.upper_bound {
            Some(upper) => self.context.order.compare(user_key, upper).is_lt(),
            None => true,
        };
        below && self.within_prefix(user_key)
    }

    #[inline]
    pub(in crate::read) fn within_lower(&self, user_key: &[u8]) -> bool {
        let above = match &self.options.lower_bound {
            Some(lower) => self.context.order.compare(user_key, lower).is_ge(),
            None => true,
        };
        above && self.within_prefix(user_key)
    }

    #[inline]
    fn within_prefix(&self, user_key: &[u8]) -> bool {
        if !self.is_within {
            return true;
        }
        let extractor = self.context.prefix.as_deref();
        let prefix = extractor.and_then(|extractor| extractor.prefix(user_key));
        prefix.is_some_and(|prefix| {
            if drumlin_base::bug!("longer-keys-within-the-prefix") {
                prefix.starts_with(&self.prefix)
            } else {
                is_same_bytes(prefix, &self.prefix)
            }
        })
    }

    /// Stands nowhere, without an error and within no prefix.
    pub(in crate::read) fn reset(&mut self) {
        self.place = Place::Nowhere;
        self.error = None;
        drop(self.blob.forget()); // An error in it belongs to the former walk.
        self.is_within = false;
        self.operands.clear();
    }

    /// The walk is over: at an end, or at the cursor's error.
    pub(in crate::read) fn end(&mut self) {
        self.place = Place::Nowhere;
        let refused = self.refused.as_ref().map(Error::duplicate);
        self.error = refused.or_else(|| self.cursor.status().err());
    }

    /// Requires: there is nothing in the super version.
    pub(in crate::read) fn refuse(&mut self, error: Error) {
        self.refused = Some(error);
        self.end();
    }

    #[cold]
    pub(in crate::read) fn fail(&mut self, error: Error) {
        self.place = Place::Nowhere;
        self.error = Some(error);
    }
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk")
            .field("seqno", &self.seqno)
            .field("place", &self.place)
            .field("key", &self.key())
            .finish_non_exhaustive()
    }
}

/// Whether the tables of `super_version` are laid out in memory.
fn is_resident(context: &ReadContext, super_version: &SuperVersion) -> bool {
    context.in_memory
        && super_version
            .resident_runs(&context.order, &context.tables)
            .is_some()
}

fn run_options(
    context: &ReadContext,
    options: &IteratorOptions,
    tombstones_seen: &Arc<AtomicBool>,
) -> Arc<RunOptions> {
    let bound = |bound: &Option<Vec<u8>>| bound.as_deref().map(Arc::from);
    Arc::new(RunOptions {
        order: context.order.clone(),
        tables: Arc::clone(&context.tables),
        table: options.table,
        lower_bound: bound(&options.lower_bound),
        upper_bound: bound(&options.upper_bound),
        tombstones_seen: Arc::clone(tombstones_seen),
    })
}

/// The sources of `super_version`; those laid out in memory, if they `are_resident`.
fn open_cursor(
    super_version: &Arc<SuperVersion>,
    are_resident: bool,
    run: &Arc<RunOptions>,
) -> MergingIterator<Source> {
    let sources = if are_resident {
        Source::all_resident(super_version, run)
    } else {
        Source::all(super_version, run)
    };
    if sources.iter().any(Source::has_tombstones) {
        run.tombstones_seen.store(true, Ordering::Relaxed);
    }
    MergingIterator::new(run.order.clone(), sources)
}
