//! An inner node in its bytes, with the places of its children: one is found, and its count changed, without a look at the
//! others. All of it is checked once, when it is read.

use std::borrow::Cow;
use std::ops::Range;

use drumlin_base::Result;
use drumlin_base::coding::{put_varint64, varint32_at, varint64_at};

use super::node::{Child, Limit, Node, damaged, put_child};
use super::page::{Exchange, ITEMS_MAX, exchange, set_items};

/// Children of a node, at most.
const CHILDREN_MAX: usize = 128;
/// Bytes of a varint.
const VARINT_BYTES_MAX: usize = 10;

/// A child as its parent's bytes tell of it.
#[derive(Clone, Debug)]
pub(super) struct ChildRef<'p> {
    pub(super) id: u32,
    /// Entries under it.
    pub(super) count: u64,
    pub(super) separator: Option<&'p [u8]>,
    /// Where the count stands in the page.
    count_at: Range<usize>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    page: Vec<u8>,
    ordered: bool,
    level: u8,
    /// Where each child begins in the page.
    starts: Vec<u32>,
    /// Entries under all children.
    count: u64,
}

/// An exchange of a child for others.
struct InPlace {
    /// The bytes of the child.
    range: Range<usize>,
    /// Those of the others, and where each of them begins.
    bytes: Vec<u8>,
    starts: Vec<u32>,
    /// What the node holds then, and its entries.
    used: Limit,
    count: u64,
}

fn damaged_node() -> drumlin_base::Error {
    damaged("an inner node is not whole")
}

/// The child at `at` of the page, and where the next one begins.
#[inline]
fn child_in(page: &[u8], at: usize, ordered: bool) -> Option<(ChildRef<'_>, usize)> {
    let (id, count_from) = varint32_at(page, at)?;
    let (count, count_until) = varint64_at(page, count_from)?;
    let mut next = count_until;
    let mut separator = None;
    if ordered {
        let (len, from) = varint32_at(page, next)?;
        next = from;
        if let Some(len) = len.checked_sub(1) {
            next = from.checked_add(usize::try_from(len).ok()?)?;
            separator = Some(page.get(from..next)?);
        }
    }
    let child = ChildRef {
        id,
        count,
        separator,
        count_at: count_from..count_until,
    };
    (count > 0).then_some((child, next))
}

/// The children of the page of `level`, and where the first one begins.
fn head(page: &[u8], level: u8) -> Option<(usize, usize)> {
    let (items, from) = varint32_at(page, 1)?;
    let items = usize::try_from(items).ok()?;
    let fits = (1..=CHILDREN_MAX).contains(&items) && page.len() <= usize::from(u16::MAX);
    (page.first() == Some(&level) && fits).then_some((items, from))
}

impl Inner {
    /// The node in `page`, whose children have to have `node.count` entries together.
    pub(super) fn decode(page: Vec<u8>, node: Node, ordered: bool) -> Result<Self> {
        let (len, mut at) = head(&page, node.level).ok_or_else(damaged_node)?;
        let mut starts = Vec::with_capacity(len);
        let mut count = 0u64;
        for _ in 0..len {
            starts.push(u32::try_from(at).map_err(|_| damaged_node())?);
            let (child, next) = child_in(&page, at, ordered).ok_or_else(damaged_node)?;
            count = count.checked_add(child.count).ok_or_else(damaged_node)?;
            at = next;
        }
        if at != page.len() {
            return Err(damaged_node());
        }
        let inner = Self {
            page,
            ordered,
            level: node.level,
            starts,
            count,
        };
        inner.check(node)?;
        Ok(inner)
    }

