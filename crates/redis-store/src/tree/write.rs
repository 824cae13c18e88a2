//! Writing nodes: what does not fit is shared out, and the root follows.

use std::borrow::Cow;

use super::handle::{Tree, long_key};
use super::node::{
    Cell, Child, Fill, LEVELS_MAX, Limit, Node, damaged, decode_cell, encode_cell, encode_inner,
    encode_leaf, share,
};
use crate::failure::Outcome;
use crate::keyspace::Keyspace;

/// Longer separators are not kept: the first entry of the child serves.
const SEPARATOR_BYTES_MAX: usize = 128;

/// An inner node on the way from the root to a leaf.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) node: Node,
    /// The way goes by its child at this place.
    pub(super) at: usize,
    pub(super) below: Node,
}

/// What stands in the place of a node that was changed.
#[derive(Debug)]
pub(super) enum Below {
    /// Itself, with so many entries.
    Same(u64),
    /// These nodes.
    Nodes(Vec<Child<'static>>),
}

impl Tree {
    /// The tree of `entries`, which come in its order.
    ///
    /// # Errors
    /// The engine's.
    pub fn build<E: AsRef<[u8]>>(
        mut self,
        keyspace: &mut Keyspace<'_>,
        entries: impl IntoIterator<Item = E>,
    ) -> Outcome<Self> {
        assert!(self.is_empty(), "a tree is built from nothing");
        let mut cells = Vec::new();
        for entry in entries {
            cells.push(self.new_cell(keyspace, entry.as_ref()));
        }
        if !cells.is_empty() {
            let cells: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
            let leaves = self.write_leaf(keyspace, &[], &cells, Fill::Front)?;
            self.set_root(keyspace, 0, leaves, Fill::Front)?;
        }
        Ok(self)
    }

    /// The cell of a new entry; a long one is put at once.
    pub(super) fn new_cell(&mut self, keyspace: &mut Keyspace<'_>, entry: &[u8]) -> Vec<u8> {
        if entry.len() <= self.shape.inline_bytes_max {
            return encode_cell(Cell::Inline(entry));
        }
        let number = self.new_long();
        keyspace.sub_put(self.of, &long_key(number), entry.to_vec());
        encode_cell(Cell::Long(number))
    }

    /// The entry of a cell is gone.
    pub(super) fn drop_cell(&self, keyspace: &mut Keyspace<'_>, cell: &[u8]) -> Outcome<()> {
        if let Cell::Long(number) = decode_cell(cell)? {
            keyspace.sub_delete(self.of, &long_key(number));
        }
        Ok(())
    }

    /// Ids for `nodes`: those that are theirs already, and new ones. What is over is deleted.
    fn ids(&mut self, keyspace: &mut Keyspace<'_>, own: &[u32], nodes: usize) -> Outcome<Vec<u32>> {
        let mut ids: Vec<u32> = own.iter().copied().take(nodes).collect();
        for id in own.iter().skip(nodes) {
            keyspace.put_node(self.name(*id), None);
        }
        while ids.len() < nodes {
            ids.push(self.new_node()?);
        }
        Ok(ids)
    }

    /// Writes cells as one leaf or as several, over the nodes `own`. The first one's separator is its place's.
    pub(super) fn write_leaf(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        own: &[u32],
        cells: &[&[u8]],
        fill: Fill,
    ) -> Outcome<Vec<Child<'static>>> {
        let sizes: Vec<usize> = cells.iter().map(|cell| cell.len()).collect();
        let shares = share(&sizes, self.shape.leaf, fill);
        let ids = self.ids(keyspace, own, shares.len())?;
        let mut rest = cells;
        let mut last: Option<&[u8]> = None;
        let mut written = Vec::with_capacity(shares.len());
        for (items, id) in shares.iter().zip(ids) {
            let (part, after) = rest
                .split_at_checked(*items)
                .ok_or_else(|| damaged("shares beyond the cells"))?;
            rest = after;
            keyspace.put_node(self.name(id), Some(encode_leaf(part)));
            let separator = match (last, part.first()) {
                (Some(left), Some(right)) => self.separator(left, right)?,
                _ => None,
            };
            last = part.last().copied();
            let bytes = part.iter().map(|cell| cell.len()).sum();
            let used = Limit {
                items: *items,
                bytes,
            };
            written.push(Child {
                id,
                count: *items as u64,
                separator: separator.map(Cow::Owned),
                is_small: shares.len() == 1 && self.shape.leaf.is_small(used),
            });
        }
        Ok(written)
    }

    /// A separator between two cells, if there is one that is worth keeping.
    fn separator(&self, left: &[u8], right: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let Some(make) = self.shape.separator else {
            return Ok(None);
        };
        Ok(match (decode_cell(left)?, decode_cell(right)?) {
            (Cell::Inline(left), Cell::Inline(right)) => {
                Some(make(left, right)).filter(|made| made.len() <= SEPARATOR_BYTES_MAX)
            }
            _ => None,
        })
    }

