//! Many sorted sources seen as one.
//!
//! Sources are ranked newest first by their place in the list. Entries ascend by internal key, and
//! where two sources hold the same internal key the newer source comes first; walking backward
//! yields exactly the reverse.
//!
//! The sources that still have entries stand in a queue, sorted by their present entries, the current one in
//! front. After a step the front one goes back to its place, one place at a time: for the usual handful of
//! runs that takes fewer compares than a heap, which always looks at two sources a level. In a long queue
//! it jumps by a binary search first. Three things keep a
//! step cheap:
//! - One source left: a step is that source's step and two branches, the queue is not touched.
//! - The queue keeps the first eight bytes of each source's user key as a number that orders as the walk
//!   goes, so most compares touch no key. Custom orders keep zero and always compare.
//! - While the same source stays in front, a step costs one compare of two numbers.
//!
//! An error in any source ends the walk: entries of the others might be hidden by those that could
//! not be read. Not shared between threads.

use std::cmp::Ordering;

use drumlin_base::key::{compare_bytes, compare_internal, split_internal};
use drumlin_base::{InternalIterator, KeyOrder, Result, ValueCode};

/// Sources in the queue up to which each step goes back place by place.
const SHORT_QUEUE: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// A cursor over the union of its sources. See the module for order and cost.
#[derive(Debug)]
pub(crate) struct MergingIterator<C> {
    order: KeyOrder,
    /// Newest source first.
    children: Vec<C>,
    /// The children that are valid, as indices, those that come first in front.
    queue: Vec<usize>,
    /// Beside each place in the queue its child's key prefix, see [`MergingIterator::rank_prefix`]; that of the
    /// front one is not kept up to date. Apart from the queue, so that both are stored and loaded in
    /// words: a pair loaded at once would wait for the stores of its halves.
    prefixes: Vec<u64>,
    /// `queue[0]`, or anything while the queue is empty.
    current: usize,
    direction: Direction,
    /// The child whose error ended the walk.
    failed: Option<usize>,
}

impl<C: InternalIterator> MergingIterator<C> {
    /// A cursor over `children`, newest source first.
    pub(crate) fn new(order: KeyOrder, children: Vec<C>) -> Self {
        Self {
            order,
            queue: Vec::with_capacity(children.len()),
            prefixes: Vec::with_capacity(children.len()),
            children,
            current: 0,
            direction: Direction::Forward,
            failed: None,
        }
    }

    /// The source the cursor stands in.
    ///
    /// Requires: `valid()`.
    #[inline]
    pub(crate) fn current(&self) -> &C {
        &self.children[self.current]
    }

    /// The rank of the source the cursor stands in; 0 is the newest.
    ///
    /// Requires: `valid()`.
    #[inline]
    pub(crate) fn current_rank(&self) -> usize {
        self.current
    }

    /// The sources, newest first.
    pub(crate) fn children(&self) -> &[C] {
        &self.children
    }

    /// The same, for telling them how to move; the caller does not move them.
    pub(crate) fn children_mut(&mut self) -> &mut [C] {
        &mut self.children
    }

    /// Moves every source of rank `rank` and older that stands before `target` to `target`; the
    /// newer ones stay. Used when a range tombstone of a newer source covers everything in between.
    ///
    /// Requires: `valid()`, and the last move was forward.
    pub(crate) fn skip_older_to(&mut self, rank: usize, target: &[u8]) {
        debug_assert!(self.direction == Direction::Forward);
        for child in self.children.iter_mut().skip(rank) {
            if child.valid() && compare_internal(&self.order, child.key(), target).is_lt() {
                child.seek(target);
            }
        }
        self.rebuild(Direction::Forward);
    }

    /// As [`MergingIterator::skip_older_to`], walking backward: sources that stand after `target`
    /// move to the last entry at or before it.
    pub(crate) fn skip_older_back_to(&mut self, rank: usize, target: &[u8]) {
        debug_assert!(self.direction == Direction::Backward);
        for child in self.children.iter_mut().skip(rank) {
            if child.valid() && compare_internal(&self.order, child.key(), target).is_gt() {
                child.seek_for_prev(target);
            }
        }
        self.rebuild(Direction::Backward);
    }

    /// As [`InternalIterator::seek`]; `seek` positions the children one by one.
    #[inline]
    pub(crate) fn seek_each(&mut self, seek: impl FnMut(&mut C)) {
        self.children.iter_mut().for_each(seek);
        self.rebuild(Direction::Forward);
    }

