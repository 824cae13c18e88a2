//! Several engines through the same workloads in one process, line by line in turn.
//!
//! One round: every engine starts with an empty directory and keeps its store open. Each line is
//! run by one engine after the other, beginning with another engine each time, with the same keys
//! and values; before the next one starts, the engine before has finished its background work. So a
//! slow minute of the machine hits all of them alike, and none pays for another's compaction.

mod contest;
mod db_bench;
mod entrant;
mod line;
pub(crate) mod machine;
mod report;
mod result;

pub(crate) use contest::{Contest, Standing, run};
pub(crate) use entrant::measure;
pub(crate) use line::Line;
pub(crate) use report::{quoted, squeeze};
#[cfg(test)]
pub(crate) use result::{Outcome, Rounds};
