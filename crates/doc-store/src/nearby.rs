//! A walk around a point, the nearest first, by rings: all that lies in one is read and put in order, and the next one is as wide as lets
//! expect some dozens of documents. So the nearest ten of a million are found by reading about that many.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use drumlin::Error;
use drumlin_doc::{Code, Document, Refusal, step};

use crate::catalog::Collection;
use crate::failure::Outcome;
use crate::index::Index;
use crate::plan::{Around, Range};
use crate::reads::{Reads, Visit};

/// A ring that has fewer new documents makes the next one wider, one that has more makes it narrower.
const FEW: usize = 20;
const MANY: usize = 200;
/// One that has so many is given up for a narrower one.
const AT_ONCE_MAX: usize = 250;
/// The most documents that a walk remembers.
const SEEN_MAX: usize = 4 << 20;

/// How far it has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nearby {
    /// The distance up to which all that there is was read, and up to which the ring that is read now goes; `None` at the beginning.
    reach: Option<(f64, f64)>,
    width: f64,
    /// What is left of the ring, the first at the end; and how long the keys are before the place's.
    ranges: Vec<(usize, Range)>,
    /// Documents that the ring brought.
    brought: usize,
    /// Those read and not shown.
    waiting: BinaryHeap<Reverse<Found>>,
    seen: HashSet<Vec<u8>>,
    pub(crate) keys_examined: u64,
    pub(crate) documents_examined: u64,
}

/// A document by its distance and the key of its `_id`.
#[derive(Clone, Debug)]
struct Found {
    distance: f64,
    id: Vec<u8>,
}

impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.distance.total_cmp(&other.distance);
        order.then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Found {}

impl Nearby {
    /// As [`crate::Walk::go_on`].
    pub(crate) fn go_on(
        &mut self,
        reads: &Reads<'_>,
        collection: &Collection,
        (index, around): (&Index, &Around),
        visit: &mut Visit<'_>,
    ) -> Outcome<bool> {
        let most = around.near.max.min(around.kind.furthest(&around.near));
        let (mut inner, mut outer) = match self.reach {
            Some(reach) => reach,
            None => self.begin(reads, around)?,
        };
        loop {
            if !self.read(reads, collection, (index, around))? {
                self.width /= 4.0;
                outer = inner.max(0.0) + self.width;
                self.reach = Some((inner, outer));
                self.ranges = ring(index, around, (inner, outer))?;
                continue;
            }
            while let Some(found) = self.next_within(outer) {
                // It may have gone between two pieces.
                if let Some(document) = reads.document(collection, &found.id)?
                    && !visit(&found.id, Document(&document))?
                {
                    return Ok(outer >= most && self.waiting.is_empty());
                }
            }
            if outer >= most {
                return Ok(true);
            }
            self.width *= match self.brought {
                ..FEW => 2.0,
                FEW..MANY => 1.0,
                _ => 0.5,
            };
            inner = match drumlin_base::bug!("mongo-rings-apart") {
                true => outer + self.width,
                false => outer,
            };
            outer = (inner.max(0.0) + self.width).min(most);
            self.reach = Some((inner, outer));
            self.brought = 0;
            self.ranges = ring(index, around, (inner, outer))?;
        }
    }

    /// The first ring is nothing: what is no further than the least distance. How wide the next is comes of how far it is to any entry.
    fn begin(&mut self, reads: &Reads<'_>, around: &Around) -> Outcome<(f64, f64)> {
        let (mut few, mut many) = (0, around.kind.levels());
        // A cell that has entries is one of a larger cell that has.
        while few < many {
            let level = (few + many).div_ceil(2);
            let range = around.kind.around(&around.near, level).map(|(_, it)| it);
            let has_any = range.is_some_and(|range| {
                around.prefixes.iter().any(|prefix| {
                    let mut cursor = reads.cursor(true, under(prefix, &range));
                    cursor.seek_to_first();
                    cursor.valid()
                })
            });
            match has_any {
                true => few = level,
                false => many = level - 1,
            }
        }
        let size = around.kind.around(&around.near, few);
        self.width = size.map_or(1.0, |(size, _)| size).max(f64::MIN_POSITIVE);
        // Before nothing lies what is exactly there.
        let reach = match around.near.min > 0.0 {
            true => [around.near.min * (1.0 - 1e-9); 2].into(),
            false => (-1.0, -1.0),
        };
        self.reach = Some(reach);
        self.brought = FEW;
        Ok(reach)
    }

    /// The next document that lies in the ring.
    fn next_within(&mut self, outer: f64) -> Option<Found> {
        let first = self.waiting.peek()?;
        let is_within = first.0.distance <= outer;
        is_within
            .then(|| self.waiting.pop())
            .flatten()
            .map(|it| it.0)
    }

    /// Reads what is left of the ring; whether that was no more than anybody wants at once: a narrower one is then begun, unless it is
    /// as narrow as places are apart.
    fn read(
        &mut self,
        reads: &Reads<'_>,
        collection: &Collection,
        (index, around): (&Index, &Around),
    ) -> Outcome<bool> {
        let least = around.kind.around(&around.near, around.kind.levels());
        let least = least.map_or(f64::INFINITY, |(size, _)| size);
        let mut brought = 0;
        let damaged = || Error::corruption("an index entry is not whole");
        let wanted = around.near.min..=around.near.max;
        let reach = self.reach.unwrap_or_default();
        while let Some((before, range)) = self.ranges.pop() {
            let mut cursor = reads.cursor(true, range);
            cursor.seek_to_first();
            while cursor.valid() {
                step()?;
                self.keys_examined += 1;
                // The cells of a ring are large: most keys tell that their place is not in it.
                let place = cursor.key().get(before..).unwrap_or_default();
                if !around.kind.may_be(&around.near, reach, place) {
                    cursor.next();
                    continue;
                }
                let id = index.id_of(cursor.key(), cursor.try_value()?);
                let id = id.ok_or_else(damaged)?;
                if self.seen.len() >= SEEN_MAX {
                    let text = format!("a walk around a point met more than {SEEN_MAX} documents");
                    return Err(Refusal::new(Code::MemoryLimit, text).into());
                }
                if self.seen.insert(id.to_vec()) {
                    self.documents_examined += 1;
                    self.brought += 1;
                    brought += 1;
                    let document = reads.document_of(collection, (&index.name, id))?;
                    let nearest = around.near.nearest(Document(&document), &around.path);
                    let distance = nearest.map(|(distance, _)| distance);
                    if let Some(distance) = distance.filter(|it| wanted.contains(it)) {
                        let id = id.to_vec();
                        self.waiting.push(Reverse(Found { distance, id }));
                    }
                }
                if brought > AT_ONCE_MAX && self.width > least {
                    return Ok(false);
                }
                cursor.next();
            }
            cursor.status()?;
        }
        Ok(true)
    }
}

fn under(prefix: &[u8], (low, high): &Range) -> Range {
    let under = |bytes: &[u8]| [prefix, bytes].concat();
    (under(low), under(high))
}

/// The ranges of the index where places may be that far away, the first at the end.
fn ring(index: &Index, around: &Around, reach: (f64, f64)) -> Outcome<Vec<(usize, Range)>> {
    let ranges = around.kind.ring(&around.near, reach, index.is_multikey())?;
    let all = around.prefixes.iter().flat_map(|prefix| {
        let ranges = ranges.iter();
        ranges.map(move |range| (prefix.len(), under(prefix, range)))
    });
    let mut all: Vec<_> = all.collect();
    all.reverse();
    Ok(all)
}
