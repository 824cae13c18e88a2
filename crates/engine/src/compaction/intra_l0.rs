//! Merging young tables of L0 into one table of L0.
//!
//! Where L0 cannot go down, because the level below is busy or there is none, its tables become
//! fewer where they are, so that reads do not get slower meanwhile. Only neighbours in age are
//! merged, and the result takes their place among the others, so no entry passes a newer one.

use std::sync::Arc;

use super::plan::{CompactionOptions, InFlight, Plan, PlanInput, Work};
use super::span::Span;
use crate::version::{FileMeta, Version};
use crate::watch::reason::Reason;

/// Fewest tables worth merging: fewer cost more writing than they save reading.
const TABLES_MIN: usize = 4;

/// How much may be rewritten for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    /// Bytes of one merge.
    pub bytes_max: u64,
    /// Bytes rewritten for each table that goes away.
    pub bytes_per_table_max: u64,
}

/// The newest idle tables of L0 that are worth merging at that price; `None` when there are none.
///
/// Tables are taken from the newest on while each makes the merge cheaper for each table that goes
/// away: so the result of an earlier merge is left alone until its equals have gathered.
pub(crate) fn pick(
    version: &Version,
    options: &CompactionOptions,
    in_flight: &InFlight,
    price: Price,
    reason: Reason,
) -> Option<Plan> {
    if !options.merges_within_l0 {
        return None;
    }
    let idle = version.level(0).iter().skip_while(|f| f.is_compacting());
    let idle = idle.take_while(|file| !file.is_compacting());
    let files = cheapest(idle, price);
    if files.len() < TABLES_MIN {
        return None;
    }
    let span = Span::of_all(&options.order, &files)?;
    if in_flight.writes_into(&options.order, 0, &span) {
        return None;
    }
    Some(Plan {
        level: 0,
        output_level: 0,
        score: version.level(0).len() as f64 / options.l0_trigger.max(1) as f64,
        inputs: vec![PlanInput { level: 0, files }],
        grandparents: Vec::new(),
        work: Work::Rewrite,
        reason,
    })
}

/// The first of `files`, as long as each lowers the bytes rewritten for each table that goes away.
fn cheapest<'a>(
    files: impl Iterator<Item = &'a Arc<FileMeta>>,
    price: Price,
) -> Vec<Arc<FileMeta>> {
    let mut taken: Vec<Arc<FileMeta>> = Vec::new();
    let mut bytes = 0u64;
    let mut per_table = u64::MAX;
    for file in files {
        let with = bytes.saturating_add(file.size);
        // All but one go away.
        let next = with.checked_div(taken.len() as u64).unwrap_or(u64::MAX);
        if with > price.bytes_max || next > per_table {
            break;
        }
        (bytes, per_table) = (with, next);
        taken.push(Arc::clone(file));
    }
    match per_table <= price.bytes_per_table_max {
        true => taken,
        false => Vec::new(),
    }
}
