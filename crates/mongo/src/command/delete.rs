//! `delete`.

use drumlin_doc::{Builder, Document, Filter, Refusal, Scope, Value, step};
use drumlin_doc_store::{Name, Outcome, Step};

use crate::query::{Query, each};
use crate::sorting::too_much;
use crate::wire::limits::STAGE_BYTES_MAX;

use super::call::{Call, hint_of};
use super::shape::{Shape, required};
use super::statements::statements;
use super::write_reply::{goes_on, write_errors};

/// Arguments of a statement.
const SHAPES: &[(&str, Shape)] = &[
    ("q", Shape::Document),
    ("limit", Shape::Any),
    ("hint", Shape::Hint),
];

/// See the module.
pub(super) fn delete(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["deletes", "ordered", "let"], &[])?;
    call.check(&[("ordered", Shape::Flag)])?;
    let scope = call.scope()?;
    let name = call.collection()?;
    let statements = statements(call, "deletes", SHAPES)?;
    call.shared.counters.deletes.add(statements.len() as u64);
    let ordered = call.is_ordered();
    let (mut count, mut errors) = (0u64, Vec::new());
    for (at, statement) in statements.iter().enumerate() {
        let outcome = one_statement(call, &name, *statement, &scope);
        let outcome = outcome.map(|deleted| count += deleted);
        if !goes_on(outcome, (at, ordered), &mut errors)? {
            break;
        }
    }
    call.shared.counters.deleted.add(count);
    let mut reply = Builder::new();
    reply.count("n", count);
    write_errors(&mut reply, &errors);
    Ok(reply)
}

/// Carries out a statement; how many documents it deleted.
pub(super) fn one_statement(
    call: &Call<'_>,
    name: &Name,
    statement: Document<'_>,
    scope: &Scope,
) -> Outcome<u64> {
    let (query, is_one) = statement_of(statement, scope)?;
    one(call, name, (&query, is_one))
}

/// The query of a statement, and whether it is for one document only.
pub(super) fn statement_of(
    statement: Document<'_>,
    scope: &Scope,
) -> Result<(Query, bool), Refusal> {
    let filter = statement
        .get("q")
        .and_then(Value::as_document)
        .ok_or_else(|| Refusal::parse("a delete needs a document as q"))?;
    let limit = required("delete.deletes", statement, "limit", Shape::Any)?;
    let is_one = match limit.as_whole() {
        Some(0) => false,
        Some(1) => true,
        _ => {
            return Err(Refusal::parse(
                "The limit field in delete objects must be 0 or 1",
            ));
        }
    };
    let mut query = Query::of(Filter::with(filter, scope)?);
    query.hint = hint_of(statement)?;
    Ok((query, is_one))
}

fn one(call: &Call<'_>, name: &Name, (query, is_one): (&Query, bool)) -> Outcome<u64> {
    let mut count = 0;
    loop {
        let ids = matching(call, name, query, if is_one { 1 } else { usize::MAX })?;
        for id in &ids {
            step()?;
            let modified = call.shared.store.modify(name, id, &mut |document| {
                Ok(match query.filter.matches(document)? {
                    true => Step::Delete,
                    false => Step::Keep,
                })
            })?;
            let is_gone = modified.step == Step::Delete;
            count += u64::from(is_gone);
            if is_one && is_gone {
                return Ok(count);
            }
        }
        // The only one that was found may have been changed meanwhile by somebody else.
        if ids.is_empty() || !is_one {
            return Ok(count);
        }
    }
}

/// The `_id`s, as keys, of the first `most` documents that the query finds now. They are all known before the first is changed, so
/// that no change is met again.
pub(super) fn matching(
    call: &Call<'_>,
    name: &Name,
    query: &Query,
    most: usize,
) -> Outcome<Vec<Vec<u8>>> {
    let reads = call.reads();
    let Some(collection) = reads.collection(name) else {
        return Ok(Vec::new());
    };
    collection.refuse_view()?;
    let mut ids = Vec::new();
    let mut bytes = 0;
    let query = (query, query.plan(&reads, &collection)?);
    each(&reads, &collection, query, &mut |id, _| {
        bytes += id.len() + 24;
        if bytes > STAGE_BYTES_MAX {
            return Err(too_much("the list of the documents to change").into());
        }
        ids.push(id.to_vec());
        Ok(ids.len() < most)
    })?;
    Ok(ids)
}
