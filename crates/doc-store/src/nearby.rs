//! A walk around a point, the nearest first: of cells and documents that were met the nearest is taken, a cell gives its entries, or its parts
//! where it has many, and a document comes out when no cell is nearer. So the nearest ten of a million cost about ten documents, and nothing
//! is sorted at once. The algorithm is that of Hjaltason and Samet, Distance Browsing in Spatial Databases, 1999.

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
/// The most documents that a walk remembers, where they may have several entries.
const SEEN_MAX: usize = 4 << 20;

/// How far it has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nearby {
    has_begun: bool,
    met: BinaryHeap<Reverse<Met>>,
    seen: HashSet<Vec<u8>>,
    pub(crate) keys_examined: u64,
    pub(crate) documents_examined: u64,
}

/// Something, and how near it is at the least.
#[derive(Clone, Debug)]
struct Met {
    distance: f64,
    what: What,
}

/// Of what is equally far away a cell is looked at first, so that documents come by the key that they lie under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Behind one of the prefixes.
    Cell(usize, PlaceCell),
    /// Of the document under this key.
    Entry(Vec<u8>),
    /// One whose distance is known.
    Document(Vec<u8>),
}

/// An entry: its cell, and the key that its document lies under.
type Entry = (PlaceCell, Vec<u8>);

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
                    self.meet(around, cell, What::Cell(at, cell));
                }
            }
        }
        while let Some(Reverse(met)) = self.met.pop() {
            step()?;
            match met.what {
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
    fn meet(&mut self, around: &Around, cell: PlaceCell, what: What) {
        let Some((least, most)) = around.kind.distances(&around.near, cell) else {
            return;
        };
        let distance = match drumlin_base::bug!("mongo-cells-by-their-far-end") {
            true => most,
            false => least,
        };
        if least <= around.near.max && most >= around.near.min {
            self.met.push(Reverse(Met { distance, what }));
        }
    }

    /// Meets the entries of a cell, or its parts if it has many.
    fn open(
        &mut self,
        reads: &Reads<'_>,
        (index, around): (&Index, &Around),
        (at, cell): (usize, PlaceCell),
    ) -> Outcome<()> {
        let parts = around.kind.parts(cell);
        let most = match parts.is_empty() {
            true => usize::MAX,
            false => ENTRIES_MAX,
        };
        let within = around.kind.within(cell);
        if let Some(entries) = self.entries(reads, (index, around), (at, within), most)? {
            return self.meet_all(around, entries);
        }
        for part in parts {
            self.meet(around, part, What::Cell(at, part));
        }
        // What has all of the cell is in none of the parts.
        if let Some(own) = around.kind.own(cell)
            && let Some(entries) = self.entries(reads, (index, around), (at, own), usize::MAX)?
        {
            self.meet_all(around, entries)?;
        }
        Ok(())
    }

    fn meet_all(&mut self, around: &Around, entries: Vec<Entry>) -> Outcome<()> {
        for (cell, id) in entries {
            step()?;
            self.meet(around, cell, What::Entry(id));
        }
        Ok(())
    }

    /// The entries behind a prefix, each with its cell; `None` where there are more than `most`.
    fn entries(
        &mut self,
        reads: &Reads<'_>,
        (index, around): (&Index, &Around),
        (at, (low, high)): (usize, Range),
        most: usize,
    ) -> Outcome<Option<Vec<Entry>>> {
        let damaged = || Error::corruption("an index entry is not whole");
        let prefix = around.prefixes.get(at).map(Vec::as_slice);
        let prefix = prefix.unwrap_or_default();
        let range = ([prefix, &low].concat(), [prefix, &high].concat());
        let mut cursor = reads.cursor(true, range);
        let mut found = Vec::new();
        cursor.seek_to_first();
        while cursor.valid() {
            step()?;
            if found.len() >= most {
                return Ok(None);
            }
            self.keys_examined += 1;
            let place = cursor.key().get(prefix.len()..).unwrap_or_default();
            let cell = around.kind.cell_of(place).ok_or_else(damaged)?;
            let id = index.id_of(cursor.key(), cursor.try_value()?);
            found.push((cell, id.ok_or_else(damaged)?.to_vec()));
            cursor.next();
        }
        cursor.status()?;
        Ok(Some(found))
    }

    /// Whether a document was met before, where that may be.
    fn has_seen(&mut self, index: &Index, id: &[u8]) -> Outcome<bool> {
        if !index.is_multikey() {
            return Ok(false);
        }
        if self.seen.len() >= SEEN_MAX {
            let text = format!("a walk around a point met more than {SEEN_MAX} documents");
            return Err(Refusal::new(Code::MemoryLimit, text).into());
        }
        Ok(!self.seen.insert(id.to_vec()))
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
        let nearest = around.near.nearest(Document(&document), &around.path);
        let wanted = around.near.min..=around.near.max;
        if let Some((distance, _)) = nearest.filter(|(distance, _)| wanted.contains(distance)) {
            let what = What::Document(id);
            self.met.push(Reverse(Met { distance, what }));
        }
        Ok(())
    }
}
