//! Counters, timings, verdicts on pressure, and events.

pub(crate) mod counting;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod info_log;
pub(crate) mod level_work;
pub(crate) mod live_files;
pub(crate) mod metrics;
pub(crate) mod notices;
pub(crate) mod pressure;
pub(crate) mod prometheus;
pub(crate) mod properties;
pub(crate) mod reason;
pub(crate) mod sizes;
pub(crate) mod statistics;
pub(crate) mod times;
pub(crate) mod waits;
