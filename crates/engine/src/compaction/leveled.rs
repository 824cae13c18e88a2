//! The leveled picker: L0 by count, deeper levels by size, each ten times the one above.
//!
//! Level sizes are dynamic, as in Dong et al., "Optimizing Space Amplification in RocksDB" (CIDR
//! 2017), section 3: the deepest level sets the scale, targets shrink upward from it, and L0 is
//! compacted straight into the first level whose target is worth having (the *base level*). The
//! levels between stay empty, and about nine tenths of the data are in the deepest level whatever
//! the size of the database.
//!
//! Without dynamic levels L1 sets the scale, L0 is compacted into it, and each level below has its multiple.

use std::ops::Range;
use std::sync::Arc;

use drumlin_base::KeyOrder;
use drumlin_base::limits::LEVELS;

use super::for_reads::{self, Account};
use super::intra_l0;
use super::plan::{
    CompactionOptions, InFlight, ManualRange, Moment, Picker, Plan, PlanInput, Work,
};
use super::span::{Span, covering_range, widen_to_whole_keys};
use super::wanted::{Wish, wish};
use crate::version::{FileMeta, Version};
use crate::watch::reason::Reason;

/// Tables of a level that are tried, best first, before the level is given up for now.
const CANDIDATES_MAX: usize = 64;

/// Tables of L0 past the trigger that wait for the level below; with more they are merged among
/// themselves.
const L0_SPARE_TABLES: usize = 2;

/// Tables charged most by reads that are looked at for one compaction.
const CHARGED_MAX: usize = 16;

/// The score of compactions for reads: behind all others.
const FOR_READS: f64 = -1.0;

/// How large each level should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelTargets {
    /// The level that L0 is compacted into.
    pub base_level: usize,
    /// The deepest level that tables may go to.
    pub last_level: usize,
    /// Bytes each level may hold before it is compacted; levels above the base hold nothing.
    pub bytes_max: [u64; LEVELS],
}

impl LevelTargets {
    /// The targets for `version`.
    pub(crate) fn of(version: &Version, options: &CompactionOptions) -> Self {
        let last = options.levels.clamp(2, LEVELS) - 1;
        let last = last.max(version.deepest_level().unwrap_or(0));
        let multiplier = options.level_multiplier.max(2);
        let largest = (1..LEVELS).map(|n| version.level_bytes(n)).max();
        let first_used = (1..LEVELS).find(|&n| !version.level(n).is_empty());
        let mut bytes_max = [u64::MAX; LEVELS];
        if !options.dynamic_levels && !drumlin_base::bug!("levels-always-dynamic") {
            let mut target = options.level_base_bytes.max(1);
            for bytes in bytes_max.iter_mut().skip(1) {
                *bytes = target;
                target = target.saturating_mul(multiplier);
            }
            return Self {
                base_level: 1,
                last_level: last,
                bytes_max,
            };
        }
        let (Some(first_used), Some(largest)) = (first_used, largest) else {
            return Self {
                base_level: last,
                last_level: last,
                bytes_max,
            };
        };
        let base_max = options.level_base_bytes.max(version.level_bytes(0)).max(1);
        let base_min = base_max / multiplier;
        // The size of the first level in use if the deepest had exactly its present size.
        let mut size = (first_used..last).fold(largest, |size, _| size / multiplier);
        let mut base_level = first_used;
        if size <= base_min {
            size = base_min + 1;
        }
        while base_level > 1 && size > base_max {
            base_level -= 1;
            size /= multiplier;
        }
        let mut target = size.clamp(1, base_max);
        for (level, bytes) in bytes_max.iter_mut().enumerate().skip(base_level) {
            if level > base_level {
                target = target.saturating_mul(multiplier);
            }
            *bytes = target.max(base_max);
        }
        Self {
            base_level,
            last_level: last,
            bytes_max,
        }
    }

    fn bytes_max(&self, level: usize) -> u64 {
        self.bytes_max.get(level).copied().unwrap_or(u64::MAX)
    }
}

/// The leveled picker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leveled;

impl Picker for Leveled {
    fn pick(
        &self,
        version: &Version,
        options: &CompactionOptions,
        moment: &Moment<'_>,
    ) -> Option<Plan> {
        let search = Search::new(version, options, moment.in_flight);
        let mut scores = search.scores();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scores
            .iter()
            .take_while(|(score, _)| *score >= 1.0)
            .find_map(|&(score, level)| search.pick_level(level, score))
            .or_else(|| search.pick_wanted(moment))
            .or_else(|| search.pick_for_reads(moment))
    }
}

