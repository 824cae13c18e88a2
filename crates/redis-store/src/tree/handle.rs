//! The handle of a tree, and finding things in it.

use std::sync::Arc;

use drumlin_base::coding::{Reader, put_varint64};
use drumlin_base::{Error, PinnedSlice, Result};

use super::inner::Inner;
use super::leaf::Leaf;
use super::node::{Cell, LEVELS_MAX, Limit, Node, damaged};
use super::nodes::NodeName;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Keyspace;
use crate::record::Collection;

const LONG: u8 = b'l';
/// Lengths and numbers of long entries stay below.
const NUMBER_MAX: u64 = 1 << 62;

/// Something short between two entries that follow one another: above the first, or equal, and not above the second.
pub type Separator = fn(&[u8], &[u8]) -> Vec<u8>;

/// How large nodes grow, and whether the entries have an order. All trees of a type have the same one for ever.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Entries in a leaf.
    pub leaf: Limit,
    /// Children in an inner node.
    pub inner: Limit,
    /// Bytes of an entry that its leaf still has.
    pub inline_bytes_max: usize,
    /// Of an ordered tree.
    pub separator: Option<Separator>,
}

impl Shape {
    /// Of lists: entries are found by rank.
    pub const BY_RANK: Self = Self {
        leaf: Limit {
            items: 64,
            bytes: 2 << 10,
        },
        inner: Limit {
            items: 64,
            bytes: 2 << 10,
        },
        inline_bytes_max: 512,
        separator: None,
    };

    /// Entries have an order. Separators are as long as entries are at most, if `separator` cannot do better; over
    /// 128 bytes they are not kept.
    pub const fn ordered(separator: Separator) -> Self {
        Self {
            leaf: Limit {
                items: 64,
                bytes: 1 << 10,
            },
            separator: Some(separator),
            ..Self::BY_RANK
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.separator.is_some()
    }
}

/// A counted tree under a collection; see the module. The handle of a tree that was changed has to be stored again.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(super) of: Collection,
    pub(super) shape: Shape,
    pub(super) root: u32,
    /// Levels of nodes; none in an empty tree.
    pub(super) height: u8,
    next_node: u32,
    next_long: u64,
    pub(super) len: u64,
}

impl Tree {
    /// An empty one.
    pub fn new(of: Collection, shape: Shape) -> Self {
        Self {
            of,
            shape,
            root: 0,
            height: 0,
            next_node: 1,
            next_long: 0,
            len: 0,
        }
    }

