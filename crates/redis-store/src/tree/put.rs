//! Insertion and replacement: one path.

use std::cmp::Ordering;

use super::handle::{Tree, beyond};
use super::node::{Child, Fill, Node, damaged};
use super::write::{Below, Step};
use crate::failure::Outcome;
use crate::keyspace::Keyspace;

/// Where an entry goes.
enum Place<'q> {
    /// Before the entry that has this rank below the present node.
    Rank(u64),
    /// Over that entry.
    Over(u64),
    /// Behind all that are before it in the order.
    Order(&'q mut dyn FnMut(&[u8]) -> bool),
}

struct Put<'q> {
    place: Place<'q>,
    cell: Vec<u8>,
    /// The path has been the first, the last child of each node so far.
    is_first: bool,
    is_last: bool,
}

impl Put<'_> {
    fn new(place: Place<'_>, cell: Vec<u8>) -> Put<'_> {
        Put {
            place,
            cell,
            is_first: true,
            is_last: true,
        }
    }

    fn fill(&self) -> Fill {
        match (self.is_first, self.is_last) {
            (_, true) => Fill::Front,
            (true, false) => Fill::Back,
            (false, false) => Fill::Even,
        }
    }

    fn went_to(&mut self, is_first: bool, is_last: bool) {
        self.is_first &= is_first;
        self.is_last &= is_last;
    }
}

impl Tree {
    /// Inserts an entry before that of `rank`, or at the end, if `rank` is the length.
    ///
    /// # Errors
    /// `InvalidArgument` where `rank` is over the length; `Cold`; corruption.
    pub fn insert_at(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        rank: u64,
        entry: &[u8],
    ) -> Outcome<()> {
        if rank > self.len {
            return Err(beyond(rank, self.len));
        }
        let cell = self.new_cell(keyspace, entry);
        self.put(keyspace, Put::new(Place::Rank(rank), cell))
    }

    /// Inserts an entry behind those that `is_before` it, as [`Tree::rank`] asks.
    ///
    /// # Errors
    /// `Cold`; corruption.
    pub fn insert(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        entry: &[u8],
        mut is_before: impl FnMut(&[u8]) -> bool,
    ) -> Outcome<()> {
        let cell = self.new_cell(keyspace, entry);
        self.put(keyspace, Put::new(Place::Order(&mut is_before), cell))
    }

    /// Puts `entry` in the place of that of `rank`. In an ordered tree it must have the same place in the order.
    ///
    /// # Errors
    /// `InvalidArgument` where there is none; `Cold`; corruption.
    pub fn replace_at(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        rank: u64,
        entry: &[u8],
    ) -> Outcome<()> {
        if rank >= self.len {
            return Err(beyond(rank, self.len));
        }
        let cell = self.new_cell(keyspace, entry);
        self.put(keyspace, Put::new(Place::Over(rank), cell))
    }

    /// Puts `entry` in the place of one of the same length if both places are in one leaf, whose parents then stay as they
    /// are; else changes nothing. `compare` tells how others compare with the old entry, `is_before` as [`Tree::rank`] asks
    /// for the new one.
    ///
    /// # Errors
    /// `Cold`; corruption.
    pub fn move_in_leaf(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        mut compare: impl FnMut(&[u8]) -> Ordering,
        entry: &[u8],
        mut is_before: impl FnMut(&[u8]) -> bool,
    ) -> Outcome<bool> {
        let Some(mut node) = self.root_node() else {
            return Ok(false);
        };
        while node.level > 0 {
            let inner = self.load_inner(keyspace, node)?;
            let at = self.child_of_order(keyspace, &inner, &mut |it| compare(it).is_lt())?;
            if self.child_of_order(keyspace, &inner, &mut is_before)? != at {
                return Ok(false);
            }
            node = inner.below(at)?;
        }
        let leaf = self.load_leaf(keyspace, node)?;
        let from = self.place_of_order(keyspace, &leaf, &mut |it| compare(it).is_lt())?;
        let fits = from < leaf.len()
            && self.entry(keyspace, &leaf, from, |it| {
                compare(it).is_eq() && it.len() == entry.len()
            })?;
        if !fits {
            return Ok(false);
        }
        let to = self.place_of_order(keyspace, &leaf, &mut is_before)?;
        if leaf.used_with(from..from, None)?.is_none() {
            return Ok(false);
        }
        self.drop_cell(keyspace, leaf.bytes(from)?)?;
        let cell = self.new_cell(keyspace, entry);
        // As large as it was: it is not shared out.
        let (name, to) = (self.name(node.id), to - usize::from(to > from));
        let nodes = &mut *keyspace.nodes();
        if to == from {
            nodes.exchange_cells(name, leaf, from..from + 1, Some(&cell))?;
        } else {
            nodes.exchange_cells(name, leaf, from..from + 1, None)?;
            if let Some(leaf) = nodes.leaf(name) {
                nodes.exchange_cells(name, leaf, to..to, Some(&cell))?;
            }
        }
        Ok(true)
    }

