//! The bytes of nodes.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 1 | level; 0 is a leaf |
//! | varint | entries or children, at least one |
//! | rest | these, one after the other |
//!
//! An entry of a leaf: varint of twice its length, and its bytes; or 1 and the number of a long entry, u64 big-endian. A
//! child of an inner node: varints of its id and of the entries under it; in ordered trees then a separator, varint of
//! its length plus one, and its bytes. A separator is not below any entry left of its child, nor above any entry in it.
//! 0 stands for one that was too long to keep, the first entry of the child then serves, and for that of a first child,
//! which nobody asks for.

use std::borrow::Cow;

use drumlin_base::coding::{Reader, put_varint64, varint_len};
use drumlin_base::{Error, Result};

/// The levels that a tree may have. With at least two entries a node this is more than can be stored.
pub(super) const LEVELS_MAX: u8 = 40;

/// A node by what its parent knows of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) id: u32,
    pub(super) level: u8,
    pub(super) count: u64,
}

/// The most that a node holds. One item alone always fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Entries or children.
    pub items: usize,
    /// Their bytes.
    pub bytes: usize,
}

impl Limit {
    /// Whether a node with so much should be merged with a neighbour.
    pub(super) fn is_small(self, used: Self) -> bool {
        used.items.saturating_mul(4) < self.items && used.bytes.saturating_mul(4) < self.bytes
    }

    pub(super) fn holds(self, used: Self) -> bool {
        used.items <= self.items && used.bytes <= self.bytes
    }
}

/// How items are shared out where they do not fit into one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// All nodes about alike.
    Even,
    /// The first ones full: more comes at the end.
    Front,
    /// The last ones full: more comes at the beginning.
    Back,
}

/// The items of each node, given the bytes of each item.
pub(super) fn share(sizes: &[usize], limit: Limit, fill: Fill) -> Vec<usize> {
    let total = Limit {
        items: sizes.len(),
        bytes: sizes.iter().sum(),
    };
    if limit.holds(total) {
        return vec![sizes.len()];
    }
    let by_items = total.items.div_ceil(limit.items.max(1));
    let nodes = by_items.max(total.bytes.div_ceil(limit.bytes.max(1)));
    let target = match fill {
        Fill::Even => Limit {
            items: total.items.div_ceil(nodes).min(limit.items),
            bytes: total.bytes.div_ceil(nodes).min(limit.bytes),
        },
        Fill::Front | Fill::Back => limit,
    };
    let mut shares = match fill {
        Fill::Back => greedy(sizes.iter().rev(), limit, target),
        Fill::Even | Fill::Front => greedy(sizes.iter(), limit, target),
    };
    if fill == Fill::Back {
        shares.reverse();
    }
    shares
}

/// A node ends where it holds `target` of the bytes or of the items, whichever binds, or where `limit` would be passed.
fn greedy<'a>(sizes: impl Iterator<Item = &'a usize>, limit: Limit, target: Limit) -> Vec<usize> {
    let mut shares = Vec::new();
    let mut used = Limit { items: 0, bytes: 0 };
    for size in sizes {
        let next = Limit {
            items: used.items + 1,
            bytes: used.bytes + size,
        };
        let reached = used.bytes >= target.bytes || used.items >= target.items;
        if used.items > 0 && (reached || !limit.holds(next)) {
            shares.push(used.items);
            used = Limit {
                items: 1,
                bytes: *size,
            };
        } else {
            used = next;
        }
    }
    shares.push(used.items);
    shares
}

pub(super) fn damaged(part: &str) -> Error {
    Error::corruption(format!("a counted tree: {part}"))
}

/// The head of a node: its items, and a reader behind it.
pub(super) fn head(page: &[u8], level: u8) -> Option<(usize, Reader<'_>)> {
    let mut reader = Reader::new(page);
    let found = reader.u8()?;
    let items = usize::try_from(reader.varint32()?).ok()?;
    (found == level && items > 0 && items <= page.len()).then_some((items, reader))
}

fn new_page(level: u8, items: usize, bytes: usize) -> Vec<u8> {
    let mut page = Vec::with_capacity(bytes + 4);
    page.push(level);
    put_varint64(&mut page, items as u64);
    page
}

/// An entry as its leaf has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    /// Its bytes.
    Inline(&'a [u8]),
    /// The number of a long one.
    Long(u64),
}

