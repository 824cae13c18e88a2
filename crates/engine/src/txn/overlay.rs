//! A walk over what the store has, with a batch's own writes laid over it.
//!
//! Two cursors, one over the store at the reader's moment and one over the batch's index, move in one direction at a
//! time. Whichever is first shows; on the same key the batch decides, with the store's value below its merge operands.
//! Ranges that the batch deleted are left by one seek.
//!
//! Invariant: both cursors stand at or past the shown key, in the direction of the walk. One thread at a time.

use std::fmt;
use std::sync::Arc;

use drumlin_base::{Error, KeyOrder, MergeOperator, PinnedSlice, PrefixExtractor, Result};

use crate::family::column_family::ColumnFamily;
use crate::options::settings::ReadOptions;
use crate::read::DbIterator;
use crate::txn::family_writes::{Change, FamilyWrites, Own, apply};
use crate::txn::ordered_map::Entry;
use crate::txn::reads::{End, Stretch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// Where the shown key and value are.
#[derive(Debug)]
enum Place {
    Nowhere,
    /// In the store.
    Stored,
    /// In the batch, with this value.
    Own(PinnedSlice),
}

/// How a walk goes: the parts of its family, and its bounds.
pub(crate) struct Course {
    order: KeyOrder,
    merge: Option<Arc<dyn MergeOperator>>,
    /// Where the walk stays within the prefix that it begins with.
    prefix: Option<Arc<dyn PrefixExtractor>>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Course {
    /// Of a walk over `family`. Its prefix is taken out of `options`: the walk sees to that itself, because the cursor
    /// over the store has to seek the ends of deleted ranges.
    pub(crate) fn new(family: &ColumnFamily, options: &mut ReadOptions) -> Self {
        let within = std::mem::take(&mut options.prefix_same_as_start);
        let family = &family.0.options;
        Self {
            order: family.order.clone(),
            merge: family.merge_operator.clone(),
            prefix: family.prefix_extractor.clone().filter(|_| within),
            lower: options.lower_bound.clone(),
            upper: options.upper_bound.clone(),
        }
    }

    fn is_below(&self, key: &[u8]) -> bool {
        let lower = self.lower.as_deref();
        lower.is_some_and(|lower| self.order.compare(key, lower).is_lt())
    }

    fn is_beyond(&self, key: &[u8]) -> bool {
        let upper = self.upper.as_deref();
        upper.is_some_and(|upper| self.order.compare(key, upper).is_ge())
    }

    fn prefix_of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        self.prefix.as_ref().and_then(|prefix| prefix.prefix(key))
    }
}

/// A walk over one family as a transaction sees it, or as it would be with a batch written: what the store has at the
/// reader's moment, with the own writes over it. Made by [`crate::Transaction::iter`] and
/// [`crate::IndexedBatch::iter_over`].
///
/// Used as a [`DbIterator`]: position it first, read and move only while it is valid; an end is an end only if
/// `status()` is `Ok`.
pub struct OverlayIterator<'a> {
    stored: DbIterator,
    writes: &'a FamilyWrites,
    own: Option<Entry<'a, Own>>,
    course: Course,
    /// The prefix that the walk stays within, once it has one.
    within: Option<Vec<u8>>,
    way: Way,
    place: Place,
    error: Option<Error>,
    /// Where the walk is noted, if it is.
    walked: Option<&'a mut Vec<Stretch>>,
}

impl fmt::Debug for OverlayIterator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverlayIterator")
            .field("place", &self.place)
            .field("stored", &self.stored)
            .finish_non_exhaustive()
    }
}

impl<'a> OverlayIterator<'a> {
    /// `writes` over `stored`.
    pub(crate) fn new(stored: DbIterator, writes: &'a FamilyWrites, course: Course) -> Self {
        Self {
            stored,
            writes,
            own: None,
            course,
            within: None,
            way: Way::Forward,
            place: Place::Nowhere,
            error: None,
            walked: None,
        }
    }

    /// Notes in `walked` what it goes over.
    #[must_use]
    pub(crate) fn noting(mut self, walked: Option<&'a mut Vec<Stretch>>) -> Self {
        self.walked = walked;
        self
    }

    /// Whether the walk stands on a key.
    pub fn valid(&self) -> bool {
        !matches!(self.place, Place::Nowhere)
    }

    /// The user key; empty while the walk is not valid.
    pub fn key(&self) -> &[u8] {
        match &self.place {
            Place::Nowhere => &[],
            Place::Stored => self.stored.key(),
            Place::Own(_) => self.own.map_or(&[], |(key, _)| key),
        }
    }

    /// The value; empty while the walk is not valid, and where it cannot be read, as [`DbIterator::value`] has it.
    pub fn value(&self) -> &[u8] {
        match &self.place {
            Place::Nowhere => &[],
            Place::Stored => self.stored.value(),
            Place::Own(value) => value,
        }
    }

