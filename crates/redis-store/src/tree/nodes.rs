//! The nodes of counted trees that a round has in memory, those that it changed and those that it read.
//!
//! A node is read and checked once. A change is made in its place, in its bytes, and is noted in a log with the bytes that it
//! took out: so a command that fails costs the log of its own few bytes, and not a copy of each node before its first change.
//! Nodes are written when the round ends, each once.
//!
//! They stay for the rounds that follow, in two generations: what was not asked for while the younger one filled up goes. So
//! the overlay that has them must be the only one whose changes of these trees are written, and nothing may be read through
//! it as of an earlier moment.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use drumlin_base::{PinnedSlice, Result};

use super::inner::Inner;
use super::leaf::Leaf;
use super::node::Child;
use super::page::Exchange;
use super::splice::{OPERANDS_MAX, Splice};
use crate::record::Collection;

/// The kind of the entries of nodes.
const NODE: u8 = b'n';
/// What a node has beside its page: the places of its items, and its place here.
const NODE_BYTES: usize = 256;
/// Nodes have so many bytes, unless something else is said.
const BYTES_MAX: usize = 8 << 20;

/// The name of a node: its collection's prefix as a number, and its id. It sorts as its key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeName {
    of: u64,
    id: u32,
}

impl NodeName {
    pub(super) fn new(of: Collection, id: u32) -> Self {
        let of = u64::from_be_bytes(of.to_bytes());
        Self { of, id }
    }

    /// The node that the entry `rest` of a collection is, if it is one.
    pub(crate) fn of_entry(of: Collection, rest: &[u8]) -> Option<Self> {
        let (kind, id) = rest.split_first()?;
        let id = u32::from_be_bytes(id.try_into().ok()?);
        (*kind == NODE).then(|| Self::new(of, id))
    }

    /// The key of the `sub` family.
    pub(crate) fn key(self) -> Vec<u8> {
        let (of, id) = (self.of.to_be_bytes(), self.id.to_be_bytes());
        [&of[..], &[NODE], &id].concat()
    }

    /// The prefix of its collection.
    pub(crate) fn prefix(self) -> [u8; 8] {
        self.of.to_be_bytes()
    }
}

/// Names are given out by the server, so that nobody makes them meet. The order of the table is the same in every run.
#[derive(Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[derive(Clone, Debug)]
enum Page {
    Leaf(Arc<Leaf>),
    Inner(Arc<Inner>),
    /// As it was put; it is checked by the first who asks.
    Raw(Arc<Vec<u8>>),
    /// It is deleted.
    Gone,
}

impl Page {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Leaf(leaf) => Some(leaf.page()),
            Self::Inner(inner) => Some(inner.page()),
            Self::Raw(bytes) => Some(bytes),
            Self::Gone => None,
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Leaf(leaf) => Arc::unwrap_or_clone(leaf).into_page(),
            Self::Inner(inner) => Arc::unwrap_or_clone(inner).into_page(),
            Self::Raw(bytes) => Arc::unwrap_or_clone(bytes),
            Self::Gone => Vec::new(),
        }
    }

    /// As it was before an exchange that took out `taken`.
    fn taken_back(self, exchange: Exchange, taken: &[u8]) -> Self {
        let mut bytes = self.into_bytes();
        if !drumlin_base::bug!("redis-node-keeps-a-failed-change") {
            exchange.take_back(&mut bytes, taken);
        }
        Self::Raw(Arc::new(bytes))
    }

    fn size(&self) -> usize {
        NODE_BYTES + self.bytes().map_or(0, <[u8]>::len)
    }
}

#[derive(Clone, Debug)]
struct Held {
    page: Page,
    /// The round has to write it.
    is_changed: bool,
    /// What the round changed, as long as that is shorter than half of the page.
    splice: Splice,
    /// Operands over the page in the store; [`OPERANDS_MAX`] where that is not known, or not to be one more.
    operands: u8,
}

