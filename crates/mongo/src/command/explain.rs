//! `explain`: the plan of a query, and what it examined.

use drumlin_doc::{Builder, Document, Filter, Kind, Refusal, Value};
use drumlin_doc_store::{Name, Outcome, Priced};

use crate::pipeline::of_view;
use crate::query::{Query, each};

use super::aggregate::running;
use super::call::Call;
use super::{aggregate, delete, find};

/// See the module.
pub(super) fn explain(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["verbosity"], &[])?;
    let inner = call
        .body
        .iter()
        .next()
        .and_then(|first| first.value.as_document());
    let inner = inner.ok_or_else(|| Refusal::type_mismatch("explain needs a command"))?;
    let name = inner
        .iter()
        .next()
        .map(|first| first.name_str())
        .unwrap_or_default();
    let of = Call {
        body: inner,
        name,
        sequences: &[],
        ..*call
    };
    let mut name = of.collection()?;
    let mut query = query_of(&of, &mut name)?;
    let reads = call.shared.store.reads();
    let is_write = matches!(of.name, "update" | "delete");
    match reads.collection(&name) {
        Some(collection) if is_write => collection.refuse_view()?,
        _ => {
            if let Some((collection, first, _)) = of_view(&name, &query, &running(&of, &reads)?)? {
                (name, query) = (collection, first);
            }
        }
    }
    let collection = reads.collection(&name);
    let plans = match &collection {
        Some(collection) => query.plans(&reads, collection)?,
        None => Vec::new(),
    };
    let mut reply = Builder::new();
    reply
        .str("explainVersion", "1")
        .open(Kind::Document, "queryPlanner")
        .str("namespace", &name.to_string());
    reply.open(Kind::Document, "winningPlan");
    match plans.first() {
        None => drop(reply.str("stage", "EOF")),
        Some(best) => tell(&mut reply, best),
    }
    reply.close().open(Kind::Array, "rejectedPlans");
    for (at, plan) in plans.iter().skip(1).enumerate() {
        reply.open(Kind::Document, at.to_string());
        tell(&mut reply, plan);
        reply.close();
    }
    reply.close().close();
    let verbosity = call.body.get("verbosity").and_then(Value::as_str);
    let best = plans.into_iter().next().map(|best| best.plan);
    if let Some((collection, plan)) = collection.zip(best)
        && verbosity != Some("queryPlanner")
    {
        let most = query.most();
        let mut found = 0u64;
        let of = (&query, plan);
        let examined = each(&reads, &collection, of, &mut |_, _| {
            found += 1;
            Ok(found < most || !query.sort.is_empty())
        })?;
        let returned = found.saturating_sub(query.skip).min(query.limit);
        reply
            .open(Kind::Document, "executionStats")
            .bool("executionSuccess", true);
        reply
            .count("nReturned", returned)
            .count("totalKeysExamined", examined.keys);
        reply.count("totalDocsExamined", examined.documents).close();
    }
    reply
        .open(Kind::Document, "serverInfo")
        .str("version", "7.0.0")
        .close();
    Ok(reply)
}

/// A plan, and what it was expected to cost.
fn tell(reply: &mut Builder, priced: &Priced) {
    match priced.plan.is_sorted {
        true => priced.plan.explain(reply),
        false => {
            reply
                .str("stage", "SORT")
                .open(Kind::Document, "inputStage");
            priced.plan.explain(reply);
            reply.close();
        }
    }
    if let Some(entries) = priced.entries {
        reply
            .count("numKeysEstimate", entries)
            .f64("costEstimate", priced.cost);
    }
}

/// The query of a command; that of a pipeline over a view is for another collection.
fn query_of(of: &Call<'_>, name: &mut Name) -> Result<Query, Refusal> {
    match of.name {
        "find" => find::query(of).map(|(query, _)| query),
        "count" => of.query("query"),
        "distinct" => Ok(Query::of(of.filter("query")?)),
        "delete" => {
            let statements = of.documents("deletes")?;
            let first = statements.first().copied().unwrap_or(Document::EMPTY);
            delete::statement_of(first, &of.scope()?).map(|(query, _)| query)
        }
        "update" => {
            let statements = of.documents("updates")?;
            let filter = statements
                .first()
                .and_then(|first| first.get("q"))
                .and_then(Value::as_document);
            let filter = filter.unwrap_or(Document::EMPTY);
            Ok(Query::of(Filter::with(filter, &of.scope()?)?))
        }
        "aggregate" => aggregate::query(of, name),
        other => Err(Refusal::not_supported(format!("explain of {other}"))),
    }
}
