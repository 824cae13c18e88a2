//! Finding documents: plan, filter, sort, skip, limit.

use std::time::Duration;

use drumlin_doc::{Code, Document, Filter, Projection, Refusal, Sort};
use drumlin_doc_store::{
    Collection, Hint, Outcome, Plan, Priced, Reads, Walk, plan, plan_with, plans,
};
use drumlin_fs::Clock;

use crate::cursors::{Results, Source, Walking};
use crate::sorting::{Sorter, Workspace};

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

    pub(crate) fn plan(&self, reads: &Reads<'_>, collection: &Collection) -> Outcome<Plan> {
        match &self.hint {
            Some(hint) => Ok(plan_with(collection, &self.filter, &self.sort, hint)?),
            None => plan(reads, collection, &self.filter, &self.sort, self.most()),
        }
    }

    /// All plans that there are, the one that is taken first.
    pub(crate) fn plans(&self, reads: &Reads<'_>, collection: &Collection) -> Outcome<Vec<Priced>> {
        if self.hint.is_some() {
            let plan = self.plan(reads, collection)?;
            return Ok(vec![Priced::unknown(plan)]);
        }
        plans(reads, collection, &self.filter, &self.sort, self.most())
    }

    /// How many documents are looked for, those to skip among them.
    pub(crate) fn most(&self) -> u64 {
        self.skip.saturating_add(self.limit)
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

/// Shows every document that the filter finds to `visit`, in the order of `plan`, without skip and limit, until it returns false.
pub(crate) fn each(
    reads: &Reads<'_>,
    collection: &Collection,
    (query, plan): (&Query, Plan),
    deadline: Deadline<'_>,
    visit: &mut dyn FnMut(&[u8], Document<'_>) -> Outcome<bool>,
) -> Outcome<Examined> {
    let mut walk = Walk::new(plan);
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

/// What the query finds, where `plan` does not give the order: sorted. With a limit no more is kept than it needs.
pub(crate) fn sorted(
    reads: &Reads<'_>,
    collection: &Collection,
    (query, plan): (Query, Plan),
    deadline: Deadline<'_>,
    workspace: &Workspace,
) -> Outcome<Results> {
    let mut sorter = Sorter::new(query.sort.clone(), query.most(), workspace);
    each(
        reads,
        collection,
        (&query, plan),
        deadline,
        &mut |_, document| {
            sorter.push(document.0.to_vec())?;
            Ok(true)
        },
    )?;
    Ok(Results {
        documents: sorter.finish()?,
        skip: query.skip,
        filter: query.filter,
        projection: None,
        pending: None,
    })
}

/// A source of what the query finds.
pub(crate) fn source(
    reads: &Reads<'_>,
    collection: &Collection,
    query: Query,
    projection: Option<Projection>,
    deadline: Deadline<'_>,
    workspace: &Workspace,
) -> Outcome<Source> {
    let plan = query.plan(reads, collection)?;
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
    let results = sorted(reads, collection, (query, plan), deadline, workspace)?;
    Ok(Source::Results(Box::new(Results {
        projection,
        ..results
    })))
}
