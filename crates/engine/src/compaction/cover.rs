//! The range tombstones of a job's inputs: the entries they cover, and the tombstones that stay.
//!
//! Entries come in key order, so finding the fragment of an entry is a step, not a search. Not
//! shared between threads.

use std::sync::Arc;

use drumlin_base::{KeyOrder, RangeTombstone, SeqNo};

use super::keep::{Below, Stripes};
use crate::iter::range_tombstone::{Fragment, FragmentCursor, Fragments};

/// The fragments of all tombstones of a job, and where the walk over them stands.
#[derive(Clone, Debug)]
pub(crate) struct Cover {
    fragments: Arc<Fragments>,
    cursor: FragmentCursor,
}

impl Cover {
    /// A walk over `fragments`; `None` when there are none, so that callers need not ask.
    pub(crate) fn new(fragments: Arc<Fragments>) -> Option<Self> {
        (!fragments.is_empty()).then(|| Self {
            fragments,
            cursor: FragmentCursor::default(),
        })
    }

    /// Whether a tombstone covers `user_key` that is newer than `seqno` and not newer than `limit`.
    ///
    /// Cheap for keys in ascending order from call to call.
    #[inline]
    pub(crate) fn covers(
        &mut self,
        order: &KeyOrder,
        user_key: &[u8],
        seqno: SeqNo,
        limit: SeqNo,
    ) -> bool {
        self.cursor
            .covering(order, &self.fragments, user_key)
            .is_some_and(|fragment| fragment.newest_at(limit) > seqno)
    }
}

/// The job's tombstones that its output needs, begin ascending, then seqno descending: one a
/// stripe (the newest; it hides all that the others hide), and none where every reader sees it and
/// nothing below is left to hide.
pub(crate) fn retain(
    order: &KeyOrder,
    fragments: &Fragments,
    stripes: &Stripes,
    below: &Below,
) -> Vec<RangeTombstone> {
    let mut kept = Vec::new();
    for Fragment { begin, end, seqnos } in fragments.iter() {
        let mut last = None;
        for &seqno in seqnos {
            let stripe = stripes.of(seqno);
            if last.replace(stripe) == Some(stripe) {
                continue;
            }
            if stripes.oldest_holds(seqno) && !below.may_hold_range(order, begin, end) {
                continue;
            }
            kept.push(RangeTombstone {
                begin: begin.to_vec(),
                end: end.to_vec(),
                seqno,
            });
        }
    }
    kept
}

/// The user keys an output file answers for: from `first`, up to, not including, `limit`.
/// `None` is unbounded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Territory<'a> {
    /// First user key of the territory.
    pub first: Option<&'a [u8]>,
    /// First user key of the next.
    pub limit: Option<&'a [u8]>,
}

impl Territory<'_> {
    /// The parts of `tombstones` within the territory. Order is kept.
    ///
    /// Requires: `tombstones` as [`retain`] returns them.
    pub(crate) fn clip(
        &self,
        order: &KeyOrder,
        tombstones: &[RangeTombstone],
    ) -> Vec<RangeTombstone> {
        let from = self.first.map_or(0, |first| {
            tombstones.partition_point(|at| order.compare(&at.end, first).is_le())
        });
        let inside = tombstones
            .get(from..)
            .expect("the search ends within the tombstones");
        let count = self.limit.map_or(inside.len(), |limit| {
            inside.partition_point(|at| order.compare(&at.begin, limit).is_lt())
        });
        let inside = inside.get(..count).expect("the count was taken of them");
        inside.iter().map(|at| self.clip_one(order, at)).collect()
    }

    fn clip_one(&self, order: &KeyOrder, tombstone: &RangeTombstone) -> RangeTombstone {
        let mut out = tombstone.clone();
        if let Some(first) = self.first
            && order.compare(&out.begin, first).is_lt()
        {
            out.begin = first.to_vec();
        }
        if let Some(limit) = self.limit
            && order.compare(&out.end, limit).is_gt()
        {
            out.end = limit.to_vec();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(begin: &str, end: &str, seqno: SeqNo) -> RangeTombstone {
        RangeTombstone {
            begin: begin.into(),
            end: end.into(),
            seqno,
        }
    }

    #[test]
    fn one_tombstone_a_stripe_stays_and_none_that_all_see_over_nothing() {
        let order = KeyOrder::Bytewise;
        let all: Vec<_> = (1..=6).map(|seqno| tombstone("b", "d", seqno)).collect();
        let fragments = Fragments::new(&order, &all);
        let stripes = Stripes::new(vec![2, 4]);
        let seqnos = |below: &Below| -> Vec<SeqNo> {
            let kept = retain(&order, &fragments, &stripes, below);
            kept.iter().map(|at| at.seqno).collect()
        };
        assert_eq!(seqnos(&Below::Anything), [6, 4, 2]);
        assert_eq!(seqnos(&Below::Nothing), [6, 4]);
    }

    #[test]
    fn neighbouring_territories_share_a_tombstone_without_gap_or_overlap() {
        let order = KeyOrder::Bytewise;
        let all = [tombstone("a", "c", 9), tombstone("d", "z", 7)];
        let part = |first: Option<&'static str>, limit: Option<&'static str>| {
            let territory = Territory {
                first: first.map(str::as_bytes),
                limit: limit.map(str::as_bytes),
            };
            territory.clip(&order, &all)
        };
        assert_eq!(
            part(None, Some("m")),
            [tombstone("a", "c", 9), tombstone("d", "m", 7)]
        );
        assert_eq!(part(Some("m"), None), [tombstone("m", "z", 7)]);
        assert_eq!(part(Some("c"), Some("d")), []);
        assert_eq!(part(Some("z"), None), []);
    }
}
