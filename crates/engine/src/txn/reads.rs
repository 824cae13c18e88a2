//! What an optimistic transaction read, to be looked at again when it commits.
//!
//! A key is noted as it is read. A walk notes the stretch it went over, gaps included, as it goes: from where it was
//! positioned to where it stands, or to its bound once it found nothing more.

use std::collections::{BTreeMap, BTreeSet};

use drumlin_base::{Error, ErrorKind, Result};

use crate::family::column_family::ColumnFamily;

/// Most keys and stretches that one transaction may read.
const READS_MAX: usize = 1 << 20;

/// The end of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// This key, which is in it.
    At(Vec<u8>),
    /// The bound of the walk, which is not.
    Bound(Option<Vec<u8>>),
}

/// Keys that a walk went over, in the order of their family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Its first key; `None` is unbounded.
    pub(crate) begin: Option<Vec<u8>>,
    pub(crate) end: End,
}

/// The reads of one family.
#[derive(Debug)]
pub(crate) struct ReadFamily {
    pub(crate) family: ColumnFamily,
    pub(crate) keys: BTreeSet<Vec<u8>>,
    pub(crate) stretches: Vec<Stretch>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    families: BTreeMap<u32, ReadFamily>,
}

impl Reads {
    /// What was read of `family`, to be added to.
    pub(crate) fn of_family(&mut self, family: &ColumnFamily) -> &mut ReadFamily {
        let none = || ReadFamily {
            family: family.clone(),
            keys: BTreeSet::new(),
            stretches: Vec::new(),
        };
        self.families.entry(family.id()).or_insert_with(none)
    }

    /// All that was read.
    ///
    /// # Errors
    /// `TooLarge` where that is more than can be looked at again.
    pub(crate) fn into_families(self) -> Result<Vec<ReadFamily>> {
        let families: Vec<_> = self.families.into_values().collect();
        let counts = families.iter();
        let count: usize = counts.map(|it| it.keys.len() + it.stretches.len()).sum();
        if count > READS_MAX {
            let message = format!(
                "an optimistic transaction read {count} keys and stretches, more than {READS_MAX}"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(families)
    }
}

impl ReadFamily {
    /// Notes that `key` was read.
    pub(crate) fn note_key(&mut self, key: &[u8]) {
        if !self.keys.contains(key) {
            self.keys.insert(key.to_vec());
        }
    }
}
