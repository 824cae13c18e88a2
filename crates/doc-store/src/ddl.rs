//! Changes of the catalog: each is one batch, after which readers see it whole.

use std::collections::HashSet;
use std::sync::Arc;

use drumlin::{ReadOptions, WriteBatch};
use drumlin_base::sync::atomic::{AtomicBool, Ordering};
use drumlin_doc::{Builder, Code, Document, Kind, Refusal, step};

use crate::catalog::{Catalog, Collection, Name};
use crate::failure::Outcome;
use crate::form;
use crate::geo::PlaceOptions;
use crate::index::{Index, Partial, fields_of};
use crate::layout::{
    BUILDING, Ident, MULTIKEY, NEXT_IDENT, count_keys, entry_key, mark_key, range_of,
};
use crate::options::CollectionOptions;
use crate::store::Store;
use crate::views;

/// Bytes of one batch of an index that is built.
pub(crate) const BUILD_BYTES: usize = 1 << 20;
/// Most indexes of a collection, that of `_id` counted.
const INDEXES_MAX: usize = 64;
/// Longest name of a collection with its database.
const NAME_BYTES_MAX: usize = 255;

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

/// Refuses names that there cannot be.
pub(crate) fn check_name(name: &Name) -> Result<(), Refusal> {
    let wrong = |text: String| Err(Refusal::new(Code::InvalidNamespace, text));
    let (database, collection) = (&name.database, &name.collection);
    if database.is_empty()
        || database.contains(['/', '\\', '.', ' ', '"', '$', '\0'])
        || database.len() > 63
    {
        return wrong(format!("Invalid database name: '{database}'"));
    }
    if collection.is_empty()
        || collection.contains(['$', '\0'])
        || collection.starts_with('.')
        || collection.ends_with('.')
    {
        return wrong(format!("Invalid collection name: '{name}'"));
    }
    if collection.starts_with("system.") {
        return wrong(format!(
            "collections of the system are not supported by this server: '{name}'"
        ));
    }
    match name.to_string().len() > NAME_BYTES_MAX {
        true => wrong(format!(
            "the name '{name}' is longer than {NAME_BYTES_MAX} bytes"
        )),
        false => Ok(()),
    }
}

impl Store {
    /// Makes an empty collection; whether it was not there before.
    ///
    /// # Errors
    /// `InvalidNamespace`; of the engine.
    pub fn create(&self, name: &Name) -> Outcome<bool> {
        check_name(name)?;
        self.create_with(name, CollectionOptions::default())
    }

    /// As [`Store::create`], with options.
    ///
    /// # Errors
    /// `InvalidNamespace`; of the engine.
    pub fn create_with(&self, name: &Name, options: CollectionOptions) -> Outcome<bool> {
        check_name(name)?;
        self.create_any(name, options)
    }

    /// As [`Store::create`], also for the names that are not for clients, `system.users` for one.
    ///
    /// # Errors
    /// Of the engine.
    pub fn create_for_server(&self, name: &Name) -> Outcome<bool> {
        self.create_any(name, CollectionOptions::default())
    }

    fn create_any(&self, name: &Name, options: CollectionOptions) -> Outcome<bool> {
        let _catalog = self.locks.catalog();
        if self.collection(name).is_some() {
            return Ok(false);
        }
        if let Some(view) = &options.view {
            views::check(&self.catalog(), name, view)?;
        }
        let mut batch = WriteBatch::new();
        let collection = self.new_collection(name, options, &mut batch)?;
        put_entry(&collection, &mut batch)?;
        self.change(batch, |catalog| catalog.with(collection))?;
        Ok(true)
    }

    /// A collection that is in no catalog yet. Requires: the catalog is held.
    pub(crate) fn new_collection(
        &self,
        name: &Name,
        options: CollectionOptions,
        batch: &mut WriteBatch,
    ) -> Outcome<Collection> {
        // A version 4 number, which is random.
        let mut uuid = self.random_bytes::<16>();
        let [_, _, _, _, _, _, version, _, variant, ..] = &mut uuid;
        *version = (*version & 0x0F) | 0x40;
        *variant = (*variant & 0x3F) | 0x80;
        let ident = self.new_ident(batch)?;
        let mut indexes = Vec::new();
        if options.capped.is_some() {
            // Its documents lie in the order of their insertion.
            indexes.push(Arc::new(Index::of_id(self.new_ident_behind(ident, batch)?)));
        }
        Ok(Collection {
            name: name.clone(),
            ident,
            uuid,
            indexes,
            options,
            counts: Arc::default(),
        })
    }

