//! `aggregate`.

use drumlin_doc::{Builder, Code, Filter, Kind, Outcome as Parsed, Refusal, Value};
use drumlin_doc_store::{Name, Outcome, Reads};

use crate::cursors::{Results, Source};
use crate::pipeline::{Pipeline, Running, Stage, run, take};
use crate::query::{Query, source};

use super::call::Call;
use super::cursor::first_batch;

const KNOWN: &[&str] = &[
    "pipeline",
    "cursor",
    "allowDiskUse",
    "hint",
    "bypassDocumentValidation",
    "let",
];

fn running<'a>(call: &Call<'a>, reads: &'a Reads<'a>) -> Parsed<Running<'a>> {
    Ok(Running {
        reads,
        database: call.database,
        scope: call.scope()?,
        workspace: call.workspace(),
        depth: 0,
    })
}

/// The query that a pipeline begins with, and the stages behind it.
fn parse(call: &Call<'_>, name: &Name, running: &Running<'_>) -> Parsed<(Query, Vec<Stage>)> {
    let mut stages = Pipeline::parse(&call.documents("pipeline")?, running)?;
    let mut query = Query::of(Filter::And(Vec::new()));
    query.hint = call.hint()?;
    take(&mut query, &mut stages, name, running)?;
    Ok((query, stages))
}

/// The query that a pipeline begins with, as `explain` tells it.
pub(super) fn query(call: &Call<'_>) -> Parsed<Query> {
    call.accept(KNOWN, &["collation", "exchange", "fromMongos"])?;
    let reads = call.shared.store.reads();
    let name = call.collection()?;
    parse(call, &name, &running(call, &reads)?).map(|(query, _)| query)
}

/// See the module.
pub(super) fn aggregate(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(KNOWN, &["collation", "explain", "exchange", "fromMongos"])?;
    let first = call.body.iter().next().map(|first| first.value);
    let is_database = first.is_some_and(|first| first.kind != Kind::String);
    let name = if is_database {
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
    let reads = call.shared.store.reads();
    let running = running(call, &reads)?;
    let (query, stages) = parse(call, &name, &running)?;
    if matches!(stages.first(), Some(Stage::Documents(_))) != is_database {
        let text = "{aggregate: 1} is not valid for a pipeline that does not begin with $documents, and $documents is for no collection";
        return Err(Refusal::new(Code::InvalidNamespace, text).into());
    }
    let source = match reads.collection(&name).filter(|_| stages.is_empty()) {
        // Without other stages the query is all, and its cursor goes on by itself.
        Some(collection) => source(&reads, &collection, query, None, &call.workspace())?,
        None => Source::Results(Box::new(Results::all(run(&name, query, stages, &running)?))),
    };
    let batch = batch.and_then(|batch| u64::try_from(batch).ok());
    first_batch(call, &reads, name, source, batch, false)
}
