//! Compaction plans: the inputs and output of each, the state pickers look at, and the plans under way.

use std::sync::Arc;

use drumlin_base::limits::LEVELS;
use drumlin_base::{KeyOrder, SeqNo};

use super::span::{OwnedSpan, Span};
use super::style::CompactionStyle;
use crate::version::{FileMeta, Version, VersionEdit};
use crate::watch::reason::Reason;

/// Sizes and triggers that pickers and jobs go by.
#[derive(Clone, Debug)]
pub(crate) struct CompactionOptions {
    /// The order of user keys.
    pub order: KeyOrder,
    /// The picker that chooses; `Auto` is leveled.
    pub style: CompactionStyle,
    /// Whether tables of L0 may be merged into one of L0. Not where the file numbers alone tell
    /// which table of L0 is newer.
    pub merges_within_l0: bool,
    /// L0 tables that start a compaction.
    pub l0_trigger: usize,
    /// Bytes of the first level below L0.
    pub level_base_bytes: u64,
    /// How much larger each level is than the one above.
    pub level_multiplier: u64,
    /// Whether sizes of levels follow from the deepest, not from L1.
    pub dynamic_levels: bool,
    /// Size at which an output table ends.
    pub target_file_bytes: u64,
    /// Seconds after which tables are moved down, or rewritten for a compaction filter; `None` is
    /// never.
    pub age_max_seconds: Option<u64>,
    /// Whether a compaction filter looks at rewritten entries.
    pub filters: bool,
    /// The form (codec, filter) of each level's tables, as a number: a table is moved only between
    /// levels of the same form, and rewritten otherwise.
    pub level_forms: [u8; LEVELS],
    /// Levels that may be used, with L0, 2 or more; deeper ones only where there are tables already.
    pub levels: usize,
}

impl CompactionOptions {
    /// Options with RocksDB's customary sizes.
    pub(crate) fn new(order: KeyOrder) -> Self {
        Self {
            order,
            style: CompactionStyle::Leveled,
            merges_within_l0: true,
            l0_trigger: 4,
            level_base_bytes: 256 << 20,
            level_multiplier: 10,
            dynamic_levels: true,
            target_file_bytes: 64 << 20,
            age_max_seconds: None,
            filters: false,
            level_forms: [0; LEVELS],
            levels: LEVELS,
        }
    }

    /// Most bytes of the level after next that one output table may overlap, so that compacting it
    /// later stays bounded.
    pub(crate) fn grandparent_bytes_max(&self) -> u64 {
        self.target_file_bytes.saturating_mul(10)
    }

    /// Most bytes to which a plan is widened for free.
    pub(crate) fn plan_bytes_max(&self) -> u64 {
        self.target_file_bytes.saturating_mul(25)
    }
}

/// The treatment of a plan's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// They are read, and the surviving entries are written anew.
    Rewrite,
    /// They change their level as they are.
    Move,
    /// They go, with everything in them.
    Drop,
}

/// Input tables of one level, in the level's order.
#[derive(Clone, Debug)]
pub(crate) struct PlanInput {
    /// The level.
    pub level: usize,
    /// Its tables, L0 newest first, other levels ascending.
    pub files: Vec<Arc<FileMeta>>,
}

/// One compaction to be done.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The upper input level.
    pub level: usize,
    /// Where the output goes.
    pub output_level: usize,
    /// The inputs, upper level first, levels without tables left out.
    pub inputs: Vec<PlanInput>,
    /// Tables of the first level below the output that the inputs overlap, ascending.
    pub grandparents: Vec<Arc<FileMeta>>,
    /// The treatment of the inputs.
    pub work: Work,
    /// Why.
    pub reason: Reason,
    /// How urgent: 1 is the trigger.
    pub score: f64,
}

impl Plan {
    /// The input tables with their levels.
    pub(crate) fn files(&self) -> impl Iterator<Item = (usize, &Arc<FileMeta>)> {
        self.inputs
            .iter()
            .flat_map(|input| input.files.iter().map(move |file| (input.level, file)))
    }

