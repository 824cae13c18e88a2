//! Indexes of collections that have documents already, built while these are written.
//!
//! From the beginning of a build writers keep the index up, as they do any other; nobody else knows of it. The build then goes through
//! the documents that were there, some at a time: it takes the locks of their keys, reads them as they are now, and writes their
//! entries. So an entry is that of the document as it is, whoever was first. Of a unique index, two documents of one key give the build up,
//! whether it meets them or a writer brings them; the writer goes on. What else would change the collection waits until the build is over, and who
//! drops it has the build give up. A crash leaves a mark, by which the next open removes the entries.
//!
//! Documents of a capped collection go by ranges, without locks of their own: its writers wait.

use std::collections::HashMap;
use std::sync::Arc;

use drumlin::{ReadOptions, WriteBatch};
use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::AtomicBool;
use drumlin_doc::{Builder, Code, Document, Kind, Refusal, step};

use crate::catalog::{Collection, Name};
use crate::ddl::{missing, put_entry};
use crate::failure::Outcome;
use crate::form;
use crate::geo::PlaceOptions;
use crate::index::{Building, Entry, Index, Partial, fields_of};
use crate::layout::{BUILDING, MULTIKEY, mark_key, range_of};
use crate::locks::lock_of;
use crate::pace::{Pace, not_at_once};
use crate::store::Store;

/// Most indexes of a collection, that of `_id` counted.
const INDEXES_MAX: usize = 64;
/// Documents whose locks a build takes at once.
const DOCUMENTS_AT_ONCE: usize = 64;

/// An index to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewIndex {
    /// Its name.
    pub name: String,
    /// Its key: a document.
    pub key: Vec<u8>,
    /// See [`Index`].
    pub unique: bool,
    /// See [`Index`].
    pub sparse: bool,
    /// A filter: only documents that match have entries.
    pub partial: Option<Vec<u8>>,
    /// See [`Index`].
    pub expire_after_seconds: Option<u32>,
    /// See [`Index`].
    pub place_options: PlaceOptions,
}

impl Store {
    /// Makes indexes, one after the other, of a collection that is there; how many it had before and has now, that of `_id`
    /// counted. One that is there already is passed over. Readers and writers of the collection go on, but for writers of a capped
    /// one.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CannotCreateIndex`, `IndexOptionsConflict`, `IndexKeySpecsConflict`; `DuplicateKey` where a unique
    /// index cannot be; `IndexBuildAborted` where the collection is dropped meanwhile; of the engine. Those before are made.
    pub fn create_indexes(&self, name: &Name, wanted: &[NewIndex]) -> Outcome<(usize, usize)> {
        let count = || {
            let collection = self.collection(name).ok_or_else(|| missing(name))?;
            collection.refuse_view()?;
            Ok::<_, Refusal>(collection.index_count())
        };
        let before = count()?;
        for new in wanted {
            self.create_index(name, new)?;
        }
        Ok((before, count()?))
    }

    fn create_index(&self, name: &Name, new: &NewIndex) -> Outcome<()> {
        let catalog = self.catalog_after_builds(&|it| it.name == *name);
        let collection = self.collection(name).ok_or_else(|| missing(name))?;
        collection.refuse_view()?;
        if !is_new(&collection, new)? {
            return Ok(());
        }
        let building = Arc::new(Building {
            index: Arc::new(self.new_index(&collection, new)?),
            failed: Mutex::new(None),
        });
        let alone = self.locks.alone(collection.ident);
        if collection.bounds().is_some() {
            let filled = self.fill(&collection, &building);
            return self.finish_build(&collection, &building, filled);
        }
        let _built = self.locks.built(collection.ident);
        self.publish(Collection {
            building: Some(Arc::clone(&building)),
            ..Collection::clone(&collection)
        });
        drop(alone);
        drop(catalog);
        let filled = self.fill(&collection, &building);
        let _catalog = self.locks.catalog();
        let _alone = self.locks.alone(collection.ident);
        let filled = filled.and_then(|()| Ok(building.check()?));
        let finished = self.finish_build(&collection, &building, filled);
        let is_shown = self
            .collection(name)
            .is_some_and(|it| it.building.is_some());
        if is_shown {
            self.publish(Collection::clone(&collection));
        }
        finished
    }