    /// Changes the options of a collection: its writers see them as they were or as they are then.
    ///
    /// # Errors
    /// `NamespaceNotFound`; those of `change`; of the engine.
    pub fn change_options(
        &self,
        name: &Name,
        change: impl FnOnce(&mut CollectionOptions) -> Result<(), Refusal>,
    ) -> Outcome<()> {
        let _catalog = self.locks.catalog();
        let missing = || {
            Refusal::new(
                Code::NamespaceNotFound,
                format!("ns does not exist: {name}"),
            )
        };
        let collection = self.collection(name).ok_or_else(missing)?;
        let _alone = self.locks.alone(collection.ident);
        let mut with = Collection::clone(&collection);
        change(&mut with.options)?;
        if let Some(view) = &with.options.view {
            views::check(&self.catalog(), name, view)?;
        }
        let mut batch = WriteBatch::new();
        put_entry(&with, &mut batch)?;
        self.change(batch, |catalog| catalog.with(with))
    }

    /// Removes a collection; how many indexes it had, that of `_id` counted, or `None` where there is none. Costs a range deletion
    /// for it and for each index, however many documents there are.
    ///
    /// # Errors
    /// Of the engine.
    pub fn drop_collection(&self, name: &Name) -> Outcome<Option<usize>> {
        let _catalog = self.locks.catalog();
        let Some(collection) = self.collection(name) else {
            return Ok(None);
        };
        self.drop_all(std::slice::from_ref(&collection))?;
        Ok(Some(collection.index_count()))
    }

    /// Gives a collection another name, maybe in another database; all that it has stays where it is. With `is_replacing` a collection of
    /// that name goes, in the same batch.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `NamespaceExists`, `InvalidNamespace`; `IllegalOperation` for its own name; of the engine.
    pub fn rename_collection(&self, from: &Name, to: &Name, is_replacing: bool) -> Outcome<()> {
        check_name(to)?;
        let _catalog = self.locks.catalog();
        let refuse = |code, text: String| Err(Refusal::new(code, text).into());
        let Some(collection) = self.collection(from) else {
            let text = format!("Source collection {from} does not exist");
            return refuse(Code::NamespaceNotFound, text);
        };
        let replaced = self.collection(to);
        collection.refuse_view()?;
        if from == to {
            let text = "Can't rename a collection to itself".to_owned();
            return refuse(Code::IllegalOperation, text);
        }
        let is_view = |it: &Arc<Collection>| it.options.view.is_some();
        if replaced
            .as_ref()
            .is_some_and(|it| !is_replacing || is_view(it))
        {
            return refuse(
                Code::NamespaceExists,
                format!("target namespace {to} exists"),
            );
        }
        let _alone: Vec<_> = replaced
            .iter()
            .chain([&collection])
            .map(|it| self.locks.alone(it.ident))
            .collect();
        let mut batch = WriteBatch::new();
        if let Some(replaced) = replaced.filter(|_| !drumlin_base::bug!("mongo-renamed-over-stays"))
        {
            self.remove(&replaced, &mut batch)?;
        }
        if !drumlin_base::bug!("mongo-renamed-name-stays") {
            batch.delete(&entry_key(&from.database, &from.collection))?;
        }
        let mut renamed = Collection::clone(&collection);
        renamed.name = to.clone();
        put_entry(&renamed, &mut batch)?;
        self.change(batch, |catalog| {
            catalog.without(std::slice::from_ref(from)).with(renamed)
        })
    }

