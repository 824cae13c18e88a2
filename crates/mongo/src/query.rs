//! Finding documents: plan, filter, sort, skip, limit.

use drumlin_doc::{Document, Filter, Projection, Sort};
use drumlin_doc_store::{
    Collection, Hint, Outcome, Plan, Priced, Reads, Walk, plan, plan_with, plans,
};

use crate::cursors::{Results, Source, Walking};
use crate::sorting::{Sorter, Workspace};

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
    visit: &mut dyn FnMut(&[u8], Document<'_>) -> Outcome<bool>,
) -> Outcome<Examined> {
    let mut walk = Walk::new(plan);
    walk.go_on(
        reads,
        collection,
        &mut |id, document| match query.filter.matches(document)? {
            true => visit(id, document),
            false => Ok(true),
        },
    )?;
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
    workspace: &Workspace,
) -> Outcome<Results> {
    let mut sorter = Sorter::new(query.sort.clone(), query.most(), workspace);
    each(reads, collection, (&query, plan), &mut |_, document| {
        sorter.push(document.0.to_vec())?;
        Ok(true)
    })?;
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
            tail: None,
        })));
    }
    let results = sorted(reads, collection, (query, plan), workspace)?;
    Ok(Source::Results(Box::new(Results {
        projection,
        ..results
    })))
}
