//! `find`.

use std::collections::VecDeque;

use drumlin_doc::{
    Builder, Document, Element, Kind, Outcome as Parsed, Projection, ProjectionOf, Value,
};
use drumlin_doc_store::Outcome;

use crate::cursors::Source;
use crate::query::{Query, source};

use super::call::Call;
use super::cursor::first_batch;

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
];
const UNSERVED: &[&str] = &[
    "collation",
    "min",
    "max",
    "returnKey",
    "showRecordId",
    "tailable",
    "awaitData",
];

/// The query of a `find`.
pub(super) fn query(call: &Call<'_>) -> Parsed<(Query, Option<Projection>)> {
    call.accept(KNOWN, UNSERVED)?;
    let projection = call
        .document("projection")?
        .map(|it| Projection::new(it, ProjectionOf::Find, &call.scope()?))
        .transpose()?;
    Ok((
        call.query("filter")?,
        projection.filter(|projection| !projection.is_all()),
    ))
}

/// Whether it looks up one document by its `_id`, and does nothing more with it than to leave out fields.
pub(super) fn is_lookup(call: &Call<'_>) -> bool {
    let is_plain = |name: &str, value: Value<'_>| match name {
        "filter" => {
            let mut fields = Document(value.bytes).iter();
            let is_id = |it: Element<'_>| it.name == b"_id" && is_scalar(it.value.kind);
            value.kind == Kind::Document
                && fields.next().is_some_and(is_id)
                && fields.next().is_none()
        }
        "projection" => {
            let is_flag =
                |it: Element<'_>| it.value.kind == Kind::Bool || it.value.kind.is_number();
            value.kind == Kind::Document && Document(value.bytes).iter().all(is_flag)
        }
        "limit" | "batchSize" | "singleBatch" | "$db" | "lsid" | "$readPreference"
        | "maxTimeMS" | "comment" => true,
        _ => false,
    };
    let has_filter = call.body.get("filter").is_some();
    let mut arguments = call.body.iter().skip(1);
    call.name == "find" && has_filter && arguments.all(|it| is_plain(it.name_str(), it.value))
}

/// Whether a value of `_id` is compared as it is.
fn is_scalar(kind: Kind) -> bool {
    kind.is_number()
        || matches!(
            kind,
            Kind::String | Kind::ObjectId | Kind::Binary | Kind::Date
        )
}

/// See the module.
pub(super) fn find(call: &Call<'_>) -> Outcome<Builder> {
    let name = call.collection()?;
    let (query, projection) = query(call)?;
    let batch = call.count("batchSize")?;
    let reads = call.reads();
    let source = match reads.collection(&name) {
        Some(collection) => source(
            &reads,
            &collection,
            query,
            projection,
            call.deadline(),
            &call.workspace(),
        )?,
        None => Source::Ready(VecDeque::new()),
    };
    first_batch(call, &reads, name, source, batch, call.flag("singleBatch"))
}
