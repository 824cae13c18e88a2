//! The whole engine under a seeded scheduler, a clock of its own and a disk that fails.
//!
//! A seed draws everything: sizes and options, what writers, readers and the rest do, which faults
//! strike and when the power is cut, and which thread runs at each moment ([`schedule`]). The same
//! seed does the same again. Every batch adds its number to one key, so the database itself says in
//! which order batches were committed, and everything read can be compared with a model that applies
//! them in that order ([`history`]).

pub mod campaign;
pub mod history;
pub mod model;
pub mod schedule;
pub mod seeded;
pub mod setup;
pub mod shrink;
pub mod world;
