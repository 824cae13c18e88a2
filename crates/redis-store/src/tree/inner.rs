//! An inner node in its bytes: children are found without a list of them, and a count is changed in place.

use std::borrow::Cow;
use std::ops::Range;

use drumlin_base::Result;
use drumlin_base::coding::{put_varint64, varint32_at, varint64_at};

use super::node::{Child, Node, damaged};

/// Children of a node, at most.
pub(super) const CHILDREN_MAX: usize = 128;

/// A child as its parent's bytes tell of it.
#[derive(Clone, Debug)]
pub(super) struct ChildRef<'p> {
    pub(super) id: u32,
    /// Entries under it.
    pub(super) count: u64,
    pub(super) separator: Option<&'p [u8]>,
    /// Where the count stands in the page.
    pub(super) count_at: Range<usize>,
    /// Whether it is the last one.
    pub(super) is_last: bool,
}

/// An inner node as it was read.
#[derive(Debug)]
pub(super) struct Inner<'p> {
    page: &'p [u8],
    ordered: bool,
    level: u8,
    starts: [u16; CHILDREN_MAX],
    len: usize,
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
        is_last: next == page.len(),
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

impl<'p> Inner<'p> {
    /// The node in `page`, whose children have to have `node.count` entries together.
    pub(super) fn decode(page: &'p [u8], node: Node, ordered: bool) -> Result<Self> {
        let (len, mut at) = head(page, node.level).ok_or_else(damaged_node)?;
        let mut starts = [0; CHILDREN_MAX];
        let mut sum = 0u64;
        for start in starts.iter_mut().take(len) {
            *start = u16::try_from(at).map_err(|_| damaged_node())?;
            let (child, next) = child_in(page, at, ordered).ok_or_else(damaged_node)?;
            sum = sum.checked_add(child.count).ok_or_else(damaged_node)?;
            at = next;
        }
        if at != page.len() {
            return Err(damaged_node());
        }
        if sum != node.count {
            return Err(damaged(
                "an inner node has another count than its parent says",
            ));
        }
        let level = node.level;
        Ok(Self {
            page,
            ordered,
            level,
            starts,
            len,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The child at `at`.
    pub(super) fn child(&self, at: usize) -> Result<ChildRef<'p>> {
        let start = self.starts.get(..self.len).and_then(|it| it.get(at));
        let start = start.ok_or_else(|| damaged("a place beyond an inner node"))?;
        let found = child_in(self.page, usize::from(*start), self.ordered);
        found.map(|(child, _)| child).ok_or_else(damaged_node)
    }

    /// The node that the child at `at` is.
    pub(super) fn below(&self, at: usize) -> Result<Node> {
        Ok(self.child(at)?.node(self.level))
    }

    /// The entries before the child at `at`.
    pub(super) fn before(&self, at: usize) -> Result<u64> {
        (0..at).try_fold(0, |sum, at| Ok(sum + self.child(at)?.count))
    }

    /// All children, to be changed.
    pub(super) fn children(&self) -> Result<Vec<Child<'p>>> {
        let child = |at| {
            let child = self.child(at)?;
            Ok(Child {
                id: child.id,
                count: child.count,
                separator: child.separator.map(Cow::Borrowed),
                is_small: false,
            })
        };
        (0..self.len).map(child).collect()
    }
}

impl ChildRef<'_> {
    /// The node that it is, if it is a child of one of `level`.
    pub(super) fn node(&self, level: u8) -> Node {
        debug_assert!(level > 0, "a leaf has no children");
        Node {
            id: self.id,
            level: level.saturating_sub(1),
            count: self.count,
        }
    }
}

/// The child of `node`, in `page`, that has the entry at `rank`, its place, and the entries before it. The rank behind the
/// last is the last child's. Children behind it are not looked at.
pub(super) fn child_of_rank(
    page: &[u8],
    node: Node,
    ordered: bool,
    rank: u64,
) -> Result<(ChildRef<'_>, usize, u64)> {
    let (items, mut from) = head(page, node.level).ok_or_else(damaged_node)?;
    if !ordered && rank > node.count / 2 {
        let found = child_from_the_end(page, from, (node, items), rank);
        return found.ok_or_else(damaged_node);
    }
    let mut before = 0u64;
    for at in 0..items {
        let (child, next) = child_in(page, from, ordered).ok_or_else(damaged_node)?;
        if rank - before < child.count || at + 1 == items {
            return Ok((child, at, before));
        }
        before += child.count;
        from = next;
    }
    Err(damaged_node())
}

/// As [`child_of_rank`], from the last child on. Without separators children are found backwards too, as only the last byte
/// of a varint is below 0x80: so both ends of a list are near.
fn child_from_the_end(
    page: &[u8],
    first: usize,
    (node, items): (Node, usize),
    rank: u64,
) -> Option<(ChildRef<'_>, usize, u64)> {
    let (mut end, mut before) = (page.len(), node.count);
    for at in (0..items).rev() {
        let start = varint_before(page, varint_before(page, end)?)?;
        let (child, next) = child_in(page, start, false)?;
        if start < first || next != end {
            return None;
        }
        before = before.checked_sub(child.count)?;
        if rank >= before {
            return Some((child, at, before));
        }
        end = start;
    }
    None
}

/// Where the varint that ends before `end` begins.
fn varint_before(page: &[u8], end: usize) -> Option<usize> {
    let before = page.get(..end.checked_sub(1)?)?;
    let ended = before.iter().rposition(|byte| *byte < 0x80);
    Some(ended.map_or(0, |at| at + 1))
}

/// The page with another count at `count_at`.
pub(super) fn with_count(page: &[u8], count_at: Range<usize>, count: u64) -> Result<Vec<u8>> {
    let (before, after) = (page.get(..count_at.start), page.get(count_at.end..));
    let (before, after) = before.zip(after).ok_or_else(damaged_node)?;
    let mut changed = Vec::with_capacity(page.len() + 2);
    changed.extend_from_slice(before);
    put_varint64(&mut changed, count);
    changed.extend_from_slice(after);
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_tells_of_its_children_and_changes_a_count() {
        let page = b"\x01\x02\x01\x46\x02\x03";
        let node = |count| Node {
            id: 3,
            level: 1,
            count,
        };
        let read = Inner::decode(page, node(73), false).expect("a node");
        assert_eq!((read.len(), read.before(1).expect("a child")), (2, 70));
        assert!(Inner::decode(page, node(72), false).is_err());
        assert!(Inner::decode(&page[..5], node(73), false).is_err());
        let (child, at, before) = child_of_rank(page, node(73), false, 71).expect("a child");
        assert_eq!((child.id, at, before, child.is_last), (2, 1, 70, true));
        for rank in 0..=73 {
            let (child, at, before) = child_of_rank(page, node(73), false, rank).expect("a child");
            let wanted = if rank < 70 { (1, 0, 0) } else { (2, 1, 70) };
            assert_eq!((child.id, at, before), wanted);
        }
        let page = with_count(page, child.count_at, 300).expect("a page");
        assert_eq!(page, b"\x01\x02\x01\x46\x02\xac\x02");
    }
}