    /// Shows readers and writers what is not stored. Requires: the catalog and the collection are held.
    fn publish(&self, collection: Collection) {
        let mut catalog = self.catalog.lock();
        *catalog = Arc::new(catalog.with(collection));
    }

    /// An index of a new number, marked as one that is being built. Requires: the catalog is held.
    fn new_index(&self, collection: &Collection, new: &NewIndex) -> Outcome<Index> {
        let (fields, places) = fields_of(Document(&new.key), new.place_options)?;
        let partial = new.partial.as_deref().map(Partial::new).transpose()?;
        let cannot = |text: &str| Err(Refusal::new(Code::CannotCreateIndex, text).into());
        if partial.is_some() && new.sparse {
            return cannot("cannot mix \"partialFilterExpression\" and \"sparse\" options");
        }
        if new.expire_after_seconds.is_some() && !places.is_empty() {
            return cannot("TTL indexes are not supported for indexes of places");
        }
        if new.expire_after_seconds.is_some() && fields.0.len() != 1 {
            return cannot(
                "TTL indexes are single-field indexes, compound indexes do not support TTL",
            );
        }
        if collection.index_count() + 1 > INDEXES_MAX {
            let text = format!("add index fails, too many indexes for {}", collection.name);
            return Err(Refusal::new(Code::CannotCreateIndex, text).into());
        }
        let mut batch = WriteBatch::new();
        let ident = self.new_ident(&mut batch)?;
        // Until it is done, what a crash leaves is known by this mark.
        let mark = mark_key(BUILDING, ident);
        batch.put(&mark, &[])?;
        self.commit(batch)?;
        Ok(Index {
            ident,
            name: new.name.clone(),
            key: new.key.clone(),
            fields,
            place_options: new.place_options.completed(&places),
            places,
            unique: new.unique,
            sparse: new.sparse,
            partial,
            expire_after_seconds: new.expire_after_seconds,
            multikey: AtomicBool::new(false),
        })
    }

    /// Stores an index that was filled, or removes what there is of it. Requires: the catalog and the collection are held.
    fn finish_build(
        &self,
        collection: &Collection,
        building: &Building,
        filled: Outcome<()>,
    ) -> Outcome<()> {
        let index = &building.index;
        let mut batch = WriteBatch::new();
        batch.delete(&mark_key(BUILDING, index.ident))?;
        if let Err(failure) = filled {
            self.remove_entries(index.ident, &mut batch)?;
            self.commit(batch)?;
            return Err(failure);
        }
        if index.is_multikey() {
            batch.put(&mark_key(MULTIKEY, index.ident), &[])?;
        }
        let mut with = collection.clone();
        with.indexes.push(Arc::clone(index));
        put_entry(&with, &mut batch)?;
        self.change(batch, |catalog| catalog.with(with))
    }

    /// Writes the entries of the documents that are there.
    fn fill(&self, collection: &Collection, building: &Building) -> Outcome<()> {
        let reads = self.reads();
        let mut cursor = reads.cursor(false, range_of(collection.ident));
        let mut keys = Vec::with_capacity(DOCUMENTS_AT_ONCE);
        cursor.seek_to_first();
        while cursor.valid() {
            step()?;
            keys.push(cursor.key().to_vec());
            if keys.len() == DOCUMENTS_AT_ONCE {
                self.fill_some(collection, building, &keys)?;
                keys.clear();
            }
            cursor.next();
        }
        cursor.status()?;
        self.fill_some(collection, building, &keys)
    }

    /// Writes the entries of the documents under `keys`, as they are now.
    fn fill_some(
        &self,
        collection: &Collection,
        building: &Building,
        keys: &[Vec<u8>],
    ) -> Outcome<()> {
        let index = &building.index;
        let is_capped = collection.bounds().is_some();
        let mut more = Vec::new();
        loop {
            building.check()?;
            let mut held = None;
            if !is_capped && !drumlin_base::bug!("mongo-builds-lock-nothing") {
                let mut locks: Vec<u64> = keys.iter().map(|key| lock_of(key)).collect();
                locks.append(&mut more);
                let keys = self.locks.keys(collection.ident, locks, Pace::InTurn);
                held = Some(keys.ok_or_else(not_at_once)?);
            }
            let mut batch = WriteBatch::new();
            let entries = self.entries_now(index, keys, &mut batch)?;
            if index.unique {
                let locks = entries.iter().map(|(entry, _)| lock_of(&entry.key));
                let locks: Vec<u64> = locks.collect();
                if held.as_mut().is_some_and(|held| !held.try_more(&locks)) {
                    more = locks;
                    continue;
                }
                self.refuse_taken(collection, index, &entries)?;
            }
            for (entry, _) in &entries {
                batch.put_cf(self.families.index.id(), &entry.key, &entry.value)?;
            }
            self.commit(batch)?;
            return Ok(());
        }
    }

