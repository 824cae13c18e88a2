//! `findAndModify`.

use drumlin_doc::{Builder, Document, Kind, Projection, ProjectionOf, Refusal, Update, Value};
use drumlin_doc_store::Outcome;

use crate::query::Query;

use super::call::Call;
use super::change::Change;
use super::delete::remove;
use super::first::first;
use super::shape::Shape;
use super::update::{Statement, array_filters, change, upsert};

const KNOWN: &[&str] = &[
    "query",
    "sort",
    "remove",
    "update",
    "new",
    "fields",
    "upsert",
    "arrayFilters",
    "hint",
    "bypassDocumentValidation",
    "let",
];

const SHAPES: &[(&str, Shape)] = &[
    ("query", Shape::Document),
    ("sort", Shape::Document),
    ("remove", Shape::Truth),
    ("new", Shape::Truth),
    ("fields", Shape::Document),
    ("upsert", Shape::Truth),
    ("arrayFilters", Shape::Array),
    ("hint", Shape::Hint),
    ("bypassDocumentValidation", Shape::Truth),
    ("let", Shape::Document),
];

/// See the module.
pub(super) fn find_and_modify(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(KNOWN, &["collation"])?;
    call.check(SHAPES)?;
    let name = call.collection()?;
    let (is_remove, is_new) = (call.flag("remove"), call.flag("new"));
    let update = call
        .body
        .get("update")
        .filter(|update| update.kind != Kind::Null);
    if is_remove == update.is_some() {
        return Err(Refusal::parse(
            "Either an update or remove=true must be specified, and not both",
        )
        .into());
    }
    if is_remove && (is_new || call.flag("upsert")) {
        return Err(
            Refusal::parse("Cannot specify new=true or upsert=true with remove=true").into(),
        );
    }
    let mut query = Query::of(call.filter("query")?);
    query.sort = call.sort("sort")?;
    query.hint = call.hint()?;
    let fields = call.document("fields")?;
    let fields = fields.map(|it| Projection::new(it, ProjectionOf::Find, &call.scope()?));
    let fields = fields.transpose()?;
    let wanted = match update {
        Some(_) => Change::parse(call, update, &call.scope()?)?,
        None => Change::Update(Update::replacement(Document::EMPTY)?),
    };
    let filters = array_filters(call.body.get("arrayFilters"), &wanted)?;
    let statement = Statement::of_one(query, wanted, filters, call.flag("upsert"));
    let value = |document: &[u8]| match &fields {
        Some(fields) => fields.apply(Document(document), Some(&statement.query.filter)),
        None => Ok(document.to_vec()),
    };
    loop {
        let first = first(call, &name, &statement.query)?;
        let Some(found) = first.found(&name).next() else {
            if !statement.is_upsert {
                return Ok(reply(None, (0, None, is_remove)));
            }
            let Some(document) = upsert(call, &name, &statement)? else {
                continue;
            };
            let shown = is_new.then(|| value(&document)).transpose()?;
            return Ok(reply(shown, (1, Document(&document).get("_id"), false)));
        };
        let found = match is_remove {
            true => remove(call, found, &statement.query)?,
            false => change(call, found, &statement)?
                .map(|(before, after, _)| if is_new { after } else { before }),
        };
        // Where somebody else was faster, the next one is looked for.
        if let Some(document) = found {
            return Ok(reply(Some(value(&document)?), (1, None, is_remove)));
        }
    }
}

fn reply(
    value: Option<Vec<u8>>,
    (n, upserted, is_remove): (u64, Option<Value<'_>>, bool),
) -> Builder {
    let mut reply = Builder::new();
    reply.open(Kind::Document, "lastErrorObject").count("n", n);
    if !is_remove {
        reply.bool("updatedExisting", n == 1 && upserted.is_none());
    }
    if let Some(id) = upserted {
        reply.value("upserted", id);
    }
    reply.close();
    match value {
        Some(value) => reply.document("value", Document(&value)),
        None => reply.null("value"),
    };
    reply
}
