//! The plan of a compaction of tables that a user names, into a level that the user names.
//!
//! More tables are taken along, as far as no entry may pass a newer one of its key: of L0 all that are older than the newest one
//! named, unless they stay in L0; of a deeper level those between the first and the last; and of the levels down to the output
//! those that share keys with what comes from above.

use std::sync::Arc;

use drumlin_base::limits::LEVELS;
use drumlin_base::{Error, ErrorKind, KeyOrder, Result};

use super::plan::{CompactionOptions, InFlight, Plan, PlanInput, Work};
use super::span::{Span, covering_range};
use crate::version::{FileMeta, Version};
use crate::watch::reason::Reason;

/// What a user names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen<'a> {
    /// The numbers of tables.
    pub(crate) tables: &'a [u64],
    /// Where they go.
    pub(crate) output_level: usize,
    /// Whether they may change their level as they are, where that does.
    pub(crate) may_move: bool,
}

/// The plan for `chosen`, to be claimed.
///
/// # Errors
/// `InvalidArgument` of tables that are not there or of a deeper level, or where no level `output_level` is used; `Aborted` where a
/// running compaction has one of the tables, or writes where this one does; `NotSupported` within L0 where it is not merged.
pub(crate) fn plan(
    version: &Version,
    options: &CompactionOptions,
    in_flight: &InFlight,
    chosen: &Chosen<'_>,
) -> Result<Plan> {
    check(version, options, chosen)?;
    let (order, output_level) = (&options.order, chosen.output_level);
    let mut inputs: Vec<PlanInput> = Vec::new();
    let mut span: Option<Span<'_>> = None;
    for level in 0..=output_level {
        let files = match level {
            0 => of_l0(version, chosen),
            level => of_level(version, order, level, (chosen, span)),
        };
        let Some(own) = Span::of_all(order, files) else {
            continue;
        };
        span = Some(span.map_or(own, |span| span.hull(order, &own)));
        let files = files.to_vec();
        inputs.push(PlanInput { level, files });
    }
    let (Some(span), Some(first)) = (span, inputs.first()) else {
        return Err(Error::invalid_argument("no table is named"));
    };
    let level = first.level;
    let mut files = inputs.iter().flat_map(|input| &input.files);
    if let Some(taken) = files.find(|file| file.is_compacting()) {
        return busy(format!("table {} is being compacted", taken.number));
    }
    if level == 0 && output_level > 0 && in_flight.empties_l0() {
        return busy("another compaction takes tables out of L0".to_owned());
    }
    let mut written = level..=output_level;
    if written.any(|level| in_flight.writes_into(order, level, &span)) {
        return busy("another compaction writes between these keys".to_owned());
    }
    let below = |level: usize| covering(version, order, level, &span).to_vec();
    let mut grandparents = (output_level + 1..LEVELS).map(below);
    let grandparents = grandparents.find(|files| !files.is_empty());
    let forms = &options.level_forms;
    let moves = chosen.may_move
        && level < output_level
        && inputs.len() == 1
        && (level > 0 || inputs.iter().all(|input| input.files.len() == 1))
        && forms.get(level) == forms.get(output_level);
    Ok(Plan {
        level,
        output_level,
        inputs,
        grandparents: grandparents.unwrap_or_default(),
        work: if moves { Work::Move } else { Work::Rewrite },
        reason: Reason::Manual,
        score: 0.0,
    })
}

fn busy<T>(why: String) -> Result<T> {
    Err(Error::new(ErrorKind::Aborted, why))
}

fn check(version: &Version, options: &CompactionOptions, chosen: &Chosen<'_>) -> Result<()> {
    let output_level = chosen.output_level;
    let last = options.levels.clamp(2, LEVELS) - 1;
    let last = last.max(version.deepest_level().unwrap_or(0));
    if output_level > last {
        let message = format!("the output level is {output_level}, not one from 0 to {last}");
        return Err(Error::invalid_argument(message));
    }
    for &number in chosen.tables {
        let mut files = version.files();
        let Some((level, _)) = files.find(|(_, file)| file.number == number) else {
            let message = format!("the family has no table {number}");
            return Err(Error::invalid_argument(message));
        };
        if level > output_level {
            let message =
                format!("table {number} is in L{level}, and does not go up to L{output_level}");
            return Err(Error::invalid_argument(message));
        }
    }
    if output_level == 0 && !options.merges_within_l0 {
        let message = "tables of L0 are not merged into one of L0 in this format";
        return Err(Error::not_supported(message));
    }
    Ok(())
}

/// The tables of L0 from the newest one named to the oldest, or, where they stay in L0, to the oldest one named.
fn of_l0<'a>(version: &'a Version, chosen: &Chosen<'_>) -> &'a [Arc<FileMeta>] {
    let files = version.level(0);
    let is_named = |file: &Arc<FileMeta>| chosen.tables.contains(&file.number);
    let Some(first) = files.iter().position(is_named) else {
        return &[];
    };
    let last = match chosen.output_level {
        0 => files.iter().rposition(is_named),
        _ => None,
    };
    let end = last.map_or(files.len(), |last| last + 1);
    files.get(first..end).unwrap_or_default()
}

/// The tables of `level` from the first to the last of those that are named or share keys with `above`.
fn of_level<'a>(
    version: &'a Version,
    order: &KeyOrder,
    level: usize,
    (chosen, above): (&Chosen<'_>, Option<Span<'_>>),
) -> &'a [Arc<FileMeta>] {
    let files = version.level(level).iter();
    let named = files.filter(|file| chosen.tables.contains(&file.number));
    let spans = named.map(|file| Span::of(file)).chain(above);
    match spans.reduce(|a, b| a.hull(order, &b)) {
        Some(span) => covering(version, order, level, &span),
        None => &[],
    }
}

fn covering<'a>(
    version: &'a Version,
    order: &KeyOrder,
    level: usize,
    span: &Span<'_>,
) -> &'a [Arc<FileMeta>] {
    let files = version.level(level);
    let range = covering_range(order, files, span);
    files.get(range).unwrap_or_default()
}
