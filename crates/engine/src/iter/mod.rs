//! Cursors over internal keys: one sorted run, many merged, and merge operands.

pub mod merge_operands;
pub mod merging;
pub mod range_tombstone;
pub mod run;
#[cfg(test)]
pub(crate) mod test_source;
