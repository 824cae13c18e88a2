//! What may be locked: a key, or a range of keys of one family.

use std::fmt;
use std::sync::Arc;

use drumlin_base::KeyOrder;

use crate::read::KeyInterval;
use crate::txn::lock_key::LockKey;

/// Keys of one family from `begin` up to, not including, `end`, in its order. `None` is unbounded.
#[derive(Clone, Debug)]
pub(crate) struct KeysBetween {
    pub(crate) family: u32,
    order: KeyOrder,
    begin: Option<Arc<[u8]>>,
    end: Option<Arc<[u8]>>,
}

impl KeysBetween {
    /// The keys of `range` in `family`.
    pub(crate) fn new(family: u32, order: &KeyOrder, range: KeyInterval<'_>) -> Self {
        Self {
            family,
            order: order.clone(),
            begin: range.begin.map(Arc::from),
            end: range.end.map(Arc::from),
        }
    }

    /// Whether `key` is in it.
    pub(crate) fn holds(&self, family: u32, key: &[u8]) -> bool {
        let order = &self.order;
        let begin = self.begin.as_deref();
        let end = self.end.as_deref();
        family == self.family
            && begin.is_none_or(|begin| order.compare(begin, key).is_le())
            && end.is_none_or(|end| order.compare(key, end).is_lt())
    }

    /// Whether every key of `other` is in it.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let order = &self.order;
        let begins = match (&self.begin, &other.begin) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => order.compare(own, other).is_le(),
        };
        let ends = match (&self.end, &other.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => order.compare(other, own).is_le(),
        };
        self.family == other.family && begins && ends
    }

    /// Whether a key may be in both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let begins_before_end = |a: &Self, b: &Self| match (&a.begin, &b.end) {
            (Some(begin), Some(end)) => self.order.compare(begin, end).is_lt(),
            _ => true,
        };
        self.family == other.family
            && begins_before_end(self, other)
            && begins_before_end(other, self)
    }
}

/// What an owner waits for.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Key(LockKey),
    Range(KeysBetween),
}

impl Wanted {
    /// Whether a lock of one concerns a key of the other.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Key(one), Self::Key(two)) => one == two,
            (Self::Range(span), Self::Key(key)) | (Self::Key(key), Self::Range(span)) => {
                span.holds(key.family, &key.key)
            }
            (Self::Range(one), Self::Range(two)) => one.meets(two),
        }
    }

    /// The family of its keys.
    pub(crate) fn family(&self) -> u32 {
        match self {
            Self::Key(key) => key.family,
            Self::Range(span) => span.family,
        }
    }

    /// The same, as users are told.
    pub(crate) fn told(&self) -> LockTarget {
        let copy = |key: &Option<Arc<[u8]>>| key.as_ref().map(|key| key.to_vec());
        match self {
            Self::Key(key) => LockTarget::Key(key.key.to_vec()),
            Self::Range(span) => LockTarget::Range {
                begin: copy(&span.begin),
                end: copy(&span.end),
            },
        }
    }
}

/// What a transaction locks or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockTarget {
    /// A key.
    Key(Vec<u8>),
    /// The keys from `begin` up to, not including, `end`, in the order of their family. `None` is unbounded.
    Range {
        /// The first key.
        begin: Option<Vec<u8>>,
        /// The first key past it.
        end: Option<Vec<u8>>,
    },
}

impl fmt::Display for LockTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = |f: &mut fmt::Formatter<'_>, key: &Option<Vec<u8>>| match key {
            Some(key) => write!(f, "\"{}\"", key.escape_ascii()),
            None => Ok(()),
        };
        match self {
            Self::Key(key) => write!(f, "the key \"{}\"", key.escape_ascii()),
            Self::Range { begin, end } => {
                f.write_str("the range ")?;
                quote(f, begin)?;
                f.write_str("..")?;
                quote(f, end)
            }
        }
    }
}