    /// As [`OverlayIterator::value`], with the error where a value in a blob file cannot be read.
    ///
    /// # Errors
    /// As [`DbIterator::try_value`].
    pub fn try_value(&self) -> Result<&[u8]> {
        match &self.place {
            Place::Stored => self.stored.try_value(),
            _ => Ok(self.value()),
        }
    }

    /// The error that ended the walk, if one did.
    ///
    /// # Errors
    /// As [`DbIterator::status`]; the merge operator's.
    pub fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.duplicate()),
            None => self.stored.status(),
        }
    }

    /// Stands on the first key.
    pub fn seek_to_first(&mut self) {
        self.begin(Way::Forward, None);
        self.stored.seek_to_first();
        let lower = self.course.lower.as_deref();
        let keys = self.writes.keys();
        self.own = lower.map_or_else(|| keys.first(), |lower| keys.seek(lower));
        self.find();
        self.note_place(true);
        self.stay_within_current();
    }

    /// Stands on the last key.
    pub fn seek_to_last(&mut self) {
        self.begin(Way::Backward, None);
        self.stored.seek_to_last();
        let upper = self.course.upper.as_deref();
        let keys = self.writes.keys();
        self.own = upper.map_or_else(|| keys.last(), |upper| keys.before(upper));
        self.find();
        self.note_place(true);
        self.stay_within_current();
    }

    /// Stands on the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.begin(Way::Forward, Some(key));
        self.within = self.course.prefix_of(key).map(<[u8]>::to_vec);
        self.stored.seek(key);
        let from = match self.course.is_below(key) {
            true => self.course.lower.as_deref().unwrap_or(key),
            false => key,
        };
        self.own = self.writes.keys().seek(from);
        self.find();
        self.note_place(true);
    }

    /// Stands on the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.begin(Way::Backward, Some(key));
        self.within = self.course.prefix_of(key).map(<[u8]>::to_vec);
        self.stored.seek_for_prev(key);
        let keys = self.writes.keys();
        self.own = match &self.course.upper {
            Some(upper) if self.course.is_beyond(key) => keys.before(upper),
            _ => keys.seek_for_prev(key),
        };
        self.find();
        self.note_place(true);
    }

    /// Moves to the next key.
    ///
    /// Requires: `valid()`. A debug build asserts it; a release build does nothing.
    pub fn next(&mut self) {
        self.step(Way::Forward);
    }

    /// Moves to the key before.
    ///
    /// Requires: `valid()`. A debug build asserts it; a release build does nothing.
    pub fn prev(&mut self) {
        self.step(Way::Backward);
    }

    fn step(&mut self, way: Way) {
        debug_assert!(self.valid(), "a move needs a valid iterator");
        if !self.valid() {
            return;
        }
        if self.way == way || drumlin_base::bug!("overlay-turns-with-one-cursor") {
            self.way = way;
            self.leave_key();
        } else {
            self.turn(way);
        }
        self.find();
        self.note_place(false);
    }

    /// Moves the cursors that stand on the shown key.
    fn leave_key(&mut self) {
        let own = self.own.map(|(key, _)| key);
        let (own_leaves, stored_leaves) = match &self.place {
            Place::Nowhere => (false, false),
            Place::Stored => (false, true),
            Place::Own(_) => (true, self.stored.valid() && own == Some(self.stored.key())),
        };
        if own_leaves {
            self.step_own();
        }
        if stored_leaves {
            self.step_stored();
        }
    }

    fn step_own(&mut self) {
        let keys = self.writes.keys();
        self.own = self.own.and_then(|(key, _)| match self.way {
            Way::Forward => keys.after(key),
            Way::Backward => keys.before(key),
        });
    }

    fn step_stored(&mut self) {
        match self.way {
            Way::Forward => self.stored.next(),
            Way::Backward => self.stored.prev(),
        }
    }

    /// Places both cursors beyond the shown key on its other side.
    fn turn(&mut self, way: Way) {
        let key = self.key().to_vec();
        self.way = way;
        let keys = self.writes.keys();
        match way {
            Way::Forward => {
                self.stored.seek(&key);
                self.own = keys.after(&key);
            }
            Way::Backward => {
                self.stored.seek_for_prev(&key);
                self.own = keys.before(&key);
            }
        }
        if self.stored.valid() && self.stored.key() == key {
            self.step_stored();
        }
    }

    /// Forgets where the walk stood. It begins anew at `key`, or at its bound.
    fn begin(&mut self, way: Way, key: Option<&[u8]>) {
        self.way = way;
        self.place = Place::Nowhere;
        self.error = None;
        self.within = None;
        let key = key.map(<[u8]>::to_vec);
        if let Some(walked) = &mut self.walked {
            let (begin, end) = match (way, key) {
                (_, Some(key)) => (Some(key.clone()), End::At(key)),
                (Way::Forward, None) => {
                    let lower = self.course.lower.clone();
                    (lower.clone(), End::Bound(lower))
                }
                (Way::Backward, None) => {
                    let upper = self.course.upper.clone();
                    (upper.clone(), End::Bound(upper))
                }
            };
            walked.push(Stretch { begin, end });
        }
    }

    /// Has the stretch of this walk reach to where it stands, or to its bound. `fresh` after a seek: what the stretch has
    /// on the far side is no more than where it began.
    fn note_place(&mut self, fresh: bool) {
        let Some(walked) = self.walked.take() else {
            return;
        };
        let order = &self.course.order;
        let key = self.valid().then(|| self.key());
        if let Some(stretch) = walked.last_mut() {
            match (self.way, key) {
                (Way::Forward, Some(key)) => match &mut stretch.end {
                    End::At(old) if fresh || order.compare(old, key).is_lt() => {
                        old.clear();
                        old.extend_from_slice(key);
                    }
                    End::Bound(_) if fresh => stretch.end = End::At(key.to_vec()),
                    End::At(_) | End::Bound(_) => {}
                },
                (Way::Backward, Some(key)) => match &mut stretch.begin {
                    Some(old) if order.compare(key, old).is_lt() => {
                        old.clear();
                        old.extend_from_slice(key);
                    }
                    None if fresh => stretch.begin = Some(key.to_vec()),
                    Some(_) | None => {}
                },
                (_, None) if drumlin_base::bug!("walks-end-at-their-last-key") => {}
                (Way::Forward, None) => stretch.end = End::Bound(self.course.upper.clone()),
                (Way::Backward, None) => stretch.begin.clone_from(&self.course.lower),
            }
        }
        self.walked = Some(walked);
    }

    fn stay_within_current(&mut self) {
        if self.valid() {
            let prefix = self.course.prefix_of(self.key());
            self.within = prefix.map(<[u8]>::to_vec);
        }
    }

    /// Shows the nearest key that is there, from where the cursors stand.
    fn find(&mut self) {
        self.place = Place::Nowhere;
        match self.nearest() {
            Ok(place) => self.place = place,
            Err(error) => self.error = Some(error),
        }
    }

    fn nearest(&mut self) -> Result<Place> {
        loop {
            self.leave_holes();
            self.stored.status()?;
            let own = self.own.filter(|(key, _)| !self.is_out(key));
            let Some((key, own)) = own else {
                self.own = None;
                let shows = self.stored.valid() && self.is_within(self.stored.key());
                return Ok(if shows { Place::Stored } else { Place::Nowhere });
            };
            let both = match self.stored.valid() {
                true if self.stored.key() == key => true,
                true if self.is_first(self.stored.key(), key) => {
                    let shows = self.is_within(self.stored.key());
                    return Ok(if shows { Place::Stored } else { Place::Nowhere });
                }
                _ => false,
            };
            if !self.is_within(key) {
                return Ok(Place::Nowhere);
            }
            if let Some(value) = self.shown(key, own, both)? {
                return Ok(Place::Own(value));
            }
            self.step_own();
            if both {
                self.step_stored();
            }
        }
    }

    /// The value of an own key; the store has one as well if `both`. `None` where it is deleted.
    fn shown(&self, key: &[u8], own: &Own, both: bool) -> Result<Option<PinnedSlice>> {
        let merge = self.course.merge.as_deref();
        Ok(match own.change(key, merge)? {
            Change::Value(value) => Some(value),
            Change::Deleted => None,
            Change::Operands(operands) => {
                let stored = both.then(|| self.stored.try_value()).transpose()?;
                Some(PinnedSlice::owned(apply(merge, key, stored, operands)?))
            }
            Change::Untouched => None, // A key of the index is touched.
        })
    }

    /// Moves the store's cursor out of the ranges that the batch deleted.
    fn leave_holes(&mut self) {
        while self.stored.valid()
            && let Some((begin, end)) = self.writes.hole_over(self.stored.key())
        {
            match self.way {
                Way::Forward => self.stored.seek(end),
                Way::Backward => {
                    self.stored.seek_for_prev(begin);
                    if self.stored.valid() && self.stored.key() == begin {
                        self.stored.prev();
                    }
                }
            }
        }
    }

    /// Whether the walk comes to `a` before it comes to `b`.
    fn is_first(&self, a: &[u8], b: &[u8]) -> bool {
        let order = self.course.order.compare(a, b);
        match self.way {
            Way::Forward => order.is_lt(),
            Way::Backward => order.is_gt(),
        }
    }

    /// Whether an own key is past the bound that the walk goes towards.
    fn is_out(&self, key: &[u8]) -> bool {
        match self.way {
            Way::Forward => self.course.is_beyond(key),
            Way::Backward => self.course.is_below(key),
        }
    }

    fn is_within(&self, key: &[u8]) -> bool {
        let within = self.within.as_deref();
        within.is_none_or(|prefix| self.course.prefix_of(key) == Some(prefix))
    }
}
