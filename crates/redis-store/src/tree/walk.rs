//! A walk over a tree from a rank on, leaf by leaf.

use std::fmt;
use std::sync::Arc;

use drumlin_base::PinnedSlice;

use super::handle::Tree;
use super::leaf::Leaf;
use super::node::Cell;
use crate::failure::Outcome;
use crate::keyspace::Keyspace;
use crate::walk::Direction;

/// See the module. Each leaf is found from the root: the inner nodes are in memory then.
pub struct TreeWalk<'t> {
    tree: &'t Tree,
    keyspace: &'t Keyspace<'t>,
    direction: Direction,
    /// The rank of the next entry; `None` beyond the ends.
    rank: Option<u64>,
    /// The leaf that has it, and where.
    leaf: Option<(Arc<Leaf>, usize)>,
    long: PinnedSlice,
}

impl fmt::Debug for TreeWalk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeWalk({:?} {:?})", self.rank, self.direction)
    }
}

impl Tree {
    /// A walk that begins with the entry at `rank`.
    pub fn walk<'t>(
        &'t self,
        keyspace: &'t Keyspace<'t>,
        rank: u64,
        direction: Direction,
    ) -> TreeWalk<'t> {
        TreeWalk {
            tree: self,
            keyspace,
            direction,
            rank: Some(rank).filter(|rank| *rank < self.len),
            leaf: None,
            long: PinnedSlice::default(),
        }
    }
}

impl TreeWalk<'_> {
    /// The next entry, which the call after this one overwrites.
    ///
    /// # Errors
    /// `Cold`; corruption.
    #[expect(
        clippy::should_implement_trait,
        reason = "the entry is lent until the next call"
    )]
    pub fn next(&mut self) -> Outcome<Option<&[u8]>> {
        let Some(rank) = self.rank else {
            return Ok(None);
        };
        let moved = self.leaf.take().and_then(|(leaf, at)| {
            let at = match self.direction {
                Direction::Forward => at.checked_add(1).filter(|at| *at < leaf.len()),
                Direction::Backward => at.checked_sub(1),
            };
            Some((leaf, at?))
        });
        let found = match moved {
            Some(found) => found,
            None => self.tree.find(self.keyspace, rank)?,
        };
        self.rank = match self.direction {
            Direction::Forward => Some(rank + 1).filter(|rank| *rank < self.tree.len()),
            Direction::Backward => rank.checked_sub(1),
        };
        let (leaf, at) = self.leaf.insert(found);
        Ok(Some(match leaf.cell(*at)? {
            Cell::Inline(entry) => entry,
            Cell::Long(number) => {
                self.long = self.tree.long_entry(self.keyspace, number)?;
                &self.long
            }
        }))
    }
}
