//! Random writes without a pause, watched second by second: they show the latencies of writers
//! while the store flushes, compacts and is asked to compact everything by hand.
//!
//! The load is closed: each thread writes again as soon as its last write returned. So a store that
//! stands still for a second costs each thread one slow write, not the thousand that would have
//! arrived meanwhile, and percentiles alone flatter it. So the report has the slowest second beside
//! the median second, in which the writes that could not even begin are missing.
//!
//! Threads: the writers and the manual compaction have one each; the caller's looks at the clock,
//! takes the writers' histograms at the end of each second and asks the store for its sizes.

mod plan;
mod print;
mod report;
mod run;
mod save;
mod second;
mod table;
mod writer;

pub use plan::Plan;
pub use print::{heading, line, summary};
pub use report::{Compaction, Floor, Report};
pub use run::run;
pub use save::save;
pub use second::{Second, Times};
pub use table::{json, markdown};
