//! The first document that a query finds, in its order.

use drumlin_doc::Document;
use drumlin_doc_store::{Name, Outcome};

use crate::query::{Query, each};
use crate::sorting::Sorter;

use super::call::Call;
use super::delete::Matching;

/// The first document in the order, if there is any.
pub(super) fn first(call: &Call<'_>, name: &Name, query: &Query) -> Outcome<Matching> {
    let reads = call.shared.store.reads();
    let Some(collection) = reads.collection(name) else {
        return Ok(Matching::default());
    };
    collection.refuse_view()?;
    let plan = query.plan(&reads, &collection)?;
    let is_sorted = plan.is_sorted;
    let mut found = None;
    let mut sorter = Sorter::new(query.sort.clone(), 1, &call.workspace());
    each(&reads, &collection, (query, plan), &mut |id, document| {
        if is_sorted {
            found = Some(id.to_vec());
            return Ok(false);
        }
        sorter.push(document.0.to_vec())?;
        Ok(true)
    })?;
    let sorted = sorter.finish()?.next()?;
    let id = sorted.as_deref().and_then(|it| Document(it).get("_id"));
    let key = match id {
        Some(id) => reads.key_of(&collection, id)?,
        None => found,
    };
    Ok(Matching {
        uuid: collection.uuid,
        keys: Vec::from_iter(key),
    })
}
