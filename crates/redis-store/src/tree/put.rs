//! Insertion and replacement: one path.

use std::cmp::Ordering;

use super::handle::{Node, Tree, below, beyond, child_of_rank, node_key};
use super::node::{Child, Fill, damaged, encode_leaf};
use super::write::in_place_of;
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

    fn went_to(&mut self, at: usize, last: usize) {
        self.is_first &= at == 0;
        self.is_last &= at == last;
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
            let page = self.load(keyspace, node)?;
            let children = self.children(&page, node)?;
            let of = (node, children.as_slice());
            let at = self.child_of_order(keyspace, of, &mut |it| compare(it).is_lt())?;
            if self.child_of_order(keyspace, of, &mut is_before)? != at {
                return Ok(false);
            }
            node = below(node, &children, at)?;
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
        let mut cells = leaf.cells()?;
        self.drop_cell(keyspace, cells.remove(from))?;
        let cell = self.new_cell(keyspace, entry);
        cells.insert(to - usize::from(to > from), &cell);
        // As large as it was: it is not shared out.
        keyspace.sub_put(self.of, &node_key(node.id), encode_leaf(&cells));
        Ok(true)
    }

    fn put(&mut self, keyspace: &mut Keyspace<'_>, mut put: Put<'_>) -> Outcome<()> {
        let (level, nodes) = match self.root_node() {
            Some(root) => (root.level, self.put_below(keyspace, root, &mut put)?),
            None => (
                0,
                self.write_leaf(keyspace, &[], &[&put.cell], Fill::Front)?,
            ),
        };
        self.set_root(keyspace, level, nodes, put.fill())
    }

    /// Returns what stands in the place of `node` then. Recursive: a node's level is one less than its parent's.
    fn put_below(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        node: Node,
        put: &mut Put<'_>,
    ) -> Outcome<Vec<Child<'static>>> {
        if node.level == 0 {
            return self.put_in_leaf(keyspace, node, put);
        }
        let page = self.load(keyspace, node)?;
        let mut children = self.children(&page, node)?;
        let at = match &mut put.place {
            Place::Rank(rank) | Place::Over(rank) => {
                let (at, before) = child_of_rank(&children, *rank)?;
                *rank -= before;
                at
            }
            Place::Order(is_before) => {
                self.child_of_order(keyspace, (node, &children), is_before)?
            }
        };
        put.went_to(at, children.len() - 1);
        let child = below(node, &children, at)?;
        let separator = children.get(at).and_then(|child| child.separator.clone());
        let nodes = self.put_below(keyspace, child, put)?;
        children.splice(at..=at, in_place_of(separator, nodes));
        self.write_inner(keyspace, (&[node.id], node.level), &children, put.fill())
    }

    fn put_in_leaf(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        node: Node,
        put: &mut Put<'_>,
    ) -> Outcome<Vec<Child<'static>>> {
        let leaf = self.load_leaf(keyspace, node)?;
        let mut cells = leaf.cells()?;
        let at = match &mut put.place {
            Place::Rank(rank) | Place::Over(rank) => usize::try_from(*rank).unwrap_or(usize::MAX),
            Place::Order(is_before) => self.place_of_order(keyspace, &leaf, *is_before)?,
        };
        put.went_to(at, cells.len());
        match put.place {
            Place::Over(_) => {
                let cell = cells.get_mut(at);
                let cell = cell.ok_or_else(|| damaged("a rank beyond a leaf"))?;
                self.drop_cell(keyspace, cell)?;
                *cell = &put.cell;
            }
            Place::Rank(_) | Place::Order(_) if at <= cells.len() => cells.insert(at, &put.cell),
            Place::Rank(_) | Place::Order(_) => return Err(damaged("a rank beyond a leaf").into()),
        }
        let fill = put.fill();
        self.write_leaf(keyspace, &[node.id], &cells, fill)
    }
}
