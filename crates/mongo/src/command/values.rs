//! `count` and `distinct`.

use std::collections::HashSet;

use drumlin_doc::{Builder, Document, Kind, Path, Refusal, Value, candidates, keystring};
use drumlin_doc_store::Outcome;

use crate::query::{Query, each};
use crate::sorting::too_much;
use crate::wire::limits::BATCH_BYTES_MAX;

use super::call::Call;

/// `count`: without a filter it is known.
pub(super) fn count(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &["query", "skip", "limit", "hint", "fields"],
        &["collation"],
    )?;
    let name = call.collection()?;
    let query = call.query("query")?;
    let reads = call.shared.store.reads();
    let collection = reads.collection(&name);
    let mut found = 0u64;
    if let Some(collection) = &collection {
        let is_all = call.document("query")?.is_none_or(Document::is_empty);
        match is_all {
            true => found = collection.documents(),
            false => {
                let most = query.skip.saturating_add(query.limit);
                let plan = query.plan(&reads, collection)?;
                let query = (&query, plan);
                each(&reads, collection, query, &mut |_, _| {
                    found += 1;
                    Ok(found < most)
                })?;
            }
        }
    }
    let mut reply = Builder::new();
    reply.count("n", found.saturating_sub(query.skip).min(query.limit));
    Ok(reply)
}

/// `distinct`: each value once, an array by its elements, in the order they were met.
pub(super) fn distinct(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["key", "query", "hint"], &["collation"])?;
    let name = call.collection()?;
    let key = call.body.get("key").and_then(Value::as_str);
    let key = Path::new(
        key.ok_or_else(|| Refusal::type_mismatch("distinct needs the name of a field as key"))?,
    );
    let mut query = Query::of(call.filter("query")?);
    query.hint = call.hint()?;
    let reads = call.shared.store.reads();
    let mut reply = Builder::new();
    reply.open(Kind::Array, "values");
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    if let Some(collection) = reads.collection(&name) {
        let plan = query.plan(&reads, &collection)?;
        each(&reads, &collection, (&query, plan), &mut |_, document| {
            candidates(document, &key, &mut |value| {
                let elements = value.and_then(Value::as_array);
                let elements = elements
                    .into_iter()
                    .flat_map(|array| array.iter().map(|element| element.value));
                let whole = value.filter(|value| value.kind != Kind::Array);
                for value in whole.into_iter().chain(elements) {
                    if seen.insert(keystring::key_of(value)) {
                        reply.value((seen.len() - 1).to_string(), value);
                    }
                }
                false
            });
            match reply.len() > BATCH_BYTES_MAX {
                true => Err(too_much("the list of distinct values").into()),
                false => Ok(true),
            }
        })?;
    }
    reply.close();
    Ok(reply)
}
