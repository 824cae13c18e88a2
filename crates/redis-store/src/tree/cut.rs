//! Removal of ranks: whole subtrees without a look at their leaves, and the two paths at the ends.

use std::cmp::Ordering;
use std::ops::Range;

use super::handle::{Tree, beyond};
use super::node::{Child, Fill, Node, damaged};
use super::write::{Below, Step, in_place_of};
use crate::failure::Outcome;
use crate::keyspace::Keyspace;

/// Cells of a leaf, and the way to it.
struct Found {
    path: Vec<Step>,
    node: Node,
    cells: Range<usize>,
    /// The leaf is the first or the last one.
    is_at_an_end: bool,
}

impl Tree {
    /// Removes the entry at `rank`.
    ///
    /// # Errors
    /// `InvalidArgument` where there is none; `Cold`; corruption.
    pub fn remove_at(&mut self, keyspace: &mut Keyspace<'_>, rank: u64) -> Outcome<()> {
        self.remove(keyspace, rank..rank.saturating_add(1))
    }

    /// Removes the entry at `rank` and returns it.
    ///
    /// # Errors
    /// As [`Tree::remove_at`].
    pub fn take_at(&mut self, keyspace: &mut Keyspace<'_>, rank: u64) -> Outcome<Vec<u8>> {
        let mut taken = Vec::new();
        let ranks = rank..rank.saturating_add(1);
        if rank < self.len && self.cut_in_one_leaf(keyspace, &ranks, Some(&mut taken))? {
            return Ok(taken);
        }
        let entry = self.get(keyspace, rank)?;
        let entry = entry.ok_or_else(|| beyond(rank, self.len))?;
        self.remove(keyspace, ranks)?;
        Ok(entry)
    }

    /// Removes the entries of `ranks`.
    ///
    /// # Errors
    /// `InvalidArgument` where there are none; `Cold`; corruption.
    pub fn remove(&mut self, keyspace: &mut Keyspace<'_>, ranks: Range<u64>) -> Outcome<()> {
        if ranks.end > self.len {
            return Err(beyond(ranks.end, self.len));
        }
        let Some(root) = self.root_node().filter(|_| !ranks.is_empty()) else {
            return Ok(());
        };
        if self.cut_in_one_leaf(keyspace, &ranks, None)? {
            return Ok(());
        }
        let nodes = self.cut(keyspace, root, ranks)?;
        self.set_root(keyspace, root.level, nodes, Fill::Even)?;
        self.lower_root(keyspace)
    }

    /// Removes the entry of an ordered tree that `compare` finds equal, on one way down, if [`Tree::cut_cells`] can; whether it
    /// did. `compare` tells how others compare with it.
    ///
    /// # Errors
    /// `Cold`; corruption.
    pub fn remove_found(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        mut compare: impl FnMut(&[u8]) -> Ordering,
    ) -> Outcome<bool> {
        let Some(mut node) = self.root_node() else {
            return Ok(false);
        };
        let (mut is_first, mut is_last) = (true, true);
        let mut path = Vec::with_capacity(usize::from(node.level));
        while node.level > 0 {
            let inner = self.load_inner(keyspace, node)?;
            let at = self.child_of_order(keyspace, &inner, &mut |it| compare(it).is_lt())?;
            let below = inner.below(at)?;
            (is_first, is_last) = (is_first && at == 0, is_last && at + 1 == inner.len());
            path.push(Step { node, at, below });
            node = below;
        }
        let leaf = self.load_leaf(keyspace, node)?;
        let at = self.place_of_order(keyspace, &leaf, &mut |it| compare(it).is_lt())?;
        if at >= leaf.len() || !self.entry(keyspace, &leaf, at, |it| compare(it).is_eq())? {
            return Ok(false);
        }
        drop(leaf);
        let found = Found {
            path,
            node,
            cells: at..at + 1,
            is_at_an_end: is_first || is_last,
        };
        self.cut_cells(keyspace, found, None)
    }

