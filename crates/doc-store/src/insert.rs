//! New documents: some at a time, in one batch.

use std::collections::HashSet;
use std::sync::Arc;

use drumlin::WriteBatch;
use drumlin_base::sync::atomic::Ordering;
use drumlin_doc::{Code, DOCUMENT_BYTES_MAX, Document, Kind, Refusal, step};

use crate::capped::GivenUp;
use crate::catalog::{Collection, Name};
use crate::failure::Outcome;
use crate::index::{Entry, duplicate};
use crate::layout::{id_key, under};
use crate::locks::{Held, lock_of};
use crate::pace::{Manner, Pace, not_at_once};
use crate::store::Store;
use crate::validator::Validation;

/// Most documents, and bytes of them, in one batch.
const BATCH_DOCUMENTS_MAX: usize = 1000;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// What became of documents.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// How many are there now.
    pub count: u64,
    /// Those that are not: the place in the list, and why.
    pub errors: Vec<(usize, Refusal)>,
}

/// A document on its way.
pub(crate) struct New<'a> {
    document: Document<'a>,
    key: Vec<u8>,
    /// By index.
    entries: Vec<Vec<Entry>>,
    multikey: Vec<bool>,
}

/// `InvalidIdField`, or the key of an `_id` that there may be.
///
/// # Errors
/// `InvalidIdField` for arrays, regular expressions and undefined; `BSONObjectTooLarge`.
pub(crate) fn check_id(document: Document<'_>) -> Result<Vec<u8>, Refusal> {
    if document.0.len() > DOCUMENT_BYTES_MAX {
        let text = format!(
            "the document has {} bytes; the most is {DOCUMENT_BYTES_MAX}",
            document.0.len()
        );
        return Err(Refusal::new(Code::BsonObjectTooLarge, text));
    }
    let wrong = |text: &str| Refusal::new(Code::InvalidIdField, text);
    let id = document
        .get("_id")
        .ok_or_else(|| wrong("the document has no _id"))?;
    match id.kind {
        Kind::Array | Kind::Regex | Kind::Undefined => Err(wrong(&format!(
            "The '_id' value cannot be of type {}",
            id.kind.name()
        ))),
        Kind::Document
            if Document(id.bytes)
                .iter()
                .any(|element| element.name.first() == Some(&b'$')) =>
        {
            Err(Refusal::new(
                Code::DollarPrefixedFieldName,
                "_id fields may not contain '$'-prefixed fields",
            ))
        }
        _ => Ok(id_key(id)),
    }
}

