//! Staged prefetch for a batch of lookups.
//!
//! One lookup waits for memory up to five times, each time for an address that the load before gave it.
//! Many lookups can wait at the same time: each takes a step and prefetches the lines that its next step
//! needs, then the others take theirs ([`Table::step`], [`STEPS`] times round). Then the lookups are
//! done one after the other, over lines that have come ([`Table::get_hinted`]).
//!
//! ```text
//! step 0   hash of the key                   prefetches the filter's line
//! step 1   the filter's answer               prefetches the part of the index the key is in
//! step 2   the block's number                prefetches its slot
//! step 3   the block's address               prefetches its header and key prefixes
//! step 4   the entry's offset                prefetches the entry
//! ```
//!
//! A plain table needs two: for the line of its hash index, and for the record. A searchable table takes
//! all five: for the block of keys, the slot of the row's page, the head of the page, the row, and the
//! bytes that the row's code refers to.
//!
//! A hint holds facts about an immutable file only, so it stays right when blocks are evicted or files
//! closed in between. Filters and indexes in partitions, and filters by prefix, are not looked at
//! ahead.
//!
//! [`Table::step`]: crate::Table::step
//! [`Table::get_hinted`]: crate::Table::get_hinted

use crate::filter::Spot;
use crate::plain::KeyHint;
use crate::searchable::{RowPlace, RowSpan};

/// Steps after which nothing is left to prefetch.
pub const STEPS: usize = 5;

/// The facts known about one key in one table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint {
    /// Steps taken.
    steps: u8,
    pub(crate) known: Known,
}

/// How far the steps got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Known {
    /// Nothing.
    #[default]
    Nothing,
    /// Where to ask the filter.
    Filter(Spot),
    /// The filter admits the key, or there is none.
    Admitted,
    /// The first block that may hold the key, of the only partition.
    Block(usize),
    /// The hash of the key, for a plain table.
    Plain(KeyHint),
    /// The block of keys that the key would be in, of a searchable table.
    KeyBlock(usize),
    /// Where the row is, in a searchable table.
    Row(RowPlace),
    /// That, and where in its page.
    RowAt(RowPlace, RowSpan),
    /// The key is not in the table.
    Absent,
    /// The table has already given its entries for the key.
    Answered,
}

impl Hint {
    /// Whether the key is known not to be in the table.
    #[inline]
    pub fn is_absent(&self) -> bool {
        matches!(self.known, Known::Absent)
    }

    /// Whether the table has no more to give: the key is not in it, or was answered.
    #[inline]
    pub fn is_settled(&self) -> bool {
        matches!(self.known, Known::Absent | Known::Answered)
    }

    /// The number of the step that is taken now.
    #[inline]
    pub(crate) fn begin_step(&mut self) -> u8 {
        let step = self.steps;
        self.steps += 1;
        step
    }

    /// Marks all steps as taken: the lookup did their work itself.
    #[inline]
    pub(crate) fn end_steps(&mut self) {
        self.steps = STEPS as u8;
    }
}
