//! The whole engine under a seeded scheduler, a clock of its own and a disk that fails.
//!
//! A seed draws everything: sizes and options, the operations of writers, readers and the rest, the
//! faults and power cuts, and the thread that runs at each moment ([`schedule`]). The same seed
//! gives the same run. Every batch adds its number to one key, so the database itself has the order
//! in which batches were committed, and everything read can be compared with a model that applies
//! them in that order ([`history`]).

pub mod campaign;
pub mod histories;
pub mod history;
pub mod model;
pub mod prepared;
pub mod schedule;
pub mod seeded;
pub mod setup;
pub mod shrink;
pub mod world;
