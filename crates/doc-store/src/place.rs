//! Where the documents of a capped collection lie: under a number that grows, their place.

use drumlin::{Error, ReadOptions, Result};
use drumlin_base::sync::atomic::Ordering;
use drumlin_doc::{Document, Value};

use crate::catalog::Collection;
use crate::form;
use crate::layout::{id_key, range_of, under};
use crate::locks::lock_of;
use crate::reads::Reads;

/// The number that a key is, without its ident.
pub(crate) fn place_of(key: &[u8]) -> Option<u64> {
    key.try_into().map(u64::from_be_bytes).ok()
}

impl Collection {
    /// The lock that who writes to a capped collection holds.
    pub(crate) fn order_lock(&self) -> u64 {
        lock_of(&self.ident.to_be_bytes())
    }

    /// The place of the next document. Requires: the lock of the order is held.
    pub(crate) fn next_place(&self) -> u64 {
        self.counts.next.load(Ordering::Acquire)
    }

    /// Whether `key` is a place that was given to a document.
    pub(crate) fn has_given(&self, key: &[u8]) -> bool {
        place_of(key).is_some_and(|place| place < self.next_place())
    }

    /// The stored bytes of a document: a place does not give its `_id` back.
    pub(crate) fn stored(&self, document: Document<'_>) -> Vec<u8> {
        match self.bounds() {
            Some(_) => form::whole(document),
            None => form::encode(document),
        }
    }
}

impl Reads<'_> {
    /// The key that the document with this `_id` lies under: that of the `_id`, or its place in a capped collection, where it may be gone.
    ///
    /// # Errors
    /// Of the engine.
    pub fn key_of(&self, collection: &Collection, id: Value<'_>) -> Result<Option<Vec<u8>>> {
        let key = id_key(id);
        if collection.bounds().is_none() {
            return Ok(Some(key));
        }
        let index = collection.indexes.first().map(|index| index.ident);
        let entry = under(index.unwrap_or_default(), &key);
        let options = ReadOptions {
            tier: self.tier,
            ..ReadOptions::default()
        };
        let place = self.view.get_cf(&self.families.index, entry, &options)?;
        Ok(place.map(|place| place.to_vec()))
    }

    /// Where a capped collection begins, if that is known: what was deleted before need not be passed over key by key.
    pub(crate) fn first_key(&self, collection: &Collection) -> Option<Vec<u8>> {
        collection.bounds()?;
        let (seqno, first) = *collection.counts.first.lock();
        // A reader of an earlier moment sees documents that are gone by now.
        (self.view.seqno() >= seqno).then(|| under(collection.ident, &first.to_be_bytes()))
    }

    /// Goes on behind the last document, and begins at the first one, when the store is opened: no write passes over what was given up
    /// before. A place whose document was deleted may be given again: nobody knows of it. Costs a step for each document that was deleted
    /// at both ends and that no compaction has met since.
    pub(crate) fn find_places(&self, collection: &Collection) -> Result<()> {
        let damaged = || {
            let name = &collection.name;
            Error::corruption(format!("a document of {name} lies under no place"))
        };
        let mut cursor = self.cursor(false, range_of(collection.ident));
        cursor.seek_to_last();
        cursor.status()?;
        if cursor.valid() {
            let place = cursor.key().get(4..).and_then(place_of);
            let next = place.and_then(|place| place.checked_add(1));
            let next = next.ok_or_else(damaged)?;
            collection.counts.next.store(next, Ordering::Release);
            cursor.seek_to_first();
            cursor.status()?;
            let first = cursor.key().get(4..).and_then(place_of);
            *collection.counts.first.lock() = (self.view.seqno(), first.ok_or_else(damaged)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use drumlin::Options;
    use drumlin_doc::Builder;
    use drumlin_fs::{Env, StrictMemFileSystem};

    use super::*;
    use crate::catalog::Name;
    use crate::options::{Bounds, CollectionOptions};
    use crate::store::{Store, StoreOptions};

    fn open(files: &Arc<StrictMemFileSystem>) -> Store {
        let engine = Options {
            env: Env {
                files: Arc::<StrictMemFileSystem>::clone(files),
                ..Env::system()
            },
            background_threads: Some(0),
            ..Options::default()
        };
        Store::open(Path::new("/store"), StoreOptions { engine }).expect("opens")
    }

    #[test]
    fn a_reopened_collection_begins_at_its_first_document() {
        let files = Arc::new(StrictMemFileSystem::new());
        let store = open(&files);
        let name = Name::new("db", "c");
        let options = CollectionOptions {
            capped: Some(Bounds {
                size_bytes: 1 << 20,
                documents_max: Some(5),
            }),
            ..CollectionOptions::default()
        };
        store.create_with(&name, options).expect("creates");
        for id in 0..20 {
            let mut out = Builder::new();
            out.i32("_id", id);
            let done = store.insert(&name, &[Document(&out.finish())], true);
            assert_eq!(done.expect("inserts").expect("a collection").count, 1);
        }
        let first = |store: &Store| {
            let collection = store.collection(&name).expect("a collection");
            let first = store.reads().first_key(&collection).expect("it is known");
            first.get(4..).and_then(place_of)
        };
        assert_eq!(first(&store), Some(15));
        drop(store);
        assert_eq!(first(&open(&files)), Some(15));
    }
}
