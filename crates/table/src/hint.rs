//! What a batch of lookups finds out ahead of itself.
//!
//! One lookup waits for memory three or four times, each time for an address that the one before told
//! it. Many lookups can wait at the same time: each takes a step, asks for the lines that its next step
//! needs, and lets the others take theirs ([`Table::step`], [`STEPS`] times round). Then the lookups are
//! done one after the other, over lines that have come ([`Table::get_hinted`]).
//!
//! ```text
//! step 0   hash of the key                   asks for the filter's line
//! step 1   the filter's answer               asks for the part of the index the key is in
//! step 2   the block's number                asks for its slot
//! step 3   the block's address               asks for its header and key prefixes
//! step 4   the entry's offset                asks for the entry
//! ```
//!
//! A plain table needs two: for the line of its hash index, and for the record. A searchable table takes
//! all five: for the block of keys, the slot of the row's page, the head of the page, the row, and what the
//! row's code refers to.
//!
//! A hint holds facts about an immutable file only, so it stays right whatever is evicted or closed in
//! between. Filters and indexes in partitions, and filters by prefix, are not looked at ahead.
//!
//! [`Table::step`]: crate::Table::step
//! [`Table::get_hinted`]: crate::Table::get_hinted

use std::ops::ControlFlow;

use drumlin_base::key::ValueKind;
use drumlin_base::{Result, SeqNo};

use crate::block::BlockView;
use crate::block::TableFilter;
use crate::block::prefetch_entry;
use crate::block::{BlockTable, LOOKUP_LINES, TableIndex};
use crate::filter::{Spot, hash};
use crate::options::TableReadOptions;
use crate::plain::{KeyHint, PlainTable, PlainValue};
use crate::searchable::{PAGE_HEADER_LINES, RowPlace, RowSpan, SearchableTable, SearchableValue};

/// Steps after which nothing is left to ask for.
pub const STEPS: usize = 5;

/// What is known of one key in one table.
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
    /// The first block that may hold the key, of the only run.
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
    /// What the table has for the key was given already.
    Answered,
}

impl Hint {
    /// Whether the key is known not to be in the table.
    #[inline]
    pub fn is_absent(&self) -> bool {
        matches!(self.known, Known::Absent)
    }

    /// Whether nothing is left to be asked of the table: the key is not in it, or was answered.
    #[inline]
    pub fn is_settled(&self) -> bool {
        matches!(self.known, Known::Absent | Known::Answered)
    }

    /// Takes in that what the steps would have asked for was asked for.
    #[inline]
    pub(crate) fn end_steps(&mut self) {
        self.steps = STEPS as u8;
    }
}

impl BlockTable {
    /// Takes the next step for `user_key` as a reader at `seqno` looks for it.
    #[inline]
    pub(crate) fn step(&self, hint: &mut Hint, user_key: &[u8], seqno: SeqNo) {
        let step = hint.steps;
        hint.steps += 1;
        match (step, hint.known) {
            (0, _) => hint.known = self.prefetch_filter(user_key),
            (1, Known::Filter(spot)) => {
                hint.known = match &self.filter {
                    TableFilter::Full(filter) if !filter.test(spot) => Known::Absent,
                    _ => Known::Admitted,
                };
                if !hint.is_absent() {
                    self.prefetch_index(user_key);
                }
            }
            (1, Known::Admitted) => self.prefetch_index(user_key),
            (2, Known::Admitted) => hint.known = self.find_block(user_key, seqno),
            (3, Known::Block(at)) => {
                if let TableIndex::Single(run) = &self.index {
                    run.slots.prefetch(at, LOOKUP_LINES);
                }
            }
            (4, Known::Block(at)) => self.prefetch_entry(at, user_key),
            _ => {}
        }
    }

    /// Begins to ask the filter, where it is in memory and knows whole keys.
    #[inline]
    pub(crate) fn prefetch_filter(&self, user_key: &[u8]) -> Known {
        match (&self.filter, &self.index) {
            (_, TableIndex::Partitioned(_)) | (TableFilter::Partitioned(_), _) => Known::Nothing,
            (TableFilter::Full(filter), _) if self.whole_key_filter && filter.is_by_hash() => {
                Known::Filter(filter.locate(hash(user_key)))
            }
            // By prefixes, or of the older kind: the lookup itself asks.
            (TableFilter::Full(_), _) => Known::Nothing,
            (TableFilter::None | TableFilter::LevelDb(_), _) => Known::Admitted,
        }
    }