    /// Rebuilds the queue from where the children stand.
    fn rebuild(&mut self, direction: Direction) {
        self.direction = direction;
        self.queue.clear();
        self.prefixes.clear();
        self.failed = None;
        for (child, source) in self.children.iter().enumerate() {
            // One that failed is not valid.
            if !source.valid() && source.status().is_err() {
                self.failed = Some(child);
            }
        }
        if self.failed.is_some() {
            return;
        }
        let mut queue = std::mem::take(&mut self.queue);
        queue.extend((0..self.children.len()).filter(|&child| self.is_valid(child)));
        queue.sort_unstable_by(|&a, &b| self.order_of(a, b));
        for child in queue.iter().filter_map(|&child| self.children.get(child)) {
            self.prefixes.push(self.rank_prefix(child.key_prefix()));
        }
        self.queue = queue;
        self.current = self.queue.first().map_or(0, |&child| child);
    }

    fn is_valid(&self, child: usize) -> bool {
        self.children[child].valid()
    }

    /// A key's prefix as a number that grows as the walk goes on.
    #[inline]
    fn rank_prefix(&self, prefix: u64) -> u64 {
        let ascends = match self.order {
            KeyOrder::Bytewise => true,
            KeyOrder::ReverseBytewise => false,
            KeyOrder::Custom(_) => return 0,
        };
        if ascends == (self.direction == Direction::Forward) {
            prefix
        } else {
            !prefix
        }
    }

    /// The order of the children `a` and `b`, both valid.
    fn order_of(&self, a: usize, b: usize) -> Ordering {
        let (a_key, b_key) = (self.children[a].key(), self.children[b].key());
        let ordering = match self.order {
            KeyOrder::Bytewise => {
                let (a_user, a_tag) = split_internal(a_key).unwrap_or((a_key, 0));
                let (b_user, b_tag) = split_internal(b_key).unwrap_or((b_key, 0));
                compare_bytes(a_user, b_user).then_with(|| b_tag.cmp(&a_tag))
            }
            _ => compare_internal(&self.order, a_key, b_key),
        };
        let ordering = ordering.then(a.cmp(&b));
        match self.direction {
            Direction::Forward => ordering,
            Direction::Backward => ordering.reverse(),
        }
    }

    /// Puts the queue in order after the current child moved.
    #[inline]
    fn settle(&mut self) {
        let child = &self.children[self.current];
        if !child.valid() {
            self.drop_current();
            return;
        }
        let Some(&next_prefix) = self.prefixes.get(1) else {
            return;
        };
        let prefix = self.rank_prefix(child.key_prefix());
        if prefix >= next_prefix {
            self.go_back(prefix);
            self.current = self.queue.first().map_or(0, |&child| child);
        }
    }

    /// Moves the front child, whose prefix is `prefix`, back to where it belongs.
    fn go_back(&mut self, prefix: u64) {
        let front = self.queue[0];
        self.prefixes[0] = prefix;
        let mut at = self.passes_surely(prefix);
        while let (Some(&next), Some(&next_prefix)) =
            (self.queue.get(at + 1), self.prefixes.get(at + 1))
        {
            if next_prefix > prefix || (next_prefix == prefix && self.order_of(next, front).is_gt())
            {
                return;
            }
            self.queue.swap(at, at + 1);
            self.prefixes.swap(at, at + 1);
            at += 1;
        }
    }

    /// In a long queue, moves the front child behind all with lesser prefixes than `prefix`. Gives its new place.
    #[inline]
    fn passes_surely(&mut self, prefix: u64) -> usize {
        if self.queue.len() <= SHORT_QUEUE {
            return 0;
        }
        let place = self.prefixes[1..].partition_point(|&other| other < prefix);
        self.queue[..=place].rotate_left(1);
        self.prefixes[..=place].rotate_left(1);
        place
    }

    /// Takes the current child, which has no more entries, out of the queue. If it failed, the walk ends.
    #[cold]
    fn drop_current(&mut self) {
        if self.current().status().is_err() {
            self.failed = Some(self.current);
            self.queue.clear();
            self.prefixes.clear();
            return;
        }
        self.queue.remove(0);
        self.prefixes.remove(0);
        self.current = self.queue.first().map_or(0, |&child| child);
    }