    /// Writes children as one inner node or as several, over the nodes `own`.
    pub(super) fn write_inner(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        (own, level): (&[u32], u8),
        children: &[Child<'_>],
        fill: Fill,
    ) -> Outcome<Vec<Child<'static>>> {
        let ordered = self.shape.is_ordered();
        let sizes: Vec<usize> = children.iter().map(|child| child.size(ordered)).collect();
        let shares = share(&sizes, self.shape.inner, fill);
        let ids = self.ids(keyspace, own, shares.len())?;
        let mut rest = children;
        let mut written = Vec::with_capacity(shares.len());
        for (items, id) in shares.iter().zip(ids) {
            let (part, after) = rest
                .split_at_checked(*items)
                .ok_or_else(|| damaged("shares beyond the children"))?;
            rest = after;
            let page = encode_inner(level, part, ordered);
            keyspace.put_node(self.name(id), Some(page));
            let separator = part.first().and_then(|child| child.separator.as_deref());
            let used = Limit {
                items: *items,
                bytes: part.iter().map(|child| child.size(ordered)).sum(),
            };
            written.push(Child {
                id,
                count: part.iter().map(|child| child.count).sum(),
                separator: separator.map(|it| Cow::Owned(it.to_vec())),
                is_small: shares.len() == 1 && self.shape.inner.is_small(used),
            });
        }
        Ok(written)
    }

    /// Has the nodes of `path` follow a change below the last of them: where that left one node, only counts change.
    pub(super) fn climb(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        path: Vec<Step>,
        mut below: Below,
        fill: Fill,
    ) -> Outcome<()> {
        for step in path.into_iter().rev() {
            let Step { node, at, .. } = step;
            below = match below {
                Below::Same(count) if count == step.below.count => return Ok(()),
                Below::Same(count) => {
                    let inner = self.load_inner(keyspace, node)?;
                    let name = self.name(node.id);
                    keyspace.nodes().set_count(name, inner, (at, count))?;
                    let rest = node.count.checked_sub(step.below.count);
                    let rest = rest.ok_or_else(|| damaged("a child with more than its parent"))?;
                    Below::Same(rest + count)
                }
                Below::Nodes(nodes) => {
                    let inner = self.load_inner(keyspace, node)?;
                    let separator = inner.child(at)?.separator.map(<[u8]>::to_vec);
                    let nodes = in_place_of(separator.map(Cow::Owned), nodes);
                    match inner.used_with(at, &nodes)? {
                        Some((count, used)) if self.shape.inner.holds(used) => {
                            let name = self.name(node.id);
                            keyspace.nodes().exchange_child(name, inner, (at, &nodes))?;
                            Below::Same(count)
                        }
                        _ => self.write_over(keyspace, (node, at), nodes, fill)?,
                    }
                }
            };
        }
        match below {
            Below::Same(count) => self.len = count,
            Below::Nodes(nodes) => {
                let level = self.height.saturating_sub(1);
                self.set_root(keyspace, level, nodes, fill)?;
            }
        }
        Ok(())
    }

    /// Writes an inner node anew, with `nodes` in the place of its child at `at`.
    fn write_over(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        (node, at): (Node, usize),
        nodes: Vec<Child<'static>>,
        fill: Fill,
    ) -> Outcome<Below> {
        let inner = self.load_inner(keyspace, node)?;
        let mut children = inner.children()?;
        children.splice(at..=at, nodes);
        let own = (&[node.id][..], node.level);
        let nodes = self.write_inner(keyspace, own, &children, fill)?;
        Ok(match nodes.as_slice() {
            [one] => Below::Same(one.count),
            _ => Below::Nodes(nodes),
        })
    }

    /// The nodes of `level` are these now: a root comes over them, or the last one is it.
    pub(super) fn set_root(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        mut level: u8,
        mut nodes: Vec<Child<'static>>,
        fill: Fill,
    ) -> Outcome<()> {
        while nodes.len() > 1 {
            level += 1;
            if level >= LEVELS_MAX {
                return Err(damaged("too many levels").into());
            }
            nodes = self.write_inner(keyspace, (&[], level), &nodes, fill)?;
        }
        match nodes.pop() {
            Some(root) => (self.root, self.height, self.len) = (root.id, level + 1, root.count),
            None => (self.root, self.height, self.len) = (0, 0, 0),
        }
        Ok(())
    }

    /// A root with one child gives its place to that.
    pub(super) fn lower_root(&mut self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        while let Some(node) = self.root_node().filter(|node| node.level > 0) {
            let inner = self.load_inner(keyspace, node)?;
            if inner.len() > 1 {
                break;
            }
            self.delete_node(keyspace, node);
            (self.root, self.height) = (inner.below(0)?.id, node.level);
        }
        Ok(())
    }

    pub(super) fn delete_node(&self, keyspace: &mut Keyspace<'_>, node: Node) {
        keyspace.put_node(self.name(node.id), None);
    }
}

/// `nodes` in the place of one whose separator was `separator`.
pub(super) fn in_place_of<'a>(
    separator: Option<Cow<'a, [u8]>>,
    nodes: Vec<Child<'static>>,
) -> Vec<Child<'a>> {
    let mut nodes: Vec<Child<'a>> = nodes;
    if let Some(first) = nodes.first_mut() {
        first.separator = separator;
    }
    nodes
}