    fn prefetch_index(&self, user_key: &[u8]) {
        if let TableIndex::Single(run) = &self.index {
            run.index.prefetch_for(user_key);
        }
    }

    fn find_block(&self, user_key: &[u8], seqno: SeqNo) -> Known {
        let (TableIndex::Single(run), Some(seqno)) = (&self.index, self.stored_seqno(seqno)) else {
            return Known::Nothing;
        };
        let at = run.index.find(user_key, seqno);
        if at >= run.index.len() {
            return Known::Absent;
        }
        run.slots.prefetch_slot(at);
        Known::Block(at)
    }

    /// Only in blocks that are cached and have key prefixes: to make them is the lookup's.
    fn prefetch_entry(&self, at: usize, user_key: &[u8]) {
        if let TableIndex::Single(run) = &self.index
            && let Some(block) = run.slots.peek(at)
            && let Some(lookup) = block.lookup_if_made()
            && let Some(offset) = lookup.find(user_key)
        {
            prefetch_entry(&block, offset);
        }
    }
}

impl PlainTable {
    /// As [`BlockTable::step`].
    #[inline]
    pub(crate) fn step(&self, hint: &mut Hint, user_key: &[u8]) {
        let step = hint.steps;
        hint.steps += 1;
        match (step, hint.known) {
            (0, _) => {
                let key = KeyHint::of(user_key);
                self.ask(key);
                hint.known = Known::Plain(key);
            }
            (1, Known::Plain(key)) if !self.ask_record(key) => hint.known = Known::Absent,
            _ => {}
        }
    }

    /// As [`BlockTable::get_hinted`].
    #[inline]
    pub(crate) fn get_after_steps(
        &self,
        hint: &Hint,
        user_key: &[u8],
        seqno: SeqNo,
        visit: impl FnMut(SeqNo, ValueKind, PlainValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        match hint.known {
            Known::Absent => Ok(()),
            Known::Plain(key) => self.get_hinted(user_key, key, seqno, visit),
            _ => self.get(user_key, seqno, visit),
        }
    }
}

impl SearchableTable {
    /// As [`BlockTable::step`].
    #[inline]
    pub(crate) fn step(&self, hint: &mut Hint, user_key: &[u8]) {
        let step = hint.steps;
        hint.steps += 1;
        match (step, hint.known) {
            (0, _) => {
                hint.known = match self.find_block(user_key) {
                    Some(block) => Known::KeyBlock(block),
                    None => Known::Absent,
                };
            }
            (1, Known::KeyBlock(block)) => {
                hint.known = match self.find_in(block, user_key) {
                    Some(place) => {
                        self.slots.prefetch_slot(place.page as usize);
                        Known::Row(place)
                    }
                    None => Known::Absent,
                };
            }
            (2, Known::Row(place)) => self.slots.prefetch(place.page as usize, PAGE_HEADER_LINES),
            (3, Known::Row(place)) => {
                if let Some(span) = self.prefetch_row(place) {
                    hint.known = Known::RowAt(place, span);
                }
            }
            (4, Known::RowAt(place, span)) => self.prefetch_value(place, span),
            _ => {}
        }
    }

    /// As [`BlockTable::get_hinted`].
    #[inline]
    pub(crate) fn get_hinted(
        &self,
        hint: &Hint,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        visit: impl FnMut(SeqNo, ValueKind, SearchableValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let (place, span) = match hint.known {
            Known::Absent | Known::Answered => return Ok(()),
            Known::Row(place) => (Some(place), None),
            Known::RowAt(place, span) => (Some(place), Some(span)),
            _ => (self.find(user_key), None),
        };
        match place {
            Some(place) => self.get_row(place, span, seqno, options, visit),
            None => Ok(()),
        }
    }
}
