//! The fate of one entry on its way through a flush or a compaction: the rules, without I/O.
//!
//! Snapshots cut the history of a key into *stripes*: two entries with no snapshot between them are in
//! the same stripe, and no reader can see the older one while the newer hides it. All rules follow
//! from that:
//!
//! - An entry hidden by a newer one of its stripe is dropped.
//! - An entry covered by a range tombstone of its stripe is dropped.
//! - A tombstone is dropped when nothing is left that it could hide.
//! - Operands of a merge are combined inside their stripe, never across its border.
//! - A single deletion and the value under it annihilate each other inside their stripe.
//!
//! [`Keep`] gives the verdict on one entry; [`super::stream::Stream`] carries it out, with the look
//! ahead that some verdicts need. Not shared between threads.

use std::cmp::Ordering;

use drumlin_base::{KeyOrder, SEQNO_MAX, SeqNo, ValueKind};

/// The snapshots that are alive, as stripes of the history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stripes {
    /// Ascending, without repetitions.
    snapshots: Vec<SeqNo>,
}

impl Stripes {
    /// The stripes cut by `snapshots`, given in any order.
    pub(crate) fn new(mut snapshots: Vec<SeqNo>) -> Self {
        snapshots.sort_unstable();
        snapshots.dedup();
        Self { snapshots }
    }

    /// The snapshots, ascending.
    pub(crate) fn snapshots(&self) -> &[SeqNo] {
        &self.snapshots
    }

    /// The stripe of `seqno`: the oldest snapshot that sees it, [`SEQNO_MAX`] when none does.
    #[inline]
    pub(crate) fn of(&self, seqno: SeqNo) -> SeqNo {
        if self.snapshots.is_empty() {
            return SEQNO_MAX;
        }
        let index = self.snapshots.partition_point(|&at| at < seqno);
        self.snapshots.get(index).copied().unwrap_or(SEQNO_MAX)
    }

    /// Whether `seqno` is in the oldest stripe, where every reader there is sees it.
    #[inline]
    pub(crate) fn oldest_holds(&self, seqno: SeqNo) -> bool {
        self.snapshots.first().is_none_or(|&oldest| seqno <= oldest)
    }
}

/// One file, as far as [`Below`] needs to know it: first and last user key, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    /// First user key.
    pub first: Vec<u8>,
    /// Last user key.
    pub last: Vec<u8>,
}

/// The data below the output of a job: whether a tombstone still has something to hide.
#[derive(Clone, Debug)]
pub(crate) enum Below {
    /// Nothing: the output is the end of the tree for its keys.
    Nothing,
    /// Anything, as under a flush.
    Anything,
    /// The files of each deeper level, and how far the walk has come in each.
    Levels(Vec<BelowLevel>),
}

/// One level under the output. Keys are asked for in ascending order, so the place only advances.
#[derive(Clone, Debug)]
pub(crate) struct BelowLevel {
    files: Vec<KeyRange>,
    at: usize,
}

impl Below {
    /// The files of the levels under the output, each level ascending and disjoint.
    pub(crate) fn levels(levels: Vec<Vec<KeyRange>>) -> Self {
        let levels: Vec<_> = levels
            .into_iter()
            .filter(|files| !files.is_empty())
            .map(|files| BelowLevel { files, at: 0 })
            .collect();
        if levels.is_empty() {
            Self::Nothing
        } else {
            Self::Levels(levels)
        }
    }

    /// Whether nothing is below, for any key.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Whether an older version of `user_key` may be below.
    ///
    /// Requires: keys in ascending order from call to call.
    pub(crate) fn may_hold(&mut self, order: &KeyOrder, user_key: &[u8]) -> bool {
        match self {
            Self::Nothing => false,
            _ if drumlin_base::bug!("tombstone-dropped-early") => false,
            Self::Anything => true,
            Self::Levels(levels) => levels
                .iter_mut()
                .any(|level| level.may_hold(order, user_key)),
        }
    }

    /// Whether anything may be below in `begin..end`. Does not move the walk; logarithmic.
    pub(crate) fn may_hold_range(&self, order: &KeyOrder, begin: &[u8], end: &[u8]) -> bool {
        match self {
            Self::Nothing => false,
            _ if drumlin_base::bug!("range-tombstone-dropped-early") => false,
            Self::Anything => true,
            Self::Levels(levels) => levels.iter().any(|level| {
                let at = level
                    .files
                    .partition_point(|file| order.compare(&file.last, begin).is_lt());
                level
                    .files
                    .get(at)
                    .is_some_and(|file| order.compare(&file.first, end).is_lt())
            }),
        }
    }
}

impl BelowLevel {
    fn may_hold(&mut self, order: &KeyOrder, user_key: &[u8]) -> bool {
        while let Some(file) = self.files.get(self.at) {
            if order.compare(&file.last, user_key).is_lt() {
                self.at += 1;
                continue;
            }
            return order.compare(&file.first, user_key) != Ordering::Greater;
        }
        false
    }
}