    /// Removes all collections of a database at once.
    ///
    /// # Errors
    /// Of the engine.
    pub fn drop_database(&self, database: &str) -> Outcome<()> {
        let _catalog = self.locks.catalog();
        let catalog = self.catalog();
        let all: Vec<_> = catalog
            .iter()
            .filter(|it| it.name.database == database)
            .cloned()
            .collect();
        if all.is_empty() {
            Ok(())
        } else {
            self.drop_all(&all)
        }
    }

    /// Requires: the catalog is held.
    fn drop_all(&self, collections: &[Arc<Collection>]) -> Outcome<()> {
        let _alone: Vec<_> = collections
            .iter()
            .map(|it| self.locks.alone(it.ident))
            .collect();
        let mut batch = WriteBatch::new();
        for collection in collections {
            self.remove(collection, &mut batch)?;
        }
        let names: Vec<Name> = collections.iter().map(|it| it.name.clone()).collect();
        self.change(batch, |catalog| catalog.without(&names))
    }

    /// Removes an entry of the catalog and all that it is of.
    pub(crate) fn remove(&self, collection: &Collection, batch: &mut WriteBatch) -> Outcome<()> {
        batch.delete(&entry_key(
            &collection.name.database,
            &collection.name.collection,
        ))?;
        let (begin, end) = range_of(collection.ident);
        batch.delete_range_cf(self.families.docs.id(), &begin, &end)?;
        for key in count_keys(collection.ident) {
            batch.delete(&key)?;
        }
        for index in &collection.indexes {
            self.remove_entries(index.ident, batch)?;
        }
        Ok(())
    }

    fn remove_entries(&self, ident: Ident, batch: &mut WriteBatch) -> Outcome<()> {
        let (begin, end) = range_of(ident);
        batch.delete_range_cf(self.families.index.id(), &begin, &end)?;
        batch.delete(&mark_key(MULTIKEY, ident))?;
        Ok(())
    }

    /// Makes indexes, one after the other, of a collection that is there; how many it had before and has now, that of `_id`
    /// counted. One that is there already is passed over. Writers of the collection wait meanwhile; readers do not.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CannotCreateIndex`, `IndexOptionsConflict`, `IndexKeySpecsConflict`; `DuplicateKey` where a unique
    /// index cannot be; of the engine. Those before are made.
    pub fn create_indexes(&self, name: &Name, wanted: &[NewIndex]) -> Outcome<(usize, usize)> {
        let _catalog = self.locks.catalog();
        let missing = || {
            Refusal::new(
                Code::NamespaceNotFound,
                format!("ns does not exist: {name}"),
            )
        };
        let collection = self.collection(name).ok_or_else(missing)?;
        collection.refuse_view()?;
        let before = collection.index_count();
        let _alone = self.locks.alone(collection.ident);
        for new in wanted {
            let Some(collection) = self.collection(name) else {
                return Err(missing().into());
            };
            if is_new(&collection, new)? {
                self.build(&collection, new)?;
            }
        }
        let now = self.collection(name).map_or(before, |it| it.index_count());
        Ok((before, now))
    }

    /// Builds an index. Requires: the catalog and the collection are held.
    fn build(&self, collection: &Collection, new: &NewIndex) -> Outcome<()> {
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
        let index = Index {
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
        };
        let built = self.fill(collection, &index);
        let mut batch = WriteBatch::new();
        batch.delete(&mark)?;
        if let Err(failure) = built {
            self.remove_entries(ident, &mut batch)?;
            self.commit(batch)?;
            return Err(failure);
        }
        if index.is_multikey() {
            batch.put(&mark_key(MULTIKEY, ident), &[])?;
        }
        let mut with = collection.clone();
        with.indexes.push(Arc::new(index));
        put_entry(&with, &mut batch)?;
        self.change(batch, |catalog| catalog.with(with))
    }

