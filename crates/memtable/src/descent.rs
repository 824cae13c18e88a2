//! Many searches of one tree, interleaved.
//!
//! A search waits for memory once a level, each time for a node that the one before led to. Here up to
//! [`LANES`] searches take turns, so that they wait together:
//!
//! ```text
//! for each level: for each search: choose the child, prefetch its cache lines
//! ```
//!
//! The protocol is that of [`Tree::find`]: a child counts only if its parent is unchanged once the child's
//! version is noted. A search that finds otherwise is repeated alone afterwards.
//!
//! Thread safety: as the tree's readers.

use crate::entry::Entry;
use crate::node::{NodeRef, Rank};
use crate::probe::Probe;
use crate::tree::{Position, Tree};
use drumlin_base::bytes::prefetch;

/// Most searches that take turns: more than the processor has misses in flight.
pub(crate) const LANES: usize = 32;
/// Lines prefetched of the entry a search ends on: header, key, and the value's beginning.
const ENTRY_LINES: usize = 2;

/// One search in progress.
struct Descent<'a> {
    probe: Probe<'a>,
    step: DescentStep<'a>,
}

#[derive(Clone, Copy)]
enum DescentStep<'a> {
    /// At a node whose version is noted, about to choose the child.
    At(NodeRef<'a>, u64),
    /// The child is known and prefetched, its version not noted yet.
    Between {
        parent: (NodeRef<'a>, u64),
        child: NodeRef<'a>,
    },
    /// In a leaf.
    Landed(NodeRef<'a>, u64, Rank),
    /// Something changed on the way.
    Lost,
}

impl<'a> Descent<'a> {
    /// Advances to the next wait; false when there is none.
    #[inline]
    fn advance(&mut self) -> bool {
        if let DescentStep::Between { parent, child } = self.step {
            let version = child.read_version();
            let (parent, parent_version) = parent;
            self.step = match parent.unchanged(parent_version) {
                true => DescentStep::At(child, version),
                false => DescentStep::Lost,
            };
        }
        let DescentStep::At(node, version) = self.step else {
            return false;
        };
        self.step = self.go_on(node, version);
        matches!(self.step, DescentStep::Between { .. })
    }

    #[inline]
    fn go_on(&self, node: NodeRef<'a>, version: u64) -> DescentStep<'a> {
        if node.is_leaf() {
            let place = node.rank(&self.probe, false);
            if let Some(entry) = node.entry_if_used(place.rank).filter(|_| place.tied) {
                prefetch(Entry::pointer(entry).cast_const(), ENTRY_LINES);
            }
            return DescentStep::Landed(node, version, place);
        }
        // Through: keys equal to a separator are to its right.
        let rank = node.rank(&self.probe, true).rank;
        let Some(child) = node.child(rank) else {
            return DescentStep::Lost;
        };
        child.prefetch();
        let parent = (node, version);
        DescentStep::Between { parent, child }
    }
}

impl Tree {
    /// The answers of [`Tree::find`] for each of `keys`, at most [`LANES`], in their order.
    pub(crate) fn find_each<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]> + Clone,
        tag: u64,
    ) -> [Position; LANES] {
        let mut descents = [const { None }; LANES];
        for (descent, key) in descents.iter_mut().zip(keys.clone()) {
            let step = match self.enter() {
                Some((root, version)) => DescentStep::At(root, version),
                None => DescentStep::Lost,
            };
            let probe = self.probe(key, tag);
            *descent = Some(Descent { probe, step });
        }
        let mut is_waiting = true;
        while is_waiting {
            is_waiting = false;
            for descent in descents.iter_mut().map_while(Option::as_mut) {
                is_waiting |= descent.advance();
            }
        }
        let mut found = [Position::END; LANES];
        for ((found, descent), key) in found.iter_mut().zip(descents).zip(keys) {
            let landed = match descent.map(|descent| descent.step) {
                Some(DescentStep::Landed(leaf, version, place)) => {
                    Self::found(leaf, version, place)
                }
                _ => None,
            };
            *found = landed.unwrap_or_else(|| self.find(key, tag));
        }
        found
    }
}
