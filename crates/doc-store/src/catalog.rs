//! What collections and indexes there are: one immutable value, in memory whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::{Error, Result};
use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use drumlin_doc::{Builder, Document, Kind, Refusal, validate};

use crate::geo::PlaceOptions;
use crate::index::{Building, Entry, Index, Partial, fields_of};
use crate::layout::{ENTRY, Ident};
use crate::options::{Bounds, CollectionOptions};

/// The version of entries, their first byte. On disk. Those with a partial index, or one that has documents expire, have the second
/// one, those with options the third, those with an index of places the fourth: who does not know of them must not write to such a
/// collection.
const ENTRY_VERSION: u8 = 1;
const ENTRY_VERSION_PARTIAL: u8 = 2;
const ENTRY_VERSION_OPTIONS: u8 = 3;
const ENTRY_VERSION_PLACES: u8 = 4;

/// The name of a collection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The database.
    pub database: String,
    /// The collection in it.
    pub collection: String,
}

impl Name {
    /// A name of both.
    pub fn new(database: &str, collection: &str) -> Self {
        Self {
            database: database.to_owned(),
            collection: collection.to_owned(),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}

/// Counters of a collection, as of what is written.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) documents: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Of a capped collection: the place of the next document.
    pub(crate) next: AtomicU64,
    /// Of a capped collection: the first place that was not given up, as of that sequence number.
    pub(crate) first: Mutex<(u64, u64)>,
}

impl Counts {
    /// Differences are added, wrapping.
    pub(crate) fn add(&self, documents: u64, bytes: u64) {
        self.documents.fetch_add(documents, Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }
}

/// A collection.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Its name.
    pub name: Name,
    pub(crate) ident: Ident,
    /// Its own number, which stays when it is renamed.
    pub uuid: [u8; 16],
    /// Its secondary indexes; of a capped collection also that of `_id`, as the first.
    pub indexes: Vec<Arc<Index>>,
    /// An index that is being built: writers keep it up, nobody else knows of it.
    pub(crate) building: Option<Arc<Building>>,
    /// What it was made with.
    pub options: CollectionOptions,
    pub(crate) counts: Arc<Counts>,
}

impl Collection {
    /// How many documents it has.
    pub fn documents(&self) -> u64 {
        self.counts.documents.load(Ordering::Acquire)
    }

