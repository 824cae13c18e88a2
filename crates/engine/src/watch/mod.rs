//! Counters, timings, verdicts on pressure, and events.

pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod live_files;
pub(crate) mod notices;
pub(crate) mod pressure;
pub(crate) mod properties;
pub(crate) mod sizes;
pub(crate) mod statistics;
pub(crate) mod tables;
pub(crate) mod waits;
