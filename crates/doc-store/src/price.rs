//! What plans cost: entries are counted, not guessed from trial runs.
//!
//! The entries of all candidates are walked by turns, keys alone, until one candidate has no more: that costs about as much as the cheapest
//! of them has entries. Beyond [`WALKED_MAX`] it is reckoned from what the tables say of themselves.

use drumlin::DbIterator;
use drumlin_doc::Path;

use crate::catalog::Collection;
use crate::failure::Outcome;
use crate::layout::range_of;
use crate::plan::{Access, Plan, Range};
use crate::reads::Reads;
use crate::walk::SEEN_MAX;

/// Collections of fewer documents are not worth counting.
const DOCUMENTS_LEAST: u64 = 1000;
/// Entries of each candidate that are walked in the first turn, how many times more in the next, and the most.
const WALKED_FIRST: u64 = 64;
const WALKED_MORE: u64 = 4;
const WALKED_MAX: u64 = 4096;
/// What it costs to get a document by an entry of an index, and to sort one, in documents that are walked in order.
const FETCHED: f64 = 4.0;
const SORTED: f64 = 2.0;
/// Entries of a union: a walk remembers each, and refuses to remember twice as many.
const UNITED_MAX: f64 = SEEN_MAX as f64 / 2.0;

/// A plan and what it is expected to look at.
#[derive(Clone, Debug)]
pub struct Priced {
    /// It.
    pub plan: Plan,
    /// Entries of the index, or documents of the collection, in its ranges. `None` where nothing was counted.
    pub entries: Option<u64>,
    /// In documents that are walked in order.
    pub cost: f64,
}

impl Priced {
    /// A plan of which nothing is expected.
    pub fn unknown(plan: Plan) -> Self {
        Self {
            plan,
            entries: None,
            cost: 0.0,
        }
    }
}

/// The plans, the cheapest first; of equal ones the first. The last of `plans` looks at the collection. `limit` is how many documents are
/// asked for.
pub(crate) fn priced(
    reads: &Reads<'_>,
    collection: &Collection,
    plans: Vec<Plan>,
    limit: u64,
) -> Outcome<Vec<Priced>> {
    if drumlin_base::bug!("mongo-plans-unpriced") {
        return Ok(plans.into_iter().map(Priced::unknown).collect());
    }
    let is_one = matches!(plans.as_slice(), [plan, _] if plan.is_single);
    if plans.len() < 2 || is_one || collection.documents() < DOCUMENTS_LEAST {
        return Ok(plans.into_iter().map(Priced::unknown).collect());
    }
    let entries = counted(reads, collection, &plans)?;
    let found = found(collection, &plans, &entries);
    let mut all: Vec<Priced> = plans
        .into_iter()
        .zip(entries)
        .map(|(plan, entries)| Priced {
            cost: cost(&plan, entries as f64, limit as f64 / found),
            entries: Some(entries),
            plan,
        })
        .collect();
    all.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    Ok(all)
}

/// How many documents the query finds, about: as if fields had nothing to do with each other. Where they have, there are more, and a plan
/// that sorts is taken for one that might have ended early: that costs no more than the fewest entries do.
fn found(collection: &Collection, plans: &[Plan], entries: &[u64]) -> f64 {
    let all = collection.documents() as f64;
    let mut shares: Vec<(Option<&Path>, f64)> = Vec::new();
    for (plan, entries) in plans.iter().zip(entries) {
        let field = match &plan.access {
            Access::Index(index, _) => index.fields.0.first().map(|(path, _)| path),
            _ => None,
        };
        let share = (*entries as f64 / all).min(1.0);
        match shares.iter_mut().find(|(of, _)| *of == field) {
            Some((_, least)) => *least = least.min(share),
            None => shares.push((field, share)),
        }
    }
    let share: f64 = shares.iter().map(|(_, share)| share).product();
    (all * share).max(1.0)
}

