//! Collections that keep the order of insertion and lose their oldest documents.
//!
//! A document lies under its place, a number that grows, and a unique index of `_id` leads there. So the range of the collection is
//! its order, and all that is about keys of documents goes on as it is.
//!
//! Invariant: who writes to such a collection holds the lock of its order until the write is done. So places become visible one after
//! the other, and nobody changes what is given up for a new document.

use drumlin::WriteBatch;
use drumlin_doc::{Document, step};

use crate::catalog::Collection;
use crate::changes::Changes;
use crate::ddl::BUILD_BYTES;
use crate::failure::Outcome;
use crate::form;
use crate::layout::range_of;
use crate::options::Bounds;
use crate::pace::{Pace, not_at_once};
use crate::place::place_of;
use crate::store::Store;

/// Most documents, and bytes of them, that are given up by a write that must not wait. More is only where bounds became narrower, or
/// where one document takes the room of many.
const AT_ONCE_DOCUMENTS_MAX: u64 = 64;
const AT_ONCE_BYTES_MAX: u64 = 1 << 20;

/// What is given up for a new document, by one batch.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
    /// The first place that stays, if any was given up.
    first: Option<u64>,
}

impl Store {
    /// Appends the deletion of the oldest documents, as many as `bounds` have no room for beside a new one of `new_bytes`. Where these
    /// are more than a batch, all but the last batch of them are deleted at once: a crash, or who ends the command, leaves the
    /// collection without them. Requires: the lock of the order is held, and `batch` is empty.
    ///
    /// # Errors
    /// Of the engine; of who looks whether to go on; `Incomplete` where it must not wait and there are many.
    pub(crate) fn give_up_oldest(
        &self,
        collection: &Collection,
        (bounds, new_bytes): (&Bounds, u64),
        batch: &mut WriteBatch,
        pace: Pace,
    ) -> Outcome<GivenUp> {
        let mut documents = collection.documents().wrapping_add(1);
        let mut bytes = collection.bytes().wrapping_add(new_bytes);
        let mut given_up = GivenUp::default();
        if !bounds.are_passed(documents, bytes) || drumlin_base::bug!("mongo-capped-never-full") {
            return Ok(given_up);
        }
        let reads = match pace {
            Pace::InTurn => self.reads(),
            Pace::AtOnce => self.reads_in_memory(),
        };
        let (begin, end) = range_of(collection.ident);
        let begin = reads.first_key(collection).map_or(begin, |first| first);
        let mut cursor = reads.cursor(false, (begin, end));
        cursor.seek_to_first();
        while bounds.are_passed(documents, bytes) && cursor.valid() {
            let is_much =
                given_up.documents >= AT_ONCE_DOCUMENTS_MAX || given_up.bytes >= AT_ONCE_BYTES_MAX;
            if pace == Pace::AtOnce && is_much {
                return Err(not_at_once().into());
            }
            step()?;
            let key = cursor.key();
            let place = key.get(4..).unwrap_or_default();
            let document = form::decode(place, cursor.try_value()?)?;
            let changes = Changes::of(collection, Document(&document), None, place)?;
            self.write_changes(collection, &changes, batch, pace)?;
            batch.delete_cf(self.families.docs.id(), key)?;
            let len = document.len() as u64;
            (documents, bytes) = (documents.wrapping_sub(1), bytes.wrapping_sub(len));
            given_up.documents += 1;
            given_up.bytes += len;
            given_up.first = place_of(place).and_then(|place| place.checked_add(1));
            if batch.len() > BUILD_BYTES && pace == Pace::InTurn {
                self.give_up(collection, &given_up, std::mem::take(batch))?;
                given_up = GivenUp::default();
            }
            cursor.next();
        }
        cursor.status()?;
        Ok(given_up)
    }

    /// Writes a batch that gives up documents and does nothing else.
    fn give_up(
        &self,
        collection: &Collection,
        given_up: &GivenUp,
        mut batch: WriteBatch,
    ) -> Outcome<()> {
        let [documents, bytes] = [given_up.documents, given_up.bytes].map(u64::wrapping_neg);
        if !drumlin_base::bug!("mongo-capped-uncounted") {
            self.count(collection, &mut batch, documents, bytes)?;
        }
        self.commit(batch)?;
        collection.counts.add(documents, bytes);
        self.gave_up(collection, given_up);
        Ok(())
    }

    /// Has readers of what is from now on pass over the places that were given up.
    pub(crate) fn gave_up(&self, collection: &Collection, given_up: &GivenUp) {
        if let Some(first) = given_up.first {
            *collection.counts.first.lock() = (self.db.latest_seqno(), first);
        }
    }
}
