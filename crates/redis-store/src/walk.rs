//! A walk over a family as a command sees it: the view with the overlay's changes over it.

use std::borrow::Cow;
use std::collections::btree_map;
use std::fmt;
use std::iter::Peekable;

use drumlin::DbIterator;

use crate::failure::Outcome;
use crate::overlay::Change;

/// The direction of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// The changes of a range, in the direction of the walk.
pub(crate) enum Changes<'a> {
    Forward(btree_map::Range<'a, Vec<u8>, Change>),
    Backward(std::iter::Rev<btree_map::Range<'a, Vec<u8>, Change>>),
    /// From more than one place.
    Gathered(std::vec::IntoIter<(Vec<u8>, Change)>),
}

impl<'a> Changes<'a> {
    /// Those of a table and of another place.
    pub(crate) fn gathered(
        table: btree_map::Range<'a, Vec<u8>, Change>,
        others: Vec<(Vec<u8>, Change)>,
        direction: Direction,
    ) -> Self {
        let mut all = others;
        all.extend(table.map(|(key, change)| (key.clone(), change.clone())));
        all.sort_unstable_by(|one, other| match direction {
            Direction::Forward => one.0.cmp(&other.0),
            Direction::Backward => other.0.cmp(&one.0),
        });
        Self::Gathered(all.into_iter())
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = (Cow<'a, [u8]>, Change);

    fn next(&mut self) -> Option<Self::Item> {
        let lent = |(key, change): (&'a Vec<u8>, &Change)| (Cow::Borrowed(&**key), change.clone());
        match self {
            Self::Forward(range) => range.next().map(lent),
            Self::Backward(range) => range.next().map(lent),
            Self::Gathered(entries) => {
                let (key, change) = entries.next()?;
                Some((Cow::Owned(key), change))
            }
        }
    }
}

/// Where the next entry comes from.
enum Next {
    Stored,
    /// The overlay's, and whether it hides a stored one.
    Changed {
        hides: bool,
    },
}

/// See the module. It ends at the bounds it was made with.
pub struct Walk<'a> {
    stored: Option<DbIterator>,
    changes: Peekable<Changes<'a>>,
    direction: Direction,
    moves_first: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Walk({:?})", self.direction)
    }
}

impl<'a> Walk<'a> {
    /// `stored` stands on its first entry, if there is any.
    pub(crate) fn new(
        stored: Option<DbIterator>,
        changes: Changes<'a>,
        direction: Direction,
    ) -> Self {
        Self {
            stored,
            changes: changes.peekable(),
            direction,
            moves_first: false,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// The next key and value, in buffers that the call after this one overwrites.
    ///
    /// # Errors
    /// `Cold` where a block is not in memory and the walk may not read; the engine's.
    #[expect(
        clippy::should_implement_trait,
        reason = "the entry is lent until the next call"
    )]
    pub fn next(&mut self) -> Outcome<Option<(&[u8], &[u8])>> {
        while let Some(next) = self.find()? {
            match next {
                Next::Stored => {
                    if let Some(stored) = &self.stored {
                        self.key.clear();
                        self.key.extend_from_slice(stored.key());
                        let value = stored.value();
                        self.value.clear();
                        self.value.extend_from_slice(value);
                        stored.status()?;
                    }
                    self.moves_first = true;
                    return Ok(Some((&self.key, &self.value)));
                }
                Next::Changed { hides } => {
                    self.moves_first = hides;
                    let Some((key, change)) = self.changes.next() else {
                        break;
                    };
                    if let Some(value) = change {
                        self.key.clear();
                        self.key.extend_from_slice(&key);
                        self.value.clear();
                        self.value.extend_from_slice(&value);
                        return Ok(Some((&self.key, &self.value)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn find(&mut self) -> Outcome<Option<Next>> {
        let mut key = None;
        if let Some(stored) = &mut self.stored {
            if self.moves_first {
                match self.direction {
                    Direction::Forward => stored.next(),
                    Direction::Backward => stored.prev(),
                }
                self.moves_first = false;
            }
            match stored.valid() {
                true => key = Some(stored.key()),
                false => stored.status()?,
            }
        }
        let change = self.changes.peek().map(|(key, _)| &**key);
        Ok(match (key, change) {
            (None, None) => None,
            (Some(_), None) => Some(Next::Stored),
            (None, Some(_)) => Some(Next::Changed { hides: false }),
            (Some(stored), Some(changed)) => {
                let order = match self.direction {
                    Direction::Forward => changed.cmp(stored),
                    Direction::Backward => stored.cmp(changed),
                };
                Some(match order.is_le() {
                    true => Next::Changed {
                        hides: order.is_eq(),
                    },
                    false => Next::Stored,
                })
            }
        })
    }
}
