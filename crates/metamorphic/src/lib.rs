//! One list of operations under many sets of options: every history must be the model's, line by
//! line.
//!
//! A list (`op`, `verb`) follows from a seed (`generate`) or is read from a file. The model of
//! `drumlin-testkit` computes the answer of each operation once (`expected`); then the engine performs
//! the list under each set of options (`choice`, `engine`) and is compared (`run`). So get, multi-get,
//! iterators and snapshots must agree, forward must be backward reversed, and no flush, compaction,
//! reopening or power cut may change an answer. A failing list is cut down to a few operations.

#![forbid(unsafe_code)]

mod choice;
mod digest;
mod engine;
mod expected;
mod generate;
mod op;
mod progress;
mod run;
mod verb;

pub use choice::{Choice, Place};
pub use expected::{Trace, expect};
pub use generate::{Profile, generate, legalize};
pub use op::{Edit, EditKind, Escaped, Op, ValueSpec, parse_ops};
pub use progress::{Progress, watch};
pub use run::{Mismatch, run, run_watched, shrink, suits};
pub use verb::Verb;