/// `share`: how much of what there is is asked for.
fn cost(plan: &Plan, entries: f64, share: f64) -> f64 {
    let each = match plan.access {
        Access::Index(..) | Access::Union(_) => FETCHED,
        _ => 1.0,
    };
    match plan.is_sorted {
        _ if matches!(plan.access, Access::Union(_)) && entries > UNITED_MAX => f64::INFINITY,
        true if drumlin_base::bug!("mongo-limits-unpriced") => entries * each,
        true => entries * each * share.min(1.0),
        false => entries * (each + SORTED),
    }
}

fn counted<'p>(reads: &Reads<'_>, collection: &Collection, plans: &'p [Plan]) -> Outcome<Vec<u64>> {
    let counters = |plan: &'p Plan| -> Vec<_> {
        let parts = plan.access.parts().iter();
        parts.map(|part| Counter::new(collection, part)).collect()
    };
    let mut counters: Vec<_> = plans.iter().map(counters).collect();
    let mut limit = WALKED_FIRST;
    loop {
        for counter in counters.iter_mut().flatten() {
            counter.walk(reads, limit)?;
        }
        let mut all = counters.iter();
        let is_over = all.any(|parts| parts.iter().all(|counter| counter.is_over));
        if is_over || limit >= WALKED_MAX {
            break;
        }
        limit *= WALKED_MORE;
    }
    let all = counters.iter_mut().map(|parts| {
        let parts = parts.iter_mut().map(|counter| counter.all(reads));
        parts.sum()
    });
    all.collect()
}

/// Counts the entries of a plan's ranges, or of those of a part of it.
struct Counter<'p> {
    of_index: bool,
    ranges: &'p [Range],
    /// The range that has them all, and how many documents have entries there, or more.
    whole: Range,
    documents: u64,
    place: usize,
    cursor: Option<DbIterator>,
    walked: u64,
    is_over: bool,
}

impl<'p> Counter<'p> {
    fn new(collection: &Collection, access: &'p Access) -> Self {
        let (of_index, ident, ranges) = match access {
            Access::Index(index, ranges) => (true, index.ident, ranges.as_slice()),
            Access::Collection(ranges) => (false, collection.ident, ranges.as_slice()),
            Access::Ids(_) | Access::Near(..) | Access::Union(_) => {
                (false, collection.ident, [].as_slice())
            }
        };
        let walked = match access {
            Access::Ids(ids) => ids.len() as u64,
            _ => 0,
        };
        Self {
            of_index,
            ranges,
            whole: range_of(ident),
            documents: collection.documents(),
            place: 0,
            cursor: None,
            walked,
            is_over: walked > 0,
        }
    }

    /// Whether it is all of the index or of the collection.
    fn is_whole(&self) -> bool {
        matches!(self.ranges, [range] if *range == self.whole)
    }

    /// Walks on until `limit` entries are counted, or all.
    fn walk(&mut self, reads: &Reads<'_>, limit: u64) -> Outcome<()> {
        while self.walked < limit && !self.is_over && !self.is_whole() {
            let Some(range) = self.ranges.get(self.place) else {
                self.is_over = true;
                break;
            };
            let cursor = self.cursor.get_or_insert_with(|| {
                let mut cursor = reads.cursor(self.of_index, range.clone());
                cursor.seek_to_first();
                cursor
            });
            match cursor.valid() {
                true => {
                    self.walked += 1;
                    cursor.next();
                }
                false => {
                    cursor.status()?;
                    self.cursor = None;
                    self.place += 1;
                }
            }
        }
        Ok(())
    }

    /// How many there are.
    fn all(&mut self, reads: &Reads<'_>) -> Outcome<u64> {
        if self.is_whole() {
            return Ok(self.documents);
        }
        if !self.is_over {
            let [part, whole] = reads.entries_about(
                self.of_index,
                [self.ranges, std::slice::from_ref(&self.whole)],
            )?;
            // Tables that have most of it tell how the rest is, which memtables have.
            if whole >= self.documents / 2 && whole > 0 {
                let share = part as f64 / whole as f64;
                return Ok(((self.documents as f64 * share) as u64).max(self.walked));
            }
            self.walk(reads, WALKED_MAX)?;
        }
        match self.is_over {
            true => Ok(self.walked),
            // Nobody knows.
            false => Ok((self.documents / 2).max(self.walked)),
        }
    }
}
