//! Where output tables end.
//!
//! A table ends before a new user key only, so that all versions of a key are in one table. It ends
//! when it has its size; before that, when it overlaps too much of the level below its own, which
//! would make its own compaction expensive; and a little early where a table below ends, so that
//! the two levels' borders fall together.

use std::sync::Arc;

use drumlin_base::KeyOrder;

use super::plan::CompactionOptions;
use super::span::Span;
use crate::version::FileMeta;

/// Decides before each new user key whether the output table ends.
#[derive(Debug)]
pub(crate) struct Splitter {
    target_bytes: u64,
    overlap_max: u64,
    grandparents: Vec<Arc<FileMeta>>,
    /// The first grandparent that does not end before the last key asked about.
    at: usize,
    /// Bytes of grandparents passed since the output table began.
    overlapped: u64,
}

impl Splitter {
    /// A splitter for outputs over `grandparents`.
    pub(crate) fn new(options: &CompactionOptions, grandparents: Vec<Arc<FileMeta>>) -> Self {
        Self {
            target_bytes: options.target_file_bytes,
            overlap_max: options.grandparent_bytes_max(),
            grandparents,
            at: 0,
            overlapped: 0,
        }
    }

    /// One that never ends a table.
    pub(crate) fn never() -> Self {
        Self {
            target_bytes: u64::MAX,
            overlap_max: u64::MAX,
            grandparents: Vec::new(),
            at: 0,
            overlapped: 0,
        }
    }

    /// Whether the table, which has `file_bytes` (0: none is open), ends before `user_key`.
    ///
    /// Requires: keys in ascending order from call to call; after true, a new table begins.
    #[inline]
    pub(crate) fn ends_before(
        &mut self,
        order: &KeyOrder,
        user_key: &[u8],
        file_bytes: u64,
    ) -> bool {
        let passed = !self.grandparents.is_empty() && self.pass(order, user_key);
        if file_bytes == 0 {
            self.overlapped = 0;
            return false;
        }
        // Three quarters: a table cut early is at most a quarter short, and borders still meet
        // often enough for the level below to be rewritten less.
        let ends = file_bytes >= self.target_bytes
            || self.overlapped > self.overlap_max
            || (passed && file_bytes >= self.target_bytes / 4 * 3);
        if ends {
            self.overlapped = 0;
        }
        ends
    }

    /// Passes the grandparents that end before `user_key`; whether there were any.
    fn pass(&mut self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let before = self.at;
        while let Some(file) = self.grandparents.get(self.at)
            && Span::of(file).ends_before(order, user_key)
        {
            self.overlapped = self.overlapped.saturating_add(file.size);
            self.at += 1;
        }
        self.at > before
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::ValueKind;
    use drumlin_base::key::internal_key;

    use super::*;
    use crate::version::NewFile;

    fn grandparent(first: &str, last: &str, size: u64) -> Arc<FileMeta> {
        Arc::new(FileMeta::new(NewFile {
            size,
            smallest: internal_key(first.as_bytes(), 1, ValueKind::Value),
            largest: internal_key(last.as_bytes(), 1, ValueKind::Value),
            ..NewFile::default()
        }))
    }

    fn ends(grandparents: Vec<Arc<FileMeta>>, bytes_a_key: u64) -> String {
        let order = KeyOrder::Bytewise;
        let options = CompactionOptions {
            target_file_bytes: 100,
            ..CompactionOptions::new(order.clone())
        };
        let mut splitter = Splitter::new(&options, grandparents);
        let mut size = 0;
        let mut out = String::new();
        for key in b'a'..=b'l' {
            if splitter.ends_before(&order, &[key], size) {
                out.push('|');
                size = 0;
            }
            out.push(key as char);
            size += bytes_a_key;
        }
        out
    }

    #[test]
    fn tables_end_at_their_size() {
        assert_eq!(ends(vec![], 30), "abcd|efgh|ijkl");
        assert_eq!(ends(vec![], 100), "a|b|c|d|e|f|g|h|i|j|k|l");
        assert_eq!(ends(vec![], 1), "abcdefghijkl");
    }

    #[test]
    fn tables_end_when_they_overlap_too_much_below() {
        let below = vec![
            grandparent("a", "b", 600),
            grandparent("c", "d", 600),
            grandparent("e", "f", 600),
            grandparent("g", "g", 10),
        ];
        assert_eq!(ends(below, 1), "abcd|efghijkl");
    }

    #[test]
    fn tables_that_are_nearly_full_end_with_a_table_below() {
        assert_eq!(ends(vec![grandparent("a", "c", 9)], 25), "abc|defg|hijk|l");
        assert_eq!(ends(vec![grandparent("a", "b", 9)], 25), "abcd|efgh|ijkl");
    }
}
