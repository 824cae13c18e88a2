//! The steps of a lookup among many: each prefetches the lines that the next one needs.

use std::ops::ControlFlow;

use drumlin_base::key::ValueKind;
use drumlin_base::{Result, SeqNo};

use super::filter::TableFilter;
use super::layout::BlockView;
use super::lookup::prefetch_entry;
use super::table::{BlockTable, BlockValue, LOOKUP_LINES, TableIndex};
use crate::hint::{Hint, Known};
use crate::options::TableReadOptions;

impl BlockTable {
    /// Takes the next step for `user_key` as a reader at `seqno` looks for it.
    #[inline]
    pub(crate) fn step(&self, hint: &mut Hint, user_key: &[u8], seqno: SeqNo) {
        match (hint.begin_step(), hint.known) {
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
                if let TableIndex::Single(partition) = &self.index {
                    partition.slots.prefetch(at, LOOKUP_LINES);
                }
            }
            (4, Known::Block(at)) => self.prefetch_entry(at, user_key),
            _ => {}
        }
    }

    fn prefetch_index(&self, user_key: &[u8]) {
        if let TableIndex::Single(partition) = &self.index {
            partition.index.prefetch_for(user_key);
        }
    }

    fn find_block(&self, user_key: &[u8], seqno: SeqNo) -> Known {
        let (TableIndex::Single(partition), Some(seqno)) = (&self.index, self.stored_seqno(seqno))
        else {
            return Known::Nothing;
        };
        let at = partition.index.find(user_key, seqno);
        if at >= partition.index.len() {
            return Known::Absent;
        }
        partition.slots.prefetch_slot(at);
        Known::Block(at)
    }

    /// Only in blocks that are cached and have key prefixes: to make them is the lookup's.
    fn prefetch_entry(&self, at: usize, user_key: &[u8]) {
        if let TableIndex::Single(partition) = &self.index
            && let Some(block) = partition.slots.peek(at)
            && let Some(prefixes) = block.key_prefixes_if_made()
            && let Some(offset) = prefixes.find(user_key)
        {
            prefetch_entry(&block, offset);
        }
    }

    /// As [`BlockTable::get`], after the steps that `hint` took for this key and sequence number.
    ///
    /// # Errors
    /// As [`BlockTable::get`].
    #[inline]
    pub(crate) fn get_hinted(
        &self,
        hint: &Hint,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        mut visit: impl FnMut(SeqNo, ValueKind, BlockValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let (TableIndex::Single(partition), Some(stored)) = (&self.index, self.stored_seqno(seqno))
        else {
            return self.get(user_key, seqno, options, visit);
        };
        match hint.known {
            Known::Absent => Ok(()),
            Known::Block(at) => self
                .get_from_block(partition, at, user_key, stored, options, &mut visit)
                .map(|_| ()),
            _ => self.get(user_key, seqno, options, visit),
        }
    }
}
