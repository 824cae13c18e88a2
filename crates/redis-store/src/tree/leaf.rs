//! A leaf in its bytes, with the places of its cells: one is found, put in or taken out without a look at the others.

use std::ops::Range;

use drumlin_base::Result;
use drumlin_base::coding::Reader;

use super::node::{Cell, Limit, damaged, decode_cell, head, read_cell};
use super::page::{Exchange, ITEMS_MAX, exchange, set_items};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    page: Vec<u8>,
    /// Where each cell ends in the page; the first number is where the first begins.
    ends: Vec<u32>,
}

impl Leaf {
    /// The leaf in `page`, which has to have `count` entries.
    pub(super) fn decode(page: Vec<u8>, count: u64) -> Result<Self> {
        let ends = Self::ends(&page).ok_or_else(|| damaged("a leaf is not whole"))?;
        let leaf = Self { page, ends };
        leaf.check(count)?;
        Ok(leaf)
    }

    /// Checks that it has `count` entries.
    pub(super) fn check(&self, count: u64) -> Result<()> {
        match self.len() as u64 == count {
            true => Ok(()),
            false => Err(damaged("a leaf has another count than its parent says")),
        }
    }

    fn ends(page: &[u8]) -> Option<Vec<u32>> {
        let (items, mut reader) = head(page, 0)?;
        let mut ends = Vec::with_capacity(items + 1);
        let mut note = |reader: &Reader<'_>| {
            ends.push(u32::try_from(page.len() - reader.rest().len()).ok()?);
            Some(())
        };
        note(&reader)?;
        for _ in 0..items {
            read_cell(&mut reader)?;
            note(&reader)?;
        }
        reader.is_empty().then_some(ends)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len().saturating_sub(1)
    }

    pub(super) fn page(&self) -> &[u8] {
        &self.page
    }

    pub(super) fn into_page(self) -> Vec<u8> {
        self.page
    }

    /// Where the cells of `range` stand in the page.
    fn bounds(&self, range: Range<usize>) -> Result<Range<usize>> {
        let bounds = self.ends.get(range.start).zip(self.ends.get(range.end));
        bounds
            .map(|(from, until)| *from as usize..*until as usize)
            .ok_or_else(|| damaged("a place beyond a leaf"))
    }

    /// The bytes of the cell at `at`.
    pub(super) fn bytes(&self, at: usize) -> Result<&[u8]> {
        let bytes = self.page.get(self.bounds(at..at.saturating_add(1))?);
        bytes.ok_or_else(|| damaged("a place beyond a leaf"))
    }

    pub(super) fn cell(&self, at: usize) -> Result<Cell<'_>> {
        decode_cell(self.bytes(at)?)
    }

    /// The bytes of all cells.
    pub(super) fn cells(&self) -> Result<Vec<&[u8]>> {
        (0..self.len()).map(|at| self.bytes(at)).collect()
    }

    /// What it would hold with a cell of so many bytes, if there is one, in the place of those of `range`; `None` where it
    /// cannot be changed in place.
    pub(super) fn used_with(
        &self,
        range: Range<usize>,
        cell_bytes: Option<usize>,
    ) -> Result<Option<Limit>> {
        let (out, all) = (self.bounds(range.clone())?, self.bounds(0..self.len())?);
        let used = Limit {
            items: self.len() - range.len() + usize::from(cell_bytes.is_some()),
            bytes: all.len() - out.len() + cell_bytes.unwrap_or(0),
        };
        Ok((self.len().max(used.items) < ITEMS_MAX).then_some(used))
    }

    /// Puts `cell`, if there is one, in the place of the cells of `range`, whose bytes are appended to `taken`.
    /// Requires: [`Leaf::used_with`] has told that this is done in place.
    pub(super) fn exchange(
        &mut self,
        range: Range<usize>,
        cell: Option<&[u8]>,
        taken: &mut Vec<u8>,
    ) -> Result<Exchange> {
        let (bounds, new) = (self.bounds(range.clone())?, cell.unwrap_or_default());
        let end = bounds.start + new.len();
        let done = exchange(&mut self.page, bounds.clone(), new, taken);
        let done = done.ok_or_else(|| damaged("a place beyond a leaf"))?;
        for place in self.ends.iter_mut().skip(range.end) {
            *place = *place + end as u32 - bounds.end as u32;
        }
        match (range.len(), cell) {
            (1, Some(_)) => {}
            (0, Some(_)) => self.ends.insert(range.start, bounds.start as u32),
            (_, Some(_)) => drop(self.ends.drain(range.start + 1..range.end)),
            (_, None) => drop(self.ends.drain(range)),
        }
        set_items(&mut self.page, self.ends.len() - 1);
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::node::{encode_cell, encode_leaf};

    /// Goal: a leaf that was changed is the one that its bytes are. Method: every exchange of a small one.
    #[test]
    fn a_changed_leaf_is_what_its_bytes_say() {
        let cells: Vec<Vec<u8>> = [&b"a"[..], b"", b"long", b"b"]
            .map(|entry| encode_cell(Cell::Inline(entry)))
            .to_vec();
        let new = encode_cell(Cell::Inline(b"new"));
        for from in 0..=4usize {
            for until in from..=4 {
                for cell in [None, Some(new.as_slice())] {
                    let all: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
                    let mut leaf = Leaf::decode(encode_leaf(&all), 4).expect("a leaf");
                    let mut wanted = all.clone();
                    wanted.splice(from..until, cell);
                    let used = leaf.used_with(from..until, cell.map(<[u8]>::len));
                    let used = used.expect("in the leaf").expect("in place");
                    let mut taken = Vec::new();
                    leaf.exchange(from..until, cell, &mut taken).expect("done");
                    assert_eq!(leaf.cells().expect("cells"), wanted);
                    assert_eq!(
                        (used.items, used.bytes),
                        (wanted.len(), wanted.concat().len())
                    );
                    assert_eq!(taken, all[from..until].concat());
                    assert_eq!(leaf.page(), encode_leaf(&wanted));
                }
            }
        }
    }
}
