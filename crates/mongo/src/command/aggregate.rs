//! `aggregate`.

use drumlin_doc::{Builder, Code, Kind, Outcome as Parsed, Refusal, Value};
use drumlin_doc_store::{Name, Outcome};

use crate::cursors::Source;
use crate::pipeline::{Pipeline, Stage};
use crate::query::{Query, each, source};

use super::call::Call;
use super::cursor::first_batch;

/// See the module.
pub(super) fn aggregate(call: &Call<'_>) -> Outcome<Builder> {
    let known = [
        "pipeline",
        "cursor",
        "allowDiskUse",
        "hint",
        "bypassDocumentValidation",
    ];
    call.accept(
        &known,
        &["collation", "let", "explain", "exchange", "fromMongos"],
    )?;
    let first = call.body.iter().next().map(|first| first.value);
    let is_databases = first.is_some_and(|first| first.kind != Kind::String);
    let name = if is_databases {
        Name::new(call.database, "$cmd.aggregate")
    } else {
        call.collection()?
    };
    let cursor = call.document("cursor")?;
    let missing = || {
        Refusal::new(
            Code::FailedToParse,
            "The 'cursor' option is required, except for aggregate with the explain argument",
        )
    };
    let batch = cursor
        .ok_or_else(missing)?
        .get("batchSize")
        .and_then(Value::as_whole);
    let mut stages = Pipeline::parse(&call.documents("pipeline")?)?;
    let query = take_query(call, &mut stages)?;
    let reads = call.shared.store.reads();
    let collection = reads.collection(&name);
    let source = match collection {
        // Without other stages the query is all, and its cursor goes on by itself.
        Some(collection) if stages.is_empty() => {
            source(&reads, &collection, query, None, call.deadline())?
        }
        collection => {
            let mut pipeline = Pipeline::new(stages);
            if let Some(collection) = collection {
                let plan = query.plan(&collection)?;
                if plan.is_sorted {
                    let (mut skip, mut left) = (query.skip, query.limit);
                    each(
                        &reads,
                        &collection,
                        &query,
                        call.deadline(),
                        &mut |_, document| {
                            if skip > 0 {
                                skip -= 1;
                                return Ok(true);
                            }
                            if left == 0 {
                                return Ok(false);
                            }
                            left -= 1;
                            Ok(pipeline.push(document.0)? && left > 0)
                        },
                    )?;
                } else if let Source::Ready(documents) =
                    source(&reads, &collection, query, None, call.deadline())?
                {
                    for document in documents {
                        if !pipeline.push(&document)? {
                            break;
                        }
                    }
                }
            }
            Source::Ready(pipeline.finish()?.into())
        }
    };
    let batch = batch.and_then(|batch| u64::try_from(batch).ok());
    first_batch(call, &reads, name, source, batch, false)
}

/// The stages at the front that a query does: filters, then one order, then a number to skip, then a limit.
fn take_query(call: &Call<'_>, stages: &mut Vec<Stage>) -> Parsed<Query> {
    let mut query = Query::of(drumlin_doc::Filter::And(Vec::new()));
    query.hint = call.hint()?;
    let mut filters = Vec::new();
    let mut taken = 0;
    let mut step = 0;
    for stage in stages.iter() {
        match stage {
            Stage::Match(filter) if step == 0 => filters.push(filter.clone()),
            Stage::Sort(sorter) if step == 0 => {
                query.sort = sorter.order().clone();
                step = 1;
            }
            Stage::Skip(count) if step <= 1 => {
                query.skip = *count;
                step = 2;
            }
            Stage::Limit(count) if step <= 2 => {
                query.limit = *count;
                step = 3;
            }
            _ => break,
        }
        taken += 1;
    }
    stages.drain(..taken);
    query.filter = match filters.len() {
        1 => filters.swap_remove(0),
        _ => drumlin_doc::Filter::And(filters),
    };
    Ok(query)
}