    /// The entries of the documents under `keys`, each with its document. What has to be said of the index goes into `batch`.
    fn entries_now(
        &self,
        index: &Index,
        keys: &[Vec<u8>],
        batch: &mut WriteBatch,
    ) -> Outcome<Vec<(Entry, Arc<[u8]>)>> {
        let options = ReadOptions::default();
        let stored = self.db.multi_get_cf(&self.families.docs, keys, &options);
        let mut all = Vec::new();
        for (key, stored) in keys.iter().zip(stored) {
            let Some(stored) = stored? else {
                continue;
            };
            let id = key.get(4..).unwrap_or_default();
            let document = form::decode(id, &stored)?;
            let (entries, is_multikey) = index.entries(Document(&document), id)?;
            if is_multikey {
                self.mark_multikey(index, batch)?;
            }
            let document: Arc<[u8]> = Arc::from(&*document);
            let entries = entries.into_iter();
            all.extend(entries.map(|entry| (entry, Arc::clone(&document))));
        }
        Ok(all)
    }

    /// Refuses entries of a unique index whose key another document has.
    fn refuse_taken(
        &self,
        collection: &Collection,
        index: &Index,
        entries: &[(Entry, Arc<[u8]>)],
    ) -> Outcome<()> {
        let keys: Vec<&[u8]> = entries
            .iter()
            .map(|(entry, _)| entry.key.as_slice())
            .collect();
        let options = ReadOptions::default();
        let stored = self.db.multi_get_cf(&self.families.index, &keys, &options);
        let mut own: HashMap<&[u8], &[u8]> = HashMap::new();
        for ((entry, document), stored) in entries.iter().zip(stored) {
            // The value is the document's key, and a writer may have been here before.
            let is_others = stored?.is_some_and(|stored| *stored != *entry.value);
            let is_twice = own
                .insert(&entry.key, &entry.value)
                .is_some_and(|first| first != entry.value);
            if is_others || is_twice {
                let namespace = collection.name.to_string();
                return Err(index.duplicate(&namespace, Document(document)).into());
            }
        }
        Ok(())
    }
}

/// Whether there is no such index.
///
/// # Errors
/// Where one of that name or that key is another one.
fn is_new(collection: &Collection, new: &NewIndex) -> Result<bool, Refusal> {
    let mut id = Builder::new();
    id.i32("_id", 1);
    if new.name == "_id_" || new.key == id.finish() {
        return Ok(false);
    }
    let is_same_key = |key: &[u8]| {
        let [a, b] = [key, &new.key].map(|key| drumlin_doc::Value {
            kind: Kind::Document,
            bytes: key,
        });
        drumlin_doc::equal(a, b)
    };
    for index in &collection.indexes {
        let (is_named, is_keyed) = (index.name == new.name, is_same_key(&index.key));
        let partial = index.partial.as_ref().map(|partial| &partial.given);
        let of_places = new.place_options.completed(&index.places);
        let is_same = (index.unique, index.sparse) == (new.unique, new.sparse)
            && index.place_options == of_places
            && (partial, index.expire_after_seconds)
                == (new.partial.as_ref(), new.expire_after_seconds);
        if is_named && is_keyed && is_same {
            return Ok(false);
        }
        if is_named {
            let text = format!(
                "An existing index has the same name as the requested index: {}. It has another key or other options",
                new.name
            );
            return Err(Refusal::new(Code::IndexKeySpecsConflict, text));
        }
        if is_keyed {
            let text = format!("Index already exists with a different name: {}", index.name);
            return Err(Refusal::new(Code::IndexOptionsConflict, text));
        }
    }
    Ok(true)
}
