//! A walk around a point, the nearest first: of cells and documents that were met the nearest is taken, a cell gives its entries, or its parts
//! where it has many, and a document comes out when no cell is nearer. So the nearest ten of a million cost about ten documents, and nothing
//! is sorted at once. What cannot be cut, as a spot with a million documents, is read in pieces. The algorithm is that of Hjaltason and Samet,
//! Distance Browsing in Spatial Databases, 1999.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use drumlin::Error;
use drumlin_doc::{Code, Document, PlaceCell, Refusal, step};

use crate::catalog::Collection;
use crate::failure::Outcome;
use crate::index::Index;
use crate::plan::{Around, Range};
use crate::reads::{Reads, Visit};

/// A cell that has more entries is cut.
const ENTRIES_MAX: usize = 32;
/// The entries of a piece of what cannot be cut.
const PIECE_ENTRIES: usize = 1024;
/// The most that a walk has met and holds, the most documents that it remembers, where they may have several entries, and the most bytes of
/// keys in all.
const HELD_MAX: usize = 4 << 20;
const HELD_BYTES_MAX: usize = 256 << 20;

/// How far it has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nearby {
    has_begun: bool,
    met: BinaryHeap<Reverse<Met>>,
    seen: HashSet<Vec<u8>>,
    held_bytes: usize,
    pub(crate) keys_examined: u64,
    pub(crate) documents_examined: u64,
}

/// Something, and how near it is at the least.
#[derive(Clone, Debug)]
struct Met {
    distance: f64,
    what: What,
}

/// Of what is equally far away a cell is looked at first, so that documents come by the key that they lie under; but what is left of one after
/// the documents that were found in it, so that the first of many in a spot come without the others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Behind one of the prefixes.
    Cell(usize, PlaceCell),
    /// Of the document under this key.
    Entry(Vec<u8>),
    /// One whose distance is known.
    Document(Vec<u8>),
    /// What a cell has itself, from a key on.
    Rest(usize, PlaceCell, Vec<u8>),
}

impl What {
    /// The bytes of its key.
    fn size_bytes(&self) -> usize {
        match self {
            Self::Cell(..) => 0,
            Self::Entry(key) | Self::Document(key) | Self::Rest(_, _, key) => key.len(),
        }
    }
}

/// An entry: its cell, and the key that its document lies under.
type Entry = (PlaceCell, Vec<u8>);

/// Entries, and the key of the next one where there are more.
type Piece = (Vec<Entry>, Option<Vec<u8>>);

impl Ord for Met {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.distance.total_cmp(&other.distance);
        order.then_with(|| self.what.cmp(&other.what))
    }
}

impl PartialOrd for Met {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Met {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Met {}

impl Nearby {
    /// As [`crate::Walk::go_on`].
    pub(crate) fn go_on(
        &mut self,
        reads: &Reads<'_>,
        collection: &Collection,
        (index, around): (&Index, &Around),
        visit: &mut Visit<'_>,
    ) -> Outcome<bool> {
        if !self.has_begun {
            self.has_begun = true;
            for at in 0..around.prefixes.len() {
                for cell in around.kind.roots() {
                    self.meet(around, cell, What::Cell(at, cell))?;
                }
            }
        }
        while let Some(Reverse(met)) = self.met.pop() {
            step()?;
            self.held_bytes -= met.what.size_bytes();
            match met.what {
                What::Rest(at, cell, from) => {
                    self.open_own(reads, (index, around), (at, cell), Some(from))?;
                }
                What::Cell(at, cell) => self.open(reads, (index, around), (at, cell))?,
                What::Entry(id) => {
                    if !self.has_seen(index, &id)? {
                        self.measure(reads, collection, around, id)?;
                    }
                }
                What::Document(id) => {
                    // It may have gone between two pieces.
                    if let Some(document) = reads.document(collection, &id)?
                        && !visit(&id, Document(&document))?
                    {
                        return Ok(self.met.is_empty());
                    }
                }
            }
        }
        Ok(true)
    }

    /// Remembers what lies in a cell, unless nothing there is as near or as far as is wanted.
    fn meet(&mut self, around: &Around, cell: PlaceCell, what: What) -> Outcome<()> {
        let Some((least, most)) = around.kind.distances(&around.near, cell) else {
            return Ok(());
        };
        let distance = match drumlin_base::bug!("mongo-cells-by-their-far-end") {
            true => most,
            false => least,
        };
        match least <= around.near.max && most >= around.near.min {
            true => self.hold(Met { distance, what }),
            false => Ok(()),
        }
    }

    fn hold(&mut self, met: Met) -> Outcome<()> {
        self.charge(met.what.size_bytes())?;
        self.met.push(Reverse(met));
        Ok(())
    }

