//! What a merged walk is made of: a sorted run's tables walked as one, and memtables beside them.

pub mod run;
pub mod source;
