//! What operators see of the commands that run: counts, latencies, the slow log, who monitors.

pub(crate) mod latency;
pub(crate) mod noted;
pub(crate) mod observer;
pub(crate) mod rates;
pub(crate) mod secrets;
pub(crate) mod slowlog;
pub(crate) mod stats;
