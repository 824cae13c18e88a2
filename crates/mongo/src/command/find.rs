//! `find`.

use std::collections::VecDeque;

use drumlin_doc::{
    Builder, Code, Document, Element, Kind, Outcome as Parsed, Projection, ProjectionOf, Refusal,
    Value,
};
use drumlin_doc_store::{Collection, Name, Outcome, Pace, Reads, Walk};

use crate::cursors::{Results, Source, Tail, Walking};
use crate::pipeline::{Stage, run_view};
use crate::query::{Query, source};

use super::aggregate::running;
use super::call::{Call, is_by_id, is_of_any, not_at_once};
use super::cursor::first_batch;
use super::shape::Shape;

const KNOWN: &[&str] = &[
    "filter",
    "sort",
    "projection",
    "skip",
    "limit",
    "batchSize",
    "singleBatch",
    "hint",
    "allowDiskUse",
    "allowPartialResults",
    "noCursorTimeout",
    "oplogReplay",
    "let",
    "tailable",
    "awaitData",
];
const UNSERVED: &[&str] = &["collation", "min", "max", "returnKey", "showRecordId"];

const SHAPES: &[(&str, Shape)] = &[
    ("filter", Shape::Document),
    ("sort", Shape::Document),
    ("projection", Shape::Document),
    ("skip", Shape::Number),
    ("limit", Shape::Number),
    ("batchSize", Shape::Number),
    ("singleBatch", Shape::Flag),
    ("allowDiskUse", Shape::Flag),
    ("allowPartialResults", Shape::Flag),
    ("noCursorTimeout", Shape::Flag),
    ("oplogReplay", Shape::Flag),
    ("returnKey", Shape::Flag),
    ("showRecordId", Shape::Flag),
    ("tailable", Shape::Flag),
    ("awaitData", Shape::Flag),
    ("min", Shape::Document),
    ("max", Shape::Document),
    ("let", Shape::Document),
    ("hint", Shape::Hint),
];

/// The query of a `find`.
pub(super) fn query(call: &Call<'_>) -> Parsed<(Query, Option<Projection>)> {
    call.accept(KNOWN, UNSERVED)?;
    call.check(SHAPES)?;
    let projection = call
        .document("projection")?
        .map(|it| Projection::new(it, ProjectionOf::Find, &call.scope()?))
        .transpose()?;
    if let Some(filter) = call.body.get("filter").filter(|it| it.kind == Kind::Null) {
        return Err(call.mismatch("filter", filter, "object"));
    }
    if call.flag("awaitData") && !call.flag("tailable") {
        let text = "Cannot set 'awaitData' without also setting 'tailable'";
        return Err(Refusal::parse(text));
    }
    if call.flag("tailable") {
        check_tailable(call)?;
    }
    let query = call.query("filter")?;
    let is_positional = projection.as_ref().is_some_and(Projection::is_positional);
    if is_positional && query.filter.has_expression() {
        let text = "$expr cannot be used with a positional projection";
        return Err(Refusal::new(Code::QueryFeatureNotAllowed, text));
    }
    Ok((query, projection.filter(|projection| !projection.is_all())))
}

/// # Errors
/// `BadValue` for what a cursor that stays open does not go together with.
fn check_tailable(call: &Call<'_>) -> Parsed<()> {
    if call.flag("singleBatch") {
        let text = "cannot use tailable option with the 'singleBatch' option";
        return Err(Refusal::bad_value(text));
    }
    let sort = call.document("sort")?.unwrap_or(Document::EMPTY);
    let is_forward = |it: Element<'_>| it.name == b"$natural" && it.value.as_whole() == Some(1);
    match sort.iter().all(is_forward) {
        true => Ok(()),
        false => {
            let text = "cannot use tailable option with a sort other than {$natural: 1}";
            Err(Refusal::bad_value(text))
        }
    }
}

/// What a cursor shows that stays open at the end. It goes over the collection whatever the hint says.
fn tail(
    call: &Call<'_>,
    collection: &Collection,
    query: Query,
    projection: Option<Projection>,
) -> Parsed<Source> {
    if collection.bounds().is_none() {
        let name = &collection.name;
        let text = format!("tailable cursor requested on non capped collection {name}");
        return Err(Refusal::bad_value(text));
    }
    Ok(Source::Walk(Box::new(Walking {
        walk: Walk::tail(collection),
        filter: query.filter,
        projection,
        skip: query.skip,
        limit: query.limit,
        uuid: collection.uuid,
        pending: None,
        is_over: false,
        tail: Some(match call.flag("awaitData") {
            true => Tail::Await,
            false => Tail::Plain,
        }),
    })))
}

/// What is found in a view. It is all looked for now, which the event loop has no time for.
fn of_view(call: &Call<'_>, reads: &Reads<'_>, name: &Name, query: &Query) -> Outcome<Source> {
    if call.pace == Pace::AtOnce {
        return Err(not_at_once());
    }
    let sort = call.document("sort")?.unwrap_or(Document::EMPTY);
    let is_natural = sort.get("$natural").is_some();
    if call.flag("tailable") || is_natural {
        let text = "a view takes no 'tailable' and no sort by $natural";
        return Err(Refusal::new(Code::InvalidPipelineOperator, text).into());
    }
    // Projections of views are those of stages, which know fewer operators.
    let fields = call.document("projection")?.filter(|it| !it.is_empty());
    let fields = fields.map(|it| Projection::new(it, ProjectionOf::Stage, &call.scope()?));
    let fields = fields.transpose().map_err(|refusal| match refusal.code {
        Code::UnknownProjection => Refusal::new(Code::InvalidPipelineOperator, refusal.message),
        _ => refusal,
    });
    let stages = fields?.map(Stage::Project);
    let found = run_view(name, query, Vec::from_iter(stages), &running(call, reads)?)?;
    Ok(match found {
        Some(found) => Source::Results(Box::new(Results::all(found))),
        None => Source::Ready(VecDeque::new()),
    })
}

/// Whether it looks up one document by its `_id`, and does nothing more with it than to leave out fields.
pub(super) fn is_lookup(call: &Call<'_>) -> bool {
    let is_plain = |name: &str, value: Value<'_>| match name {
        "filter" => is_by_id(value),
        "projection" => {
            let is_flag =
                |it: Element<'_>| it.value.kind == Kind::Bool || it.value.kind.is_number();
            value.kind == Kind::Document && Document(value.bytes).iter().all(is_flag)
        }
        "limit" | "batchSize" | "singleBatch" => true,
        _ => is_of_any(name),
    };
    let has_filter = call.body.get("filter").is_some();
    let mut arguments = call.body.iter().skip(1);
    has_filter && arguments.all(|it| is_plain(it.name_str(), it.value))
}

/// See the module.
pub(super) fn find(call: &Call<'_>) -> Outcome<Builder> {
    let name = call.collection()?;
    let (query, projection) = query(call)?;
    let batch = call.count("batchSize")?;
    let reads = call.reads();
    let collection = reads.collection(&name);
    if collection
        .as_ref()
        .is_some_and(|it| it.options.view.is_some())
    {
        let found = of_view(call, &reads, &name, &query)?;
        return first_batch(call, &reads, name, found, batch, call.flag("singleBatch"));
    }
    let source = match collection {
        Some(collection) if call.flag("tailable") => tail(call, &collection, query, projection)?,
        Some(collection) => source(&reads, &collection, query, projection, &call.workspace())?,
        None => Source::Ready(VecDeque::new()),
    };
    first_batch(call, &reads, name, source, batch, call.flag("singleBatch"))
}