    /// How many bytes these have in BSON.
    pub fn bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::Acquire)
    }

    /// How many indexes it has, that of `_id` counted.
    pub fn index_count(&self) -> usize {
        let has_own = self.bounds().is_none() && self.options.view.is_none();
        self.indexes.len() + usize::from(has_own)
    }

    /// Its indexes without that of `_id`.
    pub fn secondary_indexes(&self) -> impl Iterator<Item = &Arc<Index>> + Clone {
        self.indexes
            .iter()
            .skip(usize::from(self.bounds().is_some()))
    }

    /// The indexes that writers keep up: its own, and then one that is being built.
    pub(crate) fn kept_up(&self) -> impl Iterator<Item = &Arc<Index>> + Clone {
        let building = self.building.as_ref();
        let building = building.filter(|_| !drumlin_base::bug!("mongo-built-index-not-kept-up"));
        self.indexes
            .iter()
            .chain(building.map(|building| &building.index))
    }

    /// Gives the index that is being built up for `why`, if it is `index`; a writer's refusal otherwise.
    pub(crate) fn give_up(&self, index: &Arc<Index>, why: Refusal) -> Result<(), Refusal> {
        match &self.building {
            Some(building) if self.is_building(index) => {
                building.fail(why);
                Ok(())
            }
            _ => Err(why),
        }
    }

    /// Whether `index` is being built.
    pub(crate) fn is_building(&self, index: &Arc<Index>) -> bool {
        let building = self.building.as_ref();
        building.is_some_and(|building| Arc::ptr_eq(&building.index, index))
    }

    /// The entries of a document in an index that writers keep up, and whether one of its fields has an array. One that is being
    /// built is given up where it cannot have the document.
    pub(crate) fn entries(
        &self,
        index: &Arc<Index>,
        document: Document<'_>,
        id_key: &[u8],
    ) -> Result<(Vec<Entry>, bool), Refusal> {
        index.entries(document, id_key).or_else(|why| {
            self.give_up(index, why)?;
            Ok((Vec::new(), false))
        })
    }

    /// Its bounds, if it is capped.
    pub fn bounds(&self) -> Option<&Bounds> {
        self.options.capped.as_ref()
    }

    /// The stored entry.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Builder::new();
        out.binary("uuid", 4, &self.uuid)
            .i64("ident", i64::from(self.ident));
        out.open(Kind::Array, "indexes");
        for (at, index) in self.indexes.iter().enumerate() {
            out.open(Kind::Document, at.to_string());
            out.i64("ident", i64::from(index.ident))
                .str("name", &index.name);
            out.document("key", Document(&index.key));
            out.bool("unique", index.unique)
                .bool("sparse", index.sparse);
            let partial = index.partial.as_ref();
            let is_lost = drumlin_base::bug!("mongo-partial-filter-unstored");
            if let Some(partial) = partial.filter(|_| !is_lost) {
                out.document("partial", Document(&partial.given));
            }
            if let Some(seconds) = index.expire_after_seconds {
                out.i64("expire", i64::from(seconds));
            }
            index.place_options.encode(&mut out);
            out.close();
        }
        out.close();
        let has_options = self.options != CollectionOptions::default();
        if has_options {
            out.document("options", Document(&self.options.document()));
        }
        let version = |index: &Arc<Index>| match () {
            () if !index.places.is_empty() => ENTRY_VERSION_PLACES,
            () if index.partial.is_some() || index.expire_after_seconds.is_some() => {
                ENTRY_VERSION_PARTIAL
            }
            () => ENTRY_VERSION,
        };
        let version = self.indexes.iter().map(version).max();
        let least = match has_options {
            true => ENTRY_VERSION_OPTIONS,
            false => ENTRY_VERSION,
        };
        let version = version.map_or(least, |version| version.max(least));
        [&[version], out.finish().as_slice()].concat()
    }

    /// The collection that is stored under `key`.
    ///
    /// # Errors
    /// `Corruption` for what is no entry; `NotSupported` for a later version's.
    pub(crate) fn decode(key: &[u8], stored: &[u8]) -> Result<Self> {
        let damaged = || Error::corruption("an entry of the catalog is not whole");
        let name = key
            .strip_prefix(&[ENTRY])
            .and_then(|name| std::str::from_utf8(name).ok());
        let (database, collection) = name
            .and_then(|name| name.split_once('\0'))
            .ok_or_else(damaged)?;
        let (version, bytes) = stored.split_first().ok_or_else(damaged)?;
        if !(ENTRY_VERSION..=ENTRY_VERSION_PLACES).contains(version) {
            let text =
                format!("the catalog entry of {database}.{collection} has the version {version}");
            return Err(Error::not_supported(text));
        }
        validate(bytes).map_err(|_| damaged())?;
        let entry = Document(bytes);
        let uuid = entry
            .get("uuid")
            .and_then(|uuid| uuid.bytes.get(5..)?.try_into().ok());
        let indexes = entry
            .get("indexes")
            .and_then(|indexes| indexes.as_array())
            .ok_or_else(damaged)?;
        let indexes = indexes.iter().map(|index| {
            index
                .value
                .as_document()
                .and_then(decode_index)
                .map(Arc::new)
        });
        let indexes = indexes.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        let options = match entry.get("options") {
            Some(options) => options.as_document().and_then(CollectionOptions::decode),
            None => Some(CollectionOptions::default()),
        };
        let options = options.ok_or_else(damaged)?;
        // The documents of a capped collection are found by that index.
        let is_of_ids = |index: &Arc<Index>| index.is_same(&Index::of_id(index.ident));
        let has_ids = indexes.first().is_some_and(is_of_ids);
        if options.capped.is_some() != has_ids {
            return Err(damaged());
        }
        Ok(Self {
            name: Name::new(database, collection),
            options,
            ident: ident_of(entry).ok_or_else(damaged)?,
            uuid: uuid.ok_or_else(damaged)?,
            indexes,
            building: None,
            counts: Arc::default(),
        })
    }
}

fn ident_of(entry: Document<'_>) -> Option<Ident> {
    Ident::try_from(entry.get("ident")?.as_whole()?).ok()
}

fn decode_index(entry: Document<'_>) -> Option<Index> {
    let key = entry.get("key")?.as_document()?;
    let flag = |name: &str| entry.get(name).and_then(|flag| flag.as_bool());
    let place_options = PlaceOptions::decode(entry)?;
    let (fields, places) = fields_of(key, place_options).ok()?;
    Some(Index {
        ident: ident_of(entry)?,
        name: entry.get("name")?.as_str()?.to_owned(),
        key: key.0.to_vec(),
        fields,
        places,
        place_options,
        unique: flag("unique")?,
        sparse: flag("sparse")?,
        partial: match entry.get("partial") {
            Some(given) => Some(Partial::new(given.as_document()?.0).ok()?),
            None => None,
        },
        expire_after_seconds: match entry.get("expire") {
            Some(seconds) => Some(u32::try_from(seconds.as_whole()?).ok()?),
            None => None,
        },
        multikey: AtomicBool::new(false),
    })
}

/// All collections.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    collections: BTreeMap<Name, Arc<Collection>>,
}

impl Catalog {
    /// The collection of that name.
    pub fn get(&self, name: &Name) -> Option<&Arc<Collection>> {
        self.collections.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    /// It with `collection` in it, or in the place of one of that name.
    pub(crate) fn with(&self, collection: Collection) -> Self {
        let mut new = self.clone();
        new.collections
            .insert(collection.name.clone(), Arc::new(collection));
        new
    }

    /// It without some.
    pub(crate) fn without(&self, names: &[Name]) -> Self {
        let mut new = self.clone();
        for name in names {
            new.collections.remove(name);
        }
        new
    }
}