    /// Moves the other children to the far side of the current entry, so that the walk can turn.
    ///
    /// After the current entry (`key`, `rank`) come, walking forward, entries above `key` and those
    /// equal to it in older sources; walking backward, entries below it and those equal to it in
    /// newer sources.
    #[cold]
    fn turn(&mut self, direction: Direction) {
        let key = self.current().key().to_vec();
        let rank = self.current;
        for (other, child) in self.children.iter_mut().enumerate() {
            if other == rank {
                continue;
            }
            let equal_is_passed = match direction {
                Direction::Forward => {
                    child.seek(&key);
                    other < rank
                }
                Direction::Backward => {
                    child.seek_for_prev(&key);
                    other > rank
                }
            };
            let stands_on_equal =
                child.valid() && compare_internal(&self.order, child.key(), &key).is_eq();
            if equal_is_passed && stands_on_equal {
                match direction {
                    Direction::Forward => child.next(),
                    Direction::Backward => child.prev(),
                }
            }
        }
        self.rebuild(direction);
        debug_assert!(self.failed.is_some() || self.current == rank);
    }
}

impl<C: InternalIterator> InternalIterator for MergingIterator<C> {
    #[inline]
    fn valid(&self) -> bool {
        !self.queue.is_empty()
    }

    fn seek_to_first(&mut self) {
        self.children.iter_mut().for_each(C::seek_to_first);
        self.rebuild(Direction::Forward);
    }

    fn seek_to_last(&mut self) {
        self.children.iter_mut().for_each(C::seek_to_last);
        self.rebuild(Direction::Backward);
    }

