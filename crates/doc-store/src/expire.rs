//! Documents that go when their time is over.

use drumlin_doc::{Code, Filter, OwnedValue, Predicate, Test};

use crate::bounds::{Interval, intervals};
use crate::catalog::Collection;
use crate::failure::{Failure, Outcome};
use crate::index::Index;
use crate::layout::under;
use crate::modify::{Found, Step};
use crate::pace::Manner;
use crate::plan::{Access, Plan};
use crate::store::Store;
use crate::walk::Walk;

/// Documents that are looked for before they are removed.
const AT_ONCE: usize = 1000;

impl Store {
    /// Removes documents whose date in an index lies more seconds back than that says; how many. `now_ms` is since 1970. Each goes by
    /// a write of its own, if its time is over still.
    ///
    /// # Errors
    /// Of the engine.
    pub fn expire(&self, now_ms: i64) -> Outcome<u64> {
        let catalog = self.catalog();
        let mut count = 0;
        for collection in catalog.iter() {
            for index in &collection.indexes {
                if let Some(seconds) = index.expire_after_seconds {
                    let span = match drumlin_base::bug!("mongo-expiry-at-once") {
                        true => 0,
                        false => i64::from(seconds) * 1000,
                    };
                    let until = now_ms.saturating_sub(span);
                    count += self.expire_index(collection, index, until)?;
                }
            }
        }
        Ok(count)
    }

    fn expire_index(
        &self,
        collection: &Collection,
        index: &std::sync::Arc<Index>,
        until_ms: i64,
    ) -> Outcome<u64> {
        let Some((path, is_descending)) = index.fields.0.first() else {
            return Ok(0);
        };
        let test = Test::Any(Predicate::LessOrEqual(OwnedValue::date(until_ms)));
        let ranges = intervals(&test, false).unwrap_or_default();
        let ranges = ranges.iter().map(|range| match is_descending {
            true => range.inverted(),
            false => range.clone(),
        });
        let ranges = ranges.map(|Interval { low, high, .. }| {
            (under(index.ident, &low), under(index.ident, &high))
        });
        let mut walk = Walk::new(Plan {
            access: Access::Index(std::sync::Arc::clone(index), ranges.collect()),
            is_reverse: false,
            is_sorted: true,
            is_single: false,
        });
        let filter = Filter::Field(path.clone(), test);
        let is_over = |document: drumlin_doc::Document<'_>| {
            let is_old = filter.matches(document)?;
            let partial = index.partial.as_ref();
            Ok::<_, drumlin_doc::Refusal>(
                is_old && partial.is_none_or(|it| it.filter.matches(document) == Ok(true)),
            )
        };
        let mut count = 0;
        loop {
            let mut ids = Vec::new();
            let is_end = {
                let reads = self.reads();
                // It may be gone, or its index, or be another one of that name.
                let now = reads.collection(&collection.name);
                let Some(now) = now.filter(|now| {
                    now.uuid == collection.uuid
                        && now
                            .indexes
                            .iter()
                            .any(|it| std::sync::Arc::ptr_eq(it, index))
                }) else {
                    return Ok(count);
                };
                walk.go_on(&reads, &now, &mut |id, _| {
                    ids.push(id.to_vec());
                    Ok(ids.len() < AT_ONCE)
                })?
            };
            for id in ids {
                let found = Found {
                    name: &collection.name,
                    uuid: Some(collection.uuid),
                    key: &id,
                };
                let done = self.modify_with(found, Manner::CHECKED, &mut |document| {
                    let goes = is_over(document)?;
                    Ok(if goes { Step::Delete } else { Step::Keep })
                });
                match done {
                    Ok(done) => count += u64::from(done.step == Step::Delete),
                    Err(Failure::Refused(it)) if it.code == Code::QueryPlanKilled => {
                        return Ok(count);
                    }
                    Err(failure) => return Err(failure),
                }
            }
            if is_end {
                return Ok(count);
            }
        }
    }
}