    /// Bytes of all inputs.
    pub(crate) fn input_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.size).sum()
    }

    /// The user keys the inputs cover. `None` for a plan without inputs, which no picker makes.
    pub(crate) fn span(&self, order: &KeyOrder) -> Option<Span<'_>> {
        self.files()
            .map(|(_, file)| Span::of(file))
            .reduce(|a, b| a.hull(order, &b))
    }

    /// Claims every input; on false none is claimed.
    #[must_use]
    pub(crate) fn claim(&self) -> bool {
        for (count, (_, file)) in self.files().enumerate() {
            if !file.claim() {
                self.files()
                    .take(count)
                    .for_each(|(_, file)| file.release_claim());
                return false;
            }
        }
        true
    }

    /// Gives the claims back.
    pub(crate) fn release_claims(&self) {
        self.files().for_each(|(_, file)| file.release_claim());
    }

    /// The record of the plan for other pickers while it is carried out.
    pub(crate) fn running(&self, order: &KeyOrder) -> Option<Running> {
        Some(Running {
            level: self.level,
            output_level: self.output_level,
            span: self.span(order)?.to_owned_span(),
        })
    }

    /// The edit that carries out the plan in family `column_family` where nothing is written for
    /// it; `None` when something is.
    pub(crate) fn edit_alone(&self, column_family: u32) -> Option<VersionEdit> {
        let mut edit = VersionEdit {
            column_family,
            deleted_files: self.deleted_files(),
            ..VersionEdit::default()
        };
        match self.work {
            Work::Rewrite => return None,
            Work::Drop => {}
            Work::Move => {
                let level = self.output_level as u32;
                edit.new_files = self
                    .files()
                    .map(|(_, file)| (level, file.described().clone()))
                    .collect();
            }
        }
        Some(edit)
    }

    /// The edit part that takes the inputs away.
    pub(crate) fn deleted_files(&self) -> Vec<(u32, u64)> {
        self.files()
            .map(|(level, file)| (level as u32, file.number))
            .collect()
    }
}

/// A plan that is being carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    /// The upper input level.
    pub level: usize,
    /// The output level.
    pub output_level: usize,
    /// The user keys of the inputs, and thus of the output.
    pub span: OwnedSpan,
}

/// The plans of one family that are being carried out.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    /// In no order.
    pub running: Vec<Running>,
}

impl InFlight {
    /// Whether some plan takes tables from L0 to a deeper level. Only one may at a time.
    pub(crate) fn empties_l0(&self) -> bool {
        let mut running = self.running.iter();
        running.any(|running| running.level == 0 && running.output_level > 0)
    }

    /// Whether some plan will put tables into `level` within `span`.
    pub(crate) fn writes_into(&self, order: &KeyOrder, level: usize, span: &Span<'_>) -> bool {
        self.running.iter().any(|running| {
            running.output_level == level && running.span.as_span().overlaps(order, span)
        })
    }

    /// Forgets a plan that has ended.
    pub(crate) fn remove(&mut self, ended: &Running) {
        if let Some(at) = self.running.iter().position(|running| running == ended) {
            self.running.swap_remove(at);
        }
    }
}

/// A range the user wants compacted, from one level into another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ManualRange<'a> {
    /// The level to take tables from.
    pub level: usize,
    /// Where they go: below `level`, or `level` itself to rewrite in place (not L0).
    pub output_level: usize,
    /// First user key; `None` is unbounded.
    pub begin: Option<&'a [u8]>,
    /// Last user key, included; `None` is unbounded.
    pub end: Option<&'a [u8]>,
}

/// The state a picker looks at beside the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    /// The plans under way.
    pub in_flight: &'a InFlight,
    /// Unix seconds.
    pub now: u64,
    /// The oldest snapshot held; `SEQNO_MAX` when none is.
    pub oldest_snapshot: SeqNo,
    /// Whether the background has nothing else to do, so that it may do what can wait
    /// ([`Reason::can_wait`]).
    pub is_quiet: bool,
    /// Seconds until the family's memtable is full, should the store be written on as it is now;
    /// `u64::MAX` where it is not written.
    pub flush_cf: u64,
    /// Whether uncovering garbage did not just find the disk too full; see [`super::blob_picker`].
    pub has_space: bool,
}

/// Chooses what to compact next. Pure: looks, claims nothing.
pub(crate) trait Picker {
    /// The most urgent plan that conflicts with none in flight; `None` when nothing is due.
    fn pick(
        &self,
        version: &Version,
        options: &CompactionOptions,
        moment: &Moment<'_>,
    ) -> Option<Plan>;
}
