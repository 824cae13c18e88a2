//! What an operation costs as the store grows: the same lines at several sizes, as a table and as a
//! drawing with one curve an engine.
//!
//! Each size is a comparison of its own, with its engines interleaved line by line.

mod contest;
mod drawing;
mod report;

pub(crate) use contest::{Contest, run};
