//! Collections that keep the order of insertion and lose their oldest documents.
//!
//! A document lies under its place, a number that grows, and a unique index of `_id` leads there. So the range of the collection is
//! its order, and all that is about keys of documents goes on as it is.
//!
//! Invariant: who writes to such a collection holds the lock of its order until the write is done. So places become visible one after
//! the other, and nobody changes what is given up for a new document.

use drumlin::WriteBatch;
use drumlin_doc::Document;

use crate::catalog::Collection;
use crate::changes::Changes;
use crate::failure::Outcome;
use crate::form;
use crate::layout::range_of;
use crate::options::Bounds;
use crate::pace::Pace;
use crate::place::place_of;
use crate::store::Store;

/// What is given up for a new document.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
    /// The first place that stays.
    first: u64,
}

impl Store {
    /// Appends the deletion of the oldest documents, as many as `bounds` have no room for beside a new one of `new_bytes`, which is in
    /// `batch` already and stays in any case. Requires: the lock of the order is held.
    pub(crate) fn give_up_oldest(
        &self,
        collection: &Collection,
        (bounds, new_bytes): (&Bounds, u64),
        batch: &mut WriteBatch,
        pace: Pace,
    ) -> Outcome<Option<GivenUp>> {
        let mut documents = collection.documents().wrapping_add(1);
        let mut bytes = collection.bytes().wrapping_add(new_bytes);
        if !bounds.are_passed(documents, bytes) || drumlin_base::bug!("mongo-capped-never-full") {
            return Ok(None);
        }
        let reads = match pace {
            Pace::InTurn => self.reads(),
            Pace::AtOnce => self.reads_in_memory(),
        };
        let (begin, end) = range_of(collection.ident);
        let begin = reads.first_key(collection).map_or(begin, |first| first);
        let mut cursor = reads.cursor(false, (begin, end));
        let mut given_up = GivenUp::default();
        cursor.seek_to_first();
        while bounds.are_passed(documents, bytes) && cursor.valid() {
            let key = cursor.key();
            let place = key.get(4..).unwrap_or_default();
            let document = form::decode(place, cursor.try_value()?)?;
            let changes = Changes::of(collection, Document(&document), None, place)?;
            self.write_changes(collection, &changes, batch)?;
            batch.delete_cf(self.families.docs.id(), key)?;
            let len = document.len() as u64;
            (documents, bytes) = (documents.wrapping_sub(1), bytes.wrapping_sub(len));
            given_up.documents += 1;
            given_up.bytes += len;
            given_up.first = place_of(place).map_or(0, |place| place.saturating_add(1));
            cursor.next();
        }
        cursor.status()?;
        Ok(Some(given_up))
    }

    /// Has readers of what is from now on pass over the places that were given up.
    pub(crate) fn gave_up(&self, collection: &Collection, given_up: &GivenUp) {
        *collection.counts.first.lock() = (self.db.latest_seqno(), given_up.first);
    }
}