    fn seek(&mut self, target: &[u8]) {
        self.seek_each(|child| child.seek(target));
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        for child in &mut self.children {
            child.seek_for_prev(target);
        }
        self.rebuild(Direction::Backward);
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid());
        if self.direction != Direction::Forward {
            self.turn(Direction::Forward);
            if !self.valid() {
                return;
            }
        }
        self.children[self.current].next();
        self.settle();
    }

    #[inline]
    fn prev(&mut self) {
        debug_assert!(self.valid());
        if self.direction != Direction::Backward {
            self.turn(Direction::Backward);
            if !self.valid() {
                return;
            }
        }
        self.children[self.current].prev();
        self.settle();
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current().key()
    }

    #[inline]
    fn key_prefix(&self) -> u64 {
        self.current().key_prefix()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().value()
    }

    #[inline]
    fn code(&self) -> Option<ValueCode<'_>> {
        self.current().code()
    }

    fn status(&self) -> Result<()> {
        match self.failed {
            Some(child) => self.children[child].status(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iter::test_source::{FailingSource, VecSource, random_user_key};
    use drumlin_base::ValueKind;
    use drumlin_base::key::{internal_key, seek_key};
    use drumlin_base::rng::Rng;

    type Entry = (Vec<u8>, Vec<u8>);

    /// Random sources and the list they must look like, ties newest source first.
    fn random_case(rng: &mut Rng, order: &KeyOrder) -> (MergingIterator<VecSource>, Vec<Entry>) {
        let mut all: Vec<(Vec<u8>, usize, Vec<u8>)> = Vec::new();
        let mut children = Vec::new();
        let sources = match rng.below(4) {
            0 => rng.below(60),
            _ => rng.below(6),
        };
        for rank in 0..sources as usize {
            let mut entries = Vec::new();
            for _ in 0..rng.below(20) {
                let key = internal_key(&random_user_key(rng), rng.below(6), ValueKind::Value);
                entries.push((key, vec![rank as u8]));
            }
            entries.sort_by(|a, b| compare_internal(order, &a.0, &b.0));
            entries.dedup_by(|a, b| a.0 == b.0);
            all.extend(entries.iter().map(|(k, v)| (k.clone(), rank, v.clone())));
            children.push(VecSource::new(order.clone(), entries));
        }
        all.sort_by(|a, b| compare_internal(order, &a.0, &b.0).then(a.1.cmp(&b.1)));
        let want = all
            .into_iter()
            .map(|(key, _, value)| (key, value))
            .collect();
        (MergingIterator::new(order.clone(), children), want)
    }

    fn entry(iter: &MergingIterator<VecSource>) -> Option<Entry> {
        iter.valid()
            .then(|| (iter.key().to_vec(), iter.value().to_vec()))
    }

    fn orders(seed: u64) -> KeyOrder {
        match seed % 2 {
            0 => KeyOrder::Bytewise,
            _ => KeyOrder::ReverseBytewise,
        }
    }

    #[test]
    fn forward_and_backward_walks_yield_the_sorted_union() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let (mut iter, want) = random_case(&mut rng, &orders(seed));
            iter.seek_to_first();
            for expected in &want {
                assert_eq!(entry(&iter).as_ref(), Some(expected), "seed {seed}");
                iter.next();
            }
            assert!(!iter.valid());
            iter.seek_to_last();
            for expected in want.iter().rev() {
                assert_eq!(entry(&iter).as_ref(), Some(expected), "seed {seed}");
                iter.prev();
            }
            assert!(!iter.valid() && iter.status().is_ok());
        }
    }

    #[test]
    fn the_walk_may_turn_at_every_position() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let (mut iter, want) = random_case(&mut rng, &orders(seed));
            for at in 0..want.len() {
                iter.seek_to_first();
                (0..at).for_each(|_| iter.next());
                assert_eq!(entry(&iter).as_ref(), want.get(at), "seed {seed}");
                iter.prev();
                assert_eq!(
                    entry(&iter).as_ref(),
                    at.checked_sub(1).and_then(|i| want.get(i))
                );
                if iter.valid() {
                    iter.next();
                    assert_eq!(entry(&iter).as_ref(), want.get(at), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn random_moves_follow_the_sorted_list() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let order = orders(seed);
            let (mut iter, want) = random_case(&mut rng, &order);
            let mut at: Option<usize> = None;
            for step in 0..80 {
                match rng.below(6) {
                    0 => {
                        let target = seek_key(&random_user_key(&mut rng), rng.below(6));
                        iter.seek(&target);
                        at = want
                            .iter()
                            .position(|(k, _)| compare_internal(&order, k, &target).is_ge());
                    }
                    1 => {
                        let target = seek_key(&random_user_key(&mut rng), rng.below(6));
                        iter.seek_for_prev(&target);
                        at = want
                            .iter()
                            .rposition(|(k, _)| compare_internal(&order, k, &target).is_le());
                    }
                    2 | 3 if at.is_some() => {
                        iter.next();
                        at = at.map(|i| i + 1).filter(|&i| i < want.len());
                    }
                    4 | 5 if at.is_some() => {
                        iter.prev();
                        at = at.and_then(|i| i.checked_sub(1));
                    }
                    _ => continue,
                }
                let expected = at.and_then(|i| want.get(i));
                assert_eq!(entry(&iter).as_ref(), expected, "seed {seed} step {step}");
            }
        }
    }

    #[test]
    fn skipping_older_sources_leaves_newer_ones() {
        let order = KeyOrder::Bytewise;
        let source = |keys: &[&[u8]], seqno| {
            let entries = keys
                .iter()
                .map(|key| (internal_key(key, seqno, ValueKind::Value), Vec::new()))
                .collect();
            VecSource::new(order.clone(), entries)
        };
        let children = vec![source(&[b"b", b"d"], 9), source(&[b"a", b"c", b"e"], 2)];
        let mut iter = MergingIterator::new(order.clone(), children);
        iter.seek_to_first();
        iter.skip_older_to(1, &seek_key(b"e", u64::MAX >> 8));
        let mut seen = Vec::new();
        while iter.valid() {
            seen.push(drumlin_base::key::user_key(iter.key()).to_vec());
            iter.next();
        }
        assert_eq!(seen, [b"b", b"d", b"e"]);
    }

    #[test]
    fn an_error_in_one_source_ends_the_walk_and_is_told() {
        let order = KeyOrder::Bytewise;
        let entries: Vec<Entry> = (b'a'..=b'f')
            .map(|key| (internal_key(&[key], 1, ValueKind::Value), Vec::new()))
            .collect();
        let good = FailingSource::new(VecSource::new(order.clone(), entries.clone()), None);
        let bad = FailingSource::new(VecSource::new(order.clone(), entries), Some(2));
        let mut iter = MergingIterator::new(order, vec![good, bad]);
        iter.seek_to_first();
        let mut steps = 0;
        while iter.valid() {
            iter.next();
            steps += 1;
        }
        assert!(steps < 12);
        assert!(iter.status().is_err_and(|error| error.is_corruption()));
        iter.seek(&seek_key(b"f", 9));
        assert!(iter.valid() && iter.status().is_ok());
    }
}