    /// Writes the entries of all documents.
    fn fill(&self, collection: &Collection, index: &Index) -> Outcome<()> {
        let reads = self.reads();
        let mut cursor = reads.cursor(false, range_of(collection.ident));
        let mut batch = WriteBatch::new();
        let mut own: HashSet<Vec<u8>> = HashSet::new();
        cursor.seek_to_first();
        while cursor.valid() {
            step()?;
            let id = cursor.key().get(4..).unwrap_or_default();
            let document = form::decode(id, cursor.try_value()?)?;
            let (entries, is_multikey) = index.entries(Document(&document), id)?;
            if is_multikey {
                index.multikey.store(true, Ordering::Release);
            }
            for entry in entries {
                let is_taken = index.unique
                    && (!own.insert(entry.key.clone())
                        || self
                            .db
                            .get_cf(&self.families.index, &entry.key, &ReadOptions::default())?
                            .is_some());
                if is_taken {
                    return Err(index
                        .duplicate(&collection.name.to_string(), Document(&document))
                        .into());
                }
                batch.put_cf(self.families.index.id(), &entry.key, &entry.value)?;
            }
            if batch.len() > BUILD_BYTES {
                self.commit(std::mem::take(&mut batch))?;
                own.clear();
            }
            cursor.next();
        }
        cursor.status()?;
        self.commit(batch)?;
        Ok(())
    }

    /// Removes the indexes that `is_meant` picks; how many the collection had, that of `_id` counted.
    ///
    /// # Errors
    /// `NamespaceNotFound`; of the engine.
    pub fn drop_indexes(&self, name: &Name, is_meant: &dyn Fn(&Index) -> bool) -> Outcome<usize> {
        let _catalog = self.locks.catalog();
        let missing = || Refusal::new(Code::NamespaceNotFound, format!("ns not found {name}"));
        let collection = self.collection(name).ok_or_else(missing)?;
        collection.refuse_view()?;
        let _alone = self.locks.alone(collection.ident);
        let mut with = Collection::clone(&collection);
        let (gone, stay) = with
            .indexes
            .into_iter()
            .partition(|index| index.name != "_id_" && is_meant(index));
        with.indexes = stay;
        let gone: Vec<Arc<Index>> = gone;
        if !gone.is_empty() {
            let mut batch = WriteBatch::new();
            for index in &gone {
                self.remove_entries(index.ident, &mut batch)?;
            }
            put_entry(&with, &mut batch)?;
            self.change(batch, |catalog| catalog.with(with))?;
        }
        Ok(collection.index_count())
    }

    /// Writes a change of the catalog and shows it, then has it outlive a power cut.
    pub(crate) fn change(
        &self,
        batch: WriteBatch,
        change: impl FnOnce(&Catalog) -> Catalog,
    ) -> Outcome<()> {
        let mut catalog = self.catalog.lock();
        let new = change(&catalog);
        self.commit(batch)?;
        *catalog = Arc::new(new);
        drop(catalog);
        self.sync()?;
        Ok(())
    }

    /// A number that was never given. Requires: the catalog is held.
    fn new_ident(&self, batch: &mut WriteBatch) -> Outcome<Ident> {
        let damaged = || drumlin::Error::corruption("the next number of the catalog is not whole");
        let ident = match self.db.get(NEXT_IDENT)? {
            Some(stored) => {
                Ident::from_be_bytes(stored.as_ref().try_into().map_err(|_| damaged())?)
            }
            None => 1,
        };
        let last = ident.checked_sub(1).ok_or_else(damaged)?;
        self.new_ident_behind(last, batch)
    }

    /// The number behind `ident`, which was given last.
    fn new_ident_behind(&self, ident: Ident, batch: &mut WriteBatch) -> Outcome<Ident> {
        let all = || Refusal::bad_value("2^32 collections and indexes were made");
        let ident = ident.checked_add(1).ok_or_else(all)?;
        let next = ident.checked_add(1).ok_or_else(all)?;
        batch.put(NEXT_IDENT, &next.to_be_bytes())?;
        Ok(ident)
    }
}

/// # Errors
/// `BadValue` for options that could not be read back, which lie deeper in the entry than in the command; of the engine.
pub(crate) fn put_entry(collection: &Collection, batch: &mut WriteBatch) -> Outcome<()> {
    let key = entry_key(&collection.name.database, &collection.name.collection);
    let entry = collection.encode();
    if Collection::decode(&key, &entry).is_err() {
        let text = format!("the options of {} are nested too deeply", collection.name);
        return Err(Refusal::bad_value(text).into());
    }
    batch.put(&key, &entry)?;
    Ok(())
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