impl Held {
    /// A page as it was read, or as it was put.
    fn new(page: Page, is_changed: bool) -> Self {
        Self {
            page,
            is_changed,
            splice: Splice::default(),
            operands: OPERANDS_MAX,
        }
    }

    /// Notes an exchange that was made in the page.
    fn note(&mut self, exchange: Exchange) {
        if self.operands >= OPERANDS_MAX {
            return;
        }
        let page = self.page.bytes().unwrap_or(&[]);
        self.splice.push(exchange, page);
        if self.splice.len() > page.len() / 2 {
            (self.splice, self.operands) = (Splice::default(), OPERANDS_MAX);
        }
    }

    fn to_write(&self) -> Written<'_> {
        match self.page.bytes() {
            None => Written::Gone,
            Some(_) if self.operands < OPERANDS_MAX => Written::Splice(self.splice.bytes()),
            Some(page) => Written::Whole(page),
        }
    }

    /// It is written.
    fn written(&mut self) {
        self.operands = match self.operands < OPERANDS_MAX {
            true => self.operands + 1,
            false => 0,
        };
        (self.splice, self.is_changed) = (Splice::default(), false);
    }
}

/// How a changed node is written.
pub(crate) enum Written<'n> {
    Whole(&'n [u8]),
    /// As a merge operand.
    Splice(&'n [u8]),
    Gone,
}

/// Something that [`Nodes::undo`] puts back.
#[derive(Debug)]
enum Undo {
    /// The bytes that were taken out are the last of those noted.
    Exchanged {
        name: NodeName,
        was_changed: bool,
        exchange: Exchange,
        /// Bytes of its splice before.
        splice_bytes: usize,
    },
    Put {
        name: NodeName,
        before: Option<Held>,
    },
}

type Table = HashMap<NodeName, Held, BuildHasherDefault<NameHasher>>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Nodes {
    young: Table,
    /// What was not asked for since the last exchange of generations.
    old: Table,
    young_bytes: usize,
    old_bytes: usize,
    bytes_max: usize,
    /// All that are changed, and perhaps others.
    changed: Vec<NodeName>,
    log: Vec<Undo>,
    taken: Vec<u8>,
}

impl Default for Nodes {
    fn default() -> Self {
        Self {
            young: Table::default(),
            old: Table::default(),
            young_bytes: 0,
            old_bytes: 0,
            bytes_max: BYTES_MAX,
            changed: Vec::new(),
            log: Vec::new(),
            taken: Vec::new(),
        }
    }
}

impl Nodes {
    /// Lets nodes have so many bytes.
    pub(crate) fn bound(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Bytes of all nodes.
    pub(crate) fn size(&self) -> usize {
        self.young_bytes + self.old_bytes
    }

    // Reading.

    /// The leaf of this name, if it is here as one.
    pub(super) fn leaf(&mut self, name: NodeName) -> Option<Arc<Leaf>> {
        match &self.held(name)?.page {
            Page::Leaf(leaf) => Some(Arc::clone(leaf)),
            _ => None,
        }
    }

    /// The inner node of this name, if it is here as one.
    pub(super) fn inner(&mut self, name: NodeName) -> Option<Arc<Inner>> {
        match &self.held(name)?.page {
            Page::Inner(inner) => Some(Arc::clone(inner)),
            _ => None,
        }
    }

    /// The bytes of the node, or that it is gone, if that is known here.
    pub(crate) fn bytes(&mut self, name: NodeName) -> Option<Option<PinnedSlice>> {
        let bytes = self.held(name)?.page.bytes();
        Some(bytes.map(|bytes| PinnedSlice::owned(bytes.to_vec())))
    }

    /// A leaf was read.
    pub(super) fn read_leaf(&mut self, name: NodeName, leaf: &Arc<Leaf>) {
        self.read(name, Page::Leaf(Arc::clone(leaf)));
    }

    /// An inner node was read.
    pub(super) fn read_inner(&mut self, name: NodeName, inner: &Arc<Inner>) {
        self.read(name, Page::Inner(Arc::clone(inner)));
    }

    fn read(&mut self, name: NodeName, page: Page) {
        let has_room = self.young_bytes < self.bytes_max / 2;
        if let Some(held) = self.held(name) {
            held.page = page;
        } else if has_room {
            self.place(name, Some(Held::new(page, false)));
        }
    }

    /// What there is under this name; from now on it is young.
    fn held(&mut self, name: NodeName) -> Option<&mut Held> {
        if !self.young.contains_key(&name) {
            let held = self.old.remove(&name)?;
            self.old_bytes = self.old_bytes.saturating_sub(held.page.size());
            self.place(name, Some(held));
        }
        self.young.get_mut(&name)
    }

    /// Puts something, or nothing, under a name; what there was.
    fn place(&mut self, name: NodeName, held: Option<Held>) -> Option<Held> {
        let size = |held: &Held| held.page.size();
        self.young_bytes += held.as_ref().map_or(0, size);
        let before = match held {
            Some(held) => self.young.insert(name, held),
            None => self.young.remove(&name),
        };
        let freed = before.as_ref().map_or(0, size);
        self.young_bytes = self.young_bytes.saturating_sub(freed);
        before
    }

    // Changes.

    /// Puts a node, or deletes it.
    pub(crate) fn put(&mut self, name: NodeName, bytes: Option<Vec<u8>>) {
        let page = bytes.map_or(Page::Gone, |bytes| Page::Raw(Arc::new(bytes)));
        self.held(name);
        let before = self.place(name, Some(Held::new(page, true)));
        if !before.as_ref().is_some_and(|held| held.is_changed) {
            self.changed.push(name);
        }
        self.log.push(Undo::Put { name, before });
    }

    /// Exchanges cells of a leaf that was read, as [`Leaf::exchange`] does.
    pub(super) fn exchange_cells(
        &mut self,
        name: NodeName,
        leaf: Arc<Leaf>,
        range: Range<usize>,
        cell: Option<&[u8]>,
    ) -> Result<()> {
        self.change(name, Page::Leaf(leaf), |page, taken| match page {
            Page::Leaf(leaf) => Arc::make_mut(leaf).exchange(range, cell, taken).map(Some),
            _ => Ok(None),
        })
    }

    /// Gives the child at `at` of an inner node that was read another count.
    pub(super) fn set_count(
        &mut self,
        name: NodeName,
        inner: Arc<Inner>,
        (at, count): (usize, u64),
    ) -> Result<()> {
        self.change(name, Page::Inner(inner), |page, taken| match page {
            Page::Inner(inner) => Arc::make_mut(inner).set_count(at, count, taken).map(Some),
            _ => Ok(None),
        })
    }

    /// Exchanges a child of an inner node that was read for others, as [`Inner::exchange`] does.
    pub(super) fn exchange_child(
        &mut self,
        name: NodeName,
        inner: Arc<Inner>,
        (at, nodes): (usize, &[Child<'_>]),
    ) -> Result<()> {
        self.change(name, Page::Inner(inner), |page, taken| match page {
            Page::Inner(inner) => Arc::make_mut(inner).exchange(at, nodes, taken).map(Some),
            _ => Ok(None),
        })
    }

    /// Changes a node that was read as `page`, which is let go of first: then it is not copied.
    fn change(
        &mut self,
        name: NodeName,
        page: Page,
        change: impl FnOnce(&mut Page, &mut Vec<u8>) -> Result<Option<Exchange>>,
    ) -> Result<()> {
        if self.held(name).is_none() {
            self.place(name, Some(Held::new(page, false)));
        } else {
            drop(page);
        }
        let Some(held) = self.young.get_mut(&name) else {
            return Ok(());
        };
        let Some(exchange) = change(&mut held.page, &mut self.taken)? else {
            return Ok(());
        };
        let was_changed = held.is_changed;
        if !was_changed && !drumlin_base::bug!("redis-node-changed-and-not-written") {
            held.is_changed = true;
            self.changed.push(name);
        }
        let splice_bytes = held.splice.len();
        held.note(exchange);
        self.young_bytes = (self.young_bytes + exchange.put).saturating_sub(exchange.taken);
        self.log.push(Undo::Exchanged {
            name,
            was_changed,
            exchange,
            splice_bytes,
        });
        Ok(())
    }

    /// The present state, for [`Nodes::undo`].
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Takes back all changes since `mark`.
    pub(crate) fn undo(&mut self, mark: usize) {
        while self.log.len() > mark {
            match self.log.pop() {
                Some(Undo::Put { name, before }) => {
                    self.place(name, before);
                }
                Some(Undo::Exchanged {
                    name,
                    was_changed,
                    exchange,
                    splice_bytes,
                }) => {
                    let taken = self.taken.split_off(self.taken.len() - exchange.taken);
                    let Some(mut held) = self.place(name, None) else {
                        continue;
                    };
                    held.is_changed = was_changed;
                    if !drumlin_base::bug!("redis-splice-keeps-a-failed-change") {
                        held.splice.truncate(splice_bytes);
                    }
                    held.page = held.page.taken_back(exchange, &taken);
                    self.place(name, Some(held));
                }
                None => break,
            }
        }
    }

    /// Keeps all changes so far: they cannot be taken back any more.
    pub(crate) fn keep(&mut self) {
        self.log.clear();
        self.taken.clear();
    }

    // The end of a round.

    /// The names of the nodes that are changed, in order.
    pub(crate) fn changed(&self) -> Vec<NodeName> {
        let is_changed = |name: &NodeName| self.young.get(name).is_some_and(|it| it.is_changed);
        let mut names: Vec<_> = self.changed.iter().copied().filter(is_changed).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether there is a node to be written.
    pub(crate) fn has_changes(&self) -> bool {
        let is_changed = |name: &NodeName| self.young.get(name).is_some_and(|it| it.is_changed);
        self.changed.iter().any(is_changed)
    }

    /// How many nodes are changed, or perhaps less.
    pub(crate) fn changes(&self) -> usize {
        self.changed.len()
    }

    /// The bytes of a changed node; `None` where it is deleted.
    pub(crate) fn changed_bytes(&self, name: NodeName) -> Option<&[u8]> {
        self.young.get(&name)?.page.bytes()
    }

    /// How a changed node is written.
    pub(crate) fn to_write(&self, name: NodeName) -> Written<'_> {
        self.young.get(&name).map_or(Written::Gone, Held::to_write)
    }

    /// The changed nodes with keys from `lower` to before `upper`, which are in one collection.
    pub(crate) fn changed_between(&self, lower: &[u8], upper: &[u8]) -> Vec<NodeName> {
        let Some((of, _)) = lower.split_first_chunk::<8>() else {
            return Vec::new();
        };
        let of = u64::from_be_bytes(*of);
        let [first, last] = [0, u32::MAX].map(|id| NodeName { of, id }.key());
        if self.changed.is_empty() || upper <= first.as_slice() || lower > last.as_slice() {
            return Vec::new();
        }
        let is_between = |name: &NodeName| {
            let key = name.key();
            (lower..upper).contains(&key.as_slice())
        };
        self.changed().into_iter().filter(is_between).collect()
    }

    /// The changes are written.
    pub(crate) fn written(&mut self) {
        for name in std::mem::take(&mut self.changed) {
            let Some(held) = self.young.get_mut(&name) else {
                continue;
            };
            if matches!(held.page, Page::Gone) {
                self.place(name, None);
            } else if held.is_changed {
                held.written();
            }
        }
        self.keep();
        if self.young_bytes > self.bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
    }
}