impl Leveled {
    /// The account of the compaction that reads are nearest to having paid for; `None` when they
    /// paid for none.
    pub(crate) fn read_account(
        &self,
        version: &Version,
        options: &CompactionOptions,
        in_flight: &InFlight,
    ) -> Option<Account> {
        let search = Search::new(version, options, in_flight);
        let plans = search.for_reads().into_iter();
        let accounts = plans.map(|plan| Account::of(&plan));
        accounts.max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    /// The plan for a range the user names; `None` when the level holds nothing there, or what it
    /// holds is being compacted.
    pub(crate) fn plan_manual(
        &self,
        version: &Version,
        options: &CompactionOptions,
        in_flight: &InFlight,
        range: &ManualRange<'_>,
    ) -> Option<Plan> {
        let search = Search::new(version, options, in_flight);
        let order = &options.order;
        let files = version.overlapping(order, range.level, range.begin, range.end);
        let files = match (range.level, files.first(), files.last()) {
            (0, _, _) => files,
            (level, Some(first), Some(last)) => {
                let span = Span::of(first).hull(order, &Span::of(last));
                search.covering(level, &span)
            }
            _ => return None,
        };
        let due = Due {
            reason: Reason::Manual,
            score: 0.0,
            output_level: range.output_level,
        };
        search.plan(range.level, files, &due)
    }
}

/// Bytes that compactions will have to write until every level has its size: the measure that slows
/// writers. As RocksDB estimates it.
pub(crate) fn pending_compaction_bytes(version: &Version, options: &CompactionOptions) -> u64 {
    let targets = LevelTargets::of(version, options);
    let mut total = 0u64;
    let mut coming = 0u64;
    if version.level(0).len() >= options.l0_trigger {
        coming = version.level_bytes(0);
        total = coming + version.level_bytes(targets.base_level);
    }
    for level in targets.base_level..targets.last_level {
        let bytes = version.level_bytes(level) + coming;
        let excess = bytes.saturating_sub(targets.bytes_max(level));
        if excess > 0 {
            let below = version.level_bytes(level + 1);
            let rewritten = u128::from(excess) * u128::from(below) / u128::from(bytes);
            total = total
                .saturating_add(excess)
                .saturating_add(u64::try_from(rewritten).unwrap_or(u64::MAX));
        }
        coming = excess;
    }
    total
}

/// The level a compaction of L0 goes to now.
pub(crate) fn base_level(version: &Version, options: &CompactionOptions) -> usize {
    LevelTargets::of(version, options).base_level
}

/// The reason for a plan, and its target.
struct Due {
    reason: Reason,
    score: f64,
    output_level: usize,
}

/// One search for a plan.
struct Search<'a> {
    version: &'a Version,
    options: &'a CompactionOptions,
    in_flight: &'a InFlight,
    targets: LevelTargets,
}

impl<'a> Search<'a> {
    fn new(version: &'a Version, options: &'a CompactionOptions, in_flight: &'a InFlight) -> Self {
        Self {
            version,
            options,
            in_flight,
            targets: LevelTargets::of(version, options),
        }
    }

