//! The universal picker: few sorted runs of any size, merged with their neighbours in age.
//!
//! Each table of L0 is a run, and so is each deeper level that has tables. From new to old the runs
//! are L0's from first to last, then the levels downward; a merge takes neighbours and puts the
//! result just above the next older run, so no entry passes a newer one. Levels are nothing but
//! places for large runs, cut into tables there.
//!
//! In this order: everything is merged when too much space is wasted; runs of like size are merged,
//! so that an entry is rewritten about once each time the data doubles; and when there still are too
//! many runs, the youngest are merged whatever their size. This is size-tiered compaction as of
//! RocksDB's universal style, whose rules it keeps.

use std::sync::Arc;

use drumlin_base::SEQNO_MAX;
use drumlin_base::limits::LEVELS;

use super::plan::{CompactionOptions, InFlight, Moment, Picker, Plan, PlanInput, Work};
use super::span::{Span, widen_to_whole_keys};
use super::style::UniversalOptions;
use super::wanted::{Wish, wish};
use crate::version::{FileMeta, Version};
use crate::watch::reason::Reason;

/// One sorted run: a table of L0, or a whole level.
#[derive(Clone, Debug)]
struct Run {
    level: usize,
    files: Vec<Arc<FileMeta>>,
    bytes: u64,
    /// Whether some table of it is being compacted.
    busy: bool,
}

impl Run {
    fn new(level: usize, files: &[Arc<FileMeta>]) -> Self {
        Self {
            level,
            bytes: files.iter().map(|file| file.size).sum(),
            busy: files.iter().any(|file| file.is_compacting()),
            files: files.to_vec(),
        }
    }
}

/// The runs of `version`, newest first.
fn runs(version: &Version) -> Vec<Run> {
    let young = version.level(0).iter();
    let young = young.map(|file| Run::new(0, std::slice::from_ref(file)));
    let levels = (1..LEVELS).map(|level| Run::new(level, version.level(level)));
    young
        .chain(levels.filter(|run| !run.files.is_empty()))
        .collect()
}

/// The universal picker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Universal {
    /// Its limits.
    pub limits: UniversalOptions,
}

impl Picker for Universal {
    fn pick(
        &self,
        version: &Version,
        options: &CompactionOptions,
        moment: &Moment<'_>,
    ) -> Option<Plan> {
        let search = self.search(version, options, moment);
        search
            .for_space()
            .or_else(|| search.alike())
            .or_else(|| search.too_many())
            .or_else(|| search.wanted())
    }
}

impl Universal {
    /// Everything into one run, whatever its size: a compaction that was asked for. `None` while some of
    /// it is being compacted.
    pub(crate) fn plan_whole(
        &self,
        version: &Version,
        options: &CompactionOptions,
        in_flight: &InFlight,
    ) -> Option<Plan> {
        // Rules that look at the time or at snapshots are left out.
        let moment = Moment {
            in_flight,
            now: 0,
            oldest_snapshot: SEQNO_MAX,
            is_quiet: false,
            flush_cf: u64::MAX,
            has_space: true,
        };
        let search = self.search(version, options, &moment);
        search.plan(0..search.runs.len(), Reason::Manual)
    }

    fn search<'a>(
        &'a self,
        version: &'a Version,
        options: &'a CompactionOptions,
        moment: &'a Moment<'a>,
    ) -> Search<'a> {
        Search {
            runs: runs(version),
            options,
            in_flight: moment.in_flight,
            version,
            moment,
            limits: &self.limits,
        }
    }
}

/// Bytes that merges will have to write until there are few enough runs and the space is in bounds.
pub(crate) fn pending_bytes(version: &Version, limits: &UniversalOptions) -> u64 {
    let runs = runs(version);
    let too_many = (runs.len() + 1).saturating_sub(limits.runs_trigger.max(2));
    if too_many < 2 {
        return 0;
    }
    if wastes_space(&runs, limits) {
        return runs.iter().map(|run| run.bytes).sum();
    }
    runs.iter().take(too_many).map(|run| run.bytes).sum()
}

/// Whether the runs over the oldest one are more than may be wasted.
fn wastes_space(runs: &[Run], limits: &UniversalOptions) -> bool {
    let Some((oldest, newer)) = runs.split_last() else {
        return false;
    };
    let newer: u64 = newer.iter().map(|run| run.bytes).sum();
    let allowed = u128::from(oldest.bytes) * u128::from(limits.space_percent_max);
    newer > 0 && u128::from(newer) * 100 >= allowed
}

/// One search for a plan.
struct Search<'a> {
    /// Newest first.
    runs: Vec<Run>,
    options: &'a CompactionOptions,
    in_flight: &'a InFlight,
    version: &'a Version,
    moment: &'a Moment<'a>,
    limits: &'a UniversalOptions,
}

