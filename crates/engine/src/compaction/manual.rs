//! A compaction a user asked for, cut into pieces: each takes a few tables, so that it is soon over
//! and more urgent work goes between two of them.
//!
//! The pieces go level by level from L0 to the deepest, from the first key to the last; then the
//! tables of the deepest level that no piece has made are rewritten in place. Data written after
//! the compaction was asked for may be left out.
//!
//! Invariant: all of the range that was in `level` when its turn came, up to the cursor, has left it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::KeyOrder;
use drumlin_base::limits::LEVELS;

use super::leveled::{LevelTargets, Leveled, base_level};
use super::plan::{CompactionOptions, InFlight, ManualRange, Plan};
use super::span::{OwnedSpan, Span};
use super::style::CompactionStyle;
use super::universal::Universal;
use crate::version::{FileMeta, Version};

/// Output tables that a piece's inputs make up about, at most: unless one table of the upper level
/// alone covers more.
const TABLES_PER_PIECE: u64 = 4;

/// Asks a long piece of work to end. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token nobody cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to end; it does within a moment, with an error of kind `Aborted`.
    pub fn cancel(&self) {
        // Relaxed: the flag publishes nothing but itself.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes it back, for the next piece of work; one that has seen it ends all the same.
    pub fn reset(&self) {
        // Relaxed: as above.
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether [`CancelToken::cancel`] was called, and not taken back.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The next step of the job.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// This, as soon as its inputs are claimed.
    Plan(Plan),
    /// Something, but other compactions have its tables now.
    Blocked,
    /// Nothing more.
    Done,
}

/// How far a compaction that was asked for is.
#[derive(Clone, Debug)]
pub(crate) struct ManualWork {
    begin: Option<Vec<u8>>,
    /// The last key of the range or, if there is none, of the tables there were.
    end: Option<Vec<u8>>,
    level: usize,
    deepest: usize,
    /// The end of the finished part of `level`.
    cursor: Option<OwnedSpan>,
    /// The last table there was at the start: later ones need no rewriting in place.
    newest: u64,
}

impl ManualWork {
    /// The work of compacting the user keys from `begin` to `end` (included) in `version`.
    pub(crate) fn new(
        version: &Version,
        options: &CompactionOptions,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Self {
        let order = &options.order;
        let last = version
            .files()
            .map(|(_, file)| file.largest_user_key())
            .max_by(|a, b| order.compare(a, b));
        let end = end.or(last).map(<[u8]>::to_vec);
        let base = base_level(version, options);
        Self {
            begin: begin.map(<[u8]>::to_vec),
            end,
            level: 0,
            deepest: deepest(version, options, base),
            cursor: None,
            newest: version
                .files()
                .map(|(_, file)| file.number)
                .max()
                .unwrap_or(0),
        }
    }

    /// The next piece in `version`, beside the plans `in_flight`.
    pub(crate) fn next(
        &mut self,
        version: &Version,
        options: &CompactionOptions,
        in_flight: &InFlight,
    ) -> Piece {
        if let Some(universal) = with_fewer_levels(options) {
            return self.whole(universal, version, options, in_flight);
        }
        while self.level <= self.deepest {
            let files = self.candidates(version, &options.order);
            let Some(output_level) = self.output_level(version, options) else {
                self.go_down();
                continue;
            };
            let Some((first, last)) = self.extent(version, options, &files, output_level) else {
                self.go_down();
                continue;
            };
            let range = ManualRange {
                level: self.level,
                output_level,
                begin: Some(first),
                end: Some(last),
            };
            return match Leveled.plan_manual(version, options, in_flight, &range) {
                Some(plan) => Piece::Plan(plan),
                None => Piece::Blocked,
            };
        }
        Piece::Done
    }

    /// Notes that `plan`, a piece of this work, was carried out.
    pub(crate) fn done(&mut self, plan: &Plan, order: &KeyOrder) {
        if self.level == 0 {
            return self.go_down();
        }
        let upper = plan.files().filter(|(level, _)| *level == plan.level);
        let span = upper
            .map(|(_, file)| Span::of(file))
            .reduce(|a, b| a.hull(order, &b));
        if let Some(span) = span {
            self.cursor = Some(span.to_owned_span());
        }
    }

    /// All of it at once: the pieces of [`ManualWork::next`] go through levels that may not be there.
    fn whole(
        &self,
        universal: Universal,
        version: &Version,
        options: &CompactionOptions,
        in_flight: &InFlight,
    ) -> Piece {
        if self.level > 0 || version.files().next().is_none() {
            return Piece::Done;
        }
        match universal.plan_whole(version, options, in_flight) {
            Some(plan) => Piece::Plan(plan),
            None => Piece::Blocked,
        }
    }

    fn go_down(&mut self) {
        self.level += 1;
        self.cursor = None;
    }

    /// Where the tables of the level go; `None` when there is nowhere to go.
    fn output_level(&self, version: &Version, options: &CompactionOptions) -> Option<usize> {
        let below = match self.level {
            level if level == self.deepest => level,
            0 => base_level(version, options),
            level => level + 1,
        };
        // L0 cannot be rewritten in place, and a base that moved down meanwhile is no target.
        (below > 0 && below <= self.deepest).then_some(below)
    }

    /// Tables of the level within the range that are still to be taken, ascending (L0: any order).
    fn candidates(&self, version: &Version, order: &KeyOrder) -> Vec<Arc<FileMeta>> {
        let (begin, end) = (self.begin.as_deref(), self.end.as_deref());
        let mut files = version.overlapping(order, self.level, begin, end);
        let is_last_step = self.level == self.deepest;
        files.retain(|file| {
            let is_left = self
                .cursor
                .as_ref()
                .is_none_or(|done| reaches_past(order, &Span::of(file), &done.as_span()));
            is_left && !(is_last_step && file.number > self.newest)
        });
        files
    }

    /// The first and the last user key of the next piece.
    fn extent<'a>(
        &self,
        version: &Version,
        options: &CompactionOptions,
        files: &'a [Arc<FileMeta>],
        output_level: usize,
    ) -> Option<(&'a [u8], &'a [u8])> {
        let order = &options.order;
        let first = files.first()?;
        if self.level == 0 {
            let span = Span::of_all(order, files)?;
            return Some((span.first, span.last));
        }
        let bytes_max = options.target_file_bytes.saturating_mul(TABLES_PER_PIECE);
        let (begin, mut end) = (first.smallest_user_key(), first.largest_user_key());
        let mut upper = first.size;
        for (file, before) in files.iter().skip(1).zip(files) {
            // In place, tables made meanwhile are between the two; they are left out.
            let follows = output_level > self.level || self.adjoin(version, before, file);
            upper += file.size;
            let last = file.largest_user_key();
            let lower = match output_level > self.level {
                true => version.overlapping(order, output_level, Some(begin), Some(last)),
                false => Vec::new(),
            };
            let bytes = upper + lower.iter().map(|file| file.size).sum::<u64>();
            if !follows || bytes > bytes_max {
                break;
            }
            end = last;
        }
        Some((begin, end))
    }

    /// Whether `next` is the table after `file` in the level.
    fn adjoin(&self, version: &Version, file: &FileMeta, next: &FileMeta) -> bool {
        let files = version.level(self.level);
        let mut pairs = files.iter().zip(files.iter().skip(1));
        pairs.any(|(a, b)| a.number == file.number && b.number == next.number)
    }
}

/// The level that the work ends in: the deepest that has tables, or the base level; where sizes do not follow from the
/// deepest, the first from there on that takes what is above it.
fn deepest(version: &Version, options: &CompactionOptions, base: usize) -> usize {
    let used = version.deepest_level().unwrap_or(0).max(base);
    if options.dynamic_levels {
        return used;
    }
    let targets = LevelTargets::of(version, options);
    let takes_all = |level: &usize| {
        let bytes: u64 = (0..=*level).map(|n| version.level_bytes(n)).sum();
        targets
            .bytes_max
            .get(*level)
            .is_none_or(|most| bytes <= *most)
    };
    let mut levels = used..targets.last_level;
    levels.find(takes_all).unwrap_or(targets.last_level)
}

/// The universal style of `options`, if it may not use every level.
fn with_fewer_levels(options: &CompactionOptions) -> Option<Universal> {
    match options.style {
        CompactionStyle::Universal(limits) if limits.levels_max < LEVELS => {
            Some(Universal { limits })
        }
        _ => None,
    }
}

/// Whether `span` holds keys behind the end of `done`.
fn reaches_past(order: &KeyOrder, span: &Span<'_>, done: &Span<'_>) -> bool {
    let ordering = order.compare(span.last, done.last);
    ordering.is_gt() || (ordering.is_eq() && span.last_included && !done.last_included)
}