    /// Removes the entries of `ranks` if they are in one leaf and [`Tree::cut_cells`] can; whether it did. Their bytes are
    /// appended to `taken`.
    fn cut_in_one_leaf(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        ranks: &Range<u64>,
        taken: Option<&mut Vec<u8>>,
    ) -> Outcome<bool> {
        let Some(mut node) = self.root_node() else {
            return Ok(false);
        };
        let (mut from, entries) = (ranks.start, ranks.end - ranks.start);
        let (mut is_first, mut is_last) = (true, true);
        let mut path = Vec::with_capacity(usize::from(node.level));
        while node.level > 0 {
            let inner = self.load_inner(keyspace, node)?;
            let (at, before) = inner.child_of_rank(from)?;
            let below = inner.below(at)?;
            from -= before;
            if from + entries > below.count {
                return Ok(false);
            }
            (is_first, is_last) = (is_first && at == 0, is_last && at + 1 == inner.len());
            path.push(Step { node, at, below });
            node = below;
        }
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let until = from.saturating_add(usize::try_from(entries).unwrap_or(usize::MAX));
        let found = Found {
            path,
            node,
            cells: from..until,
            is_at_an_end: is_first || is_last,
        };
        self.cut_cells(keyspace, found, taken)
    }

    /// Whether an inner node can do without its child on the way, in place.
    fn parent_stays(&self, keyspace: &Keyspace<'_>, parent: Option<&Step>) -> Outcome<bool> {
        let Some(Step { node, at, .. }) = parent else {
            return Ok(false);
        };
        let inner = self.load_inner(keyspace, *node)?;
        Ok(inner.used_with(*at, &[])?.is_some())
    }

    /// Removes cells of a leaf, which does not become empty by that, nor small, but at the ends: there a queue takes entry after
    /// entry, and the leaf will soon be gone, or is now; whether it did. Their entries are appended to `taken`.
    fn cut_cells(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        found: Found,
        mut taken: Option<&mut Vec<u8>>,
    ) -> Outcome<bool> {
        let Found {
            path, node, cells, ..
        } = found;
        let leaf = self.load_leaf(keyspace, node)?;
        let limit = self.shape.leaf;
        let Some(left) = leaf.used_with(cells.clone(), None)? else {
            return Ok(false);
        };
        let drops_leaf =
            left.items == 0 && found.is_at_an_end && self.parent_stays(keyspace, path.last())?;
        let leaves_none = left.items == 0 && !drops_leaf;
        if leaves_none || (limit.is_small(left) && !found.is_at_an_end) {
            return Ok(false);
        }
        for at in cells.clone() {
            if let Some(taken) = &mut taken {
                self.entry(keyspace, &leaf, at, |entry| taken.extend_from_slice(entry))?;
            }
            self.drop_cell(keyspace, leaf.bytes(at)?)?;
        }
        if drops_leaf {
            self.delete_node(keyspace, node);
            self.climb(keyspace, path, Below::Nodes(Vec::new()), Fill::Even)?;
            self.lower_root(keyspace)?;
            return Ok(true);
        }
        let name = self.name(node.id);
        keyspace.nodes().exchange_cells(name, leaf, cells, None)?;
        let below = Below::Same(left.items as u64);
        self.climb(keyspace, path, below, Fill::Even)?;
        Ok(true)
    }

