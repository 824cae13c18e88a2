//! Many searches of one tree, taken in turns.
//!
//! A search waits for memory once a level, each time for a node that the one before led to. Here each
//! of up to [`LANES`] searches goes down one level, asks for the lines of the node below, and lets the
//! others go, so that they wait together. The protocol is that of [`Tree::find`]: a child counts only
//! if its parent is still unchanged once the child's version is noted. A search that finds otherwise
//! is done alone afterwards.
//!
//! Thread safety: as the tree's readers.

use crate::entry::Entry;
use crate::node::{NodeRef, Rank};
use crate::probe::Probe;
use crate::tree::{Position, Tree};
use drumlin_base::bytes::prefetch;

/// Searches taken in turns at most: more than the processor has misses in flight.
pub(crate) const LANES: usize = 32;
/// Lines asked for of the entry a search ends on: header, key, and the value's beginning.
const ENTRY_LINES: usize = 2;

/// One search on its way.
struct Descent<'a> {
    probe: Probe<'a>,
    state: State<'a>,
}

#[derive(Clone, Copy)]
enum State<'a> {
    /// At a node with the version noted, about to look for the child.
    At(NodeRef<'a>, u64),
    /// The child is known and asked for, its version not noted yet.
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
    /// Goes on to the next wait; false when there is none.
    #[inline]
    fn advance(&mut self) -> bool {
        if let State::Between { parent, child } = self.state {
            let version = child.read_version();
            let (parent, parent_version) = parent;
            self.state = match parent.unchanged(parent_version) {
                true => State::At(child, version),
                false => State::Lost,
            };
        }
        let State::At(node, version) = self.state else {
            return false;
        };
        self.state = self.go_on(node, version);
        matches!(self.state, State::Between { .. })
    }

    #[inline]
    fn go_on(&self, node: NodeRef<'a>, version: u64) -> State<'a> {
        if node.is_leaf() {
            let place = node.rank(&self.probe, false);
            if let Some(entry) = node.entry_if_used(place.rank).filter(|_| place.tied) {
                prefetch(Entry::pointer(entry).cast_const(), ENTRY_LINES);
            }
            return State::Landed(node, version, place);
        }
        // Through: keys equal to a separator are to its right.
        let rank = node.rank(&self.probe, true).rank;
        let Some(child) = node.child(rank) else {
            return State::Lost;
        };
        child.prefetch();
        let parent = (node, version);
        State::Between { parent, child }
    }
}

impl Tree {
    /// What [`Tree::find`] answers for each of `keys`, at most [`LANES`], in their order.
    pub(crate) fn find_each<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]> + Clone,
        tag: u64,
    ) -> [Position; LANES] {
        let mut descents = [const { None }; LANES];
        for (descent, key) in descents.iter_mut().zip(keys.clone()) {
            let state = match self.enter() {
                Some((root, version)) => State::At(root, version),
                None => State::Lost,
            };
            let probe = self.probe(key, tag);
            *descent = Some(Descent { probe, state });
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
            let landed = match descent.map(|descent| descent.state) {
                Some(State::Landed(leaf, version, place)) => Self::found(leaf, version, place),
                _ => None,
            };
            *found = landed.unwrap_or_else(|| self.find(key, tag));
        }
        found
    }
}
