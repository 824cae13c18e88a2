//! `/metrics`: the counters of the server and of the engine as Prometheus reads them, over HTTP on a port of their own.

pub(crate) mod figures;
pub(crate) mod page;
pub(crate) mod scrape;
