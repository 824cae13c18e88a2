//! Changes of the catalog: each is one batch, after which readers see it whole.

use std::sync::Arc;

use drumlin::WriteBatch;
use drumlin_doc::{Code, Refusal};

use crate::catalog::{Catalog, Collection, Name};
use crate::failure::Outcome;
use crate::index::{Building, Index};
use crate::layout::{Ident, MULTIKEY, NEXT_IDENT, count_keys, entry_key, mark_key, range_of};
use crate::locks::CatalogLock;
use crate::options::CollectionOptions;
use crate::store::Store;
use crate::views;

/// Bytes of one batch of an index that is built, or of a collection that is converted.
pub(crate) const BUILD_BYTES: usize = 1 << 20;
/// Longest name of a collection with its database.
const NAME_BYTES_MAX: usize = 255;

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

/// The refusal of what needs a collection that is not there.
pub(crate) fn missing(name: &Name) -> Refusal {
    Refusal::new(
        Code::NamespaceNotFound,
        format!("ns does not exist: {name}"),
    )
}

impl Store {
    /// Takes the catalog once no index is being built of the collections that `is_meant` picks.
    pub(crate) fn catalog_after_builds(
        &self,
        is_meant: &dyn Fn(&Collection) -> bool,
    ) -> CatalogLock<'_> {
        self.catalog_when_built(is_meant, &|_| ())
    }

    /// As [`Store::catalog_after_builds`], for who drops them: the builds give up.
    pub(crate) fn catalog_without_builds(
        &self,
        is_meant: &dyn Fn(&Collection) -> bool,
    ) -> CatalogLock<'_> {
        self.catalog_when_built(is_meant, &|building| {
            let text = "the index build was given up: its collection is dropped";
            building.fail(Refusal::new(Code::IndexBuildAborted, text));
        })
    }

    fn catalog_when_built(
        &self,
        is_meant: &dyn Fn(&Collection) -> bool,
        tell: &dyn Fn(&Building),
    ) -> CatalogLock<'_> {
        loop {
            let held = self.locks.catalog();
            let catalog = self.catalog();
            let mut meant = catalog.iter().filter(|it| is_meant(it));
            let Some((ident, building)) =
                meant.find_map(|it| Some((it.ident, it.building.as_ref()?)))
            else {
                return held;
            };
            tell(building);
            drop(held);
            self.locks.wait_for_build(ident);
        }
    }

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
            building: None,
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
        let _catalog = self.catalog_after_builds(&|it| it.name == *name);
        let collection = self.collection(name).ok_or_else(|| missing(name))?;
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
        let _catalog = self.catalog_without_builds(&|it| it.name == *name);
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
        let _catalog = self.catalog_after_builds(&|it| [from, to].contains(&&it.name));
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
        let _catalog = self.catalog_without_builds(&|it| it.name.database == database);
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

    pub(crate) fn remove_entries(&self, ident: Ident, batch: &mut WriteBatch) -> Outcome<()> {
        let (begin, end) = range_of(ident);
        batch.delete_range_cf(self.families.index.id(), &begin, &end)?;
        batch.delete(&mark_key(MULTIKEY, ident))?;
        Ok(())
    }

    /// Removes the indexes that `is_meant` picks; how many the collection had, that of `_id` counted.
    ///
    /// # Errors
    /// `NamespaceNotFound`; of the engine.
    pub fn drop_indexes(&self, name: &Name, is_meant: &dyn Fn(&Index) -> bool) -> Outcome<usize> {
        let _catalog = self.catalog_after_builds(&|it| it.name == *name);
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
    pub(crate) fn new_ident(&self, batch: &mut WriteBatch) -> Outcome<Ident> {
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