    /// The tree whose handle is next in `reader`.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(of: Collection, shape: Shape, reader: &mut Reader<'_>) -> Result<Self> {
        let mut read = || {
            Some(Self {
                of,
                shape,
                height: reader.u8()?,
                root: reader.varint32()?,
                next_node: reader.varint32()?,
                next_long: reader.varint64()?,
                len: reader.varint64()?,
            })
        };
        let tree = read().ok_or_else(|| damaged("its handle is not whole"))?;
        let agrees = match tree.height {
            0 => tree.len == 0,
            height => height <= LEVELS_MAX && tree.len > 0 && tree.root < tree.next_node,
        } && tree.next_long.max(tree.len) < NUMBER_MAX;
        match agrees {
            true => Ok(tree),
            false => Err(damaged("its handle contradicts itself")),
        }
    }

    /// Appends the handle.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.height);
        put_varint64(out, u64::from(self.root));
        put_varint64(out, u64::from(self.next_node));
        put_varint64(out, self.next_long);
        put_varint64(out, self.len);
    }

    /// The collection that it is under.
    pub fn of(&self) -> Collection {
        self.of
    }

    /// Entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Levels of nodes.
    pub fn height(&self) -> u8 {
        self.height
    }

    pub(super) fn root_node(&self) -> Option<Node> {
        Some(Node {
            id: self.root,
            level: self.height.checked_sub(1)?,
            count: self.len,
        })
    }

    pub(super) fn new_node(&mut self) -> Outcome<u32> {
        let next = self.next_node.checked_add(1);
        let next = next.ok_or(const { Failure::refused("ERR the value was changed too often") })?;
        Ok(std::mem::replace(&mut self.next_node, next))
    }

    /// Whether there may be long entries.
    pub(super) fn had_long_entries(&self) -> bool {
        self.next_long > 0
    }

    pub(super) fn new_long(&mut self) -> u64 {
        let number = self.next_long;
        self.next_long += 1;
        number
    }

    /// The name of a node in the round.
    pub(super) fn name(&self, id: u32) -> NodeName {
        NodeName::new(self.of, id)
    }

    fn load(&self, keyspace: &Keyspace<'_>, node: Node) -> Outcome<Vec<u8>> {
        if node.id >= self.next_node {
            return Err(damaged("a node that was never made").into());
        }
        let page = keyspace.node_bytes(self.name(node.id))?;
        page.map(PinnedSlice::into_vec)
            .ok_or_else(|| damaged(&format!("node {} is missing", node.id)).into())
    }

    pub(super) fn load_leaf(&self, keyspace: &Keyspace<'_>, node: Node) -> Outcome<Arc<Leaf>> {
        let name = self.name(node.id);
        let held = keyspace.nodes().leaf(name);
        if let Some(leaf) = held {
            leaf.check(node.count)?;
            return Ok(leaf);
        }
        let leaf = Arc::new(Leaf::decode(self.load(keyspace, node)?, node.count)?);
        keyspace.nodes().read_leaf(name, &leaf);
        Ok(leaf)
    }

    pub(super) fn load_inner(&self, keyspace: &Keyspace<'_>, node: Node) -> Outcome<Arc<Inner>> {
        let name = self.name(node.id);
        let held = keyspace.nodes().inner(name);
        if let Some(inner) = held {
            inner.check(node)?;
            return Ok(inner);
        }
        let page = self.load(keyspace, node)?;
        let inner = Arc::new(Inner::decode(page, node, self.shape.is_ordered())?);
        keyspace.nodes().read_inner(name, &inner);
        Ok(inner)
    }

    /// The entry at `at` of a leaf.
    pub(super) fn entry<T>(
        &self,
        keyspace: &Keyspace<'_>,
        leaf: &Leaf,
        at: usize,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Outcome<T> {
        Ok(match leaf.cell(at)? {
            Cell::Inline(entry) => take(entry),
            Cell::Long(number) => take(&self.long_entry(keyspace, number)?),
        })
    }

    pub(super) fn long_entry(&self, keyspace: &Keyspace<'_>, number: u64) -> Outcome<PinnedSlice> {
        let entry = keyspace.sub_get(self.of, &long_key(number))?;
        entry.ok_or_else(|| damaged(&format!("long entry {number} is missing")).into())
    }

    /// The leaf that has the entry at `rank`, which is below the length, and its place there.
    pub(super) fn find(
        &self,
        keyspace: &Keyspace<'_>,
        mut rank: u64,
    ) -> Outcome<(Arc<Leaf>, usize)> {
        let mut node = self
            .root_node()
            .ok_or_else(|| damaged("an entry of an empty tree"))?;
        while node.level > 0 {
            let inner = self.load_inner(keyspace, node)?;
            let (at, before) = inner.child_of_rank(rank)?;
            rank -= before;
            node = inner.below(at)?;
        }
        let leaf = self.load_leaf(keyspace, node)?;
        let place = usize::try_from(rank)
            .ok()
            .filter(|place| *place < leaf.len());
        let place = place.ok_or_else(|| damaged("a rank beyond a leaf"))?;
        Ok((leaf, place))
    }

    /// The entry at `rank`; `None` behind the last.
    ///
    /// # Errors
    /// `Cold`; corruption.
    pub fn get(&self, keyspace: &Keyspace<'_>, rank: u64) -> Outcome<Option<Vec<u8>>> {
        if rank >= self.len {
            return Ok(None);
        }
        let (leaf, place) = self.find(keyspace, rank)?;
        self.entry(keyspace, &leaf, place, <[u8]>::to_vec).map(Some)
    }

    /// How many entries are before a place of the order. `is_before` tells of entries and of separators whether they are:
    /// of all up to some place, and of none behind it.
    ///
    /// # Errors
    /// `Cold`; corruption.
    pub fn rank(
        &self,
        keyspace: &Keyspace<'_>,
        mut is_before: impl FnMut(&[u8]) -> bool,
    ) -> Outcome<u64> {
        let Some(mut node) = self.root_node() else {
            return Ok(0);
        };
        let mut rank = 0;
        while node.level > 0 {
            let inner = self.load_inner(keyspace, node)?;
            let at = self.child_of_order(keyspace, &inner, &mut is_before)?;
            rank += inner.before(at)?;
            node = inner.below(at)?;
        }
        let leaf = self.load_leaf(keyspace, node)?;
        Ok(rank + self.place_of_order(keyspace, &leaf, &mut is_before)? as u64)
    }

    /// The child that has the place: the last whose separator is before it, else the first.
    pub(super) fn child_of_order(
        &self,
        keyspace: &Keyspace<'_>,
        inner: &Inner,
        is_before: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Outcome<usize> {
        let (mut low, mut high) = (0, inner.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let before = match inner.child(middle)?.separator {
                Some(separator) => is_before(separator),
                None => self.first_is_before(keyspace, inner.below(middle)?, is_before)?,
            };
            match before {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Asks the first entry under `node`.
    fn first_is_before(
        &self,
        keyspace: &Keyspace<'_>,
        mut node: Node,
        is_before: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Outcome<bool> {
        while node.level > 0 {
            node = self.load_inner(keyspace, node)?.below(0)?;
        }
        let leaf = self.load_leaf(keyspace, node)?;
        self.entry(keyspace, &leaf, 0, is_before)
    }

    /// How many entries of a leaf are before the place.
    pub(super) fn place_of_order(
        &self,
        keyspace: &Keyspace<'_>,
        leaf: &Leaf,
        is_before: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Outcome<usize> {
        let (mut low, mut high) = (0, leaf.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(keyspace, leaf, middle, &mut *is_before)? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }
}

pub(super) fn long_key(number: u64) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    [LONG, a, b, c, d, e, f, g, h]
}

/// A place that the caller has to keep below the length.
pub(super) fn beyond(rank: u64, len: u64) -> Failure {
    Failure::Engine(Error::invalid_argument(format!(
        "rank {rank} of a tree of {len}"
    )))
}
