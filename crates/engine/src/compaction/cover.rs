//! The range tombstones of a job's inputs: which entries they cover, and what of them stays.
//!
//! Tombstones overlap; they are cut into fragments, stretches of keys that the same tombstones
//! cover. Entries come in key order, so finding the fragment of an entry is a step, not a search.
//! Not shared between threads.

use std::cmp::Ordering;

use drumlin_base::key::split_internal;
use drumlin_base::{KeyOrder, RangeTombstone, SEQNO_MAX, SeqNo, ValueKind};

use super::keep::{Below, Stripes};

/// A stretch of keys covered by the same tombstones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First user key covered.
    pub begin: Vec<u8>,
    /// First user key no longer covered.
    pub end: Vec<u8>,
    /// When the tombstones were written, newest first, without repetitions.
    pub seqnos: Vec<SeqNo>,
}

/// The fragments of all tombstones of a job, ascending and disjoint, with a place that advances.
#[derive(Clone, Debug, Default)]
pub struct Cover {
    fragments: Vec<Fragment>,
    at: usize,
}

impl Cover {
    /// Cuts `tombstones` into fragments. `None` when there are none.
    ///
    /// Cost: `n log n` for `n` tombstones, plus the size of the result.
    pub fn new(order: &KeyOrder, tombstones: &[RangeTombstone]) -> Option<Self> {
        let fragments = fragment(order, tombstones);
        (!fragments.is_empty()).then_some(Self { fragments, at: 0 })
    }

    /// The fragments.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Whether a tombstone covers `user_key` that is newer than `seqno` and not newer than `limit`.
    ///
    /// Requires: keys in ascending order from call to call.
    pub fn covers(
        &mut self,
        order: &KeyOrder,
        user_key: &[u8],
        seqno: SeqNo,
        limit: SeqNo,
    ) -> bool {
        while let Some(fragment) = self.fragments.get(self.at) {
            if order.compare(&fragment.end, user_key) != Ordering::Greater {
                self.at += 1;
                continue;
            }
            return order.compare(&fragment.begin, user_key) != Ordering::Greater
                && fragment.newest_at(limit).is_some_and(|at| at > seqno);
        }
        false
    }

    /// What is left for the output: one tombstone a stripe (the newest; it hides all that the others
    /// hide), and none where every reader sees it and nothing lies below to be hidden.
    pub fn retain(mut self, order: &KeyOrder, stripes: &Stripes, below: &Below) -> Vec<Fragment> {
        for fragment in &mut self.fragments {
            let mut last = None;
            fragment
                .seqnos
                .retain(|&seqno| last.replace(stripes.of(seqno)) != Some(stripes.of(seqno)));
            let oldest = fragment.seqnos.last().copied();
            if oldest.is_some_and(|seqno| stripes.oldest_holds(seqno))
                && !below.may_hold_range(order, &fragment.begin, &fragment.end)
            {
                fragment.seqnos.pop();
            }
        }
        self.fragments
            .retain(|fragment| !fragment.seqnos.is_empty());
        self.fragments
    }
}

impl Fragment {
    /// The tombstones of this stretch, newest first.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone> + '_ {
        self.seqnos.iter().map(|&seqno| RangeTombstone {
            begin: self.begin.clone(),
            end: self.end.clone(),
            seqno,
        })
    }

    /// The newest tombstone not newer than `limit`.
    fn newest_at(&self, limit: SeqNo) -> Option<SeqNo> {
        if limit == SEQNO_MAX {
            return self.seqnos.first().copied();
        }
        let index = self.seqnos.partition_point(|&seqno| seqno > limit);
        self.seqnos.get(index).copied()
    }
}

fn fragment(order: &KeyOrder, tombstones: &[RangeTombstone]) -> Vec<Fragment> {
    let mut live: Vec<&RangeTombstone> = tombstones
        .iter()
        .filter(|tombstone| order.compare(&tombstone.begin, &tombstone.end).is_lt())
        .collect();
    live.sort_by(|a, b| order.compare(&a.begin, &b.begin));
    let mut borders: Vec<&[u8]> = live
        .iter()
        .flat_map(|tombstone| [&*tombstone.begin, &*tombstone.end])
        .collect();
    borders.sort_by(|a, b| order.compare(a, b));
    borders.dedup_by(|a, b| order.compare(a, b).is_eq());

    let mut fragments: Vec<Fragment> = Vec::new();
    let mut open: Vec<&RangeTombstone> = Vec::new();
    let mut waiting = live.into_iter().peekable();
    for pair in borders.windows(2) {
        let [begin, end] = pair else { continue };
        open.retain(|tombstone| order.compare(&tombstone.end, begin).is_gt());
        while let Some(tombstone) =
            waiting.next_if(|tombstone| order.compare(&tombstone.begin, begin).is_le())
        {
            open.push(tombstone);
        }
        let mut seqnos: Vec<SeqNo> = open.iter().map(|tombstone| tombstone.seqno).collect();
        seqnos.sort_unstable_by(|a, b| b.cmp(a));
        seqnos.dedup();
        push_fragment(order, &mut fragments, begin, end, seqnos);
    }
    fragments
}

/// Appends a fragment, or lengthens the one before when the same tombstones cover both.
fn push_fragment(
    order: &KeyOrder,
    fragments: &mut Vec<Fragment>,
    begin: &[u8],
    end: &[u8],
    seqnos: Vec<SeqNo>,
) {
    if seqnos.is_empty() {
        return;
    }
    if let Some(last) = fragments.last_mut()
        && last.seqnos == seqnos
        && order.compare(&last.end, begin).is_eq()
    {
        last.end = end.to_vec();
        return;
    }
    fragments.push(Fragment {
        begin: begin.to_vec(),
        end: end.to_vec(),
        seqnos,
    });
}

/// Cuts a tombstone of a file down to what the file's bounds (internal keys) leave of it; `None`
/// when nothing is left. What lies outside is the business of the file's neighbours, and may have
/// been compacted further since.
///
/// A largest key that is a tombstone's end excludes its user key; any other largest key includes
/// its own, which is why the end is then put right behind it.
pub fn clip(
    order: &KeyOrder,
    tombstone: &RangeTombstone,
    smallest: &[u8],
    largest: &[u8],
) -> Option<RangeTombstone> {
    let (first, _) = split_internal(smallest)?;
    let (last, last_tag) = split_internal(largest)?;
    let mut clipped = tombstone.clone();
    if order.compare(&clipped.begin, first).is_lt() {
        clipped.begin = first.to_vec();
    }
    if order.compare(&clipped.end, last).is_gt() {
        let excluded =
            last_tag == drumlin_base::key::pack_tag(SEQNO_MAX, ValueKind::RangeDeletion as u8);
        match (excluded, order) {
            (true, _) => clipped.end = last.to_vec(),
            (false, KeyOrder::Bytewise) => {
                clipped.end = last.to_vec();
                clipped.end.push(0);
            }
            // No key right behind can be named in these orders; such files are written only when
            // the tombstone ends in the gap before the next file, so nothing is covered in excess.
            (false, KeyOrder::ReverseBytewise | KeyOrder::Custom(_)) => {}
        }
    }
    order
        .compare(&clipped.begin, &clipped.end)
        .is_lt()
        .then_some(clipped)
}
