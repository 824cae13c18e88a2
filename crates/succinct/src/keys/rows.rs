//! The integers of the keys of one block, column by column.
//!
//! Blocks are stored column by column, and each column is gone over several times to find how to store
//! it: laid out so, it is in a few cache lines.

use super::BLOCK_KEYS;
use super::run::KeyRun;
use super::template::{FIELDS_MAX, Template};

/// The integers of at most [`BLOCK_KEYS`] keys.
pub(super) struct Rows {
    columns: Box<[[u64; BLOCK_KEYS]; FIELDS_MAX]>,
    count: usize,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            columns: Box::new([[0; BLOCK_KEYS]; FIELDS_MAX]),
            count: 0,
        }
    }
}

impl Rows {
    /// Takes the keys `from..until` of `keys` apart. False when one does not fit, or they are too many.
    pub(super) fn parse(
        &mut self,
        template: &Template,
        keys: &KeyRun,
        from: usize,
        until: usize,
    ) -> bool {
        self.count = 0;
        if until - from > BLOCK_KEYS {
            return false;
        }
        for key in keys.range(from, until) {
            let (columns, index) = (&mut *self.columns, self.count);
            let fits = template.parse_each(key, |field, value| {
                let place = columns.get_mut(field).and_then(|all| all.get_mut(index));
                *place.expect("fields and keys of a block are bounded") = value;
            });
            if !fits {
                return false;
            }
            self.count += 1;
        }
        true
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The integers of field `field`, which is below [`FIELDS_MAX`].
    pub(super) fn column(&self, field: usize) -> &[u64] {
        let column = self.columns.get(field).map(|all| all.get(..self.count));
        column.flatten().unwrap_or(&[])
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