    fn put(&mut self, keyspace: &mut Keyspace<'_>, mut put: Put<'_>) -> Outcome<()> {
        let Some(mut node) = self.root_node() else {
            let nodes = self.write_leaf(keyspace, &[], &[&put.cell], Fill::Front)?;
            return self.set_root(keyspace, 0, nodes, Fill::Front);
        };
        let mut path = Vec::with_capacity(usize::from(node.level));
        while node.level > 0 {
            let inner = self.load_inner(keyspace, node)?;
            let at = match &mut put.place {
                Place::Rank(rank) | Place::Over(rank) => {
                    let (at, before) = inner.child_of_rank(*rank)?;
                    *rank -= before;
                    at
                }
                Place::Order(is_before) => self.child_of_order(keyspace, &inner, is_before)?,
            };
            put.went_to(at == 0, at + 1 == inner.len());
            let below = inner.below(at)?;
            path.push(Step { node, at, below });
            node = below;
        }
        let below = self.put_in_leaf(keyspace, node, &mut put)?;
        self.climb(keyspace, path, below, put.fill())
    }

    /// Puts the cell of an entry before the first one of a list, or behind the last, in a leaf of its own: that which is full
    /// stays as it is. Both leaves.
    fn put_beside(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        full: Node,
        put: &Put<'_>,
    ) -> Outcome<Vec<Child<'static>>> {
        let full = Child {
            id: full.id,
            count: full.count,
            separator: None,
            is_small: false,
        };
        let mut nodes = self.write_leaf(keyspace, &[], &[&put.cell], Fill::Front)?;
        nodes.insert(if put.is_last { 0 } else { nodes.len() }, full);
        Ok(nodes)
    }

    fn put_in_leaf(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        node: Node,
        put: &mut Put<'_>,
    ) -> Outcome<Below> {
        let leaf = self.load_leaf(keyspace, node)?;
        let at = match &mut put.place {
            Place::Rank(rank) | Place::Over(rank) => usize::try_from(*rank).unwrap_or(usize::MAX),
            Place::Order(is_before) => self.place_of_order(keyspace, &leaf, *is_before)?,
        };
        put.went_to(at == 0, at == leaf.len());
        let over = match put.place {
            Place::Over(_) => {
                self.drop_cell(keyspace, leaf.bytes(at)?)?;
                at..at + 1
            }
            Place::Rank(_) | Place::Order(_) if at <= leaf.len() => at..at,
            Place::Rank(_) | Place::Order(_) => return Err(damaged("a rank beyond a leaf").into()),
        };
        let count = node.count + u64::from(over.is_empty());
        let used = leaf.used_with(over.clone(), Some(put.cell.len()))?;
        if used.is_some_and(|used| self.shape.leaf.holds(used)) {
            let (name, cell) = (self.name(node.id), Some(put.cell.as_slice()));
            keyspace.nodes().exchange_cells(name, leaf, over, cell)?;
            return Ok(Below::Same(count));
        }
        if !self.shape.is_ordered() && over.is_empty() && (put.is_first || put.is_last) {
            return Ok(Below::Nodes(self.put_beside(keyspace, node, put)?));
        }
        let mut cells = leaf.cells()?;
        cells.splice(over, [put.cell.as_slice()]);
        let nodes = self.write_leaf(keyspace, &[node.id], &cells, put.fill())?;
        Ok(Below::Nodes(nodes))
    }
}
