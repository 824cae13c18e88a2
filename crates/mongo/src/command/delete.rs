//! `delete`.

use drumlin_doc::{Builder, Document, Filter, Refusal, Scope, Value, step};
use drumlin_doc_store::{Found, Name, Outcome, Step};

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
        let outcome = one_statement(call, &name, (*statement, &scope), &mut count);
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

/// Carries out a statement, and adds to `count` how many documents it deleted, those before an error as well.
pub(super) fn one_statement(
    call: &Call<'_>,
    name: &Name,
    (statement, scope): (Document<'_>, &Scope),
    count: &mut u64,
) -> Outcome<()> {
    let (query, is_one) = statement_of(statement, scope)?;
    one(call, name, (&query, is_one), count)
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

fn one(
    call: &Call<'_>,
    name: &Name,
    (query, is_one): (&Query, bool),
    count: &mut u64,
) -> Outcome<()> {
    loop {
        let matching = matching(call, name, query, if is_one { 1 } else { usize::MAX })?;
        for found in matching.found(name) {
            step()?;
            let is_gone = remove(call, found, query)?.is_some();
            *count += u64::from(is_gone);
            if is_one && is_gone {
                return Ok(());
            }
        }
        // The only one that was found may have been changed meanwhile by somebody else.
        if matching.keys.is_empty() || !is_one {
            return Ok(());
        }
    }
}

/// Removes a document, if it still matches; as it was.
pub(super) fn remove(call: &Call<'_>, found: Found<'_>, query: &Query) -> Outcome<Option<Vec<u8>>> {
    let store = &call.shared.store;
    let modified = store.modify_with(found, call.manner(), &mut |document| {
        Ok(match query.filter.matches(document)? {
            true => Step::Delete,
            false => Step::Keep,
        })
    })?;
    Ok(modified.before.filter(|_| modified.step == Step::Delete))
}

/// Where the documents of a query lie.
#[derive(Debug, Default)]
pub(super) struct Matching {
    /// Their collection: another one of its name has other documents under these keys.
    pub(super) uuid: [u8; 16],
    pub(super) keys: Vec<Vec<u8>>,
}

impl Matching {
    /// All of them, with the name of the collection.
    pub(super) fn found<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = Found<'a>> {
        self.keys.iter().map(move |key| Found {
            name,
            uuid: Some(self.uuid),
            key,
        })
    }
}

/// The first `most` documents that the query finds now. They are all known before the first is changed, so that no change is met again.
pub(super) fn matching(
    call: &Call<'_>,
    name: &Name,
    query: &Query,
    most: usize,
) -> Outcome<Matching> {
    let reads = call.reads();
    let Some(collection) = reads.collection(name) else {
        return Ok(Matching::default());
    };
    collection.refuse_view()?;
    let mut keys = Vec::new();
    let mut bytes = 0;
    let query = (query, query.plan(&reads, &collection)?);
    each(&reads, &collection, query, &mut |id, _| {
        bytes += id.len() + 24;
        if bytes > STAGE_BYTES_MAX {
            return Err(too_much("the list of the documents to change").into());
        }
        keys.push(id.to_vec());
        Ok(keys.len() < most)
    })?;
    Ok(Matching {
        uuid: collection.uuid,
        keys,
    })
}

#[cfg(test)]
mod tests {
    use drumlin_doc::Code;
    use drumlin_doc_store::{Bounds, Failure, Pace};

    use super::*;
    use crate::shared::Shared;

    #[test]
    fn what_was_found_in_a_collection_is_not_removed_from_another_of_its_name() {
        let shared = Shared::in_memory();
        let (store, name) = (shared.store(), Name::new("d", "c"));
        store.create(&name).expect("creates");
        let documents: Vec<Vec<u8>> = (0..10)
            .map(|id| {
                let mut out = Builder::new();
                out.i32("_id", id);
                out.finish()
            })
            .collect();
        let news: Vec<_> = documents.iter().map(|it| Document(it)).collect();
        store.insert(&name, &news, true).expect("inserts");
        let call = Call {
            shared: &shared,
            connection: 1,
            database: "d",
            name: "delete",
            body: Document::EMPTY,
            sequences: &[],
            pace: Pace::InTurn,
            pause: None,
            refused: 0,
        };
        let query = Query::of(Filter::And(Vec::new()));
        let before = matching(&call, &name, &query, usize::MAX).expect("reads");
        assert_eq!(before.keys.len(), 10);
        let bounds = Bounds {
            size_bytes: 1 << 20,
            documents_max: None,
        };
        store
            .convert_to_capped(&name, &name, bounds)
            .expect("converts");
        for found in before.found(&name) {
            let refused = remove(&call, found, &query).expect_err("it is another collection");
            assert!(matches!(refused, Failure::Refused(it) if it.code == Code::QueryPlanKilled));
        }
        let mut count = 0;
        one(&call, &name, (&query, false), &mut count).expect("deletes");
        assert_eq!(count, 10, "they are there, and found anew");
        let left = store.collection(&name).map(|it| it.documents());
        assert_eq!(left, Some(0));
    }
}