    fn order(&self) -> &'a KeyOrder {
        &self.options.order
    }

    /// How far each level is over its size; 1 is the trigger. Tables being compacted are gone
    /// already.
    fn scores(&self) -> Vec<(f64, usize)> {
        let idle = |level: usize| {
            let files = self.version.level(level).iter();
            files.filter(|file| !file.is_compacting())
        };
        let count = idle(0).count() as f64 / self.options.l0_trigger.max(1) as f64;
        let bytes: u64 = idle(0).map(|file| file.size).sum();
        let bytes = bytes as f64 / self.options.level_base_bytes.max(1) as f64;
        let mut scores = vec![(count.max(bytes), 0)];
        for level in self.targets.base_level..self.targets.last_level {
            let bytes: u64 = idle(level).map(|file| file.size).sum();
            scores.push((bytes as f64 / self.targets.bytes_max(level) as f64, level));
        }
        scores
    }

    fn pick_level(&self, level: usize, score: f64) -> Option<Plan> {
        if level == 0 {
            return self.pick_l0(score).or_else(|| self.pick_within_l0());
        }
        let due = Due {
            reason: Reason::LevelFull,
            score,
            output_level: level + 1,
        };
        let files = self.version.level(level);
        self.by_overlap(level)
            .into_iter()
            .take(CANDIDATES_MAX)
            .find_map(|index| {
                let range = widen_to_whole_keys(self.order(), files, index..index + 1);
                self.plan(level, files.get(range)?.to_vec(), &due)
            })
    }

    /// The oldest table of L0 and everything it overlaps, or as many tables as can just be moved.
    fn pick_l0(&self, score: f64) -> Option<Plan> {
        let files = self.version.level(0);
        if self.in_flight.empties_l0() {
            return None;
        }
        let due = Due {
            reason: Reason::L0Full,
            score,
            output_level: self.targets.base_level,
        };
        let plan = self.plan(0, self.with_overlapped(files.last()?), &due)?;
        if plan.work == Work::Move {
            return Some(self.with_more_moves(plan));
        }
        Some(plan)
    }

    /// Tables of L0 among themselves, when there are clearly too many and they cannot go down.
    fn pick_within_l0(&self) -> Option<Plan> {
        let crowded = self.options.l0_trigger.saturating_add(L0_SPARE_TABLES);
        if self.version.level(0).len() < crowded {
            return None;
        }
        let price = intra_l0::Price {
            bytes_max: self.options.plan_bytes_max(),
            bytes_per_table_max: u64::MAX,
        };
        let reason = Reason::L0Crowded;
        intra_l0::pick(self.version, self.options, self.in_flight, price, reason)
    }

    fn with_overlapped(&self, file: &FileMeta) -> Vec<Arc<FileMeta>> {
        let (begin, end) = (file.smallest_user_key(), file.largest_user_key());
        self.version
            .overlapping(self.order(), 0, Some(begin), Some(end))
    }

    /// A move of one L0 table, with every other that can be moved alike: one edit instead of many.
    fn with_more_moves(&self, mut plan: Plan) -> Plan {
        let due = Due {
            reason: plan.reason,
            score: plan.score,
            output_level: plan.output_level,
        };
        let mut files = Vec::new();
        for file in self.version.level(0).iter().rev() {
            let alone = self.with_overlapped(file);
            let movable = alone.len() == 1
                && self
                    .plan(0, alone, &due)
                    .is_some_and(|plan| plan.work == Work::Move);
            if movable {
                files.push(Arc::clone(file));
            }
        }
        files.reverse();
        plan.inputs = vec![PlanInput { level: 0, files }];
        plan
    }

    /// The first table that asks to be compacted and can be.
    fn pick_wanted(&self, moment: &Moment<'_>) -> Option<Plan> {
        (0..LEVELS).find_map(|level| {
            let files = self.version.level(level).iter().enumerate();
            let idle = files.filter(|(_, file)| !file.is_compacting());
            idle.filter_map(|(index, file)| {
                let wish = wish(self.version, self.options, moment, level, file)?;
                Some((index, wish))
            })
            .take(CANDIDATES_MAX)
            .find_map(|(index, wish)| self.grant(level, index, wish))
        })
    }

    fn grant(&self, level: usize, index: usize, wish: Wish) -> Option<Plan> {
        let reason = match wish {
            Wish::InPlace(reason) => reason,
            Wish::Down(reason) => return self.down(level, index, reason, 0.0),
        };
        let files = self.version.level(level);
        let range = widen_to_whole_keys(self.order(), files, index..index + 1);
        // With neighbours that share a key, something might be below after all.
        if range.len() > 1 {
            return None;
        }
        let due = Due {
            reason,
            score: 0.0,
            output_level: level,
        };
        self.plan(level, files.get(range)?.to_vec(), &due)
    }

    /// Plans that reads have paid for, the most overpaid first.
    fn pick_for_reads(&self, moment: &Moment<'_>) -> Option<Plan> {
        if !for_reads::is_time(self.version, moment) || !for_reads::is_lasting(moment) {
            return None;
        }
        let paid = self.for_reads().into_iter().filter(|plan| {
            Account::of(plan).is_paid()
                && for_reads::is_bounded(plan, self.version, self.options, moment)
        });
        paid.max_by(|a, b| {
            let share = |plan| Account::of(plan).share();
            share(a).total_cmp(&share(b))
        })
    }

    /// The compactions that would spare reads the tables they were charged to most.
    fn for_reads(&self) -> Vec<Plan> {
        let mut charged: Vec<(u64, usize, usize)> = Vec::new();
        for level in 0..self.targets.last_level {
            let files = self.version.level(level).iter().enumerate();
            let idle = files.filter(|(_, file)| !file.is_compacting() && file.read_charge() > 0);
            charged.extend(idle.map(|(index, file)| (file.read_charge(), level, index)));
        }
        charged.sort_unstable_by(|a, b| b.cmp(a));
        let charged = charged.into_iter().take(CHARGED_MAX);
        charged
            .filter_map(|(_, level, index)| self.down(level, index, Reason::Reads, FOR_READS))
            .collect()
    }

    /// The plan that takes a table, and those that must go with it, one level down.
    fn down(&self, level: usize, index: usize, reason: Reason, score: f64) -> Option<Plan> {
        if level == 0 && self.in_flight.empties_l0() {
            return None;
        }
        let files = self.version.level(level);
        let (inputs, output_level) = match level {
            0 => (
                self.with_overlapped(files.get(index)?),
                self.targets.base_level,
            ),
            _ => {
                let range = widen_to_whole_keys(self.order(), files, index..index + 1);
                (files.get(range)?.to_vec(), level + 1)
            }
        };
        let due = Due {
            reason,
            score,
            output_level,
        };
        self.plan(level, inputs, &due)
    }

    /// The idle tables of `level`, those first that overlap the fewest bytes below for their own
    /// size; among equals the oldest. Cost: linear in the tables of both levels, plus the sort.
    fn by_overlap(&self, level: usize) -> Vec<usize> {
        let order = self.order();
        let below = self.version.level(level + 1);
        let mut next = 0;
        let mut ranked: Vec<(u64, u64, usize)> = Vec::new();
        for (index, file) in self.version.level(level).iter().enumerate() {
            let span = Span::of(file);
            while let Some(other) = below.get(next)
                && Span::of(other).ends_before(order, span.first)
            {
                next += 1;
            }
            if file.is_compacting() {
                continue;
            }
            let touched = below
                .get(next..)
                .expect("the search ends within the level")
                .iter();
            let bytes: u64 = touched
                .take_while(|other| !span.ends_before(order, other.smallest_user_key()))
                .map(|other| other.size)
                .sum();
            let weight = file.size + file.compensated_range_deletion_bytes;
            let ratio = u128::from(bytes) * 1024 / u128::from(weight.max(1));
            let ratio = u64::try_from(ratio).unwrap_or(u64::MAX);
            ranked.push((ratio, file.number, index));
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, _, index)| index).collect()
    }

    /// The plan that compacts `files` of `level`; `None` when it conflicts with one in flight.
    fn plan(&self, level: usize, mut files: Vec<Arc<FileMeta>>, due: &Due) -> Option<Plan> {
        let order = self.order();
        let in_place = due.output_level == level;
        let mut below = Vec::new();
        if !in_place {
            below = self.covering(due.output_level, &Span::of_all(order, &files)?);
            if level > 0 && !below.is_empty() {
                files = self.widened(level, files, &below, due.output_level);
            }
        }
        if files.iter().chain(&below).any(|file| file.is_compacting()) {
            return None;
        }
        let mut span = Span::of_all(order, &files)?;
        if let Some(lower) = Span::of_all(order, &below) {
            span = span.hull(order, &lower);
        }
        if self.in_flight.writes_into(order, due.output_level, &span) {
            return None;
        }
        let grandparents = (due.output_level + 1..LEVELS)
            .map(|level| self.covering(level, &span))
            .find(|files| !files.is_empty())
            .unwrap_or_default();
        let moves = !in_place
            && due.reason != Reason::Marked
            && below.is_empty()
            && (level > 0 || files.len() == 1)
            && self.same_form(level, due.output_level)
            && self.is_bounded_below(&grandparents);
        let inputs = [(level, files), (due.output_level, below)];
        Some(Plan {
            level,
            output_level: due.output_level,
            grandparents,
            work: if moves { Work::Move } else { Work::Rewrite },
            reason: due.reason,
            score: due.score,
            inputs: inputs
                .into_iter()
                .filter(|(_, files)| !files.is_empty())
                .map(|(level, files)| PlanInput { level, files })
                .collect(),
        })
    }

    /// More tables of the upper level, where that takes no more tables of the lower one.
    fn widened(
        &self,
        level: usize,
        files: Vec<Arc<FileMeta>>,
        below: &[Arc<FileMeta>],
        output_level: usize,
    ) -> Vec<Arc<FileMeta>> {
        let order = self.order();
        let (Some(upper), Some(lower)) = (Span::of_all(order, &files), Span::of_all(order, below))
        else {
            return files;
        };
        let more = self.covering(level, &upper.hull(order, &lower));
        let bytes: u64 = more.iter().chain(below).map(|file| file.size).sum();
        let acceptable = more.len() > files.len()
            && bytes <= self.options.plan_bytes_max()
            && !more.iter().any(|file| file.is_compacting())
            && Span::of_all(order, &more)
                .is_some_and(|span| self.covering(output_level, &span).len() == below.len());
        if acceptable { more } else { files }
    }

    fn covering(&self, level: usize, span: &Span<'_>) -> Vec<Arc<FileMeta>> {
        let files = self.version.level(level);
        let range: Range<usize> = covering_range(self.order(), files, span);
        files.get(range).expect("a range of the level").to_vec()
    }

    fn same_form(&self, a: usize, b: usize) -> bool {
        self.options.level_forms.get(a) == self.options.level_forms.get(b)
    }

    fn is_bounded_below(&self, grandparents: &[Arc<FileMeta>]) -> bool {
        let bytes: u64 = grandparents.iter().map(|file| file.size).sum();
        bytes <= self.options.grandparent_bytes_max()
    }
}