impl Store {
    /// Inserts `documents`, each of which has `_id` as its first field and was validated; up to the first error if `ordered`. The
    /// collection is the one of that name; `None` where there is none.
    ///
    /// Costs one lookup a document and one a key of a unique index, those of a batch together. A document for a capped collection is a
    /// batch of its own, with the deletion of those that there is no more room for; of many these are deleted before, by batches.
    ///
    /// # Errors
    /// Of the engine, and of who looks whether to go on. Batches before may be in.
    pub fn insert(
        &self,
        name: &Name,
        documents: &[Document<'_>],
        ordered: bool,
    ) -> Outcome<Option<Inserted>> {
        self.insert_with(name, documents, ordered, Manner::CHECKED)
    }

    /// As [`Store::insert`], in a manner. At once no validator is asked, which may take its time.
    ///
    /// # Errors
    /// As of [`Store::insert`]. `Incomplete` where it must not wait and would, or has more than a batch: nothing is in then.
    pub fn insert_with(
        &self,
        name: &Name,
        documents: &[Document<'_>],
        ordered: bool,
        manner: Manner,
    ) -> Outcome<Option<Inserted>> {
        let mut done = Inserted::default();
        let (mut at, mut most) = (0, BATCH_DOCUMENTS_MAX);
        while at < documents.len() {
            let rest = documents.get(at..).unwrap_or_default();
            let mut bytes = 0;
            let fits = rest.iter().take(most).take_while(|document| {
                bytes += document.0.len();
                bytes <= BATCH_BYTES_MAX
            });
            let count = fits.count().max(1);
            if manner.pace == Pace::AtOnce && count < documents.len() {
                return Err(not_at_once().into());
            }
            let manner = Manner {
                validation: manner.validation.after(done.errors.len()),
                ..manner
            };
            let batch = rest.get(..count).unwrap_or_default();
            let Some((part, count)) = self.insert_batch(name, batch, ordered, manner)? else {
                return Ok(None);
            };
            // A capped collection takes one at a time: no more need be counted.
            if count < batch.len() {
                most = 1;
            }
            let has_failed = !part.errors.is_empty();
            done.count += part.count;
            done.errors.extend(
                part.errors
                    .into_iter()
                    .map(|(place, why)| (at + place, why)),
            );
            if ordered && has_failed {
                break;
            }
            at += count;
        }
        Ok(Some(done))
    }

    /// What became of the first documents, and how many these are: all, or of a capped collection one.
    fn insert_batch(
        &self,
        name: &Name,
        documents: &[Document<'_>],
        ordered: bool,
        manner: Manner,
    ) -> Outcome<Option<(Inserted, usize)>> {
        let pace = manner.pace;
        let Some((collection, news, _held)) = self.lock_new(name, documents, manner)? else {
            return Ok(None);
        };
        let taken = self.taken(&collection, &news, pace)?;
        let mut done = Inserted::default();
        let mut own: HashSet<&[u8]> = HashSet::new();
        let mut batch = WriteBatch::new();
        let mut bytes = 0u64;
        let mut given_up = GivenUp::default();
        for (at, new) in news.iter().enumerate() {
            let why = match new {
                Err(refusal) => Some(refusal.clone()),
                Ok(new) => conflict(&collection, new, |key| {
                    taken.contains(key) || own.contains(key)
                }),
            };
            if let Some(why) = why {
                done.errors.push((at, why));
                if ordered {
                    break;
                }
                continue;
            }
            if let Ok(new) = new {
                own.insert(&new.key);
                own.extend(unique_keys(&collection, new));
                done.count += 1;
                bytes = bytes.wrapping_add(new.document.0.len() as u64);
                if let Some(bounds) = collection.bounds() {
                    given_up =
                        self.give_up_oldest(&collection, (bounds, bytes), &mut batch, pace)?;
                }
                self.put(&collection, new, &mut batch)?;
            }
        }
        if done.count > 0 {
            let documents = done.count.wrapping_sub(given_up.documents);
            let bytes = bytes.wrapping_sub(given_up.bytes);
            self.count(&collection, &mut batch, documents, bytes)?;
            self.commit_paced(batch, pace)?;
            collection.counts.add(documents, bytes);
            collection
                .counts
                .next
                .fetch_add(done.count, Ordering::AcqRel);
            self.gave_up(&collection, &given_up);
        }
        Ok(Some((done, news.len())))
    }

    /// The collection, what is to be written, and the locks of all its keys. The indexes are those that the collection has while
    /// its share is held.
    #[expect(clippy::type_complexity, reason = "three things of one step")]
    fn lock_new<'a>(
        &self,
        name: &Name,
        documents: &[Document<'a>],
        Manner { pace, validation }: Manner,
    ) -> Outcome<Option<(Arc<Collection>, Vec<Result<New<'a>, Refusal>>, Held<'_>)>> {
        loop {
            let Some(collection) = self.collection(name) else {
                return Ok(None);
            };
            collection.refuse_view()?;
            if pace == Pace::AtOnce && collection.options.validates(validation) {
                return Err(not_at_once().into());
            }
            if collection.bounds().is_some() {
                let Some((first, rest)) = documents.split_first() else {
                    return Ok(None);
                };
                if pace == Pace::AtOnce && !rest.is_empty() {
                    return Err(not_at_once().into());
                }
                let locks = vec![collection.order_lock()];
                let held = self.locks.keys(collection.ident, locks, pace);
                let held = held.ok_or_else(not_at_once)?;
                if self.is_present(&collection) {
                    step()?;
                    let news = vec![new(&collection, *first, validation)];
                    return Ok(Some((collection, news, held)));
                }
                continue;
            }
            let (mut news, mut refused) = (Vec::with_capacity(documents.len()), 0);
            for document in documents {
                step()?;
                let new = new(&collection, *document, validation.after(refused));
                refused += usize::from(new.is_err());
                news.push(new);
            }
            let mut locks = Vec::new();
            for new in news.iter().flatten() {
                locks.push(lock_of(&new.key));
                locks.extend(unique_keys(&collection, new).map(lock_of));
            }
            let held = self.locks.keys(collection.ident, locks, pace);
            let held = held.ok_or_else(not_at_once)?;
            if self.is_present(&collection) {
                return Ok(Some((collection, news, held)));
            }
        }
    }

    /// Which of the documents' keys, and of their keys in unique indexes, are there already.
    fn taken(
        &self,
        collection: &Collection,
        news: &[Result<New<'_>, Refusal>],
        pace: Pace,
    ) -> Outcome<HashSet<Vec<u8>>> {
        let mut taken = HashSet::new();
        let options = pace.read_options();
        let ids: Vec<&[u8]> = news
            .iter()
            .flatten()
            .map(|new| new.key.as_slice())
            .collect();
        let uniques: Vec<&[u8]> = news
            .iter()
            .flatten()
            .flat_map(|new| unique_keys(collection, new))
            .collect();
        for (family, keys) in [(&self.families.docs, ids), (&self.families.index, uniques)] {
            let found = self.db.multi_get_cf(family, &keys, &options);
            for (key, found) in keys.iter().zip(found) {
                if found?.is_some() && !drumlin_base::bug!("mongo-duplicates-taken") {
                    taken.insert(key.to_vec());
                }
            }
        }
        Ok(taken)
    }

    /// Appends a document and its entries.
    fn put(&self, collection: &Collection, new: &New<'_>, batch: &mut WriteBatch) -> Outcome<()> {
        batch.put_cf(
            self.families.docs.id(),
            &new.key,
            &collection.stored(new.document),
        )?;
        for ((index, entries), multikey) in
            collection.kept_up().zip(&new.entries).zip(&new.multikey)
        {
            if *multikey {
                self.mark_multikey(index, batch)?;
            }
            for entry in entries {
                batch.put_cf(self.families.index.id(), &entry.key, &entry.value)?;
            }
        }
        Ok(())
    }
}

fn new<'a>(
    collection: &Collection,
    document: Document<'a>,
    validation: Validation,
) -> Result<New<'a>, Refusal> {
    let mut id = check_id(document)?;
    if collection.options.validates(validation) {
        collection.options.check_valid(document, None, validation)?;
    }
    if collection.bounds().is_some() {
        id = collection.next_place().to_be_bytes().to_vec();
    }
    let entries = collection
        .kept_up()
        .map(|index| collection.entries(index, document, &id));
    let (entries, multikey) = entries.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    Ok(New {
        document,
        key: under(collection.ident, &id),
        entries,
        multikey,
    })
}

/// The keys of a document in unique indexes.
fn unique_keys<'a>(collection: &'a Collection, new: &'a New<'_>) -> impl Iterator<Item = &'a [u8]> {
    let indexes = collection.kept_up().zip(&new.entries);
    let unique = indexes.filter(|(index, _)| index.unique);
    unique.flat_map(|(_, entries)| entries.iter().map(|entry| entry.key.as_slice()))
}

/// Why a document cannot be there, if it has a key that is taken. A unique index that is being built is given up instead.
fn conflict(
    collection: &Collection,
    new: &New<'_>,
    is_taken: impl Fn(&[u8]) -> bool,
) -> Option<Refusal> {
    let namespace = collection.name.to_string();
    if is_taken(&new.key) {
        let mut key = drumlin_doc::Builder::new();
        key.i32("_id", 1);
        let key = key.finish();
        return Some(duplicate(
            &namespace,
            ("_id_", Document(&key)),
            new.document,
        ));
    }
    let unique = collection
        .kept_up()
        .zip(&new.entries)
        .filter(|(index, _)| index.unique);
    let mut taken = unique.filter(|(_, entries)| entries.iter().any(|entry| is_taken(&entry.key)));
    taken.find_map(|(index, _)| {
        let why = index.duplicate(&namespace, new.document);
        collection.give_up(index, why).err()
    })
}