    /// Removes the entries of `ranks` below `node`, and returns what stands in its place then. Recursive: a node's level is
    /// one less than its parent's.
    fn cut(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        node: Node,
        ranks: Range<u64>,
    ) -> Outcome<Vec<Child<'static>>> {
        if ranks.start == 0 && ranks.end >= node.count {
            self.drop_below(keyspace, node)?;
            return Ok(Vec::new());
        }
        if node.level == 0 {
            return self.cut_leaf(keyspace, node, &ranks);
        }
        let inner = self.load_inner(keyspace, node)?;
        let children = inner.children()?;
        let mut left = Vec::with_capacity(children.len());
        let mut before = 0;
        for child in &children {
            let from = ranks.start.saturating_sub(before).min(child.count);
            let until = ranks.end.saturating_sub(before).min(child.count);
            before += child.count;
            if from >= until {
                left.push(child.clone());
                continue;
            }
            let nodes = self.cut(keyspace, at_level(node.level - 1, child), from..until)?;
            left.extend(in_place_of(child.separator.clone(), nodes));
        }
        self.merge_small(keyspace, node.level - 1, &mut left)?;
        self.write_inner(keyspace, (&[node.id], node.level), &left, Fill::Even)
    }

    fn cut_leaf(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        node: Node,
        ranks: &Range<u64>,
    ) -> Outcome<Vec<Child<'static>>> {
        let leaf = self.load_leaf(keyspace, node)?;
        let mut cells = leaf.cells()?;
        let (from, until) = (usize::try_from(ranks.start), usize::try_from(ranks.end));
        let range = match (from, until) {
            (Ok(from), Ok(until)) if until <= cells.len() => from..until,
            _ => return Err(damaged("ranks beyond a leaf").into()),
        };
        for cell in cells.drain(range) {
            self.drop_cell(keyspace, cell)?;
        }
        self.write_leaf(keyspace, &[node.id], &cells, Fill::Even)
    }

    /// Deletes `node` with all that is below it. Leaves are read only where long entries may have to be deleted.
    fn drop_below(&self, keyspace: &mut Keyspace<'_>, node: Node) -> Outcome<()> {
        if node.level > 0 {
            let inner = self.load_inner(keyspace, node)?;
            for at in 0..inner.len() {
                self.drop_below(keyspace, inner.below(at)?)?;
            }
        } else if self.had_long_entries() && !drumlin_base::bug!("redis-tree-leaves-long-entries") {
            let leaf = self.load_leaf(keyspace, node)?;
            for cell in leaf.cells()? {
                self.drop_cell(keyspace, cell)?;
            }
        }
        self.delete_node(keyspace, node);
        Ok(())
    }

    /// Merges nodes of `level` that have become small with a neighbour, or shares out evenly what both hold.
    fn merge_small(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        level: u8,
        nodes: &mut Vec<Child<'_>>,
    ) -> Outcome<()> {
        while let Some(small) = nodes.iter().position(|node| node.is_small) {
            let left = small.min(nodes.len().saturating_sub(2));
            let Some([one, other]) = nodes.get(left..left + 2) else {
                break;
            };
            let separator = one.separator.clone();
            let merged = match level {
                0 => self.merge_leaves(keyspace, one, other)?,
                _ => self.merge_inners(keyspace, level, one, other)?,
            };
            nodes.splice(left..left + 2, in_place_of(separator, merged));
        }
        Ok(())
    }

    fn merge_leaves(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        one: &Child<'_>,
        other: &Child<'_>,
    ) -> Outcome<Vec<Child<'static>>> {
        let left = self.load_leaf(keyspace, at_level(0, one))?;
        let right = self.load_leaf(keyspace, at_level(0, other))?;
        let cells = [left.cells()?, right.cells()?].concat();
        self.write_leaf(keyspace, &[one.id, other.id], &cells, Fill::Even)
    }

    fn merge_inners(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        level: u8,
        one: &Child<'_>,
        other: &Child<'_>,
    ) -> Outcome<Vec<Child<'static>>> {
        let (left, right) = (at_level(level, one), at_level(level, other));
        let left = self.load_inner(keyspace, left)?;
        let right = self.load_inner(keyspace, right)?;
        let mut children = left.children()?;
        let mut behind = right.children()?;
        if let Some(first) = behind.first_mut() {
            first.separator.clone_from(&other.separator);
        }
        children.append(&mut behind);
        let own = [one.id, other.id];
        self.write_inner(keyspace, (&own, level), &children, Fill::Even)
    }
}

fn at_level(level: u8, child: &Child<'_>) -> Node {
    Node {
        id: child.id,
        level,
        count: child.count,
    }
}
