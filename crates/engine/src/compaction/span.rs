//! Spans of user keys, as files and jobs cover them.
//!
//! A file whose last bound is the end of a range tombstone does not cover that key itself. Treating
//! it as covered would chain neighbours that only touch into one ever larger compaction.

use std::sync::Arc;

use drumlin_base::key::{split_internal, tag_kind, tag_seqno};
use drumlin_base::{KeyOrder, SEQNO_MAX, ValueKind};

use crate::version::FileMeta;

/// User keys from `first` to `last`; `last` itself only if `last_included`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span<'a> {
    /// First user key.
    pub first: &'a [u8],
    /// Last user key, or the key before which the span ends.
    pub last: &'a [u8],
    /// Whether `last` belongs to the span.
    pub last_included: bool,
}

impl<'a> Span<'a> {
    /// The span of `file`.
    pub(crate) fn of(file: &'a FileMeta) -> Self {
        let (last, tag) = split_internal(&file.largest).unwrap_or((&file.largest, 0));
        let excluded =
            tag_seqno(tag) == SEQNO_MAX && tag_kind(tag) == ValueKind::RangeDeletion as u8;
        Self {
            first: file.smallest_user_key(),
            last,
            last_included: !excluded,
        }
    }

    /// Whether every key of the span is before `key`.
    pub(crate) fn ends_before(&self, order: &KeyOrder, key: &[u8]) -> bool {
        let ordering = order.compare(self.last, key);
        ordering.is_lt() || (ordering.is_eq() && !self.last_included)
    }

    /// Whether the spans share a key.
    pub(crate) fn overlaps(&self, order: &KeyOrder, other: &Self) -> bool {
        !self.ends_before(order, other.first) && !other.ends_before(order, self.first)
    }

    /// The least span that holds both.
    #[must_use]
    pub(crate) fn hull(&self, order: &KeyOrder, other: &Self) -> Self {
        let first = if order.compare(other.first, self.first).is_lt() {
            other.first
        } else {
            self.first
        };
        let ordering = order.compare(self.last, other.last);
        let reaches_further = ordering.is_gt() || (ordering.is_eq() && self.last_included);
        let end = if reaches_further { self } else { other };
        Self {
            first,
            last: end.last,
            last_included: end.last_included,
        }
    }

    /// The least span that holds all of `files`; `None` when there are none.
    pub(crate) fn of_all(order: &KeyOrder, files: &'a [Arc<FileMeta>]) -> Option<Self> {
        files
            .iter()
            .map(|file| Self::of(file))
            .reduce(|a, b| a.hull(order, &b))
    }

    /// The span with keys of its own.
    pub(crate) fn to_owned_span(self) -> OwnedSpan {
        OwnedSpan {
            first: self.first.to_vec(),
            last: self.last.to_vec(),
            last_included: self.last_included,
        }
    }
}

/// A [`Span`] that owns its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedSpan {
    /// First user key.
    pub first: Vec<u8>,
    /// Last user key, or the key before which the span ends.
    pub last: Vec<u8>,
    /// Whether `last` belongs to the span.
    pub last_included: bool,
}

impl OwnedSpan {
    /// The same span, borrowed.
    pub(crate) fn as_span(&self) -> Span<'_> {
        Span {
            first: &self.first,
            last: &self.last,
            last_included: self.last_included,
        }
    }
}

/// The indices of the files of a sorted level that share a key with `span`, widened until no user
/// key is on both sides of either end: versions of one key travel together.
pub(crate) fn covering_range(
    order: &KeyOrder,
    files: &[Arc<FileMeta>],
    span: &Span<'_>,
) -> std::ops::Range<usize> {
    let from = files.partition_point(|file| Span::of(file).ends_before(order, span.first));
    let rest = files.get(from..).expect("the search ends within the files");
    let count = rest
        .iter()
        .take_while(|file| !span.ends_before(order, file.smallest_user_key()))
        .count();
    widen_to_whole_keys(order, files, from..from + count)
}

/// Widens `range` over neighbours that share a user key with it. An empty range stays empty.
pub(crate) fn widen_to_whole_keys(
    order: &KeyOrder,
    files: &[Arc<FileMeta>],
    mut range: std::ops::Range<usize>,
) -> std::ops::Range<usize> {
    if range.is_empty() {
        return range;
    }
    let shares_key = |before: usize| -> bool {
        match (files.get(before), files.get(before + 1)) {
            (Some(a), Some(b)) => !Span::of(a).ends_before(order, b.smallest_user_key()),
            _ => false,
        }
    };
    while range.start > 0 && shares_key(range.start - 1) {
        range.start -= 1;
    }
    while shares_key(range.end - 1) {
        range.end += 1;
    }
    range
}