    /// Checks that it is the node that its parent means.
    pub(super) fn check(&self, node: Node) -> Result<()> {
        if self.level != node.level {
            return Err(damaged_node());
        }
        match self.count == node.count {
            true => Ok(()),
            false => Err(damaged(
                "an inner node has another count than its parent says",
            )),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn page(&self) -> &[u8] {
        &self.page
    }

    pub(super) fn into_page(self) -> Vec<u8> {
        self.page
    }

    /// The child at `at`.
    pub(super) fn child(&self, at: usize) -> Result<ChildRef<'_>> {
        let start = self.starts.get(at);
        let start = start.ok_or_else(|| damaged("a place beyond an inner node"))?;
        let found = child_in(&self.page, *start as usize, self.ordered);
        found.map(|(child, _)| child).ok_or_else(damaged_node)
    }

    /// The node that the child at `at` is.
    pub(super) fn below(&self, at: usize) -> Result<Node> {
        let child = self.child(at)?;
        debug_assert!(self.level > 0, "a leaf has no children");
        Ok(Node {
            id: child.id,
            level: self.level.saturating_sub(1),
            count: child.count,
        })
    }

    /// The entries before the child at `at`.
    pub(super) fn before(&self, at: usize) -> Result<u64> {
        (0..at).try_fold(0, |sum, at| Ok(sum + self.child(at)?.count))
    }

    /// The place of the child that has the entry at `rank`, and the entries before it. The rank behind the last is the last
    /// child's. Children are counted from the nearer end: both ends of a list are near.
    pub(super) fn child_of_rank(&self, rank: u64) -> Result<(usize, u64)> {
        let last = self.len().saturating_sub(1);
        if rank > self.count / 2 {
            let mut before = self.count;
            for at in (0..=last).rev() {
                let count = self.child(at)?.count;
                before = before.checked_sub(count).ok_or_else(damaged_node)?;
                if rank >= before {
                    return Ok((at, before));
                }
            }
            return Err(damaged_node());
        }
        let mut before = 0;
        for at in 0..last {
            let count = self.child(at)?.count;
            if rank - before < count {
                return Ok((at, before));
            }
            before += count;
        }
        Ok((last, before))
    }

    /// Gives the child at `at` another count, which is not 0. The bytes of the one before are appended to `taken`.
    pub(super) fn set_count(
        &mut self,
        at: usize,
        count: u64,
        taken: &mut Vec<u8>,
    ) -> Result<Exchange> {
        let child = self.child(at)?;
        let (before, place) = (child.count, child.count_at);
        let rest = self.count.checked_sub(before).ok_or_else(damaged_node)?;
        let mut bytes = Vec::with_capacity(VARINT_BYTES_MAX);
        put_varint64(&mut bytes, count);
        let (end, new_end) = (place.end, place.start + bytes.len());
        let done = exchange(&mut self.page, place, &bytes, taken).ok_or_else(damaged_node)?;
        if end != new_end {
            for start in self.starts.iter_mut().skip(at + 1) {
                *start = (*start as usize + new_end - end) as u32;
            }
        }
        self.count = rest + count;
        Ok(done)
    }

    /// What its page is with `nodes` in the place of the child at `at`: that page's part, the children and their bytes, and the
    /// new bytes. `None` where it cannot be changed in place.
    fn with_nodes(&self, at: usize, nodes: &[Child<'_>]) -> Result<Option<InPlace>> {
        let len = self.len() + nodes.len();
        // One that becomes the first must have no separator.
        let leaves_first = self.ordered && at == 0 && nodes.is_empty();
        if !(2..=ITEMS_MAX).contains(&len) || self.len() >= ITEMS_MAX || leaves_first {
            return Ok(None);
        }
        let start = |at: usize| {
            self.starts
                .get(at)
                .map_or(self.page.len(), |at| *at as usize)
        };
        let mut bytes = Vec::new();
        let mut starts = Vec::with_capacity(nodes.len());
        for (place, node) in nodes.iter().enumerate() {
            starts.push((start(at) + bytes.len()) as u32);
            put_child(&mut bytes, node, (self.ordered, at + place == 0));
        }
        let range = start(at)..start(at + 1);
        let used = Limit {
            items: len - 1,
            bytes: self.page.len() - start(0) - range.len() + bytes.len(),
        };
        let taken = self.child(at)?.count;
        let put: u64 = nodes.iter().map(|node| node.count).sum();
        let rest = self.count.checked_sub(taken).ok_or_else(damaged_node)?;
        Ok(Some(InPlace {
            range,
            bytes,
            starts,
            used,
            count: rest + put,
        }))
    }

    /// The entries under it, and what it holds, with `nodes` in the place of the child at `at`; `None` where it cannot be
    /// changed in place.
    pub(super) fn used_with(&self, at: usize, nodes: &[Child<'_>]) -> Result<Option<(u64, Limit)>> {
        let found = self.with_nodes(at, nodes)?;
        Ok(found.map(|it| (it.count, it.used)))
    }

    /// Puts `nodes` in the place of the child at `at`, whose bytes are appended to `taken`.
    /// Requires: [`Inner::used_with`] has told that this is done in place.
    pub(super) fn exchange(
        &mut self,
        at: usize,
        nodes: &[Child<'_>],
        taken: &mut Vec<u8>,
    ) -> Result<Exchange> {
        let InPlace {
            range,
            bytes,
            starts,
            used,
            count,
        } = self.with_nodes(at, nodes)?.ok_or_else(damaged_node)?;
        let (end, new_end) = (range.end, range.start + bytes.len());
        let done = exchange(&mut self.page, range, &bytes, taken).ok_or_else(damaged_node)?;
        for start in self.starts.iter_mut().skip(at + 1) {
            *start = (*start as usize + new_end - end) as u32;
        }
        self.starts.splice(at..at + 1, starts);
        set_items(&mut self.page, used.items);
        self.count = count;
        Ok(done)
    }

    /// All children, to be changed.
    pub(super) fn children(&self) -> Result<Vec<Child<'_>>> {
        let child = |at| {
            let child = self.child(at)?;
            Ok(Child {
                id: child.id,
                count: child.count,
                separator: child.separator.map(Cow::Borrowed),
                is_small: false,
            })
        };
        (0..self.len()).map(child).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::node::encode_inner;

    fn node(count: u64) -> Node {
        Node {
            id: 3,
            level: 1,
            count,
        }
    }

    #[test]
    fn a_node_tells_of_its_children_and_changes_a_count() {
        let page = b"\x01\x02\x01\x46\x02\x03".to_vec();
        let mut read = Inner::decode(page.clone(), node(73), false).expect("a node");
        assert_eq!((read.len(), read.before(1).expect("a child")), (2, 70));
        assert!(Inner::decode(page.clone(), node(72), false).is_err());
        assert!(Inner::decode(page[..5].to_vec(), node(73), false).is_err());
        for rank in 0..=73 {
            let wanted = if rank < 70 { (0, 0) } else { (1, 70) };
            assert_eq!(read.child_of_rank(rank).expect("a child"), wanted);
        }
        let mut taken = Vec::new();
        read.set_count(1, 300, &mut taken).expect("a child");
        assert_eq!(read.page(), b"\x01\x02\x01\x46\x02\xac\x02");
        let done = read.set_count(0, 300, &mut taken).expect("a child");
        assert_eq!(read.page(), b"\x01\x02\x01\xac\x02\x02\xac\x02");
        assert_eq!(
            (read.child(1).expect("a child").count, taken),
            (300, vec![3, 70])
        );
        read.check(node(600)).expect("the sum");
        let mut page = read.into_page();
        done.take_back(&mut page, &[70]);
        assert_eq!(page, b"\x01\x02\x01\x46\x02\xac\x02");
    }

    /// Goal: a node with other children is the one that its bytes are. Method: each child of a small one exchanged for none, one
    /// and two, with separators and without.
    #[test]
    fn a_node_with_other_children_is_what_its_bytes_say() {
        let child = |id: u32, separator: &'static str| Child {
            id,
            count: u64::from(id) * 50,
            separator: (!separator.is_empty()).then_some(Cow::Borrowed(separator.as_bytes())),
            is_small: false,
        };
        let all = [child(1, ""), child(200, "m"), child(3, "")];
        let new = [child(7, "k"), child(8, "l")];
        for ordered in [false, true] {
            for (at, put) in (0..3).flat_map(|at| (0..=2).map(move |put| (at, put))) {
                let page = encode_inner(1, &all, ordered);
                let mut inner = Inner::decode(page, node(10_200), ordered).expect("a node");
                let nodes = new.get(..put).expect("two");
                let found = inner.used_with(at, nodes).expect("a child");
                let mut wanted = all.to_vec();
                wanted.splice(at..=at, nodes.iter().cloned());
                let Some((count, used)) = found else {
                    assert!(
                        ordered && at == 0 && put == 0,
                        "the second one has a separator"
                    );
                    continue;
                };
                inner.exchange(at, nodes, &mut Vec::new()).expect("done");
                assert_eq!(inner.page(), encode_inner(1, &wanted, ordered));
                let again = Inner::decode(inner.page().to_vec(), node(count), ordered);
                let again = again.expect("a node");
                assert_eq!((&again.starts, again.count), (&inner.starts, inner.count));
                // The head has two bytes.
                assert_eq!(
                    (used.items, used.bytes),
                    (wanted.len(), inner.page().len() - 2)
                );
            }
        }
    }
}