/// The bytes of a cell.
pub(super) fn encode_cell(cell: Cell<'_>) -> Vec<u8> {
    match cell {
        Cell::Inline(entry) => {
            let doubled = entry.len() as u64 * 2;
            let mut bytes = Vec::with_capacity(varint_len(doubled) + entry.len());
            put_varint64(&mut bytes, doubled);
            bytes.extend_from_slice(entry);
            bytes
        }
        Cell::Long(number) => [&[1][..], &number.to_be_bytes()].concat(),
    }
}

pub(super) fn read_cell<'a>(reader: &mut Reader<'a>) -> Option<Cell<'a>> {
    let doubled = reader.varint32()?;
    if doubled == 1 {
        let (number, _) = reader.bytes(8)?.split_first_chunk::<8>()?;
        return Some(Cell::Long(u64::from_be_bytes(*number)));
    }
    let len = (doubled % 2 == 0).then_some(doubled / 2)?;
    Some(Cell::Inline(reader.bytes(usize::try_from(len).ok()?)?))
}

/// The cell in its own bytes, which were checked.
pub(super) fn decode_cell(bytes: &[u8]) -> Result<Cell<'_>> {
    read_cell(&mut Reader::new(bytes)).ok_or_else(|| damaged("an entry is cut"))
}

/// The bytes of a leaf.
pub(super) fn encode_leaf(cells: &[&[u8]]) -> Vec<u8> {
    let mut page = new_page(0, cells.len(), cells.iter().map(|cell| cell.len()).sum());
    cells.iter().for_each(|cell| page.extend_from_slice(cell));
    page
}

/// A child of an inner node.
#[derive(Clone, Debug)]
pub(super) struct Child<'a> {
    pub(super) id: u32,
    /// Entries under it.
    pub(super) count: u64,
    pub(super) separator: Option<Cow<'a, [u8]>>,
    /// It was written just now and should be merged with a neighbour.
    pub(super) is_small: bool,
}

impl Child<'_> {
    /// Bytes that it takes in its parent.
    pub(super) fn size(&self, ordered: bool) -> usize {
        let separator = match &self.separator {
            Some(separator) => varint_len(separator.len() as u64 + 1) + separator.len(),
            None => usize::from(ordered),
        };
        varint_len(u64::from(self.id)) + varint_len(self.count) + separator
    }
}

/// The bytes of an inner node.
pub(super) fn encode_inner(level: u8, children: &[Child<'_>], ordered: bool) -> Vec<u8> {
    let bytes = children.iter().map(|child| child.size(ordered)).sum();
    let mut page = new_page(level, children.len(), bytes);
    for (at, child) in children.iter().enumerate() {
        put_child(&mut page, child, (ordered, at == 0));
    }
    page
}

/// Appends a child of a node, which is ordered or not, and has it first or not.
pub(super) fn put_child(page: &mut Vec<u8>, child: &Child<'_>, (ordered, is_first): (bool, bool)) {
    put_varint64(page, u64::from(child.id));
    put_varint64(page, child.count);
    match child.separator.as_ref().filter(|_| ordered && !is_first) {
        Some(separator) => {
            put_varint64(page, separator.len() as u64 + 1);
            page.extend_from_slice(separator);
        }
        None if ordered => page.push(0),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `docs/format/redis.md`.
    #[test]
    fn nodes_have_the_bytes_of_the_document() {
        let cells = [&b"a"[..], b"bc"].map(|entry| encode_cell(Cell::Inline(entry)));
        let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
        assert_eq!(encode_leaf(&cells), b"\x00\x02\x02a\x04bc");
        let children = [(1, 70), (2, 3)].map(|(id, count)| Child {
            id,
            count,
            separator: None,
            is_small: false,
        });
        let page = encode_inner(1, &children, false);
        assert_eq!(page, b"\x01\x02\x01\x46\x02\x03");
    }

    #[test]
    fn shares_fit_and_are_even_or_full() {
        let limit = Limit {
            items: 10,
            bytes: 100,
        };
        assert_eq!(share(&[10; 10], limit, Fill::Even), [10]);
        assert_eq!(share(&[5; 11], limit, Fill::Even), [6, 5]);
        assert_eq!(share(&[5; 11], limit, Fill::Front), [10, 1]);
        assert_eq!(share(&[5; 11], limit, Fill::Back), [1, 10]);
        assert_eq!(share(&[30; 4], limit, Fill::Even), [2, 2]);
        assert_eq!(share(&[30; 4], limit, Fill::Front), [3, 1]);
    }
}
