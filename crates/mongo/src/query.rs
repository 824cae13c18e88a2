//! Finding documents: plan, filter, sort, skip, limit.

use std::collections::VecDeque;
use std::time::Duration;

use drumlin_doc::{Code, Document, Filter, Projection, Refusal, Sort};
use drumlin_doc_store::{Collection, Failure, Hint, Outcome, Plan, Reads, Walk, plan, plan_with};
use drumlin_fs::Clock;

use crate::cursors::{Source, Walking};
use crate::pipeline::Stage;
use crate::wire::limits::STAGE_BYTES_MAX;

/// Documents between two looks at the clock.
const BETWEEN_LOOKS: u64 = 128;

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) filter: Filter,
    pub(crate) sort: Sort,
    pub(crate) skip: u64,
    /// `u64::MAX` where there is none.
    pub(crate) limit: u64,
    pub(crate) hint: Option<Hint>,
}

impl Query {
    pub(crate) fn of(filter: Filter) -> Self {
        Self {
            filter,
            sort: Sort::default(),
            skip: 0,
            limit: u64::MAX,
            hint: None,
        }
    }

    /// Takes over the stages at the front that a query does: filters, then one order, then a number to skip, then a limit.
    pub(crate) fn take(&mut self, stages: &mut Vec<Stage>) {
        let mut filters = Vec::new();
        let mut taken = 0;
        let mut step = 0;
        for stage in stages.iter() {
            match stage {
                Stage::Match(filter) if step == 0 => filters.push(filter.clone()),
                Stage::Sort(sorter) if step == 0 => {
                    self.sort = sorter.order().clone();
                    step = 1;
                }
                Stage::Skip(count) if step <= 1 => {
                    self.skip = *count;
                    step = 2;
                }
                Stage::Limit(count) if step <= 2 => {
                    self.limit = *count;
                    step = 3;
                }
                _ => break,
            }
            taken += 1;
        }
        stages.drain(..taken);
        if !filters.is_empty() {
            filters.insert(
                0,
                std::mem::replace(&mut self.filter, Filter::And(Vec::new())),
            );
            self.filter = Filter::And(filters);
        }
    }

    pub(crate) fn plan(&self, collection: &Collection) -> Result<Plan, Refusal> {
        match &self.hint {
            Some(hint) => plan_with(collection, &self.filter, &self.sort, hint),
            None => Ok(plan(collection, &self.filter, &self.sort)),
        }
    }
}

/// Until when a command may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline<'a> {
    pub(crate) clock: &'a dyn Clock,
    /// By the monotonic clock.
    pub(crate) at: Option<Duration>,
}

impl Deadline<'_> {
    /// # Errors
    /// `MaxTimeMSExpired`.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self.at.is_some_and(|at| self.clock.monotonic() > at) {
            true => Err(Refusal::new(
                Code::MaxTimeMsExpired,
                "operation exceeded time limit",
            )),
            false => Ok(()),
        }
    }
}

/// What was examined.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Examined {
    pub(crate) keys: u64,
    pub(crate) documents: u64,
}

/// The refusal of what takes too much memory.
pub(crate) fn too_much(what: &str) -> Refusal {
    let text = format!(
        "{what} needs more than {STAGE_BYTES_MAX} bytes, and this server keeps it in memory"
    );
    Refusal::new(Code::MemoryLimit, text)
}

/// Shows every document that the filter finds to `visit`, in the order of the plan, without skip and limit, until it returns false.
pub(crate) fn each(
    reads: &Reads<'_>,
    collection: &Collection,
    query: &Query,
    deadline: Deadline<'_>,
    visit: &mut dyn FnMut(&[u8], Document<'_>) -> Outcome<bool>,
) -> Outcome<Examined> {
    let mut walk = Walk::new(query.plan(collection)?);
    let mut seen = 0u64;
    walk.go_on(reads, collection, &mut |id, document| {
        seen += 1;
        if seen.is_multiple_of(BETWEEN_LOOKS) {
            deadline.check()?;
        }
        match query.filter.matches(document)? {
            true => visit(id, document),
            false => Ok(true),
        }
    })?;
    Ok(Examined {
        keys: walk.keys_examined,
        documents: walk.documents_examined,
    })
}

/// A source of what the query finds. Where the plan does not give the order, all is sorted here, in memory; with a limit no more is
/// kept than it needs.
pub(crate) fn source(
    reads: &Reads<'_>,
    collection: &Collection,
    query: Query,
    projection: Option<Projection>,
    deadline: Deadline<'_>,
) -> Outcome<Source> {
    let plan = query.plan(collection)?;
    if plan.is_sorted {
        return Ok(Source::Walk(Box::new(Walking {
            walk: Walk::new(plan),
            filter: query.filter,
            projection,
            skip: query.skip,
            limit: query.limit,
            uuid: collection.uuid,
            pending: None,
            is_over: false,
        })));
    }
    let mut sorter = Sorter::new(query.sort.clone(), query.skip.saturating_add(query.limit));
    each(reads, collection, &query, deadline, &mut |_, document| {
        sorter.push(document.0.to_vec())?;
        Ok(true)
    })?;
    let skipped = usize::try_from(query.skip).unwrap_or(usize::MAX);
    let found = sorter.finish().into_iter().skip(skipped);
    let found = found.map(|document| match &projection {
        Some(projection) => projection.apply(Document(&document), Some(&query.filter)),
        None => Ok(document),
    });
    Ok(Source::Ready(found.collect::<Result<_, _>>()?))
}

/// Sorts documents in memory; equal ones stay as they came.
#[derive(Debug)]
pub(crate) struct Sorter {
    sort: Sort,
    most: usize,
    documents: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Sorter {
    /// Of which only the first `most` are asked for.
    pub(crate) fn new(sort: Sort, most: u64) -> Self {
        Self {
            sort,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            documents: Vec::new(),
            bytes: 0,
        }
    }

    /// The order.
    pub(crate) fn order(&self) -> &Sort {
        &self.sort
    }

    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`.
    pub(crate) fn push(&mut self, document: Vec<u8>) -> Result<(), Failure> {
        let key = self.sort.key_of(Document(&document));
        self.bytes += key.len() + document.len() + 48;
        self.documents.push((key, document));
        let is_full = self.documents.len() / 2 >= self.most.max(512);
        if is_full || self.bytes > STAGE_BYTES_MAX {
            self.cut();
        }
        match self.bytes > STAGE_BYTES_MAX {
            true => Err(too_much("a sort").into()),
            false => Ok(()),
        }
    }

    fn cut(&mut self) {
        self.documents.sort_by(|a, b| a.0.cmp(&b.0));
        self.documents.truncate(self.most);
        self.bytes = self
            .documents
            .iter()
            .map(|(key, document)| key.len() + document.len() + 48)
            .sum();
    }

    pub(crate) fn finish(mut self) -> VecDeque<Vec<u8>> {
        self.cut();
        self.documents
            .into_iter()
            .map(|(_, document)| document)
            .collect()
    }
}
