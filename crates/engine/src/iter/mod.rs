//! Cursors over internal keys: one sorted run, many merged, and merge operands.

pub(crate) mod merge_operands;
pub(crate) mod merging;
pub mod range_tombstone;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod test_source;
