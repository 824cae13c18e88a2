//! `find`.

use std::collections::VecDeque;

use drumlin_doc::{Builder, Outcome as Parsed, Projection, ProjectionOf};
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

/// See the module.
pub(super) fn find(call: &Call<'_>) -> Outcome<Builder> {
    let name = call.collection()?;
    let (query, projection) = query(call)?;
    let batch = call.count("batchSize")?;
    let reads = call.shared.store.reads();
    let source = match reads.collection(&name) {
        Some(collection) => source(&reads, &collection, query, projection, call.deadline())?,
        None => Source::Ready(VecDeque::new()),
    };
    first_batch(call, &reads, name, source, batch, call.flag("singleBatch"))
}
