//! `count` and `distinct`.

use std::collections::HashSet;

use drumlin_doc::{Builder, Document, Kind, Path, Refusal, Value, candidates, keystring};
use drumlin_doc_store::{Name, Outcome};

use crate::pipeline::{Stage, run_view};
use crate::query::{Query, each};
use crate::sorting::too_much;
use crate::wire::limits::BATCH_BYTES_MAX;

use super::aggregate::running;
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
    if let Some(count) = count_of_view(call, &name, &query)? {
        let mut reply = Builder::new();
        reply.count("n", count);
        return Ok(reply);
    }
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

/// How many documents a query finds in a view; `None` where it is none.
fn count_of_view(call: &Call<'_>, name: &Name, query: &Query) -> Outcome<Option<u64>> {
    let reads = call.shared.store.reads();
    let count = vec![Stage::Count("n".to_owned(), 0)];
    let found = run_view(name, query, count, &running(call, &reads)?)?;
    let Some(mut found) = found else {
        return Ok(None);
    };
    let count = found.next()?;
    let count = count.and_then(|it| Document(&it).get("n")?.as_whole());
    Ok(Some(
        count.and_then(|it| u64::try_from(it).ok()).unwrap_or(0),
    ))
}

/// Different values of a field.
#[derive(Default)]
struct Values {
    out: Builder,
    seen: HashSet<Vec<u8>>,
}

impl Values {
    /// Takes those of a document.
    fn take(&mut self, document: Document<'_>, key: &Path) -> Outcome<()> {
        candidates(document, key, &mut |value| {
            let elements = value.and_then(Value::as_array);
            let elements = elements
                .into_iter()
                .flat_map(|array| array.iter().map(|element| element.value));
            let whole = value.filter(|value| value.kind != Kind::Array);
            for value in whole.into_iter().chain(elements) {
                if self.seen.insert(keystring::key_of(value)) {
                    self.out.value((self.seen.len() - 1).to_string(), value);
                }
            }
            false
        });
        match self.out.len() > BATCH_BYTES_MAX {
            true => Err(too_much("the list of distinct values").into()),
            false => Ok(()),
        }
    }
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
    let mut values = Values::default();
    values.out.open(Kind::Array, "values");
    let of_view = run_view(&name, &query, Vec::new(), &running(call, &reads)?)?;
    if let Some(mut found) = of_view {
        while let Some(document) = found.next()? {
            values.take(Document(&document), &key)?;
        }
    } else if let Some(collection) = reads.collection(&name) {
        let plan = query.plan(&reads, &collection)?;
        each(&reads, &collection, (&query, plan), &mut |_, document| {
            values.take(document, &key)?;
            Ok(true)
        })?;
    }
    values.out.close();
    Ok(values.out)
}
