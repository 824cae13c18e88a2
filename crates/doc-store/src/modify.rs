//! Changes of one document: read, decided, written, under its lock.

use drumlin::WriteBatch;
use drumlin_doc::{Code, Document, Refusal};

use crate::catalog::Name;
use crate::changes::Changes;
use crate::failure::Outcome;
use crate::form;
use crate::layout::under;
use crate::locks::lock_of;
use crate::pace::{Manner, Pace, not_at_once};
use crate::store::Store;

/// What is to become of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It stays.
    Keep,
    /// This one takes its place, with the same `_id`.
    Replace(Vec<u8>),
    /// It goes.
    Delete,
}

/// Where a document was found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The name of its collection.
    pub name: &'a Name,
    /// The collection's own number; `None` for whichever has the name.
    pub uuid: Option<[u8; 16]>,
    /// The key that it lies under: that of its `_id`, or its place in a capped collection.
    pub key: &'a [u8],
}

/// A document, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modified {
    /// As it was; `None` where there was none.
    pub before: Option<Vec<u8>>,
    /// What was done.
    pub step: Step,
}

impl Store {
    /// Asks `decide` what is to become of the document of that collection under the key `id_key`, that of its `_id` or its place in a
    /// capped one, and does it.
    /// `decide` may be asked more than once, each time with the document as it is then.
    ///
    /// # Errors
    /// Those of `decide`; `DuplicateKey` of an index; of the engine.
    pub fn modify(
        &self,
        name: &Name,
        id_key: &[u8],
        decide: &mut dyn FnMut(Document<'_>) -> Outcome<Step>,
    ) -> Outcome<Modified> {
        let found = Found {
            name,
            uuid: None,
            key: id_key,
        };
        self.modify_with(found, Manner::CHECKED, decide)
    }

    /// As [`Store::modify`], in a manner, of the collection that the document was found in. At once no validator is asked, which may take
    /// its time.
    ///
    /// # Errors
    /// As of [`Store::modify`]; `QueryPlanKilled` where another collection has the name by now; `Incomplete` where it must not wait and
    /// would.
    pub fn modify_with(
        &self,
        Found {
            name,
            uuid,
            key: id_key,
        }: Found<'_>,
        manner: Manner,
        decide: &mut dyn FnMut(Document<'_>) -> Outcome<Step>,
    ) -> Outcome<Modified> {
        let pace = manner.pace;
        let gone = Modified {
            before: None,
            step: Step::Keep,
        };
        let mut more = Vec::new();
        loop {
            let Some(collection) = self.collection(name) else {
                return Ok(gone);
            };
            let is_other = uuid.is_some_and(|uuid| uuid != collection.uuid);
            if is_other && !drumlin_base::bug!("mongo-keys-of-another-collection") {
                let text = format!("{name} became another collection meanwhile");
                return Err(Refusal::new(Code::QueryPlanKilled, text).into());
            }
            let key = under(collection.ident, id_key);
            let mut locks = vec![match collection.bounds() {
                Some(_) => collection.order_lock(),
                None => lock_of(&key),
            }];
            locks.append(&mut more);
            let held = self.locks.keys(collection.ident, locks, pace);
            let mut held = held.ok_or_else(not_at_once)?;
            if !self.is_present(&collection) {
                continue;
            }
            let stored = self
                .db
                .get_cf(&self.families.docs, &key, &pace.read_options())?;
            let Some(stored) = stored else {
                return Ok(gone);
            };
            let before = form::decode(id_key, &stored)?.into_owned();
            let step = decide(Document(&before))?;
            let after = match &step {
                Step::Keep => None,
                Step::Replace(new) if *new == before => None,
                Step::Replace(new) => Some(Some(Document(new))),
                Step::Delete => Some(None),
            };
            let Some(after) = after else {
                return Ok(Modified {
                    before: Some(before),
                    step,
                });
            };
            if let Some(document) = after
                && collection.options.validates(manner.validation)
            {
                if pace == Pace::AtOnce {
                    return Err(not_at_once().into());
                }
                collection.options.check_valid(
                    document,
                    Some(Document(&before)),
                    manner.validation,
                )?;
            }
            let changes = Changes::of(&collection, Document(&before), after, id_key)?;
            let unique: Vec<u64> = changes
                .new_unique()
                .map(|entry| lock_of(&entry.key))
                .collect();
            if !held.try_more(&unique) {
                more = unique;
                continue;
            }
            self.refuse_duplicates(&collection, &changes, after, pace)?;
            let mut batch = WriteBatch::new();
            match after {
                Some(document) => {
                    batch.put_cf(self.families.docs.id(), &key, &collection.stored(document))?
                }
                None => batch.delete_cf(self.families.docs.id(), &key)?,
            }
            self.write_changes(&collection, &changes, &mut batch, pace)?;
            let documents = if after.is_none() { u64::MAX } else { 0 };
            let bytes = after
                .map_or(0, |document| document.0.len() as u64)
                .wrapping_sub(before.len() as u64);
            self.count(&collection, &mut batch, documents, bytes)?;
            self.commit_paced(batch, pace)?;
            collection.counts.add(documents, bytes);
            return Ok(Modified {
                before: Some(before),
                step,
            });
        }
    }
}
