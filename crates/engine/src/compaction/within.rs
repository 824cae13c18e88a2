//! Whole tables within a range of keys, to be dropped without reading them.
//!
//! A table goes only where every table below it that shares a key with it goes, too: so nothing that it hides comes to
//! light again. Tables of L0 stay, as in RocksDB: they are younger than all others and soon compacted.

use std::collections::BTreeSet;
use std::sync::Arc;

use drumlin_base::limits::LEVELS;
use drumlin_base::{Error, ErrorKind, KeyOrder, Result};

use super::plan::{Plan, PlanInput, Work};
use super::span::Span;
use crate::version::{FileMeta, Version};
use crate::watch::reason::Reason;

/// User keys from the first to the second, both included; `None` is unbounded.
pub(crate) type Bounds<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// The plan that drops the tables within `bounds`; `None` when there are none.
pub(crate) fn plan(version: &Version, order: &KeyOrder, bounds: Bounds<'_>) -> Option<Plan> {
    let mut doomed: BTreeSet<u64> = BTreeSet::new();
    let mut inputs = Vec::new();
    for level in (1..LEVELS).rev() {
        let files = version.overlapping(order, level, bounds.0, bounds.1);
        let goes = |file: &Arc<FileMeta>| {
            is_within(file, order, bounds)
                && !file.is_compacting()
                && (hides_nothing(file, version, level, order, &doomed)
                    || drumlin_base::bug!("dropped-tables-uncover"))
        };
        let files: Vec<_> = files.into_iter().filter(goes).collect();
        doomed.extend(files.iter().map(|file| file.number));
        if !files.is_empty() {
            inputs.insert(0, PlanInput { level, files });
        }
    }
    let level = inputs.first()?.level;
    Some(drop_of(inputs, level))
}

/// The plan that drops the table `number` alone: of the last level that has tables, or the oldest of L0 where no level has any. So
/// nothing that it hides comes to light again.
///
/// # Errors
/// `InvalidArgument` of another table; `Aborted` of one that is being compacted.
pub(crate) fn plan_one(version: &Version, number: u64) -> Result<Plan> {
    let found = version.files().find(|(_, file)| file.number == number);
    let Some((level, file)) = found else {
        let message = format!("the family has no table {number}");
        return Err(Error::invalid_argument(message));
    };
    let deepest = version.deepest_level().unwrap_or(0);
    let oldest = version.level(0).last();
    if level < deepest || (level == 0 && oldest.is_none_or(|oldest| oldest.number != number)) {
        let message = format!("table {number} in L{level} may hide what is in older ones");
        return Err(Error::invalid_argument(message));
    }
    if file.is_compacting() {
        let message = format!("table {number} is being compacted");
        return Err(Error::new(ErrorKind::Aborted, message));
    }
    let files = vec![Arc::clone(file)];
    Ok(drop_of(vec![PlanInput { level, files }], level))
}

fn drop_of(inputs: Vec<PlanInput>, level: usize) -> Plan {
    Plan {
        level,
        output_level: level,
        inputs,
        grandparents: Vec::new(),
        work: Work::Drop,
        reason: Reason::Manual,
        score: 1.0,
    }
}

fn is_within(file: &FileMeta, order: &KeyOrder, (begin, end): Bounds<'_>) -> bool {
    let span = Span::of(file);
    begin.is_none_or(|begin| order.compare(span.first, begin).is_ge())
        && end.is_none_or(|end| {
            order.compare(span.last, end).is_le() || drumlin_base::bug!("range-takes-half-a-table")
        })
}

/// Whether every table below `level` that shares a key with `file` is among the doomed.
fn hides_nothing(
    file: &FileMeta,
    version: &Version,
    level: usize,
    order: &KeyOrder,
    doomed: &BTreeSet<u64>,
) -> bool {
    let span = Span::of(file);
    (level + 1..LEVELS).all(|below| {
        let touched = version.overlapping(order, below, Some(span.first), Some(span.last));
        let mut shared = touched
            .iter()
            .filter(|other| Span::of(other).overlaps(order, &span));
        shared.all(|other| doomed.contains(&other.number))
    })
}
