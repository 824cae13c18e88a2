//! `aggregate`.

use drumlin_doc::{Builder, Code, Filter, Kind, Outcome as Parsed, Refusal, Value};
use drumlin_doc_store::{Name, Outcome, Reads};

use crate::cursors::{Results, Source};
use crate::pipeline::{Pipeline, Running, Stage, run, take, through};
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

/// What the pipelines of a command run with.
pub(super) fn running<'a>(call: &Call<'a>, reads: &'a Reads<'a>) -> Parsed<Running<'a>> {
    Ok(Running {
        reads,
        database: call.database,
        scope: call.scope()?,
        workspace: call.workspace(),
        depth: 0,
    })
}

/// The stages of the command.
fn parse(call: &Call<'_>, running: &Running<'_>) -> Parsed<Vec<Stage>> {
    Pipeline::parse(&call.documents("pipeline")?, running)
}

/// The query that stages begin with, which goes from them.
fn query_of(
    call: &Call<'_>,
    stages: &mut Vec<Stage>,
    name: &Name,
    running: &Running<'_>,
) -> Parsed<Query> {
    let mut query = Query::of(Filter::And(Vec::new()));
    query.hint = call.hint()?;
    take(&mut query, stages, name, running)?;
    Ok(query)
}

/// The query that a pipeline begins with, as `explain` tells it.
///
/// It is that of the collection, which is told, where the command is about a view.
pub(super) fn query(call: &Call<'_>, name: &mut Name) -> Parsed<Query> {
    call.accept(KNOWN, &["collation", "exchange", "fromMongos"])?;
    let reads = call.shared.store.reads();
    let running = running(call, &reads)?;
    let mut stages = parse(call, &running)?;
    if let Some(collection) = through(name, None, &mut stages, &running)? {
        *name = collection;
    }
    query_of(call, &mut stages, name, &running)
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
    let mut stages = parse(call, &running)?;
    if matches!(stages.first(), Some(Stage::Documents(_))) != is_database {
        let text = "{aggregate: 1} is not valid for a pipeline that does not begin with $documents, and $documents is for no collection";
        return Err(Refusal::new(Code::InvalidNamespace, text).into());
    }
    let of_view = through(&name, None, &mut stages, &running)?;
    let of = of_view.as_ref().unwrap_or(&name);
    let query = query_of(call, &mut stages, of, &running)?;
    let is_query = stages.is_empty() && of_view.is_none();
    let source = match reads.collection(&name).filter(|_| is_query) {
        // Without other stages the query is all, and its cursor goes on by itself.
        Some(collection) => source(&reads, &collection, query, None, &call.workspace())?,
        None => Source::Results(Box::new(Results::all(run(of, query, stages, &running)?))),
    };
    let batch = batch.and_then(|batch| u64::try_from(batch).ok());
    first_batch(call, &reads, name, source, batch, false)
}
