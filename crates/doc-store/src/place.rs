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

    /// Goes on behind the last document, when the store is opened. A place whose document was deleted may be given again: nobody knows
    /// of it.
    pub(crate) fn find_next_place(&self, collection: &Collection) -> Result<()> {
        let damaged = || {
            let name = &collection.name;
            Error::corruption(format!("the last document of {name} lies under no place"))
        };
        let mut cursor = self.cursor(false, range_of(collection.ident));
        cursor.seek_to_last();
        cursor.status()?;
        if cursor.valid() {
            let place = cursor.key().get(4..).and_then(place_of);
            let next = place.and_then(|place| place.checked_add(1));
            let next = next.ok_or_else(damaged)?;
            collection.counts.next.store(next, Ordering::Release);
        }
        Ok(())
    }
}