/// The decision on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays; everything older in its stripe is hidden by it.
    Keep,
    /// A newer entry of its stripe hides it.
    Hidden,
    /// A range tombstone of its stripe covers it.
    Covered,
    /// A deletion: it stays if there may be something older to hide.
    Delete,
    /// A single deletion: it looks for the value to annihilate. `hidden` when a newer entry of its
    /// stripe stands over it: it must still take its one value along.
    DeleteSingle {
        /// Whether a newer entry of the stripe hides it.
        hidden: bool,
    },
    /// The newest operand of a run to be combined.
    Merge,
}

/// The decision machine: fed every entry of a key from newest to oldest.
#[derive(Clone, Debug)]
pub(crate) struct Keep {
    stripes: Stripes,
    /// The stripe in which something older is hidden, once an entry of this key settled it.
    closed: Option<SeqNo>,
}

impl Keep {
    /// A machine for the given snapshots.
    pub(crate) fn new(stripes: Stripes) -> Self {
        Self {
            stripes,
            closed: None,
        }
    }

    /// The stripes it judges by.
    #[inline]
    pub(crate) fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    /// Starts on the next user key.
    #[inline]
    pub(crate) fn start_key(&mut self) {
        self.closed = None;
    }

    /// Declares everything older in `stripe` hidden.
    #[inline]
    pub(crate) fn close(&mut self, stripe: SeqNo) {
        self.closed = Some(stripe);
    }

    /// Whether everything older in `stripe` is hidden.
    #[inline]
    pub(crate) fn is_closed(&self, stripe: SeqNo) -> bool {
        self.closed == Some(stripe)
    }

    /// The verdict on the next entry of the key, which is in `stripe`. `covered`: a range
    /// tombstone of the stripe is newer than it and covers its key.
    #[inline]
    pub(crate) fn judge(&mut self, stripe: SeqNo, kind: ValueKind, covered: bool) -> Verdict {
        let hidden = self.is_closed(stripe);
        if covered {
            // Older entries of the stripe are covered as well.
            self.close(stripe);
            return Verdict::Covered;
        }
        match kind {
            ValueKind::SingleDeletion => Verdict::DeleteSingle { hidden },
            _ if hidden => Verdict::Hidden,
            ValueKind::Merge => Verdict::Merge,
            ValueKind::Deletion => {
                self.close(stripe);
                Verdict::Delete
            }
            ValueKind::Value
            | ValueKind::BlobIndex
            | ValueKind::DeletionWithTimestamp
            | ValueKind::WideColumnEntity
            | ValueKind::RangeDeletion => {
                self.close(stripe);
                Verdict::Keep
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_the_oldest_snapshot_that_sees_the_entry() {
        let stripes = Stripes::new(vec![20, 10, 20]);
        assert_eq!(stripes.of(5), 10);
        assert_eq!(stripes.of(10), 10);
        assert_eq!(stripes.of(11), 20);
        assert_eq!(stripes.of(21), SEQNO_MAX);
        assert!(stripes.oldest_holds(10) && !stripes.oldest_holds(11));
        assert!(Stripes::default().oldest_holds(SEQNO_MAX));
    }

    #[test]
    fn older_entries_of_a_closed_stripe_are_hidden_until_the_next_stripe() {
        let mut keep = Keep::new(Stripes::new(vec![10]));
        assert_eq!(
            keep.judge(SEQNO_MAX, ValueKind::Value, false),
            Verdict::Keep
        );
        assert_eq!(
            keep.judge(SEQNO_MAX, ValueKind::Merge, false),
            Verdict::Hidden
        );
        assert_eq!(
            keep.judge(SEQNO_MAX, ValueKind::SingleDeletion, false),
            Verdict::DeleteSingle { hidden: true }
        );
        assert_eq!(keep.judge(10, ValueKind::Deletion, false), Verdict::Delete);
        keep.start_key();
        assert_eq!(keep.judge(10, ValueKind::Value, true), Verdict::Covered);
    }

    #[test]
    fn what_lies_below_is_told_by_file_ranges() {
        let range = |first: &str, last: &str| KeyRange {
            first: first.into(),
            last: last.into(),
        };
        let order = KeyOrder::Bytewise;
        let mut below = Below::levels(vec![
            vec![],
            vec![range("b", "d"), range("f", "h")],
            vec![range("m", "n")],
        ]);
        let held: Vec<bool> = ["a", "b", "d", "e", "f", "i", "m", "n", "o"]
            .iter()
            .map(|key| below.may_hold(&order, key.as_bytes()))
            .collect();
        let expected = [false, true, true, false, true, false, true, true, false];
        assert_eq!(held, expected);
        assert!(!below.may_hold_range(&order, b"i", b"m"));
        assert!(below.may_hold_range(&order, b"i", b"m\0"));
        assert!(Below::levels(vec![vec![], vec![]]).is_nothing());
    }
}
