//! A range of a family as Rust's own iterators are: double-ended, of results.
//!
//! Each end is a [`DbIterator`] over the same moment; that of the back is made when it is first asked. An end stands on the
//! entry that it yielded last, so the two have met when one comes to where the other stands.

use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::Arc;

use drumlin_base::{PinnedSlice, Result};

use crate::family::column_family::ColumnFamily;
use crate::options::settings::ReadOptions;
use crate::read::{DbIterator, IteratorOptions};

/// A key with its value.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// The value, pinned where it lies.
    pub value: PinnedSlice,
}

impl Entry {
    fn at(cursor: &DbIterator) -> Result<Self> {
        let value = cursor.pin_value();
        // Of a value in a blob file that cannot be read.
        cursor.status()?;
        Ok(Self {
            key: cursor.key().to_vec(),
            value,
        })
    }
}

/// The bounds of a range, as the family orders keys.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) start: Bound<Vec<u8>>,
    pub(super) end: Bound<Vec<u8>>,
}

impl Bounds {
    /// The options of a walk that stays within them as far as the engine knows bounds: from a key on, and up to one.
    pub(super) fn read_options(&self) -> ReadOptions {
        let lower_bound = match &self.start {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        let upper_bound = match &self.end {
            Bound::Excluded(key) => Some(key.clone()),
            Bound::Included(_) | Bound::Unbounded => None,
        };
        ReadOptions {
            lower_bound,
            upper_bound,
            ..ReadOptions::default()
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// Both ends of a range, and what lies between them.
struct Between {
    family: ColumnFamily,
    bounds: Bounds,
    options: IteratorOptions,
    front: DbIterator,
    back: Option<DbIterator>,
    front_has_begun: bool,
    is_over: bool,
}

impl Between {
    /// The next entry at an end, as `take` has it.
    fn next<T>(
        &mut self,
        end: End,
        take: impl FnOnce(&DbIterator) -> Result<T>,
    ) -> Option<Result<T>> {
        if self.is_over {
            return None;
        }
        let taken = self.advance(end).and_then(|is_there| match is_there {
            true => self.cursor(end).map(take).transpose(),
            false => Ok(None),
        });
        self.is_over = !matches!(taken, Ok(Some(_)));
        taken.transpose()
    }

    fn cursor(&self, end: End) -> Option<&DbIterator> {
        match end {
            End::Front => Some(&self.front),
            End::Back => self.back.as_ref(),
        }
    }

    /// Moves an end to its next entry; whether there is one.
    fn advance(&mut self, end: End) -> Result<bool> {
        match end {
            End::Front => self.advance_front(),
            End::Back => self.advance_back()?,
        }
        let Some(cursor) = self.cursor(end) else {
            return Ok(false);
        };
        if !cursor.valid() {
            cursor.status()?;
            return Ok(false);
        }
        Ok(self.is_within(cursor.key()) && !self.has_met(end, cursor.key()))
    }

    fn advance_front(&mut self) {
        if self.front_has_begun {
            self.front.next();
            return;
        }
        self.front_has_begun = true;
        match &self.bounds.start {
            Bound::Unbounded => self.front.seek_to_first(),
            Bound::Included(key) => self.front.seek(key),
            Bound::Excluded(key) => {
                self.front.seek(key);
                let order = self.family.order();
                if self.front.valid() && order.compare(self.front.key(), key) == Ordering::Equal {
                    self.front.next();
                }
            }
        }
    }

    fn advance_back(&mut self) -> Result<()> {
        if let Some(back) = &mut self.back {
            back.prev();
            return Ok(());
        }
        // A walk that was refused says why.
        self.front.status()?;
        let (reads, super_version) = (
            Arc::clone(&self.family.0.reads),
            Arc::clone(self.front.super_version()),
        );
        let mut back = DbIterator::new(
            reads,
            super_version,
            self.front.seqno(),
            self.options.clone(),
        );
        match &self.bounds.end {
            Bound::Included(key) => back.seek_for_prev(key),
            // The walk keeps to the bound.
            Bound::Excluded(_) | Bound::Unbounded => back.seek_to_last(),
        }
        self.back = Some(back);
        Ok(())
    }

    /// Whether the bounds that a walk does not know let `key` pass.
    fn is_within(&self, key: &[u8]) -> bool {
        let order = self.family.order();
        let after_start = match &self.bounds.start {
            Bound::Excluded(start) => order.compare(key, start) == Ordering::Greater,
            Bound::Included(_) | Bound::Unbounded => true,
        };
        after_start
            && match &self.bounds.end {
                Bound::Included(end) => order.compare(key, end) != Ordering::Greater,
                Bound::Excluded(_) | Bound::Unbounded => true,
            }
    }

    /// Whether an end that came to `key` has met the other.
    fn has_met(&self, end: End, key: &[u8]) -> bool {
        let order = self.family.order();
        match (end, &self.back) {
            (End::Front, Some(back)) => order.compare(key, back.key()) != Ordering::Less,
            (End::Back, _) if self.front_has_begun => {
                order.compare(key, self.front.key()) != Ordering::Greater
            }
            _ => false,
        }
    }
}

/// The entries of a range as of the moment when it was made, from either end.
///
/// An error ends it. It keeps files and memory of its moment, so it is not to be held for hours; one thread at a time.
pub struct Range(Between);

impl Range {
    pub(super) fn new(
        family: ColumnFamily,
        front: DbIterator,
        bounds: Bounds,
        options: &ReadOptions,
    ) -> Self {
        Self(Between {
            family,
            bounds,
            options: options.for_iterators(),
            front,
            back: None,
            front_has_begun: false,
            is_over: false,
        })
    }

    /// The keys of what is left. No value is read, and no blob file opened.
    pub fn keys(self) -> Keys {
        Keys(self.0)
    }
}

impl Iterator for Range {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(End::Front, Entry::at)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next(End::Back, Entry::at)
    }
}

impl FusedIterator for Range {}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Range({:?})", self.0.bounds)
    }
}

/// The keys of a range, from either end: see [`Range::keys`].
pub struct Keys(Between);

impl Iterator for Keys {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(End::Front, |cursor| Ok(cursor.key().to_vec()))
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next(End::Back, |cursor| Ok(cursor.key().to_vec()))
    }
}

impl FusedIterator for Keys {}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({:?})", self.0.bounds)
    }
}