    /// Takes memory for a key.
    fn charge(&mut self, size_bytes: usize) -> Outcome<()> {
        self.held_bytes = self.held_bytes.saturating_add(size_bytes);
        let is_many = self.met.len() >= HELD_MAX || self.seen.len() >= HELD_MAX;
        if is_many || self.held_bytes > HELD_BYTES_MAX {
            let text = format!(
                "a walk around a point held more than {HELD_MAX} documents, or {HELD_BYTES_MAX} bytes of their keys"
            );
            return Err(Refusal::new(Code::MemoryLimit, text).into());
        }
        Ok(())
    }

    /// Meets the entries of a cell, or its parts if it has many.
    fn open(
        &mut self,
        reads: &Reads<'_>,
        (index, around): (&Index, &Around),
        (at, cell): (usize, PlaceCell),
    ) -> Outcome<()> {
        let parts = around.kind.parts(cell);
        if parts.is_empty() {
            return self.open_own(reads, (index, around), (at, cell), None);
        }
        let within = around.kind.within(cell);
        let (entries, more) = self.entries(reads, (index, around), (at, within), ENTRIES_MAX)?;
        if more.is_none() {
            return self.meet_all(around, entries);
        }
        for part in parts {
            self.meet(around, part, What::Cell(at, part))?;
        }
        self.open_own(reads, (index, around), (at, cell), None)
    }

    /// Meets some entries of a cell that are in none of its parts, from a key on, and what is left of them.
    fn open_own(
        &mut self,
        reads: &Reads<'_>,
        (index, around): (&Index, &Around),
        (at, cell): (usize, PlaceCell),
        from: Option<Vec<u8>>,
    ) -> Outcome<()> {
        let Some((low, high)) = around.kind.own(cell) else {
            return Ok(());
        };
        let range = (from.unwrap_or(low), high);
        let piece = self.entries(reads, (index, around), (at, range), PIECE_ENTRIES)?;
        let (entries, more) = piece;
        self.meet_all(around, entries)?;
        match more {
            Some(more) => self.meet(around, cell, What::Rest(at, cell, more)),
            None => Ok(()),
        }
    }

    fn meet_all(&mut self, around: &Around, entries: Vec<Entry>) -> Outcome<()> {
        for (cell, id) in entries {
            step()?;
            self.meet(around, cell, What::Entry(id))?;
        }
        Ok(())
    }

    /// The entries in a range behind a prefix, each with its cell, up to `most`; and the key of the next one, without the prefix.
    fn entries(
        &mut self,
        reads: &Reads<'_>,
        (index, around): (&Index, &Around),
        (at, (low, high)): (usize, Range),
        most: usize,
    ) -> Outcome<Piece> {
        let damaged = || Error::corruption("an index entry is not whole");
        let prefix = around.prefixes.get(at).map(Vec::as_slice);
        let prefix = prefix.unwrap_or_default();
        let range = ([prefix, &low].concat(), [prefix, &high].concat());
        let mut cursor = reads.cursor(true, range);
        let mut found = Vec::new();
        cursor.seek_to_first();
        while cursor.valid() {
            step()?;
            let place = cursor.key().get(prefix.len()..).unwrap_or_default();
            if found.len() >= most {
                return Ok((found, Some(place.to_vec())));
            }
            self.keys_examined += 1;
            let cell = around.kind.cell_of(place).ok_or_else(damaged)?;
            let id = index.id_of(cursor.key(), cursor.try_value()?);
            found.push((cell, id.ok_or_else(damaged)?.to_vec()));
            cursor.next();
        }
        cursor.status()?;
        Ok((found, None))
    }

    /// Whether a document was met before, where that may be.
    fn has_seen(&mut self, index: &Index, id: &[u8]) -> Outcome<bool> {
        if !index.is_multikey() {
            return Ok(false);
        }
        if self.seen.contains(id) {
            return Ok(true);
        }
        self.charge(id.len())?;
        self.seen.insert(id.to_vec());
        Ok(false)
    }

    /// Reads a document, and meets it where it is.
    fn measure(
        &mut self,
        reads: &Reads<'_>,
        collection: &Collection,
        around: &Around,
        id: Vec<u8>,
    ) -> Outcome<()> {
        // It may have gone between two pieces.
        let Some(document) = reads.document(collection, &id)? else {
            return Ok(());
        };
        self.documents_examined += 1;
        let nearest = around.near.nearest(Document(&document), &around.path)?;
        let wanted = around.near.min..=around.near.max;
        if let Some((distance, _)) = nearest.filter(|(distance, _)| wanted.contains(distance)) {
            let what = What::Document(id);
            self.hold(Met { distance, what })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what a walk holds is bounded. Method: it meets documents with keys of 32 MiB.
    #[test]
    fn a_walk_holds_no_more_bytes_than_there_may_be() {
        let mut nearby = Nearby::default();
        let long = || vec![0; 32 << 20];
        for _ in 0..8 {
            let what = What::Document(long());
            let met = Met {
                distance: 0.0,
                what,
            };
            nearby.hold(met).expect("there is room");
        }
        assert!(nearby.charge(1).is_err());
    }
}