impl Search<'_> {
    fn trigger(&self) -> usize {
        self.limits.runs_trigger.max(2)
    }

    fn is_due(&self) -> bool {
        self.runs.len() >= self.trigger()
    }

    /// Everything into one run, when too much space is wasted.
    fn for_space(&self) -> Option<Plan> {
        if !self.is_due() {
            return None;
        }
        let idle = self.runs.iter().position(|run| !run.busy)?;
        let rest = self.runs.get(idle..)?;
        if rest.len() < 2 || !wastes_space(rest, self.limits) {
            return None;
        }
        self.plan(idle..self.runs.len(), Reason::Space)
    }

    /// Neighbours of like size: from the newest run on that finds enough, each next older one that
    /// is hardly larger than all taken before it.
    fn alike(&self) -> Option<Plan> {
        if !self.is_due() {
            return None;
        }
        let width_min = self.limits.merge_width_min.max(2);
        let mut start = 0;
        while start < self.runs.len() {
            let end = self.alike_from(start);
            if end - start >= width_min {
                return self.plan(start..end, Reason::RunsAlike);
            }
            start += 1;
        }
        None
    }

    /// Where the runs end that are alike from `start` on; `start` when that one is busy.
    fn alike_from(&self, start: usize) -> usize {
        let width_max = self.limits.merge_width_max.max(2);
        let ratio = 100 + u128::from(self.limits.size_ratio_percent);
        let mut taken = 0u64;
        let mut end = start;
        for run in self.runs.iter().skip(start).take(width_max) {
            let too_large = u128::from(run.bytes) * 100 > u128::from(taken) * ratio;
            if run.busy || (end > start && too_large) {
                break;
            }
            taken += run.bytes;
            end += 1;
        }
        end
    }

    /// The youngest runs, whatever their size: as many as there are too many.
    fn too_many(&self) -> Option<Plan> {
        let idle = self.runs.iter().filter(|run| !run.busy).count();
        let wanted = (idle + 1).checked_sub(self.trigger())?;
        let wanted = wanted.min(self.limits.merge_width_max.max(2));
        if wanted < 2 {
            return None;
        }
        let mut start = 0;
        while start < self.runs.len() {
            let rest = self.runs.iter().skip(start);
            let width = rest.take(wanted).take_while(|run| !run.busy).count();
            if width >= 2 {
                return self.plan(start..start + width, Reason::RunsMany);
            }
            start += width + 1;
        }
        None
    }

    /// A run with a table that asks to be compacted, with the next older run; of the oldest run
    /// only such tables.
    fn wanted(&self) -> Option<Plan> {
        let idle = self.runs.iter().enumerate().filter(|(_, run)| !run.busy);
        let mut wishes = idle.filter_map(|(at, run)| {
            let mut files = run.files.iter().enumerate();
            let wish = |file| wish(self.version, self.options, self.moment, run.level, file);
            files.find_map(|(index, file)| Some((at, run, index, wish(file)?)))
        });
        wishes.find_map(|(at, run, index, wish)| {
            let is_oldest = at + 1 == self.runs.len();
            match wish {
                Wish::InPlace(reason) if is_oldest => self.in_place(run, index, reason),
                Wish::Down(reason) if is_oldest && run.level == self.bottom() => {
                    self.at_the_bottom(run, index, reason)
                }
                Wish::Down(reason) | Wish::InPlace(reason) => {
                    self.plan(at..(at + 2).min(self.runs.len()), reason)
                }
            }
        })
    }

    /// The level that a merge of everything goes to.
    fn bottom(&self) -> usize {
        self.limits.levels_max.saturating_sub(1)
    }

    /// A table that cannot go down, for this is the oldest run and has no level below it: rewritten
    /// where it is, if that changes it. Its data stays as old as it was, so the time since it was written counts
    /// as its age.
    fn at_the_bottom(&self, run: &Run, index: usize, reason: Reason) -> Option<Plan> {
        let file = run.files.get(index)?;
        let age_max = self.options.age_max_seconds.unwrap_or(u64::MAX);
        let changes = match reason {
            Reason::Aged => file.creation_time.saturating_add(age_max) <= self.moment.now,
            _ => file.largest_seqno <= self.moment.oldest_snapshot,
        };
        changes.then(|| self.in_place(run, index, reason)).flatten()
    }

    /// One table of `run`, rewritten where it is.
    fn in_place(&self, run: &Run, index: usize, reason: Reason) -> Option<Plan> {
        let order = &self.options.order;
        let range = widen_to_whole_keys(order, &run.files, index..index + 1);
        if range.len() > 1 {
            return None; // With neighbours that share a key, something might be below after all.
        }
        let files = run.files.get(range)?.to_vec();
        let span = Span::of_all(order, &files)?;
        if self.in_flight.writes_into(order, run.level, &span) {
            return None;
        }
        let inputs = vec![PlanInput {
            level: run.level,
            files,
        }];
        Some(self.rewrite(inputs, run.level, reason))
    }

    /// The plan that merges the runs in `range`; `None` when one is busy or the output would meet
    /// that of a plan in flight.
    fn plan(&self, range: std::ops::Range<usize>, reason: Reason) -> Option<Plan> {
        let order = &self.options.order;
        let taken = self.runs.get(range.clone())?;
        if taken.iter().any(|run| run.busy) {
            return None;
        }
        let output_level = match self.runs.get(range.end) {
            None if range.start == 0 => self.bottom(),
            // Another style may have left runs below the bottom. Newer ones may be above it, or get there when a plan
            // in flight ends: the oldest data belongs below them all.
            None => self.bottom().max(taken.last().map_or(0, |run| run.level)),
            Some(next) => next.level.saturating_sub(1),
        };
        let mut inputs: Vec<PlanInput> = Vec::new();
        for run in taken {
            match inputs.last_mut() {
                Some(last) if last.level == run.level => last.files.extend_from_slice(&run.files),
                _ => inputs.push(PlanInput {
                    level: run.level,
                    files: run.files.clone(),
                }),
            }
        }
        let plan = self.rewrite(inputs, output_level, reason);
        let span = plan.span(order)?;
        if self.in_flight.writes_into(order, output_level, &span) {
            return None;
        }
        Some(plan)
    }

    fn rewrite(&self, inputs: Vec<PlanInput>, output_level: usize, reason: Reason) -> Plan {
        Plan {
            level: inputs.first().map_or(0, |input| input.level),
            output_level,
            inputs,
            grandparents: Vec::new(),
            work: Work::Rewrite,
            reason,
            score: self.runs.len() as f64 / self.trigger() as f64,
        }
    }
}
